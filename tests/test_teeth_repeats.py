"""Wrong choices among records of one id that differ are refused by golden cases."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from lmms_eval_grounding.conformance import own_answer, passes
from lmms_eval_grounding.corpus import load_cases
from lmms_eval_grounding.metrics import gres, mmscan, overlap, rsvg, samples

Record = dict[str, Any]
Choice = Callable[[Iterable[Record]], list[Record]]


def last_to_arrive(records: Iterable[Record]) -> list[Record]:
    return list({record["id"]: record for record in records}.values())


def first_to_arrive(records: Iterable[Record]) -> list[Record]:
    return last_to_arrive(reversed(list(records)))


def different_ones_all_count(records: Iterable[Record]) -> list[Record]:
    return list({str(record): record for record in records}.values())


@pytest.mark.parametrize("benchmark", ["rsvg", "gres", "refsegrs", "mmscan", "samples"])
@pytest.mark.parametrize("choice", [last_to_arrive, first_to_arrive, different_ones_all_count])
def test_a_wrong_choice_is_refused(
    choice: Choice, benchmark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = load_cases(f"metrics/{benchmark}")
    assert all(passes(case, own_answer) for case in cases)
    for module in (samples, overlap, rsvg, gres, mmscan):
        monkeypatch.setattr(module, "unique_samples", choice)
    refused = [case for case in cases if not passes(case, own_answer)]
    assert "each-sample-once" in {rule for case in refused for rule in case.rules}, (
        "no case of each-sample-once has records of one id that differ"
    )
