"""RefSegRS: from the official release to parquet, and whether a prepared folder is sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from .errors import SourceError
from .folder import prepared_folder
from .manifest import LeftOutList, Manifest, write_manifest
from .parquet import write_split
from .refsegrs_check import check
from .refsegrs_files import LAYOUT, SPLITS, source_files
from .refsegrs_phrases import read_phrases
from .refsegrs_rows import Tally, features, rows_of

__all__ = ["SPLITS", "check", "features", "prepare"]


def prepare(
    source: str | Path,
    output: str | Path,
    skip_broken: bool = False,
    splits: Sequence[str] = ("val", "test"),
    progress: bool = True,
) -> Manifest:
    """Convert the official release into a folder of parquet that ``datasets.load_dataset`` reads.

    Each triplet is a row: the bytes of its image, its phrase byte for byte, and its mask, whether
    written as 0 and 1 or as 0 and 255. A mask without foreground is kept and counted in the
    manifest. The folder appears whole or not at all; equal sources give equal bytes.

    Parameters
    ----------
    source
        ``RefSegRS.zip``, which is read without unpacking it, or the folder unpacked from it.
    output
        The folder to make; a finished conversion that is there is replaced.
    skip_broken
        Leave out lines and triplets that are broken, and list them in the manifest, instead of
        stopping at the first.
    splits
        The splits to make, of ``train``, ``val`` and ``test``; no task reads the first.
    progress
        Whether to show progress bars on stderr.

    Returns
    -------
    Manifest
        What was made, as it stands in ``grounding.json``; ``sentences()`` tells a person.
        ``details`` has the number of rows whose mask has no foreground, by split.

    Raises
    ------
    SourceError
        For a source that is broken, with file, line or triplet, and reason; with ``skip_broken``
        too when it is not of the release (no phrases, splits that share a triplet).
    OutputError
        When ``output`` holds something else or is being written by another process.
    ValueError
        For the name of a split that RefSegRS does not have.
    """
    unknown = [split for split in splits if split not in SPLITS]
    if unknown or not splits:
        raise ValueError(f"refsegrs has the splits {', '.join(SPLITS)}, not {', '.join(unknown)}")
    chosen = [split for split in SPLITS if split in splits]
    root = Path(source).absolute()
    left_out = LeftOutList(skip_broken)
    with source_files(root) as files:
        phrases = read_phrases(files, left_out)
        made = [split for split in chosen if split in phrases.texts]
        if not made:
            absent = ", ".join(phrases.absent[split] for split in chosen)
            raise SourceError(f"{root.name}: nothing to make, {absent}; {LAYOUT}")
        with prepared_folder(output, "refsegrs") as folder:
            counts, tallies = {}, {}
            for split in made:
                texts = tqdm(
                    phrases.texts[split].items(), desc=split, unit="triplet", disable=not progress
                )
                tally = tallies[split] = Tally()
                rows = rows_of(files, split, texts, tally, left_out)
                counts[split] = write_split(folder, split, features(), rows)
                if not counts[split]:
                    first = next(entry.reason for entry in left_out.entries if entry.split == split)
                    raise SourceError(f"{split}: every triplet was left out; the first: {first}")
            manifest = Manifest(
                benchmark="refsegrs",
                release=phrases.release,
                source=root.name,
                splits=counts,
                not_made={split: phrases.absent[split] for split in chosen if split not in made},
                left_out=[entry for entry in left_out.entries if entry.split in made],
                details={
                    "empty_targets": {split: each.empty_targets for split, each in tallies.items()}
                },
            )
            write_manifest(folder, manifest)
    return manifest
