"""What the two MMScan tasks share: reading a reply as ranked 3D boxes, the metrics, the oracle.

A document has the columns ``id`` (str), ``sub_class``, ``scan_id``, ``scans`` (which table holds
the scan), ``expression`` and ``targets`` (9-DoF boxes as geometry.boxes3d has them).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..contract import check
from ..geometry.boxes3d import is_valid, rotation_from_euler
from ..metrics.mmscan import (
    first_hits,
    pooled_average_precision,
    pooled_average_recall,
    sample_average_precision,
    sample_gtop_k,
    sample_recall,
    sample_record,
    skipped_rate,
)
from ..metrics.samples import Record, mean_value, sample_value
from ..parsing.boxes3d import parse_boxes3d
from ..parsing.parsed import ParsedBoxes3d
from ..parsing.profile import Profile
from ..parsing.scene import Box3d, Scene
from ..writing.boxes3d import write_boxes3d
from .group_table import telling_groups
from .host import Aggregation, Reduced, read_safely, status_rates
from .scans import declared_frames
from .task import Doc

THRESHOLDS = (0.25, 0.5)
RANKS = (1, 3, 5, 10)

_OF_SAMPLES: dict[str, Callable[..., float]] = {
    **{f"gTop-{k}": partial(sample_gtop_k, k=k) for k in RANKS},
    "AP_sample": sample_average_precision,
    "AR": sample_recall,
}


def _metrics_at(threshold: float) -> dict[str, Aggregation]:
    """Return the metrics at one threshold.

    A hundred predictions are some kilobytes, which the log would hold once a metric. Only AP_box
    needs them all: AR_box is given those that hit, the means over samples the sample's value.
    """
    return {
        **{
            name: Reduced(
                partial(sample_value, value=partial(value, threshold=threshold)), mean_value
            )
            for name, value in _OF_SAMPLES.items()
        },
        "AP_box": partial(pooled_average_precision, threshold=threshold),
        "AR_box": Reduced(
            partial(first_hits, threshold=threshold),
            partial(pooled_average_recall, threshold=threshold),
        ),
    }


def _fields(record: Record, names: Sequence[str]) -> Record:
    return {name: record[name] for name in names}


METRICS: dict[str, Aggregation] = {
    **{
        f"{name}@{threshold}": metric
        for threshold in THRESHOLDS
        for name, metric in _metrics_at(threshold).items()
    },
    "skipped": Reduced(partial(_fields, names=("id", "n_targets")), skipped_rate),
    **{
        name: Reduced(partial(_fields, names=("id", "status")), rate)
        for name, rate in status_rates().items()
    },
}


def reported(benchmark: str) -> dict[str, Aggregation]:
    """Return `METRICS`; the first that is given whole records also tells those of each group."""
    told = telling_groups(METRICS["AP_box@0.25"], METRICS, benchmark)
    return {**METRICS, "AP_box@0.25": told}


def check_targets(doc: Doc) -> None:
    """Raise `ValueError` unless every target box of a document is finite and has a volume."""
    if not is_valid(np.reshape(doc["targets"], (-1, 9))).all():
        raise ValueError("a target box has a size of 0 or below, or a number that is not finite")


def doc_to_target(doc: Doc) -> str:
    """Return the target boxes as JSON text, for the log."""
    return json.dumps([list(box) for box in doc["targets"]])


def score_in(
    scene: Scene, doc: Doc, reply: str | None, profile: Profile
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of one sample (see metrics.mmscan) and how its reply was read."""
    parsed = read_safely(ParsedBoxes3d, parse_boxes3d, reply, profile, scene)
    record = record_of(doc, parsed)
    reading = {
        "id": str(doc["id"]),
        "expression": doc["expression"],
        "sub_class": doc["sub_class"],
        "group": record["group"],
        "scan_id": doc["scan_id"],
        "frames_shown": declared_frames(),
        "profile": profile.name,
        "status": parsed.status,
        "reason": parsed.reason,
        "flags": list(parsed.flags),
        "syntax": parsed.syntax,
        "boxes_given": len(parsed.boxes),
    }
    return record, reading


def record_of(doc: Doc, parsed: ParsedBoxes3d) -> dict[str, Any]:
    """Return the record of one sample (see metrics.mmscan)."""
    record = sample_record(
        str(doc["id"]),
        parsed.status,
        doc["sub_class"],
        preds=parsed.boxes,
        scores=parsed.scores,
        targets=doc["targets"],
    )
    check(record, "records/mmscan.json")
    return record


def reply_in(scene: Scene, doc: Doc, profile: Profile, error: str | None = None) -> str:
    """Return the reply of a model that knows the targets and writes as the profile does.

    ``error`` makes it wrong: ``shifted`` moves every box by half its x size along its own x axis,
    so that each has an IoU of 1/3 with its target; ``wrong-space`` gives the centres in
    centimetres; ``truncated`` breaks the reply off half-way. Candidates have no place to be wrong
    in: there ``shifted`` and ``wrong-space`` name the objects that are farthest from the targets.
    """
    boxes = [tuple(map(float, box)) for box in doc["targets"]]
    if boxes and error in ("shifted", "wrong-space"):
        if scene.candidates is not None:
            boxes = [_farthest(map(tuple, scene.candidates.values()), boxes)] * len(boxes)
        elif error == "shifted":
            boxes = [_shifted(box) for box in boxes]
        else:
            boxes = [(*(100 * value for value in box[:3]), *box[3:]) for box in boxes]
    reply = write_boxes3d(boxes, profile, scene)
    return reply[: len(reply) // 2] if error == "truncated" else reply


def _shifted(box: Box3d) -> Box3d:
    """Return a box moved along its own x axis, the first column of its rotation."""
    step = box[3] / 2 * rotation_from_euler(box[6:], "ZXY")[:, 0]
    return (*(np.asarray(box[:3]) + step).tolist(), *box[3:])


def _farthest(candidates: Iterable[Box3d], targets: Sequence[Box3d]) -> Box3d:
    """Return the candidate whose centre is farthest from the nearest target's."""

    def distance(box: Box3d) -> float:
        return min(math.dist(box[:3], target[:3]) for target in targets)

    return max(candidates, key=distance)
