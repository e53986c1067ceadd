"""The compiled test of a record agrees with jsonschema, and a broken record is named."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from lmms_eval_grounding.contract import ContractError, _is_met, check, validator
from lmms_eval_grounding.corpus import load_cases

BOX = [0.0, 1.5, -2.0, 1.0, 2.0, 0.5, 0.1, 0.0, -3.0]
RECORDS: dict[str, list[dict[str, Any]]] = {
    "records/mmscan.json": [
        {"id": "a", "status": "ok", "group": "OR", "n_targets": 2,
         "scores": [1.0, 0.5], "best_targets": [0, 1], "best_ious": [0.25, 1]},
        {"id": "a", "status": "malformed", "group": "OR", "n_targets": 0,
         "scores": [], "best_targets": [], "best_ious": []},
    ],
    "records/mmscan_document.json": [
        {"id": "a", "sub_class": "x", "scan_id": "s", "scans": "d", "expression": "e",
         "targets": [BOX, BOX], "more": None},
    ],
    "records/parsed_boxes3d.json": [
        {"status": "ok", "boxes": [BOX, BOX], "scores": [0.5, None], "flags": ["partial"],
         "reason": None, "syntax": "json_ids"},
        {"status": "unparseable", "boxes": [], "scores": None, "flags": ["truncated", "partial"],
         "reason": "truncated", "syntax": None},
    ],
    "records/parsed_boxes.json": [
        {"status": "ok", "boxes": [[0, 1, 2, 3.5]], "flags": [], "reason": None, "syntax": "x"},
    ],
    "records/parsed_mask.json": [
        {"status": "ok", "mask": {"size": [2, 3], "counts": "06"}, "flags": [], "reason": None,
         "syntax": None, "parts": 1},
    ],
    "records/rsvg.json": [{"id": "a", "status": "ok", "intersection": 1.0, "union": 2.0}],
    "records/gres.json": [
        {"id": "a", "status": "ok", "has_target": True, "is_empty": False, "intersection": 1,
         "union": 2},
    ],
}  # fmt: skip
STRANGE = [
    None, True, False, 0, 1, -1, 0.5, 1.0, 2, 1e300, "", "x", "ok", "malformed", "no_target",
    [], [0], [None], ["x", "x"], [[]], {}, {"x": 1}, BOX, [BOX], [BOX[:8]], [0.5, True], [1, "2"],
    "a" * 5000,
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from places(item, (*path, key))


def mutants(record: dict[str, Any], count: int) -> Iterator[Any]:
    """Yield copies with values exchanged, dropped and added, at any depth."""
    rng = random.Random(7)
    for _ in range(count):
        mutant = copy.deepcopy(record)
        for _ in range(rng.choice((1, 1, 1, 2))):
            *path, last = rng.choice([p for p in places(mutant) if p])
            parent = mutant
            for key in path:
                parent = parent[key]
            kind = rng.random()
            if kind < 0.6:
                parent[last] = copy.deepcopy(rng.choice(STRANGE))
            elif kind < 0.8:
                del parent[last]
            elif isinstance(parent, list):
                parent.append(copy.deepcopy(rng.choice(STRANGE)))
            else:
                parent["another"] = copy.deepcopy(rng.choice(STRANGE))
        yield mutant


@pytest.mark.parametrize("schema", RECORDS)
def test_it_agrees_with_jsonschema_on_mutated_records(schema: str) -> None:
    outcomes = {True: 0, False: 0}
    for record in RECORDS[schema]:
        assert _is_met(schema)(record)
        assert validator(schema).is_valid(record)
        for mutant in mutants(record, 400):
            right = validator(schema).is_valid(mutant)
            assert _is_met(schema)(mutant) is right, json.dumps(mutant)[:300]
            outcomes[right] += 1
    assert min(outcomes.values()) > 5


@pytest.mark.parametrize(
    "spec",
    ["metrics/mmscan/sample_record", "metrics/rsvg/sample_record", "metrics/gres/sample_record"],
)
def test_it_accepts_the_records_of_golden_cases(spec: str) -> None:
    schema = f"records/{spec.split('/')[1]}.json"
    records = [case.expected for case in load_cases(spec) if "error" not in case.expected]
    assert records
    for record in records:
        assert _is_met(schema)(record) is validator(schema).is_valid(record)


def test_a_broken_record_is_still_named_by_field_and_rule() -> None:
    record = {**RECORDS["records/mmscan.json"][0], "best_ious": [0.5, 1.5]}
    with pytest.raises(ContractError, match=r"best_ious\[1\].*maximum"):
        check(record, "records/mmscan.json")
