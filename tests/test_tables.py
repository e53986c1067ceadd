"""A benchmark that has tasks is known everywhere: each table that lacks it is named."""

from collections.abc import Collection

import pytest
import test_prompts
import test_score_intervals
from conftest import REPOSITORY

from lmms_eval_grounding import models, prepare
from lmms_eval_grounding.corpus import read_json
from lmms_eval_grounding.data import location
from lmms_eval_grounding.scoring.kinds import KINDS

TASKS = sorted(folder.parent.name for folder in (REPOSITORY / "tasks").glob("*/prompts.yaml"))
PROMPTS_OF_THEIR_OWN = {"mmscan", "mmscan_candidates"}  # tests/test_prompts_mmscan.py


def enum_of(record: str) -> Collection[str]:
    names: list[str] = read_json("spec", f"records/{record}.json")["properties"]["benchmark"][
        "enum"
    ]
    return names


TABLES: dict[str, Collection[str]] = {
    "KINDS of scoring/kinds.py": KINDS,
    "BENCHMARKS of models.py": models.BENCHMARKS,
    "benchmark in spec/records/score_report.json": enum_of("score_report"),
    "benchmark in spec/records/score_partial.json": enum_of("score_partial"),
    "BENCHMARKS of tests/test_prompts.py": {*test_prompts.BENCHMARKS, *PROMPTS_OF_THEIR_OWN},
    "MADE of tests/test_score_intervals.py": test_score_intervals.MADE,
}
TABLES_OF_DATA: dict[str, Collection[str]] = {
    "SOURCES of data/location.py": location.SOURCES,
    "RELEASES of prepare.py": prepare.RELEASES,
}


@pytest.mark.parametrize("table", TABLES)
def test_every_benchmark_is_in_the_table(table: str) -> None:
    assert sorted(TABLES[table]) == TASKS


@pytest.mark.parametrize("table", TABLES_OF_DATA)
def test_the_data_of_every_benchmark_are_in_the_table(table: str) -> None:
    assert set(TABLES_OF_DATA[table]) == {kind.data for kind in KINDS.values()}
