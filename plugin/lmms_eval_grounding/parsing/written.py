"""Replies as a model of a profile would write them: the inverse of parsing."""

from __future__ import annotations

import math
import re

from ..geometry.boxes import Box
from .convention import BoxConvention
from .orders import Corners
from .profile import Profile


def write_box(box: Box, profile: Profile, width: int, height: int, label: str = "") -> str:
    """Return a reply that gives one box as a model of the profile would.

    ``box`` is in pixels of an image of ``width`` x ``height``. The numbers are rounded to the
    decimals that the profile writes, so that each errs by at most half a step. Where that would
    leave no extent along an axis, the box is widened to one step: without area it is no box.
    """
    convention = profile.box_convention()
    x_axis, y_axis = convention.space.axes(width, height)
    # The first bin's centre stands for the edge before it, the last one's for the edge after it.
    x_limit, y_limit = (axis.extent - 2 * axis.offset for axis in (x_axis, y_axis))
    x1, x2 = (min(max(x_axis.number(x), 0.0), x_limit) for x in box[::2])
    y1, y2 = (min(max(y_axis.number(y), 0.0), y_limit) for y in box[1::2])
    corners = (x1, y1, x2, y2)
    if convention.order.is_cells:
        numbers = convention.order.numbers(corners)
    else:
        numbers = _rounded(corners, convention, (x_limit, y_limit))
    if not convention.decimals:
        numbers = tuple(int(n) for n in numbers)
    return convention.write.format(*numbers, label=_plain(label))


def _rounded(
    corners: Corners, convention: BoxConvention, limits: tuple[float, float]
) -> tuple[float, ...]:
    order, step = convention.order, 10.0**-convention.decimals

    def to_step(numbers: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(round(number, convention.decimals) for number in numbers)

    numbers = to_step(order.numbers(corners))
    if order.has_size:
        return (*numbers[:2], max(numbers[2], step), max(numbers[3], step), *numbers[4:])
    wide = list(corners)
    for low, high in ((0, 2), (1, 3)):
        if round(corners[low], convention.decimals) >= round(corners[high], convention.decimals):
            # The steps below and above the centre are the pair with the smallest error.
            below = math.floor((corners[low] + corners[high]) / 2 / step) * step
            wide[low] = min(below, limits[low] - step)
            wide[high] = wide[low] + step
    return to_step(order.numbers((wide[0], wide[1], wide[2], wide[3])))


def _plain(label: str) -> str:
    """Return a label without the characters that syntaxes are made of."""
    return " ".join(re.sub(r"[^\w\s,.'-]", " ", label).split())
