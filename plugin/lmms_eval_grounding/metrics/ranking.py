"""Ranked predictions against several targets: which of them find a new target, and how early.

Everything here needs only the ranks of the predictions that are a target's first hit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .samples import ratio


def hit_ranks(
    best_targets: Sequence[int], best_ious: Sequence[float], threshold: float
) -> list[int]:
    """Return the ranks (the first is 1), ascending, at which a target is hit that was not before.

    Parameters
    ----------
    best_targets
        The index of each prediction's best target, in rank order.
    best_ious
        The IoU with that target.
    threshold
        A prediction hits its best target when ``IoU >= threshold``. It never turns to another
        target: one whose best target is taken is a false positive.

    Returns
    -------
    list of int
        One rank per distinct target hit, so at most as many as there are targets.
    """
    taken = set()
    ranks = []
    for rank, (target, iou) in enumerate(zip(best_targets, best_ious, strict=True), start=1):
        if iou >= threshold and target not in taken:
            taken.add(target)
            ranks.append(rank)
    return ranks


def average_precision(ranks: Sequence[int], n_targets: int) -> float:
    """Return the area under the precision envelope over recall, all points, in float64.

    Every hit raises the recall by ``1 / n_targets``; it counts with the best precision that is
    reached at its recall or at a higher one. So ``AP = 1/N * sum_j max_{l >= j} l / ranks[l]``.

    Parameters
    ----------
    ranks
        As `hit_ranks` returns them.
    n_targets
        All targets, those never hit included.

    Returns
    -------
    float
        0-1; 0 without hits; NaN without targets.
    """
    envelope = []
    best = 0.0
    for found in range(len(ranks), 0, -1):
        best = max(best, found / ranks[found - 1])
        envelope.append(best)
    return ratio(math.fsum(envelope), n_targets)
