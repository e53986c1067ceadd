"""Whether a prepared GRES folder is sound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..geometry.masks import MaskError, rle_from_coco
from .check import problems_of_counts, problems_of_folder
from .errors import SourceError
from .gres_release import RELEASES
from .gres_rows import UNSCORABLE, features
from .jpeg import check_jpeg
from .manifest import Manifest, split_file
from .parquet import Row


def check(folder: str | Path) -> list[str]:
    """Return what is wrong with a prepared folder; an empty list when it is sound.

    Looked at are the counts against the manifest and the named release, those of rows without a
    target too, ids (each once over all splits), targets (valid, of the size of the image, there
    when annotations are named and only then), images (each is decoded, where it lies, and its size
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
    folder = Path(folder)
    return list(
        problems_of_folder(
            folder,
            "gres",
            features(),
            _RowCheck().problems,
            partial(_problems_of_manifest, folder),
            nullable={"target"},
        )
    )


def _problems_of_manifest(folder: Path, manifest: Manifest) -> Iterator[str]:
    sentences = {
        name: {split: counts[0] for split, counts in splits.items()}
        for name, splits in RELEASES.items()
    }
    yield from problems_of_counts(manifest, sentences, row_reasons=[UNSCORABLE])
    official = RELEASES.get(manifest.release, {})
    stated = manifest.details.get("without_target", {})
    broken = {entry.split for entry in manifest.left_out}
    for split in manifest.splits:
        found = _rows_without_target(split_file(folder, split))
        if found is None:
            continue  # the file is damaged, which is a problem of its own
        if found != stated.get(split):
            yield f"{split} has {found:,} rows without a target, here are {stated.get(split)}"
        elif split in official and split not in broken and found != official[split][1]:
            yield (
                f"{split} has {found:,} rows without a target, the {manifest.release} has "
                f"{official[split][1]:,}"
            )


def _rows_without_target(path: Path) -> int | None:
    try:
        targets = pq.read_table(path, columns=["target"], use_threads=False)["target"]
    except (OSError, pa.ArrowException, KeyError):
        return None
    return int(targets.null_count)


class _RowCheck:
    """Checks rows; an image that the row before had too is decoded, and complained of, once."""

    def __init__(self) -> None:
        self._last: tuple[str, int, int] | None = None

    def problems(self, row: Row) -> Iterator[str]:
        if row["id"] != f"{row['ref_id']}/{row['sent_id']}":
            yield f"the id is not ref_id/sent_id, {row['ref_id']}/{row['sent_id']}"
        if not row["expression"].strip():
            yield "the expression is empty"
        if (row["target"] is None) != (not row["ann_ids"]):
            there = "no target" if row["target"] is None else "a target"
            yield f"{there} with {len(row['ann_ids'])} annotations"
        if row["target"] is not None:
            try:
                rle_from_coco(row["target"], (row["height"], row["width"]))
            except MaskError as fault:
                yield f"target: {fault}"
        picture = (row["image"]["path"], row["width"], row["height"])
        if picture != self._last:
            self._last = picture
            fault_of_image = _fault_of_image(row)
            if fault_of_image:
                yield f"image {row['image']['path']}: {fault_of_image}"


def _fault_of_image(row: Row) -> str:
    try:
        data = row["image"]["bytes"]
        if data is None:
            data = Path(row["image"]["path"]).read_bytes()
        check_jpeg(data, width=row["width"], height=row["height"])
    except SourceError as fault:
        return str(fault)
    except (OSError, ValueError) as fault:
        return f"cannot be read ({fault})"
    return ""
