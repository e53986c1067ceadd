"""What a profile writes, it reads back: every box within the profile's own resolution.

The bounds are computed from profiles.json, in pixels per axis: one step of a written number is
``10**-decimals * size / extent`` (a cell of a grid: ``size / 32``), where ``size`` is the image
side, or the side of the square that it is padded to.
"""

from __future__ import annotations

import itertools
import json
import random
from importlib.resources import files

import pytest

from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.profile import load_profile, profile_names
from lmms_eval_grounding.writing.boxes import write_box

DECLARED = json.loads(files("lmms_eval_grounding.parsing").joinpath("profiles.json").read_text())
WRITES_BOXES = [
    name for name in profile_names("box") if DECLARED[name]["box"]["syntaxes"] != ["points"]
]
SIZES = [(800, 800), (300, 200), (1024, 683), (37, 1200)]
SMALLEST = 4  # pixels a side

# How far a corner can be off, in steps, when each written number is off by half a step: a corner of
# its own errs by 1/2; centre -+ size/2 by 1/2 + 1/4; start + size by 1/2 + 1/2.
LOW_AND_HIGH = {
    "xyxy": (1 / 2, 1 / 2),
    "yxyx": (1 / 2, 1 / 2),
    "xyxya": (1 / 2, 1 / 2),
    "cells": (1 / 2, 1 / 2),
    "cxcywh": (3 / 4, 3 / 4),
    "cxcywha": (3 / 4, 3 / 4),
    "xywh": (1 / 2, 1),
}
NOISE = 1e-9  # pixels, for the rounding of floating point


def sides(rng: random.Random, size: int) -> list[tuple[float, float]]:
    """Intervals along one axis: whole, at either edge, inside; of any length, whole and not."""
    found = [(0, size), (0, SMALLEST), (size - SMALLEST, size), (0, size / 3), (size / 3, size)]
    for _ in range(12):
        length = SMALLEST * (size / SMALLEST) ** rng.random()
        start = rng.uniform(0, size - length)
        found += [(start, start + length), (0, length), (size - length, size)]
        whole = min(round(start), size - round(length))
        found.append((whole, whole + round(length)))
    return found


def boxes(width: int, height: int) -> list[tuple[float, float, float, float]]:
    rng = random.Random(f"{width} x {height}")
    across, down = sides(rng, width), sides(rng, height)
    rng.shuffle(down)
    pairs = [*zip(across, down, strict=True), *itertools.product(across[:5], down[:5])]
    return [(x1, y1, x2, y2) for (x1, x2), (y1, y2) in pairs]


def step_in_pixels(name: str, axis: int, width: int, height: int) -> float:
    """Return how many pixels one step of a written number is along an axis (0: x, 1: y)."""
    box = DECLARED[name]["box"]
    space = box["space"]
    size = max(width, height) if space.get("padded") else (width, height)[axis]
    extent = {
        "image": (width, height),
        "resized": [a.extent for a in load_profile(name).box.space.axes(width, height)],
    }.get(str(space["extent"]), space["extent"])[axis]
    return 10 ** -box.get("decimals", 0) * size / extent


def bounds(name: str, box, width: int, height: int) -> list[float]:
    """Return by how many pixels each corner may be off, and say why where it is a whole step."""
    low, high = LOW_AND_HIGH[DECLARED[name]["box"]["order"]]
    allowed = [0.0] * 4
    for axis in (0, 1):
        step = step_in_pixels(name, axis, width, height)
        # Thinner than a step: both corners may round to one number, which leaves no box. The pair
        # of steps around the centre is the next best, and is off by less than one step. For bins
        # and cells this holds at the edges too: the outermost centre is half a step inside.
        thin = box[axis + 2] - box[axis] < step
        allowed[axis] = max(low, thin) * step
        allowed[axis + 2] = max(high, thin) * step
    return allowed


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", WRITES_BOXES)
def test_a_written_box_is_read_back_within_the_resolution_of_its_profile(name, size):
    profile = load_profile(name)
    for box in boxes(*size):
        reply = write_box(box, profile, *size, "the large storage tank")
        parsed = parse_boxes(reply, profile, *size)
        assert parsed.status == "ok", (box, reply, parsed)
        # Widened at the edge of the image a box is clipped; in a coarse space a corner may be <= 1.
        assert set(parsed.flags) <= {"clipped", "scale_mismatch"}, (box, reply, parsed)
        assert len(parsed.boxes) == 1, (box, reply, parsed)
        errors = [abs(got - given) for got, given in zip(parsed.boxes[0], box, strict=True)]
        allowed = bounds(name, box, *size)
        assert all(e <= a + NOISE for e, a in zip(errors, allowed, strict=True)), (
            f"{box} became {parsed.boxes[0]} by {reply!r}: off by {errors}, allowed {allowed}"
        )


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_points_are_given_but_are_no_box(size):
    profile = load_profile("molmo")
    for box in boxes(*size):
        parsed = parse_boxes(write_box(box, profile, *size, "tank"), profile, *size)
        assert (parsed.status, parsed.reason) == ("malformed", "point")


@pytest.mark.parametrize("extent", [100, 63])
@pytest.mark.parametrize("size", [37, 300, 1200])
def test_no_other_numbers_would_come_nearer_in_a_coarse_space(extent, size):
    name = {100: "minigpt_v2", 63: "polyformer"}[extent]
    profile = load_profile(name)
    rng = random.Random(f"{extent} {size}")
    pairs = list(itertools.combinations([n * size / extent for n in range(extent + 1)], 2))
    for low, high in sides(rng, size):
        best = min(max(abs(low - a), abs(high - b)) for a, b in pairs)
        written = write_box((low, 0, high, size), profile, size, size)
        ((x1, _, x2, _),) = parse_boxes(written, profile, size, size).boxes
        assert max(abs(low - x1), abs(high - x2)) == pytest.approx(best, abs=NOISE)


LABELS = [
    "",
    "the 2nd ship, left of pier 12",
    'a "[1, 2, 3, 4]" (5,6),(7,8) {<9><10><11><12>} <box>1 2 3 4</box> <loc_1><loc_2>',
    "</think> <answer>[1,2,3,4]</answer> ``` { \\ \0 \ud800 </s>",
    "no target",
]


@pytest.mark.parametrize("label", LABELS, ids=ascii)
@pytest.mark.parametrize("name", WRITES_BOXES)
def test_no_label_disturbs_the_box(name, label):
    profile, box = load_profile(name), (200.0, 150.0, 600.0, 450.0)
    plain = parse_boxes(write_box(box, profile, 800, 800, "tank"), profile, 800, 800)
    assert parse_boxes(write_box(box, profile, 800, 800, label), profile, 800, 800) == plain


@pytest.mark.parametrize("name", profile_names("box"))
def test_the_example_of_a_profile_is_what_it_writes(name):
    profile = load_profile(name)
    box = (160.0, 240.0, 600.0, 560.0)
    assert write_box(box, profile, 800, 800, "storage tank") == profile.box.example
