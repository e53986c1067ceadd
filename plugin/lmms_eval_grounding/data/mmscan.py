"""MMScan visual grounding: from the official tree to parquet, and whether a folder is sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .folder import prepared_folder
from .manifest import LeftOutList, Manifest, write_manifest
from .mmscan_check import check
from .mmscan_choice import SampleList
from .mmscan_layout import ANNOTATIONS, SPLITS, find_files
from .mmscan_sample import features
from .mmscan_split import Frames, SplitMaker
from .mmscan_table import COPIED_FRAMES

__all__ = ["ANNOTATIONS", "SPLITS", "check", "features", "prepare"]


def prepare(
    source: str | Path,
    output: str | Path,
    skip_broken: bool = False,
    splits: Sequence[str] = ("val",),
    progress: bool = True,
    *,
    ratio: float | None = None,
    token_flatten: bool = False,
    annotations: str = "v1",
    frames: str | Path | None = None,
    look_for_frames: bool = True,
    copy_frames: bool = False,
) -> Manifest:
    """Convert the official tree into a folder of parquet that ``datasets.load_dataset`` reads.

    A split is a file of samples and a table of the scans they speak of. Poses of frames are moved
    into the aligned frame of the scan, in which the boxes are. Samples that the official loader
    leaves out (without a target, with as many names as ids it does not have, with objects that are
    not in the scan) are left out and counted by reason, in the manifest, and listed in
    ``data/left_out.jsonl``. The folder appears whole or not at all; equal sources give equal bytes.

    Parameters
    ----------
    source
        The folder ``mmscan_data``.
    output
        The folder to make; a finished conversion that is there is replaced.
    skip_broken
        Leave out samples, frames and scans that are broken (not as in the release, or without their
        files), and list them in the manifest, instead of stopping at the first.
    splits
        The splits to make, of ``val`` and ``train``.
    progress
        Whether to show progress bars on stderr.
    ratio
        Take only the samples whose index is a multiple of ``int(1 / ratio)``, as the devkit does;
        0.2 in its own evaluation. By default all.
    token_flatten
        Do as the devkit does by default, which changes samples and targets: keep only targets
        whose mention in the text is marked, and delete some other samples by mistake (see
        ``mmscan_choice.survivors_of_flattening``).
    annotations
        ``v1`` or ``v2``: the EmbodiedScan annotations that boxes and poses come from.
    frames
        The folder that paths of frames start from; by default ``data`` beside the annotations.
        The frames stay there.
    look_for_frames
        Whether every frame must be there. Without, the set serves prompts that show no frame.
    copy_frames
        Copy the frames into the folder, which then stands alone.

    Returns
    -------
    Manifest
        What was made, as it stands in ``grounding.json``; ``sentences()`` tells a person.

    Raises
    ------
    SourceError
        For a source that is broken, with file, sample, scan or frame, and reason; with
        ``skip_broken`` too when a file is no JSON, no pickle or not of the release.
    OutputError
        When ``output`` holds something else or is being written by another process.
    ValueError
        For an unknown split or version of the annotations, or a ratio outside (0, 1].
    """
    _check_choices(splits, ratio, annotations)
    ratio = ratio or 1.0
    chosen = tuple(split for split in SPLITS if split in splits)
    files = find_files(Path(source), chosen, annotations)
    frames_root = (Path(frames) if frames else files.frames).absolute()
    needed = look_for_frames or copy_frames
    left_out = LeftOutList(skip_broken)
    with prepared_folder(output, "mmscan") as folder:
        copies = folder / COPIED_FRAMES if copy_frames else None
        made = {}
        for split in chosen:
            samples = SampleList(files.samples, split, ratio, token_flatten)
            handling = Frames(frames_root, needed, copies)
            maker = SplitMaker(
                folder=folder,
                files=files,
                samples=samples,
                frames=handling,
                left_out=left_out,
                progress=progress,
            )
            made[split] = maker.make()
        manifest = Manifest(
            benchmark="mmscan",
            release=f"MMScan beta release, boxes of embodiedscan-{annotations}",
            source=files.root.resolve().name,
            splits={split: report.rows for split, report in made.items()},
            left_out=left_out.entries,
            left_out_counts={split: report.left_out for split, report in made.items()},
            details={
                "ratio": ratio,
                "token_flatten": token_flatten,
                # Without either, frames were not looked for.
                "images": str(frames_root) if needed and not copy_frames else None,
                "copied_frames": copy_frames,
                "scans": {split: report.scans for split, report in made.items()},
            },
        )
        write_manifest(folder, manifest)
    return manifest


def _check_choices(splits: Sequence[str], ratio: float | None, annotations: str) -> None:
    unknown = [split for split in splits if split not in SPLITS]
    if unknown or not splits:
        raise ValueError(f"mmscan has the splits {', '.join(SPLITS)}, not {', '.join(unknown)}")
    if ratio is not None and not 0 < ratio <= 1:
        raise ValueError(f"a ratio is above 0 and at most 1, not {ratio}")
    if annotations not in ANNOTATIONS:
        raise ValueError(f"annotations are {' or '.join(ANNOTATIONS)}, not {annotations}")
