"""The official outputs on RefSegRS inputs are met, or differ by exactly a deviation of the spec.

The official code is Lsan2401/RMSIN@b4a9b27:test.py, which agrees with yz93/LAVT-RIS@1da0af9:test.py
on every vector, and zhu-xlab/rrsis@d6d5ace:train.py. All report percent. The vectors hold masks as
the metric got them, so the resize to 480 x 480 before it does not show. Scoring two masks without
pixels as 1 is other code's: here all agree on 0.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_grounding.contract import check
from lmms_eval_grounding.geometry.masks import Rle, rle_from_array, rle_from_coco
from lmms_eval_grounding.metrics import refsegrs
from lmms_eval_grounding.metrics.overlap import iou

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
VALUE_255 = "target values of 255 multiplied"
MINUS_ONE = "printed minus 1"
SINGLE = "float32"


def load(folder: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((folder / "refsegrs.json").read_text("utf-8"))
    return loaded


def mask(written: Any) -> Rle:
    return (
        rle_from_coco(written) if isinstance(written, dict) else rle_from_array(np.array(written))
    )


def our_records(vector: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        refsegrs.sample_record(f"{i:03}", "ok", mask(s["pred_mask"]), mask(s["gt_mask"]))
        for i, s in enumerate(vector["input"]["samples"])
    ]


def our_values(records: list[dict[str, Any]]) -> dict[str, float]:
    """Return our values in percent and our sums, named as the official ones."""
    return {
        "mIoU": 100 * refsegrs.mean_iou(records),
        "oIoU": 100 * refsegrs.overall_iou(records),
        **{f"Pr@{t}": 100 * refsegrs.precision_at(records, t) for t in THRESHOLDS},
        "cum_I": sum(record["intersection"] for record in records),
        "cum_U": sum(record["union"] for record in records),
    }


def single_precision(key: str, intersection: int, union: int) -> float:
    """Return oIoU as rrsis computes it in float32: one way for the log, another to return it."""
    if key == "returned_oIoU":
        return float(np.float32(intersection) / np.float32(union) * np.float32(100))
    return float(np.float32(100 * intersection) / np.float32(union))


def is_met(official: Any, value: float) -> bool:
    if isinstance(official, str):
        return official in (f"{value:.2f}", f"{value}")
    return official == pytest.approx(value, rel=1e-12, abs=1e-12)


def explained(who: str, key: str, official: Any, ours: Mapping[str, float], target: int) -> str:
    """Return ``met``, or the name of the deviations that turn our value into the official one.

    ``target`` is the value that the target mask was stored with.
    """
    name = key.removeprefix("printed_").removeprefix("returned_")
    value = ours[name]
    if is_met(official, value):
        return "met"
    assert who == "rrsis", (key, official, value)
    names = []
    if target == 255 and name in ("mIoU", "oIoU", "cum_I"):
        names.append(VALUE_255)
        value *= 255
    if key == "printed_oIoU":
        names.append(MINUS_ONE)
        value -= 1
    elif name == "oIoU" and target == 1:
        names.append(SINGLE)
        value = single_precision(key, int(ours["cum_I"]), int(ours["cum_U"]))
    assert is_met(official, value), (key, official, value)
    return ", ".join(names)


def test_every_value_is_met_or_explained(reference_vectors: Path) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for vector in load(reference_vectors):
        ours = our_values(our_records(vector))
        target = 255 if vector["name"].startswith("gt_value_255") else 1
        for name, official in vector["official"].items():
            if "per_sample" not in name:
                who, key = name.split(":")
                found[who, explained(who, key, official, ours, target)] += 1
    # 60 vectors with 11 values of RMSIN and 13 of rrsis. 56 have pixels, so that oIoU is defined:
    # all these are printed less 1. In the 2 of them with 255, 6 other values deviate. In the other
    # 54, float32 shows in 53 of the 108 values of oIoU, logged or returned.
    assert found == {
        ("RMSIN", "met"): 660,
        ("rrsis", "met"): 659,
        ("rrsis", MINUS_ONE): 54,
        ("rrsis", SINGLE): 53,
        ("rrsis", VALUE_255): 12,
        ("rrsis", f"{VALUE_255}, {MINUS_ONE}"): 2,
    }


def test_every_sample_is_met(reference_vectors: Path) -> None:
    samples = without_pixels = 0
    for vector in load(reference_vectors):
        records = our_records(vector)
        official = vector["official"].get("per_sample_iou")
        for index, record in enumerate(records):
            check(record, "records/refsegrs.json")
            without_pixels += record["union"] == 0
            if official is not None:
                assert iou(record) == official[index], vector["name"]
                samples += 1
    assert (samples, without_pixels) == (244, 24)


def test_two_masks_without_pixels_score_0_everywhere(reference_vectors: Path) -> None:
    vectors = [v for v in load(reference_vectors) if "both_empty" in v["name"]]
    assert len(vectors) == 4
    for vector in vectors:
        for who in ("RMSIN", "rrsis"):
            assert vector["official"][f"{who}:mIoU"] == 0
            assert vector["official"][f"{who}:oIoU"] == "nan"
        records = our_records(vector)
        assert refsegrs.mean_iou(records) == refsegrs.precision_at(records, 0.5) == 0
        assert math.isnan(refsegrs.overall_iou(records))
