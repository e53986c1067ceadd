"""Masks as maps of probabilities in boxes, in JSON; rules: spec/parsers/masks/json_maps.json."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from ..geometry import png
from ..geometry.masks import MaskError, holds_pixel, rle_from_probability_map
from .boxes import place
from .convention import MaskConvention
from .mask_parts import MaskReading, Part, json_reading
from .mask_polygons import place_polygon, polygon_rows
from .mask_tokens import DECODER_TOKEN
from .syntaxes import json_row
from .tolerant_json import BROKEN, CutPairs, Pairs, Value, Word

MAX_MAPS = 100  # a map costs as much as the image has pixels
THRESHOLD = 127  # a pixel is foreground when its value, 0 to 255, is above


def json_maps(text: str, convention: MaskConvention, width: int, height: int) -> MaskReading:
    """Read objects of a box and a map of its inside, or a polygon in the place of the map.

    A map is a PNG of values 0 to 255 in base64, as a data URI or bare.
    """
    costs = _Costs()

    def parts(value: Value) -> Iterator[Part]:
        for pairs in _ordered_objects(value.data):
            for key, given in pairs:
                if key not in convention.keys or isinstance(given, Pairs | Word):
                    continue
                if isinstance(given, list):
                    for row in polygon_rows(given, value.flag == "truncated"):
                        yield place_polygon(row, convention, width, height)
                elif isinstance(given, str) and DECODER_TOKEN.search(given):
                    yield Part(fault="needs_decoder")
                elif isinstance(given, str):
                    yield from _map_part(given, pairs, convention, (width, height), costs)
                elif given is not None:
                    yield Part(fault="broken" if given is BROKEN else "not_numbers")

    return json_reading(text, parts)


class _Costs:
    """What the maps of one answer may cost together, in maps and in pixels."""

    def __init__(self) -> None:
        self._maps, self._pixels = MAX_MAPS, png.MAX_PIXELS

    def charge(self, data: bytes) -> None:
        """Charge for a PNG; MaskError if it is none, or when nothing is left."""
        height, width = png.size_of_png(data)
        self._maps -= 1
        self._pixels -= height * width
        if min(self._maps, self._pixels) < 0:
            raise MaskError(f"an answer has at most {MAX_MAPS} maps of {png.MAX_PIXELS} pixels")


def _map_part(
    given: str, pairs: Pairs, convention: MaskConvention, size: tuple[int, int], costs: _Costs
) -> Iterator[Part]:
    """Yield the mask that a map stands for in the first box of its object.

    An object that is cut before its box is none.
    """
    width, height = size
    box = convention.box
    rows = [row for key, item in pairs if box and key in box.keys for row in json_row(item, box)]
    if box is None or not rows:
        if not isinstance(pairs, CutPairs):
            yield Part(fault="no_box")
        return
    placed = place(rows[0], box, width, height)
    if placed.whole is None or not holds_pixel(placed.whole, height, width):
        yield Part(fault=placed.fault or "zero_area")
        return
    try:
        data = base64.b64decode(_DATA_URI.sub("", given), validate=True)
        costs.charge(data)
        rle = rle_from_probability_map(data, placed.whole, height, width, THRESHOLD)
    except ValueError:  # base64 that is none; a MaskError is one, too
        yield Part(fault="bad_mask")
    else:
        yield Part(rle=rle, flags=placed.flags)


def _ordered_objects(data: Any) -> Iterator[Pairs]:
    """Yield all objects in JSON data, depth first, in the order of the text."""
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, Pairs):
            yield value
            pending += [item for _, item in reversed(value)]
        elif isinstance(value, list):
            pending += reversed(value)


_DATA_URI = re.compile(r"\Adata:image/png;base64,", re.IGNORECASE)
