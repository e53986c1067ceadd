"""Which samples of MMScan visual grounding are taken, and why others are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from .errors import SourceError
from .manifest import LeftOutList
from .mmscan_annotations import Objects
from .mmscan_json import samples_of
from .mmscan_sample import Sample, read_sample

NO_TARGET = "samples without a target"
TARGET_COUNT = "samples with another number of target names than of target ids"
NO_SCAN = "samples of a scan that the annotations lack"
NO_OBJECT = "samples with {} that is not in the scan"
NO_TARGET_BOX = "samples with a target whose box is not finite or has no volume"
FLATTENED = "samples that the devkit's token flattening deletes"

Item = TypeVar("Item")


@dataclass(frozen=True)
class SampleList:
    """The samples of one split that are chosen; each pass reads the file anew.

    Attributes
    ----------
    path
        ``MMScan_VG.json``.
    split
        Name of the split.
    ratio
        See `every_nth`.
    token_flatten
        Whether to do as the devkit does by default; see `survivors_of_flattening`.
    """

    path: Path
    split: str
    ratio: float
    token_flatten: bool

    def judged(
        self, objects: Mapping[str, Objects], broken: LeftOutList
    ) -> Iterator[tuple[int, Sample, str]]:
        """Yield each sample with its index in the release and why it is left out, if it is.

        Parameters
        ----------
        objects
            The objects of each scan.
        broken
            Receives the samples that are not as in the release; they are not yielded.

        Raises
        ------
        SourceError
            When the file is broken, or a sample is and ``broken`` may hold none.
        """
        survivors = None
        if self.token_flatten:
            unnoted = LeftOutList(allowed=True)
            survivors = survivors_of_flattening(sample for _, sample in self._samples(unnoted))
        for position, (index, sample) in enumerate(self._samples(broken)):
            if sample is None:
                continue
            if survivors is None:
                yield index, sample, reason_to_leave_out(sample, objects)
            elif position in survivors:
                flat = flattened(sample)
                yield index, flat, reason_to_leave_out(flat, objects)
            else:
                yield index, sample, FLATTENED

    def _samples(self, broken: LeftOutList) -> Iterator[tuple[int, Sample | None]]:
        for index, entry in every_nth(enumerate(samples_of(self.path, self.split)), self.ratio):
            try:
                sample = read_sample(entry)
            except SourceError as fault:
                name = str(entry.get("ID", "")) if isinstance(entry, dict) else ""
                place = f"{self.path.name}, {self.split} sample {index}"
                placed = SourceError(f"{place}{name and f' ({name:.120})'}: {fault}")
                broken.add(placed, split=self.split, row_id=name, file=self.path.name)
                yield index, None
            else:
                yield index, sample


def reason_to_leave_out(sample: Sample, objects: Mapping[str, Objects]) -> str:
    """Return why a sample is left out, as the official loader does, or an empty text.

    The order of the reasons is fixed, so each sample is counted once
    (``OpenRobotLab/EmbodiedScan@cc3842a:mmscan/mmscan.py``, ``__check_lang_anno__``).
    """
    if not sample.target_ids:
        return NO_TARGET
    if len(sample.target_ids) != len(sample.target_names):
        return TARGET_COUNT
    there = objects.get(sample.scan_id)
    if there is None:
        return NO_SCAN
    for name, ids in (
        ("a target", sample.target_ids),
        ("an anchor", sample.anchor_ids),
        ("a distractor", sample.distractor_ids),
    ):
        if not all(object_id in there.categories for object_id in ids):
            return NO_OBJECT.format(name)
    if not there.without_volume.isdisjoint(sample.target_ids):
        return NO_TARGET_BOX
    return ""


def every_nth(items: Iterable[Item], ratio: float) -> Iterator[Item]:
    """Yield the items whose index is a multiple of ``int(1 / ratio)``, as the devkit samples.

    So 0.2 takes every fifth, and any ratio above one half takes all.
    """
    step = int(1 / ratio)
    return (item for index, item in enumerate(items) if index % step == 0)


def flattened(sample: Sample) -> Sample:
    """Return a sample with only the targets whose mention in the text is marked.

    One whose names and ids differ in number is returned as it is; it is left out anyway.
    """
    if len(sample.target_ids) != len(sample.target_names):
        return sample
    pairs = zip(sample.target_ids, sample.target_names, strict=True)
    kept = [(key, name) for key, name in pairs if key in sample.located]
    return replace(
        sample,
        target_ids=tuple(key for key, _ in kept),
        target_names=tuple(name for _, name in kept),
    )


def survivors_of_flattening(samples: Iterable[Sample | None]) -> set[int]:
    """Return which samples the devkit's token flattening keeps, by their position.

    It means to delete the samples that have no marked target. But the position it notes of such a
    sample is that of the sample's last target (its inner loop uses the same variable), so it
    deletes samples near the beginning of the list instead, and those it meant stay, without a
    target (``OpenRobotLab/EmbodiedScan@cc3842a:mmscan/utils/task_utils.py``, anno_token_flatten).

    Parameters
    ----------
    samples
        The samples, None for one that cannot be read.

    Raises
    ------
    SourceError
        When the devkit would end with an IndexError here.
    """
    noted = []
    positions = []
    for position, sample in enumerate(samples):
        positions.append(position)
        if sample is not None and not sample.located:
            noted.append(len(sample.target_ids) - 1 if sample.target_ids else position)
    for place in reversed(noted):
        if place >= len(positions):
            raise SourceError(
                "the devkit's token flattening fails on these samples with an IndexError; prepare "
                "without --token-flatten"
            )
        del positions[place]
    return set(positions)


def unique_id(sample_id: str, seen: dict[str, int]) -> str:
    """Return the id of a row: that of the sample, with ``#2``, ``#3``, ... where it comes again."""
    number = seen[sample_id] = seen.get(sample_id, 0) + 1
    return sample_id if number == 1 else f"{sample_id}#{number}"
