"""The definitions of the metrics as they are passed around for re-implementations, as code.

Where they leave something undefined it is filled in the plainest way. Each function takes the
records of all samples and returns a table by the recipe's names and in its units; ``gtop`` takes
one sample. A division by zero that the recipe makes with numpy is nan, else an exception.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

Record = dict[str, Any]
Table = dict[str, float]
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


def rsvg(records: Sequence[Record]) -> Table:
    """Return Pr in percent, the IoUs as fractions, with plain division and ``>=``."""
    ious = [record["intersection"] / record["union"] for record in records]
    intersections = sum(record["intersection"] for record in records)
    return {
        **{f"Pr@{t}": 100 * sum(iou >= t for iou in ious) / len(ious) for t in THRESHOLDS},
        "meanIoU": sum(ious) / len(ious),
        "cumIoU": intersections / sum(record["union"] for record in records),
    }


def gres(records: Sequence[Record]) -> Table:
    """Return fractions. A mask of no pixels is a rejection, whatever the reply says."""
    gious, true_negatives, true_positives = [], 0, 0
    for record in records:
        is_no = not record["has_target"]
        iou = numpy_ratio(record)
        gious.append(0.0 if is_no else iou)
        true_negatives += is_no and record["is_empty"]
        true_positives += not is_no and iou >= 0.5
    # The filter was meant for each sample, but is_no is that of the last one of the loop above.
    ratios = [numpy_ratio(record) for record in records if not is_no]
    return {
        "gIoU": sum(gious) / len(records),
        "cIoU": sum(ratios) / len(ratios) if ratios else math.nan,
        "N-acc": true_negatives / len(records),
        "T-acc": true_positives / len(records),
    }


def numpy_ratio(record: Record) -> float:
    return record["intersection"] / record["union"] if record["union"] else math.nan


def gtop(matches: Sequence[bool], n_targets: int, k: int) -> float:
    """Return a sample's gTop-k: of its predictions, in the order given, it counts those that match.

    A prediction matches if its IoU with any target reaches the threshold.
    """
    terms = [sum(matches[: i * k]) >= i for i in range(1, n_targets + 1)]
    return sum(terms) / n_targets


def mmscan(records: Sequence[Record]) -> Table:
    """Return the means over samples as fractions; the recipe has no AP and no AR."""
    return {
        f"gTop-{k}@{t}": sum(
            gtop([iou >= t for iou in record["best_ious"]], record["n_targets"], k)
            for record in records
        )
        / len(records)
        for k in (1, 3, 5, 10)
        for t in (0.25, 0.5)
    }


def refsegrs(records: Sequence[Record]) -> Table:
    """Return what RMSIN does, as fractions, and with one threshold."""
    ious = [r["intersection"] / r["union"] if r["union"] else 0.0 for r in records]
    union = sum(record["union"] for record in records)
    return {
        "mIoU": sum(ious) / len(ious),
        "oIoU": sum(record["intersection"] for record in records) / union if union else math.nan,
        "Pr@0.5": sum(iou >= 0.5 for iou in ious) / len(ious),
    }


RECIPES: dict[str, Callable[[Sequence[Record]], Table]] = {
    "rsvg": rsvg,
    "gres": gres,
    "mmscan": mmscan,
    "refsegrs": refsegrs,
}
