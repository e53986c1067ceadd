"""The outlines of a mask, exact to the pixel: the inverse of filling polygons.

Outlines run along the edges of pixels, so every vertex is a pair of whole numbers and every edge
is horizontal or vertical. Vertices are x and y, origin in the image's top left corner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..geometry.rle import Rle, array_from_rle

Vertex = tuple[int, int]
Pixels = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.intp]


def outlines(rle: Rle) -> list[list[Vertex]]:
    """Return one closed polygon for each connected part of a mask, from the top row down.

    Pixels are connected along their edges. The outline of a part with holes also runs to each
    hole, around it, and back the same way, which encloses nothing: filled by the even-odd rule and
    united, the polygons are the mask. An empty mask has none.

    Raises
    ------
    MaskError
        For an invalid mask.
    """
    pixels = array_from_rle(rle)
    xs, ys = _corners(pixels)
    columns = _column_order(pixels, xs, ys)
    following = _following(pixels, xs, ys, columns).tolist()
    heads = list(_heads(following))
    outer = [head for head in heads if pixels[ys[head], xs[head]]]
    holes = [head for head in heads if not pixels[ys[head], xs[head]]]
    edges = _edges_left_of(holes, pixels, xs, ys, columns)
    x, y = xs.tolist(), ys.tolist()
    for head, edge in zip(holes, edges, strict=True):
        to, back = len(x), len(x) + 1
        x += [x[edge], x[head], x[edge]]
        y += [y[head]] * 3
        # The last edge of a hole is the one above it, from right to left.
        following += [head, back + 1, following[edge]]
        following[edge], following[head + 1] = to, back
    return [[(x[i], y[i]) for i in _ring(following, head)] for head in outer]


def _corners(pixels: Pixels) -> tuple[Numbers, Numbers]:
    """Return x and y of all corners of all outlines, row by row.

    A corner at which two pixels touch diagonally is there twice: first as the end of the edge on
    its left, then as the start of the one on its right. So corners ``2k`` and ``2k + 1`` always are
    the two ends of a horizontal edge.
    """
    up_left, up_right, down_left, down_right = _around(pixels)
    odd = up_left ^ up_right ^ down_left ^ down_right
    crossing = (up_left == down_right) & (up_right == down_left) & (up_left != up_right)
    ys, xs = np.nonzero(odd | crossing)
    times = 1 + crossing[ys, xs]
    return np.repeat(xs, times), np.repeat(ys, times)


def _around(pixels: Pixels) -> tuple[Pixels, Pixels, Pixels, Pixels]:
    """Return the four pixels around every crossing of the grid, False outside of the image."""
    padded = np.pad(pixels, 1)
    return padded[:-1, :-1], padded[:-1, 1:], padded[1:, :-1], padded[1:, 1:]


def _column_order(pixels: Pixels, xs: Numbers, ys: Numbers) -> Numbers:
    """Return the corners column by column: every two in turn are the ends of a vertical edge.

    Where two pixels touch diagonally, the edges of one pixel belong together: the one on the left
    goes on upwards if the pixel up left is foreground, else downwards.
    """
    up_left = _around(pixels)[0][ys, xs]
    second = np.append(False, (xs[1:] == xs[:-1]) & (ys[1:] == ys[:-1]))
    first = np.append(second[1:], False)
    rank = np.where(up_left, second, first)
    return np.lexsort((rank, ys, xs))


def _following(pixels: Pixels, xs: Numbers, ys: Numbers, columns: Numbers) -> Numbers:
    """Return the corner that follows each one, with the foreground on the right hand side."""
    across = np.arange(xs.size) ^ 1
    along = np.empty_like(columns)
    along[columns[::2]], along[columns[1::2]] = columns[1::2], columns[::2]
    below = _around(pixels)[3][ys[::2], xs[::2]]  # of the edge from corner 2k to 2k + 1
    leaves_across = np.stack((below, ~below), axis=1).ravel()
    return np.where(leaves_across, across, along)


def _heads(following: Sequence[int]) -> Iterator[int]:
    """Yield the first corner of every outline, which is its top left one."""
    seen = bytearray(len(following))
    for head in range(len(following)):
        if not seen[head]:
            yield head
            for corner in _ring(following, head):
                seen[corner] = 1


def _ring(following: Sequence[int], head: int) -> Iterator[int]:
    """Yield the corners of the outline that begins at one."""
    corner = head
    while True:
        yield corner
        corner = following[corner]
        if corner == head:
            return


def _edges_left_of(
    heads: Sequence[int], pixels: Pixels, xs: Numbers, ys: Numbers, columns: Numbers
) -> list[int]:
    """Return the start of the vertical edge that ends the foreground on the left above each hole.

    Such an edge has the foreground on its right and goes upwards: it starts at its lower end.
    """
    height = pixels.shape[0] + 1
    places = xs[columns] * height + ys[columns]
    starts = []
    for head in heads:
        row = ys[head] - 1
        background = np.flatnonzero(~pixels[row, : xs[head]])
        left = background[-1] + 1 if background.size else 0
        upper = np.searchsorted(places, left * height + row, side="right") - 1
        starts.append(int(columns[upper + 1]))
    return starts
