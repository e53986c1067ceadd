"""The scan that a document speaks of, and its frames."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from .errors import DataError, MissingData
from .location import data_root, dataset_path
from .manifest import read_manifest
from .mini import mini_path
from .mmscan_scan import Scan
from .mmscan_table import ScanTable, frames_root, scans_file


def scan_of(doc: Mapping[str, Any]) -> Scan:
    """Return the scan of a document.

    The column ``scans`` of a document names the table its split was made with. The table is looked
    for where the tasks find their data: the folder of ``mmscan``, then that of the mini set. So
    documents of both may be scored in one run, and a document never meets the scans of another set.

    Parameters
    ----------
    doc
        A row of a prepared split; its columns ``scans`` and ``scan_id`` are read.

    Raises
    ------
    MissingData
        When that table is nowhere.
    DataError
        When it cannot be read or lacks the scan.
    """
    return scan_table(doc["scans"]).scan(doc["scan_id"])


def scan_table(digest: str) -> ScanTable:
    """Return the table with this digest; see `scan_of`."""
    settings = str(data_root()), os.environ.get("GROUNDING_DATA_MMSCAN", "")
    return _scan_table(digest, settings)


def open_tables(folder: Path) -> dict[str, ScanTable]:
    """Return the table of each split of a prepared folder.

    Raises
    ------
    DataError
        When the folder is not prepared, or a table cannot be read.
    """
    manifest = read_manifest(folder)
    root = frames_root(folder, manifest.details)
    return {split: ScanTable(scans_file(folder, split), root) for split in manifest.splits}


def frame_image(scan: Scan, frame: int) -> Image.Image:
    """Return a frame as an RGB image.

    Raises
    ------
    MissingData
        When the file is missing or no image.
    """
    path = scan.frame_file(frame)
    try:
        with Image.open(path) as file:
            image: Image.Image = file.convert("RGB")
    except (OSError, ValueError, SyntaxError) as fault:
        raise MissingData(_no_frame(path, fault)) from fault
    return image


@lru_cache(2**14)
def image_size(path: Path) -> tuple[int, int]:
    """Return width and height of a frame in pixels, from the head of its file.

    Raises
    ------
    MissingData
        When the file is missing or no image.
    """
    try:
        with Image.open(path) as file:
            width, height = file.size
    except (OSError, ValueError, SyntaxError) as fault:
        raise MissingData(_no_frame(path, fault)) from fault
    return width, height


def _no_frame(path: Path, fault: Exception) -> str:
    return (
        f"mmscan: the frame {path} cannot be read ({fault}); frames stay where "
        "they were when the data were prepared: put them back, or prepare again with --frames"
    )


@lru_cache(8)
def _scan_table(digest: str, _settings: tuple[str, str]) -> ScanTable:
    seen = []
    for folder in _folders():
        seen.append(str(folder))
        try:
            digests = read_manifest(folder).details["scans"]
        except (DataError, KeyError):
            continue
        for split, described in digests.items():
            if described["digest"] == digest:
                return open_tables(folder)[split]
    raise MissingData(
        f"mmscan: no scans {digest}, which the samples name, in {' or '.join(seen)}; if the data "
        "lie elsewhere, set GROUNDING_DATA_MMSCAN to their folder"
    )


def _folders() -> Iterator[Path]:
    """Give the folders that may hold the scans; the mini set is not made unless it is reached."""
    with suppress(MissingData):
        yield Path(dataset_path("mmscan"))
    yield Path(mini_path("mmscan"))
