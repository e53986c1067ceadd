"""Wrong implementations of RSVG, each as published code has it, are refused by golden cases."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lmms_eval_grounding.benchmarks import rsvg as benchmark
from lmms_eval_grounding.conformance import own_answer, passes
from lmms_eval_grounding.corpus import load_cases
from lmms_eval_grounding.geometry import boxes as geometry
from lmms_eval_grounding.metrics import rsvg as metrics
from lmms_eval_grounding.parsing.spaces import Space

Patch = Callable[[pytest.MonkeyPatch], None]


def refusals(kind: str) -> list[str]:
    return [str(case) for case in load_cases(kind) if not passes(case, own_answer)]


def plus_one_pixel(patch: pytest.MonkeyPatch) -> None:
    def areas(pred: Any, target: Any) -> tuple[float, float]:
        grown_pred = (*pred[:2], pred[2] + 1, pred[3] + 1)
        grown_target = (*target[:2], target[2] + 1, target[3] + 1)
        return geometry.intersection_and_union(grown_pred, grown_target)

    patch.setattr(metrics, "intersection_and_union", areas)


def epsilon_in_the_union(patch: pytest.MonkeyPatch) -> None:
    def areas(pred: Any, target: Any) -> tuple[float, float]:
        intersection, union = geometry.intersection_and_union(pred, target)
        return intersection, union + 1e-6

    patch.setattr(metrics, "intersection_and_union", areas)


def epsilon_on_both_sides_of_the_division(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, "sample_iou", lambda r: (r["intersection"] + 1e-6) / (r["union"] + 1e-6))


def product_of_negative_overlaps(patch: pytest.MonkeyPatch) -> None:
    def areas(pred: Any, target: Any) -> tuple[float, float]:
        width = min(pred[2], target[2]) - max(pred[0], target[0])
        height = min(pred[3], target[3]) - max(pred[1], target[1])
        intersection = width * height
        return intersection, geometry.area(pred) + geometry.area(target) - intersection

    patch.setattr(metrics, "intersection_and_union", areas)


def strict_threshold(patch: pytest.MonkeyPatch) -> None:
    right = metrics.precision_at
    patch.setattr(
        metrics,
        "precision_at",
        lambda records, threshold, strict=False: right(records, threshold, True),
    )


def never_strict(patch: pytest.MonkeyPatch) -> None:
    right = metrics.precision_at
    patch.setattr(
        metrics, "precision_at", lambda records, threshold, strict=False: right(records, threshold)
    )


def mean_for_cumulative(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, "cumulative_iou", metrics.mean_iou)


def cumulative_for_mean(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, "mean_iou", metrics.cumulative_iou)


def failures_leave_the_denominator(name: str) -> Patch:
    def patch_one(patch: pytest.MonkeyPatch) -> None:
        right = getattr(metrics, name)

        def read_only(records: Any, *args: Any, **options: Any) -> float:
            return float(right([r for r in records if r["status"] == "ok"], *args, **options))

        patch.setattr(metrics, name, read_only)

    patch_one.__name__ = f"failures_leave_the_denominator_of_{name}"
    return patch_one


def fraction_for_percent(patch: pytest.MonkeyPatch) -> None:
    right = metrics.precision_at
    patch.setattr(metrics, "precision_at", lambda *args, **options: right(*args, **options) / 100)


def percent_for_fraction(patch: pytest.MonkeyPatch) -> None:
    right = metrics.mean_iou
    patch.setattr(metrics, "mean_iou", lambda records: 100 * right(records))


def repeated_samples_count_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, "unique_samples", list)


def single_precision(patch: pytest.MonkeyPatch) -> None:
    import numpy as np

    patch.setattr(
        metrics,
        "sample_iou",
        lambda r: (
            float(np.float32(r["intersection"]) / np.float32(r["union"])) if r["union"] else 0
        ),
    )


def union_zero_scores_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        metrics, "sample_iou", lambda r: r["intersection"] / r["union"] if r["union"] else 1.0
    )


def no_samples_score_zero(patch: pytest.MonkeyPatch) -> None:
    right = metrics.mean_iou
    patch.setattr(
        metrics, "mean_iou", lambda records: 0.0 if math.isnan(right(records)) else right(records)
    )


METRIC_FAULTS: list[Patch] = [
    plus_one_pixel,
    epsilon_in_the_union,
    epsilon_on_both_sides_of_the_division,
    product_of_negative_overlaps,
    strict_threshold,
    never_strict,
    mean_for_cumulative,
    cumulative_for_mean,
    *map(failures_leave_the_denominator, ("precision_at", "mean_iou", "cumulative_iou")),
    fraction_for_percent,
    percent_for_fraction,
    repeated_samples_count_again,
    single_precision,
    union_zero_scores_one,
    no_samples_score_zero,
]


def test_the_right_implementation_is_not_refused() -> None:
    assert refusals("metrics/rsvg") == []
    assert refusals("tasks/rsvg") == []


@pytest.mark.parametrize("fault", METRIC_FAULTS, ids=lambda fault: fault.__name__)
def test_metric_fault_is_refused(fault: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert refusals("metrics/rsvg")


def best_of_all_boxes(patch: pytest.MonkeyPatch) -> None:
    def score(doc: Any, reply: Any, profile: Any) -> Any:
        parsed = benchmark.parse_boxes(reply, profile, doc["width"], doc["height"])
        records = [
            metrics.sample_record(doc["id"], parsed.status, pred, tuple(doc["bbox"]))
            for pred in parsed.boxes or [None]
        ]
        return max(records, key=metrics.sample_iou), {}

    patch.setattr(benchmark, "score", score)


def best_of_two_spaces(patch: pytest.MonkeyPatch) -> None:
    right = benchmark.score

    def score(doc: Any, reply: Any, profile: Any) -> Any:
        spaces = [profile.box.space, Space("image"), Space((1000.0, 1000.0))]
        readings = [replace(profile, box=replace(profile.box, space=space)) for space in spaces]
        return max(
            (right(doc, reply, reading) for reading in readings),
            key=lambda scored: metrics.sample_iou(scored[0]),
        )

    patch.setattr(benchmark, "score", score)


def failed_requests_are_skipped(patch: pytest.MonkeyPatch) -> None:
    right = dict(benchmark.METRICS)
    for name, function in right.items():
        patch.setitem(
            benchmark.METRICS,
            name,
            lambda records, function=function: function(
                [r for r in records if r["status"] != "unparseable"]
            ),
        )


@pytest.mark.parametrize(
    "fault",
    [best_of_all_boxes, best_of_two_spaces, failed_requests_are_skipped],
    ids=lambda fault: fault.__name__,
)
def test_task_fault_is_refused(fault: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert refusals("tasks/rsvg")
