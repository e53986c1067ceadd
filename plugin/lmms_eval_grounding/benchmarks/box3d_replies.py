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
from ..geometry.boxes3d import rotation_from_euler
from ..metrics.mmscan import (
    average_precision_per_sample,
    average_recall,
    gtop_k,
    pooled_average_precision,
    pooled_average_recall,
    sample_record,
    skipped_rate,
)
from ..parsing.boxes3d import parse_boxes3d
from ..parsing.parsed import ParsedBoxes3d
from ..parsing.profile import Profile
from ..parsing.scene import Box3d, Scene
from ..parsing.written_boxes3d import write_boxes3d
from .host import Aggregation, read_safely, status_rates
from .task import Doc

THRESHOLDS = (0.25, 0.5)
RANKS = (1, 3, 5, 10)

_AT_THRESHOLD: dict[str, Callable[..., float]] = {
    **{f"gTop-{k}": partial(gtop_k, k=k) for k in RANKS},
    "AP_sample": average_precision_per_sample,
    "AR": average_recall,
    "AP_box": pooled_average_precision,
    "AR_box": pooled_average_recall,
}

METRICS: dict[str, Aggregation] = {
    **{
        f"{name}@{threshold}": partial(function, threshold=threshold)
        for threshold in THRESHOLDS
        for name, function in _AT_THRESHOLD.items()
    },
    "skipped": skipped_rate,
    **status_rates(),
}


def doc_to_target(doc: Doc) -> str:
    """Return the target boxes as JSON text, for the log."""
    return json.dumps([list(box) for box in doc["targets"]])


def score_in(
    scene: Scene, doc: Doc, reply: str | None, profile: Profile
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of one sample (see metrics.mmscan) and how its reply was read."""
    parsed = read_safely(ParsedBoxes3d, parse_boxes3d, reply, profile, scene)
    record = sample_record(
        str(doc["id"]),
        parsed.status,
        doc["sub_class"],
        preds=parsed.boxes,
        scores=parsed.scores,
        targets=doc["targets"],
    )
    check(record, "records/mmscan.json")
    reading = {
        "id": str(doc["id"]),
        "expression": doc["expression"],
        "sub_class": doc["sub_class"],
        "scan_id": doc["scan_id"],
        "profile": profile.name,
        "status": parsed.status,
        "reason": parsed.reason,
        "flags": list(parsed.flags),
        "syntax": parsed.syntax,
        "boxes_given": len(parsed.boxes),
    }
    return record, reading


def reply_in(scene: Scene, doc: Doc, profile: Profile, error: str | None = None) -> str:
    """Return the reply of a model that knows the targets and writes as the profile does.

    ``error`` makes it wrong: ``shifted`` moves every box by half its x size along its own x axis,
    so that each has an IoU of 1/3 with its target; ``wrong-space`` gives the centres in
    centimetres; ``truncated`` breaks the reply off half-way. Candidates have no place to be wrong
    in: there ``shifted`` and ``wrong-space`` name the objects that are farthest from the targets.
    """
    boxes = [tuple(map(float, box)) for box in doc["targets"]]
    if error in ("shifted", "wrong-space"):
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
