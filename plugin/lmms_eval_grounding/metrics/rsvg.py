"""RSVG metrics: one box per expression in a satellite image.

A record is what one sample leaves behind: ``{"id", "status", "intersection", "union"}``, areas in
square pixels. Every sample stays in the denominator, whatever its status. Definitions, rules and
deviations of other evaluators: spec/metrics/rsvg/.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from ..geometry.boxes import Box, area, intersection_and_union
from .samples import Record, ratio, share, unique_samples


def sample_record(id: str, status: str, pred: Box | None, target: Box) -> dict[str, str | float]:
    """Return the record of one sample.

    Parameters
    ----------
    id
        The sample's id, unique in its split.
    status
        ``ok``, ``no_target``, ``malformed`` or ``unparseable``.
    pred
        The first box of the final answer, ``(x1, y1, x2, y2)`` in pixels, clipped to the image;
        None where the status is not ``ok``.
    target
        The target box, in the same frame.

    Returns
    -------
    dict
        ``intersection`` and ``union`` of the two areas; 0 and the target's area without a box.
    """
    if pred is None:
        intersection, union = 0.0, area(target)
    else:
        intersection, union = intersection_and_union(pred, target)
    return {"id": id, "status": status, "intersection": intersection, "union": union}


def sample_iou(record: Record) -> float:
    """Return ``intersection / union`` of a record, correctly rounded; 0 where the union is 0."""
    return record["intersection"] / record["union"] if record["union"] else 0.0


def precision_at(records: Sequence[Record], threshold: float, strict: bool = False) -> float:
    """Return Pr@threshold: the percentage (0-100) of samples with IoU >= threshold.

    ``strict`` asks for IoU > threshold instead, as the code that is nearest to an official
    evaluator does (LANMNG/LQVG@6e26403:inference_rsvg.py). NaN without samples.
    """
    is_hit = operator.gt if strict else operator.ge
    return share(records, lambda record: is_hit(sample_iou(record), threshold), whole=100)


def mean_iou(records: Sequence[Record]) -> float:
    """Return meanIoU (0-1): the mean of the samples' IoU; NaN without samples."""
    samples = unique_samples(records)
    return ratio(math.fsum(map(sample_iou, samples)), len(samples))


def cumulative_iou(records: Sequence[Record]) -> float:
    """Return cumIoU (0-1): the sum of intersections over the sum of unions; NaN if that is 0/0."""
    samples = unique_samples(records)
    intersection = math.fsum(sample["intersection"] for sample in samples)
    return ratio(intersection, math.fsum(sample["union"] for sample in samples))
