"""Orders, the other way round: the numbers that a model writes for given corners."""

from __future__ import annotations

from collections.abc import Callable

from ..parsing.orders import GRID, Corners, Order, corners_of_cells

Numbers = tuple[float, ...]


def numbers_in(order: Order, corners: Corners) -> Numbers:
    """Return the numbers of a box in an order; corners and numbers are in the space's numbers."""
    return _NUMBERS[order.name](corners)


def _from_corner(b: Corners) -> Numbers:
    return b[0], b[1], b[2] - b[0], b[3] - b[1]


def _from_centre(b: Corners) -> Numbers:
    return (b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]


def _cells_of_corners(box: Corners) -> Numbers:
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

    def named(columns: tuple[int, int], rows: tuple[int, int]) -> Numbers:
        return tuple(float(row * GRID + column) for column, row in zip(columns, rows, strict=True))

    def error(cells: Numbers) -> list[float]:
        errors = (abs(a - b) for a, b in zip(corners_of_cells(cells), box, strict=True))
        return sorted(errors, reverse=True)  # of equal worst errors, the next one decides

    x, y = (box[0], box[2]), (box[1], box[3])
    readings = ((by_centres, by_centres), (by_edges, by_one), (by_one, by_edges))
    return min((named(columns(*x), rows(*y)) for columns, rows in readings), key=error)


_NUMBERS: dict[str, Callable[[Corners], Numbers]] = {
    "xyxy": lambda b: b,
    "yxyx": lambda b: (b[1], b[0], b[3], b[2]),
    "xywh": _from_corner,
    "cxcywh": _from_centre,
    "xyxya": lambda b: (*b, 0.0),
    "cxcywha": lambda b: (*_from_centre(b), 0.0),
    "cells": _cells_of_corners,
}
