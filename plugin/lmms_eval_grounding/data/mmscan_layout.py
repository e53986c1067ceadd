"""Where the official release of MMScan keeps what; two releases differ in the name of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .errors import SourceError

# val is the split that papers report; the targets of test are not public.
SPLITS = ("val", "train")
ANNOTATIONS = ("v1", "v2")

SAMPLES = Path("MMScan-beta-release", "MMScan_samples", "MMScan_VG.json")
# The devkit of December 2024, and that of November 2024 (OpenRobotLab/EmbodiedScan, mmscan).
_SCANS = ("embodiedscan_split", "embodiedscan-split")

LAYOUT = (
    "an mmscan_data folder holds MMScan-beta-release/MMScan_samples/MMScan_VG.json, "
    "embodiedscan_split/embodiedscan-v1/embodiedscan_infos_val.pkl (or embodiedscan-split/...) and "
    "the frames below embodiedscan_split/data"
)


@dataclass(frozen=True)
class ReleaseFiles:
    """The files of a release.

    Attributes
    ----------
    root
        The folder of the release, ``mmscan_data``.
    samples
        The file with the samples of all splits.
    scans
        For each split, the pickle with its scans.
    frames
        The folder that paths of frames start from.
    """

    root: Path
    samples: Path
    scans: dict[str, Path]
    frames: Path

    def shown(self, path: Path) -> str:
        """Return a path as messages name it: from the release folder, where it lies there."""
        return (path.relative_to(self.root) if path.is_relative_to(self.root) else path).as_posix()


def find_files(root: Path, splits: tuple[str, ...], annotations: str) -> ReleaseFiles:
    """Find the files of a release.

    Parameters
    ----------
    root
        The folder ``mmscan_data``.
    splits
        The splits that are wanted.
    annotations
        ``v1`` or ``v2``: which EmbodiedScan annotations the boxes come from.

    Raises
    ------
    SourceError
        When a file is missing, or both releases are there.
    """
    if not root.is_dir():
        raise SourceError(f"{root}: no such folder; {LAYOUT}")
    if not (root / SAMPLES).is_file():
        raise SourceError(f"{root}: no {SAMPLES.as_posix()}; {LAYOUT}")
    names = [name for name in _SCANS if (root / name).is_dir()]
    if len(names) != 1:
        found = " and ".join(names) if names else f"neither {' nor '.join(_SCANS)}"
        raise SourceError(f"{root}: holds {found}, one is needed; {LAYOUT}")
    (name,) = names
    scans = {}
    for split in splits:
        path = root / name / f"embodiedscan-{annotations}" / f"embodiedscan_infos_{split}.pkl"
        if not path.is_file():
            raise SourceError(
                f"{root}: no {path.relative_to(root).as_posix()}{_other(path)}; {LAYOUT}"
            )
        scans[split] = path
    return ReleaseFiles(root, root / SAMPLES, scans, root / name / "data")


def _other(path: Path) -> str:
    """Say which annotations are there instead; their boxes may differ, so none is taken alone."""
    there = [
        version
        for version in ANNOTATIONS
        if (path.parents[1] / f"embodiedscan-{version}" / path.name).is_file()
    ]
    return (
        f" (only the annotations {there[0]} are there; --annotations takes them)" if there else ""
    )
