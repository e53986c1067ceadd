"""Orders: which number of a box is which.

Each order turns the numbers a model wrote into corners. Corners stay in the space's numbers; an
angle, where the order has one, turns the box about its centre afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Corners = tuple[float, float, float, float]

GRID = 32  # Kosmos-2 numbers the cells of a 32 x 32 grid row by row


class Order(NamedTuple):
    """How many numbers a box has, and what corners they mean.

    ``has_size`` says that two of the numbers are sizes, which must be positive; ``is_cells`` that
    the numbers name cells of a grid.
    """

    name: str
    counts: tuple[int, ...]
    corners: Callable[[tuple[float, ...]], Corners]
    has_size: bool = False
    is_cells: bool = False


def corners_of_cells(cells: tuple[float, ...]) -> Corners:
    """Return the centres of two cells; of cells in one row or column, their outer corners.

    Source: microsoft/unilm, kosmos-2/demo/decode_string.py.
    """
    (top, left), (bottom, right) = (divmod(int(cell), GRID) for cell in cells)
    if left == right or top == bottom:
        return left, top, right + 1, bottom + 1
    return left + 0.5, top + 0.5, right + 0.5, bottom + 0.5


def _xyxy(n: tuple[float, ...]) -> Corners:
    return n[0], n[1], n[2], n[3]


def _from_corner(n: tuple[float, ...]) -> Corners:
    return n[0], n[1], n[0] + n[2], n[1] + n[3]


def _from_centre(n: tuple[float, ...]) -> Corners:
    return n[0] - n[2] / 2, n[1] - n[3] / 2, n[0] + n[2] / 2, n[1] + n[3] / 2


_ORDERS = (
    Order("xyxy", (4,), _xyxy),
    Order("yxyx", (4,), lambda n: (n[1], n[0], n[3], n[2])),
    Order("xywh", (4,), _from_corner, has_size=True),
    Order("cxcywh", (4,), _from_centre, has_size=True),
    Order("xyxya", (5, 4), _xyxy),
    Order("cxcywha", (5, 4), _from_centre, has_size=True),
    Order("cells", (2,), corners_of_cells, is_cells=True),
)
ORDERS = {order.name: order for order in _ORDERS}
