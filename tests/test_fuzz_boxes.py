"""A slice of scripts/fuzz_boxes.py, and proof that its checks refuse wrong parsers."""

from __future__ import annotations

import importlib.util
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.parsed import STATUSES, ParsedBoxes
from lmms_eval_grounding.parsing.profile import load_profile, profile_names
from lmms_eval_grounding.writing.boxes import write_box

SCRIPT = Path(__file__).parents[1] / "scripts" / "fuzz_boxes.py"


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz_boxes", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_boxes"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["fuzz_boxes"]


def test_mutated_replies_are_read_and_scored_without_a_fault(fuzz):
    tally, failures = fuzz.run(seed=1, count=2000)
    assert not failures, failures[0]
    assert sum(tally[status] for status in STATUSES) == 4000
    assert all(tally[status] for status in STATUSES)  # every outcome is exercised


def test_the_same_seed_gives_the_same_replies(fuzz):
    assert list(fuzz.samples(5, 50)) == list(fuzz.samples(5, 50))
    assert list(fuzz.samples(5, 50)) != list(fuzz.samples(6, 50))


def raises(parsed: ParsedBoxes) -> ParsedBoxes:
    raise RecursionError


def makes_a_box_up(parsed: ParsedBoxes) -> ParsedBoxes:
    return ParsedBoxes("ok", ((0.137, 0.137, 0.731, 0.731),), syntax="json_boxes")


def leaves_the_image(parsed: ParsedBoxes) -> ParsedBoxes:
    moved = tuple((x1, y1, x2 + 9000, y2) for x1, y1, x2, y2 in parsed.boxes)
    return replace(parsed, boxes=moved)


def has_no_area(parsed: ParsedBoxes) -> ParsedBoxes:
    return replace(parsed, boxes=tuple((x1, y1, x1, y2) for x1, y1, _, y2 in parsed.boxes))


def swaps_the_axes(parsed: ParsedBoxes) -> ParsedBoxes:
    return replace(parsed, boxes=tuple((y1, x1, y2, x2) for x1, y1, x2, y2 in parsed.boxes))


def gives_no_reason(parsed: ParsedBoxes) -> ParsedBoxes:
    return replace(parsed, reason=None)


def has_a_status_of_its_own(parsed: ParsedBoxes) -> ParsedBoxes:
    return replace(parsed, status="unsure")


@pytest.mark.parametrize(
    "wrong",
    [
        raises,
        makes_a_box_up,
        leaves_the_image,
        has_no_area,
        swaps_the_axes,
        gives_no_reason,
        has_a_status_of_its_own,
    ],
    ids=lambda wrong: wrong.__name__,
)
def test_a_wrong_parser_is_refused(fuzz, monkeypatch, wrong):
    monkeypatch.setattr(fuzz, "parse_boxes", lambda *args: wrong(parse_boxes(*args)))
    monkeypatch.setattr(fuzz, "check_parser_sees_no_target", lambda: None)
    _, failures = fuzz.run(seed=1, count=100)
    assert failures


def test_a_parser_that_takes_a_target_is_refused(fuzz, monkeypatch):
    def best_of(reply, profile, width, height, target):
        raise NotImplementedError

    monkeypatch.setattr(fuzz, "parse_boxes", best_of)
    with pytest.raises(fuzz.CheckError):
        fuzz.check_parser_sees_no_target()


def test_scoring_that_looks_at_the_target_is_refused(fuzz, monkeypatch):
    def best_of(doc, reply, profile):
        record, reading = right(doc, reply, profile)
        return record, {**reading, "pred": doc["bbox"]}

    right = fuzz.score
    monkeypatch.setattr(fuzz, "score", best_of)
    _, failures = fuzz.run(seed=1, count=1)
    assert "the target changes the reading" in failures[0]


def test_a_metric_that_drops_samples_is_refused(fuzz, monkeypatch):
    size = (800, 800)
    record = fuzz.check_sample(random.Random(0), "0", "", load_profile("prompt"), size)
    fuzz.check_metrics([record])
    monkeypatch.setitem(fuzz.ALL_METRICS, "parse_unparseable", lambda records: 0.0)
    with pytest.raises(fuzz.CheckError, match="rates"):
        fuzz.check_metrics([record])


CLOSED = [  # the end of the reply does not close a row: of joined numbers, 4,5,6,78 leaves 4,5,6,7
    name
    for name in profile_names("box")
    if "joined_numbers" not in load_profile(name).box_convention().syntaxes
]


@pytest.mark.parametrize("name", CLOSED)
def test_a_reply_cut_anywhere_gives_the_whole_box_or_none(name):
    profile = load_profile(name)
    reply = write_box((100.3, 150.7, 612.9, 455.5), profile, 800, 800, "storage tank")
    whole = parse_boxes(reply, profile, 800, 800)
    for end in range(len(reply)):
        cut = parse_boxes(reply[:end], profile, 800, 800)
        assert cut.status != "ok" or cut.boxes == whole.boxes, reply[:end]
