"""RSVG as an lmms-eval task: one box per expression in a satellite image.

A document has the columns ``id`` (str), ``image``, ``expression`` (str), ``bbox`` (x1, y1, x2, y2
in pixels), ``width``, ``height``, ``category`` and ``file``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..contract import check
from ..geometry.boxes import Box, area, clip
from ..metrics.rsvg import cumulative_iou, mean_iou, precision_at, sample_record
from ..parsing.boxes import parse_boxes
from ..parsing.profile import Profile
from ..parsing.spaces import Space
from ..parsing.written import write_box
from .conventions import declare_profile, declared_profile, prompt_text
from .host import (
    Aggregation,
    doc_image,
    first_reply,
    host_metric_list,
    read_safely,
    status_rates,
)

BENCHMARK = "rsvg"
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)

Doc = Mapping[str, Any]


def doc_to_visual(doc: Doc) -> list[Any]:
    """Return the document's image as a list of one RGB PIL image."""
    return [doc_image(doc["image"])]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Return the prompt, in the profile of the run."""
    profile = declare_profile(BENCHMARK, lmms_eval_specific_kwargs)
    return prompt_text(BENCHMARK, profile, expression=doc["expression"])


def doc_to_target(doc: Doc) -> str:
    """Return the target box as JSON text, for the log."""
    return json.dumps(list(doc["bbox"]))


def process_results(doc: Doc, results: Sequence[str | None]) -> dict[str, Any]:
    """Return what one sample gives to each metric, and under ``grounding`` how it was read.

    Never raises: a defect on our side is logged and scores 0. Every metric gets the same record, so
    that each can be recomputed from the sample log alone.
    """
    return _scored(doc, results, METRICS)


def process_results_strict(doc: Doc, results: Sequence[str | None]) -> dict[str, Any]:
    """Return the same as `process_results` for the metrics with strict thresholds."""
    return _scored(doc, results, STRICT_METRICS)


def score(doc: Doc, reply: str | None, profile: Profile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of one sample (see metrics.rsvg) and how its reply was read."""
    width, height = int(doc["width"]), int(doc["height"])
    parsed = read_safely(parse_boxes, reply, profile, width, height)
    pred = parsed.boxes[0] if parsed.boxes else None
    x1, y1, x2, y2 = map(float, doc["bbox"])
    record = sample_record(str(doc["id"]), parsed.status, pred, (x1, y1, x2, y2))
    check(record, "records/rsvg.json")
    reading = {
        "id": str(doc["id"]),
        "expression": doc["expression"],
        "profile": profile.name,
        "status": parsed.status,
        "reason": parsed.reason,
        "flags": list(parsed.flags),
        "syntax": parsed.syntax,
        "pred": pred,
        "boxes_given": len(parsed.boxes),
        "target": (x1, y1, x2, y2),
        "width": width,
        "height": height,
    }
    return record, reading


def oracle_reply(doc: Doc, profile: Profile, error: str | None = None) -> str:
    """Return the reply of a model that knows the target and writes as the profile does.

    ``error`` makes it wrong: ``shifted`` moves the box by half its width or height, whichever the
    image has room for, so that its IoU with the target is 1/3; ``wrong-space`` writes it in pixels
    of the image (in 0-1000 where the profile's space is these pixels); ``truncated`` breaks the
    reply off half-way through the box.
    """
    width, height = int(doc["width"]), int(doc["height"])
    x1, y1, x2, y2 = map(float, doc["bbox"])
    box, label = (x1, y1, x2, y2), str(doc["expression"])
    if error == "shifted":
        box = _shifted(box, width, height)
    if error == "wrong-space":
        in_pixels = profile.box.space.extent == "image"
        other = Space((1000.0, 1000.0)) if in_pixels else Space("image")
        profile = replace(profile, box=replace(profile.box, space=other))
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


def _scored(doc: Doc, results: Sequence[str | None], metrics: Iterable[str]) -> dict[str, Any]:
    record, reading = score(doc, first_reply(results), declared_profile(BENCHMARK))
    return {**dict.fromkeys(metrics, record), "grounding": reading}


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

metric_list = host_metric_list(METRICS)
strict_metric_list = host_metric_list(STRICT_METRICS)
