"""Wrong implementations of GRES and RefSegRS, as published code has them, are refused by cases."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from lmms_eval_grounding.conformance import own_answer, passes
from lmms_eval_grounding.corpus import load_cases
from lmms_eval_grounding.geometry import masks
from lmms_eval_grounding.metrics import gres, overlap, refsegrs
from lmms_eval_grounding.metrics.samples import unique_samples

Patch = Callable[[pytest.MonkeyPatch], None]
Wrong = Callable[[Any], Any]  # from the right function to a wrong one
Records = Sequence[dict[str, Any]]
Counts = tuple[int, int]


def refusals(kind: str) -> list[str]:
    return [str(case) for case in load_cases(kind) if not passes(case, own_answer)]


def counting(name: str, counts: Callable[[Any, Any], Counts]) -> Patch:
    """Return the fault that the pixels of two masks are counted in another way."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(overlap, "intersection_and_union", counts)

    fault.__name__ = name
    return fault


def replacing(module: Any, name: str, wrong: Wrong) -> Patch:
    """Return the fault that a function of a module is made from the right one by ``wrong``."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(module, name, wrong(getattr(module, name)))

    fault.__name__ = f"{name}-{wrong.__name__}"
    return fault


def reducing(module: Any, name: str, wrong: Wrong) -> Patch:
    """Return the same for a reduction, which sees each sample once: it has no other fault."""

    def wrong_on_samples(right: Any) -> Any:
        reduction = wrong(right)
        return lambda records, *args, **options: reduction(
            unique_samples(records), *args, **options
        )

    wrong_on_samples.__name__ = wrong.__name__
    return replacing(module, name, wrong_on_samples)


# --- counting the pixels of one pair


def crowd(pred: Any, target: Any) -> Counts:
    return masks.intersection_and_union(pred, target)[0], masks.area(pred)


def mismatch_scores_nothing(pred: Any, target: Any) -> Counts:
    if pred["size"] != target["size"]:
        return 0, masks.area(pred) + masks.area(target)
    return masks.intersection_and_union(pred, target)


def broadcast(pred: Any, target: Any) -> Counts:
    p, t = masks.array_from_rle(pred), masks.array_from_rle(target)
    return int((p & t).sum()), int((p | t).sum())


def summed_in(dtype: Any) -> Callable[[Any, Any], Counts]:
    def counts(pred: Any, target: Any) -> Counts:
        return tuple(
            int(np.sum([n], dtype=np.int64).astype(dtype))
            for n in masks.intersection_and_union(pred, target)
        )

    return counts


def read_along_the_rows(rle: Any) -> Any:
    height, width = rle["size"]
    runs = masks.array_from_rle(rle).ravel(order="F")
    return masks.rle_from_array(runs.reshape(height, width))


def prediction_read_along_the_rows(pred: Any, target: Any) -> Counts:
    return masks.intersection_and_union(read_along_the_rows(pred), target)


def target_read_along_the_rows(pred: Any, target: Any) -> Counts:
    return masks.intersection_and_union(pred, read_along_the_rows(target))


def transposed(pred: Any, target: Any) -> Counts:
    turned = masks.rle_from_array(np.ascontiguousarray(masks.array_from_rle(pred).T))
    return masks.intersection_and_union(turned, target)


def target_value_multiplied(pred: Any, target: Any) -> Counts:
    intersection, union = masks.intersection_and_union(pred, target)
    return 255 * intersection, union


def sum_of_the_areas(pred: Any, target: Any) -> Counts:
    intersection, _ = masks.intersection_and_union(pred, target)
    return intersection, masks.area(pred) + masks.area(target)


COUNTING_FAULTS = [
    counting("crowd_mode", crowd),
    counting("size_mismatch_scores_0", mismatch_scores_nothing),
    counting("broadcasting", broadcast),
    counting("sums_in_uint8", summed_in(np.uint8)),
    counting("sums_in_int8", summed_in(np.int8)),
    counting("prediction_read_row_major", prediction_read_along_the_rows),
    counting("target_read_row_major", target_read_along_the_rows),
    counting("transposed", transposed),
    counting("target_value_255_multiplied", target_value_multiplied),
    counting("union_is_the_sum_of_areas", sum_of_the_areas),
]


@pytest.mark.parametrize("fault", COUNTING_FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("benchmark", ["gres", "refsegrs"])
def test_counting_fault_is_refused(
    benchmark: str, fault: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    assert refusals(f"metrics/{benchmark}/sample_record")


# --- the record of one GRES sample


def area_in_uint8(patch: pytest.MonkeyPatch) -> None:
    for module in (overlap, gres):
        patch.setattr(module, "area", lambda rle: masks.area(rle) % 256)


def failure_is_empty(right: Any) -> Any:
    def record(id: str, status: str, pred: Any, target: Any, min_pixels: int = 1) -> Any:
        read = status if status == "ok" else "no_target"
        return right(id, read, pred, target, min_pixels) | {"status": status}

    return record


def min_pixels_ignored(right: Any) -> Any:
    return lambda id, status, pred, target, min_pixels=1: right(id, status, pred, target)


def min_pixels_inclusive(right: Any) -> Any:
    return lambda id, status, pred, target, min_pixels=1: right(
        id, status, pred, target, min_pixels + 1
    )


def empty_mask_stays_in_the_union(right: Any) -> Any:
    """Count pixels of an empty mask, as ReLA does where its classifier declares a target none."""

    def record(id: str, status: str, pred: Any, target: Any, min_pixels: int = 1) -> Any:
        made = right(id, status, pred, target, min_pixels)
        if pred and target and made["is_empty"]:
            made["union"] = masks.intersection_and_union(pred, target)[1]
        return made

    return record


def target_by_its_pixels(right: Any) -> Any:
    def record(id: str, status: str, pred: Any, target: Any, min_pixels: int = 1) -> Any:
        known = target if target and masks.area(target) else None
        return right(id, status, pred, known, min_pixels)

    return record


def empty_by_the_status_alone(right: Any) -> Any:
    def record(id: str, status: str, pred: Any, target: Any, min_pixels: int = 1) -> Any:
        return right(id, status, pred, target, min_pixels) | {"is_empty": status == "no_target"}

    return record


def failure_without_target_is_a_false_alarm(right: Any) -> Any:
    def record(id: str, status: str, pred: Any, target: Any, min_pixels: int = 1) -> Any:
        made = right(id, status, pred, target, min_pixels)
        if target is None and pred is None and status != "no_target":
            made["union"] = 1
        return made

    return record


# --- reductions of GRES


def share_of(hits: Sequence[bool], whole: int) -> float:
    return whole * sum(hits) / len(hits) if hits else math.nan


def zero_for_a_right_rejection(_: Any) -> Any:
    return lambda record: overlap.iou(record) if record["has_target"] else 0.0


def one_for_any_union_of_0(_: Any) -> Any:
    return lambda record: overlap.iou(record) if record["union"] else 1.0


def one_for_any_union_of_0_without_target(_: Any) -> Any:
    return lambda r: overlap.iou(r) if r["union"] else float(not r["has_target"])


def stale_flag(_: Any) -> Any:
    """Filter by the flag that the loop before left behind, and average ratios."""

    def cumulative_iou(records: Records) -> float:
        is_no = True
        for record in records:
            is_no = not record["has_target"]
        kept = [
            r["intersection"] / r["union"] if r["union"] else math.nan for r in records if not is_no
        ]
        return sum(kept) / len(kept) if kept else math.nan

    return cumulative_iou


def stale_flag_with_sums(_: Any) -> Any:
    def cumulative_iou(records: Records) -> float:
        kept = records if records and records[-1]["has_target"] else []
        return overlap.ratio_of_sums(kept)

    return cumulative_iou


def sums_over_targets_only(_: Any) -> Any:
    return lambda records: overlap.ratio_of_sums([r for r in records if r["has_target"]])


def mean_of_the_ratios(_: Any) -> Any:
    return lambda records: overlap.mean(records, overlap.iou)


def mean_of_the_target_ratios(_: Any) -> Any:
    return lambda records: overlap.mean([r for r in records if r["has_target"]], overlap.iou)


def ratio_of_the_sums(_: Any) -> Any:
    return overlap.ratio_of_sums


def no_target_accuracy_over_all(_: Any) -> Any:
    return lambda records: share_of([not r["has_target"] and r["is_empty"] for r in records], 100)


def no_target_accuracy_by_union(_: Any) -> Any:
    return lambda records: share_of([r["union"] == 0 for r in records if not r["has_target"]], 100)


def target_accuracy_by_iou(_: Any) -> Any:
    return lambda records: share_of(
        [overlap.iou(r) >= 0.5 for r in records if r["has_target"]], 100
    )


def target_accuracy_over_all(_: Any) -> Any:
    return lambda records: share_of(
        [r["has_target"] and r["status"] == "ok" and not r["is_empty"] for r in records], 100
    )


def target_accuracy_of_whatever_is_not_empty(_: Any) -> Any:
    return lambda records: share_of([not r["is_empty"] for r in records if r["has_target"]], 100)


def zero_where_undefined(right: Any) -> Any:
    def reduction(records: Records, *args: Any, **options: Any) -> float:
        value = right(records, *args, **options)
        return 0.0 if math.isnan(value) else value

    return reduction


def zero_if_all_have_a_target(right: Any) -> Any:
    """Report 0 where every sample has a target, as ReLA does for T_acc and N_acc."""
    return lambda records: right(records) if any(not r["has_target"] for r in records) else 0.0


def precision_over_all(_: Any) -> Any:
    return lambda records, threshold: share_of([overlap.iou(r) >= threshold for r in records], 1)


def precision_with_rejections(_: Any) -> Any:
    return lambda records, threshold: share_of(
        [gres.sample_iou(r) >= threshold for r in records], 1
    )


def strict_threshold(_: Any) -> Any:
    def precision_at(records: Records, threshold: float) -> float:
        kept = [r for r in records if r.get("has_target", True)]
        return share_of([overlap.iou(r) > threshold for r in kept], 1)

    return precision_at


def failures_left_out(right: Any) -> Any:
    return lambda records, *args, **options: right(
        [r for r in records if r["status"] not in ("malformed", "unparseable")], *args, **options
    )


def sums_in(dtype: Any) -> Wrong:
    def wrong(_: Any) -> Any:
        def cumulative_iou(records: Records) -> float:
            with np.errstate(all="ignore"):
                intersection, union = (
                    np.array([r[key] for r in records], np.int64).astype(dtype).sum(dtype=dtype)
                    for key in ("intersection", "union")
                )
                return float(np.float64(intersection) / np.float64(union))

        return cumulative_iou

    wrong.__name__ = f"sums_in_{dtype.__name__}"
    return wrong


def percent(right: Any) -> Any:
    return lambda *args, **options: 100 * right(*args, **options)


def fraction(right: Any) -> Any:
    return lambda *args, **options: right(*args, **options) / 100


def single_precision(_: Any) -> Any:
    return lambda r: (
        float(np.float32(r["intersection"]) / np.float32(r["union"])) if r["union"] else 0.0
    )


INTEGERS = (np.uint8, np.int16, np.uint16, np.int32, np.uint32)

WRONG_GRES_SAMPLES: dict[str, list[Wrong]] = {
    "sample_record": [
        failure_is_empty,
        min_pixels_ignored,
        min_pixels_inclusive,
        empty_mask_stays_in_the_union,
        target_by_its_pixels,
        empty_by_the_status_alone,
        failure_without_target_is_a_false_alarm,
    ],
    "sample_iou": [
        zero_for_a_right_rejection,
        one_for_any_union_of_0,
        one_for_any_union_of_0_without_target,
    ],
}
WRONG_GRES_REDUCTIONS: dict[str, list[Wrong]] = {
    "mean_iou": [
        ratio_of_the_sums,
        mean_of_the_target_ratios,
        failures_left_out,
        zero_where_undefined,
        percent,
    ],
    "cumulative_iou": [
        stale_flag,
        stale_flag_with_sums,
        sums_over_targets_only,
        mean_of_the_ratios,
        mean_of_the_target_ratios,
        failures_left_out,
        zero_where_undefined,
        percent,
        *map(sums_in, INTEGERS),
    ],
    "precision_at": [
        precision_over_all,
        precision_with_rejections,
        strict_threshold,
        failures_left_out,
        zero_where_undefined,
        percent,
    ],
    "target_mean_iou": [mean_of_the_ratios, failures_left_out, zero_where_undefined, percent],
    "no_target_accuracy": [
        no_target_accuracy_over_all,
        no_target_accuracy_by_union,
        zero_if_all_have_a_target,
        failures_left_out,
        zero_where_undefined,
        fraction,
    ],
    "target_accuracy": [
        target_accuracy_by_iou,
        target_accuracy_over_all,
        target_accuracy_of_whatever_is_not_empty,
        zero_if_all_have_a_target,
        failures_left_out,
        zero_where_undefined,
        fraction,
    ],
}
GRES_FAULTS = [
    area_in_uint8,
    *(replacing(gres, name, w) for name, wrong in WRONG_GRES_SAMPLES.items() for w in wrong),
    *(reducing(gres, name, w) for name, wrong in WRONG_GRES_REDUCTIONS.items() for w in wrong),
]


@pytest.mark.parametrize("fault", GRES_FAULTS, ids=lambda fault: fault.__name__)
def test_gres_fault_is_refused(fault: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert refusals("metrics/gres")


# --- reductions of RefSegRS


def both_empty_scores_one(_: Any) -> Any:
    return lambda record: record["intersection"] / record["union"] if record["union"] else 1.0


def minus_one_percent(right: Any) -> Any:
    return lambda records: right(records) - 0.01


WRONG_REFSEGRS_REDUCTIONS: dict[str, list[Wrong]] = {
    "mean_iou": [ratio_of_the_sums, failures_left_out, zero_where_undefined, percent],
    "overall_iou": [
        minus_one_percent,
        mean_of_the_ratios,
        failures_left_out,
        zero_where_undefined,
        percent,
        *map(sums_in, (*INTEGERS, np.float16)),
    ],
    "precision_at": [strict_threshold, failures_left_out, zero_where_undefined, percent],
}
REFSEGRS_FAULTS = [
    replacing(refsegrs, "iou", both_empty_scores_one),  # in mean_iou
    replacing(overlap, "iou", both_empty_scores_one),  # in precision_at
    replacing(overlap, "iou", single_precision),
    *(
        reducing(refsegrs, name, w)
        for name, wrong in WRONG_REFSEGRS_REDUCTIONS.items()
        for w in wrong
    ),
]


@pytest.mark.parametrize("fault", REFSEGRS_FAULTS, ids=lambda fault: fault.__name__)
def test_refsegrs_fault_is_refused(fault: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert refusals("metrics/refsegrs")


# --- both


@pytest.mark.parametrize("benchmark", ["gres", "refsegrs"])
def test_right_implementation_is_not_refused(benchmark: str) -> None:
    assert refusals(f"metrics/{benchmark}") == []


@pytest.mark.parametrize(
    "spec",
    [
        *("mean_iou", "cumulative_iou", "precision_at", "target_mean_iou"),
        *("no_target_accuracy", "target_accuracy"),
    ],
)
def test_gres_samples_that_count_again_are_refused(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (overlap, gres):
        monkeypatch.setattr(module, "unique_samples", list)
    monkeypatch.setattr("lmms_eval_grounding.metrics.samples.unique_samples", list)
    assert refusals(f"metrics/gres/{spec}")


@pytest.mark.parametrize("spec", ["mean_iou", "overall_iou", "precision_at"])
def test_refsegrs_samples_that_count_again_are_refused(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlap, "unique_samples", list)
    monkeypatch.setattr("lmms_eval_grounding.metrics.samples.unique_samples", list)
    assert refusals(f"metrics/refsegrs/{spec}")


@pytest.mark.parametrize("module", [gres, refsegrs], ids=["gres", "refsegrs"])
def test_different_sizes_are_named(module: Any) -> None:
    pred, target = masks.rle_from_rows(["111", "000"]), masks.rle_from_rows(["11", "00", "00"])
    with pytest.raises(ValueError, match=r"(?s)(?=.*2 x 3)(?=.*3 x 2)"):
        module.sample_record("7", "ok", pred, target)


@pytest.mark.parametrize("module", [gres, refsegrs], ids=["gres", "refsegrs"])
def test_counts_are_python_ints_in_the_largest_images(module: Any) -> None:
    # Left three quarters and right three quarters of 2**28 pixels: a half in both.
    side, quarter = 2**14, 2**26
    left = masks.rle_from_coco({"size": [side, side], "counts": [0, 3 * quarter, quarter]})
    right = masks.rle_from_coco({"size": [side, side], "counts": [quarter, 3 * quarter]})
    record = module.sample_record("7", "ok", left, right)
    assert (record["intersection"], record["union"]) == (2 * quarter, 4 * quarter)
    assert type(record["intersection"]) is type(record["union"]) is int


def test_order_of_samples_does_not_change_a_bit() -> None:
    # Thirds, sevenths and ninths: sums of such floats depend on their order unless they are exact.
    pairs = [("100", "111"), ("1110000", "1111111"), ("111100000", "111111111")]
    records = [
        gres.sample_record(str(i), "ok", masks.rle_from_rows([pred]), masks.rle_from_rows([target]))
        for i, (pred, target) in enumerate(20 * pairs)
    ]
    for reduction in (gres.mean_iou, gres.target_mean_iou, refsegrs.mean_iou):
        assert reduction(records) == reduction(records[::-1]) == reduction(records[20:] + records)
