"""A mask as a COCO RLE: read strictly, compared, combined, turned into arrays and back.

Part of ``masks``, which says what a mask is and whose names these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from . import run_lengths
from .errors import MaskError, shown
from .run_lengths import Positions, is_whole

MAX_SIDE = 65_535
MAX_PIXELS = 2**28


class Rle(TypedDict):
    """A binary mask; see the module."""

    size: list[int]
    counts: str


def rle_from_coco(value: object, size: Sequence[int] | None = None) -> Rle:
    """Return the canonical mask for a COCO RLE in any of its forms.

    Parameters
    ----------
    value
        A mapping with ``size`` ``[height, width]`` and ``counts``: compressed text (str or ASCII
        bytes), or uncompressed, a list of run lengths, background first, column by column. Other
        keys are ignored.
    size
        The ``(height, width)`` that the mask must have; None admits any.

    Raises
    ------
    MaskError
        For a size that is not two positive whole numbers within ``MAX_SIDE`` and ``MAX_PIXELS`` or
        is not ``size``; for counts that are not text or a list of whole numbers, are cut off, hold
        a negative run, or do not add up to ``height * width``.
    """
    height, width, counts = _checked(value, size)
    total = height * width
    if isinstance(counts, list | tuple):
        ends = run_lengths.ends_from_list(counts, total)
        return rle_from_boundaries(run_lengths.boundaries_from_ends(ends), height, width)
    text = _ascii(counts)
    (ends,) = run_lengths.ends_from_texts([text], total)
    if run_lengths.is_canonical(text, ends):
        return {"size": [height, width], "counts": text.decode()}
    return rle_from_boundaries(run_lengths.boundaries_from_ends(ends), height, width)


def _checked(value: object, size: Sequence[int] | None) -> tuple[int, int, object]:
    """Return height, width and counts of an RLE, after checking the size."""
    if not isinstance(value, Mapping) or "size" not in value or "counts" not in value:
        raise MaskError(f"an RLE is a mapping with 'size' and 'counts', not {shown(value)}")
    height, width = checked_size(value["size"])
    if size is not None and (height != size[0] or width != size[1]):
        raise MaskError(
            f"a mask of {height} x {width} pixels (height x width) where "
            f"{size[0]} x {size[1]} are needed"
        )
    return height, width, value["counts"]


def checked_size(size: object) -> tuple[int, int]:
    """Return height and width as ints, after checking them."""
    if isinstance(size, list | tuple) and len(size) == 2 and all(map(is_whole, size)):
        height, width = size
        if 0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE and height * width <= MAX_PIXELS:
            return int(height), int(width)
    raise MaskError(
        f"size is {shown(size)}; it is [height, width], two whole numbers of 1 to {MAX_SIDE} "
        f"with a product of at most {MAX_PIXELS}"
    )


def _ascii(counts: object) -> bytes:
    """Return compressed counts as bytes."""
    if isinstance(counts, str):
        if counts.isascii():
            return counts.encode()
        raise MaskError(f"counts are {shown(counts)}, which is not ASCII")
    if isinstance(counts, bytes):
        return counts
    raise MaskError(f"counts are {shown(counts)}; they are text or a list of whole numbers")


def rle_from_boundaries(boundaries: Positions, height: int, width: int) -> Rle:
    """Return the mask whose foreground is ``[b[0], b[1])``, ``[b[2], b[3])``, ...; not checked.

    The last boundary may be left out when it is the end of the image.
    """
    counts = run_lengths.text_from_boundaries(boundaries, height * width)
    return {"size": [height, width], "counts": counts}


def _boundaries(
    rles: Sequence[Rle], size: tuple[int, ...] = ()
) -> tuple[int, int, list[Positions]]:
    """Return height and width, and the boundaries of masks that all must have that size.

    Without a size the first mask gives it.
    """
    texts = []
    for rle in rles:
        height, width, counts = _checked(rle, size or None)
        size = height, width
        texts.append(_ascii(counts))
    height, width = size
    ends = run_lengths.ends_from_texts(texts, height * width)
    return height, width, [run_lengths.boundaries_from_ends(each) for each in ends]


def area(rle: Rle) -> int:
    """Return the number of foreground pixels.

    Raises
    ------
    MaskError
        For an invalid mask.
    """
    _, _, (boundaries,) = _boundaries([rle])
    return run_lengths.length(boundaries)


def intersection_and_union(pred: Rle, target: Rle) -> tuple[int, int]:
    """Return the pixel counts of intersection and union; two empty masks give ``(0, 0)``.

    Both follow from three areas: the boundaries of two masks taken together, in order, are the
    boundaries of their symmetric difference ``D``, so ``I = (A + B - D) / 2`` and ``U = I + D``.
    There is no crowd mode: the union is that of the two masks, whatever they stand for.

    Raises
    ------
    MaskError
        For an invalid mask; for masks of different sizes.
    """
    _, _, (ours, theirs) = _boundaries((pred, target))
    both = np.concatenate((ours, theirs))  # each is even in number
    areas = run_lengths.length(both)
    both.sort(kind="stable")  # merges two sorted runs in linear time
    difference = run_lengths.length(both)
    intersection = (areas - difference) // 2
    return intersection, intersection + difference


def union(rles: Sequence[Rle], size: Sequence[int]) -> Rle:
    """Return the union of masks of the size ``(height, width)``, which may overlap.

    No mask at all gives the empty mask of that size.

    Raises
    ------
    MaskError
        For an invalid mask; for a mask of another size.
    """
    height, width, parts = _boundaries(rles, checked_size(size))
    # The empty array lets an empty list through; each array is even in number.
    joined = np.concatenate((np.empty(0, np.int64), *parts))
    return rle_from_boundaries(
        run_lengths.boundaries_from_intervals(joined[::2], joined[1::2]), height, width
    )


def bounding_box(rle: Rle) -> tuple[int, int, int, int] | None:
    """Return the smallest box ``(x1, y1, x2, y2)`` in pixels around the foreground.

    The far edges are exclusive: a single pixel ``(row, column)`` gives
    ``(column, row, column + 1, row + 1)``. None when the mask is empty.

    Raises
    ------
    MaskError
        For an invalid mask.
    """
    height, _, (boundaries,) = _boundaries([rle])
    first, final = boundaries[::2], boundaries[1::2] - 1
    keep = first <= final
    left, top = np.divmod(first[keep], height)
    right, bottom = np.divmod(final[keep], height)
    if not left.size:
        return None
    if (left < right).any():  # a run that goes on in the next column touches bottom and top
        return int(left[0]), 0, int(right[-1]) + 1, height
    return int(left[0]), int(top.min()), int(right[-1]) + 1, int(bottom.max()) + 1


def rle_from_array(array: npt.NDArray[np.bool_ | np.integer]) -> Rle:
    """Return the mask of the pixels that are not 0.

    Parameters
    ----------
    array
        Shape ``(height, width)``, bool or any integer type; a label map counts as one mask.

    Raises
    ------
    MaskError
        For another type (a map of floats is thresholded by whoever knows where) or shape.
    """
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biu":
        raise MaskError(
            "a mask array holds bools or integers, "
            f"not {getattr(array, 'dtype', type(array).__name__)}"
        )
    if array.ndim != 2:
        raise MaskError(f"a mask array has 2 dimensions, not the shape {array.shape}")
    height, width = checked_size(array.shape)
    pixels = (array != 0).ravel(order="F")
    changes = (pixels[1:] != pixels[:-1]).nonzero()[0] + 1
    first = np.arange(1 if pixels[0] else 0)
    return rle_from_boundaries(np.concatenate((first, changes)), height, width)


def array_from_rle(rle: Rle) -> npt.NDArray[np.bool_]:
    """Return the mask as an array of shape ``(height, width)``.

    Raises
    ------
    MaskError
        For an invalid mask.
    """
    height, width, (boundaries,) = _boundaries([rle])
    runs = np.diff(boundaries, prepend=0, append=height * width)
    pixels: npt.NDArray[np.bool_] = np.repeat(np.arange(runs.size) % 2 == 1, runs)
    return pixels.reshape((height, width), order="F")


def rle_from_rows(rows: Sequence[str]) -> Rle:
    """Return the mask written as one string of ``0`` and ``1`` a row, top row first.

    Raises
    ------
    MaskError
        For no rows, rows of different lengths, other characters.
    """
    if not rows or isinstance(rows, str) or not all(isinstance(row, str) for row in rows):
        raise MaskError(f"rows are a list of texts, not {shown(rows)}")
    if len({len(row) for row in rows}) != 1:
        raise MaskError(f"rows have different lengths: {shown([len(row) for row in rows])}")
    text = "".join(rows)
    if set(text) - {"0", "1"}:
        raise MaskError(f"rows hold {shown(''.join(sorted(set(text))))}; they are of '0' and '1'")
    cells = np.frombuffer(text.encode(), np.uint8) == ord("1")
    return rle_from_array(cells.reshape(len(rows), len(rows[0])))


def rows_from_rle(rle: Rle) -> list[str]:
    """Return the mask as one string of ``0`` and ``1`` a row, top row first.

    Raises
    ------
    MaskError
        For an invalid mask.
    """
    characters = np.where(array_from_rle(rle), np.uint8(ord("1")), np.uint8(ord("0")))
    return [row.tobytes().decode() for row in characters]
