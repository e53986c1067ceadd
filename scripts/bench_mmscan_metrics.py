"""Measure the MMScan metrics on a load like MMScan's, side by side with a literal implementation.

Every sample has 100 predictions and 1 to 6 targets; one pair in ten overlaps. Measured are:
making the records from IoU matrices, each reported metric over all records, and the per-sample
metrics once more by their definitions, row by row from the matrices, as evaluation code usually
has them. Values are compared. The IoUs themselves are measured by bench_boxes3d.py.

Times are CPU times of one process. The extrapolation to the 217,002 samples of the val split is
linear; with --samples 217002 it is measured instead, which takes about 4 GB.
"""

from __future__ import annotations

import argparse
import math
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lmms_eval_grounding.metrics import mmscan
from lmms_eval_grounding.metrics.mmscan_record import GROUPS

MMSCAN_VAL_SAMPLES = 217_002
THRESHOLDS = (0.25, 0.5)
TOPS = (1, 3, 5, 10)
METRICS: dict[str, Callable[[Any], float]] = {
    **{
        name: metric
        for t in THRESHOLDS
        for name, metric in {
            **{f"gTop-{k}@{t}": partial(mmscan.gtop_k, k=k, threshold=t) for k in TOPS},
            f"AP_sample@{t}": partial(mmscan.average_precision_per_sample, threshold=t),
            f"AR@{t}": partial(mmscan.average_recall, threshold=t),
            f"AP_box@{t}": partial(mmscan.pooled_average_precision, threshold=t),
            f"AR_box@{t}": partial(mmscan.pooled_average_recall, threshold=t),
        }.items()
    },
    "skipped": mmscan.skipped_rate,
}


def random_load(rng: np.random.Generator, n_samples: int) -> list[tuple[np.ndarray, list[float]]]:
    """Return an IoU matrix and scores, in the order of the answer, for every sample."""
    load = []
    for _ in range(n_samples):
        shape = (100, int(rng.integers(1, 7)))
        ious = np.where(rng.random(shape) < 0.1, rng.random(shape), 0.0)
        load.append((ious, rng.random(100).tolist()))
    return load


def make_records(load: list[tuple[np.ndarray, list[float]]]) -> list[dict[str, Any]]:
    sub_classes = list(GROUPS)
    return [
        mmscan.ranked_record(
            f"{i:06}",
            "ok",
            sub_classes[i % len(sub_classes)],
            ious=ious,
            scores=scores,
            n_targets=ious.shape[1],
        )
        for i, (ious, scores) in enumerate(load)
    ]


def literal_sample_numbers(ious: np.ndarray, scores: list[float]) -> dict[str, float]:
    """Return one sample's gTop-k, AP and AR at every threshold, by their definitions."""
    ious = ious[np.argsort(scores)[::-1]]
    n_preds, n_targets = ious.shape
    numbers = {}
    for t in THRESHOLDS:
        hit = np.zeros(n_targets, dtype=bool)
        hits_after, is_new = [], []
        for row in ious:
            best = 0
            for j in range(n_targets):
                if row[j] > row[best]:
                    best = j
            is_new.append(bool(row[best] >= t and not hit[best]))
            hit[best] |= is_new[-1]
            hits_after.append(int(hit.sum()))
        for k in TOPS:
            met = [hits_after[min(i * k, n_preds) - 1] >= i for i in range(1, n_targets + 1)]
            numbers[f"gTop-{k}@{t}"] = sum(met) / n_targets
        precision = np.array(hits_after) / np.arange(1, n_preds + 1)
        envelope = np.maximum.accumulate(precision[::-1])[::-1]
        numbers[f"AP_sample@{t}"] = float(envelope[is_new].sum() / n_targets)
        numbers[f"AR@{t}"] = hits_after[-1] / n_targets
    return numbers


def cpu_seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python scripts/bench_mmscan_metrics.py --samples 500 --literal 50",
    )
    parser.add_argument(
        "--samples", type=int, default=2000, help="samples of 100 predictions (default %(default)s)"
    )
    parser.add_argument(
        "--literal",
        type=int,
        default=200,
        help="samples for the literal implementation, which is slow (default %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the load (default %(default)s)")
    arguments = parser.parse_args()

    load = random_load(np.random.default_rng(arguments.seed), arguments.samples)
    scale = MMSCAN_VAL_SAMPLES / len(load)
    print(f"load: {len(load):,} samples, {100 * len(load):,} predictions")
    print(f"{'':<16}{'seconds':>9}{'samples/s':>12}{'217,002 samples':>18}")

    def line(name: str, seconds: float) -> None:
        print(f"{name:<16}{seconds:>9.3f}{len(load) / seconds:>12,.0f}{scale * seconds:>16.1f} s")

    seconds, records = cpu_seconds(lambda: make_records(load))
    line("records", seconds)
    total = 0.0
    for name, metric in METRICS.items():
        seconds, _ = cpu_seconds(lambda metric=metric: metric(records))
        line(name, seconds)
        total += seconds
    line(f"all {len(METRICS)} metrics", total)
    print(f"metrics per second: {len(METRICS) / total:.1f} over {len(load):,} samples")

    few = load[: arguments.literal]
    seconds, literal = cpu_seconds(lambda: [literal_sample_numbers(*sample) for sample in few])
    ours_seconds, _ = cpu_seconds(
        lambda: [METRICS[name](records[: len(few)]) for name in literal[0]]
    )
    worst = max(
        abs(METRICS[name](records[: len(few)]) - math.fsum(n[name] for n in literal) / len(few))
        for name in literal[0]
    )
    print(
        f"{len(literal[0])} per-sample metrics of {len(few):,} samples: literal {seconds:.3f} s, "
        f"ours {ours_seconds:.3f} s, ours is {seconds / ours_seconds:.1f} x; "
        f"max |difference| {worst:.1e}"
    )

    measured = load[:2000]
    scale = MMSCAN_VAL_SAMPLES / len(measured)
    tracemalloc.start()
    again = make_records(measured)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    mmscan.pooled_average_precision(again, 0.25)
    peak = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    print(
        f"peak memory of {len(measured):,} samples: records {held / 1e6:.1f} MB, "
        f"AP_box {peak / 1e6:.1f} MB more; extrapolated to {MMSCAN_VAL_SAMPLES:,}: "
        f"{scale * held / 1e9:.2f} GB and {scale * peak / 1e9:.2f} GB"
    )


if __name__ == "__main__":
    main()
