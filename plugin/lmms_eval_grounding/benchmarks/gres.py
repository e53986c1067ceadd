"""GRES (gRefCOCO) as an lmms-eval task: one mask for any number of objects, also none.

The columns of a document are described in `mask_replies`. A sample is one sentence.
``$GROUNDING_MIN_PIXELS`` (default 1) is the number of pixels below which a mask is empty.
"""

from __future__ import annotations

import os
import re
from functools import partial
from typing import Any

from ..contract import check
from ..metrics.gres import (
    cumulative_iou,
    mean_iou,
    no_target_accuracy,
    precision_at,
    sample_record,
    target_accuracy,
    target_mean_iou,
)
from ..parsing.parsed import ParsedMask
from ..parsing.profile import Profile
from .host import Aggregation, Refusal, status_rates
from .mask_replies import MaskTask, doc_to_target, oracle_reply, read_mask, reading_of, target_mask
from .task import Doc

__all__ = ["doc_to_target", "oracle_reply"]

BENCHMARK = "gres"
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
MIN_PIXELS = "GROUNDING_MIN_PIXELS"


def declared_min_pixels() -> int:
    """Return the number of foreground pixels below which a mask is empty, in this run.

    Raises
    ------
    Refusal
        If ``$GROUNDING_MIN_PIXELS`` is no positive whole number.
    """
    named = os.environ.get(MIN_PIXELS) or "1"
    if not re.fullmatch(r"[1-9][0-9]{0,8}", named):
        raise Refusal(f"{MIN_PIXELS} is {named!r}; give a positive whole number of pixels")
    return int(named)


def score(
    doc: Doc, reply: str | None, profile: Profile, min_pixels: int | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of one sample (see metrics.gres) and how its reply was read.

    ``min_pixels`` is `declared_min_pixels` unless given.
    """
    parsed = read_mask(doc, reply, profile)
    least = declared_min_pixels() if min_pixels is None else min_pixels
    reading = {**reading_of(doc, profile, parsed), "min_pixels": least}
    return record_of(doc, parsed, least), reading


def record_of(doc: Doc, parsed: ParsedMask, min_pixels: int) -> dict[str, Any]:
    """Return the record of one sample (see metrics.gres)."""
    record = sample_record(
        str(doc["id"]), parsed.status, parsed.mask, target_mask(doc), min_pixels=min_pixels
    )
    check(record, "records/gres.json")
    return record


def _read_settings(doc: Doc) -> None:
    """Raise for a target, or an option of the run, that could not be used after the answers."""
    target_mask(doc)
    declared_min_pixels()


METRICS: dict[str, Aggregation] = {
    "gIoU": mean_iou,
    "cIoU": cumulative_iou,
    **{f"Pr@{threshold}": partial(precision_at, threshold=threshold) for threshold in THRESHOLDS},
    "N-acc": no_target_accuracy,
    "T-acc": target_accuracy,
    "target-mIoU": target_mean_iou,
    **status_rates(),
}

_task = MaskTask(BENCHMARK, score, METRICS, read_target=_read_settings)
doc_to_visual = _task.doc_to_visual
doc_to_text = _task.doc_to_text
process_results = _task.process_results
metric_list = _task.metric_list
