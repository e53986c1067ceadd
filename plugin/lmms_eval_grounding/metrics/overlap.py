"""What the metrics of masks share: pixel counts of one sample, ratios of many.

Counts are Python ints and sums of them are exact, whatever the size of images and corpora. A record
holds ``intersection`` and ``union`` in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..geometry.masks import Rle, area, intersection_and_union
from .samples import Record, ratio, share, unique_samples


def pixel_counts(pred: Rle | None, target: Rle | None) -> tuple[int, int]:
    """Return the pixels in both masks and the pixels in either; None is a mask without pixels.

    Raises
    ------
    ValueError
        For an invalid mask, and for masks of different sizes, which the message names.
    """
    if pred is not None and target is not None:
        return intersection_and_union(pred, target)
    return 0, sum(area(mask) for mask in (pred, target) if mask is not None)


def require_mask_if_ok(status: str, pred: Rle | None) -> None:
    """Raise `ValueError` unless a mask comes with the status ``ok``, and only with that one."""
    if (status == "ok") != (pred is not None):
        raise ValueError(f"a mask comes with the status 'ok', and only then; got {status!r}")


def iou(record: Record) -> float:
    """Return ``intersection / union`` of a record, correctly rounded; 0 where the union is 0."""
    return record["intersection"] / record["union"] if record["union"] else 0.0


def mean(records: Sequence[Record], value: Callable[[Record], float]) -> float:
    """Return the mean of a value over the records, each sample once; NaN without records."""
    samples = unique_samples(records)
    return ratio(math.fsum(map(value, samples)), len(samples))


def ratio_of_sums(records: Sequence[Record]) -> float:
    """Return the sum of intersections over the sum of unions, each sample once; NaN for 0/0."""
    samples = unique_samples(records)
    intersection = sum(sample["intersection"] for sample in samples)
    return ratio(intersection, sum(sample["union"] for sample in samples))


def share_reaching(records: Sequence[Record], threshold: float) -> float:
    """Return the share (0-1) of records, each sample once, with IoU >= threshold; NaN without."""
    return share(records, lambda record: iou(record) >= threshold)
