"""Where the files of gRefCOCO lie: evaluators share the files and differ in the folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .errors import SourceError

REFERENCES = "grefs(unc).json"
INSTANCES = "instances.json"
_PICKLED = "grefs(unc).p"

# Every split takes its images from COCO train2014. The folders are those of henghuiding/ReLA,
# LeapLabTHU/GSVA (as LISA's) and mc-lan/Text4Seg, in this order, and that of COCO itself.
_IMAGES = (
    "images/train2014",
    "images/mscoco/images/train2014",
    "images/coco_2014/train2014",
    "train2014",
)

LAYOUT = (
    f"a gRefCOCO folder holds {REFERENCES} and {INSTANCES} (or has them in a folder grefcoco) and "
    "the images of COCO in images/train2014"
)


@dataclass(frozen=True)
class SourceFiles:
    """The files of a release.

    Attributes
    ----------
    references
        ``grefs(unc).json``.
    instances
        ``instances.json``.
    images
        The folder ``train2014``.
    """

    references: Path
    instances: Path
    images: Path


def find_files(root: Path, images: Path | None = None) -> SourceFiles:
    """Find the files of a release.

    Parameters
    ----------
    root
        The folder that holds the two JSON files, or its parent.
    images
        The folder of the images, where it lies elsewhere.

    Raises
    ------
    SourceError
        When a file or folder is missing, or the references are there as a pickle only.
    """
    if not root.is_dir():
        raise SourceError(f"{root}: no such folder; {LAYOUT}")
    inner = root / "grefcoco"
    folder = inner if inner.is_dir() and not (root / REFERENCES).exists() else root
    if not (folder / REFERENCES).exists() and (folder / _PICKLED).exists():
        raise SourceError(
            f"{folder / _PICKLED}: not read, since unpickling a file runs the code in it; put "
            f"{REFERENCES} of the present release beside it"
        )
    for name in (REFERENCES, INSTANCES):
        if not (folder / name).is_file():
            raise SourceError(f"{folder / name}: no such file; {LAYOUT}")
    # In ReLA's tree the images lie beside the folder grefcoco, not in it.
    bases = (folder, folder.parent) if folder.name == "grefcoco" else (folder,)
    choices = [images] if images else [base / name for base in bases for name in _IMAGES]
    found = next((choice for choice in choices if choice.is_dir()), None)
    if found is None:
        raise SourceError(f"{choices[0]}: no such folder; {LAYOUT}")
    return SourceFiles(folder / REFERENCES, folder / INSTANCES, found.absolute())
