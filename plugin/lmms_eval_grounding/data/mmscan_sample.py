"""A sample of MMScan visual grounding: as the release writes it, and as a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..metrics.mmscan_record import GROUPS
from .errors import SourceError
from .mmscan_annotations import Objects

if TYPE_CHECKING:
    import datasets

Item = TypeVar("Item")
_KINDS: Mapping[type, str] = {int: "whole numbers", str: "texts"}


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


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value.strip():
        raise SourceError(f"{name} is {value!r:.60}, not a text")
    return value


def _list(entry: Mapping[str, Any], name: str, kind: type[Item]) -> tuple[Item, ...]:
    value = entry.get(name)
    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        raise SourceError(f"{name} is {value!r:.60}, not a list of {_KINDS[kind]}")
    return tuple(value)
