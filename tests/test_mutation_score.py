"""What the golden cases alone detect: the list of survivors is whole, and a slice of it is true."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "mutation_score.py"
LISTED: dict[str, Any] = json.loads(
    (REPOSITORY / "scripts" / "mutation_survivors.json").read_text("utf-8")
)
LEAST = {"metrics": 0.95, "geometry": 0.95, "parsing": 0.85}
PACKAGE = REPOSITORY / "plugin" / "lmms_eval_grounding"


@pytest.mark.parametrize("part", LEAST)
def test_the_score_is_what_is_asked_for_and_the_list_explains_the_rest(part: str) -> None:
    score = LISTED["score"][part]
    assert score["detected"] >= LEAST[part] * score["mutants"]
    survivors = [entry for entry in LISTED["survivors"] if entry["in"].startswith(f"{part}/")]
    listed = sum(entry.get("times", 1) for entry in survivors)
    assert score["detected"] + listed == score["mutants"]


def test_the_readme_tells_the_scores() -> None:
    text = " ".join((REPOSITORY / "README.md").read_text("utf-8").split())
    metrics, geometry, parsing = (
        f"{score['detected'] / score['mutants']:.1%}" for score in LISTED["score"].values()
    )
    told = f"{metrics} in `metrics/`, {geometry} in `geometry/` and {parsing} in `parsing/`"
    assert list(LISTED["score"]) == ["metrics", "geometry", "parsing"]
    assert told in text


def test_every_survivor_is_in_the_code_and_has_a_reason() -> None:
    sources: dict[str, str] = {}
    for entry in LISTED["survivors"]:
        module, _, function = entry["in"].partition(": ")
        if module not in sources:
            sources[module] = " ".join((PACKAGE / module).read_text("utf-8").split())
        assert f"def {function.rpartition('.')[2]}(" in sources[module], entry
        assert " ".join(entry["before"].split()) in sources[module], entry
        assert len(entry["why"]) >= 20, entry
    keys = Counter((entry["in"], entry["before"], entry["after"]) for entry in LISTED["survivors"])
    assert set(keys.values()) <= {1}


def run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_module_survives_as_the_list_says() -> None:
    done = run(SCRIPT, "--only", "metrics/refsegrs.py")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert re.search(
        r"^metrics: (\d\d+) of \1 mutants detected, 100.0%$", done.stdout, re.MULTILINE
    )


def test_a_survivor_that_is_not_listed_is_told(tmp_path: Path) -> None:
    """Run it in a copy of the repository in which thresholds have lost their cases."""
    for name in ("plugin", "tasks", "spec", "golden_cases", "scripts"):
        shutil.copytree(
            REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for path in ("metrics/refsegrs/precision_at.json", "tasks/refsegrs.json"):
        file = tmp_path / "golden_cases" / path
        cases = json.loads(file.read_text("utf-8"))
        cases["cases"] = [case for case in cases["cases"] if "no samples" in case["description"]]
        file.write_text(json.dumps(cases), "utf-8")
    done = run(tmp_path / "scripts" / SCRIPT.name, "--only", "metrics/refsegrs.py")
    assert done.returncode == 1
    told = "survives, and is not listed: Mutant(place='metrics/refsegrs.py: precision_at'"
    assert told in done.stdout
