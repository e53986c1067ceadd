"""Box syntaxes: from the text of a final answer to rows of numbers.

One function per syntax, named as its spec in spec/parsers/ and its cases in golden_cases/parsers/.
Each returns the rows it recognises, in order; a row that was given but cannot be a box carries the
name of its fault. Text that is no row at all, such as prose or an echoed placeholder, is not
returned. All patterns are linear in the length of the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import tolerant_json
from .convention import BoxConvention
from .tolerant_json import BROKEN, CUT, Pairs, Word, narrow


class Row(NamedTuple):
    """The numbers of one box as written, or the fault that keeps them from being one.

    ``is_open`` says that they are too few and that nothing closes them: in a text that is cut they
    are what is left of a row.
    """

    numbers: tuple[float, ...] = ()
    fault: str | None = None
    is_open: bool = False


class Reading(NamedTuple):
    """What a syntax found: rows in the order of the text, and flags."""

    rows: list[Row]
    flags: frozenset[str] = frozenset()


def json_boxes(text: str, convention: BoxConvention) -> Reading:
    """Read boxes from JSON: the values of the profile's keys, wherever they are nested.

    If the whole text is one list without objects, it is read like such a value where the profile is
    ``bare``. Flags tell of the values that gave rows, and of a cut anywhere.
    """
    rows: list[Row] = []
    flags: set[str | None] = set()
    gives_point = False
    for value in tolerant_json.values(text):
        is_list = isinstance(value.data, list) and not objects_in(value.data)
        keyed = convention.bare and is_list and value.is_all_of(text)
        found = list(_json_rows(value.data, convention, keyed))
        rows += found
        if found or value.flag == "truncated":
            flags.add(value.flag)
        gives_point = gives_point or _gives_point(value.data)
    if gives_point and not rows:
        rows = [Row(fault="point")]
    return Reading(rows, frozenset(flag for flag in flags if flag))


def unkeyed_lists(text: str, convention: BoxConvention) -> Reading:
    """Read bracketed lists outside the JSON objects of a text, the last sound one only."""
    pieces, position = [], 0
    for value in tolerant_json.values(text):
        if any(key is not None for pairs in objects_in(value.data) for key, _ in pairs):
            pieces.append(text[position : value.start])
            position = value.end
    lists = bracket_lists(" ".join([*pieces, text[position:]]), convention)
    return Reading([row for row in lists.rows if row.fault is None][-1:])


def bracket_lists(text: str, convention: BoxConvention) -> Reading:
    """Read ``[x1,y1,x2,y2]``, also nested, with ``;`` between boxes, and with leading zeros.

    Numbers in brackets that the text leaves open are no row, but tell that it is cut.
    """
    rows: list[Row] = []
    flags: frozenset[str] = frozenset()
    for match in _BRACKETS.finditer(narrow(text)):
        body, closed = match.groups()
        groups = [[_plain_number(t) for t in g.replace(",", " ").split()] for g in body.split(";")]
        if closed:
            found = [numbers for numbers in groups if len(numbers) > 1 and None not in numbers]
            rows += [_row(numbers, convention) for numbers in found]
        elif any(groups) and not any(None in numbers for numbers in groups):
            flags = _CUT
    return Reading(rows, flags)


def point_pairs(text: str, convention: BoxConvention) -> Reading:
    """Read ``(x1,y1),(x2,y2)``; one point, or a chain of more than two, is no box."""
    text = narrow(text)
    chains: list[list[float | None]] = []
    end = 0
    for point in _PARENTHESES.finditer(text):
        if not chains or text[end : point.start()].strip() != ",":
            chains.append([])
        chains[-1] += _numbers_in(point.group())
        end = point.end()
    return Reading([_row(chain, convention) for chain in chains])


def tagged_numbers(text: str, convention: BoxConvention) -> Reading:
    """Read ``<box>x1 y1 x2 y2</box>`` and ``<bbox>..</bbox>``, or numbers that are all the text.

    Numbers after a tag that the text leaves open are no row, but tell that it is cut.
    """
    text = narrow(text)
    tagged = [match.groups() for match in _TAGGED.finditer(text)]
    rows = [_row(_numbers_in(body), convention) for body, closed in tagged if closed]
    is_cut = any(not closed for _, closed in tagged)
    return Reading(rows or _only_row(text, convention), _CUT if is_cut else frozenset())


def braced_numbers(text: str, convention: BoxConvention) -> Reading:
    """Read ``{<x1><y1><x2><y2>}``, with an angle as ``{<..><..><..><..>|<angle>}``."""
    return Reading([_row(_numbers_in(m.group()), convention) for m in _BRACED.finditer(text)])


def joined_numbers(text: str, convention: BoxConvention) -> Reading:
    """Read ``x1_y1_x2_y2`` and ``x1,y1,x2,y2`` where these are all the text but for brackets."""
    return Reading(_only_row(narrow(text).strip(" \t\r\n()[]{}<>"), convention))


def location_tokens(text: str, convention: BoxConvention) -> Reading:
    """Read runs of ``<loc0123>``, ``<loc_123>`` or ``<bin_123>``, four to a box; a rest is none."""
    return Reading(_token_rows(_LOCATION_RUN, text, 4, convention))


def patch_tokens(text: str, convention: BoxConvention) -> Reading:
    """Read pairs of ``<patch_index_0123>``: the cells of the two corners."""
    return Reading(_token_rows(_PATCH_RUN, text, 2, convention))


def bin_tokens(text: str, convention: BoxConvention) -> Reading:
    """Read ``<bin_x_y> <bin_x_y>``: the two corners that come before the vertices of a polygon."""
    match = _BIN_PAIR.search(text)
    return Reading([_row(_numbers_in(match.group()), convention)] if match else [])


def points(text: str, convention: BoxConvention) -> Reading:
    """Read ``<point x=".." y="..">`` and its relatives: given, but never a box."""
    return Reading([Row(fault="point") for _ in _POINT.finditer(text)])


Syntax = Callable[[str, BoxConvention], Reading]

SYNTAXES: dict[str, Syntax] = {
    syntax.__name__: syntax
    for syntax in (
        json_boxes,
        bracket_lists,
        point_pairs,
        tagged_numbers,
        braced_numbers,
        joined_numbers,
        location_tokens,
        patch_tokens,
        bin_tokens,
        points,
    )
}

_N = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_BRACKETS = re.compile(r"\[([^\[\]]*)(?:(\])|\Z)")
_PARENTHESES = re.compile(rf"\(\s*{_N}\s*,\s*{_N}\s*\)")
_TAGGED = re.compile(r"<b?box>([0-9\s.,+-]*)(?:(</?b?box>)|(?:</?[a-z]*)?\Z)")
_BRACED = re.compile(r"\{\s*(?:<[0-9.+-]*>\s*)+(?:\|\s*<[0-9.+-]*>\s*)?\}")
_BETWEEN_NUMBERS = re.compile(r"\s*[,_]\s*|\s+")
_LOCATION_RUN = re.compile(r"(?:<(?:loc_?|bin_)[0-9]{1,4}>\s*)+")
_PATCH_RUN = re.compile(r"(?:<patch_index_[0-9]{4}>\s*)+")
_BIN_PAIR = re.compile(r"<bin_[0-9]{1,4}_[0-9]{1,4}>(?:\s*<bin_[0-9]{1,4}_[0-9]{1,4}>)?")
_POINT = re.compile(r"<points?\s[^<>]*?(?:\bx1?\s*=|\bp\s*=|\bcoords\s*=)|<point>[0-9\s.,-]*<")
_DIGITS = re.compile(_N)

_CUT = frozenset({"truncated"})
_POINT_KEYS = ("point", "points", "point_2d", "points_1", "points_2")


def _plain_number(token: str) -> float | None:
    token = token.strip("\"'%")
    return float(token) if _DIGITS.fullmatch(token) else tolerant_json.not_finite(token)


def _numbers_in(text: str) -> list[float | None]:
    return [float(digits) for digits in _DIGITS.findall(text)]


def _only_row(text: str, convention: BoxConvention) -> list[Row]:
    """Return the row of a text that is nothing but numbers, which nothing closes."""
    tokens = _BETWEEN_NUMBERS.split(text.strip())
    if not all(map(_DIGITS.fullmatch, tokens)):
        return []
    row = _row([float(token) for token in tokens], convention)
    return [row._replace(is_open=len(tokens) < min(convention.order.counts))]


def _row(numbers: list[float | None], convention: BoxConvention) -> Row:
    if len(numbers) not in convention.order.counts:
        return Row(fault="wrong_count")
    if any(n is None or not math.isfinite(n) for n in numbers):
        return Row(fault="not_finite")
    return Row(tuple(float(n) for n in numbers if n is not None))


def _token_rows(
    run_of_tokens: re.Pattern[str], text: str, size: int, convention: BoxConvention
) -> list[Row]:
    rows = []
    for run in run_of_tokens.finditer(text):
        numbers = _numbers_in(run.group())
        rows += [_row(numbers[i : i + size], convention) for i in range(0, len(numbers), size)]
    return rows


def _json_rows(data: Any, convention: BoxConvention, keyed: bool) -> Iterator[Row]:
    """Yield the rows of JSON data, depth first; ``keyed`` data stands under a key for boxes."""
    pending = [(data, keyed)]
    while pending:
        value, keyed = pending.pop()
        if isinstance(value, Pairs):
            named = {key: item for key, item in value if item is not CUT}
            fields = next((f for f in convention.corner_keys if named.keys() >= set(f)), None)
            if fields:
                yield from json_row([named[field] for field in fields], convention)
            else:
                items = [(item, key in convention.keys) for key, item in value]
                pending += reversed(items)
        elif isinstance(value, list) and any(isinstance(item, list) for item in value):
            pending += [(item, keyed) for item in reversed(value)]
        elif keyed:
            yield from json_row(value, convention)


def json_row(value: Any, convention: BoxConvention) -> Iterator[Row]:
    """Yield the row that a value without nested lists is; null, words and no numbers are none."""
    if value is BROKEN or (isinstance(value, list) and BROKEN in value):
        yield Row(fault="broken")
    elif isinstance(value, list):
        numbers = [json_number(item) for item in value]
        if None not in numbers and numbers:
            yield _row(numbers, convention)
        elif any(number is not None for number in numbers):
            yield Row(fault="not_numbers")
    elif value is not None and not isinstance(value, Word):
        yield Row(fault="not_numbers")


def json_number(item: Any) -> float | None:
    """Return the number that a JSON value is, also in quotes, or None if it is none."""
    if isinstance(item, str):
        item = tolerant_json.number(item.strip())
    return float(item) if isinstance(item, (int, float)) and not isinstance(item, bool) else None


def objects_in(data: Any) -> list[Pairs]:
    """Return all objects in JSON data, at any depth, in no particular order."""
    objects: list[Pairs] = []
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, Pairs):
            objects.append(value)
            pending += [item for _, item in value]
        elif isinstance(value, list):
            pending += value
    return objects


def _gives_point(data: Any) -> bool:
    return any(key in _POINT_KEYS and item for pairs in objects_in(data) for key, item in pairs)
