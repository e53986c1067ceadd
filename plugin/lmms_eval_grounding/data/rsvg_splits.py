"""The split files of DIOR-RSVG: which object belongs to which split, and which release it is.

A split file holds one number per line: the position of an object, counted from 0 over all
objects of the sorted annotation files (ZhanYang-nwpu/RSVG-pytorch@fca7865:data_loader.py). Two
releases of the files are in use, and numbers from one must not be compared with the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import SourceError
from .manifest import LeftOutList

SPLITS = ("train", "val", "test")

# Both cover the objects 0 to 38,319, each once: ZhanYang-nwpu/RSVG-pytorch, DIOR_RSVG/*.txt, and
# RSVGD/*.txt at commit 459c21b.
RELEASES: Mapping[str, Mapping[str, int]] = {
    "2023 split": {"train": 26991, "val": 3829, "test": 7500},
    "first release": {"train": 15328, "val": 3832, "test": 19160},
}
RELEASE_OBJECTS = 38320

_INDEX = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class SplitFiles:
    """What the split files say.

    Attributes
    ----------
    indices
        The objects of each split that has a file with numbers, ascending.
    absent
        The splits without, each with the reason.
    release
        A key of ``RELEASES``, or ``unknown release`` with the three counts.
    """

    indices: dict[str, list[int]]
    absent: dict[str, str]
    release: str


def read_splits(root: Path, objects: int, left_out: LeftOutList) -> SplitFiles:
    """Read ``train.txt``, ``val.txt`` and ``test.txt``, as far as they exist.

    Parameters
    ----------
    root
        The folder of the release.
    objects
        How many objects the annotation files hold.
    left_out
        Receives the lines that name no object or one that is named before.

    Raises
    ------
    SourceError
        When two splits share an object, or the files are of a known release and the number of
        objects is not: then nothing tells which object a number means.
    """
    indices: dict[str, list[int]] = {}
    absent: dict[str, str] = {}
    listed = dict.fromkeys(SPLITS, 0)
    present: dict[str, list[str]] = {}
    for split in SPLITS:
        path = root / f"{split}.txt"
        if not path.exists():
            absent[split] = f"there is no {path.name}"
            continue
        lines = _lines(path)
        listed[split] = len(lines)
        if lines:
            present[split] = lines
        else:
            absent[split] = f"{path.name} is empty"
    release = _release(listed)
    if release in RELEASES and objects != RELEASE_OBJECTS:
        raise SourceError(
            f"{root.name}: the split files are those of the {release}, made for "
            f"{RELEASE_OBJECTS:,} objects, but Annotations holds {objects:,}: XML files are "
            "missing or extra, so the numbers would mean other objects"
        )
    owners: dict[int, str] = {}
    for split, lines in present.items():
        indices[split] = _indices(split, lines, objects, owners, left_out)
    return SplitFiles(indices, absent, release)


def _lines(path: Path) -> list[str]:
    try:
        # Anything but digits is reported with its line, so no byte may stop the reading.
        return path.read_text(encoding="ascii", errors="replace").rstrip().splitlines()
    except OSError as fault:
        raise SourceError(f"{path.name}: cannot be read ({fault.strerror})") from fault


def _release(listed: Mapping[str, int]) -> str:
    """Name the release by the counts of the files that are there."""
    there = {split: count for split, count in listed.items() if count}
    for name, counts in RELEASES.items():
        if there and there.items() <= counts.items():
            return name
    return f"unknown release ({'/'.join(f'{listed[split]:,}' for split in SPLITS)})"


def _indices(
    split: str, lines: list[str], objects: int, owners: dict[int, str], left_out: LeftOutList
) -> list[int]:
    found: set[int] = set()
    file = f"{split}.txt"
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        place = f"{file} line {number}"
        if not _INDEX.fullmatch(text):
            fault = SourceError(f"{place}: {text[:40]!r} is not the number of an object")
            left_out.add(fault, split=split, row_id="", file=file)
            continue
        index = int(text)
        if index in found:
            fault = SourceError(f"{place}: object {index} is named a second time")
            left_out.add(fault, split=split, row_id=text, file=file)
        elif index >= objects:
            fault = SourceError(
                f"{place}: there is no object {index}; Annotations holds {objects:,} objects, "
                "counted from 0"
            )
            left_out.add(fault, split=split, row_id=text, file=file)
        elif index in owners:
            raise SourceError(
                f"{place}: object {index} is in {owners[index]} too; splits share no object, so "
                "these files are not of one release"
            )
        else:
            found.add(index)
            owners[index] = place
    return sorted(found)
