"""Percentile bootstrap over samples: how far numbers would move with other samples of the kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from .weighted import Floats, Weighted

LEVEL = 0.95
# Weights in memory at a time: 8 MB, or one resample.
_CELLS = 2**20


class Interval(NamedTuple):
    """The bounds between which 95 % of the draws lie; NaN if no draw has a value."""

    low: float
    high: float


def bootstrap_intervals(
    metrics: Mapping[str, Weighted],
    n_samples: int,
    resamples: int,
    seed: int,
    progress: bool = False,
) -> dict[str, Interval]:
    """Return the interval of each metric.

    Every resample draws ``n_samples`` samples with replacement, the same for all metrics. The
    bounds are the 2.5 and the 97.5 percentile of a metric's values, interpolated linearly;
    resamples in which it is undefined are left out.
    """
    values: dict[str, list[Floats]] = {name: [] for name in metrics}
    shown = None if progress else True  # None: unless it would not be seen on a terminal
    with tqdm(total=resamples, desc="Resampling", disable=shown) as bar:
        for weights in _weights(n_samples, resamples, seed):
            for name, metric in metrics.items():
                values[name].append(metric(weights))
            bar.update(len(weights))
    return {name: _interval(np.concatenate(parts)) for name, parts in values.items()}


def _weights(n_samples: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each sample is drawn, some resamples at a time."""
    generator = np.random.default_rng(seed)
    rows = max(1, _CELLS // n_samples)
    for start in range(0, resamples, rows):
        weights = np.empty((min(rows, resamples - start), n_samples))
        for row in weights:
            row[:] = np.bincount(generator.integers(0, n_samples, n_samples), minlength=n_samples)
        yield weights


def _interval(values: Floats) -> Interval:
    defined = values[~np.isnan(values)]
    if not len(defined):
        return Interval(np.nan, np.nan)
    outside = (1 - LEVEL) / 2
    low, high = np.quantile(defined, [outside, 1 - outside]).tolist()
    return Interval(low, high)
