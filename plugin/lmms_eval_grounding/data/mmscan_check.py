"""Whether a prepared MMScan folder is what its manifest says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from PIL import Image

from ..geometry.boxes3d import is_rigid, is_valid
from ..metrics.mmscan_record import GROUPS
from .check import problems_of_folder
from .errors import DataError
from .manifest import MANIFEST, Manifest, read_manifest
from .mmscan_sample import features
from .mmscan_scan import Scan
from .mmscan_table import ScanTable, digest_of, frames_root, scans_file
from .parquet import Row

# By scan id, then by object id: the box.
Boxes = Mapping[str, Mapping[int, list[float]]]


def check(folder: str | Path, all_frames: bool = False) -> list[str]:
    """Return what is wrong with a prepared folder; an empty list when it is sound.

    Looked at are the counts against the manifest, the tables of scans (digest, unlike ids, boxes
    finite with volume, poses rigid, intrinsics) and the rows (unlike ids, known sub-class, prompt
    not blank, every target in its scan, with the same box). Every frame must have a file; the first
    of each scan is decoded. A set made without looking for frames is not asked for them.

    Parameters
    ----------
    folder
        A folder made by ``prepare``.
    all_frames
        Decode every frame.

    Returns
    -------
    list of str
        One sentence per problem, each with the file and, where there is one, the row or scan.
    """
    return list(_Check(Path(folder), all_frames).problems())


class _Check:
    def __init__(self, folder: Path, all_frames: bool) -> None:
        self._folder = folder
        self._all_frames = all_frames
        self._boxes: dict[str, Boxes] = {}  # by digest

    def problems(self) -> Iterator[str]:
        try:
            manifest = read_manifest(self._folder)
        except DataError as fault:
            yield str(fault)
            return
        # The tables first: the rows are compared with them.
        yield from self._problems_of_tables(manifest)
        yield from problems_of_folder(
            self._folder, "mmscan", features(), self._problems_of_row, lambda _: ()
        )

    def _problems_of_tables(self, manifest: Manifest) -> Iterator[str]:
        try:
            described = {split: manifest.details["scans"][split] for split in manifest.splits}
            root = frames_root(self._folder, manifest.details)
            looked_for = bool(manifest.details["images"] or manifest.details["copied_frames"])
            counts = {split: Counter(entry) for split, entry in described.items()}
            digests = {split: str(entry["digest"]) for split, entry in described.items()}
        except (KeyError, TypeError) as fault:
            yield f"{self._folder / MANIFEST}: its details are not those of mmscan ({fault!r})"
            return
        for split, digest in digests.items():
            path = scans_file(self._folder, split)
            try:
                table = ScanTable(path, root)
                if digest_of(path) != digest:
                    yield f"{path}: its contents are not those that {MANIFEST} names"
                yield from self._problems_of_table(table, counts[split], digest, looked_for)
            except (DataError, OSError) as fault:
                yield str(fault)

    def _problems_of_table(
        self, table: ScanTable, described: Counter[str], digest: str, frames: bool
    ) -> Iterator[str]:
        found: Counter[str] = Counter()
        boxes: dict[str, dict[int, list[float]]] = {}
        for scan in table:
            found.update(scans=1, frames=len(scan.frames), objects=len(scan.object_ids))
            boxes[scan.scan_id] = dict(zip(scan.object_ids, scan.boxes.tolist(), strict=False))
            for problem in _problems_of_scan(scan, frames, self._all_frames):
                yield f"{table.path}, scan {scan.scan_id}: {problem}"
        for name, count in found.items():
            if described[name] != count:
                yield f"{table.path}: holds {count:,} {name}, not {described[name]:,}"
        self._boxes[digest] = boxes

    def _problems_of_row(self, row: Row) -> Iterator[str]:
        if not row["expression"].strip():
            yield "the expression is empty"
        if row["sub_class"] not in GROUPS:
            yield f"the sub_class {row['sub_class']!r} is not known"
        if row["scans"] not in self._boxes:
            yield f"it names the scans {row['scans']!r}, which are not those of the folder"
            return
        boxes = self._boxes[row["scans"]].get(row["scan_id"])
        if boxes is None:
            yield f"the scan {row['scan_id']!r} is not in the table"
            return
        if not row["target_id"] or not (
            len(row["target_id"]) == len(row["target"]) == len(row["targets"])
        ):
            yield "target_id, target and targets are not of one length above 0"
            return
        for object_id, box in zip(row["target_id"], row["targets"], strict=True):
            if object_id not in boxes:
                yield f"the target {object_id} is not in the scan"
            elif boxes[object_id] != box:
                yield f"the box of target {object_id} is not that of the scan"


def _problems_of_scan(scan: Scan, frames: bool, all_frames: bool) -> Iterator[str]:
    if not len(scan.frames) == len(scan.poses) == len(scan.intrinsics) > 0:
        yield "has no frames, or not one pose and one camera for each"
        return
    if not len(scan.object_ids) == len(scan.categories) == len(scan.boxes):
        yield "has not one category and one box for each object"
    if len(set(scan.object_ids)) != len(scan.object_ids):
        yield "has two objects with the same id"
    for object_id, sound in zip(scan.object_ids, is_valid(scan.boxes), strict=False):
        if not sound:
            yield f"the box of object {object_id} is not finite or has no volume"
    for frame, sound in zip(scan.frames, is_rigid(scan.poses), strict=True):
        if not sound:
            yield f"the pose of frame {frame} is not rigid"
    for frame, camera in zip(scan.frames, scan.intrinsics.tolist(), strict=True):
        if not all(map(math.isfinite, camera)) or min(camera[:2]) <= 0:
            yield f"the camera of frame {frame} has the intrinsics {camera}"
    if frames:
        yield from _problems_of_frames(scan, all_frames)


def _problems_of_frames(scan: Scan, all_frames: bool) -> Iterator[str]:
    decoded = range(len(scan.frames)) if all_frames else range(1)
    for number, frame in enumerate(scan.frames):
        path = scan.frame_file(number)
        if not path.is_file():
            yield f"the frame {frame} has no file below {scan.frames_root}"
        elif number in decoded:
            try:
                with Image.open(path) as image:
                    image.load()
            except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as fault:
                yield f"the frame {path} cannot be decoded ({fault})"
