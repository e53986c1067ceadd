"""An evaluator of all four benchmarks behind the protocol; tests break it, one fault at a time."""

import json
import sys
from math import fsum


def text(record):
    return json.dumps(record, sort_keys=True)


def mean(values):
    values = list(values)
    return fsum(values) / len(values) if values else "nan"


def percent(values):
    value = mean(values)
    return value if value == "nan" else 100 * value


def iou(record):
    return record["intersection"] / record["union"] if record["union"] else 0.0


def ratio_of_sums(records):
    union = sum(record["union"] for record in records)
    return sum(record["intersection"] for record in records) / union if union else "nan"


def with_target(records):
    return [record for record in records if record["has_target"]]


def without_target(records):
    return [record for record in records if not record["has_target"]]


def rsvg_hit(record, threshold, strict=False):
    return iou(record) > threshold if strict else iou(record) >= threshold


def gres_score(record):
    return iou(record) if record["has_target"] else float(record["is_empty"])


def answered(record):
    return record["status"] == "ok" and not record["is_empty"]


def distinct_hits(record, top, threshold):
    """Count the targets that are the best target of one of the first predictions."""
    ranked = list(zip(record["best_targets"], record["best_ious"], strict=True))[:top]
    return len({target for target, value in ranked if value >= threshold})


def gtop(record, k, threshold):
    n = record["n_targets"]
    return sum(distinct_hits(record, i * k, threshold) >= i for i in range(1, n + 1)) / n


def recall(record, threshold):
    return distinct_hits(record, None, threshold) / record["n_targets"]


def overlap(a, b, axis):
    return max(0, min(a[axis + 2], b[axis + 2]) - max(a[axis], b[axis]))


def area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


def box_record(id, status, pred, target):
    intersection = overlap(pred, target, 0) * overlap(pred, target, 1) if pred else 0
    union = area(target) + (area(pred) - intersection if pred else 0)
    return {"id": id, "status": status, "intersection": intersection, "union": union}


def scored(records):
    return [record for record in records if record["n_targets"]]


REDUCTIONS = {
    "metrics/rsvg/precision_at": lambda rs, **of: percent(rsvg_hit(r, **of) for r in rs),
    "metrics/rsvg/mean_iou": lambda rs: mean(iou(r) for r in rs),
    "metrics/rsvg/cumulative_iou": ratio_of_sums,
    "metrics/gres/mean_iou": lambda rs: mean(gres_score(r) for r in rs),
    "metrics/gres/cumulative_iou": ratio_of_sums,
    "metrics/gres/no_target_accuracy": lambda rs: percent(
        r["is_empty"] for r in without_target(rs)
    ),
    "metrics/gres/target_accuracy": lambda rs: percent(answered(r) for r in with_target(rs)),
    "metrics/gres/precision_at": lambda rs, threshold: mean(
        iou(r) >= threshold for r in with_target(rs)
    ),
    "metrics/mmscan/gtop_k": lambda rs, **of: mean(gtop(r, **of) for r in scored(rs)),
    "metrics/mmscan/average_recall": lambda rs, **of: mean(recall(r, **of) for r in scored(rs)),
    "metrics/refsegrs/mean_iou": lambda rs: mean(iou(r) for r in rs),
    "metrics/refsegrs/overall_iou": ratio_of_sums,
    "metrics/refsegrs/precision_at": lambda rs, threshold: mean(iou(r) >= threshold for r in rs),
}

for line in sys.stdin:
    case = json.loads(line)
    given = case["input"]
    if case["spec"] == "metrics/rsvg/sample_record":
        answer = {"result": box_record(**given)}
    elif case["spec"] in REDUCTIONS:
        by_text = sorted(given.pop("records"), key=text, reverse=True)
        once = {record["id"]: record for record in by_text}
        answer = {"result": REDUCTIONS[case["spec"]](list(once.values()), **given)}
    else:
        answer = {"skip": "not done here"}
    sys.stdout.write(json.dumps({"id": case["id"], **answer}) + "\n")
    sys.stdout.flush()
