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
    """Return the centres of the two cells; along an axis where they agree, the whole cell."""
    (top, left), (bottom, right) = (divmod(int(cell), GRID) for cell in cells)

    def ends(first: int, last: int) -> tuple[float, float]:
        return (first, first + 1) if first == last else (first + 0.5, last + 0.5)

    (x1, x2), (y1, y2) = ends(left, right), ends(top, bottom)
    return x1, y1, x2, y2


def _cells_of_corners(box: Corners) -> tuple[float, ...]:
    """Return the two cells whose corners are nearest to a box, axis by axis."""

    def cells(low: float, high: float) -> tuple[int, int]:
        nearest = [min(max(round(end - 0.5), 0), GRID - 1) for end in (low, high)]
        inside = min(int((low + high) / 2), GRID - 1)
        whole_cell = max(abs(low - inside), abs(high - inside - 1))
        centres = max(abs(low - nearest[0] - 0.5), abs(high - nearest[1] - 0.5))
        if nearest[0] == nearest[1] or whole_cell < centres:
            return inside, inside
        return nearest[0], nearest[1]

    (left, right), (top, bottom) = cells(box[0], box[2]), cells(box[1], box[3])
    return float(top * GRID + left), float(bottom * GRID + right)


def _xyxy(n: tuple[float, ...]) -> Corners:
    return n[0], n[1], n[2], n[3]


def _from_centre(n: tuple[float, ...]) -> Corners:
    return n[0] - n[2] / 2, n[1] - n[3] / 2, n[0] + n[2] / 2, n[1] + n[3] / 2


def _to_centre(b: Corners) -> tuple[float, ...]:
    return (b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]


ORDERS: dict[str, Order] = {
    "xyxy": Order((4,), _xyxy, _xyxy),
    "yxyx": Order((4,), lambda n: (n[1], n[0], n[3], n[2]), lambda b: (b[1], b[0], b[3], b[2])),
    "xywh": Order(
        (4,),
        lambda n: (n[0], n[1], n[0] + n[2], n[1] + n[3]),
        lambda b: (b[0], b[1], b[2] - b[0], b[3] - b[1]),
        has_size=True,
    ),
    "cxcywh": Order((4,), _from_centre, _to_centre, has_size=True),
    "xyxya": Order((5, 4), _xyxy, lambda b: (*_xyxy(b), 0.0)),
    "cxcywha": Order((5, 4), _from_centre, lambda b: (*_to_centre(b), 0.0), has_size=True),
    "cells": Order((2,), _corners_of_cells, _cells_of_corners, is_cells=True),
}
