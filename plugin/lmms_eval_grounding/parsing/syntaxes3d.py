"""3D box syntaxes: from the text of a final answer to rows of numbers, or to ids of objects.

One function per syntax, named as its spec in spec/parsers/boxes3d/ and its cases in
golden_cases/parsers/boxes3d/. Each yields the rows it recognises, in the order of the text; a row
that was given but cannot be a box carries the name of its fault. Text that is no row at all, such
as prose or an echoed placeholder, is not yielded. All patterns are linear in the length of the
text, and rows are made one at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import tolerant_json
from .convention3d import Box3dConvention, CandidateConvention
from .syntaxes import json_number, objects_in
from .tolerant_json import BROKEN, Pairs, Word

NO_FRAME = -1  # the number of a frame that is none: what was written is no whole number


class Row(NamedTuple):
    """The numbers of one box as written, or one id, or the fault that keeps them from being one.

    ``frame`` is the number of the frame that it refers to, counted from 0, or None where it names
    none; ``score`` is None where it has none that is finite.
    """

    numbers: tuple[float, ...] = ()
    fault: str | None = None
    frame: int | None = None
    score: float | None = None


class Found(NamedTuple):
    """A row, or None for a place without one, and what was noticed there."""

    row: Row | None
    flag: str | None = None


def keyed_boxes(text: str, convention: Box3dConvention) -> Iterator[Found]:
    """Read boxes from JSON: the values of the profile's keys, wherever they are nested."""
    yield from _json_rows(text, convention, lambda value: _json_box(value, convention))


def tagged_boxes(text: str, convention: Box3dConvention) -> Iterator[Found]:
    """Read ``<3dbbox>numbers</3dbbox>``, with blanks or commas between, by the profile's tag."""
    tag = re.escape(convention.tag)
    for match in re.finditer(rf"<{tag}>([^<>]*)(?:(</?{tag}>)|(?:<[^<>]*)?\Z)", text):
        body, closed = match.groups()
        if closed:
            tokens = body.replace(",", " ").split()
            numbers = [tolerant_json.number(token) for token in tokens]
            yield from map(Found, _number_row(numbers, convention))
        else:
            yield Found(None, "truncated")


def code_boxes(text: str, convention: Box3dConvention) -> Iterator[Found]:
    """Read ``bbox_0=Bbox(label, numbers)``; other calls, such as Wall(..), are no boxes."""
    for match in _CALL.finditer(text):
        body, closed = match.groups()
        if closed:
            _, *tokens = body.split(",")
            numbers = [tolerant_json.number(token.strip()) for token in tokens]
            yield from map(Found, _number_row(numbers, convention))
        else:
            yield Found(None, "truncated")


def json_ids(text: str, convention: CandidateConvention) -> Iterator[Found]:
    """Read ids from JSON, or whole numbers that are all the text where the profile is bare."""
    bare = text.removesuffix(".")
    if convention.bare and _ONLY_IDS.fullmatch(bare):
        yield from (Found(Row((float(id.group()),))) for id in _DIGITS.finditer(bare))
    else:
        yield from _json_rows(text, convention, _json_id_rows)


def object_tokens(text: str, convention: CandidateConvention) -> Iterator[Found]:
    """Read ``<OBJ013>``."""
    return (Found(Row((float(match.group(1)),))) for match in _OBJECT_TOKEN.finditer(text))


Syntax = Callable[[str, Any], Iterator[Found]]

BOX_SYNTAXES: dict[str, Syntax] = {
    syntax.__name__: syntax for syntax in (keyed_boxes, tagged_boxes, code_boxes)
}
ID_SYNTAXES: dict[str, Syntax] = {syntax.__name__: syntax for syntax in (json_ids, object_tokens)}

_CALL = re.compile(r"\bBbox\s*\(([^()]*)(?:(\))|\Z)")
_OBJECT_TOKEN = re.compile(r"<OBJ([0-9]{1,9})>")
_ONLY_IDS = re.compile(r"[0-9][0-9\s,;]*")
_DIGITS = re.compile(r"[0-9]+")
_ID_TEXT = re.compile(r"(<OBJ)?([0-9]{1,9})(?(1)>)")
_MAY_GO_ON = "0123456789.%０１２３４５６７８９．％"  # what a number that is cut may end in
_QUOTES = "\"'“‘"
_CLOSERS = "]" * tolerant_json.MAX_DEPTH + "}" * tolerant_json.MAX_DEPTH


def _number_row(numbers: list[Any], convention: Box3dConvention) -> Iterator[Row]:
    """Yield the row that some numbers are; what is no number is None, and all None is no row."""
    if all(number is None for number in numbers):
        return
    if None in numbers:
        yield Row(fault="not_numbers")
    elif len(numbers) != len(convention.slots):
        yield Row(fault="wrong_count")
    elif not all(math.isfinite(number) for number in numbers):
        yield Row(fault="not_finite")
    else:
        yield Row(tuple(float(number) for number in numbers))


def _json_rows(
    text: str,
    convention: Box3dConvention | CandidateConvention,
    rows_of: Callable[[Any], Iterator[Row]],
) -> Iterator[Found]:
    """Yield the rows of all JSON in a text, and where it is cut or was repaired."""
    for value in tolerant_json.values(text):
        data = value.data
        if value.flag == "truncated" and isinstance(convention, CandidateConvention):
            data = _up_to_cut(text[value.start :])  # every id is a row, also in a list that is cut
        is_list = isinstance(data, list) and not objects_in(data)
        keyed = convention.bare and is_list and value.is_all_of(text)
        for leaf in _leaves(data, convention, keyed):
            for row in rows_of(leaf.value):
                yield Found(row._replace(frame=leaf.frame, score=leaf.score), value.flag)
        if value.flag == "truncated":
            yield Found(None, "truncated")


def _up_to_cut(text: str) -> Any:
    """Return the data of a text that ends inside a value, without the number or string it cuts."""
    before_string = text[: max(map(text.rfind, _QUOTES))]  # where the text ends inside a string
    for whole in (text.rstrip(_MAY_GO_ON), before_string):
        value = next(tolerant_json.values(whole + _CLOSERS))
        if value.flag != "truncated":
            break
    return value.data


class _Leaf(NamedTuple):
    """A value under a key of the profile, without lists in it, and what is known of it."""

    value: Any
    keyed: bool
    frame: int | None = None
    score: float | None = None


def _leaves(
    data: Any, convention: Box3dConvention | CandidateConvention, keyed: bool
) -> Iterator[_Leaf]:
    """Yield the values under the profile's keys, depth first; ``keyed`` data stands under one.

    Frame and score are those of the nearest object around a value that has them.
    """
    pending = [_Leaf(data, keyed)]
    while pending:
        leaf = pending.pop()
        value = leaf.value
        if isinstance(value, Pairs) and not leaf.keyed:
            frame, score = leaf.frame, leaf.score
            for key, item in value:
                if key == convention.frame_key and item is not None:
                    frame = _frame_number(item)
                elif key in convention.score_keys:
                    score = _score(item)
            items = [_Leaf(item, key in convention.keys, frame, score) for key, item in value]
            pending += reversed(items)
        elif isinstance(value, list) and any(isinstance(item, list) for item in value):
            pending += [leaf._replace(value=item) for item in reversed(value)]
        elif leaf.keyed:
            yield leaf


def _frame_number(item: Any) -> int:
    number = json_number(item)
    return int(number) if number is not None and float(number).is_integer() else NO_FRAME


def _score(item: Any) -> float | None:
    number = json_number(item)
    return number if number is not None and math.isfinite(number) else None


def _json_box(value: Any, convention: Box3dConvention) -> Iterator[Row]:
    if value is BROKEN or (isinstance(value, list) and BROKEN in value):
        yield Row(fault="broken")
    elif isinstance(value, list) and not isinstance(value, Pairs):
        yield from _number_row([json_number(item) for item in value], convention)
    elif value is not None and not isinstance(value, Word):
        yield Row(fault="not_numbers")


def _json_id_rows(value: Any) -> Iterator[Row]:
    """Yield a row for an id, or for each of a list of ids; null and unquoted words are none."""
    is_list = isinstance(value, list) and not isinstance(value, Pairs)
    for item in value if is_list else [value]:
        if item is BROKEN:
            yield Row(fault="broken")
        elif item is not None and not isinstance(item, Word):
            named = _ID_TEXT.fullmatch(item.strip()) if isinstance(item, str) else None
            number = float(named.group(2)) if named else json_number(item)
            yield Row(fault="not_numbers") if number is None else Row((number,))
