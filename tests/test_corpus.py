"""The corpus keeps its own rules, the lint sees each breach, and values compare as stated."""

import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_grounding.corpus import Case, agrees, is_met, read_json
from lmms_eval_grounding.runner import lint
from lmms_eval_grounding.runner.differences import row_problems
from lmms_eval_grounding.runner.known_failures import form_problems

SPECS = lint.stated_specs()


def test_the_corpus_keeps_its_rules() -> None:
    assert len(SPECS) > 50
    assert lint.corpus_problems() == []


def test_lint_needs_only_a_json_parser_and_jsonschema() -> None:
    code = """
import sys
for absent in ("numpy", "pycocotools", "torch", "lmms_eval", "datasets", "yaml", "PIL", "pyarrow"):
    sys.modules[absent] = None  # an import of it fails
from lmms_eval_grounding.runner.lint import corpus_problems
sys.exit(str(corpus_problems() or ""))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def first_case(case_file: dict[str, Any]) -> dict[str, Any]:
    case: dict[str, Any] = case_file["cases"][0]
    return case


BREACHES: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "a rule without a case": (
        lambda spec, cases: spec["x-metric"]["rules"].update({"new-rule": "It holds."}),
        "no case cites the rule new-rule",
    ),
    "a citation of no rule": (
        lambda spec, cases: first_case(cases)["rules"].append("no-rule"),
        "there is no rule no-rule, which a case cites",
    ),
    "a deviation from no rule": (
        lambda spec, cases: spec["x-metric"]["deviations"][0].update({"rule": "no-rule"}),
        "there is no rule no-rule to deviate from",
    ),
    "a name given twice": (
        lambda spec, cases: cases["cases"].append(first_case(cases)),
        "two cases are called",
    ),
    "a test instead of a statement": (
        lambda spec, cases: first_case(cases).update({"description": "a tie should be a hit"}),
        "says 'should'",
    ),
    "a full stop": (
        lambda spec, cases: first_case(cases).update({"description": "a tie is a hit."}),
        "ends with a full stop",
    ),
    "an input that the spec does not know": (
        lambda spec, cases: first_case(cases)["input"].update({"thresh": 0.5}),
        "Additional properties",
    ),
    "an expected value of another type": (
        lambda spec, cases: first_case(cases).update({"expected": "half"}),
        "$.expected",
    ),
    "a ratio to nothing": (
        lambda spec, cases: first_case(cases).update({"expected": "1/0"}),
        "$.expected",
    ),
    "an input that is missing": (
        lambda spec, cases: first_case(cases)["input"].pop("threshold"),
        "'threshold' is a required property",
    ),
    "a profile that does not exist": (
        lambda spec, cases: first_case(cases)["input"].update({"profile": "no_model"}),
        "there is no profile 'no_model'",
    ),
    "a value that comes from nowhere": (
        lambda spec, cases: first_case(cases).pop("comment"),
        "'comment' is a required property",
    ),
    "a field that cases do not have": (
        lambda spec, cases: first_case(cases).update({"seed": 1}),
        "'seed' was unexpected",
    ),
    "another spec's name": (
        lambda spec, cases: cases.update({"spec": "metrics/rsvg/mean_iou.json"}),
        "names another spec",
    ),
    "a tolerance that lets everything pass": (
        lambda spec, cases: spec["x-metric"].update({"tolerance": 1}),
        "greater than the maximum",
    ),
    "no tolerance": (lambda spec, cases: spec["x-metric"].pop("tolerance"), "'tolerance'"),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_lint_sees(breach: str) -> None:
    name = "metrics/rsvg/precision_at"
    spec = deepcopy(read_json("spec", f"{name}.json"))
    cases = deepcopy(read_json("golden_cases", f"{name}.json"))
    assert list(lint.spec_problems(name, spec, cases)) == []
    commit, sentence = BREACHES[breach]
    commit(spec, cases)
    assert sentence in "\n".join(lint.spec_problems(name, spec, cases))


def test_lint_sees_what_json_parsers_do_not_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.json").write_text('{"a": 1, "a": [NaN, 9007199254740992, 9007199254740991]}')
    monkeypatch.setattr(lint, "files", lambda folder: tmp_path)
    assert sorted(lint._text_problems("golden_cases", "odd")) == [
        "9007199254740992 is not below 2^53",
        "NaN is not JSON",
        "the key 'a' stands twice",
    ]


def test_lint_sees_missing_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "spec_names", lambda: [*SPECS[1:], "metrics/rsvg/unknown"])
    assert list(lint.pairing_problems()) == [
        f"spec/{SPECS[0]}.json has no cases",
        "golden_cases/metrics/rsvg/unknown.json has no spec",
    ]


def test_lint_sees_known_failures_of_cases_that_do_not_exist_and_repetitions() -> None:
    case = Case("metrics/rsvg/mean_iou", "no samples", ("no-samples",), {}, "nan")
    stated = {
        "evaluator": "an evaluator",
        "repository": "owner/name",
        "commit": "0" * 40,
        "paths": ["eval.py"],
        "adapter": ["Fractions are multiplied by 100."],
        "specs": ["metrics/rsvg/mean_iou"],
        "failures": [{"why": "It gives 0.", "cases": [str(case)]}],
    }
    assert form_problems(stated, [case]) == []
    assert form_problems(stated, []) == [f"there is no case {str(case)!r}"]
    stated["undetermined"] = stated["failures"]
    assert form_problems(stated, [case]) == [f"{str(case)!r} is listed twice"]
    del stated["commit"]
    assert "'commit' is a required property" in form_problems(stated, [case])[0]


CASE = Case("metrics/rsvg/mean_iou", "no samples", ("no-samples",), {}, "1/2")
ROW = {"case": str(CASE), "recipe": 1, "official": {"LQVG": 0.5}, "why": "It rounds."}


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{**ROW, "case": "metrics/rsvg/mean_iou: of no file"}], "there is no case"),
        ([ROW, ROW], "is listed twice"),
        ([{**ROW, "official": {"no one": 1}}], "there is no evaluator 'no one' with such a value"),
        ([{**ROW, "official": {"rrsis": 1}}], "there is no evaluator 'rrsis' with such a value"),
        ([{**ROW, "recipe": "2/4"}], "no value differs from ours"),
        ([{key: ROW[key] for key in ROW if key != "recipe"}], "no value differs from ours"),
        ([{**ROW, "official": {}}], "$.rows[0].official"),
        ([{**ROW, "recipe": {"error": "a crash"}}], "$.rows[0].recipe"),
        ([{**ROW, "ours": 1}], "'ours' was unexpected"),
        ([], "$.rows"),
    ],
)
def test_lint_sees_differences_that_are_none(rows: list[Any], sentence: str) -> None:
    specs = {"LQVG": [CASE.spec], "rrsis": ["metrics/refsegrs/mean_iou"]}
    stated = {"benchmark": "RSVG", "rows": [ROW]}
    assert row_problems(stated, [CASE], specs) == []
    (problem,) = row_problems({**stated, "rows": rows}, [CASE], specs)
    assert sentence in problem


def test_lint_reads_the_files_of_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "load_cases", lambda kind: [])
    problems = list(lint.differences_problems())
    assert len(problems) > 10
    assert all(": there is no case 'metrics/" in problem for problem in problems)


@pytest.mark.parametrize("spec", [s for s in SPECS if s.startswith(("geometry/", "metrics/"))])
def test_function_takes_the_inputs_that_its_spec_names(spec: str) -> None:
    kind, module, name = spec.split("/")
    function = getattr(importlib.import_module(f"lmms_eval_grounding.{kind}.{module}"), name)
    inputs = read_json("spec", f"{spec}.json")["properties"]["input"]["properties"]
    assert list(inspect.signature(function).parameters) == list(inputs)


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        (0.5, "1/2", True),
        (0.5, 0.5, True),
        (1 / 3, "1/3", True),
        (1 / 3, 0.333, False),
        (1, True, False),
        (True, 1, False),
        (float("nan"), "nan", True),
        (0.0, "nan", False),
        (float("nan"), 0, False),
        (float("inf"), 1, False),
        ((1.0, 2.0), [1, 2], True),
        ([1.0], [1, 2], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ("1/2", 0.5, False),
        ("1/2", "1/2", False),
        (100, "100", False),
        ("100", "100", True),
        (["010"], ["010"], True),
        ([10], ["010"], False),
        ("ok", "ok", True),
        (None, None, True),
        (None, 0, False),
        (0, None, False),
        (1, "ok", False),
        (10**400, 1, False),
        (10**400, 10**400, True),
        ("nan", "nan", True),
    ],
)
def test_comparison(got: object, expected: object, same: bool) -> None:
    assert agrees(got, expected, 1e-12) is same


def test_fields_that_a_parser_case_leaves_out_are_not_compared() -> None:
    case = Case("parsers/points", "a point", ("point",), {}, {"status": "ok"})
    assert is_met(case, {"status": "ok", "syntax": "points"})
    assert not is_met(case, {"syntax": "points"})
    assert not is_met(case, {"status": "malformed", "syntax": "points"})
    assert not is_met(case, [])
    metric = Case("metrics/rsvg/sample_record", "a record", ("no-box",), {}, {"status": "ok"})
    assert not is_met(metric, {"status": "ok", "iou": 1})


def test_lint_sees_a_key_that_stands_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = '{"spec": "metrics/a.json", "cases": [{"rules": ["a"], "rules": ["b"]}]}'
    (tmp_path / "a.json").write_text(text)
    monkeypatch.setattr(lint, "files", lambda package: tmp_path)
    assert lint._text_problems("golden_cases", "a") == ["the key 'rules' stands twice"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"type": "no type"}, "is not valid under any of the given schemas"),
        ({"$id": "https://example.invalid/types.json"}, "its $id names another place"),
    ],
)
def test_lint_sees_a_faulty_schema(
    change: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = {**read_json("spec", "types.json"), **change}
    monkeypatch.setattr(lint, "json_names", lambda folder: ["types"])
    monkeypatch.setattr(lint, "read_json", lambda folder, path: schema)
    (problem,) = lint.schema_problems()
    assert sentence in problem
