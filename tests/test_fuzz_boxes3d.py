"""A slice of scripts/fuzz_boxes3d.py, and proof that its checks refuse wrong parsers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from conftest import REPOSITORY

from lmms_eval_grounding.parsing.boxes3d import parse_boxes3d
from lmms_eval_grounding.parsing.parsed import STATUSES, ParsedBoxes3d


@pytest.fixture(scope="module")
def fuzz() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "scripts"))
        yield importlib.import_module("fuzz_boxes3d")


def test_mutated_replies_are_read_and_scored_without_a_fault(fuzz: ModuleType) -> None:
    tally, failures = fuzz.run(seed=1, count=1000)
    assert not failures, failures[0]
    assert sum(tally[status] for status in STATUSES) == 2000
    assert all(tally[status] for status in STATUSES)  # every outcome is exercised


def test_the_same_seed_gives_the_same_replies(fuzz: ModuleType) -> None:
    def replies(seed: int) -> list[tuple[str, str]]:
        return [(reply, name) for reply, name, _ in fuzz.samples(seed, 50)]

    assert replies(5) == replies(5)
    assert replies(5) != replies(6)


def raises(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
    raise RecursionError


def makes_a_box_up(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
    return ParsedBoxes3d("ok", ((0.0, 0.0, 0.0, 0.137, 0.137, 0.137, 0.0, 0.0, 0.0),))


def swaps_sizes(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
    swapped = tuple((*box[:3], box[5], box[4], box[3], *box[6:]) for box in parsed.boxes)
    return replace(parsed, boxes=swapped)


def has_no_volume(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
    return replace(parsed, boxes=tuple((*box[:5], 0.0, *box[6:]) for box in parsed.boxes))


def is_not_finite(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
    return replace(parsed, boxes=tuple((float("nan"), *box[1:]) for box in parsed.boxes))


def makes_scores_up(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
    return replace(parsed, scores=tuple(0.137 for _ in parsed.boxes) or None)


def gives_no_reason(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
    return replace(parsed, reason=None)


def has_a_status_of_its_own(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
    return replace(parsed, status="unsure")  # type: ignore[arg-type]


def keeps_boxes_of_failed_replies(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
    return replace(parsed, status="malformed", reason="broken") if parsed.boxes else parsed


@pytest.mark.parametrize(
    "wrong",
    [
        raises,
        makes_a_box_up,
        swaps_sizes,
        has_no_volume,
        is_not_finite,
        makes_scores_up,
        gives_no_reason,
        has_a_status_of_its_own,
        keeps_boxes_of_failed_replies,
    ],
    ids=lambda wrong: wrong.__name__,
)
def test_checks_refuse_a_parser_that_is_wrong(
    wrong: Any, fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "parse_boxes3d", lambda *args: wrong(parse_boxes3d(*args)))
    _, failures = fuzz.run(seed=1, count=100)
    assert failures


def test_a_reading_that_changes_is_refused(
    fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = iter(range(10_000))
    monkeypatch.setattr(
        fuzz,
        "parse_boxes3d",
        lambda *args: parse_boxes3d(*args) if next(turn) % 2 else ParsedBoxes3d("no_target"),
    )
    _, failures = fuzz.run(seed=1, count=100)
    assert "read again" in failures[0]


def test_help_teaches(
    fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["fuzz_boxes3d.py", "--help"])
    with pytest.raises(SystemExit):
        fuzz.main()
    shown = capsys.readouterr().out
    assert "python scripts/fuzz_boxes3d.py --count 5000" in shown
    assert "not made up" in shown
