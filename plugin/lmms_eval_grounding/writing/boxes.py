"""Replies with 2D boxes, as a model of a profile would write them."""

from __future__ import annotations

import math
import re

from ..geometry.boxes import Box
from ..parsing.convention import BoxConvention
from ..parsing.orders import Corners
from ..parsing.profile import Profile
from .orders import numbers_in


def write_box(box: Box, profile: Profile, width: int, height: int, label: str = "") -> str:
    """Return a reply that gives one box as a model of the profile would.

    ``box`` is in pixels of an image of ``width`` x ``height``. The numbers are rounded to the
    decimals that the profile writes, so that each errs by at most half a step. Where that would
    leave no extent along an axis, the box is widened to one step: without area it is no box.
    """
    convention = profile.box_convention()
    numbers = box_numbers(box, convention, width, height)
    return convention.write.format(*numbers, label=plain(label))


def box_numbers(
    box: Box, convention: BoxConvention, width: int, height: int
) -> tuple[float, ...] | tuple[int, ...]:
    """Return the numbers that give a box in pixels; see `write_box`."""
    x_axis, y_axis = convention.space.axes(width, height)
    # The first bin's centre stands for the edge before it, the last one's for the edge after it.
    x_limit, y_limit = (axis.extent - 2 * axis.offset for axis in (x_axis, y_axis))
    x1, x2 = (min(max(x_axis.number(x), 0.0), x_limit) for x in box[::2])
    y1, y2 = (min(max(y_axis.number(y), 0.0), y_limit) for y in box[1::2])
    corners = (x1, y1, x2, y2)
    if convention.order.is_cells:
        numbers = numbers_in(convention.order, corners)
    else:
        numbers = _rounded(corners, convention, (x_limit, y_limit))
    return numbers if convention.decimals else tuple(int(n) for n in numbers)


def widened(low: float, high: float, decimals: int, limit: float) -> tuple[float, float]:
    """Return an interval, or one of a single step where both ends would be rounded to one number.

    The steps below and above its centre are the pair with the smallest error.
    """
    if round(low, decimals) < round(high, decimals):
        return low, high
    step = 10.0**-decimals
    below = min(math.floor((low + high) / 2 / step) * step, limit - step)
    return below, below + step


def plain(label: str) -> str:
    """Return a label without the characters that syntaxes are made of."""
    return " ".join(re.sub(r"[^\w\s,.'-]", " ", label).split())


def _rounded(
    corners: Corners, convention: BoxConvention, limits: tuple[float, float]
) -> tuple[float, ...]:
    order, decimals = convention.order, convention.decimals

    def to_step(numbers: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(round(number, decimals) for number in numbers)

    numbers = to_step(numbers_in(order, corners))
    if order.has_size:
        step = 10.0**-decimals
        return (*numbers[:2], max(numbers[2], step), max(numbers[3], step), *numbers[4:])
    x1, x2 = widened(corners[0], corners[2], decimals, limits[0])
    y1, y2 = widened(corners[1], corners[3], decimals, limits[1])
    return to_step(numbers_in(order, (x1, y1, x2, y2)))
