"""An evaluator of RSVG behind `lmms-eval-grounding conformance --command 'python adapter.py'`."""

import json
import sys
from math import fsum


def iou(record):
    return record["intersection"] / record["union"] if record["union"] else 0.0


def precision_at(records, threshold, strict=False):
    hits = [iou(r) > threshold if strict else iou(r) >= threshold for r in samples(records)]
    return 100 * sum(hits) / len(hits) if hits else "nan"


def mean_iou(records):
    ious = [iou(record) for record in samples(records)]
    return fsum(ious) / len(ious) if ious else "nan"


def cumulative_iou(records):
    union = fsum(record["union"] for record in samples(records))
    return fsum(record["intersection"] for record in samples(records)) / union if union else "nan"


def sample_record(id, status, pred, target):
    intersection = overlap(pred, target, 0) * overlap(pred, target, 1) if pred else 0
    union = area(target) + (area(pred) - intersection if pred else 0)
    return {"id": id, "status": status, "intersection": intersection, "union": union}


def samples(records):
    return {record["id"]: record for record in records}.values()


def overlap(a, b, axis):
    return max(0, min(a[axis + 2], b[axis + 2]) - max(a[axis], b[axis]))


def area(box):
    return (box[2] - box[0]) * (box[3] - box[1])


METRICS = [precision_at, mean_iou, cumulative_iou, sample_record]
FUNCTIONS = {f"metrics/rsvg/{function.__name__}": function for function in METRICS}

for line in sys.stdin:
    case = json.loads(line)
    function = FUNCTIONS.get(case["spec"])
    said = {"result": function(**case["input"])} if function else {"skip": "not done here"}
    print(json.dumps({"id": case["id"], **said}), flush=True)
