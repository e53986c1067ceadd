"""Axis-aligned 2D boxes.

A box is ``(x1, y1, x2, y2)`` in pixels: left, top, right, bottom as continuous coordinates, origin
in the image's top left corner, so the area is ``(x2 - x1) * (y2 - y1)`` with no pixel added.
"""

from __future__ import annotations

import math

Box = tuple[float, float, float, float]


def area(box: Box) -> float:
    """Return the area of a box; 0 for a box with no width or no height, or with swapped corners."""
    return max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0)


def clip(box: Box, width: float, height: float) -> Box:
    """Return the part of a box inside the image ``[0, width] x [0, height]``.

    A box outside the image comes back with zero area.
    """
    x1, y1, x2, y2 = box
    return (
        min(max(x1, 0.0), width),
        min(max(y1, 0.0), height),
        min(max(x2, 0.0), width),
        min(max(y2, 0.0), height),
    )


def intersection_and_union(pred: Box, target: Box) -> tuple[float, float]:
    """Return the areas of intersection and union of two boxes, in square pixels.

    ``union = area(pred) + area(target) - intersection``; two boxes without area give ``(0, 0)``.
    """
    x1, y1 = max(pred[0], target[0]), max(pred[1], target[1])
    x2, y2 = min(pred[2], target[2]), min(pred[3], target[3])
    intersection = area((x1, y1, x2, y2))
    return intersection, area(pred) + area(target) - intersection


def bounds_of_rotated(box: Box, degrees: float) -> Box:
    """Return the smallest axis-aligned box around ``box`` turned about its centre by ``degrees``.

    The sense of rotation does not matter for the bounds; half turns return the box itself.
    """
    x1, y1, x2, y2 = box
    if degrees % 180 == 0:
        return box
    turn = math.radians(degrees)
    cos, sin = (0.0, 1.0) if degrees % 90 == 0 else (abs(math.cos(turn)), abs(math.sin(turn)))
    reach_x = ((x2 - x1) * cos + (y2 - y1) * sin) / 2
    reach_y = ((x2 - x1) * sin + (y2 - y1) * cos) / 2
    cx, cy = (x1 + x2) / 2, (y1 + y2) / 2
    return cx - reach_x, cy - reach_y, cx + reach_x, cy + reach_y
