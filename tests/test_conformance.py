"""The command `conformance`: our code and both examples pass, and every fault fails its cases."""

import json
import os
import re
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
from lmms_eval_grounding.corpus import Case, exact_number, load_cases, meaning
from lmms_eval_grounding.runner.answer import Answer
from lmms_eval_grounding.runner.report import failure_text
from lmms_eval_grounding.runner.verdict import judged

EXAMPLES = REPOSITORY / "examples"
PYTHON_EXAMPLE = f"{sys.executable} {EXAMPLES / 'adapter.py'}"
RSVG = load_cases("metrics/rsvg/")
PLAIN = Path(__file__).parent / "plain_evaluator.py"
PLAIN_SPECS = re.findall(r'"(metrics/[a-z]+/[a-z_]+)"', PLAIN.read_text("utf-8"))
PLAIN_CASES = [case for case in load_cases("metrics/") if case.spec in PLAIN_SPECS]


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
    *_, totals, summary, loaded = done.stdout.splitlines()
    assert totals.split() == ["all", "cases", str(len(load_cases()))]
    assert summary == f"none of {len(load_cases())} cases failed"
    assert loaded == "set()"


@pytest.mark.parametrize(
    ("program", "example"), [(sys.executable, "adapter.py"), ("node", "adapter.mjs")]
)
def test_example_does_two_metrics_of_rsvg_in_thirty_lines_and_skips_the_rest(
    program: str, example: str, tmp_path: Path
) -> None:
    assert len((EXAMPLES / example).read_text("utf-8").splitlines()) <= 30
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    code, found = outcomes(tmp_path, "--command", f"{program} {EXAMPLES / example}")
    assert code == 0
    done = {str(case) for case in RSVG if is_metric(case, "precision_at", "mean_iou")}
    assert {id for id, outcome in found.items() if outcome == "passed"} == done
    assert {id for id, outcome in found.items() if outcome == "skipped"} == found.keys() - done


def test_plain_evaluator_passes_what_it_does(tmp_path: Path) -> None:
    assert len(PLAIN_SPECS) == 14
    code, found = outcomes(tmp_path, "--command", f"{sys.executable} {PLAIN}")
    assert code == 0
    assert {id for id, outcome in found.items() if outcome == "passed"} == set(
        map(str, PLAIN_CASES)
    )


# --- one fault at a time: which cases it breaks follows from the cases' own numbers


Record = dict[str, Any]
HALF = Fraction(1, 2)


def records(case: Case) -> list[Record]:
    """Return the records of a case, each id once; none where it has a single sample."""
    return each_once(case.input.get("records", []))


def each_once(given: list[Record]) -> list[Record]:
    """Return one record of each id; of records that differ the first as JSON text."""
    by_text = sorted(given, key=lambda record: json.dumps(record, sort_keys=True), reverse=True)
    return list({record["id"]: record for record in by_text}.values())


def ratio(record: Record) -> Fraction:
    union = Fraction(record["union"])
    return Fraction(record["intersection"]) / union if union else Fraction(0)


def without_target(case: Case) -> list[Record]:
    return [record for record in records(case) if not record["has_target"]]


def with_target(case: Case) -> list[Record]:
    return [record for record in records(case) if record["has_target"]]


def is_metric(case: Case, *names: str) -> bool:
    return case.spec.rpartition("/")[2] in names


def has_tie(case: Case) -> bool:
    threshold = Fraction(str(case.input["threshold"]))
    return any(ratio(record) == threshold for record in records(case))


def epsilon_shows(case: Case) -> bool:
    """Return whether (I + 1e-6) / (U + 1e-6) is another hit, or is another IoU."""
    if is_metric(case, "mean_iou"):
        return any(ratio(record) != 1 for record in records(case))
    no_area = any(not record["union"] for record in records(case))
    return no_area or (has_tie(case) and bool(case.input.get("strict")))


def is_not_the_mean(case: Case) -> bool:
    """Return whether the mean of the ratios is another value than the ratio of the sums."""
    ratios = [ratio(record) for record in records(case)]
    mean = sum(ratios) / len(ratios) if ratios else None
    return mean != (None if case.expected == "nan" else exact_number(case.expected))


def false_alarms_show(case: Case) -> bool:
    """Return whether the pixels of false alarms change the ratio of the sums."""
    alarm = any(record["union"] for record in without_target(case))
    found = any(record["intersection"] for record in with_target(case))
    return alarm and (found or not any(record["union"] for record in with_target(case)))


def others_dilute(hits: list[Record], counted: list[Record], others: list[Record]) -> bool:
    """Return whether the share of hits changes when other samples are counted, too."""
    return bool(others) and (bool(hits) or not counted)


def answered(case: Case) -> list[Record]:
    return [r for r in with_target(case) if r["status"] == "ok" and not r["is_empty"]]


def repeats_show(case: Case) -> bool:
    """Return whether predictions that hit a target again would be counted as further targets."""
    for record in records(case):
        hits = [
            target
            for target, iou in zip(record["best_targets"], record["best_ious"], strict=True)
            if iou >= case.input["threshold"]
        ]
        if is_metric(case, "average_recall") and len(set(hits)) < len(hits):
            return True
        if is_metric(case, "gtop_k") and counts_differ(record, case.input):
            return True
    return False


def counts_differ(record: Record, options: dict[str, Any]) -> bool:
    for budget in range(1, record["n_targets"] + 1):
        top = slice(budget * options["k"])
        first = zip(record["best_targets"][top], record["best_ious"][top], strict=True)
        hits = [target for target, iou in first if iou >= options["threshold"]]
        if len(hits) >= budget > len(set(hits)):
            return True
    return False


def empty_answers_show(case: Case) -> bool:
    """Return whether the mean changes when samples without predictions are dropped."""
    scored = [record for record in records(case) if record["n_targets"]]
    empty = [record for record in scored if not record["scores"]]
    return bool(empty) and (len(empty) == len(scored) or case.expected != 0)


# For each fault: what is written instead, where, a rule that it breaks, and the cases that then
# have another value, told by their own numbers.
Fault = tuple[dict[str, str], str, str, Callable[[Case], bool]]
RSVG_MEAN = '"metrics/rsvg/mean_iou": lambda rs: mean(iou(r) for r in rs)'
FAULTS: dict[str, Fault] = {
    "RSVG: one pixel is added to every side": (
        {
            "- max(a[axis], b[axis]))": "- max(a[axis], b[axis]) + 1)",
            "(box[2] - box[0])": "(box[2] - box[0] + 1)",
            "(box[3] - box[1])": "(box[3] - box[1] + 1)",
        },
        "metrics/rsvg/sample_record",
        "continuous-area",
        lambda case: True,
    ),
    "RSVG: an epsilon on both sides of the division": (
        {
            "def rsvg_hit": "def eps(r):\n    return (r['intersection'] + 1e-6)"
            " / (r['union'] + 1e-6)\n\n\ndef rsvg_hit",
            "iou(record) > threshold if strict else iou(record) >= threshold": (
                "eps(record) > threshold if strict else eps(record) >= threshold"
            ),
            RSVG_MEAN: RSVG_MEAN.replace("iou(r)", "eps(r)"),
        },
        "metrics/rsvg/precision_at metrics/rsvg/mean_iou",
        "union-zero",
        epsilon_shows,
    ),
    "RSVG: always strict": (
        {"iou(record) > threshold if strict else iou(record) >=": "iou(record) >"},
        "metrics/rsvg/precision_at",
        "threshold-inclusive",
        lambda case: has_tie(case) and not case.input.get("strict"),
    ),
    "RSVG: never strict": (
        {"iou(record) > threshold if strict else iou(record) >=": "iou(record) >="},
        "metrics/rsvg/precision_at",
        "strict-option",
        lambda case: has_tie(case) and bool(case.input.get("strict")),
    ),
    "RSVG: the mean for the cumulative value": (
        {
            '"metrics/rsvg/cumulative_iou": ratio_of_sums': (
                '"metrics/rsvg/cumulative_iou": lambda rs: mean(iou(r) for r in rs)'
            )
        },
        "metrics/rsvg/cumulative_iou",
        "ratio-of-sums",
        is_not_the_mean,
    ),
    "RSVG: fractions for percent": (
        {"percent(rsvg_hit(": "mean(rsvg_hit("},
        "metrics/rsvg/precision_at",
        "percent",
        lambda case: case.expected not in (0, "nan"),
    ),
    "GRES: every sample without a target scores 0": (
        {'else float(record["is_empty"])': "else 0.0"},
        "metrics/gres/mean_iou",
        "rejection-scores-one",
        lambda case: any(record["is_empty"] for record in without_target(case)),
    ),
    "GRES: cIoU is a mean of ratios": (
        {
            '"metrics/gres/cumulative_iou": ratio_of_sums': (
                '"metrics/gres/cumulative_iou": lambda rs: mean(iou(r) for r in rs)'
            )
        },
        "metrics/gres/cumulative_iou",
        "ratio-of-sums",
        is_not_the_mean,
    ),
    "GRES: cIoU leaves out samples without a target": (
        {
            '"metrics/gres/cumulative_iou": ratio_of_sums': (
                '"metrics/gres/cumulative_iou": lambda rs: ratio_of_sums(with_target(rs))'
            )
        },
        "metrics/gres/cumulative_iou",
        "false-alarm-adds-its-pixels",
        false_alarms_show,
    ),
    "GRES: N-acc is divided by all samples": (
        {
            'r["is_empty"] for r in without_target(rs)': (
                'r["is_empty"] and not r["has_target"] for r in rs'
            )
        },
        "metrics/gres/no_target_accuracy",
        "no-target-samples-only",
        lambda case: others_dilute(
            [record for record in without_target(case) if record["is_empty"]],
            without_target(case),
            with_target(case),
        ),
    ),
    "GRES: T-acc is divided by all samples": (
        {"answered(r) for r in with_target(rs)": 'answered(r) and r["has_target"] for r in rs'},
        "metrics/gres/target_accuracy",
        "target-samples-only",
        lambda case: others_dilute(answered(case), with_target(case), without_target(case)),
    ),
    "GRES: T-acc asks for an IoU of one half": (
        {"answered(r) for r in with_target(rs)": "iou(r) >= 0.5 for r in with_target(rs)"},
        "metrics/gres/target_accuracy",
        "any-mask-is-a-hit",
        lambda case: any(ratio(record) < HALF for record in answered(case)),
    ),
    "GRES: a failed reply is an answer": (
        {'record["status"] == "ok" and not record["is_empty"]': 'not record["is_empty"]'},
        "metrics/gres/target_accuracy",
        "failure-is-a-miss",
        lambda case: any(
            not record["is_empty"] and record["status"] != "ok" for record in with_target(case)
        ),
    ),
    "MMScan: predictions that hit are counted, not targets": (
        {
            "len({target for target, value in ranked if value >= threshold})": (
                "sum(value >= threshold for target, value in ranked)"
            )
        },
        "metrics/mmscan/gtop_k metrics/mmscan/average_recall",
        "distinct-targets",
        repeats_show,
    ),
    "MMScan: a sample without predictions is dropped": (
        {'if record["n_targets"]]': 'if record["n_targets"] and record["scores"]]'},
        "metrics/mmscan/gtop_k metrics/mmscan/average_recall",
        "no-predictions",
        empty_answers_show,
    ),
    "RefSegRS: oIoU is one point lower": (
        {
            '"metrics/refsegrs/overall_iou": ratio_of_sums': (
                '"metrics/refsegrs/overall_iou": '
                'lambda rs: "nan" if ratio_of_sums(rs) == "nan" else ratio_of_sums(rs) - 0.01'
            )
        },
        "metrics/refsegrs/overall_iou",
        "ratio-of-sums",
        lambda case: case.expected != "nan",
    ),
    "RefSegRS: an IoU at the threshold is a miss": (
        {"mean(iou(r) >= threshold for r in rs)": "mean(iou(r) > threshold for r in rs)"},
        "metrics/refsegrs/precision_at",
        "threshold-inclusive",
        has_tie,
    ),
    "a repeated sample counts again": (
        {
            'once = {record["id"]: record for record in by_text}': (
                "once = dict(enumerate(by_text))"
            )
        },
        " ".join(spec for spec in PLAIN_SPECS if not spec.endswith("sample_record")),
        "each-sample-once",
        lambda case: len(records(case)) < len(case.input["records"]),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_exactly_the_cases_that_it_breaks(fault: str, tmp_path: Path) -> None:
    changes, specs, rule, breaks = FAULTS[fault]
    adapter = broken_evaluator(tmp_path, changes)
    code, found = outcomes(tmp_path, "--command", f"{sys.executable} {adapter}")
    assert code == 1
    failed = {id for id, outcome in found.items() if outcome == "failed"}
    mutable = [case for case in PLAIN_CASES if case.spec in specs.split()]
    assert failed == {str(case) for case in mutable if breaks(case)}
    assert rule in {rule for case in mutable if str(case) in failed for rule in case.rules}


def broken_evaluator(tmp_path: Path, changes: Mapping[str, str]) -> Path:
    text = PLAIN.read_text("utf-8")
    for right, wrong in changes.items():
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    adapter = tmp_path / "adapter.py"
    adapter.write_text(text)
    return adapter


# --- Python functions


def function_of_rsvg(spec: str, given: dict[str, Any]) -> Any:
    """Do two specs of RSVG, one of them wrongly, with chatter on standard output."""
    import numpy as np

    sys.stdout.write("chatter\n")
    if spec == "metrics/rsvg/mean_iou":
        ious = [r["intersection"] / (r["union"] or 1) for r in each_once(given["records"])]
        return np.mean(ious) if ious else np.float32("nan")
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


ODD_FUNCTIONS = """
import fractions, os, subprocess, sys, threading, time
print("loading the model")
os.write(1, b"from a library")
def chatter():
    while True:
        print("thread", flush=True)
        time.sleep(0.001)
threading.Thread(target=chatter, daemon=True).start()
subprocess.run(["echo", "from a program"])
def answer(spec, given):
    os.write(1, b"a line\\n")
    assert sys.stdin.read() == ""
    records = {r["id"]: r for r in reversed(sorted(given["records"], key=str))}.values()
    if not records:
        return fractions.Fraction(1, 2)
    if len(records) == 1:
        return {1, 2}
    if len(records) == 2:
        return 10**5000
    return 0.0
"""


def test_what_a_module_prints_is_no_answer_and_what_json_cannot_hold_fails_one_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd_functions.py").write_text(ODD_FUNCTIONS.replace("\\\\n", "\\n"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    place = "odd_functions:answer"
    outcomes(tmp_path, "--python", place, "--spec", "metrics/rsvg/mean_iou", "--give-up", "1")
    cases = json.loads((tmp_path / "report.json").read_text("utf-8"))["cases"]
    got = [case["got"] for case in cases]
    assert {case["detail"] for case in cases} == {""}
    assert {"error": "TypeError"} in got
    assert 0 in got


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
    assert main(["conformance", "--rule", "percent", "--spec", "geometry/"]) == 1
    assert "no case is chosen" in capsys.readouterr().err
    code, found = outcomes(tmp_path, "--command", PYTHON_EXAMPLE, "--benchmark", "gres")
    assert (code, set(found.values())) == (1, {"skipped"})
    assert "no case was answered" in capsys.readouterr().out


def test_a_failure_is_shown_with_the_reasons_for_its_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adapter = broken_evaluator(tmp_path, {'["union"] for record': '["union"] + 90 for record'})
    junit = tmp_path / "junit.xml"
    options = ["--spec", "metrics/rsvg/cumulative_iou", "--junit", str(junit)]
    code, found = outcomes(tmp_path, "--command", f"{sys.executable} {adapter}", *options)
    assert code == 1
    shown = capsys.readouterr().out
    for line in (
        "FAILED  metrics/rsvg/cumulative_iou: the ratio of two sums",
        '  input     {"records": [{"id": "a", ',
        '  expected  "8/11"  (tolerance 1e-12)',
        "  got       0.2758620689655172",  # 80 / (110 + 2 * 90)
        "  because   ratio-of-sums: The value is sum(intersection) / sum(union).",
        "            80 / 110; the mean of the ratios is 2/5.",
    ):
        assert line in shown
    assert ["ratio-of-sums", "-", "2"] in [line.split() for line in shown.splitlines()]
    assert junit.read_bytes().startswith(b"<?xml version='1.0' encoding='utf-8'?>")
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
        (["--known-failures", __file__], f"{__file__}: no JSON"),
        (["--benchmark", "rsvg", "rvsg"], "--benchmark: no case has 'rvsg'"),
        (["--metric", "precision"], "--metric: no case has 'precision'"),
        (["--rule", "percent", "per-cent"], "--rule: no case has 'per-cent'"),
        (["--show", "-1"], "--show is 0 or more"),
        (["--json", str(EXAMPLES)], "no file, which could be replaced"),
        (["--junit", "/dev/null"], "/dev/null"),
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


def test_a_long_timeout_is_no_error(tmp_path: Path) -> None:
    command = ["--command", PYTHON_EXAMPLE, "--spec", "metrics/rsvg/mean_iou"]
    assert outcomes(tmp_path, *command, "--timeout", "inf")[0] == 0


def test_known_failures_nested_too_deep_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    assert main(["conformance", "--known-failures", str(path)]) == 1
    assert f"{path}: no JSON" in capsys.readouterr().err


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
    changes, spec, _, breaks = FAULTS["RSVG: always strict"]
    adapter = broken_evaluator(tmp_path, changes)
    command = ["--command", f"{sys.executable} {adapter}", "--spec", spec]
    broken = [str(case) for case in load_cases(spec) if breaks(case)]
    sound = next(str(case) for case in load_cases(spec) if not breaks(case))

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


def test_the_first_failures_shown_are_of_different_specs_and_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {
        "box_record(**given)": "[]",
        'REDUCTIONS[case["spec"]](list(once.values()), **given)': "[]",
    }
    adapter = broken_evaluator(tmp_path, wrong)
    command = ["--command", f"{sys.executable} {adapter}", "--spec", "metrics/"]
    assert main(["conformance", *command, "--show", str(len(PLAIN_SPECS) + 5)]) == 1
    lines = capsys.readouterr().out.splitlines()
    shown = [line.split()[1].rstrip(":") for line in lines if line.startswith("FAILED")]
    assert set(shown[: len(PLAIN_SPECS)]) == set(PLAIN_SPECS)
    assert len(shown) == len(PLAIN_SPECS) + 5
    failed = len(PLAIN_CASES)
    assert f".. and {failed - len(shown)} more: --show {failed}" in "\n".join(lines)
    assert lines[-1].startswith(f"{failed} of {failed} cases failed; ")


def test_a_failure_of_an_object_says_which_entries_differ_and_shows_the_profile() -> None:
    case = next(case for case in load_cases("parsers/json_boxes") if case.expected.get("flags"))
    got = {**case.expected, "flags": [], "more": 1}
    text = failure_text(judged(case, Answer(result=got)))
    assert f"  differs   flags: expected {json.dumps(case.expected['flags'])}, got []" in text
    assert text.count("differs") == 1
    assert '  profile   {"name": ' in text
    del got["flags"]
    assert "  differs   flags is missing" in failure_text(judged(case, Answer(result=got)))
    metric = next(case for case in RSVG if is_metric(case, "sample_record"))
    got = {**metric.expected, "more": 1}
    assert "  differs   more is not expected" in failure_text(judged(metric, Answer(result=got)))


def test_a_text_for_a_number_is_told_and_a_long_profile_is_shown_whole() -> None:
    case = next(case for case in RSVG if case.expected == "2/5")
    assert "  differs   a text, where a number is due" in failure_text(
        judged(case, Answer(result="2/5"))
    )
    case = next(case for case in load_cases("parsers/") if case.input["profile"] == "prompt")
    text = failure_text(judged(case, Answer(result={})))
    (shown,) = re.findall(r"^  profile   (.*)$", text, re.MULTILINE)
    profile = json.loads(shown)
    assert profile["name"] == "prompt"
    assert {"keys", "corner_keys", "space", "order", "bare"} <= profile["box"].keys()
    assert "write" not in profile["box"]


def test_specs_that_are_skipped_wholly_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes(tmp_path, "--command", PYTHON_EXAMPLE, "--benchmark", "rsvg")
    lines = capsys.readouterr().out.splitlines()
    skipped = "skipped wholly: metrics/rsvg/cumulative_iou, metrics/rsvg/sample_record, tasks/rsvg"
    assert lines[-2] == skipped
    assert lines[-1].endswith("of 3 specs")


def test_specs_are_explained_without_running_anything(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--explain", "--spec", "metrics/gres"]
    assert main(["conformance", *chosen]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for spec in {case.spec for case in load_cases("metrics/gres")}:
        stated = meaning(spec)
        assert spec in text
        for rule, sentence in stated["rules"].items():
            assert f"rule {rule}: {sentence}" in text
    assert "input min_pixels (default 1) A mask of fewer foreground pixels is empty." in text
    assert "reported N-acc unit percent tolerance 1e-12" in text


def test_characters_that_a_terminal_does_not_know_end_nothing() -> None:
    command = "conformance --explain --spec parsers/tolerant_json"
    code = (
        f"import sys; from lmms_eval_grounding.cli import main; sys.exit(main({command.split()}))"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u" in done.stdout
