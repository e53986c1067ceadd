"""GRES and RefSegRS through the host: the numbers of whole runs of `lmms-eval`, derived by hand."""

import hashlib
import io
import json
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mask_documents
import numpy as np
import pytest
import sam3_stand_in
from host import RATES, Run, evaluate, evaluate_tasks
from mask_documents import (
    Document,
    Pixels,
    golden_case,
    golden_documents,
    iou,
    mini_documents,
    of_rows,
    pixels_of,
    write_documents,
)
from PIL import Image

from lmms_eval_grounding.benchmarks import gres, refsegrs
from lmms_eval_grounding.contract import finite
from lmms_eval_grounding.corpus import agrees, meaning
from lmms_eval_grounding.parsing.profile import Profile, load_profile, profile_names

TASKS: dict[str, Any] = {"gres": gres, "refsegrs": refsegrs}
MINI = {benchmark: mini_documents(benchmark) for benchmark in TASKS}
MINI_TASKS = "gres_mini,refsegrs_mini"
IN_FULL = {"gres": "gres_val", "refsegrs": "refsegrs"}
SPLITS = {"gres": "val", "refsegrs": "test"}
PRECISIONS = [f"Pr@{threshold}" for threshold in (0.5, 0.6, 0.7, 0.8, 0.9)]
REPORTED = {
    "gres": {"gIoU", "cIoU", *PRECISIONS, "N-acc", "T-acc", "target-mIoU", *RATES},
    "refsegrs": {"mIoU", "oIoU", *PRECISIONS, *RATES},
}
MEAN = {"gres": "gIoU", "refsegrs": "mIoU"}

Start = Callable[..., dict[str, Run]]


def model(name: str, **model_args: Any) -> tuple[str, ...]:
    joined = ",".join(f"{key}={value}" for key, value in model_args.items())
    return ("--model", name, "--model_args", joined) if joined else ("--model", name)


@pytest.fixture
def oracle(tmp_path: Path) -> Start:
    """Return a function that evaluates the oracle with model arguments in this test's folder."""

    def start(name: str = "oracle", tasks: str = MINI_TASKS, **model_args: Any) -> dict[str, Run]:
        runs = evaluate_tasks(
            tmp_path / name, *model("grounding_oracle", **model_args), tasks=tasks
        )
        return {task.partition("_")[0]: run for task, run in runs.items()}

    return start


@pytest.fixture
def replay(tmp_path: Path) -> Start:
    """Return a function that replays the samples of one task, or of a folder."""

    def start(samples: Path, name: str = "replay", tasks: str = MINI_TASKS) -> dict[str, Run]:
        replayed = model("grounding_replay", samples=samples)
        runs = evaluate_tasks(tmp_path / name, *replayed, tasks=tasks)
        return {task.partition("_")[0]: run for task, run in runs.items()}

    return start


def readings(run: Run) -> list[dict[str, Any]]:
    return [sample["grounding"] for sample in run.samples]


def replies(run: Run) -> list[str]:
    return [sample["filtered_resps"] for sample in run.samples]


def reported(run: Run) -> dict[str, float | None]:
    """Return the numbers of a run, which are all there; an undefined one is None."""
    expected = REPORTED[run.task.partition("_")[0]]
    assert set(run.scores) - {"grounding"} == expected
    return {name: value for name, value in run.scores.items() if name in expected}


def logged(replies: list[Any], documents: list[Document], file: Path) -> Path:
    """Write a samples file with one reply to each document."""
    lines = [
        {"doc_id": i, "filtered_resps": reply, "grounding": {"id": doc.id, "reason": None}}
        for i, (doc, reply) in enumerate(zip(documents, replies, strict=True))
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file


# Numbers, once more, from the pixels of predictions; None says that nothing is there


def share(hits: list[bool], whole: int = 1) -> Fraction:
    return Fraction(whole * sum(hits), len(hits))


def numbers(preds: list[Pixels | None], documents: list[Document]) -> dict[str, Fraction]:
    """Return the numbers of both benchmarks for documents with pixels where they have a target."""
    pairs = [
        (
            np.zeros((doc.height, doc.width), bool) if pred is None else pred,
            np.zeros((doc.height, doc.width), bool) if doc.target is None else doc.target,
        )
        for pred, doc in zip(preds, documents, strict=True)
    ]
    assert all(pred.shape == target.shape for pred, target in pairs)
    common = sum(int((pred & target).sum()) for pred, target in pairs)
    either = sum(int((pred | target).sum()) for pred, target in pairs)
    targeted = [iou(pred, target) for pred, target in pairs if target.any()]
    rejected = [not pred.any() for pred, target in pairs if not target.any()]
    claimed = [bool(pred.any()) for pred, target in pairs if target.any()]
    mean = (sum(targeted) + sum(rejected)) / Fraction(len(pairs))
    found = {
        "gIoU": mean,
        "mIoU": mean,
        "cIoU": Fraction(common, either),
        "oIoU": Fraction(common, either),
        "target-mIoU": sum(targeted) / Fraction(len(targeted)),
        "T-acc": share(claimed, 100),
        **{name: share([value >= Fraction(name[3:]) for value in targeted]) for name in PRECISIONS},
    }
    return found | ({"N-acc": share(rejected, 100)} if rejected else {})


def assert_numbers(run: Run, preds: list[Pixels | None], documents: list[Document]) -> None:
    expected = numbers(preds, documents)
    for name, value in reported(run).items():
        if name not in RATES:
            assert value == pytest.approx(float(expected[name]), rel=1e-12, abs=1e-15), name


# The oracle in every syntax of masks

RUN_LENGTHS = ("rle", "sam3", "lisa", "gsva", "sa2va")
MAPS = ("gemini",)
POLYGONS = ("prompt", "polygon_pixel", "polygon_unit", "florence2", "polyformer")
GRIDS = ("text4seg_16", "text4seg_24")
FILLED = (
    "pixel",
    "qwen3_vl",
    "internvl",
    "kosmos2",
    "gemini:mask_from=box",
    "paligemma:mask_from=box",
)
UNWRITABLE = ("paligemma", "ufo")


def has_boxes_only(name: str) -> bool:
    return load_profile(name).mask_convention().from_box


def test_every_profile_of_masks_is_in_one_of_the_groups() -> None:
    named = {*RUN_LENGTHS, *MAPS, *POLYGONS, *GRIDS, *UNWRITABLE}
    names = {name for name in profile_names("mask") if not has_boxes_only(name)}
    assert named == names, f"put into RUN_LENGTHS .. UNWRITABLE, or take out: {named ^ names}"


def steps(space: Any, decimals: int, document: Document) -> tuple[float, float]:
    """Return the pixels along x and y that one step of a written number is."""
    axes = space.axes(document.width, document.height)
    x, y = (axis.size / axis.extent / 10**decimals for axis in axes)
    return x, y


def windows(pixels: Pixels, dx: int, dy: int) -> Pixels:
    """Return how much of the window around each pixel is foreground: a count of pixels.

    The window reaches ``dx`` columns and ``dy`` rows to both sides; there is none outside.
    """
    padded = np.pad(pixels.astype(np.int32), ((dy + 1, dy), (dx + 1, dx)))
    sums = padded.cumsum(axis=0).cumsum(axis=1)
    height, width = 2 * dy + 1, 2 * dx + 1
    counts: Pixels = (
        sums[height:, width:]
        - sums[:-height, width:]
        - sums[height:, :-width]
        + sums[:-height, :-width]
    )
    return counts


def farthest_from_a_number(axis: Any, offset: float, decimals: int) -> float:
    """Return how far, in pixels, an edge between two pixels is at most from what can be written."""
    count = round(axis.extent * 10**decimals)
    written = np.arange(count if offset else count + 1)
    places = (written + offset) * axis.size / count
    edges = np.arange(axis.size + 1)
    return float(np.abs(edges[:, None] - places).min(axis=1).max())


def outline_bounds(profile: Profile, document: Document) -> tuple[Fraction, Fraction]:
    """Return between what the IoU of a mask lies whose outlines go to the nearest numbers.

    All vertices of one column move together, and so do those of a row; then the rasteriser rounds
    them to a fifth of a pixel. So a pixel can change only if its centre is that near to an edge:
    then the window around it that reaches so far holds another value, too.
    """
    convention, target = profile.mask_convention(), document.target
    assert convention.space is not None
    assert target is not None
    axes = convention.space.axes(document.width, document.height)
    offset, decimals = convention.space.offset, convention.decimals
    dx, dy = (  # the k-th centre is k - 1/2 pixels away
        int(farthest_from_a_number(axis, offset, decimals) + 0.1 + 0.5) for axis in axes
    )
    around = windows(target, dx, dy)
    kept = around == (2 * dx + 1) * (2 * dy + 1)
    return Fraction(int(kept.sum()), int((around > 0).sum())), Fraction(1)


def grid_bounds(side: int, document: Document) -> tuple[Fraction, Fraction]:
    """Return the IoU of a mask with the cells of a grid of which it fills at least half, twice.

    A mask that fills half of no cell gets the cells that it fills most.
    """
    target = document.target
    assert target is not None
    rows = np.arange(document.height)[:, None] * side // document.height
    columns = np.arange(document.width) * side // document.width
    cells = (rows * side + columns).ravel()
    totals = np.bincount(cells).tolist()
    foregrounds = np.bincount(cells[target.ravel()], minlength=len(totals)).tolist()
    found = [(part, total) for part, total in zip(foregrounds, totals, strict=True) if part]
    threshold = min(Fraction(1, 2), max(Fraction(*cell) for cell in found))
    filled = [cell for cell in found if Fraction(*cell) >= threshold]
    common = sum(part for part, _ in filled)
    missed = sum(part for part, _ in found) - common
    value = Fraction(common, sum(total for _, total in filled) + missed)
    return value, value


def box_bounds(profile: Profile, document: Document) -> tuple[Fraction, Fraction]:
    """Return between what the IoU of a mask with its filled bounding box lies.

    Each written edge may be off by a step, and a box may be turned by whole degrees: none here is.
    """
    target, convention = document.target, profile.box_convention()
    assert target is not None
    dx, dy = steps(convention.space, convention.decimals, document)
    rows, columns = np.flatnonzero(target.any(axis=1)), np.flatnonzero(target.any(axis=0))
    x = np.arange(document.width) + 0.5
    y = np.arange(document.height) + 0.5

    def box(dx: float, dy: float) -> Pixels:
        across = (x > columns[0] - dx) & (x < columns[-1] + 1 + dx)
        down = (y > rows[0] - dy) & (y < rows[-1] + 1 + dy)
        filled: Pixels = np.outer(down, across)
        return filled

    small, large = box(-dx, -dy), box(dx, dy)
    low = Fraction(int((target & small).sum()), int((target | large).sum()))
    return low, Fraction(int(target.sum()), int((target | small).sum()))


def bounds(profile: Profile, document: Document) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest IoU of the oracle, by what its syntax resolves."""
    name = profile.name
    if profile.mask_convention().from_box:
        return box_bounds(profile, document)
    if name in POLYGONS:
        return outline_bounds(profile, document)
    if name in GRIDS:
        return grid_bounds(profile.mask_convention().grid, document)
    return Fraction(1), Fraction(1)


EXACT = {*RUN_LENGTHS, *MAPS, *POLYGONS} - {"polyformer"}


@pytest.mark.parametrize("name", [*RUN_LENGTHS, *MAPS, *POLYGONS, *GRIDS, *FILLED])
def test_the_oracle_is_read_back_within_the_resolution_of_its_syntax(
    name: str, oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", name)
    profile = load_profile(name)
    for benchmark, run in oracle().items():
        found, scores, documents = readings(run), reported(run), MINI[benchmark]
        assert [reading["id"] for reading in found] == [doc.id for doc in documents]
        assert {reading["profile"] for reading in found} == {name}
        expected = ["no_target" if doc.target is None else "ok" for doc in documents]
        assert [reading["status"] for reading in found] == expected
        targeted = []
        for sample, doc in zip(run.samples, documents, strict=True):
            if doc.target is not None:
                record = sample[MEAN[benchmark]]
                low, high = bounds(profile, doc)
                assert low <= Fraction(record["intersection"], record["union"]) <= high, doc
                targeted.append((low, high))
        rejected = len(documents) - len(targeted)
        low, high = (
            (sum(ends) + rejected) / Fraction(len(documents))
            for ends in zip(*targeted, strict=True)
        )
        assert low - Fraction(1, 10**12) <= scores[MEAN[benchmark]] <= high + Fraction(1, 10**12)
        assert scores.get("N-acc", 100) == scores.get("T-acc", 100) == 100
        if name in EXACT:
            assert low == 1, f"{name} is not exact in {benchmark}_mini: except it from EXACT"
            assert {scores[n] for n in scores if "IoU" in n or "Pr@" in n} == {1}
        assert scores[MEAN[benchmark]] > 0.1  # bounds that only 0 meets would say nothing


@pytest.mark.parametrize("name", [n for n in profile_names("mask") if has_boxes_only(n)])
def test_filled_boxes_are_read_back_with_every_profile(name: str) -> None:
    profile = load_profile(name)
    for benchmark, task in TASKS.items():
        for doc in MINI[benchmark][::3]:
            record, reading = task.score(doc.row, task.oracle_reply(doc.row, profile), profile)
            assert "mask_from_box" in reading["flags"]
            if doc.target is None:
                assert reading["status"] == "no_target"
            else:
                low, high = bounds(profile, doc)
                assert low <= Fraction(record["intersection"], record["union"]) <= high, doc


@pytest.mark.parametrize("name", UNWRITABLE)
def test_the_oracle_refuses_to_write_what_only_a_decoder_can_read(
    name: str, oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", name)
    with pytest.raises(SystemExit) as refused:
        oracle()
    assert "only its own decoder" in _refusal(refused)


# What the oracle does wrong, and what that costs


@pytest.mark.parametrize(
    "error", ["empty", "prose", "truncated", "failed-request", "wrong-space", "shifted"]
)
def test_the_numbers_of_a_wrong_oracle_are_those_of_the_golden_cases(
    error: str, oracle: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = {name: golden_case(name, f"the oracle's replies: {error}") for name in TASKS}
    for benchmark, case in cases.items():
        folder = write_documents(golden_documents(case), tmp_path / benchmark, SPLITS[benchmark])
        monkeypatch.setenv(f"GROUNDING_DATA_{benchmark.upper()}", str(folder))
    for benchmark, run in oracle(tasks="gres_val,refsegrs", error=error).items():
        case = cases[benchmark]
        assert replies(run) == case.input["replies"]
        assert agrees(reported(run), case.expected, meaning(case.spec)["tolerance"])


def moved(pixels: Pixels) -> Pixels:
    """Return a mask moved by half the width of its box, to the right or, without room, the left."""
    columns = np.flatnonzero(pixels.any(axis=0))
    first, last = int(columns[0]), int(columns[-1]) + 1
    half = max((last - first) // 2, 1)
    result = np.zeros_like(pixels)
    if last + half <= pixels.shape[1]:
        result[:, half:] = pixels[:, :-half]
    else:
        result[:, :-half] = pixels[:, half:]
    return result


@pytest.mark.parametrize("name", ["rle", "gemini", "prompt"])
def test_a_mask_moved_by_half_its_width(
    name: str, oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", name)
    for benchmark, run in oracle(error="shifted").items():
        documents = MINI[benchmark]
        preds = [doc.target if doc.target is None else moved(doc.target) for doc in documents]
        assert_numbers(run, preds, documents)
        assert reported(run)["Pr@0.6"] < 1  # type: ignore[operator]


def test_masks_with_height_and_width_exchanged(
    oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "rle")
    runs = oracle(error="wrong-space")
    # No image of gres_mini is square, so that no mask fits: 14 of its 45 samples have no target.
    scores = reported(runs["gres"])
    assert [scores[rate] for rate in RATES] == [0, 14 / 45, 31 / 45, 0]
    assert scores["gIoU"] == 14 / 45
    assert (scores["N-acc"], scores["T-acc"], scores["cIoU"]) == (100, 0, 0)
    # All images of refsegrs_mini are: a mask fits, and lies about the diagonal.
    turned = [doc.target.T for doc in MINI["refsegrs"] if doc.target is not None]
    assert_numbers(runs["refsegrs"], turned, MINI["refsegrs"])
    assert reported(runs["refsegrs"])["parse_ok"] == 1


def test_pixels_read_as_thousandths_cost_what_the_scale_says(oracle: Start) -> None:
    runs = oracle(error="wrong-space")
    for benchmark, run in runs.items():
        documents = MINI[benchmark]
        preds: list[Pixels | None] = []
        for doc in documents:
            if doc.target is None:
                preds.append(None)
                continue
            # The pixel of column c takes the value of the column x with x * width / 1000 = c + 1/2.
            rows = ((np.arange(doc.height) + 0.5) * 1000 / doc.height).astype(int)
            columns = ((np.arange(doc.width) + 0.5) * 1000 / doc.width).astype(int)
            seen = np.pad(doc.target, ((0, 1000), (0, 1000)))
            preds.append(seen[rows][:, columns])
        # The rasteriser rounds to a fifth of a pixel, so that single pixels along outlines differ.
        expected, scores = numbers(preds, documents), reported(run)
        for metric in {"gIoU", "cIoU", "target-mIoU", "mIoU", "oIoU"} & set(scores):
            assert scores[metric] == pytest.approx(float(expected[metric]), abs=1e-5)
        assert scores["Pr@0.5"] == 0
        assert scores["parse_unparseable"] == 0


@pytest.mark.parametrize("name", [n for n in profile_names("mask") if n not in UNWRITABLE])
def test_a_reply_cut_half_way_never_says_that_nothing_is_there(name: str) -> None:
    profile = load_profile(name)
    for benchmark, task in TASKS.items():
        for doc in MINI[benchmark][::3]:
            reply = task.oracle_reply(doc.row, profile, "truncated")
            record, reading = task.score(doc.row, reply, profile)
            assert reading["status"] != "no_target", reply
            assert doc.target is not None or reading["status"] != "ok", reply
            assert not record.get("is_empty"), reply


@pytest.mark.parametrize("error", ["empty", "prose", "failed-request"])
def test_a_reply_without_an_answer_scores_0_with_and_without_a_target(
    error: str, oracle: Start
) -> None:
    reason = {"empty": "empty_response", "prose": "no_mask", "failed-request": "request_failed"}
    for run in oracle(error=error).values():
        scores = reported(run)
        assert [scores[rate] for rate in RATES] == [0, 0, 0, 1]
        assert {scores[name] for name in scores if name not in RATES} == {0}
        assert {reading["reason"] for reading in readings(run)} == {reason[error]}
        if error == "failed-request":
            assert all('{"polygons": [' in reply for reply in replies(run))


def test_every_third_reply_wrong(oracle: Start) -> None:
    for benchmark, run in oracle(error="empty", every=3).items():
        size = len(MINI[benchmark])
        wrong = [i for i, reading in enumerate(readings(run)) if reading["status"] == "unparseable"]
        assert wrong == list(range(0, size, 3))
        assert reported(run)[MEAN[benchmark]] == (size - len(wrong)) / size


# Models that always say the same


def test_a_model_that_always_says_that_nothing_is_there(tmp_path: Path) -> None:
    answer = 'response={"polygons": []}'
    runs = evaluate_tasks(tmp_path, "--model", "dummy", "--model_args", answer, tasks=MINI_TASKS)
    scores = reported(runs["gres_mini"])
    assert scores["gIoU"] == 14 / 45
    assert (scores["cIoU"], scores["N-acc"], scores["T-acc"]) == (0, 100, 0)
    assert scores["target-mIoU"] == scores["Pr@0.5"] == 0
    assert scores["parse_no_target"] == 1
    scores = reported(runs["refsegrs_mini"])
    assert scores["mIoU"] == scores["oIoU"] == 0
    assert scores["parse_no_target"] == 1


@pytest.mark.parametrize(
    ("reply", "mean", "rejected"),
    [('{"masks": []}', 0.6258, 100), ("[LMMS_EVAL_REQUEST_FAILED after 5 retries] ", 0, 0)],
    ids=["always-empty", "every-request-failed"],
)
def test_models_without_a_mask_on_a_split_with_the_proportions_of_val(
    reply: str, mean: float, rejected: float
) -> None:
    # gRefCOCO's val split: 14,229 sentences, of which 8,905 refer to nothing.
    target = of_rows(["1100", "1100"])
    document = Document("", "a sentence", target, 4, 2)
    absent, profile = replace(document, target=None), load_profile("rle")
    records = []
    for i in range(14229):
        doc = (absent if i < 8905 else document).row | {"id": f"{i}/{i}"}
        records.append(gres.score(doc, reply, profile)[0])
    scores = {name: metric(records) for name, metric in gres.METRICS.items()}
    assert round(scores["gIoU"], 4) == mean
    assert scores["gIoU"] == (8905 / 14229 if mean else 0)
    assert scores["N-acc"] == rejected
    assert scores["cIoU"] == scores["T-acc"] == scores["target-mIoU"] == scores["Pr@0.5"] == 0


# sam3


def known_masks() -> dict[tuple[str, str], Pixels | None]:
    """Return the targets of gres_mini by the pixels of their image and their expression."""
    rows = mask_documents.mini_rows("gres")
    return {
        (_digest(Image.open(io.BytesIO(row["image"]["bytes"]))), row["expression"]): doc.target
        for row, doc in zip(rows, MINI["gres"], strict=True)
    }


def _digest(image: Image.Image) -> str:
    return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()


def two_halves_that_overlap(target: Pixels) -> list[Pixels]:
    """Return the left and the right three quarters of a mask."""
    columns = np.flatnonzero(target.any(axis=0))
    quarter = (columns[-1] - columns[0]) // 4
    left, right = target.copy(), target.copy()
    left[:, columns[-1] - quarter :] = False
    right[:, : columns[0] + quarter] = False
    return [left, right]


@pytest.fixture
def sam3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Return a function that evaluates the stand-in for SAM 3 on gres_mini."""

    def start(segment: sam3_stand_in.Segment, **model_args: Any) -> Run:
        sam3_stand_in.put_in_place(segment, monkeypatch)
        return evaluate(tmp_path / "sam3", *model("sam3", **model_args), task="gres_mini")

    return start


def test_the_masks_of_sam3(sam3: Callable[..., Run]) -> None:
    known = known_masks()

    def segment(image: Image.Image, expression: str) -> sam3_stand_in.Instances:
        target = known[_digest(image), expression]
        halves = [] if target is None else two_halves_that_overlap(target)
        everything = np.ones((image.height, image.width), bool)
        return [(half, 0.9) for half in halves] + [(everything, 0.2)]  # below sam3's threshold

    run = sam3(segment)
    scores = reported(run)
    assert {reading["profile"] for reading in readings(run)} == {"sam3"}
    assert {tuple(json.loads(reply)) for reply in replies(run)} == {("masks", "boxes", "scores")}
    assert {reading["parts"] for reading in readings(run)} == {0, 2}
    assert {scores[name] for name in ("gIoU", "cIoU", "target-mIoU", *PRECISIONS)} == {1}
    assert (scores["N-acc"], scores["T-acc"]) == (100, 100)
    assert [scores[rate] for rate in RATES] == [31 / 45, 14 / 45, 0, 0]


def test_an_error_of_sam3_cannot_be_told_from_an_empty_answer(sam3: Callable[..., Run]) -> None:
    def segment(image: Image.Image, expression: str) -> sam3_stand_in.Instances:
        raise RuntimeError("out of memory")

    run = sam3(segment)
    assert set(replies(run)) == {'{"masks": [], "boxes": [], "scores": []}'}
    # tasks/gres/README.md says so: it counts as a rejection.
    assert reported(run)["N-acc"] == 100
    assert reported(run)["parse_no_target"] == 1


def test_masks_of_sam3_below_a_score_threshold(
    sam3: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = known_masks()

    def segment(image: Image.Image, expression: str) -> sam3_stand_in.Instances:
        everything = np.ones((image.height, image.width), bool)
        target = known[_digest(image), expression]
        return [(everything, 0.6)] + ([] if target is None else [(target, 0.8)])

    monkeypatch.setenv("GROUNDING_PROFILE", "sam3:score_threshold=0.7")
    scores = reported(sam3(segment))
    assert scores["gIoU"] == scores["cIoU"] == 1
    assert scores["N-acc"] == 100


# Mistakes that end a run with one line


def _refusal(refused: pytest.ExceptionInfo[SystemExit]) -> str:
    message = refused.value.code
    assert isinstance(message, str)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    "task", ["gres", "gres_val", "gres_testA", "gres_testB", "refsegrs", "refsegrs_val"]
)
def test_missing_data_end_the_run_with_the_command_that_makes_them(
    task: str, oracle: Start
) -> None:
    with pytest.raises(SystemExit) as refused:
        oracle(tasks=task)
    source = {"gres": "GREFCOCO", "refsegrs": "REFSEGRS"}[task.partition("_")[0]]
    command = f"lmms-eval-grounding prepare {task.partition('_')[0]} --source {source}"
    assert command in _refusal(refused)


@pytest.mark.parametrize("task", ["gres_mini", "refsegrs_mini"])
def test_a_profile_without_masks_ends_the_run_with_the_names_of_those_with(
    task: str, oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "molmo")
    with pytest.raises(SystemExit) as refused:
        oracle(tasks=task)
    message = _refusal(refused)
    assert "GROUNDING_PROFILE" in message
    assert "'molmo'" in message
    assert all(f" {name}" in message for name in profile_names("mask"))


# Options, flags and notices


def test_min_pixels_is_in_every_sample_and_decides_what_is_empty(
    oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    areas = [int(doc.target.sum()) for doc in MINI["gres"] if doc.target is not None]
    least = sorted(areas)[10]
    monkeypatch.setenv("GROUNDING_MIN_PIXELS", str(least))
    run = oracle(tasks="gres_mini")["gres"]
    assert {reading["min_pixels"] for reading in readings(run)} == {least}
    kept = [area >= least for area in areas]
    assert 0 < sum(kept) < len(kept)
    assert reported(run)["T-acc"] == float(share(kept, 100))
    assert reported(run)["target-mIoU"] == float(share(kept))
    assert reported(run)["N-acc"] == 100


def notices(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and "mask_from_box" in record.getMessage()
    ]


def test_filled_boxes_are_announced_once_and_flagged_in_every_sample(
    oracle: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "rle")
    runs = oracle("masks")
    assert notices(caplog) == []
    assert not any("mask_from_box" in r["flags"] for run in runs.values() for r in readings(run))
    monkeypatch.setenv("GROUNDING_PROFILE", "qwen3_vl")
    runs = oracle("boxes", error="truncated", every=2)
    for run in runs.values():
        assert {reading["status"] for reading in readings(run)} >= {"ok", "unparseable"}
        assert all("mask_from_box" in reading["flags"] for reading in readings(run))
    gres_notice, refsegrs_notice = sorted(notices(caplog))
    assert gres_notice.startswith("gres: profile qwen3_vl answers with boxes")
    assert refsegrs_notice.startswith("refsegrs: profile qwen3_vl answers with boxes")


# What a run leaves behind


def test_a_replayed_run_has_the_same_numbers_bit_for_bit(
    oracle: Start, replay: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "polyformer")
    first = oracle(error="shifted", every=3)
    again = replay(tmp_path / "oracle")
    for benchmark, run in first.items():
        assert again[benchmark].scores == run.scores
        assert readings(again[benchmark]) == readings(run)
        assert 0 < reported(run)[MEAN[benchmark]] < 1  # type: ignore[operator]


OTHERS = ('{"masks": []}', '{"masks": [{"size": [1, 1], "counts": "01"}]}', "no idea", "")


@pytest.fixture(scope="module")
def mixed_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Return runs with replies of every status, on samples with and without a target."""
    profile, folder = load_profile("rle"), tmp_path_factory.mktemp("mixed")
    for benchmark, documents in MINI.items():
        given = [
            OTHERS[i % 8 // 2] if i % 2 else TASKS[benchmark].oracle_reply(doc.row, profile)
            for i, doc in enumerate(documents)
        ]
        logged(given, documents, folder / f"0_samples_{benchmark}_mini.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROUNDING_PROFILE", "rle")
        replayed = model("grounding_replay", samples=folder)
        runs = evaluate_tasks(folder / "again", *replayed, tasks=MINI_TASKS)
    return {task.partition("_")[0]: run for task, run in runs.items()}


def test_every_reported_number_can_be_recomputed_from_the_records_in_the_samples_file(
    mixed_runs: dict[str, Run],
) -> None:
    for benchmark, run in mixed_runs.items():
        scores, samples = reported(run), run.samples
        recomputed = {
            name: finite(metric([sample[name] for sample in samples]))
            for name, metric in TASKS[benchmark].METRICS.items()
        }
        assert recomputed == scores
        assert all(0 < scores[rate] < 1 for rate in RATES)  # type: ignore[operator]


def test_every_reported_number_can_be_recomputed_from_targets_and_replies(
    mixed_runs: dict[str, Run],
) -> None:
    for benchmark, run in mixed_runs.items():
        values = []
        for sample in run.samples:
            target = json.loads(sample["target"])
            pixels = pixels_of(target) if target else None
            pred = sample["filtered_resps"]
            if pred in OTHERS:
                values.append(Fraction(int(pixels is None and pred == OTHERS[0])))
            else:
                given = json.loads(pred)["masks"]
                values.append(
                    iou(pixels_of(given[0]), pixels)
                    if given and pixels is not None
                    else Fraction(int(not given and pixels is None))
                )
        mean = float(sum(values) / Fraction(len(values)))
        assert reported(run)[MEAN[benchmark]] == pytest.approx(mean, rel=1e-12)


def test_every_sample_has_the_same_keys_in_the_same_order(mixed_runs: dict[str, Run]) -> None:
    for benchmark, run in mixed_runs.items():
        first, *others = run.samples
        for sample in others:
            assert list(sample) == list(first)
            assert list(sample["grounding"]) == list(first["grounding"])
            assert list(sample[MEAN[benchmark]]) == list(first[MEAN[benchmark]])


@pytest.mark.parametrize("kind", ["with", "without"])
def test_an_undefined_number_is_null_in_strict_json(
    kind: str, oracle: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [doc for doc in MINI["gres"] if (doc.target is None) == (kind == "without")]
    folder = write_documents(documents[:4], tmp_path / "data", "val")
    monkeypatch.setenv("GROUNDING_DATA_GRES", str(folder))
    run = oracle(tasks="gres_val")["gres"]
    scores = reported(run)  # refuses NaN
    undefined = {
        "with": {"N-acc"},
        "without": {"T-acc", "target-mIoU", "cIoU", *PRECISIONS},
    }[kind]
    assert {name for name in scores if scores[name] is None} == undefined
    assert scores["gIoU"] == 1


def test_the_group_reports_its_splits_and_no_mean_of_them(
    oracle: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = MINI["gres"]
    parts = {"val": documents[:3], "testA": documents[6:9], "testB": documents[12:15]}
    for split, part in parts.items():
        write_documents(part, tmp_path / "data", split)
    monkeypatch.setenv("GROUNDING_DATA_GRES", str(tmp_path / "data"))
    runs = evaluate_tasks(tmp_path / "out", *model("grounding_oracle"), tasks="gres")
    assert set(runs) == {"gres_val", "gres_testA", "gres_testB"}
    for task, run in runs.items():
        assert [reading["id"] for reading in readings(run)] == [d.id for d in parts[task[5:]]]
        assert reported(run)["gIoU"] == 1
    group = runs["gres_val"].results["results"]["gres"]
    assert not [value for value in group.values() if isinstance(value, int | float)]


def test_the_validation_split_is_read_for_refsegrs_val(
    oracle: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_documents(MINI["refsegrs"][:3], tmp_path / "data", "val")
    monkeypatch.setenv("GROUNDING_DATA_REFSEGRS", str(folder))
    run = oracle(tasks="refsegrs_val")["refsegrs"]
    assert [reading["id"] for reading in readings(run)] == ["1", "2", "3"]
    assert reported(run)["mIoU"] == 1


def test_neither_order_nor_repetition_of_samples_changes_a_number(
    replay: Start, oracle: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = oracle(error="shifted", every=3)
    for benchmark in TASKS:
        documents = [*MINI[benchmark], *MINI[benchmark][:5], MINI[benchmark][7]]
        random.Random(0).shuffle(documents)
        folder = write_documents(documents, tmp_path / benchmark, SPLITS[benchmark])
        monkeypatch.setenv(f"GROUNDING_DATA_{benchmark.upper()}", str(folder))
        run = replay(first[benchmark].samples_file, benchmark + "_again", IN_FULL[benchmark])[
            benchmark
        ]
        assert [reading["id"] for reading in readings(run)] == [doc.id for doc in documents]
        assert run.scores == first[benchmark].scores
