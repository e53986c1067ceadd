"""DIOR-RSVG: from the official tree to parquet, and whether a prepared folder is sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from .errors import SourceError
from .folder import prepared_folder
from .manifest import LeftOutList, Manifest, write_manifest
from .parquet import write_split
from .rsvg_check import check
from .rsvg_source import LAYOUT, features, read_tree, rows_of
from .rsvg_splits import SPLITS, read_splits

__all__ = ["SPLITS", "check", "features", "prepare"]


def prepare(
    source: str | Path,
    output: str | Path,
    skip_broken: bool = False,
    splits: Sequence[str] = SPLITS,
    progress: bool = True,
) -> Manifest:
    """Convert the official tree into a folder of parquet that ``datasets.load_dataset`` reads.

    Objects are numbered from 0 over all objects of the annotation files, sorted by name, as the
    split files number them. Image bytes and texts are kept as they are. The folder appears whole
    or not at all; equal sources give equal bytes.

    Parameters
    ----------
    source
        The folder with ``Annotations``, ``JPEGImages``, ``train.txt``, ``val.txt`` and
        ``test.txt``. A split without its file is not made, and only what the chosen splits name
        needs an image and a sound annotation.
    output
        The folder to make; a finished conversion that is there is replaced.
    skip_broken
        Leave out lines, objects and images that are broken, and list them in the manifest,
        instead of stopping at the first. The number of every other object stays as it is.
    splits
        The splits to make.
    progress
        Whether to show progress bars on stderr.

    Returns
    -------
    Manifest
        What was made, as it stands in ``grounding.json``; ``sentences()`` tells a person.

    Raises
    ------
    SourceError
        For a source that is broken, with file, line or object, and reason; with ``skip_broken``
        too when object numbers lose their meaning (an annotation file that is no XML, splits
        that share objects, a known release with missing annotation files).
    OutputError
        When ``output`` holds something else or is being written by another process.
    ValueError
        For the name of a split that RSVG does not have.
    """
    root = Path(source).absolute()
    unknown = [split for split in splits if split not in SPLITS]
    if unknown:
        raise ValueError(f"rsvg has the splits {', '.join(SPLITS)}, not {', '.join(unknown)}")
    left_out = LeftOutList(skip_broken)
    tree = read_tree(root, progress=progress)
    files = read_splits(root, tree.objects, left_out)
    chosen = [split for split in SPLITS if split in splits]
    made = [split for split in chosen if split in files.indices]
    if not made:
        absent = ", ".join(files.absent[split] for split in chosen)
        raise SourceError(f"{root.name}: nothing to make, {absent}; {LAYOUT}")
    with prepared_folder(output, "rsvg") as folder:
        counts = {}
        for split in made:
            indices = tqdm(files.indices[split], desc=split, unit="object", disable=not progress)
            rows = rows_of(tree, split, indices, left_out)
            counts[split] = write_split(folder, split, features(), rows)
            if not counts[split]:
                first = next(entry.reason for entry in left_out.entries if entry.split == split)
                raise SourceError(f"{split}: every object was left out; the first: {first}")
        manifest = Manifest(
            benchmark="rsvg",
            release=files.release,
            source=root.name,
            splits=counts,
            not_made={split: files.absent[split] for split in chosen if split not in made},
            left_out=[entry for entry in left_out.entries if entry.split in made],
        )
        write_manifest(folder, manifest)
    return manifest
