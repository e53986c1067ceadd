"""What official evaluators do, as it was read and measured: their code is not run here.

Each function takes a case's input and returns a value, None where the evaluator has no such value
(an adapter skips the case), or `UNKNOWN` where its value is not settled by what is known.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Record = dict[str, Any]
Records = Sequence[Record]
Rule = Callable[..., Any]
UNKNOWN = object()
MOST_PIXELS = 2**28  # a mask of more cannot be made for an evaluator that takes masks
ERROR = {"error": "ZeroDivisionError"}


# --- RSVG


def lqvg_iou(record: Record) -> float:
    """Return LQVG's IoU: an epsilon above and below, in float32."""
    epsilon = np.float32(1e-6)
    areas = np.float32(record["intersection"]), np.float32(record["union"])
    return float((areas[0] + epsilon) / (areas[1] + epsilon))


def lqvg_precision_at(records: Records, threshold: float, strict: bool = False) -> Any:
    if not records:
        return UNKNOWN
    return 100 * sum(lqvg_iou(record) > threshold for record in records) / len(records)


def lqvg_mean_iou(records: Records) -> Any:
    return math.fsum(map(lqvg_iou, records)) / len(records) if records else UNKNOWN


def lqvg_cumulative_iou(records: Records) -> Any:
    return sum_ratio(records) if records else UNKNOWN


def transvg_precision_at(records: Records, threshold: float, strict: bool = False) -> Any:
    """Return the share of IoU >= 0.5; what float32 makes of a tie of normalised boxes is open."""
    if threshold != 0.5:
        return None
    near = any(abs(plain_iou(record) - threshold) < 1e-5 for record in records)
    if near or not records:
        return UNKNOWN
    return 100 * sum(plain_iou(record) >= threshold for record in records) / len(records)


def transvg_mean_iou(records: Records) -> Any:
    """Return the mean as float32, whose last digits are open unless no box has an area."""
    if not records:
        return UNKNOWN
    if not any(record["union"] for record in records):
        return 0.0  # 0 / 1e-16, wherever the boxes lie
    return ToFloat32(sum(map(plain_iou, records)) / len(records))


class ToFloat32(float):
    """A value of float32 that is known to 1e-5 only."""


# --- masks


def plain_iou(record: Record) -> float:
    return record["intersection"] / record["union"] if record["union"] else 0.0


def sum_ratio(records: Records) -> float:
    union = sum(record["union"] for record in records)
    return sum(record["intersection"] for record in records) / union if union else math.nan


def is_too_large(records: Records) -> bool:
    return any(record["union"] > MOST_PIXELS for record in records)


def rela(value: Callable[..., Any]) -> Rule:
    """Return a rule of ReLA, whose report needs a sample, and one with a target."""

    def rule(records: Records, **options: Any) -> Any:
        if not records:
            return {}  # an empty report: no value under any name
        if is_too_large(records):
            return UNKNOWN
        if not any(record["has_target"] for record in records):
            return ERROR
        return value(records, **options)

    return rule


def rela_mean_iou(records: Records) -> float:
    scores = [plain_iou(r) if r["has_target"] else float(r["is_empty"]) for r in records]
    return sum(scores) / len(scores)


def rela_precision_at(records: Records, threshold: float) -> float | None:
    if threshold not in (0.7, 0.8, 0.9):
        return None
    hits = [plain_iou(record) >= threshold for record in records if record["has_target"]]
    return sum(hits) / len(hits)


def rela_accuracy(has_target: bool) -> Callable[[Records], float]:
    """Return T_acc or N_acc: both are 0 where every sample has a target."""

    def accuracy(records: Records) -> float:
        if all(record["has_target"] for record in records):
            return 0.0
        hits = [r["is_empty"] != has_target for r in records if r["has_target"] == has_target]
        return 100 * sum(hits) / len(hits)

    return accuracy


def lavt(value: Callable[..., Any]) -> Rule:
    def rule(records: Records, **options: Any) -> Any:
        return value(records, **options) if records and not is_too_large(records) else UNKNOWN

    return rule


def lavt_mean_iou(records: Records) -> float:
    return sum(map(plain_iou, records)) / len(records)


def lavt_precision_at(records: Records, threshold: float) -> float:
    return sum(plain_iou(record) >= threshold for record in records) / len(records)


def rrsis_printed_overall_iou(records: Records) -> float:
    """Return what is printed: percent minus 1, two decimals."""
    percent = 100 * sum_ratio(records)
    return percent if math.isnan(percent) else round(percent - 1, 2) / 100


# --- MMScan, on IoU matrices


def mmscan(value: Callable[..., Any]) -> Rule:
    """Return a rule of the devkit, which skips samples without targets and needs predictions."""

    def rule(records: Records, **options: Any) -> Any:
        scored = [record for record in records if record["n_targets"]]
        if not all(record["scores"] for record in scored):
            return {"error": "KeyError"}
        return value(scored, **options) if records else UNKNOWN

    return rule


def new_hits(record: Record, threshold: float) -> list[bool]:
    """Return by rank whether a prediction is the first to reach the threshold on its target."""
    taken: set[int] = set()
    hits = []
    for target, iou in zip(record["best_targets"], record["best_ious"], strict=True):
        hits.append(iou >= threshold and target not in taken)
        taken |= {target} if hits[-1] else set()
    return hits


def mmscan_gtop_k(records: Records, k: int, threshold: float) -> float | None:
    if k not in (1, 3, 5, 10):
        return None

    def of_sample(record: Record) -> float:
        hits, n = new_hits(record, threshold), record["n_targets"]
        return sum(sum(hits[: i * k]) >= i for i in range(1, n + 1)) / n

    return mean([of_sample(record) for record in records])


def mmscan_average_recall(records: Records, threshold: float) -> float:
    return mean([sum(new_hits(r, threshold)) / r["n_targets"] for r in records])


def mmscan_average_precision(records: Records, threshold: float) -> float:
    values = [ap32(new_hits(r, threshold), r["n_targets"]) for r in records]
    return float(np.mean(values, dtype=np.float32)) if values else math.nan


def mmscan_pooled(value: Callable[[list[bool], int], float]) -> Callable[..., Any]:
    def pooled(records: Records, threshold: float) -> Any:
        total = 0.0
        for group, samples in Counter(record["group"] for record in records).items():
            pool = [
                (score, hit)
                for record in records
                if record["group"] == group
                for score, hit in zip(record["scores"], new_hits(record, threshold), strict=True)
            ]
            if value is ap32 and len({score for score, _ in pool}) < len(set(pool)):
                return UNKNOWN  # a hit and a miss of equal score: the sort is not stable
            n_targets = sum(r["n_targets"] for r in records if r["group"] == group)
            total += samples * value([hit for _, hit in sorted(pool, reverse=True)], n_targets)
        return total / len(records) if records else 0.0

    return pooled


def recall(hits: list[bool], n_targets: int) -> float:
    return sum(hits) / n_targets


def ap32(hits: list[bool], n_targets: int) -> float:
    """Return the area under the precision envelope as float32."""
    precisions = [sum(hits[: i + 1]) / (i + 1) for i in range(len(hits))]
    area = sum(max(precisions[i:]) for i, hit in enumerate(hits) if hit) / n_targets
    return float(np.float32(area))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


LAVT: dict[str, Rule] = {
    "metrics/refsegrs/mean_iou": lavt(lavt_mean_iou),
    "metrics/refsegrs/overall_iou": lavt(sum_ratio),
    "metrics/refsegrs/precision_at": lavt(lavt_precision_at),
}

RULES: dict[str, dict[str, Rule]] = {
    "LQVG": {
        "metrics/rsvg/precision_at": lqvg_precision_at,
        "metrics/rsvg/mean_iou": lqvg_mean_iou,
        "metrics/rsvg/cumulative_iou": lqvg_cumulative_iou,
    },
    "TransVG": {
        "metrics/rsvg/precision_at": transvg_precision_at,
        "metrics/rsvg/mean_iou": transvg_mean_iou,
    },
    "ReLA": {
        "metrics/gres/mean_iou": rela(rela_mean_iou),
        "metrics/gres/cumulative_iou": rela(sum_ratio),
        "metrics/gres/precision_at": rela(rela_precision_at),
        "metrics/gres/no_target_accuracy": rela(rela_accuracy(False)),
        "metrics/gres/target_accuracy": rela(rela_accuracy(True)),
    },
    "LAVT": LAVT,
    "rrsis": {**LAVT, "metrics/refsegrs/overall_iou": lavt(rrsis_printed_overall_iou)},
    "MMScan": {
        "metrics/mmscan/gtop_k": mmscan(mmscan_gtop_k),
        "metrics/mmscan/average_precision_per_sample": mmscan(mmscan_average_precision),
        "metrics/mmscan/average_recall": mmscan(mmscan_average_recall),
        "metrics/mmscan/pooled_average_precision": mmscan(mmscan_pooled(ap32)),
        "metrics/mmscan/pooled_average_recall": mmscan(mmscan_pooled(recall)),
    },
}
