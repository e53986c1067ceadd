"""GRES metrics (gRefCOCO): one mask per expression, for several objects, one, or none.

A record is what one sample leaves behind: ``{"id", "status", "has_target", "is_empty",
"intersection", "union"}``, counts in pixels. Every sample stays in the denominator, whatever its
status; a failed reply is no rejection. Definitions, rules and deviations of other evaluators:
spec/metrics/gres/.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..geometry.masks import Rle, area
from .overlap import iou, mean, pixel_counts, ratio_of_sums, require_mask_if_ok, share_reaching
from .samples import Record, share, unique_samples


def sample_record(
    id: str, status: str, pred: Rle | None, target: Rle | None, min_pixels: int = 1
) -> dict[str, str | bool | int]:
    """Return the record of one sample.

    Parameters
    ----------
    id
        The sample's id, unique in its split.
    status
        ``ok``, ``no_target``, ``malformed`` or ``unparseable``.
    pred
        The predicted mask at the target's size; None where the status is not ``ok``.
    target
        The union of the referred objects; None where the reference has none. A target without
        pixels is a target.
    min_pixels
        A mask of fewer foreground pixels is empty: it says that nothing is there.

    Returns
    -------
    dict
        ``is_empty`` tells whether the reply says that nothing is there, by its status or by an
        empty mask; a failed reply does not. ``intersection`` and ``union`` count an empty mask,
        no mask and no target as without pixels.

    Raises
    ------
    ValueError
        For an invalid mask; for masks of different sizes, also where one is empty; for a mask
        without the status ``ok``, or that status without a mask; for ``min_pixels`` below 1.
    """
    require_mask_if_ok(status, pred)
    if min_pixels < 1:
        raise ValueError(f"min_pixels is {min_pixels}; the least is 1")
    intersection, union = pixel_counts(pred, target)
    is_empty = status == "no_target"
    # What meets the target in so many pixels has them: its area need not be counted.
    if pred is not None and intersection < min_pixels and area(pred) < min_pixels:
        is_empty = True
        intersection, union = pixel_counts(None, target)
    return {
        "id": id,
        "status": status,
        "has_target": target is not None,
        "is_empty": is_empty,
        "intersection": intersection,
        "union": union,
    }


def sample_iou(record: Record) -> float:
    """Return what a sample adds to gIoU: its IoU; without a target 1 if it is rejected, else 0."""
    return iou(record) if record["has_target"] else float(record["is_empty"])


def mean_iou(records: Sequence[Record]) -> float:
    """Return gIoU (0-1): the mean of `sample_iou` over all samples; NaN without samples.

    Not the generalised IoU of boxes. After henghuiding/ReLA@3ca9551:
    gres_model/evaluation/refer_evaluation.py, which reports percent.
    """
    return mean(records, sample_iou)


def cumulative_iou(records: Sequence[Record]) -> float:
    """Return cIoU (0-1): the sum of intersections over the sum of unions; NaN if that is 0/0.

    A false alarm adds its pixels to the union, a rejection on a sample without a target nothing.
    """
    return ratio_of_sums(records)


def precision_at(records: Sequence[Record], threshold: float) -> float:
    """Return Pr@threshold (0-1): the share of target samples with IoU >= threshold.

    NaN without target samples.
    """
    return share_reaching(_samples(records, has_target=True), threshold)


def target_mean_iou(records: Sequence[Record]) -> float:
    """Return target-mIoU (0-1): the mean IoU over target samples only; NaN without any.

    An always-empty model, which gIoU rewards for every sample without a target, gets 0 here.
    """
    return mean(_samples(records, has_target=True), iou)


def no_target_accuracy(records: Sequence[Record]) -> float:
    """Return N-acc: the percentage (0-100) of samples without a target that are rejected.

    NaN where every sample has a target.
    """
    samples = _samples(records, has_target=False)
    return share(samples, lambda record: bool(record["is_empty"]), whole=100)


def target_accuracy(records: Sequence[Record]) -> float:
    """Return T-acc: the percentage (0-100) of target samples with a mask that is not empty.

    The mask may lie anywhere. NaN without target samples.
    """
    samples = _samples(records, has_target=True)
    return share(samples, lambda r: r["status"] == "ok" and not r["is_empty"], whole=100)


def _samples(records: Sequence[Record], has_target: bool) -> list[Record]:
    """Return the samples with, or without, a target, each once."""
    return [sample for sample in unique_samples(records) if sample["has_target"] == has_target]
