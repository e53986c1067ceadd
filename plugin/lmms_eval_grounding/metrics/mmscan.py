"""MMScan visual grounding metrics: a ranked list of 3D boxes against one or more targets.

They are computed from records (see mmscan_record). A sample without targets is skipped: it is in no
metric and is counted by `skipped_rate`. Every other sample is, whatever its status. Definitions,
rules and deviations of other evaluators: spec/metrics/mmscan/. They follow
``OpenRobotLab/EmbodiedScan@cc3842a:mmscan/evaluator/``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from .mmscan_record import ranked_record, sample_record
from .ranking import average_precision, hit_ranks
from .samples import Record, ratio, share, unique_samples

__all__ = [
    "average_precision_per_sample",
    "average_recall",
    "first_hits",
    "gtop_k",
    "pooled_average_precision",
    "pooled_average_recall",
    "ranked_record",
    "records_by_group",
    "sample_average_precision",
    "sample_gtop_k",
    "sample_recall",
    "sample_record",
    "skipped_rate",
]


def sample_gtop_k(record: Record, k: int, threshold: float) -> float:
    """Return gTop-k of one sample: the share of ``i = 1..N`` with i targets hit by the top ``ik``.

    ``Hit(min(ik, M)) >= i`` holds exactly when the i-th new target is hit at a rank of at most ik.
    """
    found = enumerate(_hit_ranks(record, threshold), start=1)
    return ratio(sum(rank <= i * k for i, rank in found), record["n_targets"])


def sample_average_precision(record: Record, threshold: float) -> float:
    """Return the average precision of one sample's own ranking (see metrics.ranking)."""
    return average_precision(_hit_ranks(record, threshold), record["n_targets"])


def sample_recall(record: Record, threshold: float) -> float:
    """Return the share of one sample's targets that any of its predictions hits."""
    return ratio(len(_hit_ranks(record, threshold)), record["n_targets"])


def gtop_k(records: Sequence[Record], k: int, threshold: float) -> float:
    """Return gTop-k (0-1): the mean of `sample_gtop_k`; NaN where every sample is skipped."""
    return _mean(records, lambda record: sample_gtop_k(record, k, threshold))


def average_precision_per_sample(records: Sequence[Record], threshold: float) -> float:
    """Return AP_sample (0-1): the mean of `sample_average_precision`; NaN as for `gtop_k`."""
    return _mean(records, lambda record: sample_average_precision(record, threshold))


def average_recall(records: Sequence[Record], threshold: float) -> float:
    """Return AR (0-1): the mean of `sample_recall`; NaN as for `gtop_k`."""
    return _mean(records, lambda record: sample_recall(record, threshold))


def pooled_average_precision(records: Sequence[Record], threshold: float) -> float:
    """Return AP_box (0-1): the average precision of each group's pool, weighted by samples.

    A pool holds the predictions of all samples of one group by score, descending; equal scores by
    their rank in the sample, then by the sample's id. Each is matched within its own sample; the
    targets of samples without predictions count as missed. NaN as for `gtop_k`.
    """
    return _mean_over_groups(
        records,
        lambda pool: average_precision(_pooled_hit_ranks(pool, threshold), _n_targets(pool)),
    )


def pooled_average_recall(records: Sequence[Record], threshold: float) -> float:
    """Return AR_box (0-1): the recall of each group's pool, weighted by samples; NaN likewise."""
    return _mean_over_groups(
        records,
        lambda pool: ratio(
            sum(len(_hit_ranks(record, threshold)) for record in pool), _n_targets(pool)
        ),
    )


def skipped_rate(records: Sequence[Record]) -> float:
    """Return the share of samples without targets (0-1); NaN without samples."""
    return share(records, lambda record: record["n_targets"] == 0)


def first_hits(record: Record, threshold: float) -> dict[str, Any]:
    """Return a record with those predictions only that are the first to hit their target.

    Its AR and AR_box at this threshold are those of the whole record; ranks are lost.
    """
    kept = [rank - 1 for rank in _hit_ranks(record, threshold)]
    columns = ("scores", "best_targets", "best_ious")
    return {**record, **{name: [record[name][place] for place in kept] for name in columns}}


def records_by_group(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Return the records of each group that has any, each sample once, in the order of the ids.

    Any metric of one group is that metric of the group's records.
    """
    groups: dict[str, list[Record]] = {}
    for record in unique_samples(records):
        groups.setdefault(record["group"], []).append(record)
    return {group: groups[group] for group in sorted(groups)}


def _hit_ranks(record: Record, threshold: float) -> list[int]:
    return hit_ranks(record["best_targets"], record["best_ious"], threshold)


def _counted(records: Sequence[Record]) -> list[Record]:
    """Return the records that are not skipped, each sample once, in the order of the ids."""
    return [record for record in unique_samples(records) if record["n_targets"]]


def _mean(records: Sequence[Record], value: Callable[[Record], float]) -> float:
    samples = _counted(records)
    return ratio(math.fsum(map(value, samples)), len(samples))


def _mean_over_groups(
    records: Sequence[Record], value: Callable[[Sequence[Record]], float]
) -> float:
    """Return the mean of a pool's value over the groups, weighted by their number of samples."""
    samples = _counted(records)
    pools = records_by_group(samples).values()
    return ratio(math.fsum(len(pool) * value(pool) for pool in pools), len(samples))


def _n_targets(pool: Sequence[Record]) -> int:
    return sum(record["n_targets"] for record in pool)


def _pooled_hit_ranks(pool: Sequence[Record], threshold: float) -> list[int]:
    """Return the ranks in the pool of all first hits, ascending; the pool is in order of its ids.

    Within a sample the pool keeps the sample's own order, so the first hits are the same.
    """
    sizes = [len(record["scores"]) for record in pool]
    scores = np.fromiter(
        chain.from_iterable(record["scores"] for record in pool), np.float64, sum(sizes)
    )
    ranks = np.fromiter(chain.from_iterable(map(range, sizes)), np.int32, sum(sizes))
    is_hit = np.zeros(len(scores), dtype=np.bool_)
    start = 0
    for record, size in zip(pool, sizes, strict=True):
        is_hit[[start + rank - 1 for rank in _hit_ranks(record, threshold)]] = True
        start += size
    order = np.lexsort((ranks, -scores))
    first_hits: list[int] = (np.flatnonzero(is_hit[order]) + 1).tolist()
    return first_hits
