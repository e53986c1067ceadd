"""The samples of MMScan visual grounding: which are taken, which are left out, and as what rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ..metrics.mmscan_record import GROUPS
from .errors import SourceError
from .mmscan_annotations import Objects
from .parquet import Row

if TYPE_CHECKING:
    import datasets

NO_TARGET = "samples without a target"
TARGET_COUNT = "samples with another number of target names than of target ids"
NO_SCAN = "samples of a scan that the annotations lack"
NO_OBJECT = "samples with {} that is not in the scan"
NO_TARGET_BOX = "samples with a target whose box is not finite or has no volume"
SCAN_LEFT_OUT = "samples of a scan that was left out"
FLATTENED = "samples that the devkit's token flattening deletes"

Item = TypeVar("Item")


@dataclass(frozen=True)
class Sample:
    """One prompt with its answer.

    Attributes
    ----------
    id
        As in the release.
    sub_class
        One of the seven.
    scan_id
        The scan it is about.
    expression
        The prompt, as released.
    target_ids, target_names
        The objects it asks for and their class names; parallel unless the release is faulty.
    anchor_ids, anchor_names
        The objects it relates them to.
    distractor_ids
        Objects of the same class that it does not mean.
    located
        The ids of objects whose mention in the text is marked (``tokens_positive``).
    """

    id: str
    sub_class: str
    scan_id: str
    expression: str
    target_ids: tuple[int, ...]
    target_names: tuple[str, ...]
    anchor_ids: tuple[int, ...]
    anchor_names: tuple[str, ...]
    distractor_ids: tuple[int, ...]
    located: frozenset[int]


def features() -> datasets.Features:
    """Return the columns of a prepared split; ``targets`` holds one box a ``target_id``.

    ``index`` is the position in the release's list, ``scans`` the digest of the table in which
    ``scan_id`` is found.
    """
    import datasets  # noqa: PLC0415 - slow to import, and only a conversion or a check needs it

    text, number = datasets.Value("string"), datasets.Value("int64")
    return datasets.Features(
        {
            "id": text,
            "index": number,
            "sub_class": text,
            "scan_id": text,
            "scans": text,
            "expression": text,
            "target_id": datasets.Sequence(number),
            "target": datasets.Sequence(text),
            "targets": datasets.Sequence(datasets.Sequence(datasets.Value("float64"))),
            "anchor_ids": datasets.Sequence(number),
            "anchors": datasets.Sequence(text),
            "distractor_ids": datasets.Sequence(number),
        }
    )


def read_sample(entry: Any) -> Sample:
    """Return an entry of the release as a sample.

    Raises
    ------
    SourceError
        When it is not as in the release; a missing or empty list of targets is.
    """
    if not isinstance(entry, Mapping):
        raise SourceError("is no JSON object")
    sub_class = _text(entry, "sub_class")
    if sub_class not in GROUPS:
        raise SourceError(f"sub_class is {sub_class!r:.60}; known are {', '.join(GROUPS)}")
    spans = entry.get("tokens_positive")
    if not isinstance(spans, Mapping):
        raise SourceError("tokens_positive is no JSON object")
    targets = {"target_id": [], "target": [], **entry}
    target_ids = _list(targets, "target_id", int)
    return Sample(
        id=_text(entry, "ID"),
        sub_class=sub_class,
        scan_id=_text(entry, "scan_id"),
        expression=_text(entry, "text"),
        target_ids=target_ids,
        target_names=_list(targets, "target", str),
        anchor_ids=_list(entry, "anchor_ids", int),
        anchor_names=_list(entry, "anchors", str),
        distractor_ids=_list(entry, "distractor_ids", int),
        located=frozenset(key for key in target_ids if spans.get(str(key))),
    )


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


def row_of(
    sample: Sample, objects: Objects, *, row_id: str, index: int, scans: str
) -> dict[str, Any]:
    """Return the row of a sample; see `features`."""
    return {
        "id": row_id,
        "index": index,
        "sub_class": sample.sub_class,
        "scan_id": sample.scan_id,
        "scans": scans,
        "expression": sample.expression,
        "target_id": sample.target_ids,
        "target": sample.target_names,
        "targets": [objects.boxes[object_id] for object_id in sample.target_ids],
        "anchor_ids": sample.anchor_ids,
        "anchors": sample.anchor_names,
        "distractor_ids": sample.distractor_ids,
    }


def unique_id(sample_id: str, seen: dict[str, int]) -> str:
    """Return the id of a row: that of the sample, with ``#2``, ``#3``, ... where it comes again."""
    number = seen[sample_id] = seen.get(sample_id, 0) + 1
    return sample_id if number == 1 else f"{sample_id}#{number}"


def _text(entry: Row, name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value.strip():
        raise SourceError(f"{name} is {value!r:.60}, not a text")
    return value


def _list(entry: Row, name: str, kind: type[Item]) -> tuple[Item, ...]:
    value = entry.get(name)
    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        raise SourceError(f"{name} is {value!r:.60}, not a list of {_KINDS[kind]}")
    return tuple(value)


_KINDS: Mapping[type, str] = {int: "whole numbers", str: "texts"}
