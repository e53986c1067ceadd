"""RSVG as an lmms-eval task: one box per expression in a satellite image.

A document has the columns ``id`` (str), ``image``, ``expression`` (str), ``bbox`` (x1, y1, x2, y2
in pixels), ``width``, ``height``, ``category`` and ``file``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

from ..contract import check
from ..geometry.boxes import Box, area, clip
from ..metrics.rsvg import cumulative_iou, mean_iou, precision_at, sample_record
from ..parsing.boxes import parse_boxes
from ..parsing.parsed import ParsedBoxes
from ..parsing.profile import Profile
from ..parsing.spaces import Space
from ..writing.boxes import write_box
from .host import Aggregation, read_safely, status_rates
from .task import Doc, GroundingTask

BENCHMARK = "rsvg"
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


def doc_to_target(doc: Doc) -> str:
    """Return the target box as JSON text, for the log."""
    return json.dumps(list(doc["bbox"]))


def score(doc: Doc, reply: str | None, profile: Profile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of one sample (see metrics.rsvg) and how its reply was read."""
    width, height = int(doc["width"]), int(doc["height"])
    parsed = read_safely(ParsedBoxes, parse_boxes, reply, profile, width, height)
    record = record_of(doc, parsed)
    reading = {
        "id": str(doc["id"]),
        "expression": doc["expression"],
        "profile": profile.name,
        "status": parsed.status,
        "reason": parsed.reason,
        "flags": list(parsed.flags),
        "syntax": parsed.syntax,
        "pred": parsed.boxes[0] if parsed.boxes else None,
        "boxes_given": len(parsed.boxes),
        "target": _target(doc),
        "width": width,
        "height": height,
    }
    return record, reading


def record_of(doc: Doc, parsed: ParsedBoxes) -> dict[str, Any]:
    """Return the record of one sample (see metrics.rsvg): the first box is the answer."""
    pred = parsed.boxes[0] if parsed.boxes else None
    record = sample_record(str(doc["id"]), parsed.status, pred, _target(doc))
    check(record, "records/rsvg.json")
    return record


def _target(doc: Doc) -> Box:
    x1, y1, x2, y2 = map(float, doc["bbox"])
    return x1, y1, x2, y2


def _read_target(doc: Doc) -> None:
    """Raise `ValueError` for a target that is not left, top, right, bottom."""
    x1, y1, x2, y2 = _target(doc)
    if x2 < x1 or y2 < y1:
        raise ValueError(f"bbox: {[x1, y1, x2, y2]} is not left, top, right, bottom")


def oracle_reply(doc: Doc, profile: Profile, error: str | None = None) -> str:
    """Return the reply of a model that knows the target and writes as the profile does.

    ``error`` makes it wrong: ``shifted`` moves the box by half its width or height, whichever the
    image has room for, so that its IoU with the target is 1/3; ``wrong-space`` writes it in pixels
    of the image (in 0-1000 where the profile's space is these pixels); ``truncated`` breaks the
    reply off half-way through the box.
    """
    width, height = int(doc["width"]), int(doc["height"])
    box, label = _target(doc), str(doc["expression"])
    if error == "shifted":
        box = _shifted(box, width, height)
    if error == "wrong-space":
        convention = profile.box_convention()
        in_pixels = convention.space.extent == "image"
        other = Space((1000.0, 1000.0)) if in_pixels else Space("image")
        profile = replace(profile, box=replace(convention, space=other))
    if error == "truncated":  # a label behind the box would be all that is cut off
        reply = write_box(box, profile, width, height)
        return reply[: len(reply) // 2]
    return write_box(box, profile, width, height, label)


def _shifted(box: Box, width: int, height: int) -> Box:
    """Return a box moved by half its extent along an axis, the way that most of it stays inside."""
    x1, y1, x2, y2 = box
    half_width, half_height = (x2 - x1) / 2, (y2 - y1) / 2
    steps = ((half_width, 0.0), (-half_width, 0.0), (0.0, half_height), (0.0, -half_height))
    moved = [(x1 + dx, y1 + dy, x2 + dx, y2 + dy) for dx, dy in steps]
    return max(moved, key=lambda place: area(clip(place, width, height)))


def _metrics(strict: bool) -> dict[str, Aggregation]:
    sign = ">" if strict else "@"
    return {
        **{
            f"Pr{sign}{threshold}": partial(precision_at, threshold=threshold, strict=strict)
            for threshold in THRESHOLDS
        },
        "meanIoU": mean_iou,
        "cumIoU": cumulative_iou,
        **status_rates(),
    }


METRICS = _metrics(strict=False)
STRICT_METRICS = _metrics(strict=True)

_task = GroundingTask(BENCHMARK, score, METRICS, read_target=_read_target)
doc_to_visual = _task.doc_to_visual
doc_to_text = _task.doc_to_text
process_results = _task.process_results
metric_list = _task.metric_list

_strict_task = replace(_task, metrics=STRICT_METRICS)
process_results_strict = _strict_task.process_results
strict_metric_list = _strict_task.metric_list
