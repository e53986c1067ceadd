"""GRES (gRefCOCO): from the official files to parquet, and whether a prepared folder is sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from .errors import SourceError
from .folder import prepared_folder
from .gres_check import check
from .gres_instances import Instances, read_instances
from .gres_layout import SourceFiles, find_files
from .gres_references import References, read_references
from .gres_release import EVALUATED, SPLITS, release_of
from .gres_rows import UNSCORABLE, RowMaker, Tally, features
from .manifest import LeftOutList, Manifest, write_manifest
from .parquet import write_split

__all__ = ["SPLITS", "check", "features", "prepare"]


def prepare(
    source: str | Path,
    output: str | Path,
    skip_broken: bool = False,
    splits: Sequence[str] = EVALUATED,
    progress: bool = True,
    *,
    embed_images: bool = False,
    images: str | Path | None = None,
) -> Manifest:
    """Convert the official files into a folder of parquet that ``datasets.load_dataset`` reads.

    A row is one sentence, its text (``raw``) kept byte for byte. Its target is the union of the
    annotations that its reference names, at the size of the image, without crowd annotations and
    invalid polygons (see ``gres_masks``); sentences of which nothing else is left cannot be
    scored. All that is left out for these reasons is counted in the manifest. The folder appears
    whole or not at all; equal sources in the same place give equal bytes.

    Parameters
    ----------
    source
        The folder with ``grefs(unc).json``, ``instances.json`` and the images of COCO train2014,
        in the tree of any of the usual evaluators (see ``gres_layout``).
    output
        The folder to make; a finished conversion that is there is replaced.
    skip_broken
        Leave out sentences whose reference, annotation or image is broken, and list them in the
        manifest, instead of stopping at the first.
    splits
        The splits to make, of ``val``, ``testA``, ``testB`` and ``train``.
    progress
        Whether to show progress bars on stderr.
    embed_images
        Store the images in the folder, which then stands alone; by default it holds their paths.
    images
        The folder of the images, where it is not in the tree.

    Returns
    -------
    Manifest
        What was made, as it stands in ``grounding.json``; ``sentences()`` tells a person.
        ``details`` has the numbers of rows without a target and of rows whose target covers no
        pixel, by split, and the folder of the images, None when they are stored.

    Raises
    ------
    SourceError
        For a source that is broken, with file, reference or image, and reason; with
        ``skip_broken`` too when a file is missing or not of the release.
    OutputError
        When ``output`` holds something else or is being written by another process.
    ValueError
        For the name of a split that GRES does not have.
    """
    unknown = [split for split in splits if split not in SPLITS]
    if unknown or not splits:
        raise ValueError(f"gres has the splits {', '.join(SPLITS)}, not {', '.join(unknown)}")
    chosen = [split for split in SPLITS if split in splits]
    root = Path(source).absolute()
    files = find_files(root, Path(images) if images else None)
    left_out = LeftOutList(skip_broken)
    references, instances = _read(files, chosen, left_out, progress)
    made = [split for split in chosen if references.sentences[split]]
    if not made:
        raise SourceError(
            f"{files.references.name}: nothing to make, it has no sentence of {' or '.join(chosen)}"
        )
    with prepared_folder(output, "gres") as folder:
        maker = RowMaker(instances, files.images, embed_images, left_out)
        tallies = {split: Tally() for split in made}
        counts = {}
        for split, tally in tallies.items():
            rows = maker.rows(split, references.chosen, tally, progress)
            counts[split] = write_split(folder, split, features(), rows)
            if not counts[split]:
                reasons = (entry.reason for entry in left_out.entries if entry.split == split)
                first = next(reasons, UNSCORABLE)
                raise SourceError(f"{split}: every sentence was left out; the first: {first}")
        absent = f"{files.references.name} has no sentence of it"
        manifest = Manifest(
            benchmark="gres",
            release=release_of(references.sentences, references.without_target),
            source=root.name,
            splits=counts,
            not_made={split: absent for split in chosen if split not in made},
            left_out=left_out.entries,
            left_out_counts={
                split: dict(sorted(tally.left_out.items())) for split, tally in tallies.items()
            },
            details={
                "images": None if embed_images else str(files.images),
                "without_target": {split: each.without_target for split, each in tallies.items()},
                "empty_targets": {split: each.empty_targets for split, each in tallies.items()},
            },
        )
        write_manifest(folder, manifest)
    return manifest


def _read(
    files: SourceFiles, splits: Sequence[str], left_out: LeftOutList, progress: bool
) -> tuple[References, Instances]:
    """Read both files; of the second only what the references of the splits name."""
    with tqdm(total=2, desc="reading", unit="file", disable=not progress) as bar:
        references = read_references(files.references, splits, left_out)
        bar.update()
        image_ids = {reference.image_id for reference in references.chosen}
        ann_ids = {ann_id for reference in references.chosen for ann_id in reference.ann_ids}
        instances = read_instances(files.instances, image_ids, ann_ids)
        bar.update()
    return references, instances
