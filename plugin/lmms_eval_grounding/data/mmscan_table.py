"""The scans of a prepared split, ``data/scans/<split>.parquet``: one row group a scan.

Two hundred thousand samples share four thousand scans, so scans have a table of their own. A scan
is found by the statistics of its row group and read alone, in less than a millisecond.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import DataError
from .mmscan_scan import Floats, Scan

SCHEMA = pa.schema(
    [
        ("scan_id", pa.string()),
        ("frames", pa.list_(pa.string())),
        ("poses", pa.list_(pa.float64())),  # 16 a frame, row by row
        ("intrinsics", pa.list_(pa.float64())),  # 4 a frame
        ("object_ids", pa.list_(pa.int64())),
        ("categories", pa.list_(pa.string())),
        ("boxes", pa.list_(pa.float64())),  # 9 an object
    ]
)

# Below a prepared folder: the frames, where they were copied.
COPIED_FRAMES = Path("data", "frames")
# Scans in memory at a time, about 60 kB each with 170 frames.
_CACHED_SCANS = 256


def scans_file(folder: Path, split: str) -> Path:
    """Return the path of the table of a split."""
    return folder / "data" / "scans" / f"{split}.parquet"


def frames_root(folder: Path, details: Mapping[str, Any]) -> Path:
    """Return the folder that paths of frames start from, by the details of the manifest."""
    return Path(details["images"] or folder / COPIED_FRAMES)


def write_scans(path: Path, scans: Iterable[Scan]) -> None:
    """Write a table, scan by scan; equal scans give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(
        path,
        SCHEMA,
        compression="zstd",
        use_dictionary=["intrinsics", "categories"],
        write_statistics=["scan_id"],
    ) as writer:
        for scan in scans:
            row = (
                scan.scan_id,
                scan.frames,
                scan.poses.ravel(),
                scan.intrinsics.ravel(),
                scan.object_ids,
                scan.categories,
                scan.boxes.ravel(),
            )
            columns = [
                pa.array([value], type=field.type) for value, field in zip(row, SCHEMA, strict=True)
            ]
            writer.write_table(pa.table(columns, schema=SCHEMA))


def digest_of(path: Path) -> str:
    """Return the name of a table's contents, by which samples refer to it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()[:16]


class ScanTable:
    """The scans of one file; may be used by several threads.

    Parameters
    ----------
    path
        A file made by `write_scans`.
    frames_root
        The folder that paths of frames start from.

    Raises
    ------
    DataError
        When the file cannot be read or is no such table.
    """

    def __init__(self, path: Path, frames_root: Path) -> None:
        self.path = path
        self._frames_root = frames_root
        self._lock = threading.Lock()
        try:
            self._file = pq.ParquetFile(path)
            if not self._file.schema_arrow.equals(SCHEMA):
                raise DataError(f"{path}: its columns are not ({', '.join(SCHEMA.names)})")
            metadata = self._file.metadata
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            self._places = {
                group.column(0).statistics.min: place for place, group in enumerate(groups)
            }
        except (OSError, pa.ArrowException, AttributeError) as fault:
            raise DataError(f"{path}: cannot be read ({fault})") from fault
        self.scan = lru_cache(_CACHED_SCANS)(self._read)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Scan]:
        return map(self._read, self._places)

    def _read(self, scan_id: str) -> Scan:
        """Return a scan by its id; ``scan`` is the same and remembers some.

        Raises
        ------
        DataError
            When there is no such scan, or the file cannot be read.
        """
        place = self._places.get(scan_id)
        if place is None:
            raise DataError(f"{self.path}: has no scan {scan_id}")
        try:
            with self._lock:
                group = self._file.read_row_group(place, use_threads=False)
            values = [column.chunk(0).values for column in group.columns[1:]]
        except (OSError, pa.ArrowException) as fault:
            raise DataError(f"{self.path}: scan {scan_id} cannot be read ({fault})") from fault
        frames, poses, intrinsics, object_ids, categories, boxes = values
        return Scan(
            scan_id=scan_id,
            frames_root=self._frames_root,
            frames=frames.to_pylist(),
            poses=_rows(poses, 4, 4),
            intrinsics=_rows(intrinsics, 4),
            object_ids=object_ids.to_pylist(),
            categories=categories.to_pylist(),
            boxes=_rows(boxes, 9),
        )


def _rows(values: pa.Array, *shape: int) -> Floats:
    rows: Floats = values.to_numpy().reshape(-1, *shape)
    return rows
