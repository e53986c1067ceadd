"""The README's table of differences is that of the corpus, and its values follow from the code.

Official code is not run here: `evaluator_rules` and `circulating_recipes` hold what is known of it.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from circulating_recipes import RECIPES, gtop
from conftest import REPOSITORY
from evaluator_rules import RULES, UNKNOWN, ToFloat32

from lmms_eval_grounding.corpus import agrees, json_names, load_cases, meaning, read_json
from lmms_eval_grounding.geometry.masks import array_from_rle, rle_from_coco

SCRIPT = REPOSITORY / "scripts" / "differences_table.py"
EVALUATORS = {
    "LQVG": "LQVG",
    "TransVG": "TransVG",
    "ReLA": "ReLA",
    "MMScan devkit": "MMScan",
    "RMSIN and LAVT": "LAVT",
    "rrsis": "rrsis",
}
CASES = {str(case): case for case in load_cases("metrics/")}
FILES = [name for name in json_names("spec") if name.startswith("differences/")]
# A record of which every recipe has all its values.
ORDINARY = {
    **{"intersection": 1, "union": 2, "has_target": True, "is_empty": False},
    **{"n_targets": 1, "best_ious": [0.5]},
}
ROWS = {row["case"]: row for name in FILES for row in read_json("spec", f"{name}.json")["rows"]}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("differences_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_written(value: Any, written: Any, tolerance: float) -> bool:
    """Return whether a value is the one that a row has; an exception is a dict on both sides."""
    if isinstance(value, dict) or isinstance(written, dict):
        return bool(value == written)
    return agrees(value, written, 1e-5 if isinstance(value, ToFloat32) else tolerance)


# --- the README


def test_readme_has_the_table_of_the_corpus(script) -> None:
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    assert script.with_table(readme) == readme, "run python scripts/differences_table.py"
    assert readme.count(script.table()) == 1


def test_check_refuses_another_table(script, tmp_path: Path, monkeypatch, capsys) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{script.BEGIN}\n| old |\n{script.END}\nafter\n", "utf-8")
    monkeypatch.setattr(script, "README", readme)
    monkeypatch.setattr(sys, "argv", ["differences_table.py", "--check"])
    assert script.main() == 1
    assert "run python scripts/differences_table.py" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["differences_table.py"])
    assert script.main() == 0
    text = readme.read_text("utf-8")
    assert text == f"before\n{script.BEGIN}\n\n{script.table()}\n{script.END}\nafter\n"
    monkeypatch.setattr(sys, "argv", ["differences_table.py", "--check"])
    assert script.main() == 0


def test_a_text_without_markers_is_refused(script) -> None:
    with pytest.raises(ValueError, match="has no block"):
        script.with_table(f"{script.END}\n{script.BEGIN}\n")


def test_script_says_how_to_use_it() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--help"], capture_output=True, text=True, check=True
    )
    assert "--check" in done.stdout


def test_the_table_has_all_benchmarks_and_rows(script) -> None:
    assert sorted(f"differences/{name}" for name in script.TEXTS) == FILES, (
        "TEXTS and the files differ"
    )
    lines = script.table().splitlines()
    assert len(lines) == 2 + len(ROWS)
    for name in FILES:
        shown = read_json("spec", f"{name}.json")["benchmark"]
        assert sum(line.startswith(f"| {shown} |") for line in lines) >= 3
    assert {line.count("|") for line in lines} == {len(script.HEAD) + 1}  # no cell holds a bar


RECORD = {"id": "a", "status": "ok", "intersection": 1, "union": 2}
EMPTY = {**RECORD, "is_empty": True, "intersection": 0}
MASK = {**RECORD, "is_empty": False}
RANKED = {"id": "a", "status": "ok", "scores": [0.9, 0.8], "best_targets": [1, 0]}


@pytest.mark.parametrize(
    ("benchmark", "records", "text"),
    [
        ("rsvg", [RECORD], "IoU 1/2"),
        ("refsegrs", [RECORD, {**RECORD, "id": "b"}, RECORD], "IoU 1/2; IoU 1/2; IoU 1/2 again"),
        ("gres", [{**MASK, "has_target": True}], "IoU 1/2"),
        ("gres", [{**EMPTY, "has_target": True}], "IoU 0/2, rejected"),
        ("gres", [{**EMPTY, "has_target": False}], "no target, rejected"),
        ("gres", [{**MASK, "has_target": False}], "no target, mask of 2 px"),
        (
            "gres",
            [{**MASK, "has_target": False, "status": "unparseable"}],
            "no target, unparseable",
        ),
        (
            "mmscan",
            [{**RANKED, "n_targets": 2, "best_ious": [0.9, 0.6]}],
            "2 targets; boxes best on no. 2 (IoU 0.9), no. 1 (IoU 0.6)",
        ),
        (
            "mmscan",
            [{**RANKED, "n_targets": 1, "scores": [], "best_targets": [], "best_ious": []}],
            "1 target; no boxes",
        ),
    ],
)
def test_input_is_told_in_words(script, benchmark: str, records: list[Any], text: str) -> None:
    case = next(case for id, case in CASES.items() if id.startswith(f"metrics/{benchmark}/"))
    given = script.Case(case.spec, "a case", (), {"records": records}, 0)
    assert script.input_text(given) == text


# --- the rows


@pytest.mark.parametrize("id", ROWS)
def test_official_values_follow_from_the_rules(id: str) -> None:
    case, official = CASES[id], ROWS[id]["official"]
    settled = {}
    for evaluator, name in EVALUATORS.items():
        rule = RULES[name].get(case.spec)
        value = rule(**case.input) if rule else None
        if value is not None and value is not UNKNOWN:
            settled[evaluator] = value
    assert list(official) == list(settled)
    tolerance = meaning(case.spec)["tolerance"]
    for evaluator, value in settled.items():
        assert is_written(value, official[evaluator], tolerance), (evaluator, value)


@pytest.mark.parametrize("id", ROWS)
def test_recipe_value_follows_from_the_recipe(script, id: str) -> None:
    case, row = CASES[id], ROWS[id]
    name = script.reported_name(case).replace(">", "@")  # the recipe has no strict option
    benchmark = case.spec.split("/")[1]
    assert benchmark in RECIPES, f"circulating_recipes.py has no recipe for {benchmark}"
    recipe = RECIPES[benchmark]
    assert ("recipe" in row) == (name in recipe([ORDINARY]))
    if "recipe" not in row:
        return
    try:
        value: Any = recipe(case.input["records"])[name]
        value *= 100 if name in ("N-acc", "T-acc") else 1
    except ZeroDivisionError as fault:
        value = {"error": type(fault).__name__}
    assert is_written(value, row["recipe"], meaning(case.spec)["tolerance"]), value


# --- the recipes against what they gave on the inputs that the official code was run on


def vectors(folder: Path, name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return loaded


def is_same(ours: dict[str, float], theirs: dict[str, Any]) -> bool:
    """Return whether two tables have the same names, and values up to the last digits."""
    return ours.keys() == theirs.keys() and all(
        value == pytest.approx(float(theirs[name]), rel=1e-12, abs=1e-12, nan_ok=True)
        for name, value in ours.items()
    )


def pixels(written: Any) -> np.ndarray:
    if isinstance(written, dict):
        return np.asarray(array_from_rle(rle_from_coco(written)), bool)
    return np.array(written, bool)


def counts(pred: np.ndarray, target: np.ndarray) -> dict[str, Any]:
    return {"intersection": int((pred & target).sum()), "union": int((pred | target).sum())}


def areas(sample: dict[str, Any]) -> dict[str, float]:
    """Return intersection and union of two boxes as they are: unclipped, with signed areas."""
    pred, target = ([float(x) for x in sample[key]] for key in ("pred", "gt"))
    width = max(0.0, min(pred[2], target[2]) - max(pred[0], target[0]))
    height = max(0.0, min(pred[3], target[3]) - max(pred[1], target[1]))
    both = sum((b[2] - b[0]) * (b[3] - b[1]) for b in (pred, target))
    return {"intersection": width * height, "union": both - width * height}


def test_rsvg_recipe(reference_vectors: Path) -> None:
    met = refused = 0
    for vector in vectors(reference_vectors, "rsvg"):
        records = [areas(sample) for sample in vector["input"]["samples"]]
        if "error" in vector["recipe"]:
            with pytest.raises(ZeroDivisionError):
                RECIPES["rsvg"](records)
            refused += 1
            continue
        assert is_same(RECIPES["rsvg"](records), vector["recipe"]), vector["name"]
        met += 1
    assert (met, refused) == (80, 10)


def test_gres_recipe(reference_vectors: Path) -> None:
    met = 0
    for vector in vectors(reference_vectors, "gres"):
        records = []
        for sample in vector["input"]["samples"]:
            pred, target = pixels(sample["pred_mask"]), pixels(sample["gt_mask"])
            answer = {"has_target": not sample["gt_nt"], "is_empty": not pred.any()}
            records.append(answer | counts(pred, target))
        theirs = {name.rstrip("."): value for name, value in vector["recipe"].items()}
        assert is_same(RECIPES["gres"](records), theirs), vector["name"]
        met += 1
    assert met == 82


def test_refsegrs_recipe(reference_vectors: Path) -> None:
    met = 0
    for vector in vectors(reference_vectors, "refsegrs"):
        samples = vector["input"]["samples"]
        records = [counts(pixels(s["pred_mask"]), pixels(s["gt_mask"])) for s in samples]
        assert is_same(RECIPES["refsegrs"](records), vector["recipe"]), vector["name"]
        met += 1
    assert met == 60


def gtops(iou: list[list[Any]]) -> dict[str, float]:
    matrix = np.array(iou, float)
    return {
        f"gTop-{k}@{t}": gtop((matrix >= t).any(axis=1).tolist(), matrix.shape[1], k)
        for k in (1, 3, 5, 10)
        for t in (0.25, 0.5)
    }


def test_mmscan_recipe(reference_vectors: Path) -> None:
    """Compare by the IoU matrices of samples that have boxes and targets, ranked by score."""
    matrices = samples = 0
    for vector in vectors(reference_vectors, "mmscan"):
        if vector["input"]["kind"] == "iou_matrix":
            assert is_same(gtops(vector["input"]["iou"]), vector["recipe"]), vector["name"]
            matrices += 1
        elif vector["input"]["kind"] == "boxes":
            pairs = zip(vector["official"]["iou"], vector["recipe"]["per_sample"], strict=True)
            for iou, theirs in pairs:
                assert is_same(gtops(iou), theirs), vector["name"]
                samples += 1
    assert (matrices, samples) == (20, 268)
