"""What a prepared folder says of itself: ``grounding.json``, written last, read first."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import __version__
from .errors import DataError, SourceError

MANIFEST = "grounding.json"


@dataclass(frozen=True)
class LeftOut:
    """One thing of the source that was left out, and why.

    Attributes
    ----------
    split
        The split it belongs to.
    id
        Its row id, or an empty text where the source gives none (a line that is no number).
    file
        The file of the source that names it.
    reason
        One sentence.
    """

    split: str
    id: str
    file: str
    reason: str


class LeftOutList:
    """The things left out so far; when nothing may be left out, the first fault is raised.

    Parameters
    ----------
    allowed
        Whether to go on after a fault.
    """

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed
        self.entries: list[LeftOut] = []

    def add(self, fault: SourceError, *, split: str, row_id: str, file: str) -> None:
        """Note one fault, or raise it.

        Raises
        ------
        SourceError
            The fault with its remedy, when nothing may be left out.
        """
        if not self.allowed:
            raise SourceError(f"{fault}; --skip-broken leaves it out and goes on") from fault
        self.entries.append(LeftOut(split, row_id, file, str(fault)))


@dataclass(frozen=True)
class Manifest:
    """The contents of ``grounding.json``.

    Attributes
    ----------
    benchmark
        ``rsvg``, ``gres``, ``mmscan`` or ``refsegrs``.
    release
        The name of the official release, by the converter of the benchmark.
    source
        Name of the source folder, without its path.
    splits
        Rows per split.
    not_made
        Splits that were asked for and not made, each with the reason.
    left_out
        What was left out of the splits that were made, one by one.
    left_out_counts
        What was left out and is counted only: per split, how many by reason (a plural noun).
    details
        What the benchmark alone has to say, by its converter.
    version
        Version of this package.
    """

    benchmark: str
    release: str
    source: str
    splits: dict[str, int]
    not_made: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_counts: dict[str, dict[str, int]] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    version: str = __version__

    def sentences(self) -> list[str]:
        """Return what was made and what was not, one line each, for a person to read."""
        return [
            f"{self.benchmark}: {self.release}, from {self.source}",
            *(f"{split}: {rows:,} row{'s' * (rows != 1)}" for split, rows in self.splits.items()),
            *(f"{split}: not made, {reason}" for split, reason in self.not_made.items()),
            *(
                f"left out of {split}: {count:,} {reason}"
                for split, counts in self.left_out_counts.items()
                for reason, count in counts.items()
            ),
            *(f"left out of {entry.split}: {entry.reason}" for entry in self.left_out),
        ]


def split_file(folder: Path, split: str) -> Path:
    """Return the path of the one parquet file of a split."""
    return folder / "data" / f"{split}-00000-of-00001.parquet"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``grounding.json``: no times and no paths, so that equal data give equal bytes."""
    text = json.dumps(asdict(manifest), indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8", newline="\n")


def read_manifest(folder: Path) -> Manifest:
    """Read ``grounding.json``.

    Raises
    ------
    DataError
        When it is missing or was not written by a converter of this package.
    """
    path = folder / MANIFEST
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        left_out = [LeftOut(**entry) for entry in fields.pop("left_out")]
        manifest = Manifest(**fields, left_out=left_out)
        if not all(type(rows) is int for rows in manifest.splits.values()):
            raise TypeError("rows of a split are counted in whole numbers")
    except FileNotFoundError:
        raise DataError(f"{path}: missing, so this folder holds no finished conversion") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
        raise DataError(f"{path}: not a manifest of this package ({fault!r})") from fault
    return manifest


def is_finished(folder: Path, benchmark: str) -> bool:
    """Return whether the folder holds a finished conversion of the benchmark, all files there."""
    try:
        manifest = read_manifest(folder)
    except DataError:
        return False
    return manifest.benchmark == benchmark and all(
        split_file(folder, split).is_file() for split in manifest.splits
    )
