"""What the metrics of all benchmarks share: unique samples, exact sums, status rates."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]


def unique_samples(records: Iterable[Record]) -> list[Record]:
    """Return the records with every sample id once, in the order of the ids.

    Distributed samplers pad by repeating samples; a repeated sample must not count twice. Records
    of one id are expected to agree; if they do not, the first in the order of their JSON text is
    kept, so that the result is the same however they arrive.
    """
    kept: dict[str, Record] = {}
    for record in records:
        other = kept.setdefault(record["id"], record)
        if other != record:
            kept[record["id"]] = min(other, record, key=lambda r: json.dumps(r, sort_keys=True))
    return [kept[id] for id in sorted(kept)]


def ratio(numerator: float, denominator: float) -> float:
    """Return one correctly rounded division; NaN for 0/0, where nothing is defined."""
    return numerator / denominator if denominator else math.nan


def share(records: Sequence[Record], condition: Callable[[Record], bool], whole: int = 1) -> float:
    """Return the share of records, each sample once, that meet a condition, in parts of ``whole``.

    One correctly rounded division of two counts; NaN without records.
    """
    samples = unique_samples(records)
    return ratio(whole * sum(condition(sample) for sample in samples), len(samples))


def sample_value(record: Record, value: Callable[[Record], float]) -> Record:
    """Return ``{"id", "value"}`` of one sample: all that `mean_value` needs of it.

    The value is None where it is NaN: the sample is in no mean.
    """
    number = value(record)
    return {"id": record["id"], "value": None if math.isnan(number) else number}


def mean_value(items: Iterable[Record]) -> float:
    """Return the mean of the values that are not None, each sample once; NaN where there is none.

    The sum is exact and is rounded once, before the division.
    """
    values = [item["value"] for item in unique_samples(items) if item["value"] is not None]
    return ratio(math.fsum(values), len(values))


def status_rate(records: Sequence[Record], status: str) -> float:
    """Return the share of samples whose reply had a status (0-1); NaN without samples.

    The rates of ``ok``, ``no_target``, ``malformed`` and ``unparseable`` add up to 1.
    """
    return share(records, lambda record: record["status"] == status)
