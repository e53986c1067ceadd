"""Whether a prepared RSVG folder is sound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .check import problems_of_counts, problems_of_folder
from .errors import SourceError
from .jpeg import check_jpeg
from .parquet import Row
from .rsvg_source import features
from .rsvg_splits import RELEASES


def check(folder: str | Path) -> list[str]:
    """Return what is wrong with a prepared folder; an empty list when it is sound.

    Looked at are the counts against the manifest and the named release, ids (each once over all
    splits), boxes (finite, not empty, inside the image), images (each is decoded, and its size
    compared) and expressions (not blank).

    Parameters
    ----------
    folder
        A folder made by ``prepare``.

    Returns
    -------
    list of str
        One sentence per problem, each with the file and, where there is one, the row.
    """
    problems_of_manifest = partial(problems_of_counts, releases=RELEASES)
    return list(
        problems_of_folder(
            Path(folder), "rsvg", features(), _RowCheck().problems, problems_of_manifest
        )
    )


class _RowCheck:
    """Checks rows; an image that the row before had too is decoded once."""

    def __init__(self) -> None:
        self._last: tuple[bytes | None, int, int] | None = None
        self._last_fault = ""

    def problems(self, row: Row) -> Iterator[str]:
        if not (row["id"].isascii() and row["id"].isdigit()):
            yield "the id is no object index"
        if not row["expression"].strip():
            yield "the expression is empty"
        yield from _problems_of_box(row)
        fault = self._fault_of_image(row)
        if fault:
            yield f"image {row['image']['path']}: {fault}"

    def _fault_of_image(self, row: Row) -> str:
        picture = (row["image"]["bytes"], row["width"], row["height"])
        if picture != self._last:
            self._last, self._last_fault = picture, ""
            try:
                check_jpeg(picture[0] or b"", width=picture[1], height=picture[2])
            except SourceError as fault:
                self._last_fault = str(fault)
        return self._last_fault


def _problems_of_box(row: Row) -> Iterator[str]:
    box = row["bbox"]
    if len(box) != 4 or not all(isinstance(side, float) and math.isfinite(side) for side in box):
        yield f"the box {box} is not four finite numbers"
        return
    x1, y1, x2, y2 = box
    if x2 <= x1 or y2 <= y1:
        yield f"the box {box} has no area"
    if x1 < 0 or y1 < 0 or x2 > row["width"] or y2 > row["height"]:
        yield f"the box {box} reaches outside the image of {row['width']} x {row['height']} pixels"
