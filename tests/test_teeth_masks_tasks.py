"""Wrong ways from replies to numbers, as published code has them, are refused by task cases.

Refused by a metric: the rates of the statuses, which would give most of them away, do not count.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lmms_eval_grounding.benchmarks import gres, mask_replies, refsegrs
from lmms_eval_grounding.conformance import own_answer
from lmms_eval_grounding.corpus import agrees, load_cases, meaning
from lmms_eval_grounding.geometry import masks
from lmms_eval_grounding.metrics import overlap
from lmms_eval_grounding.parsing import mask_maps, mask_rle, mask_tokens
from lmms_eval_grounding.parsing import masks as parsing
from lmms_eval_grounding.parsing.parsed import ParsedMask
from lmms_eval_grounding.parsing.profile import Profile
from lmms_eval_grounding.parsing.spaces import Space

Patch = Callable[[pytest.MonkeyPatch], None]
Records = Sequence[dict[str, Any]]

TASKS = {"gres": gres, "refsegrs": refsegrs}
FAILED = ("malformed", "unparseable")
NAN = math.nan


def refusals(benchmark: str, of_rates: bool = False) -> list[str]:
    """Return the cases in which a metric, or a rate, is not the expected one."""
    refused = []
    for case in load_cases(f"tasks/{benchmark}"):
        got, tolerance = own_answer(case), meaning(case.spec)["tolerance"]
        assert "error" not in got, case
        names = [name for name in case.expected if name.startswith("parse_") == of_rates]
        if not all(agrees(got[name], case.expected[name], tolerance) for name in names):
            refused.append(str(case))
    return refused


@pytest.mark.parametrize("benchmark", TASKS)
@pytest.mark.parametrize("of_rates", [False, True])
def test_the_right_implementation_is_not_refused(benchmark: str, of_rates: bool) -> None:
    assert refusals(benchmark, of_rates) == []


# --- what is read


def reading(wrong: Callable[[ParsedMask, Any, Any, Profile], ParsedMask]) -> Patch:
    """Return the fault that a reply is read in another way; ``wrong`` sees the right reading."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        right = mask_replies.read_mask

        def read(doc: Any, reply: Any, profile: Profile) -> ParsedMask:
            return wrong(right(doc, reply, profile), doc, reply, profile)

        for module in TASKS.values():
            patch.setattr(module, "read_mask", read)

    return fault


def empty_where(condition: Callable[[ParsedMask], bool]) -> Patch:
    """Return the fault that some failures are read as masks without pixels."""

    def read(parsed: ParsedMask, doc: Any, *_: Any) -> ParsedMask:
        if not condition(parsed):
            return parsed
        empty = masks.rle_from_array(np.zeros((doc["height"], doc["width"]), np.uint8))
        return ParsedMask("ok", empty, parts=1)

    return reading(read)


def again(change: Callable[[str], str]) -> Patch:
    """Return the fault that another text is parsed than the reply."""

    def read(parsed: ParsedMask, doc: Any, reply: Any, profile: Profile) -> ParsedMask:
        if reply is None or change(reply) == reply:
            return parsed
        return parsing.parse_mask(change(reply), profile, doc["width"], doc["height"])

    return reading(read)


def replaced_where(condition: Callable[[ParsedMask, str], bool], other: ParsedMask) -> Patch:
    return reading(
        lambda parsed, doc, reply, _: other if condition(parsed, reply or "") else parsed
    )


def iou_with_target(doc: Any, mask: masks.Rle) -> float:
    if doc["target"] is None:
        return float(not masks.area(mask))
    intersection, union = masks.intersection_and_union(mask, doc["target"])
    return intersection / union if union else 0.0


def best_of_spaces(parsed: ParsedMask, doc: Any, reply: Any, profile: Profile) -> ParsedMask:
    """Take the best of several readings, with the target in sight."""
    if profile.mask is None or profile.mask.space is None:
        return parsed
    spaces = [Space("image"), Space((1.0, 1.0)), Space((1000.0, 1000.0))]
    profiles = [replace(profile, mask=replace(profile.mask, space=space)) for space in spaces]
    readings = [parsing.parse_mask(reply, other, doc["width"], doc["height"]) for other in profiles]
    found = [each for each in (parsed, *readings) if each.mask]
    return max(found, key=lambda each: iou_with_target(doc, each.mask)) if found else parsed


def first_space_that_fits(parsed: ParsedMask, doc: Any, reply: Any, profile: Profile) -> ParsedMask:
    """Read numbers that are too large for the declared space as thousandths."""
    if parsed.reason != "out_of_space" or profile.mask is None:
        return parsed
    thousandths = replace(profile, mask=replace(profile.mask, space=Space((1000.0, 1000.0))))
    return parsing.parse_mask(reply, thousandths, doc["width"], doc["height"])


def box_of_the_mask(parsed: ParsedMask, doc: Any, *_: Any) -> ParsedMask:
    bounds = parsed.mask and masks.bounding_box(parsed.mask)
    if not bounds:
        return parsed
    return replace(parsed, mask=masks.rle_from_boxes([bounds], doc["height"], doc["width"]))


def resizing(patch: pytest.MonkeyPatch) -> None:
    """Resize a mask of another size to the image's, by the nearest pixel."""
    right = mask_rle._rle_part

    def resized(pairs: Any, width: int, height: int) -> Any:
        given = dict(pairs)
        if not mask_rle._is_size(given["size"]) or given["size"] == [height, width]:
            return right(pairs, width, height)
        pixels = masks.array_from_rle(masks.rle_from_coco(given))
        rows = np.arange(height) * given["size"][0] // height
        columns = np.arange(width) * given["size"][1] // width
        return iter([mask_rle.Part(rle=masks.rle_from_array(pixels[rows][:, columns]))])

    patch.setattr(mask_rle, "_rle_part", resized)


def row_major(patch: pytest.MonkeyPatch) -> None:
    right = mask_rle.rle_from_coco

    def along_the_rows(value: Any, size: Any) -> Any:
        runs = masks.array_from_rle(right(value, size)).ravel(order="F")
        return masks.rle_from_array(runs.reshape(size))

    patch.setattr(mask_rle, "rle_from_coco", along_the_rows)


def map_above(threshold: int) -> Patch:
    return lambda patch: patch.setattr(mask_maps, "THRESHOLD", threshold)


def short_grids_padded(patch: pytest.MonkeyPatch) -> None:
    right = mask_tokens._grid_part

    def padded(body: str, side: int, width: int, height: int) -> Any:
        rows = [row for row in body.split("\n") if row.strip()]
        return right("\n".join(rows + rows[-1:] * (side - len(rows))), side, width, height)

    patch.setattr(mask_tokens, "_grid_part", padded)


# --- which parts count


class Parts:
    """Notices the masks of the single parts of an answer, which are then united."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.masks: list[masks.Rle] = []
        united = parsing._united

        def noticed(given: Any, width: int, height: int) -> Any:
            singles = (united([part], width, height)[0] for part in given)
            self.masks = [mask for mask in singles if mask]
            return united(given, width, height)

        patch.setattr(parsing, "_united", noticed)


def has_parts(parsed: ParsedMask) -> bool:
    return "multiple" in parsed.flags and "mask_from_box" not in parsed.flags


def choosing(choose: Callable[[Any, list[masks.Rle]], masks.Rle]) -> Patch:
    """Return the fault that the parts of an answer are not united, but something else."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        parts = Parts(patch)

        def read(parsed: ParsedMask, doc: Any, *_: Any) -> ParsedMask:
            if not has_parts(parsed):
                return parsed
            return replace(parsed, mask=choose(doc, parts.masks))

        reading(read)(patch)

    return fault


def layers(parts: list[masks.Rle]) -> Any:
    return np.sum([masks.array_from_rle(part).astype(int) for part in parts], axis=0)


def summed(patch: pytest.MonkeyPatch) -> None:
    """Count the pixels of each part, those that two parts share twice."""
    parts, count = Parts(patch), overlap.intersection_and_union
    given: list[masks.Rle] = []

    def read(parsed: ParsedMask, *_: Any) -> ParsedMask:
        given[:] = parts.masks if has_parts(parsed) else [parsed.mask] if parsed.mask else []
        return parsed

    def counts(pred: Any, target: Any) -> tuple[int, int]:
        intersection = sum(count(part, target)[0] for part in given)
        return intersection, sum(map(masks.area, given)) + masks.area(target) - intersection

    reading(read)(patch)
    patch.setattr(overlap, "intersection_and_union", counts)


# --- records


def recording(wrong: Callable[..., Any]) -> Patch:
    """Return the fault that a sample leaves another record; ``wrong`` gets the right function.

    The contract would refuse most such records at once: here the numbers have to.
    """

    def fault(patch: pytest.MonkeyPatch) -> None:
        for module in TASKS.values():
            patch.setattr(module, "check", lambda *_: None)
            right = module.sample_record
            patch.setattr(
                module,
                "sample_record",
                lambda *args, right=right, **options: wrong(right, *args, **options),
            )

    return fault


def failure_is_rejection(
    right: Any, id: str, status: str, pred: Any, target: Any, **options: Any
) -> Any:
    read = "no_target" if status in FAILED else status
    return right(id, read, pred, target, **options) | {"status": status}


def min_pixels_off_by(step: int) -> Patch:
    return recording(
        lambda right, *args, min_pixels: right(*args, min_pixels=max(min_pixels + step, 1))
    )


def empty_by_status(right: Any, id: str, status: str, *args: Any, **options: Any) -> Any:
    return right(id, status, *args, **options) | {"is_empty": status == "no_target"}


def target_by_pixels(
    right: Any, id: str, status: str, pred: Any, target: Any, **options: Any
) -> Any:
    return right(id, status, pred, target if target and masks.area(target) else None, **options)


def without_union(condition: Callable[[Any], bool]) -> Patch:
    def wrong(right: Any, *args: Any, **options: Any) -> Any:
        record = right(*args, **options)
        return record | {"union": 0} if condition(record) else record

    return recording(wrong)


def crowd_mode(right: Any, id: str, status: str, pred: Any, target: Any, **options: Any) -> Any:
    record = right(id, status, pred, target, **options)
    return record | {"union": masks.area(pred)} if pred and target else record


def counts_in_uint8(right: Any, *args: Any, **options: Any) -> Any:
    record = right(*args, **options)
    return record | {name: record[name] % 256 for name in ("intersection", "union")}


def at_480(right: Any, id: str, status: str, pred: Any, target: Any) -> Any:
    """Compare on 480 x 480 pixels, resized by the nearest, as code of the LAVT family does."""

    def resized(mask: masks.Rle) -> masks.Rle:
        pixels = masks.array_from_rle(mask)
        rows, columns = (np.arange(480) * side // 480 for side in pixels.shape)
        return masks.rle_from_array(pixels[rows][:, columns])

    return right(id, status, pred and resized(pred), resized(target))


# --- numbers


def reporting(names: Sequence[str], wrong: Callable[..., float]) -> Patch:
    """Return the fault that some metrics are others; ``wrong`` gets the right one and records."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        for module in TASKS.values():
            for name in set(names) & set(module.METRICS):
                right = module.METRICS[name]
                patch.setitem(
                    module.METRICS, name, lambda records, right=right: wrong(right, records)
                )

    return fault


def keeping(condition: Callable[[Any], bool]) -> Callable[..., float]:
    return lambda right, records: right([record for record in records if condition(record)])


def share(hits: Sequence[bool], whole: int = 1) -> float:
    return whole * sum(hits) / len(hits) if hits else NAN


def repeats_counted(right: Any, records: Records) -> float:
    return float(right([record | {"id": str(i)} for i, record in enumerate(records)]))


def stale_flag(right: Any, records: Records) -> float:
    """Filter by the flag that the loop before left behind, as a recipe in circulation does."""
    return float(right(records if records and records[-1]["has_target"] else []))


def above(threshold: float) -> Callable[..., float]:
    return lambda right, records: share(
        [overlap.iou(r) > threshold for r in records if r.get("has_target", True)]
    )


def one_for_0_of_0(right: Any, records: Records) -> float:
    return float(right([r if r["union"] else r | {"intersection": 1, "union": 1} for r in records]))


PRECISIONS = [f"Pr@{threshold}" for threshold in gres.THRESHOLDS]
ALL = [*gres.METRICS, *refsegrs.METRICS]
RATES = [name for name in ALL if name.startswith("parse_")]

BOTH = {
    "thresholds are strict": reporting(["Pr@0.6"], above(0.6)),
    "masks are resized to fit": resizing,
    "runs go along the rows": row_major,
    "the best part counts": choosing(
        lambda doc, parts: max(parts, key=lambda part: iou_with_target(doc, part))
    ),
    "the first part counts": choosing(lambda doc, parts: parts[0]),
    "the largest part counts": choosing(lambda doc, parts: max(parts, key=masks.area)),
    "parts are united by the even-odd rule": choosing(
        lambda doc, parts: masks.rle_from_array((layers(parts) % 2).astype(np.uint8))
    ),
    "pixels of several parts are summed": summed,
    "the box of a mask is filled": reading(box_of_the_mask),
    "filled boxes are no masks": replaced_where(
        lambda parsed, _: "mask_from_box" in parsed.flags,
        ParsedMask("unparseable", reason="no_mask"),
    ),
    "the best of several spaces counts": reading(best_of_spaces),
    "crowd mode": recording(crowd_mode),
    "counts in eight bits": recording(counts_in_uint8),
    "a target that is missed costs nothing": without_union(
        lambda r: r["status"] == "no_target" and r.get("has_target", True)
    ),
    "a failure costs nothing": without_union(lambda r: r["status"] in FAILED),
    "failed requests are skipped": reporting(ALL, keeping(lambda r: r["status"] != "unparseable")),
    "malformed replies are skipped": reporting(ALL, keeping(lambda r: r["status"] != "malformed")),
    "repeated samples count again": reporting(ALL, repeats_counted),
    "a mean of ratios": reporting(
        ["cIoU", "oIoU"], lambda _, records: overlap.mean(records, overlap.iou)
    ),
    "a ratio of sums": reporting(
        ["gIoU", "mIoU", "target-mIoU"], lambda _, records: overlap.ratio_of_sums(records)
    ),
}

FAULTS: dict[str, dict[str, Patch]] = {
    "gres": BOTH
    | {
        "a failure is a rejection": recording(failure_is_rejection),
        "a malformed reply is an empty mask": empty_where(lambda p: p.status == "malformed"),
        "prose is an empty mask": empty_where(lambda p: p.reason == "no_mask"),
        "an empty reply is an empty mask": empty_where(lambda p: p.reason == "empty_response"),
        "a mask of another size is empty": empty_where(lambda p: p.reason == "size_mismatch"),
        "a token for a decoder is an empty mask": empty_where(
            lambda p: p.reason == "needs_decoder"
        ),
        "a failed request is an empty mask": empty_where(lambda p: p.reason == "request_failed"),
        "a cut reply is an empty mask": empty_where(lambda p: p.reason == "truncated"),
        "the text of a failed request is read": again(
            lambda reply: reply[reply.find("{") :] if reply.startswith("[LMMS") else reply
        ),
        "drafts inside the reasoning are read": again(
            lambda reply: reply.replace("<think>", "").replace("</think>", " ")
        ),
        "a cut reply is a failure": replaced_where(
            lambda parsed, _: "truncated" in parsed.flags,
            ParsedMask("unparseable", reason="truncated"),
        ),
        "one broken part spoils all": replaced_where(
            lambda parsed, _: "partial" in parsed.flags, ParsedMask("malformed", reason="bad_mask")
        ),
        "a denial wins over a mask": replaced_where(
            lambda _, reply: "There is no" in reply, ParsedMask("no_target")
        ),
        "[REJ] is no rejection": replaced_where(
            lambda parsed, reply: "[REJ]" in reply, ParsedMask("unparseable", reason="no_mask")
        ),
        "large numbers are thousandths": reading(first_space_that_fits),
        "a map is foreground above 0": map_above(0),
        "a map is foreground from 127": map_above(126),
        "a map is foreground above 128": map_above(128),
        "a short grid is padded": short_grids_padded,
        "min_pixels is ignored": min_pixels_off_by(-1000),
        "min_pixels is not enough": min_pixels_off_by(1),
        "a mask without pixels is no rejection": recording(empty_by_status),
        "a target without pixels is none": recording(target_by_pixels),
        "a false alarm costs nothing": without_union(lambda r: not r["has_target"]),
        "0 for a right rejection": reporting(
            ["gIoU"], lambda _, records: overlap.mean(records, overlap.iou)
        ),
        "a right rejection is left out of gIoU": reporting(
            ["gIoU"], keeping(lambda r: r["has_target"] or not r["is_empty"])
        ),
        "gIoU over samples with a target": reporting(["gIoU"], keeping(lambda r: r["has_target"])),
        "cIoU over samples with a target": reporting(["cIoU"], keeping(lambda r: r["has_target"])),
        "cIoU by a stale flag": reporting(["cIoU"], stale_flag),
        "N-acc over all samples": reporting(
            ["N-acc"],
            lambda _, records: share([not r["has_target"] and r["is_empty"] for r in records], 100),
        ),
        "T-acc over all samples": reporting(
            ["T-acc"],
            lambda _, records: share(
                [r["has_target"] and r["status"] == "ok" and not r["is_empty"] for r in records],
                100,
            ),
        ),
        "T-acc by IoU": reporting(
            ["T-acc"],
            lambda _, records: share(
                [overlap.iou(r) >= 0.5 for r in records if r["has_target"]], 100
            ),
        ),
        "T-acc counts whatever does not reject": reporting(
            ["T-acc"],
            lambda _, records: share([not r["is_empty"] for r in records if r["has_target"]], 100),
        ),
        "Pr over all samples": reporting(
            PRECISIONS[:1], lambda _, records: share([overlap.iou(r) >= 0.5 for r in records])
        ),
    },
    "refsegrs": BOTH
    | {
        "nothing for nothing scores 1": reporting([*PRECISIONS, "mIoU"], one_for_0_of_0),
        "scores on 480 x 480 pixels": recording(at_480),
        "one percent point less": reporting(["oIoU"], lambda right, records: right(records) - 0.01),
        "empty masks are left out": reporting(ALL, keeping(lambda r: r["intersection"] > 0)),
    },
}


@pytest.mark.parametrize(
    ("benchmark", "name"), [(benchmark, name) for benchmark in FAULTS for name in FAULTS[benchmark]]
)
def test_a_fault_is_refused(benchmark: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[benchmark][name](monkeypatch)
    assert refusals(benchmark)


@pytest.mark.parametrize("benchmark", TASKS)
@pytest.mark.parametrize("left_out", FAILED)
def test_rates_over_some_of_the_samples_are_refused(
    benchmark: str, left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporting(RATES, keeping(lambda r: r["status"] != left_out))(monkeypatch)
    assert refusals(benchmark, of_rates=True)
