"""Masks as polygons: in JSON (rules: spec/parsers/masks/json_polygons.json), and in the image."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from ..geometry import polygons
from .convention import MaskConvention
from .mask_parts import MaskReading, Part, is_given, json_reading
from .syntaxes import Row, json_number, objects_in
from .tolerant_json import BROKEN, Pairs, Unclosed, Value

THINNEST = 1e-9  # a polygon that is thinner, as a share of its length, is a line


def json_polygons(text: str, convention: MaskConvention, width: int, height: int) -> MaskReading:
    """Read polygons: the values of the profile's keys, wherever they are nested.

    If the whole text is one list without objects, it is read like such a value where the profile is
    ``bare``.
    """

    def parts(value: Value) -> Iterator[Part]:
        is_list = isinstance(value.data, list) and not objects_in(value.data)
        keyed = convention.bare and is_list and value.is_all_of(text)
        for given in _keyed_values(value.data, convention.keys, keyed):
            for row in polygon_rows(given, value.flag == "truncated"):
                yield place_polygon(row, convention, width, height)

    return json_reading(text, parts)


def _keyed_values(data: Any, keys: tuple[str, ...], keyed: bool) -> Iterator[Any]:
    """Yield what stands under the keys of a profile, depth first: lists, and what is given else."""
    pending = [(data, keyed)]
    while pending:
        value, keyed = pending.pop()
        if isinstance(value, Pairs):
            pending += reversed([(item, key in keys) for key, item in value])
        elif isinstance(value, list) and (not keyed or _holds_object(value)):
            pending += [(item, keyed) for item in reversed(value)]
        elif keyed and is_given(value):
            yield value


def _holds_object(value: list[Any]) -> bool:
    return any(isinstance(item, Pairs) for item in value)


def polygon_rows(value: Any, is_cut: bool) -> Iterator[Row]:
    """Yield the polygons that a value is: one of numbers or of pairs, or a list of such.

    ``is_cut`` tells that the text ends inside the value.
    """
    is_many = (
        isinstance(value, list)
        and any(isinstance(item, list) for item in value)
        and not all(map(_is_vertex, value))
    )
    for polygon in value if is_many else [value]:
        row = _polygon(polygon, is_cut)
        if row:
            yield row


def _polygon(polygon: Any, is_cut: bool) -> Row | None:
    """Return the row that a value is; None for null and for an echoed placeholder.

    A polygon of pairs without its closing bracket has lost vertices: it is none where the text is
    cut, and broken elsewhere.
    """
    if not isinstance(polygon, list):
        fault = "broken" if polygon is BROKEN else "not_numbers"
        return Row(fault=fault) if is_given(polygon) else None
    numbers: list[Any] = polygon
    if polygon and all(map(_is_vertex, polygon)):
        if isinstance(polygon, Unclosed):
            return None if is_cut else Row(fault="broken")
        numbers = [number for vertex in polygon for number in vertex]
    if BROKEN in numbers:
        return Row(fault="broken")
    found = [json_number(number) for number in numbers]
    known = [number for number in found if number is not None]
    if known and len(known) == len(found):
        return polygon_row(known)
    is_placeholder = not known and not any(isinstance(number, list) for number in numbers)
    return None if is_placeholder else Row(fault="not_numbers")


def _is_vertex(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and not any(isinstance(item, list) for item in value)
    )


def polygon_row(numbers: list[float]) -> Row:
    """Return the numbers of a polygon, at least six and an even count, all finite, or the fault."""
    if len(numbers) < 6 or len(numbers) % 2:
        return Row(fault="wrong_count")
    if not all(map(math.isfinite, numbers)):
        return Row(fault="not_finite")
    return Row(tuple(numbers))


def place_polygon(row: Row, convention: MaskConvention, width: int, height: int) -> Part:
    """Return the polygon in pixels that a row means: order, space, area."""
    space = convention.space
    if row.fault:
        return Part(fault=row.fault)
    assert space is not None  # the profile of a syntax with polygons declares one
    xs, ys = row.numbers[::2], row.numbers[1::2]
    if convention.order == "yx":
        xs, ys = ys, xs
    x_axis, y_axis = space.axes(width, height)
    for numbers, axis in ((xs, x_axis), (ys, y_axis)):
        if not (space.contains(min(numbers), axis) and space.contains(max(numbers), axis)):
            return Part(fault="out_of_space")
    x, y = [x_axis.pixel(n) for n in xs], [y_axis.pixel(n) for n in ys]
    is_inside = min(x) >= 0 and max(x) <= width and min(y) >= 0 and max(y) <= height
    vertices = list(zip(x, y, strict=True))
    if _is_line(vertices) or not (is_inside or _reaches_into(vertices, width, height)):
        return Part(fault="zero_area")
    flags = [] if is_inside else ["clipped"]
    if min(x_axis.extent, y_axis.extent) >= 100 and max(map(abs, row.numbers)) <= 1:
        flags.append("scale_mismatch")
    return Part(polygon=tuple(chain.from_iterable(vertices)), flags=tuple(flags))


def _is_line(vertices: list[tuple[float, float]]) -> bool:
    """Return whether all vertices lie on one line, or in one point."""
    (x0, y0), (x1, y1) = min(vertices), max(vertices)  # the ends of the line, if they do
    far_x, far_y = x1 - x0, y1 - y0
    most = THINNEST * (far_x * far_x + far_y * far_y)
    return all(abs((x - x0) * far_y - (y - y0) * far_x) <= most for x, y in vertices)


def _reaches_into(vertices: list[tuple[float, float]], width: int, height: int) -> bool:
    """Return whether a polygon has some area inside the image."""
    inside = polygons.clip(np.array(vertices), height, width)
    return bool(inside.size and np.ptp(inside, axis=0).all())
