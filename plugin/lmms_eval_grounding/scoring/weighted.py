"""Metrics as functions of how often each sample is drawn, for many draws at once.

``Weighted`` takes weights of shape (draws, samples), each 0, 1, 2, ..., and returns the value of
each draw, NaN where it is undefined. Weights of 1 give the metric itself, but for rounding. Samples
are in the order of their ids, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..benchmarks.host import Aggregation
from ..metrics.ranking import hit_ranks
from ..metrics.samples import Record

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Weighted = Callable[[Floats], Floats]


def weighted_metric(
    name: str, metric: Aggregation, items: Sequence[Record], records: Sequence[Record]
) -> Weighted:
    """Return a reported metric for weighted samples.

    Parameters
    ----------
    name
        Its reported name.
    metric
        From items to the number.
    items
        What it is given of each sample.
    records
        The record of each sample.
    """
    kind, _, threshold = name.partition("@")
    if kind in _OF_SUMS:
        return ratio_of_sums(records)
    if kind in _OF_POOLS:
        return _OF_POOLS[kind](records, float(threshold))
    return mean_of_samples(metric, items)


def mean_of_samples(metric: Aggregation, items: Sequence[Record]) -> Weighted:
    """Return a metric that is a mean over samples: of its values for each sample alone.

    A sample for which it is undefined is in no mean.
    """
    values = np.array([metric([item]) for item in items], dtype=np.float64)
    is_defined = ~np.isnan(values)
    return _ratio(np.where(is_defined, values, 0), is_defined)


def ratio_of_sums(records: Sequence[Record]) -> Weighted:
    """Return the sum of intersections over the sum of unions."""
    return _ratio([r["intersection"] for r in records], [r["union"] for r in records])


def pooled_recall(records: Sequence[Record], threshold: float) -> Weighted:
    """Return AR_box: hits over targets of each group, weighted by the group's samples."""

    def of_group(group: Sequence[Record]) -> Weighted:
        return _ratio([len(_hit_ranks(record, threshold)) for record in group], _n_targets(group))

    return _mean_over_groups(records, of_group)


def pooled_precision(records: Sequence[Record], threshold: float) -> Weighted:
    """Return AP_box: the area under the precision envelope of each group's pool, weighted likewise.

    A sample drawn c times has each prediction c times in the pool, one after the other. Of c copies
    of a hit, each a hit in its own draw, the last has the best precision, so all have its envelope.
    """

    def of_group(group: Sequence[Record]) -> Weighted:
        owners, hits = _pool(group, threshold)
        n_targets = _n_targets(group)

        def precision(weights: Floats) -> Floats:
            areas = np.array([_area(drawn[owners], hits) for drawn in weights])
            return _divided(areas, weights @ n_targets)

        return precision

    return _mean_over_groups(records, of_group)


def _pool(group: Sequence[Record], threshold: float) -> tuple[Places, Places]:
    """Return whose each prediction of a group is, and which are the first to hit their target.

    By score, descending; then by rank in the sample; then by sample.
    """
    sizes = [len(record["scores"]) for record in group]
    scores = np.array([score for record in group for score in record["scores"]], dtype=np.float64)
    ranks = np.array([rank for size in sizes for rank in range(1, size + 1)], dtype=np.intp)
    owners = np.repeat(np.arange(len(group)), sizes)
    is_hit = np.zeros(len(scores), dtype=np.bool_)
    for record, start in zip(group, np.cumsum([0, *sizes]).tolist(), strict=False):
        is_hit[[start + rank - 1 for rank in _hit_ranks(record, threshold)]] = True
    order = np.lexsort((owners, ranks, -scores))
    return owners[order], np.flatnonzero(is_hit[order])


def _area(drawn: Floats, hits: Places) -> float:
    """Return the sum of the envelope over all hits, of one draw of the predictions of a pool."""
    copies = drawn[hits]
    precision = _divided(np.cumsum(copies), np.cumsum(drawn)[hits])
    # 0/0 before anything is drawn; what is not drawn never raises the envelope.
    envelope = np.maximum.accumulate(np.nan_to_num(precision)[::-1])[::-1]
    return float(copies @ envelope)


def _mean_over_groups(
    records: Sequence[Record], of_group: Callable[[Sequence[Record]], Weighted]
) -> Weighted:
    """Return the mean of a value over the groups, weighted by their samples that have targets."""
    groups: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        if record["n_targets"]:
            groups.setdefault(record["group"], []).append(place)
    values = [(places, of_group([records[p] for p in places])) for places in groups.values()]

    def mean(weights: Floats) -> Floats:
        total, samples = np.zeros(len(weights)), np.zeros(len(weights))
        for places, value in values:
            drawn = weights[:, places]
            total += drawn.sum(axis=1) * np.nan_to_num(value(drawn))
            samples += drawn.sum(axis=1)
        return _divided(total, samples)

    return mean


def _ratio(numerators: ArrayLike, denominators: ArrayLike) -> Weighted:
    columns = np.stack([numerators, denominators], axis=1).astype(np.float64)

    def ratio(weights: Floats) -> Floats:
        sums = weights @ columns
        return _divided(sums[:, 0], sums[:, 1])

    return ratio


def _divided(numerators: Floats, denominators: Floats) -> Floats:
    """Return quotients; NaN for 0/0."""
    with np.errstate(invalid="ignore"):
        quotients: Floats = numerators / denominators
    return quotients


def _hit_ranks(record: Record, threshold: float) -> list[int]:
    return hit_ranks(record["best_targets"], record["best_ious"], threshold)


def _n_targets(records: Sequence[Record]) -> Floats:
    return np.array([record["n_targets"] for record in records], dtype=np.float64)


_OF_SUMS = {"cumIoU", "cIoU", "oIoU"}
_OF_POOLS = {"AP_box": pooled_precision, "AR_box": pooled_recall}
