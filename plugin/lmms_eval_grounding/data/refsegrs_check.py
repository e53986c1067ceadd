"""Whether a prepared RefSegRS folder is sound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..geometry.masks import MaskError, rle_from_coco
from .check import problems_of_counts, problems_of_folder
from .errors import SourceError
from .parquet import Row
from .refsegrs_phrases import RELEASES
from .refsegrs_rows import features
from .refsegrs_tiff import size_of_tiff


def check(folder: str | Path) -> list[str]:
    """Return what is wrong with a prepared folder; an empty list when it is sound.

    Looked at are the counts against the manifest and the named release, ids (each once over all
    splits), targets (valid and of the size of the image), images (each is decoded, and its size
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
            Path(folder), "refsegrs", features(), _problems_of_row, problems_of_manifest
        )
    )


def _problems_of_row(row: Row) -> Iterator[str]:
    if not (row["id"].isascii() and row["id"].isdigit()):
        yield "the id is no number of a triplet"
    if not row["expression"].strip():
        yield "the expression is empty"
    try:
        rle_from_coco(row["target"], (row["height"], row["width"]))
    except MaskError as fault:
        yield f"target: {fault}"
    try:
        width, height = size_of_tiff(row["image"]["bytes"] or b"")
        if (width, height) != (row["width"], row["height"]):
            yield (
                f"image {row['image']['path']}: has {width} x {height} pixels, the row says "
                f"{row['width']} x {row['height']}"
            )
    except SourceError as fault:
        yield f"image {row['image']['path']}: {fault}"
