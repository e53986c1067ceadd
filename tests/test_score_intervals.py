"""Intervals: metrics of weighted samples are those of samples that are really drawn again."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from lmms_eval_grounding.benchmarks import rsvg
from lmms_eval_grounding.contract import check
from lmms_eval_grounding.metrics.gres import sample_record as gres_record
from lmms_eval_grounding.metrics.mmscan import ranked_record
from lmms_eval_grounding.scoring.intervals import bootstrap_intervals
from lmms_eval_grounding.scoring.kinds import KINDS
from lmms_eval_grounding.scoring.report import Bootstrap, report_on
from lmms_eval_grounding.scoring.samples import Scored, metric_items
from lmms_eval_grounding.scoring.weighted import Weighted, mean_of_samples, weighted_metric

STATUSES = ("ok", "ok", "ok", "no_target", "malformed", "unparseable")
Record = dict[str, Any]


def of_rsvg(id: str, draw: random.Random) -> Record:
    status = draw.choice(STATUSES)
    union = draw.uniform(1, 5000)
    # A fifth of all are hit exactly at a threshold.
    share = draw.choice([draw.random(), draw.random(), 0.5])
    intersection = share * union if status == "ok" else 0.0
    return {"id": id, "status": status, "intersection": intersection, "union": union}


def of_refsegrs(id: str, draw: random.Random) -> Record:
    status = draw.choice(STATUSES)
    union = draw.randrange(5000)
    intersection = draw.randrange(union + 1) if status == "ok" else 0
    return {"id": id, "status": status, "intersection": intersection, "union": union}


def of_gres(id: str, draw: random.Random) -> Record:
    def mask(start: int, length: int) -> Any:
        from lmms_eval_grounding.geometry.masks import rle_from_coco

        return rle_from_coco({"size": [100, 1], "counts": [start, length, 100 - start - length]})

    status = draw.choice(STATUSES)
    pred = mask(draw.randrange(50), draw.randrange(50)) if status == "ok" else None
    target = mask(draw.randrange(50), draw.randrange(50)) if draw.random() < 0.5 else None
    return gres_record(id, status, pred, target)


def of_mmscan(id: str, draw: random.Random) -> Record:
    n_targets, n_preds = draw.randrange(4), draw.randrange(7)
    groups = ("VG_Inter_OR", "VG_Single_EQ", "VG_Inter_Space_OO")
    return ranked_record(
        id,
        draw.choice(STATUSES),
        draw.choice(groups),
        ious=[[draw.choice([0, 0.25, 0.5, 0.9]) for _ in range(n_targets)] for _ in range(n_preds)],
        # Few different ones, so that many samples tie.
        scores=[draw.randrange(4) / 4 for _ in range(n_preds)],
        n_targets=n_targets,
    )


MADE: dict[str, Callable[[str, random.Random], Record]] = {
    "rsvg": of_rsvg,
    "gres": of_gres,
    "refsegrs": of_refsegrs,
    "mmscan": of_mmscan,
    "mmscan_candidates": of_mmscan,
}


def records_of(benchmark: str, count: int, seed: int) -> list[Record]:
    draw = random.Random(seed)
    records = [MADE[benchmark](f"{number:04}", draw) for number in range(count)]
    for record in records:
        check(record, KINDS[benchmark].record)
    return records


def weighted_metrics(benchmark: str, records: list[Record]) -> dict[str, Weighted]:
    return {
        name: weighted_metric(name, metric, metric_items(records, name, metric), records)
        for name, metric in metrics_of(benchmark).items()
    }


def metrics_of(benchmark: str) -> Any:
    return import_module(f"lmms_eval_grounding.benchmarks.{benchmark}").METRICS


def near(got: float, expected: float) -> bool:
    return got == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("benchmark", MADE)
def test_each_sample_once_gives_the_metric(benchmark: str) -> None:
    records = records_of(benchmark, 200, seed=0)
    once = np.ones((1, len(records)))
    for name, weighted in weighted_metrics(benchmark, records).items():
        metric = metrics_of(benchmark)[name]
        assert near(weighted(once)[0], metric(metric_items(records, name, metric))), name


@pytest.mark.parametrize("benchmark", MADE)
def test_weights_give_the_metric_of_samples_that_are_repeated(benchmark: str) -> None:
    records = records_of(benchmark, 40, seed=1)
    weights = np.random.default_rng(2).multinomial(40, np.full(40, 1 / 40), 8).astype(float)
    weights[0] = np.arange(40) == 7  # one sample alone
    for name, weighted in weighted_metrics(benchmark, records).items():
        metric = metrics_of(benchmark)[name]
        for row, got in zip(weights, weighted(weights), strict=True):
            repeated = [
                {**record, "id": f"{record['id']}#{copy}"}
                for record, count in zip(records, row, strict=True)
                for copy in range(int(count))
            ]
            assert near(got, metric(metric_items(repeated, name, metric))), name


def test_a_cumulative_metric_is_no_mean_of_ratios() -> None:
    records = [
        {"id": "a", "status": "ok", "intersection": 1.0, "union": 1.0},
        {"id": "b", "status": "ok", "intersection": 0.0, "union": 9.0},
    ]
    weighted = weighted_metrics("rsvg", records)
    draws = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    assert weighted["cumIoU"](draws).tolist() == [1, 0.1, 0]
    assert weighted["meanIoU"](draws).tolist() == [1, 0.5, 0]


def test_a_sample_that_is_in_no_denominator_has_no_weight() -> None:
    target = {"id": "a", "status": "ok", "has_target": True, "is_empty": False}
    records = [
        {**target, "intersection": 1, "union": 2},
        {**target, "id": "b", "has_target": False, "intersection": 0, "union": 3},
    ]
    found = weighted_metrics("gres", records)["T-acc"](np.array([[1.0, 9.0], [0.0, 2.0]]))
    assert found[0] == 100
    assert math.isnan(found[1])


def proportion(hits: int, of: int) -> Weighted:
    items = [{"id": f"{n:04}", "status": "ok" if n < hits else "malformed"} for n in range(of)]
    return mean_of_samples(rsvg.METRICS["parse_ok"], items)


def test_the_interval_of_a_proportion_is_that_of_its_binomial_distribution() -> None:
    from scipy.stats import binom

    found = bootstrap_intervals({"p": proportion(60, 200)}, 200, resamples=20_000, seed=0)["p"]
    expected = [binom.ppf(q, 200, 0.3) / 200 for q in (0.025, 0.975)]
    # One count of 200 either way: the percentiles of 20,000 draws have their own error.
    assert list(found) == pytest.approx(expected, abs=1.01 / 200)


def test_intervals_depend_on_the_seed_alone() -> None:
    metrics = {"p": proportion(317, 1000)}

    def interval(seed: int) -> tuple[float, ...]:
        return tuple(bootstrap_intervals(metrics, 1000, resamples=100, seed=seed)["p"])

    assert interval(1) == interval(1) != interval(2)


def test_draws_do_not_depend_on_how_many_are_made_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics = weighted_metrics("gres", records_of("gres", 50, seed=3))
    at_once = bootstrap_intervals(metrics, 50, resamples=30, seed=0)
    monkeypatch.setattr("lmms_eval_grounding.scoring.intervals._CELLS", 1)
    one_by_one = bootstrap_intervals(metrics, 50, resamples=30, seed=0)
    assert {name: tuple(bounds) for name, bounds in at_once.items()} == {
        name: pytest.approx(tuple(bounds), rel=1e-12) for name, bounds in one_by_one.items()
    }


def test_all_samples_alike_leave_no_doubt_and_undefined_metrics_have_no_bounds() -> None:
    sample = {"status": "no_target", "has_target": False, "is_empty": True}
    records = [{"id": id, **sample, "intersection": 0, "union": 0} for id in "abc"]
    report = report_on(Scored("gres", {}, records), Bootstrap(resamples=10, seed=0))
    assert report.intervals["N-acc"] == (100, 100)
    assert all(map(math.isnan, report.intervals["T-acc"]))
    assert all(map(math.isnan, report.intervals["cIoU"]))


@pytest.mark.parametrize("benchmark", MADE)
def test_neither_order_nor_repetition_of_samples_changes_a_report(benchmark: str) -> None:
    records = records_of(benchmark, 50, seed=4)
    others = [*records, *records[:9]]
    random.Random(5).shuffle(others)
    bootstrap = Bootstrap(resamples=20, seed=6)
    first, again = (report_on(Scored(benchmark, {}, r), bootstrap) for r in (records, others))
    assert repr(first.numbers) == repr(again.numbers)
    assert repr(first.intervals) == repr(again.intervals)


def test_numbers_of_a_report_are_exact() -> None:
    report = report_on(Scored("rsvg", {"strict": True}, records_of("rsvg", 3, seed=0)))
    assert Fraction(report.numbers["parse_ok"]).limit_denominator(3) * 3 in (0, 1, 2, 3)
    assert "Pr>0.5" in report.numbers
    assert report.intervals == {}
