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
from .profile import BoxConvention
from .tolerant_json import BROKEN, Pairs, Word


class Row(NamedTuple):
    """The numbers of one box as written, or the fault that keeps them from being one."""

    numbers: tuple[float, ...] = ()
    fault: str | None = None


class Reading(NamedTuple):
    """What a syntax found: rows, flags, and whether it says explicitly that nothing is there."""

    rows: list[Row]
    flags: frozenset[str] = frozenset()
    says_none: bool = False


def json_boxes(text: str, convention: BoxConvention) -> Reading:
    """Read boxes from JSON: the values of the profile's keys, wherever they are nested.

    If the whole text is one list, unkeyed rows of numbers count too where the profile is ``bare``.
    An empty list, ``null``, or objects that hold nothing else say that nothing is there, provided
    that they are all the text.
    """
    found = list(tolerant_json.values(text))
    flags = {"repaired" for value in found if value.repaired}
    flags |= {"truncated" for value in found if value.truncated}
    rows = [row for value in found for row in _keyed_rows(value.data, convention)]
    whole = found[0].data if len(found) == 1 and _is_all(text, found[0]) else _NOT_JSON
    if not rows and convention.bare and isinstance(whole, list):
        rows = list(_rows_of(whole, convention))
    if not rows and any(_has_point(value.data) for value in found):
        rows = [Row(fault="point")]
    says_none = not rows and "truncated" not in flags and _is_nothing(whole, convention)
    return Reading(rows, frozenset(flags), says_none)


def bracket_lists(text: str, convention: BoxConvention) -> Reading:
    """Read ``[x1,y1,x2,y2]``, also nested, with ``;`` between boxes, and with leading zeros."""
    rows = []
    for match in _BRACKETS.finditer(_narrow(text)):
        for group in match.group(1).split(";"):
            tokens = group.replace(",", " ").split()
            numbers = [_plain_number(token) for token in tokens]
            if len(numbers) > 1 and None not in numbers:
                rows.append(_row(numbers, convention))
    return Reading(rows)


def point_pairs(text: str, convention: BoxConvention) -> Reading:
    """Read ``(x1,y1),(x2,y2)``; one point, or a chain of more than two, is no box."""
    chains = _POINT_CHAIN.finditer(_narrow(text))
    return Reading([_row(_numbers_in(chain.group()), convention) for chain in chains])


def tagged_numbers(text: str, convention: BoxConvention) -> Reading:
    """Read ``<box>x1 y1 x2 y2</box>`` and ``<bbox>..</bbox>``, or numbers that are all the text."""
    bodies = [match.group(1) for match in _TAGGED.finditer(text)]
    return Reading([_row(_numbers_in(body), convention) for body in bodies or _only_numbers(text)])


def braced_numbers(text: str, convention: BoxConvention) -> Reading:
    """Read ``{<x1><y1><x2><y2>}``, with an angle as ``{<..><..><..><..>|<angle>}``."""
    return Reading([_row(_numbers_in(m.group()), convention) for m in _BRACED.finditer(text)])


def joined_numbers(text: str, convention: BoxConvention) -> Reading:
    """Read ``x1_y1_x2_y2`` and ``x1,y1,x2,y2`` where these are all the text."""
    return Reading([_row(_numbers_in(body), convention) for body in _only_numbers(text)])


def location_tokens(text: str, convention: BoxConvention) -> Reading:
    """Read runs of ``<loc0123>`` or ``<loc_123>``, four to a box; a rest of fewer is no box."""
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

_N = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_POINT_CHAIN = re.compile(rf"\(\s*{_N}\s*,\s*{_N}\s*\)(?:\s*,\s*\(\s*{_N}\s*,\s*{_N}\s*\))*")
_TAGGED = re.compile(r"<b?box>([\d\s.,+-]*)</?b?box>")
_BRACED = re.compile(r"\{\s*(?:<[\d.+-]*>\s*)+(?:\|\s*<[\d.+-]*>\s*)?\}")
_ONLY_NUMBERS = re.compile(rf"{_N}(?:\s*[,_]\s*{_N}|\s+{_N})*")
_LOCATION_RUN = re.compile(r"(?:<loc_?\d{1,4}>)+")
_PATCH_RUN = re.compile(r"(?:<patch_index_\d{4}>)+")
_BIN_PAIR = re.compile(rf"<bin_{_N}_{_N}>\s*<bin_{_N}_{_N}>")
_POINT = re.compile(r"<points?\s[^<>]*?(?:\bx1?\s*=|\bp\s*=|\bcoords\s*=)|<point>[\d\s.,-]*<")
_DIGITS = re.compile(_N)

# Full-width punctuation and digits, one character for one.
_NARROW = str.maketrans("［］（）｛｝，；：．－０１２３４５６７８９", "[](){},;:.-0123456789")
_NAMED_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "infinity": math.inf}
_POINT_KEYS = ("point_2d", "point", "points")
_NOT_JSON = object()


def _narrow(text: str) -> str:
    return text.translate(_NARROW)


def _plain_number(token: str) -> float | None:
    token = token.strip("\"'%")
    if _DIGITS.fullmatch(token):
        return float(token)
    return _NAMED_NUMBERS.get(token.lower())


def _numbers_in(text: str) -> list[float | None]:
    return [float(digits) for digits in _DIGITS.findall(text)]


def _only_numbers(text: str) -> list[str]:
    return [text] if _ONLY_NUMBERS.fullmatch(text.strip()) else []


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
        numbers = _numbers_in(run.group().replace("_", " "))
        rows += [_row(numbers[i : i + size], convention) for i in range(0, len(numbers), size)]
    return rows


def _is_all(text: str, value: tolerant_json.Value) -> bool:
    return not text[: value.start].strip() and not text[value.end :].strip()


def _keyed_rows(data: Any, convention: BoxConvention) -> Iterator[Row]:
    """Yield the rows under the profile's keys, depth first."""
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, Pairs):
            named = dict(value)
            corners = [keys for keys in convention.corner_keys if named.keys() >= set(keys)]
            if corners:
                yield from _rows_of([named[key] for key in corners[0]], convention)
                continue
            nested = []
            for key, item in value:
                if key in convention.keys and not isinstance(item, Pairs):
                    yield from _rows_of(item, convention)
                else:
                    nested.append(item)
            pending += reversed(nested)
        elif isinstance(value, list):
            pending += reversed(value)


def _rows_of(value: Any, convention: BoxConvention) -> Iterator[Row]:
    """Yield the rows of a key's value: a row of numbers, or a list of rows at any depth.

    An empty value, or a placeholder in words, gives none.
    """
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, Pairs) or value is None:
            continue
        if isinstance(value, list):
            if any(isinstance(item, list) for item in value):
                pending += reversed(value)
            elif any(_json_number(item) is not None or item is BROKEN for item in value):
                yield _json_row(value, convention)
        elif not isinstance(value, Word):
            yield Row(fault="broken" if value is BROKEN else "not_numbers")


def _json_row(items: list[Any], convention: BoxConvention) -> Row:
    if BROKEN in items:
        return Row(fault="broken")
    numbers = [_json_number(item) for item in items]
    if None in numbers:
        return Row(fault="not_numbers")
    return _row(numbers, convention)


def _json_number(item: Any) -> float | None:
    if isinstance(item, str):
        item = tolerant_json.number(item.strip())
    return None if item is None or isinstance(item, (bool, list)) or item is BROKEN else float(item)


def _has_point(data: Any) -> bool:
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, Pairs):
            if any(key in _POINT_KEYS and item for key, item in value):
                return True
            pending += [item for _, item in value]
        elif isinstance(value, list):
            pending += value
    return False


def _is_nothing(data: Any, convention: BoxConvention) -> bool:
    """Return whether JSON says that nothing is there: empty, null, or only such values."""
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, Pairs):
            given = [item for key, item in value if key in convention.keys]
            given = given or [item for _, item in value]
            if not given:
                return False
            pending += given
        elif isinstance(value, list):
            pending += value
        elif value is not None:
            return False
    return True
