"""What spec/README.md tells a reader who sees nothing else is what the specs say."""

import json
import re
from dataclasses import asdict
from typing import Any

import pytest
from conftest import REPOSITORY

from lmms_eval_grounding.conformance import own_answer
from lmms_eval_grounding.contract import validator
from lmms_eval_grounding.corpus import Case, is_met, meaning, read_json, spec_names
from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.profile import load_profile

TEXT = (REPOSITORY / "spec" / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
RECORDS = [json.loads(line) for line in BLOCKS[0].splitlines()]
SAMPLES = [json.loads(line) for line in BLOCKS[1].splitlines()]
PARSED = json.loads(BLOCKS[2])
MEASURED = json.loads(BLOCKS[3])


def test_every_metric_is_listed_with_its_names_and_its_unit() -> None:
    rows = dict(re.findall(r"\| `(metrics/\S+)` \| (.*? \| \w+) \|", TEXT))
    reported = {
        spec: meaning(spec)["reported_as"]
        for spec in spec_names()
        if spec.startswith("metrics/") and "reported_as" in meaning(spec)
    }
    differ = sorted(rows.keys() ^ reported.keys())
    assert not differ, f"spec/README.md, its table or spec/metrics/ lacks {differ}"
    for spec, row in rows.items():
        names, unit = row.rsplit(" | ", 1)
        assert unit == meaning(spec)["unit"]
        for name in reported[spec]:
            base, at, threshold = name.partition("@")
            stem = re.sub(r"(?<=gTop)-\d+", "", base)
            in_between = "..." in names and stem[:3] in names
            assert in_between or (stem in names and at + threshold in names), name


@pytest.mark.parametrize(
    ("form", "record"), list(zip(("rsvg", "gres", "mmscan"), RECORDS, strict=True))
)
def test_records_have_the_form_that_is_shown(form: str, record: dict[str, Any]) -> None:
    assert list(validator(f"records/{form}.json").iter_errors(record)) == []
    if form == "rsvg":
        assert list(validator("records/refsegrs.json").iter_errors(record)) == []


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["spec"])
def test_samples_are_inputs_of_their_specs(sample: dict[str, Any]) -> None:
    schema = read_json("spec", f"{sample['spec']}.json")
    faults = validator(f"{sample['spec']}.json").iter_errors({"input": sample["input"]})
    assert [fault.message for fault in faults] == ["'expected' is a required property"]
    assert sample["input"].keys() == schema["properties"]["input"]["properties"].keys()


def test_the_reply_has_the_result_that_is_shown() -> None:
    given = PARSED["input"]
    profile = given["profile"]
    declared = read_json("parsing", "profiles.json")[profile["name"]]["box"]
    assert profile["box"].items() <= declared.items()
    assert declared.keys() - profile["box"].keys() == {"write", "example"}
    parsed = parse_boxes(
        given["reply"], load_profile(profile["name"]), given["width"], given["height"]
    )
    shown = json.loads(re.search(r"has `(\{.*?\})`", TEXT)[1])
    assert shown["boxes"] == [[800 * 0.25, 400 * 0.1, 800 * 0.75, 400 * 0.5]]
    assert is_met(Case("parsers/json_boxes", "a box", (), given, shown), asdict(parsed))


def test_the_boxes_have_the_values_that_are_shown() -> None:
    shown = json.loads(re.search(r"has `(\[.*?\])`:", TEXT)[1])
    assert shown == [[1 / 2, 0]]  # one cube of two, and one that is apart
    case = Case(MEASURED["spec"], "two targets", (), MEASURED["input"], shown)
    assert list(validator(f"{case.spec}.json").iter_errors({**MEASURED, "expected": shown})) == []
    assert is_met(case, own_answer(case))


def test_the_vocabularies_are_whole() -> None:
    said = re.search(r"The reasons are (.*?)\. The flags are (.*?); ", TEXT)
    kinds = read_json("spec", "types.json")["$defs"]
    for kind, listed in zip(("reason", "flag"), said.groups(), strict=True):
        assert re.findall(r"`(\w+)`", listed) == kinds[kind]["enum"]
