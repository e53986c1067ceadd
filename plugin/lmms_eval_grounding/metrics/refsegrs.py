"""RefSegRS metrics: one mask per expression in an aerial image.

A record is what one sample leaves behind: ``{"id", "status", "intersection", "union"}``, counts in
pixels of the target's own resolution. Every sample stays in the denominator, whatever its status.
Definitions, rules and deviations of other evaluators: spec/metrics/refsegrs/.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..geometry.masks import Rle
from .overlap import iou, mean, pixel_counts, ratio_of_sums, require_mask_if_ok, share_reaching
from .samples import Record


def sample_record(id: str, status: str, pred: Rle | None, target: Rle) -> dict[str, str | int]:
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
        The target mask at its own resolution, 512 x 512 in the data set.

    Returns
    -------
    dict
        ``intersection`` and ``union``; 0 and the target's area without a mask.

    Raises
    ------
    ValueError
        For an invalid mask; for masks of different sizes; for a mask without the status ``ok``, or
        that status without a mask.
    """
    require_mask_if_ok(status, pred)
    intersection, union = pixel_counts(pred, target)
    return {"id": id, "status": status, "intersection": intersection, "union": union}


def mean_iou(records: Sequence[Record]) -> float:
    """Return mIoU (0-1): the mean of the samples' IoU; NaN without samples.

    Two masks without pixels score 0, as in Lsan2401/RMSIN@b4a9b27:test.py.
    """
    return mean(records, iou)


def overall_iou(records: Sequence[Record]) -> float:
    """Return oIoU (0-1): the sum of intersections over the sum of unions; NaN if that is 0/0."""
    return ratio_of_sums(records)


def precision_at(records: Sequence[Record], threshold: float) -> float:
    """Return Pr@threshold (0-1): the share of samples with IoU >= threshold; NaN without any."""
    return share_reaching(records, threshold)
