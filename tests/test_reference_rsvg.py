"""The official outputs on RSVG inputs are met, or differ by exactly a deviation of the spec.

The official code is LANMNG/LQVG@6e26403:inference_rsvg.py and
djiajunustc/TransVG@c862427:utils/eval_utils.py. What the spec names: LQVG is strict, adds 1e-6 to
intersection and union, takes signed areas, works in float32, and does not clip; TransVG clips the
prediction inside the metric.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_grounding.geometry.boxes import Box, clip
from lmms_eval_grounding.metrics.rsvg import (
    cumulative_iou,
    mean_iou,
    precision_at,
    sample_iou,
    sample_record,
)

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
SINGLE = 1e-5  # what float32 arithmetic on coordinates up to 1e4 may be off by


def load(folder: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((folder / "rsvg.json").read_text("utf-8"))
    return loaded


def box(numbers: list[Any]) -> Box:
    x1, y1, x2, y2 = map(float, numbers)
    return x1, y1, x2, y2


def pairs_seen_by_lqvg(vector: dict[str, Any]) -> list[tuple[Box, Box]]:
    """Return (pred, target) as LQVG's metric saw them, after its own letterboxing."""
    samples = vector["official"].get("LQVG:seen") or vector["input"]["samples"]
    return [(box(sample["pred"]), box(sample["gt"])) for sample in samples]


def is_proper(*boxes: Box) -> bool:
    return all(b[0] < b[2] and b[1] < b[3] for b in boxes)


def signed_area(b: Box) -> float:
    return (b[2] - b[0]) * (b[3] - b[1])


def lqvg_iou(pred: Box, target: Box) -> float:
    """Return LQVG's IoU with its named deviations: signed areas and the epsilon."""
    width = max(min(pred[2], target[2]) - max(pred[0], target[0]), 0.0)
    height = max(min(pred[3], target[3]) - max(pred[1], target[1]), 0.0)
    union = signed_area(pred) + signed_area(target) - width * height
    return (width * height + 1e-6) / (union + 1e-6)


def is_below_a_pixel(records: list[dict[str, Any]]) -> bool:
    """Return whether areas are so small that LQVG's epsilon and float32 show."""
    return any(record["union"] < 1 for record in records)


def our_records(pairs: list[tuple[Box, Box]]) -> list[dict[str, Any]]:
    return [sample_record(str(i), "ok", pred, target) for i, (pred, target) in enumerate(pairs)]


def test_lqvg(reference_vectors: Path) -> None:
    met = deviating = ties = 0
    for vector in load(reference_vectors):
        official, pairs = vector["official"], pairs_seen_by_lqvg(vector)
        theirs = [lqvg_iou(pred, target) for pred, target in pairs]
        mean = math.fsum(theirs) / len(theirs)
        if math.isnan(mean):
            assert official["LQVG:meanIoU"] == official["LQVG:cumIoU"] == "nan", vector["name"]
            deviating += 1
            continue
        assert official["LQVG:meanIoU"] == pytest.approx(mean, abs=SINGLE), vector["name"]
        for threshold in THRESHOLDS:
            near = sum(abs(iou - threshold) < SINGLE for iou in theirs)
            hits = sum(iou > threshold for iou in theirs)
            difference = round(official[f"LQVG:acc@{threshold}"] * len(pairs)) - hits
            assert abs(difference) <= near, (vector["name"], threshold)
            ties += near
        records = our_records(pairs)
        if not all(is_proper(*pair) for pair in pairs) or is_below_a_pixel(records):
            deviating += 1
            continue
        assert mean_iou(records) == pytest.approx(official["LQVG:meanIoU"], abs=SINGLE)
        assert cumulative_iou(records) == pytest.approx(official["LQVG:cumIoU"], abs=SINGLE)
        for threshold in THRESHOLDS:
            if all(abs(sample_iou(record) - threshold) >= SINGLE for record in records):
                percent = precision_at(records, threshold, strict=True)
                assert percent == pytest.approx(100 * official[f"LQVG:acc@{threshold}"], abs=1e-9)
                assert percent == precision_at(records, threshold)
        met += 1
    # 90 vectors: of 30 a box has no area, swapped corners, no numbers, or less than a pixel.
    assert (met, deviating) == (60, 30)
    assert ties > 0


def test_lqvg_scores_boxes_without_area_as_one_and_ours_as_nothing(reference_vectors: Path) -> None:
    names = ("zero_area_both_same", "zero_area_both_apart")
    vectors = [v for v in load(reference_vectors) if v["name"].startswith(names)]
    assert len(vectors) == 4
    for vector in vectors:
        assert vector["official"]["LQVG:meanIoU"] == 1.0
        records = our_records(pairs_seen_by_lqvg(vector))
        assert mean_iou(records) == 0
        assert math.isnan(cumulative_iou(records))


def test_ties_are_hits_here_and_misses_at_lqvg(reference_vectors: Path) -> None:
    vectors = [v for v in load(reference_vectors) if v["name"].startswith("exact_1_2")]
    assert len(vectors) == 2
    for vector in vectors:
        records = our_records(pairs_seen_by_lqvg(vector))
        assert vector["official"]["LQVG:acc@0.5"] == 0
        assert precision_at(records, 0.5, strict=True) == 0
        assert precision_at(records, 0.5) == 100


def test_transvg(reference_vectors: Path) -> None:
    met = 0
    for vector in load(reference_vectors):
        official, samples = vector["official"], vector["input"]["samples"]
        pairs = [(clip(box(s["pred"]), s["width"], s["height"]), box(s["gt"])) for s in samples]
        if official["TransVG:miou"] == "nan":
            assert any(math.isnan(n) for s in samples for n in box(s["pred"])), vector["name"]
            continue
        records = our_records(pairs)
        if not all(is_proper(target) for _, target in pairs):
            continue
        tolerance = 1e-3 if is_below_a_pixel(records) else SINGLE
        assert mean_iou(records) == pytest.approx(official["TransVG:miou"], abs=tolerance), vector
        near = sum(abs(sample_iou(record) - 0.5) < SINGLE for record in records)
        hits = precision_at(records, 0.5) * len(records) / 100
        assert abs(official["TransVG:accu_num"] - hits) <= near + 1e-9, vector["name"]
        met += 1
    assert met == 76  # of 90: the targets of 12 have no proper area, 2 predictions are nan
