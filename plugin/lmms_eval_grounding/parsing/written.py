"""Replies as a model of a profile would write them: the inverse of parsing."""

from __future__ import annotations

import math
import re

from ..geometry.boxes import Box
from .profile import BoxConvention, Profile


def write_box(box: Box, profile: Profile, width: int, height: int, label: str = "") -> str:
    """Return a reply that gives one box as a model of the profile would.

    ``box`` is in pixels of an image of ``width`` x ``height``. The numbers are rounded to the
    decimals that the profile writes. Where rounding would leave no extent along an axis, the box is
    widened to the nearest steps around it, since a box without area is no box.
    """
    convention = profile.box
    x_axis, y_axis = convention.space.axes(width, height)
    corners = (
        x_axis.number(box[0]),
        y_axis.number(box[1]),
        x_axis.number(box[2]),
        y_axis.number(box[3]),
    )
    numbers = convention.order.numbers(corners)
    if not convention.order.is_cells:
        limits = (x_axis.extent, y_axis.extent)
        numbers = _rounded(corners, convention, limits)
    if not convention.decimals:
        numbers = tuple(int(n) for n in numbers)
    return convention.write.format(*numbers, label=_plain(label))


def _rounded(
    corners: Box, convention: BoxConvention, limits: tuple[float, float]
) -> tuple[float, ...]:
    def to_step(number: float) -> float:
        return round(number, convention.decimals)

    order, step = convention.order, 10.0**-convention.decimals
    # The first bin's centre stands for the edge before it, the last one's for the edge after it.
    top = [limit - 2 * convention.space.offset for limit in limits]
    corners = tuple(min(max(n, 0.0), top[i % 2]) for i, n in enumerate(corners))  # type: ignore[assignment]
    numbers = tuple(map(to_step, order.numbers(corners)))
    x1, y1, x2, y2 = order.corners(numbers)
    if x1 < x2 and y1 < y2:
        return numbers
    widened = list(corners)
    for low, high in ((0, 2), (1, 3)):
        if (x1, y1)[low] >= (x2, y2)[low]:
            start = min(math.floor(corners[low] / step) * step, top[low] - step)
            widened[low], widened[high] = start, start + step
    return tuple(map(to_step, order.numbers(tuple(widened))))  # type: ignore[arg-type]


def _plain(label: str) -> str:
    """Return a label without the characters that syntaxes are made of."""
    return " ".join(re.sub(r"[^\w\s,.'-]", " ", label).split())
