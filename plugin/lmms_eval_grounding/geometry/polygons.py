"""Polygons as they are written, checked and clipped, before anything rasterises them.

A polygon is a float64 array of shape ``(vertices, 2)``: x and y in pixels, continuous, origin in
the image's top left corner; its last vertex is joined to its first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .errors import MaskError, shown

Polygon = npt.NDArray[np.float64]

MAX_POLYGONS = 10_000
MAX_COORDINATE = 1_000_000  # pixels; far outside of any image, far inside of what floats compute


def polygons_from_lists(value: object) -> list[Polygon]:
    """Return the polygons that nested lists of numbers stand for.

    Four notations are told apart by their nesting alone, which never fits two of them, since a
    polygon needs three vertices and so never consists of two numbers:

    - ``[x1, y1, x2, y2, ...]``: one polygon;
    - ``[[x, y], [x, y], ...]``, pairs only: one polygon;
    - ``[[x1, y1, x2, y2, ...], ...]``: a list of polygons;
    - ``[[[x, y], ...], ...]``: a list of polygons.

    Raises
    ------
    MaskError
        For anything else: an empty list, fewer than 6 numbers, an odd count, notations mixed, an
        entry that is no finite number of at most ``MAX_COORDINATE``; for more than
        ``MAX_POLYGONS``.
    """
    if not isinstance(value, list | tuple) or not value:
        raise MaskError(f"a polygon is a list of 6 or more numbers, not {shown(value)}")
    if all(_is_pair(part) for part in value) or not isinstance(value[0], list | tuple):
        return [_polygon(value)]
    if len(value) > MAX_POLYGONS:
        raise MaskError(f"{len(value)} polygons; the limit for one mask is {MAX_POLYGONS}")
    return [_polygon(part) for part in value]


def _is_pair(value: object) -> bool:
    """Say whether a value is a vertex ``[x, y]``."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and not any(isinstance(number, list | tuple) for number in value)
    )


def _polygon(part: object) -> Polygon:
    """Return one polygon from a flat list of numbers or a list of pairs."""
    if not isinstance(part, list | tuple):
        raise MaskError(f"a polygon is a list of numbers or of [x, y] pairs, not {shown(part)}")
    numbers: Sequence[object] = part
    if part and isinstance(part[0], list | tuple):
        for pair in part:
            if not _is_pair(pair):
                raise MaskError(f"a polygon's vertex is a pair [x, y], not {shown(pair)}")
        numbers = [coordinate for pair in part for coordinate in pair]
    if len(numbers) < 6 or len(numbers) % 2:
        raise MaskError(
            f"a polygon has {len(numbers)} numbers; it needs an even count of 6 or more"
        )
    return np.array([checked_coordinate(each) for each in numbers]).reshape(-1, 2)


def checked_coordinate(number: object) -> float:
    """Return a coordinate in pixels as a float; MaskError unless finite and in bounds."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise MaskError(f"a coordinate is {shown(number)}; it needs to be a number")
    # Written so that NaN fails as well; an int is compared before a float overflows.
    if not -MAX_COORDINATE <= number <= MAX_COORDINATE:
        raise MaskError(
            f"a coordinate is {shown(number)}; it needs to be finite and within "
            f"{MAX_COORDINATE} pixels"
        )
    return float(number)


def clip(polygon: Polygon, height: int, width: int) -> Polygon:
    """Return the part of a polygon inside ``[0, width] x [0, height]``, up to rounding.

    Sutherland and Hodgman's method: one half plane after the other. A polygon that leaves the
    image and comes back may run along the rim twice, which encloses nothing. No vertex is left
    when the polygon lies outside. A polygon inside is returned as it is.
    """
    limits = (width, height)
    if (polygon >= 0).all() and (polygon <= limits).all():
        return polygon
    for axis, limit in enumerate(limits):
        polygon = _clip_below(polygon, axis, float(limit))
        polygon = -_clip_below(-polygon, axis, 0.0)
    return polygon


def _clip_below(polygon: Polygon, axis: int, limit: float) -> Polygon:
    """Return the part of a polygon where the coordinate ``axis`` is at most ``limit``."""
    following = np.roll(polygon, -1, axis=0)
    inside, inside_next = polygon[:, axis] <= limit, following[:, axis] <= limit
    crosses = inside != inside_next
    step = following - polygon
    share = (limit - polygon[crosses, axis]) / step[crosses, axis]
    corners = np.stack((polygon, following), axis=1)
    corners[crosses, 0] = polygon[crosses] + share[:, None] * step[crosses]
    corners[crosses, 0, axis] = limit
    kept: Polygon = corners[np.stack((crosses, inside_next), axis=1)]
    return kept


def boundary_length(polygon: Polygon) -> float:
    """Return the sum over the edges of the longer of their two extents, each at least a pixel.

    That is what rasterising a polygon costs.
    """
    extents = np.abs(polygon - np.roll(polygon, -1, axis=0)).max(axis=1)
    return float(np.maximum(extents, 1).sum())
