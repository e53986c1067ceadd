"""Masks as run-length encodings in JSON; rules: spec/parsers/masks/json_rle.json."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

from ..geometry.masks import MaskError, is_whole, rle_from_coco
from .convention import MaskConvention
from .mask_parts import NOTHING, MaskReading, Part, is_given, json_reading
from .syntaxes import json_number
from .tolerant_json import BROKEN, CUT, CutPairs, Pairs, Word


def json_rle(text: str, convention: MaskConvention, width: int, height: int) -> MaskReading:
    """Read run-length encodings: objects with ``counts``, wherever they are nested.

    Where the profile has no other syntax before this one, anything else but null under one of its
    keys is a faulty mask; in a list, all of it together. Below the profile's score threshold a mask
    counts as nothing.
    """
    return json_reading(text, lambda value: _rle_parts(value.data, convention, width, height))


def _rle_parts(data: Any, convention: MaskConvention, width: int, height: int) -> Iterator[Part]:
    pending = [(data, False)]
    while pending:
        value, keyed = pending.pop()
        if isinstance(value, Part):
            yield value
        elif isinstance(value, Pairs):
            if any(key == "counts" for key, _ in value):
                yield from _rle_part(value, width, height)
            else:
                pending += reversed(list(_fields(value, convention)))
        elif isinstance(value, list):
            pending += [(item, keyed) for item in reversed(_masks_in(value))]
        elif keyed and is_given(value):
            yield Part(fault="broken" if value is BROKEN else "bad_mask")


def _masks_in(items: list[Any]) -> list[Any]:
    """Return the items that may be masks, and the first of those that are faulty ones."""
    kept: list[Any] = []
    has_fault = False
    for item in items:
        is_faulty = not isinstance(item, list | Part) and is_given(item)
        if not (is_faulty and has_fault):
            kept.append(item)
        has_fault |= is_faulty
    return kept


def _rle_part(pairs: Pairs, width: int, height: int) -> Iterator[Part]:
    """Yield the mask that an object with ``counts`` is; a cut one and a placeholder are none."""
    sizes = [item for key, item in pairs if key == "size" and item is not CUT]
    counts = [item for key, item in pairs if key == "counts" and item is not CUT]
    if isinstance(pairs, CutPairs) and not (sizes and counts):
        return
    if BROKEN in sizes or BROKEN in counts:
        yield Part(fault="broken")
    elif len(sizes) != 1 or len(counts) != 1:
        yield Part(fault="bad_mask")
    elif _is_size(sizes[0]) and sizes[0] != [height, width]:
        yield Part(fault="size_mismatch")
    elif not (isinstance(sizes[0], list) and all(isinstance(side, Word) for side in sizes[0])):
        try:
            rle = rle_from_coco({"size": sizes[0], "counts": counts[0]}, (height, width))
        except MaskError:
            yield Part(fault="bad_mask")
        else:
            yield Part(rle=rle)


def _is_size(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(is_whole(side) and side > 0 for side in value)
    )


def _fields(pairs: Pairs, convention: MaskConvention) -> Iterator[tuple[Any, bool]]:
    """Yield the values of an object, and whether they stand under a key of the profile.

    Where the profile has a score threshold, masks without a score of that or more are replaced.
    """
    given = next((item for key, item in pairs if key == "scores"), None)
    scores = given if isinstance(given, list) else []
    threshold = convention.score_threshold
    for key, item in pairs:
        keyed = key in convention.keys and convention.syntaxes[0] == "json_rle"
        if keyed and isinstance(item, list) and threshold is not None:
            padded = chain(scores, repeat(None))
            yield [_scored(mask, next(padded), threshold) for mask in item], keyed
        else:
            yield item, keyed


def _scored(mask: Any, score: Any, threshold: float) -> Any:
    number = json_number(score)
    if number is None or math.isnan(number):
        return Part(fault="not_numbers")
    return mask if number >= threshold else NOTHING
