"""A slice of scripts/fuzz_masks.py, and proof that its checks refuse wrong parsers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY

from lmms_eval_grounding.geometry import masks as geometry
from lmms_eval_grounding.parsing import mask_rle
from lmms_eval_grounding.parsing.masks import parse_mask
from lmms_eval_grounding.parsing.parsed import STATUSES, ParsedMask


@pytest.fixture(scope="module")
def fuzz() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "scripts"))
        yield importlib.import_module("fuzz_masks")


def test_mutated_replies_are_read_and_scored_without_a_fault(fuzz: ModuleType) -> None:
    tally, failures = fuzz.run(seed=1, count=800)
    assert not failures, failures[0]
    assert sum(tally[status] for status in STATUSES) == 1600
    assert all(tally[status] for status in STATUSES)  # every outcome is exercised


def test_the_same_seed_gives_the_same_replies(fuzz: ModuleType) -> None:
    assert list(fuzz.samples(5, 50)) == list(fuzz.samples(5, 50))
    assert list(fuzz.samples(5, 50)) != list(fuzz.samples(6, 50))


def raises(parsed: ParsedMask) -> ParsedMask:
    raise RecursionError


def has_another_size(parsed: ParsedMask) -> ParsedMask:
    if parsed.mask is None:
        return parsed
    height, width = parsed.mask["size"]
    return replace(parsed, mask=geometry.rle_from_array(np.ones((height + 1, width), bool)))


def is_not_canonical(parsed: ParsedMask) -> ParsedMask:
    if parsed.mask is None or parsed.mask["counts"].startswith("0"):
        return parsed
    # The first run is split in two, with an empty one between them.
    return replace(parsed, mask={**parsed.mask, "counts": f"00{parsed.mask['counts']}"})


def reads_along_the_rows(parsed: ParsedMask) -> ParsedMask:
    if parsed.mask is None:
        return parsed
    pixels = geometry.array_from_rle(parsed.mask)
    turned = pixels.ravel(order="F").reshape(pixels.shape)
    return replace(parsed, mask=geometry.rle_from_array(turned))


def gives_no_reason(parsed: ParsedMask) -> ParsedMask:
    return replace(parsed, reason=None)


def has_a_status_of_its_own(parsed: ParsedMask) -> ParsedMask:
    return replace(parsed, status="unsure")  # type: ignore[arg-type]


def keeps_masks_of_failed_replies(parsed: ParsedMask) -> ParsedMask:
    return replace(parsed, status="malformed", reason="broken") if parsed.mask else parsed


def counts_no_parts(parsed: ParsedMask) -> ParsedMask:
    return replace(parsed, parts=0)


@pytest.mark.parametrize(
    "wrong",
    [
        raises,
        has_another_size,
        is_not_canonical,
        reads_along_the_rows,
        gives_no_reason,
        has_a_status_of_its_own,
        keeps_masks_of_failed_replies,
        counts_no_parts,
    ],
    ids=lambda wrong: wrong.__name__,
)
def test_checks_refuse_a_parser_that_is_wrong(
    wrong: Any, fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        fuzz,
        "parse_mask",
        lambda reply, profile, width, height: wrong(parse_mask(reply, profile, width, height)),
    )
    _, failures = fuzz.run(seed=1, count=1500)
    assert failures


def test_faulty_run_lengths_that_are_read_are_refused(
    fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def padded(value: Any, size: Any) -> Any:
        try:
            return geometry.rle_from_coco(value, size)
        except geometry.MaskError:
            return geometry.rle_from_array(np.zeros(size, bool))

    monkeypatch.setattr(mask_rle, "rle_from_coco", padded)
    _, failures = fuzz.run(seed=1, count=500)
    assert "a second reader of run lengths sees another mask" in failures[0]


def test_a_parser_that_takes_a_target_is_refused(
    fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "parse_mask", lambda reply, profile, width, height, target: None)
    with pytest.raises(fuzz.CheckError, match="the parser takes"):
        fuzz.run(seed=1, count=1)


def test_growth_that_is_not_linear_is_seen(
    fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([1.0, 1.1, 1.0, 8.0])
    monkeypatch.setattr(fuzz, "seconds_a_character", lambda family, length: next(times))
    monkeypatch.setattr(
        fuzz, "FAMILIES", {name: fuzz.FAMILIES[name] for name in ("masks", "polygons")}
    )
    assert not fuzz.growth(2000, worst_ratio=3, most_bytes=10_000)
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("!") for line in lines[1:3]] == [False, True]
    assert "19,999,9" in lines[3]
    assert "too_long" in lines[3]


def test_help_teaches(
    fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["fuzz_masks.py", "--help"])
    with pytest.raises(SystemExit):
        fuzz.main()
    assert "python scripts/fuzz_masks.py --count 5000" in capsys.readouterr().out
