"""Masks as run-length encodings.

A mask is a COCO RLE, ``{"size": [height, width], "counts": "..."}``: plain JSON, counts compressed
and text, pixels numbered column by column. Every function here that takes one reads it strictly,
so no mask from a file or a reply is trusted: what is wrong raises ``MaskError``, whose message says
what was found and what is needed. Masks that are returned are canonical: equal masks have equal
counts. Counts of pixels are Python ints; nothing is ever resized to fit.

Image coordinates are in pixels, continuous, origin in the top left corner: pixel ``(row, column)``
covers ``[column, column + 1] x [row, row + 1]`` and belongs to a shape when its centre does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pycocotools import mask as coco_mask

from . import png, polygons
from .errors import MaskError, shown
from .rle import (
    MAX_PIXELS,
    MAX_SIDE,
    Rle,
    area,
    array_from_rle,
    bounding_box,
    checked_size,
    intersection_and_union,
    rle_from_array,
    rle_from_boundaries,
    rle_from_coco,
    rle_from_rows,
    rows_from_rle,
    union,
)
from .run_lengths import boundaries_from_intervals, is_whole

__all__ = [
    "MAX_BOUNDARY",
    "MAX_BOXES",
    "MAX_GRID",
    "MAX_PIXELS",
    "MAX_SIDE",
    "MaskError",
    "Rle",
    "area",
    "array_from_rle",
    "bounding_box",
    "holds_pixel",
    "intersection_and_union",
    "is_whole",
    "rle_from_array",
    "rle_from_boxes",
    "rle_from_coco",
    "rle_from_grid",
    "rle_from_png",
    "rle_from_polygons",
    "rle_from_probability_map",
    "rle_from_rows",
    "rows_from_rle",
    "union",
]

MAX_BOXES = 10_000
MAX_GRID = 256  # cells a side
# What the shapes of one mask may measure around in all, in pixels: rasterising takes time and
# memory in proportion. The rim of the largest square image measures 65,536.
MAX_BOUNDARY = 2**20


def rle_from_polygons(value: object, height: int, width: int) -> Rle:
    """Return the mask that one or several polygons fill, clipped to the image.

    Within a polygon the even-odd rule decides: what its outline goes around twice is a hole.
    Several polygons are united, so what two of them cover is filled. A pixel belongs to a polygon
    when its centre does, by COCO's rasteriser (pycocotools), which rounds outlines to a fifth of a
    pixel. A polygon that covers no pixel centre, because it is thin or outside the image, adds
    nothing.

    Parameters
    ----------
    value
        x and y in pixels, in any of the notations of ``polygons.polygons_from_lists``: flat
        ``[x1, y1, x2, y2, ...]``, a list of pairs, or a list of polygons of either kind.

    Raises
    ------
    MaskError
        For no polygon, fewer than 6 numbers, an odd count, a coordinate that is not finite or
        beyond ``polygons.MAX_COORDINATE``; for outlines longer than ``MAX_BOUNDARY`` in all.
    """
    checked_size((height, width))
    parts = [polygons.clip(part, height, width) for part in polygons.polygons_from_lists(value)]
    parts = [part for part in parts if len(part) >= 3]
    _check_boundary_length(sum(map(polygons.boundary_length, parts)))
    outlines = [part.ravel().tolist() for part in parts]
    filled = coco_mask.frPyObjects(outlines, height, width) if outlines else []
    return union(
        [{"size": part["size"], "counts": part["counts"].decode()} for part in filled],
        (height, width),
    )


def _check_boundary_length(pixels: float) -> None:
    if pixels > MAX_BOUNDARY:
        raise MaskError(
            f"outlines of {pixels:.0f} pixels in all; the limit for one mask is {MAX_BOUNDARY}"
        )


def rle_from_boxes(boxes: Sequence[object], height: int, width: int) -> Rle:
    """Return the mask of the pixels whose centre lies in a box; the boxes are united.

    Parameters
    ----------
    boxes
        Each ``[x1, y1, x2, y2]`` in pixels, far edges exclusive: a pixel is filled when
        ``x1 <= column + 1/2 < x2`` and ``y1 <= row + 1/2 < y2``. What lies outside the image is
        ignored. No box gives the empty mask.

    Raises
    ------
    MaskError
        For a box that is not four finite numbers with ``x1 <= x2`` and ``y1 <= y2``; for more
        than ``MAX_BOXES``; for boxes that measure more than ``MAX_BOUNDARY`` around in all.
    """
    checked_size((height, width))
    if not isinstance(boxes, list | tuple):
        raise MaskError(f"boxes are a list of [x1, y1, x2, y2], not {shown(boxes)}")
    if len(boxes) > MAX_BOXES:
        raise MaskError(f"{len(boxes)} boxes; the limit for one mask is {MAX_BOXES}")
    covered: list[tuple[int, int, int, int]] = []
    for box in boxes:
        x1, y1, x2, y2 = (math.ceil(each - 0.5) for each in _checked_box(box))
        left, right = max(x1, 0), min(x2, width)
        top, bottom = max(y1, 0), min(y2, height)
        if left < right and top < bottom:
            covered.append((left, top, right, bottom))
    _check_boundary_length(sum(2 * (x2 - x1 + y2 - y1) for x1, y1, x2, y2 in covered))
    return _rle_from_rectangles(covered, height, width)


def _checked_box(box: object) -> tuple[float, float, float, float]:
    """Return a box as four floats with its corners in order."""
    if not isinstance(box, list | tuple) or len(box) != 4:
        raise MaskError(f"a box is [x1, y1, x2, y2], not {shown(box)}")
    x1, y1, x2, y2 = map(polygons.checked_coordinate, box)
    if x1 > x2 or y1 > y2:
        raise MaskError(f"a box has x1 <= x2 and y1 <= y2, unlike {shown(box)}")
    return x1, y1, x2, y2


def _rle_from_rectangles(
    rectangles: Sequence[tuple[int, int, int, int]], height: int, width: int
) -> Rle:
    """Return the union of pixel rectangles ``(left, top, right, bottom)``, far ends exclusive."""
    left, top, right, bottom = np.array(rectangles, np.int64).reshape(len(rectangles), 4).T
    widths = right - left
    first_columns = np.repeat(left - np.add.accumulate(widths) + widths, widths)
    columns = (first_columns + np.arange(first_columns.size)) * height
    starts, stops = columns + np.repeat(top, widths), columns + np.repeat(bottom, widths)
    return rle_from_boundaries(boundaries_from_intervals(starts, stops), height, width)


def rle_from_grid(cells: Sequence[Sequence[int]], height: int, width: int) -> Rle:
    """Return the mask of a coarse grid of 0 and 1, as text descriptors give it.

    Nearest up-sampling without half a pixel's shift: pixel ``(row, column)`` takes the cell
    ``(row * m // height, column * n // width)`` of ``m`` rows and ``n`` columns, in integers. So
    does ``interpolate(mode="nearest")`` of mc-lan/Text4Seg@d6540b6:llava/eval/model_refer_seg.py,
    in floats. With sides that divide those of the image a cell is a rectangle of equal pixels.

    Parameters
    ----------
    cells
        Rows of 0 and 1, top row first, of equal length, at most ``MAX_GRID`` a side.

    Raises
    ------
    MaskError
        For no cells, rows of different lengths, entries other than 0 and 1.
    """
    checked_size((height, width))
    lists = isinstance(cells, list | tuple) and all(isinstance(row, list | tuple) for row in cells)
    if not lists or len({len(row) for row in cells}) != 1:
        raise MaskError(f"a grid is a list of rows of equal length, not {shown(cells)}")
    if max(len(cells), len(cells[0])) > MAX_GRID or not cells[0]:
        raise MaskError(
            f"a grid of {len(cells)} x {len(cells[0])} cells; it has 1 to {MAX_GRID} a side"
        )
    if any(type(cell) is not int or cell not in (0, 1) for row in cells for cell in row):
        raise MaskError(f"a grid holds 0 and 1 only, unlike {shown(cells)}")
    # The first pixel of cell i is the least p with p * m // height >= i.
    tops = [-(-row * height // len(cells)) for row in range(len(cells) + 1)]
    lefts = [-(-column * width // len(cells[0])) for column in range(len(cells[0]) + 1)]
    filled = [
        (lefts[j], tops[i], lefts[j + 1], tops[i + 1])
        for i, row in enumerate(cells)
        for j, cell in enumerate(row)
        if cell
    ]
    return _rle_from_rectangles(filled, height, width)


def rle_from_png(data: bytes, height: int, width: int) -> Rle:
    """Return the mask stored as a greyscale PNG of the image's size.

    Parameters
    ----------
    data
        A PNG of 1 bit, or of 8 bits that holds 0 and 1 or 0 and 255 only; 0 is background.

    Raises
    ------
    MaskError
        For bytes that are not such a PNG, or only the beginning of one; for another size, which
        is found out before anything is decoded.
    """
    size = checked_size((height, width))
    found = png.size_of_png(data)
    if found != size:
        raise MaskError(
            f"a PNG of {found[0]} x {found[1]} pixels (height x width) where "
            f"{height} x {width} are needed"
        )
    pixels = png.pixels_of_png(data)
    values = np.unique(pixels).tolist()
    if not (set(values) <= {0, 1} or set(values) <= {0, 255}):
        raise MaskError(f"a PNG mask holds 0 and 1, or 0 and 255; this one holds {shown(values)}")
    return rle_from_array(pixels)


def holds_pixel(box: Sequence[float], height: int, width: int) -> bool:
    """Return whether a pixel of an image lies between the edges of a box, rounded down.

    The box is ``[x1, y1, x2, y2]`` in pixels of the image; it may reach beyond it.
    """
    left, top, right, bottom = map(math.floor, box)
    return max(left, 0) < min(right, width) and max(top, 0) < min(bottom, height)


def rle_from_probability_map(
    data: bytes, box: Sequence[float], height: int, width: int, threshold: int = 127
) -> Rle:
    """Return the mask that a map of probabilities 0 to 255 for the inside of a box stands for.

    The box's edges are rounded down to whole pixels, the map is resized to the pixels between them
    by Pillow's bilinear filter, and a pixel is foreground when its value is **above**
    ``threshold``. So does google-gemini/cookbook@07c72f7:quickstarts/Spatial_understanding.ipynb;
    Gemini's documents name 127 as the midpoint too, but their example compares with 128. What the
    box has outside the image is cut off after resizing.

    Parameters
    ----------
    data
        A greyscale PNG of 1 or 8 bits and any size up to ``png.MAX_PIXELS``.
    box
        ``[x1, y1, x2, y2]`` in pixels of the image.

    Raises
    ------
    MaskError
        For bytes that are not such a PNG, or only the beginning of one; for a box that is not
        four finite numbers, has its corners swapped, holds no whole pixel of the image or more
        than ``png.MAX_PIXELS`` in all.
    """
    checked_size((height, width))
    left, top, right, bottom = map(math.floor, _checked_box(box))
    if not holds_pixel(box, height, width):
        raise MaskError(f"the box {shown(box)} holds no whole pixel of {height} x {width}")
    if (right - left) * (bottom - top) > png.MAX_PIXELS:
        raise MaskError(f"the box {shown(box)} holds more than {png.MAX_PIXELS} pixels")
    values = png.resized(png.pixels_of_png(data), bottom - top, right - left)
    inside = values[max(-top, 0) : height - top, max(-left, 0) : width - left] > threshold
    pixels = np.zeros((height, width), np.bool_)
    pixels[max(top, 0) : bottom, max(left, 0) : right] = inside
    return rle_from_array(pixels)
