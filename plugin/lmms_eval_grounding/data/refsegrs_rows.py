"""The rows of a prepared split of RefSegRS: one per triplet of image, phrase and mask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..geometry.masks import area
from .errors import SourceError
from .manifest import LeftOutList
from .mask_columns import mask_columns
from .parquet import Row
from .refsegrs_files import SourceFiles
from .refsegrs_tiff import mask_of_tiff, size_of_tiff

if TYPE_CHECKING:
    import datasets


@dataclass
class Tally:
    """What is counted while the rows of a split are made.

    Attributes
    ----------
    empty_targets
        Rows with a mask without foreground; no prediction can score on them.
    """

    empty_targets: int = 0


def features() -> datasets.Features:
    """Return the columns of a prepared split.

    ``id`` is the number of the triplet; ``image`` the TIFF as released; ``expression`` the phrase;
    ``target`` the mask; ``width`` and ``height`` the size of both; ``file`` the name of the image.
    """
    import datasets  # noqa: PLC0415 - slow to import, and only a conversion or a check needs it

    return datasets.Features(
        {
            **mask_columns(),
            "file": datasets.Value("string"),
        }
    )


def rows_of(
    files: SourceFiles,
    split: str,
    texts: Iterable[tuple[str, str]],
    tally: Tally,
    left_out: LeftOutList,
) -> Iterator[Row]:
    """Yield one row per triplet, in the order of the phrases.

    Parameters
    ----------
    files
        The release.
    split
        The split, for the list of what is left out.
    texts
        Id and phrase.
    tally
        Counts as the rows are made.
    left_out
        Receives the triplets whose image or mask is missing or broken.
    """
    for triplet, text in texts:
        file = f"{triplet}.tif"
        try:
            columns = _picture_columns(files, file)
        except SourceError as fault:
            left_out.add(fault, split=split, row_id=triplet, file=file)
            continue
        tally.empty_targets += not area(columns["target"])
        yield {"id": triplet, "expression": text, "file": file, **columns}


def _picture_columns(files: SourceFiles, file: str) -> dict[str, Any]:
    name = f"images/{file}"
    try:
        data = _there(files, name)
        size = size_of_tiff(data)
        name = f"masks/{file}"
        target, *mask_size = mask_of_tiff(_there(files, name))
        if mask_size != list(size):
            raise SourceError(
                f"the mask has {mask_size[0]} x {mask_size[1]} pixels, the image "
                f"{size[0]} x {size[1]}"
            )
    except SourceError as fault:
        raise SourceError(f"{name}: {fault}") from fault
    width, height = size
    return {
        "image": {"bytes": data, "path": file},
        "target": target,
        "width": width,
        "height": height,
    }


def _there(files: SourceFiles, name: str) -> bytes:
    data = files.read(name)
    if data is None:
        raise SourceError("is missing")
    return data
