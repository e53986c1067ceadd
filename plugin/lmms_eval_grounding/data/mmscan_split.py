"""One split of MMScan: its table of scans and its rows."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from .errors import SourceError
from .manifest import LeftOutList
from .mmscan_annotations import NO_VOLUME, Annotations, read_annotations, read_scan
from .mmscan_choice import SampleList, unique_id
from .mmscan_layout import ReleaseFiles
from .mmscan_sample import features, row_of
from .mmscan_scan import Scan
from .mmscan_table import digest_of, scans_file, write_scans
from .parquet import Row, write_split

SCAN_LEFT_OUT = "samples of a scan that was left out"
# Below the folder that is made: the samples that were left out and counted, one a line.
LEFT_OUT = Path("data", "left_out.jsonl")


@dataclass(frozen=True)
class Frames:
    """What to do with the frames.

    Attributes
    ----------
    root
        The folder that their paths start from.
    needed
        Whether each must be there.
    copies
        The folder to copy them to; None leaves them where they are.
    """

    root: Path
    needed: bool
    copies: Path | None


@dataclass(frozen=True)
class SplitReport:
    """What was made of a split, as it stands in the manifest.

    Attributes
    ----------
    rows
        How many samples were taken.
    left_out
        How many samples, frames and objects were left out, by reason.
    scans
        Digest of the table, and how many scans, frames and objects it holds.
    """

    rows: int
    left_out: dict[str, int]
    scans: dict[str, Any]


class SplitMaker:
    """Makes one split in a folder that is being prepared.

    Samples are read twice: first for the scans they need, then for the rows, since a row names its
    table by the digest of the contents.
    """

    def __init__(
        self,
        *,
        folder: Path,
        files: ReleaseFiles,
        samples: SampleList,
        frames: Frames,
        left_out: LeftOutList,
        progress: bool,
    ) -> None:
        self._folder = folder
        self._files = files
        self._samples = samples
        self._split = samples.split
        self._frames = frames
        self._left_out = left_out
        self._progress = progress
        self._reasons: Counter[str] = Counter()
        self._scans_gone: set[str] = set()

    def make(self) -> SplitReport:
        """Write the table and the rows.

        Raises
        ------
        SourceError
            For a source that is broken, or when no sample is left.
        """
        annotations = self._annotations()
        table = scans_file(self._folder, self._split)
        totals: Counter[str] = Counter()
        write_scans(table, self._scans(annotations, totals))
        annotations.scans.clear()  # the bulk of the memory, and done with
        digest = digest_of(table)
        rows = write_split(self._folder, self._split, features(), self._rows(annotations, digest))
        if not rows:
            raise SourceError(self._nothing_left(annotations))
        return SplitReport(rows, dict(sorted(self._reasons.items())), {"digest": digest, **totals})

    def _annotations(self) -> Annotations:
        path = self._files.scans[self._split]
        try:
            return read_annotations(path, progress=self._progress)
        except SourceError as fault:
            raise SourceError(f"{self._files.shown(path)}: {fault}") from fault

    def _scans(self, annotations: Annotations, totals: Counter[str]) -> Iterator[Scan]:
        """Yield the scans that samples need, in the order of the pickle."""
        # What is broken is noted at the second reading; here it only stops the conversion.
        first = self._samples.judged(annotations.objects, LeftOutList(self._left_out.allowed))
        bar = tqdm(first, desc=f"{self._split}: reading", unit="sample", disable=not self._progress)
        wanted = {sample.scan_id for _, sample, reason in bar if not reason}
        chosen = [scan_id for scan_id in annotations.scans if scan_id in wanted]
        for scan_id in tqdm(chosen, f"{self._split}: scans", disable=not self._progress):
            try:
                scan = self._scan(annotations, scan_id)
            except SourceError as fault:
                self._note(scan_id, fault)
                self._scans_gone.add(scan_id)
                continue
            totals.update(scans=1, frames=len(scan.frames), objects=len(scan.object_ids))
            self._count(NO_VOLUME, len(annotations.objects[scan_id].without_volume))
            yield scan

    def _scan(self, annotations: Annotations, scan_id: str) -> Scan:
        lost: Counter[str] = Counter()
        entry, objects = annotations.scans[scan_id], annotations.objects[scan_id]
        scan = read_scan(entry, objects, self._frames.root, lost)
        if not scan.frames:
            raise SourceError("has no frame with a rigid pose")
        if self._frames.needed:
            scan = self._with_files(scan)
        if self._frames.copies:
            _copy(scan, self._frames.copies)
        for reason, count in lost.items():
            self._count(reason, count)
        return scan

    def _with_files(self, scan: Scan) -> Scan:
        """Return a scan without the frames that have no file, where these may be left out."""
        there = [scan.frame_file(number).is_file() for number in range(len(scan.frames))]
        if all(there):
            return scan
        fault = SourceError(
            f"{there.count(False)} of {len(there)} frames are not below {scan.frames_root}, the "
            f"first {scan.frames[there.index(False)]}; --frames names their folder, --no-frames "
            "makes a set for prompts that show none"
        )
        if not self._left_out.allowed or not any(there):
            raise fault
        self._note(scan.scan_id, fault)
        kept = [number for number, found in enumerate(there) if found]
        return replace(
            scan,
            frames=[scan.frames[number] for number in kept],
            poses=scan.poses[kept],
            intrinsics=scan.intrinsics[kept],
        )

    def _note(self, scan_id: str, fault: SourceError) -> None:
        """Note what is wrong with a scan, or stop there."""
        file = self._files.shown(self._files.scans[self._split])
        placed = SourceError(f"{file}, scan {scan_id}: {fault}")
        self._left_out.add(placed, split=self._split, row_id=scan_id, file=file)

    def _rows(self, annotations: Annotations, digest: str) -> Iterator[Row]:
        judged = self._samples.judged(annotations.objects, self._left_out)
        bar = tqdm(judged, desc=f"{self._split}: rows", unit="sample", disable=not self._progress)
        seen: dict[str, int] = {}
        with (self._folder / LEFT_OUT).open("a", encoding="utf-8", newline="\n") as listing:
            for index, sample, fault in bar:
                row_id = unique_id(sample.id, seen)
                gone = sample.scan_id in self._scans_gone
                reason = fault or (SCAN_LEFT_OUT if gone else "")
                if reason:
                    self._count(reason, 1)
                    line = {"split": self._split, "index": index, "id": row_id, "reason": reason}
                    listing.write(json.dumps(line, ensure_ascii=False) + "\n")
                    continue
                objects = annotations.objects[sample.scan_id]
                yield row_of(sample, objects, row_id=row_id, index=index, scans=digest)

    def _count(self, reason: str, count: int) -> None:
        if count:
            self._reasons[reason] += count

    def _nothing_left(self, annotations: Annotations) -> str:
        counts = "; ".join(f"{count:,} {reason}" for reason, count in self._reasons.items())
        some = ", ".join(list(annotations.objects)[:2]) or "none"
        return (
            f"{self._split}: no sample is left ({counts or 'there are none'}); scans of the "
            f"annotations are named like {some}"
        )


def _copy(scan: Scan, folder: Path) -> None:
    for number, frame in enumerate(scan.frames):
        copy = folder / frame
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(scan.frame_file(number), copy)
