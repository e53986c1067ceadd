"""Wrong implementations of the MMScan metrics are refused by golden cases; right ones agree.

Each fault is one that published code has, or that is easily made, and names the metrics whose
cases refuse it.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from lmms_eval_grounding.conformance import own_answer, passes
from lmms_eval_grounding.corpus import load_cases
from lmms_eval_grounding.geometry.boxes3d import iou_matrix, rotation_from_euler
from lmms_eval_grounding.metrics import mmscan as metrics
from lmms_eval_grounding.metrics import mmscan_record
from lmms_eval_grounding.metrics.samples import unique_samples

Patch = Callable[[pytest.MonkeyPatch], None]

GTOP, AP = "gtop_k", "average_precision_per_sample"
AP_BOX, AR_BOX = "pooled_average_precision", "pooled_average_recall"
MEANS = (GTOP, AP, "average_recall")
POOLED = (AP_BOX, AR_BOX)
CORPUS = (*MEANS, *POOLED)

FAULTS: list[Any] = []


def refusals(metric: str) -> list[str]:
    cases = load_cases(f"metrics/mmscan/{metric}")
    return [str(case) for case in cases if not passes(case, own_answer)]


def refused_by(*names: str) -> Callable[[Patch], Patch]:
    def note(fault: Patch) -> Patch:
        FAULTS.extend(pytest.param(fault, name, id=f"{fault.__name__}-{name}") for name in names)
        return fault

    return note


# Matching


@refused_by(GTOP, AP, "average_recall", AP_BOX, AR_BOX)
def predictions_for_distinct_targets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        metrics,
        "hit_ranks",
        lambda targets, ious, threshold: [
            rank for rank, iou in enumerate(ious, start=1) if iou >= threshold
        ],
    )


@refused_by(*CORPUS)
def strict_threshold(patch: pytest.MonkeyPatch) -> None:
    right = metrics.hit_ranks
    patch.setattr(
        metrics, "hit_ranks", lambda *args: right(*args[:2], math.nextafter(args[2], math.inf))
    )


def patch_record(patch: pytest.MonkeyPatch, wrong: Callable[..., dict[str, Any]]) -> None:
    patch.setattr(metrics, "ranked_record", wrong)
    patch.setattr(mmscan_record, "ranked_record", wrong)


def rows_of(ious: Any, n_targets: int) -> np.ndarray:
    return np.asarray(ious, dtype=np.float64).reshape(len(ious), n_targets)


def with_targets(record: dict[str, Any], ious: Any, chosen: Sequence[int]) -> dict[str, Any]:
    """Return a record of predictions that are given by rank, with these targets for the best."""
    n = len(record["scores"])
    values = [float(ious[i][chosen[i]]) for i in range(n)]
    return record | {"best_targets": [int(t) for t in chosen[:n]], "best_ious": values}


def by_rank(args: tuple[Any, ...], given: dict[str, Any]) -> tuple[dict[str, Any], np.ndarray]:
    """Return the right record, and the IoU rows in its order."""
    rows, scores = rows_of(given["ious"], given["n_targets"]), given["scores"]
    if scores and None not in scores:
        rows = rows[sorted(range(len(rows)), key=lambda i: -scores[i])]
    return RIGHT_RECORD(*args, **given), rows


RIGHT_RECORD = mmscan_record.ranked_record


@refused_by("ranked_record")
def best_assignment_as_a_whole(patch: pytest.MonkeyPatch) -> None:
    def wrong(*args: Any, **given: Any) -> dict[str, Any]:
        record, rows = by_rank(args, given)
        chosen = list(rows.argmax(axis=1)) if rows.size else []
        for pred, target in zip(*linear_sum_assignment(-rows), strict=True):
            chosen[pred] = target
        return with_targets(record, rows, chosen)

    patch_record(patch, wrong)


@refused_by("ranked_record")
def next_best_free_target(patch: pytest.MonkeyPatch) -> None:
    def wrong(*args: Any, **given: Any) -> dict[str, Any]:
        record, rows = by_rank(args, given)
        chosen: list[int] = []
        for row in rows:
            free = [t for t in range(len(row)) if t not in chosen] or range(len(row))
            chosen.append(max(free, key=lambda t: row[t]))
        return with_targets(record, rows, chosen)

    patch_record(patch, wrong)


@refused_by("ranked_record")
def last_target_on_ties(patch: pytest.MonkeyPatch) -> None:
    def wrong(*args: Any, **given: Any) -> dict[str, Any]:
        record, rows = by_rank(args, given)
        chosen = [len(row) - 1 - int(np.argmax(row[::-1])) for row in rows if len(row)]
        return with_targets(record, rows, chosen)

    patch_record(patch, wrong)


@refused_by("ranked_record")
def ious_in_single_precision(patch: pytest.MonkeyPatch) -> None:
    def wrong(*args: Any, **given: Any) -> dict[str, Any]:
        single = rows_of(given["ious"], given["n_targets"]).astype(np.float32)
        return RIGHT_RECORD(*args, **given | {"ious": single})

    patch_record(patch, wrong)


# Ranking


def patch_order(patch: pytest.MonkeyPatch, order_of: Callable[[np.ndarray], Sequence[int]]) -> None:
    def wrong(*args: Any, **given: Any) -> dict[str, Any]:
        scores = given["scores"]
        if not scores or None in scores or len(scores) != len(given["ious"]):
            return RIGHT_RECORD(*args, **given)
        order = order_of(np.array(scores, dtype=np.float64))
        ranked = given | {"ious": [given["ious"][i] for i in order], "scores": None}
        record = RIGHT_RECORD(*args, **ranked)
        return record | {"scores": [scores[i] for i in order][: len(record["scores"])]}

    patch_record(patch, wrong)


@refused_by("ranked_record", "sample_record")
def unsorted_ranks(patch: pytest.MonkeyPatch) -> None:
    patch_order(patch, lambda scores: range(len(scores)))


@refused_by("ranked_record", "sample_record")
def ascending_scores(patch: pytest.MonkeyPatch) -> None:
    patch_order(patch, lambda scores: np.argsort(scores, kind="stable").tolist())


@refused_by("ranked_record")
def reversed_ties(patch: pytest.MonkeyPatch) -> None:
    patch_order(patch, lambda scores: np.argsort(scores, kind="stable")[::-1].tolist())


@refused_by("ranked_record")
def unstable_ties(patch: pytest.MonkeyPatch) -> None:
    def selection_sort(scores: np.ndarray) -> list[int]:
        order = list(range(len(scores)))
        for i in range(len(order)):
            best = max(range(i, len(order)), key=lambda j: scores[order[j]])
            order[i], order[best] = order[best], order[i]
        return order

    patch_order(patch, selection_sort)


@refused_by("ranked_record")
def missing_scores_count_as_zero(patch: pytest.MonkeyPatch) -> None:
    def wrong(*args: Any, **given: Any) -> dict[str, Any]:
        scores = given["scores"] or [None] * len(given["ious"])
        return RIGHT_RECORD(*args, **given | {"scores": [score or 0.0 for score in scores]})

    patch_record(patch, wrong)


@refused_by("ranked_record", "sample_record")
def boxes_of_failed_replies_count(patch: pytest.MonkeyPatch) -> None:
    patch_record(
        patch,
        lambda id, status, sub_class, **given: (
            RIGHT_RECORD(id, "ok", sub_class, **given) | {"status": status}
        ),
    )


@refused_by("ranked_record")
def seven_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mmscan_record, "GROUPS", {})


# gTop-k


def patch_gtop(patch: pytest.MonkeyPatch, budget: Callable[[int, int], int]) -> None:
    def wrong(record: Any, k: int, threshold: float) -> float:
        ranks = metrics.hit_ranks(record["best_targets"], record["best_ious"], threshold)
        n_targets = record["n_targets"]
        return sum(rank <= budget(k, n_targets) for rank in ranks) / n_targets

    patch.setattr(metrics, "sample_gtop_k", wrong)


@refused_by(GTOP)
def share_of_targets_hit_by_the_first_nk(patch: pytest.MonkeyPatch) -> None:
    patch_gtop(patch, lambda k, n_targets: k * n_targets)


@refused_by(GTOP)
def share_of_targets_hit_by_the_first_k(patch: pytest.MonkeyPatch) -> None:
    patch_gtop(patch, lambda k, n_targets: k)


@refused_by(GTOP)
def any_hit_in_the_first_k(patch: pytest.MonkeyPatch) -> None:
    def wrong(record: Any, k: int, threshold: float) -> float:
        return float(any(iou >= threshold for iou in record["best_ious"][:k]))

    patch.setattr(metrics, "sample_gtop_k", wrong)


@refused_by(GTOP)
def terms_end_at_the_first_failure(patch: pytest.MonkeyPatch) -> None:
    def wrong(record: Any, k: int, threshold: float) -> float:
        ranks = metrics.hit_ranks(record["best_targets"], record["best_ious"], threshold)
        met = [rank <= i * k for i, rank in enumerate(ranks, start=1)]
        return float((*met, False).index(False) / record["n_targets"])

    patch.setattr(metrics, "sample_gtop_k", wrong)


# Average precision


@refused_by(AP, AP_BOX)
def eleven_points(patch: pytest.MonkeyPatch) -> None:
    def wrong(ranks: Sequence[int], n_targets: int) -> float:
        points = [(i / n_targets, i / rank) for i, rank in enumerate(ranks, start=1)]
        levels = [step / 10 for step in range(11)]
        return sum(max([p for r, p in points if r >= level], default=0) for level in levels) / 11

    patch.setattr(metrics, "average_precision", wrong)


@refused_by(AP, AP_BOX)
def no_envelope(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        metrics,
        "average_precision",
        lambda ranks, n_targets: sum(i / r for i, r in enumerate(ranks, start=1)) / n_targets,
    )


@refused_by(AP, AP_BOX)
def average_precision_in_single_precision(patch: pytest.MonkeyPatch) -> None:
    right = metrics.average_precision
    patch.setattr(metrics, "average_precision", lambda ranks, n: float(np.float32(right(ranks, n))))


# Pools


@refused_by(*POOLED)
def targets_of_failed_replies_leave_the_pool(patch: pytest.MonkeyPatch) -> None:
    def wrong(pool: Any) -> int:
        return sum(record["n_targets"] for record in pool if record["scores"]) or 1

    patch.setattr(metrics, "_n_targets", wrong)


@refused_by(*POOLED)
def all_groups_in_one_pool(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        metrics,
        "records_by_group",
        lambda samples: {"": unique_samples(samples)} if samples else {},
    )


def patch_weights(patch: pytest.MonkeyPatch, weight: Callable[[Any], float]) -> None:
    def wrong(records: Any, value: Callable[[Any], float]) -> float:
        pools = metrics.records_by_group([r for r in records if r["n_targets"]]).values()
        weights = [weight(pool) for pool in pools]
        if not sum(weights):
            return 0.0 if weights else math.nan
        return sum(w * value(p) for w, p in zip(weights, pools, strict=True)) / sum(weights)

    patch.setattr(metrics, "_mean_over_groups", wrong)


@refused_by(*POOLED)
def unweighted_groups(patch: pytest.MonkeyPatch) -> None:
    patch_weights(patch, lambda pool: 1)


@refused_by(*POOLED)
def groups_weighted_by_targets(patch: pytest.MonkeyPatch) -> None:
    patch_weights(patch, lambda pool: sum(record["n_targets"] for record in pool))


@refused_by(*POOLED)
def groups_weighted_by_samples_with_predictions(patch: pytest.MonkeyPatch) -> None:
    patch_weights(patch, lambda pool: sum(bool(record["scores"]) for record in pool))


@refused_by(*POOLED)
def skipped_samples_weigh(patch: pytest.MonkeyPatch) -> None:
    def wrong(records: Any, value: Callable[[Any], float]) -> float:
        pools = metrics.records_by_group(records).values()
        total = sum(map(len, pools))
        return sum(len(p) * value(p) for p in pools) / total if total else math.nan

    patch.setattr(metrics, "_mean_over_groups", wrong)


def patch_pool_order(patch: pytest.MonkeyPatch, key: Callable[[float, int, int], Any]) -> None:
    def wrong(pool: Any, threshold: float) -> list[int]:
        entries = []
        for place, record in enumerate(pool):
            ranks = metrics.hit_ranks(record["best_targets"], record["best_ious"], threshold)
            entries += [
                (key(score, rank, place), rank in ranks)
                for rank, score in enumerate(record["scores"], start=1)
            ]
        ordered = sorted(entries, key=lambda entry: entry[0])
        return [rank for rank, (_, is_hit) in enumerate(ordered, start=1) if is_hit]

    patch.setattr(metrics, "_pooled_hit_ranks", wrong)


@refused_by(AP_BOX)
def pool_in_the_order_of_samples(patch: pytest.MonkeyPatch) -> None:
    patch_pool_order(patch, lambda score, rank, place: (place, rank))


@refused_by(AP_BOX)
def pool_by_rank(patch: pytest.MonkeyPatch) -> None:
    patch_pool_order(patch, lambda score, rank, place: (rank, place))


@refused_by(AP_BOX)
def pooled_ties_by_id_before_rank(patch: pytest.MonkeyPatch) -> None:
    patch_pool_order(patch, lambda score, rank, place: (-score, place, rank))


@refused_by(AP_BOX)
def pooled_ties_by_id_backwards(patch: pytest.MonkeyPatch) -> None:
    patch_pool_order(patch, lambda score, rank, place: (-score, rank, -place))


@refused_by(AP_BOX)
def samples_share_their_targets(patch: pytest.MonkeyPatch) -> None:
    def wrong(pool: Any, threshold: float) -> list[int]:
        columns = [
            [entry for record in pool for entry in record[name]]
            for name in ("scores", "best_targets", "best_ious")
        ]
        merged = sorted(zip(*columns, strict=True), key=lambda row: -row[0])
        return metrics.hit_ranks([r[1] for r in merged], [r[2] for r in merged], threshold)

    patch.setattr(metrics, "_pooled_hit_ranks", wrong)


@refused_by(AP_BOX)
def pool_in_the_order_of_arrival(patch: pytest.MonkeyPatch) -> None:
    def unsorted_unique(records: Any) -> list[Any]:
        return list({record["id"]: record for record in records}.values())

    patch.setattr(metrics, "unique_samples", unsorted_unique)


# Denominators


def patch_each(patch: pytest.MonkeyPatch, names: Sequence[str], wrap: Callable[..., Any]) -> None:
    for name in names:
        right = getattr(metrics, name)
        patch.setattr(
            metrics,
            name,
            lambda records, right=right, **options: wrap(right, records, options),
        )


@refused_by(*MEANS)
def skipped_samples_count_as_zero(patch: pytest.MonkeyPatch) -> None:
    def wrap(right: Any, records: Any, options: Any) -> float:
        if not records or math.isnan(right(records, **options)):
            return 0.0 if records else math.nan
        return float(right(records, **options) * (1 - metrics.skipped_rate(records)))

    patch_each(patch, MEANS, wrap)


@refused_by(*CORPUS)
def only_samples_with_predictions_count(patch: pytest.MonkeyPatch) -> None:
    def wrap(right: Any, records: Any, options: Any) -> float:
        return float(right([r for r in records if r["scores"]], **options))

    patch_each(patch, CORPUS, wrap)


@refused_by(*CORPUS)
def only_replies_that_were_read_count(patch: pytest.MonkeyPatch) -> None:
    def wrap(right: Any, records: Any, options: Any) -> float:
        return float(right([r for r in records if r["status"] == "ok"], **options))

    patch_each(patch, CORPUS, wrap)


@refused_by(*CORPUS)
def no_samples_score_zero(patch: pytest.MonkeyPatch) -> None:
    def wrap(right: Any, records: Any, options: Any) -> float:
        value = float(right(records, **options))
        return 0.0 if math.isnan(value) else value

    patch_each(patch, CORPUS, wrap)


@refused_by(*CORPUS)
def percent_for_fraction(patch: pytest.MonkeyPatch) -> None:
    patch_each(patch, CORPUS, lambda right, records, options: 100 * right(records, **options))


@refused_by(*MEANS)
def mean_over_targets(patch: pytest.MonkeyPatch) -> None:
    def wrong(records: Any, value: Callable[[Any], float]) -> float:
        samples = [r for r in unique_samples(records) if r["n_targets"]]
        total = sum(r["n_targets"] for r in samples)
        return sum(value(r) * r["n_targets"] for r in samples) / total if total else math.nan

    patch.setattr(metrics, "_mean", wrong)


@refused_by(*CORPUS, "records_by_group")
def repeated_samples_count_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, "unique_samples", lambda records: sorted(records, key=lambda r: r["id"]))


@refused_by("skipped_rate")
def failed_replies_are_skipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        metrics,
        "skipped_rate",
        lambda records: (
            sum(not r["scores"] for r in unique_samples(records)) / len(unique_samples(records))
            if records
            else math.nan
        ),
    )


@refused_by(AP)
def pooled_for_per_sample(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, AP, metrics.pooled_average_precision)


@refused_by(AP_BOX)
def per_sample_for_pooled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, AP_BOX, metrics.average_precision_per_sample)


@refused_by(AR_BOX)
def mean_recall_for_pooled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, AR_BOX, metrics.average_recall)


# Boxes


def patch_boxes(patch: pytest.MonkeyPatch, reading: Callable[[np.ndarray], np.ndarray]) -> None:
    """Make every valid box be read in another way before IoUs are taken."""

    def misread(boxes: Any) -> Any:
        rows = np.array(boxes, dtype=np.float64).reshape(-1, 9)
        return [reading(row) if (row[3:6] > 0).all() else row for row in rows]

    patch.setattr(
        mmscan_record,
        "iou_matrix",
        lambda preds, targets: iou_matrix(misread(preds), misread(targets)),
    )


@refused_by("sample_record")
def rotations_ignored(patch: pytest.MonkeyPatch) -> None:
    patch_boxes(patch, lambda box: np.r_[box[:6], 0, 0, 0])


@refused_by("sample_record")
def bounding_boxes_of_turned_boxes(patch: pytest.MonkeyPatch) -> None:
    def reading(box: np.ndarray) -> np.ndarray:
        extent = np.abs(rotation_from_euler(box[6:], "ZXY")) @ box[3:6]
        return np.r_[box[:3], extent, 0, 0, 0]

    patch_boxes(patch, reading)


@refused_by("sample_record")
def degrees_for_radians(patch: pytest.MonkeyPatch) -> None:
    patch_boxes(patch, lambda box: np.r_[box[:6], np.radians(box[6:])])


@refused_by("sample_record")
def half_sizes_for_sizes(patch: pytest.MonkeyPatch) -> None:
    patch_boxes(patch, lambda box: np.r_[box[:3], 2 * box[3:6], box[6:]])


@refused_by("sample_record")
def bottom_for_centre(patch: pytest.MonkeyPatch) -> None:
    patch_boxes(patch, lambda box: np.r_[box[:2], box[2] + box[5] / 2, box[3:]])


@pytest.mark.parametrize("order", ["ZYX", "XYZ", "zxy"])
def test_another_order_of_angles_is_refused(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval_grounding.geometry import boxes3d

    right = boxes3d.rotation_from_euler
    monkeypatch.setattr(boxes3d, "rotation_from_euler", lambda angles, _: right(angles, order))
    assert refusals("sample_record")


@refused_by("sample_record")
def invalid_predictions_are_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mmscan_record, "is_valid", lambda boxes: np.ones(len(boxes), dtype=bool))


def test_the_right_implementation_is_not_refused() -> None:
    assert refusals("") == []


@pytest.mark.parametrize(("fault", "metric"), FAULTS)
def test_fault_is_refused(fault: Patch, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    assert refusals(metric)


# The definitions, read literally, and the promise on order


def random_records(rng: random.Random, n_samples: int) -> list[dict[str, Any]]:
    records = []
    for i in range(n_samples):
        n_targets, n_preds = rng.randint(0, 5), rng.randint(0, 12)
        ious = [[rng.choice([0, 0.1, 0.3, 0.5, 0.7]) for _ in range(n_targets)]] * n_preds
        ious = [rng.sample(row, len(row)) for row in ious]
        scores = [rng.choice([0.1, 0.2, 0.5, 0.7]) for _ in ious] if rng.random() < 0.8 else None
        records.append(
            metrics.ranked_record(
                f"s{i}",
                "ok" if n_preds else "unparseable",
                rng.choice(list(mmscan_record.GROUPS)),
                ious=ious,
                scores=scores,
                n_targets=n_targets,
            )
        )
    return records


def numbers(records: list[dict[str, Any]], threshold: float) -> list[float]:
    return [
        *(metrics.gtop_k(records, k, threshold) for k in (1, 3, 5, 10)),
        metrics.average_precision_per_sample(records, threshold),
        metrics.average_recall(records, threshold),
        metrics.pooled_average_precision(records, threshold),
        metrics.pooled_average_recall(records, threshold),
        metrics.skipped_rate(records),
    ]


@pytest.mark.parametrize("threshold", [0.25, 0.5])
def test_order_and_repetition_change_no_bit(threshold: float) -> None:
    rng = random.Random(5)
    records = random_records(rng, 120)
    expected = numbers(records, threshold)
    for _ in range(20):
        padded = records + rng.sample(records, 30)
        rng.shuffle(padded)
        assert numbers(padded, threshold) == expected


def literal_gtop(record: dict[str, Any], k: int, threshold: float) -> float:
    """Return 1/N * sum over i = 1..N of [Hit(min(i * k, M)) >= i]."""
    n, m = record["n_targets"], len(record["scores"])

    def hit(top: int) -> int:
        pairs = zip(record["best_targets"][:top], record["best_ious"][:top], strict=True)
        return len({target for target, iou in pairs if iou >= threshold})

    return sum(hit(min(i * k, m)) >= i for i in range(1, n + 1)) / n


def literal_area(is_hit: Sequence[bool], n_targets: int) -> float:
    """Return the area under the precision envelope, by every point of the curve."""
    found = np.cumsum(is_hit)
    recall = np.r_[0, found / n_targets]
    precision = found / np.arange(1, len(is_hit) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall) * envelope))


def literal_hits(record: dict[str, Any], threshold: float) -> list[bool]:
    taken: list[int] = []
    hits = []
    for target, iou in zip(record["best_targets"], record["best_ious"], strict=True):
        hits.append(iou >= threshold and target not in taken)
        taken += [target] * hits[-1]
    return hits


@pytest.mark.parametrize("threshold", [0.25, 0.5])
def test_definitions_read_literally_agree(threshold: float) -> None:
    records = random_records(random.Random(11), 300)
    counted = [record for record in records if record["n_targets"]]
    for k in (1, 2, 3, 5, 10):
        expected = np.mean([literal_gtop(record, k, threshold) for record in counted])
        assert metrics.gtop_k(records, k, threshold) == pytest.approx(expected, abs=1e-12)

    hits = [literal_hits(record, threshold) for record in counted]
    areas = [literal_area(h, r["n_targets"]) for h, r in zip(hits, counted, strict=True)]
    assert metrics.average_precision_per_sample(records, threshold) == pytest.approx(
        np.mean(areas), abs=1e-12
    )
    recalls = [sum(h) / r["n_targets"] for h, r in zip(hits, counted, strict=True)]
    assert metrics.average_recall(records, threshold) == pytest.approx(np.mean(recalls), abs=1e-12)

    ap_box = ar_box = 0.0
    for group in {record["group"] for record in counted}:
        pool = [r for r in counted if r["group"] == group]
        rows = sorted(
            (-score, rank, record["id"], is_hit)
            for record in pool
            for rank, (score, is_hit) in enumerate(
                zip(record["scores"], literal_hits(record, threshold), strict=True)
            )
        )
        n_targets = sum(record["n_targets"] for record in pool)
        ap_box += len(pool) * literal_area([row[3] for row in rows], n_targets) / len(counted)
        ar_box += len(pool) * sum(row[3] for row in rows) / n_targets / len(counted)
    assert metrics.pooled_average_precision(records, threshold) == pytest.approx(ap_box, abs=1e-12)
    assert metrics.pooled_average_recall(records, threshold) == pytest.approx(ar_box, abs=1e-12)


def test_scores_that_are_not_finite_are_missing() -> None:
    """A golden case is strict JSON and cannot say this."""
    for bad in (math.nan, math.inf, -math.inf):
        record = metrics.ranked_record(
            "7", "ok", "VG_Inter_OR", ious=[[0.5], [0.25]], scores=[0.5, bad], n_targets=1
        )
        assert record["scores"] == [1.0, 0.5]
        assert record["best_ious"] == [0.5, 0.25]


def test_predictions_that_are_not_finite_are_dropped() -> None:
    unit = [0, 0, 0, 1, 1, 1, 0, 0, 0]
    preds = [[math.nan, *unit[1:]], unit, [*unit[:8], math.inf]]
    record = metrics.sample_record(
        "7", "ok", "VG_Inter_OR", preds=preds, scores=[0.9, 0.5, 0.7], targets=[unit]
    )
    assert (record["scores"], record["best_ious"]) == ([0.5], [1.0])
