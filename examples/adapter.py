"""An evaluator of RSVG behind `lmms-eval-grounding conformance --command 'python adapter.py'`."""

import json
import sys


def iou(record):  # two boxes without area have the IoU 0
    return record["intersection"] / record["union"] if record["union"] else 0.0


def precision_at(records, threshold, strict=False):
    hits = [iou(r) > threshold if strict else iou(r) >= threshold for r in records]
    return 100 * sum(hits) / len(hits) if hits else "nan"  # JSON has no NaN


def mean_iou(records):
    return sum(map(iou, records)) / len(records) if records else "nan"


for line in sys.stdin:  # one case a line; a sample that arrives twice counts once
    case = json.loads(line)
    function = {"precision_at": precision_at, "mean_iou": mean_iou}.get(case["spec"][13:])
    if not case["spec"].startswith("metrics/rsvg/") or function is None:
        answer = {"skip": "not done here"}
    else:
        given = sorted(case["input"].pop("records"), key=lambda r: json.dumps(r, sort_keys=True))
        records = {record["id"]: record for record in reversed(given)}  # the first text stays
        answer = {"result": function(list(records.values()), **case["input"])}
    print(json.dumps({"id": case["id"], **answer}), flush=True)
