"""Replies with masks, as a model of a profile would write them."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..geometry.masks import Rle, array_from_rle, bounding_box, rle_from_coco
from ..parsing.convention import MaskConvention
from ..parsing.mask_tokens import BACKGROUND
from ..parsing.profile import Profile, ProfileError
from ..parsing.spaces import Axis
from .boxes import box_numbers, plain, widened, write_box
from .orders import numbers_in
from .outlines import outlines

Numbers = Sequence[float]
Point = tuple[float, float]
Cells = npt.NDArray[np.bool_]


def write_mask(rle: Rle | None, profile: Profile, width: int, height: int, label: str = "") -> str:
    """Return a reply that gives a mask as a model of the profile would.

    None, and a mask without pixels, give the profile's way to say that nothing is there. Run
    lengths and maps are exact. Vertices are rounded to the decimals that the profile writes, so
    that outlines move by at most half a step. Parts that are smaller than that are left out; where
    all are, each is written as a rectangle of one step. Cells of a grid are foreground where
    half of their pixels are, and one always is. A profile that has masks from boxes gets the
    bounding box. A mask of more than 10,000 parts is written, but a parser refuses its polygons.

    Raises
    ------
    ProfileError
        If the profile does not say how a mask is written, or it cannot be written as text.
    MaskError
        For an invalid mask, or one that has not the size of the image.
    """
    convention = profile.mask_convention()
    if rle is not None:
        rle = rle_from_coco(rle, (height, width))
    bounds = bounding_box(rle) if rle else None
    if rle is None or bounds is None:
        return convention.nothing
    if convention.from_box:
        return write_box(bounds, profile, width, height, label)
    if not convention.write:
        raise ProfileError(
            f"profile {profile.name!r}: only its own decoder makes masks of its replies, so that "
            "none can be written"
        )
    label = plain(label) or "target"
    shape = _Shape(rle, bounds, width, height, label)
    mask, box = _WRITERS[convention.syntaxes[0]](shape, convention)
    return convention.write.format(mask=mask, box=box, label=label)


class _Shape(NamedTuple):
    """A mask with pixels, its bounding box, the size of its image, and what it shows."""

    rle: Rle
    bounds: tuple[int, int, int, int]
    width: int
    height: int
    label: str


def _run_lengths(shape: _Shape, convention: MaskConvention) -> tuple[str, Numbers]:
    return json.dumps(shape.rle), _box(shape, convention)


def _polygon_lists(shape: _Shape, convention: MaskConvention) -> tuple[str, Numbers]:
    polygons = [
        [number for vertex in polygon for number in vertex]
        for polygon in _polygons(shape, convention)
    ]
    return json.dumps(polygons), _box(shape, convention)


def _location_tokens(shape: _Shape, convention: MaskConvention) -> tuple[str, Numbers]:
    polygons = _polygons(shape, convention)
    runs = ["".join(f"<loc_{x}><loc_{y}>" for x, y in polygon) for polygon in polygons]
    return "<sep>".join(runs), _box(shape, convention)


def _bin_tokens(shape: _Shape, convention: MaskConvention) -> tuple[str, Numbers]:
    polygons = _polygons(shape, convention)
    runs = [" ".join(f"<bin_{x}_{y}>" for x, y in polygon) for polygon in polygons]
    return " <separator> ".join(runs), _box(shape, convention)


def _grid(shape: _Shape, convention: MaskConvention) -> tuple[str, Numbers]:
    label = shape.label if shape.label.casefold() != BACKGROUND else f"the {BACKGROUND}"
    rows = []
    for cells in _cells(shape, convention.grid):
        ends = np.flatnonzero(np.append(cells[1:] != cells[:-1], True)) + 1
        lengths = np.diff(ends, prepend=0)
        labels = [label if cell else BACKGROUND for cell in cells[ends - 1]]
        runs = zip(labels, lengths, strict=True)
        rows.append("| ".join(f"{name} *{length}" for name, length in runs))
    return "\n ".join(rows), _box(shape, convention)


def _cells(shape: _Shape, side: int) -> Cells:
    """Return the cells of a grid of which half is foreground; if none is, the fullest one."""
    pixels = array_from_rle(shape.rle).astype(np.int64)
    rows = np.arange(side)[:, None] == np.arange(shape.height) * side // shape.height
    columns = np.arange(side)[:, None] == np.arange(shape.width) * side // shape.width
    foreground = rows.astype(np.int64) @ pixels @ columns.T.astype(np.int64)
    total = np.maximum(np.outer(rows.sum(axis=1), columns.sum(axis=1)), 1)
    share = foreground / total
    full: Cells = share >= min(0.5, share.max())
    return full


def _map(shape: _Shape, convention: MaskConvention) -> tuple[str, Numbers]:
    """Write the pixels of the smallest box of whole numbers around the mask."""
    from PIL import Image  # noqa: PLC0415 - only this syntax needs it

    assert convention.box is not None
    x_axis, y_axis = convention.box.space.axes(shape.width, shape.height)
    x1, y1, x2, y2 = shape.bounds
    left, right = _outer_numbers(x1, x2, x_axis)
    top, bottom = _outer_numbers(y1, y2, y_axis)
    columns = slice(math.floor(x_axis.pixel(left)), math.floor(x_axis.pixel(right)))
    rows = slice(math.floor(y_axis.pixel(top)), math.floor(y_axis.pixel(bottom)))
    values = array_from_rle(shape.rle)[rows, columns].astype(np.uint8) * 255
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG", optimize=True)
    numbers = numbers_in(convention.box.order, (left, top, right, bottom))
    return base64.b64encode(file.getvalue()).decode("ascii"), [int(n) for n in numbers]


def _outer_numbers(low: int, high: int, axis: Axis) -> tuple[int, int]:
    """Return the nearest whole numbers whose pixels, rounded down, hold an interval."""
    below, above = math.floor(axis.number(low)), math.ceil(axis.number(high))
    return below, above if axis.pixel(above) >= high else above + 1


def _box(shape: _Shape, convention: MaskConvention) -> Numbers:
    """Return the bounding box in the numbers of the profile's box, else as shares of the image."""
    if convention.box:
        return box_numbers(shape.bounds, convention.box, shape.width, shape.height)
    sides = (shape.width, shape.height) * 2
    return [edge / side for edge, side in zip(shape.bounds, sides, strict=True)]


def _polygons(shape: _Shape, convention: MaskConvention) -> list[list[Point]]:
    """Return the outlines in the numbers of the profile, rounded."""
    assert convention.space is not None
    axes, decimals = convention.space.axes(shape.width, shape.height), convention.decimals

    def placed(*pixels: int) -> Point:
        x, y = (_number(pixel, axis) for pixel, axis in zip(pixels, axes, strict=True))
        return _rounded(x, decimals), _rounded(y, decimals)

    drawn = outlines(shape.rle)
    polygons = [_straightened([placed(x, y) for x, y in outline]) for outline in drawn]
    if not any(polygons):
        polygons = [_one_step(outline, axes, decimals) for outline in drawn]
    polygons = [polygon for polygon in polygons if polygon]
    if convention.order == "yx":
        polygons = [[(y, x) for x, y in polygon] for polygon in polygons]
    return polygons


def _one_step(
    outline: Sequence[tuple[int, int]], axes: tuple[Axis, Axis], decimals: int
) -> list[Point]:
    """Return the rectangle around an outline, at least one step wide and high."""
    (x1, x2), (y1, y2) = (
        widened(_number(min(ends), axis), _number(max(ends), axis), decimals, _last(axis))
        for ends, axis in zip(zip(*outline, strict=True), axes, strict=True)
    )
    corners = ((x1, y1), (x2, y1), (x2, y2), (x1, y2))
    return [(_rounded(x, decimals), _rounded(y, decimals)) for x, y in corners]


def _number(pixel: float, axis: Axis) -> float:
    """Return the number that is nearest to an edge of a pixel, before it is rounded.

    The first bin's centre stands for the edge before it, the last one's for the edge after it.
    """
    return min(max(axis.number(pixel), 0.0), _last(axis))


def _last(axis: Axis) -> float:
    return axis.extent - 2 * axis.offset


def _rounded(number: float, decimals: int) -> float:
    return round(number, decimals) if decimals else round(number)


def _straightened(polygon: list[Point]) -> list[Point]:
    """Return a polygon of level and upright edges without vertices that enclose nothing.

    Nothing is left of a polygon that encloses nothing.
    """
    kept: list[Point] = []
    for vertex in (*polygon, polygon[0]):
        while kept and (vertex == kept[-1] or _in_line(*kept[-2:], vertex)):
            kept.pop()
        kept.append(vertex)
    return kept[:-1] if len(kept) > 4 else []


def _in_line(*vertices: Point) -> bool:
    xs, ys = zip(*vertices, strict=True)
    return len(vertices) == 3 and (len(set(xs)) == 1 or len(set(ys)) == 1)


_Writer = Callable[[_Shape, MaskConvention], tuple[str, Numbers]]

_WRITERS: dict[str, _Writer] = {
    "json_rle": _run_lengths,
    "json_polygons": _polygon_lists,
    "json_maps": _map,
    "grid_labels": _grid,
    "location_polygons": _location_tokens,
    "bin_polygons": _bin_tokens,
}
