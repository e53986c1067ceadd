"""The command `conformance`: our code and both examples pass, and every fault fails its cases."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import REPOSITORY

from lmms_eval_grounding.cli import main
from lmms_eval_grounding.corpus import Case, exact_number, load_cases

EXAMPLES = REPOSITORY / "examples"
PYTHON_EXAMPLE = f"{sys.executable} {EXAMPLES / 'adapter.py'}"
RSVG = load_cases("metrics/rsvg/")


def outcomes(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, str]]:
    """Return the exit code of a run, and the outcome of every case by its id."""
    report = tmp_path / "report.json"
    code = main(["conformance", "--json", str(report), "--show", "1", *arguments])
    cases = json.loads(report.read_text("utf-8"))["cases"]
    return code, {case["id"]: case["outcome"] for case in cases}


def test_our_code_passes_without_torch_and_the_host() -> None:
    code = (
        "import sys; from lmms_eval_grounding.cli import main; code = main(['conformance']);"
        "sys.stdout.write(str({'lmms_eval', 'torch', 'datasets'} & set(sys.modules)));"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    *_, totals, loaded = done.stdout.splitlines()
    assert totals.split() == ["all", "cases", str(len(load_cases()))]
    assert loaded == "set()"


@pytest.mark.parametrize(
    ("program", "example"), [(sys.executable, "adapter.py"), ("node", "adapter.mjs")]
)
def test_example_does_the_rsvg_metrics_and_skips_the_rest(
    program: str, example: str, tmp_path: Path
) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    code, found = outcomes(tmp_path, "--command", f"{program} {EXAMPLES / example}")
    assert code == 0
    assert {id for id, outcome in found.items() if outcome == "passed"} == set(map(str, RSVG))
    assert {id for id, outcome in found.items() if outcome == "skipped"} == {
        str(case) for case in load_cases() if not case.spec.startswith("metrics/rsvg/")
    }


# --- one fault at a time: which cases it breaks follows from the cases' own numbers


def ratios(case: Case) -> list[Fraction]:
    """Return intersection over union of every record, a repeated one once."""
    return [
        Fraction(record["intersection"]) / Fraction(record["union"]) if record["union"] else 0
        for record in {record["id"]: record for record in case.input["records"]}.values()
    ]


def is_metric(case: Case, *names: str) -> bool:
    return case.spec.rpartition("/")[2] in names


def is_reduction(case: Case) -> bool:
    return not is_metric(case, "sample_record")


def has_tie(case: Case) -> bool:
    return is_metric(case, "precision_at") and any(
        ratio == Fraction(str(case.input["threshold"])) for ratio in ratios(case)
    )


def epsilon_shows(case: Case) -> bool:
    """Return whether (I + 1e-6) / (U + 1e-6) is another hit, or is another IoU."""
    if is_metric(case, "mean_iou"):
        return any(ratio != 1 for ratio in ratios(case))
    no_area = is_reduction(case) and any(not r["union"] for r in case.input["records"])
    return is_metric(case, "precision_at") and (
        no_area or (has_tie(case) and bool(case.input.get("strict")))
    )


def mean_is_another_value(case: Case) -> bool:
    if not is_metric(case, "cumulative_iou"):
        return False
    mean = sum(ratios(case)) / len(ratios(case)) if ratios(case) else None
    return mean != (None if case.expected == "nan" else exact_number(case.expected))


def has_failed_reply(case: Case) -> bool:
    return is_reduction(case) and any(r["status"] != "ok" for r in case.input["records"])


def has_repeated_sample(case: Case) -> bool:
    return is_reduction(case) and len(ratios(case)) < len(case.input["records"])


FAULTS: dict[str, tuple[Mapping[str, str], str, Callable[[Case], bool]]] = {
    "one pixel is added to every side": (
        {
            "- max(a[axis], b[axis]))": "- max(a[axis], b[axis]) + 1)",
            "(box[2] - box[0])": "(box[2] - box[0] + 1)",
            "(box[3] - box[1])": "(box[3] - box[1] + 1)",
        },
        "continuous-area",
        lambda case: is_metric(case, "sample_record"),
    ),
    "an epsilon on both sides of the division": (
        {
            'record["intersection"] / record["union"] if record["union"] else 0.0': (
                '(record["intersection"] + 1e-6) / (record["union"] + 1e-6)'
            )
        },
        "union-zero",
        epsilon_shows,
    ),
    "always strict": (
        {"iou(r) > threshold if strict else iou(r) >= threshold": "iou(r) > threshold"},
        "threshold-inclusive",
        lambda case: has_tie(case) and not case.input.get("strict"),
    ),
    "never strict": (
        {"iou(r) > threshold if strict else iou(r) >= threshold": "iou(r) >= threshold"},
        "strict-option",
        lambda case: has_tie(case) and bool(case.input.get("strict")),
    ),
    "the mean for the cumulative value": (
        {"METRICS}\n": 'METRICS}\nFUNCTIONS["metrics/rsvg/cumulative_iou"] = mean_iou\n'},
        "ratio-of-sums",
        mean_is_another_value,
    ),
    "failed replies are dropped": (
        {"for record in records}": 'for record in records if record["status"] == "ok"}'},
        "all-samples",
        has_failed_reply,
    ),
    "fractions for percent": (
        {"100 * sum(hits)": "sum(hits)"},
        "percent",
        lambda case: is_metric(case, "precision_at") and case.expected not in (0, "nan"),
    ),
    "a repeated sample counts again": (
        {'{record["id"]: record for record in records}.values()': "records"},
        "each-sample-once",
        has_repeated_sample,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_exactly_the_cases_that_it_breaks(fault: str, tmp_path: Path) -> None:
    changes, rule, breaks = FAULTS[fault]
    text = (EXAMPLES / "adapter.py").read_text("utf-8")
    for right, wrong in changes.items():
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    adapter = tmp_path / "adapter.py"
    adapter.write_text(text)
    command = f"{sys.executable} {adapter}"
    code, found = outcomes(tmp_path, "--command", command, "--spec", "metrics/rsvg")
    assert code == 1
    failed = {id for id, outcome in found.items() if outcome == "failed"}
    assert failed == {str(case) for case in RSVG if breaks(case)}
    assert rule in {rule for case in RSVG if str(case) in failed for rule in case.rules}
    assert set(found.values()) == {"passed", "failed"}


# --- Python functions


def function_of_rsvg(spec: str, given: dict[str, Any]) -> Any:
    """Do two specs of RSVG, one of them wrongly, with chatter on standard output."""
    import numpy as np

    sys.stdout.write("chatter\n")
    if spec == "metrics/rsvg/mean_iou":
        ious = {r["id"]: r["intersection"] / (r["union"] or 1) for r in given["records"]}
        return np.mean(list(ious.values())) if ious else np.float32("nan")
    if spec == "metrics/rsvg/sample_record":
        raise ZeroDivisionError("no area")
    raise NotImplementedError("two specs only")


def test_python_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    place = f"{Path(__file__).stem}:{function_of_rsvg.__name__}"
    code, found = outcomes(tmp_path, "--python", place, "--benchmark", "rsvg")
    assert code == 1
    by_spec = {id.partition(":")[0]: outcome for id, outcome in found.items()}
    assert by_spec["metrics/rsvg/mean_iou"] == "passed"
    assert by_spec["metrics/rsvg/sample_record"] == "failed"
    assert by_spec["metrics/rsvg/precision_at"] == "skipped"
    assert '"error": "ZeroDivisionError"' in capsys.readouterr().out


# --- filters, reports, known failures


def test_filters(tmp_path: Path) -> None:
    def specs(*filters: str) -> set[str]:
        _, found = outcomes(tmp_path, *filters)
        return {id.partition(":")[0] for id in found}

    assert specs("--benchmark", "mmscan", "--rule", "skipped") <= {
        case.spec for case in load_cases() if "mmscan" in case.spec and "skipped" in case.rules
    }
    assert specs("--metric", "overall_iou", "cumulative_iou") == {
        "metrics/refsegrs/overall_iou",
        "metrics/gres/cumulative_iou",
        "metrics/rsvg/cumulative_iou",
    }
    assert specs("--benchmark", "refsegrs") == {
        "tasks/refsegrs",
        *(case.spec for case in load_cases("metrics/refsegrs/")),
    }
    assert specs("--spec", "parsers/points") == {"parsers/points"}
    ties = [str(case) for case in RSVG if "threshold-inclusive" in case.rules]
    _, found = outcomes(tmp_path, "--spec", "metrics/rsvg", "--rule", "threshold-inclusive")
    assert list(found) == ties


def test_no_case_chosen_and_no_case_answered_are_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", "--rule", "no-such-rule"]) == 1
    assert "no case is chosen" in capsys.readouterr().err
    code, found = outcomes(tmp_path, "--command", PYTHON_EXAMPLE, "--benchmark", "gres")
    assert (code, set(found.values())) == (1, {"skipped"})
    assert "no case was answered" in capsys.readouterr().out


def test_a_failure_is_shown_with_the_reasons_for_its_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adapter = tmp_path / "adapter.py"
    text = (EXAMPLES / "adapter.py").read_text("utf-8")
    adapter.write_text(text.replace('["union"] for record', '["union"] + 90 for record'))
    junit = tmp_path / "junit.xml"
    options = ["--spec", "metrics/rsvg/cumulative_iou", "--junit", str(junit)]
    code, found = outcomes(tmp_path, "--command", f"{sys.executable} {adapter}", *options)
    assert code == 1
    shown = capsys.readouterr().out
    for line in (
        "FAILED  metrics/rsvg/cumulative_iou: the ratio of two sums",
        '  input     {"records": [{"id": "a", ',
        '  expected  "8/11"',
        "  got       0.2758620689655172",  # 80 / (110 + 2 * 90)
        "  because   ratio-of-sums: The value is sum(intersection) / sum(union).",
        "            80 / 110; the mean of the ratios is 2/5.",
    ):
        assert line in shown
    assert ["ratio-of-sums", "-", "2"] in [line.split() for line in shown.splitlines()]
    suites = ElementTree.parse(junit).getroot()
    (suite,) = suites
    assert suite.attrib["tests"] == str(len(found))
    failures = [test.get("name") for test in suite if test.find("failure") is not None]
    assert len(failures) == int(suite.attrib["failures"]) == list(found.values()).count("failed")
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert report["totals"] == {"failed": len(failures), "passed": len(found) - len(failures)}
    counts = report["specs"]["metrics/rsvg/cumulative_iou"]
    assert counts["version"] == "1.0.0"
    assert counts["rules"]["ratio-of-sums"] == {"failed": 2}
    assert report["cases"][0]["got"] == pytest.approx(80 / 290)
    assert {path.name for path in tmp_path.iterdir()} == {"adapter.py", "junit.xml", "report.json"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--command", ""], "--command names no program"),
        (["--command", "node 'a"], "No closing quotation"),
        (["--command", "no_such_program"], "no_such_program"),
        (["--python", "my_eval"], "give module:function"),
        (["--python", "my_eval:answer", "--timeout", "0"], "more than 0"),
        (["--command", "node", "--give-up", "0"], "more than 0"),
        (["--known-failures", "absent.json"], "absent.json"),
    ],
)
def test_a_wrong_option_is_refused_and_nothing_is_run(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", *arguments]) == 1
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.out == ""


def test_a_report_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", "--junit", str(tmp_path / "absent" / "junit.xml")]) == 1
    said = capsys.readouterr()
    assert "absent" in said.err
    assert said.out == ""


def known_failures(tmp_path: Path, failures: list[str], undetermined: list[str]) -> str:
    stated = {
        "evaluator": "an evaluator",
        "repository": "owner/name",
        "commit": "0" * 40,
        "paths": ["eval.py"],
        "adapter": ["Its numbers are taken as they are."],
        "specs": ["metrics/rsvg/mean_iou"],
        "failures": [{"why": "It says so.", "cases": failures}] if failures else [],
        "undetermined": [{"why": "It may.", "cases": undetermined}] if undetermined else [],
    }
    path = tmp_path / "known.json"
    path.write_text(json.dumps(stated))
    return str(path)


def test_known_failures_must_fail_and_all_others_pass(tmp_path: Path) -> None:
    changes, _, breaks = FAULTS["always strict"]
    ((right, wrong),) = changes.items()
    adapter = tmp_path / "adapter.py"
    adapter.write_text((EXAMPLES / "adapter.py").read_text("utf-8").replace(right, wrong))
    command = ["--command", f"{sys.executable} {adapter}", "--spec", "metrics/rsvg"]
    broken = [str(case) for case in RSVG if breaks(case)]
    sound = next(str(case) for case in RSVG if not breaks(case))

    known = ["--known-failures", known_failures(tmp_path, broken, [])]
    code, found = outcomes(tmp_path, *command, *known)
    assert code == 0
    assert {id for id, outcome in found.items() if outcome == "known_failure"} == set(broken)

    known = ["--known-failures", known_failures(tmp_path, [*broken, sound], [])]
    code, found = outcomes(tmp_path, *command, *known)
    assert (code, found[sound]) == (1, "unexpected_pass")

    known = ["--known-failures", known_failures(tmp_path, broken[1:], [])]
    code, found = outcomes(tmp_path, *command, *known)
    assert (code, found[broken[0]]) == (1, "failed")

    known = ["--known-failures", known_failures(tmp_path, broken[1:], [broken[0], sound])]
    code, found = outcomes(tmp_path, *command, *known)
    assert (code, found[broken[0]], found[sound]) == (0, "undetermined", "undetermined")


def test_known_failures_of_no_case_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = known_failures(tmp_path, ["metrics/rsvg/mean_iou: no such case"], [])
    assert main(["conformance", "--known-failures", path]) == 1
    assert "there is no case 'metrics/rsvg/mean_iou: no such case'" in capsys.readouterr().err
