"""RefSegRS as an lmms-eval task: one mask per expression in an aerial image.

The columns of a document are described in `mask_replies`; every document has a target.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..contract import check
from ..metrics.refsegrs import mean_iou, overall_iou, precision_at, sample_record
from ..parsing.parsed import ParsedMask
from ..parsing.profile import Profile
from .host import Aggregation, status_rates
from .mask_replies import MaskTask, doc_to_target, oracle_reply, read_mask, reading_of, target_mask
from .task import Doc

__all__ = ["doc_to_target", "oracle_reply"]

BENCHMARK = "refsegrs"
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


def score(doc: Doc, reply: str | None, profile: Profile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of one sample (see metrics.refsegrs) and how its reply was read."""
    parsed = read_mask(doc, reply, profile)
    return record_of(doc, parsed), reading_of(doc, profile, parsed)


def record_of(doc: Doc, parsed: ParsedMask) -> dict[str, Any]:
    """Return the record of one sample (see metrics.refsegrs)."""
    target = target_mask(doc)
    assert target is not None  # says spec/records/refsegrs_document.json
    record = sample_record(str(doc["id"]), parsed.status, parsed.mask, target)
    check(record, "records/refsegrs.json")
    return record


METRICS: dict[str, Aggregation] = {
    "mIoU": mean_iou,
    "oIoU": overall_iou,
    **{f"Pr@{threshold}": partial(precision_at, threshold=threshold) for threshold in THRESHOLDS},
    **status_rates(),
}

_task = MaskTask(BENCHMARK, score, METRICS, read_target=target_mask)
doc_to_visual = _task.doc_to_visual
doc_to_text = _task.doc_to_text
process_results = _task.process_results
metric_list = _task.metric_list
