"""What spec/known_failures/ states follows from rules that the evaluators' outputs bear out.

The evaluators themselves are not run: `evaluator_rules` holds what is known of them.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluator_rules import ERROR, RULES, UNKNOWN, ToFloat32, lqvg_iou

from lmms_eval_grounding.corpus import Case, agrees, exact_number, is_met, json_names, load_cases
from lmms_eval_grounding.corpus import read_json as read
from lmms_eval_grounding.geometry.masks import array_from_rle, rle_from_coco
from lmms_eval_grounding.metrics.mmscan_record import GROUPS
from lmms_eval_grounding.runner.answer import Answer
from lmms_eval_grounding.runner.verdict import judged

FILES = {
    "LQVG": "lqvg",
    "TransVG": "transvg",
    "ReLA": "rela",
    "LAVT": "rmsin_lavt",
    "rrsis": "rrsis",
    "MMScan": "mmscan_devkit",
}
Vector = dict[str, Any]


def stated(evaluator: str) -> dict[str, Any]:
    return read("spec", f"known_failures/{FILES[evaluator]}.json")


def ids(reasons: list[dict[str, Any]]) -> set[str]:
    return {id for reason in reasons for id in reason["cases"]}


def outcome(case: Case, value: Any) -> str:
    """Return how a case ends, given what the evaluator makes of it."""
    if value is None:
        return "skipped"
    if value is UNKNOWN:
        return "undetermined"
    if not isinstance(value, ToFloat32):
        return "passed" if is_met(case, value) else "failed"
    exact = float(exact_number(case.expected))
    is_in_reach = agrees(float(value), case.expected, 1e-5)
    is_a_float32 = agrees(float(np.float32(exact)), case.expected, 1e-12)
    return "undetermined" if is_in_reach and is_a_float32 else "failed"


def test_every_file_has_its_rules() -> None:
    names = [name for name in json_names("spec") if name.startswith("known_failures/")]
    assert names == sorted(f"known_failures/{name}" for name in FILES.values())
    assert RULES.keys() == FILES.keys()


@pytest.mark.parametrize("evaluator", FILES)
def test_the_cases_that_fail_by_the_rules_are_those_that_the_file_lists(evaluator: str) -> None:
    file, found = stated(evaluator), {"failed": set(), "undetermined": set()}
    assert file["specs"] == list(RULES[evaluator])
    for spec, rule in RULES[evaluator].items():
        for case in load_cases(spec):
            found.setdefault(outcome(case, rule(**case.input)), set()).add(str(case))
    assert found["failed"] == ids(file["failures"])
    assert found["undetermined"] == ids(file["undetermined"])
    assert found["passed"]


@pytest.mark.parametrize("evaluator", FILES)
def test_an_adapter_of_these_rules_meets_what_the_file_expects(evaluator: str) -> None:
    file = stated(evaluator)
    known, undetermined = ids(file["failures"]), ids(file["undetermined"])
    for spec, rule in RULES[evaluator].items():
        for case in load_cases(spec):
            value = rule(**case.input)
            if isinstance(value, ToFloat32):
                value = float(np.float32(value))
            answer = Answer(result=value) if value is not None else Answer(skipped="no such value")
            assert not judged(case, answer, known, undetermined).is_failure, case


def test_departures_that_a_file_states_are_those_of_the_specs() -> None:
    """Check that an evaluator is named by a spec that it departs from other than by repetition."""
    for evaluator in FILES:
        file = stated(evaluator)
        for reason in file["failures"]:
            if reason["why"].startswith("A sample that arrives twice"):
                continue
            for spec in {id.partition(":")[0] for id in reason["cases"]}:
                data = read("spec", f"{spec}.json")["x-metric"]
                assert any(file["repository"] in d["who"] for d in data["deviations"]), (
                    evaluator,
                    spec,
                )


# --- the rules against what the evaluators really gave


def vectors(folder: Path, name: str) -> list[Vector]:
    loaded: list[Vector] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return loaded


def number(written: Any) -> float:
    return float(written)  # "nan" is written as text


def same(ours: float, theirs: Any, tolerance: float = 1e-12) -> bool:
    return ours == pytest.approx(number(theirs), rel=tolerance, abs=tolerance, nan_ok=True)


def test_lqvg(reference_vectors: Path) -> None:
    rules, compared = RULES["LQVG"], 0
    for vector in vectors(reference_vectors, "rsvg"):
        samples = vector["official"].get("LQVG:per_sample", [])
        table = vector["official"]["LQVG_numpy1"]
        records = [{"intersection": number(s["I"]), "union": number(s["U"])} for s in samples]
        if not samples or any(not math.isfinite(x) or x < 0 for r in records for x in r.values()):
            continue  # boxes that are none; no record holds such areas
        if all(same(lqvg_iou(r), s["iou"], 1e-6) for r, s in zip(records, samples, strict=True)):
            compared += 1
            for t in (0.5, 0.6, 0.7, 0.8, 0.9):
                hits = rules["metrics/rsvg/precision_at"](records, t) / 100
                assert same(hits, table[f"acc@{t}"]), (vector["name"], t)
            assert same(rules["metrics/rsvg/mean_iou"](records), table["meanIoU"], 1e-7)
            assert same(rules["metrics/rsvg/cumulative_iou"](records), table["cumIoU"], 1e-7)
    assert compared > 60


def test_transvg(reference_vectors: Path) -> None:
    rules, compared, undetermined = RULES["TransVG"], 0, 0
    for vector in vectors(reference_vectors, "rsvg"):
        records = [clamped_record(sample) for sample in vector["input"]["samples"]]
        official = vector["official"]
        if None in records or any(0 < record["union"] < 1 for record in records):
            continue  # no box, or one below a pixel, of which float32 keeps few digits
        assert same(rules["metrics/rsvg/mean_iou"](records), official["TransVG:miou"], 1e-5)
        precision = rules["metrics/rsvg/precision_at"](records, 0.5)
        compared += 1
        if precision is UNKNOWN:
            undetermined += 1
        else:
            assert same(precision / 100, official["TransVG:accu@0.5"], 1e-6), vector["name"]
    assert compared > 60
    assert undetermined < compared / 2


def clamped_record(sample: Vector) -> dict[str, float] | None:
    """Return the areas of a predicted box, clipped to the image as TransVG does, and its target."""
    width, height = sample["width"], sample["height"]
    pred, target = ([number(x) for x in sample[name]] for name in ("pred", "gt"))
    if not all(map(math.isfinite, pred + target)):
        return None
    limits = (width, height, width, height)
    pred = [min(max(x, 0.0), limit) for x, limit in zip(pred, limits, strict=True)]
    areas = [(b[2] - b[0]) * (b[3] - b[1]) for b in (pred, target)]
    if any(b[2] < b[0] or b[3] < b[1] for b in (pred, target)):
        return None
    sides = [min(pred[i + 2], target[i + 2]) - max(pred[i], target[i]) for i in (0, 1)]
    intersection = max(sides[0], 0.0) * max(sides[1], 0.0)
    return {"intersection": intersection, "union": sum(areas) - intersection}


def test_rela(reference_vectors: Path) -> None:
    rules, compared = RULES["ReLA"], 0
    for vector in vectors(reference_vectors, "gres"):
        pairs = zip(vector["input"]["samples"], vector["official"]["per_sample"], strict=True)
        records = [
            {
                "has_target": not sample["gt_nt"],
                "is_empty": sample["pred_nt"],
                "intersection": official["I"],
                "union": official["U"],
            }
            for sample, official in pairs
        ]
        if "error" in vector["official"]:
            assert rules["metrics/gres/mean_iou"](records) == ERROR
            continue
        theirs = {key.partition(":")[2]: value for key, value in vector["official"].items()}
        if len({sample["source"] for sample in vector["input"]["samples"]}) > 1:
            continue  # reported by source
        compared += 1
        ours = {
            "gIoU": 100 * rules["metrics/gres/mean_iou"](records),
            "cIoU": 100 * rules["metrics/gres/cumulative_iou"](records),
            "T_acc": rules["metrics/gres/target_accuracy"](records) / 100,
            "N_acc": rules["metrics/gres/no_target_accuracy"](records) / 100,
            **{
                f"Pr@{t}": 100 * rules["metrics/gres/precision_at"](records, threshold=t)
                for t in (0.7, 0.8, 0.9)
            },
        }
        assert all(same(value, theirs[key]) for key, value in ours.items()), vector["name"]
    assert compared == 74


def pixels(written: Any) -> np.ndarray:
    if isinstance(written, dict):
        return np.asarray(array_from_rle(rle_from_coco(written)), bool)
    return np.array(written, bool)


def test_lavt_and_rrsis(reference_vectors: Path) -> None:
    compared = 0
    for vector in vectors(reference_vectors, "refsegrs"):
        if vector["name"].startswith("gt_value_255"):
            continue  # no mask of 0 and 1
        official, records = vector["official"], []
        for sample in vector["input"]["samples"]:
            pred, target = pixels(sample["pred_mask"]), pixels(sample["gt_mask"])
            counts = int((pred & target).sum()), int((pred | target).sum())
            records.append({"intersection": counts[0], "union": counts[1]})
        for name, evaluator in (("RMSIN", "LAVT"), ("rrsis", "rrsis")):
            rules = RULES[evaluator]
            mean = 100 * rules["metrics/refsegrs/mean_iou"](records)
            assert same(mean, official[f"{name}:mIoU"], 1e-6), vector["name"]
            for t in (0.5, 0.6, 0.7, 0.8, 0.9):
                share = rules["metrics/refsegrs/precision_at"](records, threshold=t)
                assert same(100 * share, official[f"{name}:Pr@{t}"], 1e-9), vector["name"]
        overall = 100 * RULES["LAVT"]["metrics/refsegrs/overall_iou"](records)
        printed = 100 * RULES["rrsis"]["metrics/refsegrs/overall_iou"](records)
        assert same(overall, official["RMSIN:oIoU"], 1e-9), vector["name"]
        assert same(printed, official["rrsis:printed_oIoU"], 0.0101), vector["name"]
        compared += 1
    assert compared > 50


def devkit_records(vector: Vector) -> list[dict[str, Any]]:
    """Return records as the devkit sees its samples: ranked by its own sort, on its own IoUs."""
    seen = iter(zip(vector["official"]["iou"], vector["official"]["order"], strict=True))
    records = []
    for sample in vector["input"]["samples"]:
        rows, order = next(seen) if sample["pred"] and sample["gt"] else ([], [])
        ious = [[number(x) for x in row] for row in rows]
        records.append(
            {
                "group": GROUPS.get(sample["subclass"], sample["subclass"]),
                "n_targets": len(sample["gt"]),
                "scores": [number(sample["scores"][i]) for i in order],
                "best_targets": [int(np.argmax(row)) for row in ious],
                "best_ious": [max(row) for row in ious],
            }
        )
    return records


def test_mmscan_devkit(reference_vectors: Path) -> None:
    rules, compared, lost = RULES["MMScan"], 0, 0
    columns = {
        "AP": "metrics/mmscan/average_precision_per_sample",
        "AR": "metrics/mmscan/average_recall",
        "AP_C": "metrics/mmscan/pooled_average_precision",
        "AR_C": "metrics/mmscan/pooled_average_recall",
    }
    for vector in vectors(reference_vectors, "mmscan"):
        official = vector["official"]
        if vector["input"]["kind"] != "boxes" or vector["name"].startswith(
            ("index_collision", "nan", "thin_raises", "zero_size")
        ):
            continue  # an index given twice, and inputs that no record holds
        records = devkit_records(vector)
        values = {
            (column, t): rules[spec](records, threshold=t)
            for column, spec in columns.items()
            for t in (0.25, 0.5)
        } | {
            (f"gTop-{k}", t): rules["metrics/mmscan/gtop_k"](records, k=k, threshold=t)
            for k in (1, 3, 5, 10)
            for t in (0.25, 0.5)
        }
        if "error" in official:
            assert all(value == {"error": "KeyError"} for value in values.values())
            lost += 1
            continue
        table = official["records"]["overall"]
        for (column, t), value in values.items():
            if value is not UNKNOWN:
                assert same(value, table[f"{column}@{t}"], 3e-7), (vector["name"], column, t)
                compared += 1
    assert compared > 500
    assert lost > 0
