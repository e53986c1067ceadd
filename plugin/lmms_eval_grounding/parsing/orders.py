"""Orders: which number of a box is which.

Each order turns the numbers a model wrote into corners and back. Corners stay in the space's
numbers; an angle, where the order has one, turns the box about its centre afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Corners = tuple[float, float, float, float]

GRID = 32  # Kosmos-2 numbers the cells of a 32 x 32 grid row by row


class Order(NamedTuple):
    """How many numbers a box has, and the maps to and from its corners.

    ``has_size`` says that two of the numbers are sizes, which must be positive; ``is_cells`` that
    the numbers name cells of a grid.
    """

    counts: tuple[int, ...]
    corners: Callable[[tuple[float, ...]], Corners]
    numbers: Callable[[Corners], tuple[float, ...]]
    has_size: bool = False
    is_cells: bool = False


def _corners_of_cells(cells: tuple[float, ...]) -> Corners:
    """Return the centres of two cells; of cells in one row or column, their outer corners.

    Source: microsoft/unilm, kosmos-2/demo/decode_string.py.
    """
    (top, left), (bottom, right) = (divmod(int(cell), GRID) for cell in cells)
    if left == right or top == bottom:
        return left, top, right + 1, bottom + 1
    return left + 0.5, top + 0.5, right + 0.5, bottom + 0.5


def _cells_of_corners(box: Corners) -> tuple[float, ...]:
    """Return the two cells whose corners are nearest to a box."""

    def cell(number: float) -> int:
        return min(max(round(number), 0), GRID - 1)

    def by_centres(low: float, high: float) -> tuple[int, int]:
        return cell(low - 0.5), cell(high - 0.5)

    def by_edges(low: float, high: float) -> tuple[int, int]:
        first = cell(low)
        return first, max(cell(high - 1), first)

    def by_one(low: float, high: float) -> tuple[int, int]:
        return (cell((low + high) / 2 - 0.5),) * 2

    def named(columns: tuple[int, int], rows: tuple[int, int]) -> tuple[float, ...]:
        return tuple(float(row * GRID + column) for column, row in zip(columns, rows, strict=True))

    def error(cells: tuple[float, ...]) -> list[float]:
        errors = (abs(a - b) for a, b in zip(_corners_of_cells(cells), box, strict=True))
        return sorted(errors, reverse=True)  # of equal worst errors, the next one decides

    x, y = (box[0], box[2]), (box[1], box[3])
    readings = ((by_centres, by_centres), (by_edges, by_one), (by_one, by_edges))
    return min((named(columns(*x), rows(*y)) for columns, rows in readings), key=error)


def _xyxy(n: tuple[float, ...]) -> Corners:
    return n[0], n[1], n[2], n[3]


def _from_corner(n: tuple[float, ...]) -> Corners:
    return n[0], n[1], n[0] + n[2], n[1] + n[3]


def _to_corner(b: Corners) -> tuple[float, ...]:
    return b[0], b[1], b[2] - b[0], b[3] - b[1]


def _from_centre(n: tuple[float, ...]) -> Corners:
    return n[0] - n[2] / 2, n[1] - n[3] / 2, n[0] + n[2] / 2, n[1] + n[3] / 2


def _to_centre(b: Corners) -> tuple[float, ...]:
    return (b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]


ORDERS: dict[str, Order] = {
    "xyxy": Order((4,), _xyxy, _xyxy),
    "yxyx": Order((4,), lambda n: (n[1], n[0], n[3], n[2]), lambda b: (b[1], b[0], b[3], b[2])),
    "xywh": Order((4,), _from_corner, _to_corner, has_size=True),
    "cxcywh": Order((4,), _from_centre, _to_centre, has_size=True),
    "xyxya": Order((5, 4), _xyxy, lambda b: (*_xyxy(b), 0.0)),
    "cxcywha": Order((5, 4), _from_centre, lambda b: (*_to_centre(b), 0.0), has_size=True),
    "cells": Order((2,), _corners_of_cells, _cells_of_corners, is_cells=True),
}
