"""The corpus keeps its own rules: schemas, citations, plain and unique descriptions, one name."""

import importlib
import inspect
import json
from pathlib import Path

import pytest
from conftest import REPOSITORY

from lmms_eval_grounding.contract import validator
from lmms_eval_grounding.corpus import agrees, load_cases, meaning, read_json, spec_names

SPECS = sorted(
    path.relative_to(REPOSITORY / "spec").with_suffix("").as_posix()
    for kind in ("metrics", "parsers", "tasks")
    for path in (REPOSITORY / "spec" / kind).rglob("*.json")
)


def problems(schema: str, instance: object) -> list[str]:
    return [f"{e.json_path}: {e.message[:200]}" for e in validator(schema).iter_errors(instance)]


def test_every_spec_has_a_case_file_and_every_case_file_a_spec() -> None:
    assert spec_names() == SPECS


@pytest.mark.parametrize("spec", SPECS)
def test_spec_states_what_it_must(spec: str) -> None:
    assert problems("meta.json", read_json("spec", f"{spec}.json")) == []


@pytest.mark.parametrize("spec", SPECS)
def test_case_file_has_the_form_of_one(spec: str) -> None:
    data = read_json("golden_cases", f"{spec}.json")
    assert problems("cases.json", data) == []
    assert data["spec"] == f"{spec}.json"


@pytest.mark.parametrize("spec", SPECS)
def test_cases_meet_their_spec(spec: str) -> None:
    for case in load_cases(spec):
        instance = {"input": case.input, "expected": case.expected}
        assert problems(f"{spec}.json", instance) == [], case


@pytest.mark.parametrize("spec", SPECS)
def test_every_rule_has_a_case_and_every_case_cites_rules_that_exist(spec: str) -> None:
    cited = {rule for case in load_cases(spec) if case.spec == spec for rule in case.rules}
    assert cited == set(meaning(spec)["rules"])


@pytest.mark.parametrize("spec", SPECS)
def test_every_deviation_names_a_rule(spec: str) -> None:
    named = {deviation["rule"] for deviation in meaning(spec)["deviations"]}
    assert named <= set(meaning(spec)["rules"])


@pytest.mark.parametrize("spec", SPECS)
def test_descriptions_are_unique_plain_statements(spec: str) -> None:
    descriptions = [case.description for case in load_cases(spec) if case.spec == spec]
    assert len(set(descriptions)) == len(descriptions)
    for description in descriptions:
        assert not {"should", "must", "test"} & set(description.lower().split()), description
        assert not description.endswith("."), description


@pytest.mark.parametrize(
    "path", sorted((REPOSITORY / "spec").rglob("*.json")), ids=lambda p: p.name
)
def test_schema_is_valid_and_named_after_its_place(path: Path) -> None:
    schema = json.loads(path.read_text("utf-8"))
    validator(path.relative_to(REPOSITORY / "spec").as_posix()).check_schema(schema)
    assert schema["$id"].endswith("/spec/" + path.relative_to(REPOSITORY / "spec").as_posix())


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.startswith("metrics/")])
def test_metric_takes_the_inputs_that_its_spec_names(spec: str) -> None:
    _, module, name = spec.split("/")
    function = getattr(importlib.import_module(f"lmms_eval_grounding.metrics.{module}"), name)
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
        ("ok", "ok", True),
        (None, None, True),
        (None, 0, False),
        (0, None, False),
    ],
)
def test_comparison(got: object, expected: object, same: bool) -> None:
    assert agrees(got, expected, 1e-12) is same
