"""What one MMScan sample leaves behind: its ranked predictions, each with its best target.

A record is ``{"id", "status", "group", "n_targets", "scores", "best_targets", "best_ious"}``, the
last three with one entry per prediction in rank order: enough for every metric at every threshold.
Its rules: spec/metrics/mmscan/ranked_record.json and sample_record.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..geometry.boxes3d import iou_matrix, is_valid

GROUPS = {
    "VG_Single_Attribute_Unique": "ST-attr",
    "VG_Single_Attribute_Common": "ST-attr",
    "VG_Single_EQ": "ST-attr",
    "VG_Single_Space": "ST-space",
    "VG_Inter_Attribute_OO": "OO-attr",
    "VG_Inter_Space_OO": "OO-space",
    "VG_Inter_OR": "OR",
}
"""The group of each sub-class, by the names of the paper's tables."""

Scores = Sequence[float | None]


def sample_record(
    id: str,
    status: str,
    sub_class: str,
    *,
    preds: ArrayLike,
    scores: Scores | None,
    targets: ArrayLike,
) -> dict[str, Any]:
    """Return the record of one sample, from its boxes.

    Parameters
    ----------
    id
        The sample's id, unique in its split.
    status
        ``ok``, ``no_target``, ``malformed`` or ``unparseable``; only ``ok`` has predictions.
    sub_class
        One of `GROUPS`; any other name is a group of its own.
    preds : (M, 9)
        Predicted boxes in the order of the answer, as geometry.boxes3d has them: scene frame,
        metres, ZXY radians. Those that are not valid are dropped with their scores.
    scores
        One per box, or None. See `ranked_record`.
    targets : (N, 9)
        Target boxes, in the same frame.

    Raises
    ------
    ValueError
        A target is not valid, an array is not (n, 9), or there is not one score per box.
    """
    ious = iou_matrix(preds, targets)
    n_targets = len(np.asarray(targets))
    kept = is_valid(np.asarray(preds, dtype=np.float64).reshape(-1, 9))
    if scores is not None:
        _check_one_score_per_prediction(scores, len(kept))
        scores = [score for score, keep in zip(scores, kept, strict=True) if keep]
    return ranked_record(id, status, sub_class, ious=ious[kept], scores=scores, n_targets=n_targets)


def ranked_record(
    id: str,
    status: str,
    sub_class: str,
    *,
    ious: ArrayLike,
    scores: Scores | None,
    n_targets: int,
) -> dict[str, Any]:
    """Return the record of one sample, from an IoU matrix.

    Parameters
    ----------
    id, status, sub_class
        As for `sample_record`.
    ious : (M, N)
        IoU of every prediction, in the order of the answer, with every target.
    scores
        The predictions' scores. Unless each has a finite one, all of them are set aside: the order
        of the answer is the rank, and the scores are 1, 1/2, 1/3 ...
    n_targets
        ``N``; an empty ``ious`` does not tell it.

    Returns
    -------
    dict
        Predictions by score, descending; equal scores keep the order of the answer. The best of
        several equal targets is the first. No predictions where the status is not ``ok`` or there
        are no targets.

    Raises
    ------
    ValueError
        ``ious`` is not (M, n_targets), an IoU is not in 0-1, or there is not one score per row.
    """
    rows = np.asarray(ious, dtype=np.float64)
    if rows.shape == (0,):
        rows = rows.reshape(0, n_targets)
    if rows.ndim != 2 or rows.shape[1] != n_targets:
        raise ValueError(f"ious must be (M, {n_targets}), got {rows.shape}")
    if not ((rows >= 0) & (rows <= 1)).all():
        raise ValueError("ious must be in 0-1")
    ranked = _scores_in_answer_order(scores, len(rows))
    if status != "ok" or not n_targets:
        rows, ranked = np.zeros((0, 1)), np.zeros(0)
    order = np.argsort(-ranked, kind="stable")
    return {
        "id": id,
        "status": status,
        "group": GROUPS.get(sub_class, sub_class),
        "n_targets": n_targets,
        "scores": ranked[order].tolist(),
        "best_targets": rows.argmax(axis=1)[order].tolist(),
        "best_ious": rows.max(axis=1)[order].tolist(),
    }


def _scores_in_answer_order(scores: Scores | None, n_preds: int) -> NDArray[np.float64]:
    by_place = 1.0 / np.arange(1, n_preds + 1)
    if scores is None:
        return by_place
    _check_one_score_per_prediction(scores, n_preds)
    given = np.array(scores, dtype=np.float64)  # None becomes NaN
    return given if np.isfinite(given).all() else by_place


def _check_one_score_per_prediction(scores: Scores, n_preds: int) -> None:
    if len(scores) != n_preds:
        raise ValueError(f"scores must have one entry per prediction: {len(scores)} != {n_preds}")
