"""RSVG through the host: the numbers of whole runs of `lmms-eval`, derived by hand."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import rsvg_documents
from host import RATES, Run, evaluate
from rsvg_documents import Document, iou, write_documents

from lmms_eval_grounding.benchmarks.rsvg import oracle_reply, score
from lmms_eval_grounding.metrics.rsvg import cumulative_iou, mean_iou, precision_at
from lmms_eval_grounding.metrics.samples import status_rate
from lmms_eval_grounding.parsing.profile import Profile, load_profile, profile_names
from lmms_eval_grounding.register import tasks_dir

MINI = rsvg_documents.mini_documents()
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
PRECISIONS = [f"Pr@{threshold}" for threshold in THRESHOLDS]
REPORTED = {*PRECISIONS, "meanIoU", "cumIoU", *RATES}

Start = Callable[..., Run]


@pytest.fixture
def oracle(tmp_path: Path) -> Start:
    """Return a function that evaluates the oracle with model arguments in this test's folder."""

    def start(name: str = "oracle", task: str = "rsvg_mini", **model_args: Any) -> Run:
        joined = ",".join(f"{key}={value}" for key, value in model_args.items())
        model = ("--model", "grounding_oracle", "--model_args", joined)
        return evaluate(tmp_path / name, *model, task=task)

    return start


@pytest.fixture
def replay(tmp_path: Path) -> Start:
    """Return a function that replays a samples file or a folder."""

    def start(samples: Path, name: str = "replay", task: str = "rsvg_mini", more: str = "") -> Run:
        model = ("--model", "grounding_replay", "--model_args", f"samples={samples}{more}")
        return evaluate(tmp_path / name, *model, task=task)

    return start


def readings(run: Run) -> list[dict[str, Any]]:
    return [sample["grounding"] for sample in run.samples]


def reported(run: Run) -> dict[str, float | None]:
    """Return the numbers of a run; an undefined one is None."""
    assert set(run.scores) - {"grounding"} == REPORTED
    return {name: value for name, value in run.scores.items() if name in REPORTED}


def only_status(run: Run, status: str) -> bool:
    scores = reported(run)
    return all(scores[rate] == (rate == f"parse_{status}") for rate in RATES)


def precisions(ious: list[Fraction]) -> dict[str, float]:
    """Return Pr@t for t = 0.5 .. 0.9: the percentage of samples at or above it."""
    return {
        f"Pr@{t}": float(
            Fraction(100 * sum(value >= Fraction(str(t)) for value in ious), len(ious))
        )
        for t in THRESHOLDS
    }


# The oracle in the syntax of every profile


def slack(profile: Profile, document: Document) -> tuple[Fraction, Fraction]:
    """Return how far, in pixels along x and y, rounding can move an edge of a written box.

    Half a step for a corner; three quarters where a centre and a size are rounded, since an edge
    is the centre give or take half of the size.
    """
    share = Fraction(3, 4) if profile.box.order.has_size else Fraction(1, 2)
    step = share / 10**profile.box.decimals
    x_axis, y_axis = profile.box.space.axes(document.width, document.height)
    return (
        step * Fraction(x_axis.size) / Fraction(x_axis.extent),
        step * Fraction(y_axis.size) / Fraction(y_axis.extent),
    )


def is_certain_hit(profile: Profile, document: Document) -> bool:
    """Return whether no rounding can bring the IoU below 1/2.

    The IoU is smallest when all four edges move inwards (or it is larger than that anyway):
    (1 - 2 dx / w) (1 - 2 dy / h).
    """
    x1, y1, x2, y2 = map(Fraction, document.bbox)
    dx, dy = slack(profile, document)
    kept = [max(1 - 2 * d / extent, Fraction(0)) for d, extent in ((dx, x2 - x1), (dy, y2 - y1))]
    return kept[0] * kept[1] >= Fraction(1, 2)


COARSE = {
    # Their steps are up to 40 px wide, which some objects of the mini set are not.
    "earthdial", "geochat", "kosmos2", "lhrs_bot", "llava", "llava_padded", "minigpt_v2",
    "polyformer",
}  # fmt: skip


@pytest.mark.parametrize("name", profile_names("box"))
def test_the_oracle_is_read_back_with_every_profile(
    name: str, oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", name)
    run = oracle()
    found = readings(run)
    assert {reading["profile"] for reading in found} == {name}
    assert [reading["expression"] for reading in found] == [doc.expression for doc in MINI]
    assert [tuple(reading["target"]) for reading in found] == [doc.bbox for doc in MINI]
    if name == "molmo":  # points are no boxes
        assert only_status(run, "malformed")
        assert reported(run)["Pr@0.5"] == 0
        return
    assert only_status(run, "ok")
    ious = [iou(reading["pred"], doc.bbox) for reading, doc in zip(found, MINI, strict=True)]
    assert reported(run)["Pr@0.5"] == precisions(ious)["Pr@0.5"]
    certain = [is_certain_hit(load_profile(name), document) for document in MINI]
    assert all(value >= Fraction(1, 2) for value, sure in zip(ious, certain, strict=True) if sure)
    assert all(certain) == (name not in COARSE), f"put {name} into COARSE, or take it out"
    if all(certain):
        assert reported(run)["Pr@0.5"] == 100
    assert sum(certain) >= len(MINI) / 2


# What the oracle does wrong, and what that costs


@pytest.mark.parametrize(
    ("error", "reason"),
    [("empty", "empty_response"), ("prose", "no_box"), ("failed-request", "request_failed")],
)
def test_a_reply_without_an_answer_is_unparseable_and_scores_0(
    error: str, reason: str, oracle: Start
) -> None:
    run = oracle(error=error)
    assert only_status(run, "unparseable")
    assert {reported(run)[name] for name in (*PRECISIONS, "meanIoU", "cumIoU")} == {0}
    assert {reading["reason"] for reading in readings(run)} == {reason}
    if error == "failed-request":
        assert all('"bbox_2d": [' in sample["filtered_resps"] for sample in run.samples)


def test_a_truncated_reply_is_never_ok(oracle: Start) -> None:
    scores = reported(oracle(error="truncated"))
    assert scores["parse_ok"] == scores["parse_no_target"] == 0
    assert {scores[name] for name in (*PRECISIONS, "meanIoU", "cumIoU")} == {0}


@pytest.mark.parametrize("name", profile_names("box"))
def test_a_reply_cut_within_its_box_is_not_ok_with_any_profile(name: str) -> None:
    profile = load_profile(name)
    for document in MINI:
        doc = vars(document)
        reply = oracle_reply(doc, profile, "truncated")
        assert reply
        assert score(doc, reply, profile)[0]["status"] in ("malformed", "unparseable"), reply


def test_pixels_read_as_thousandths_cost_what_the_scale_says(oracle: Start) -> None:
    run = oracle(error="wrong-space")
    wrong: list[tuple[Fraction, ...]] = []
    for doc in MINI:  # x pixels are read as x / 1000 of the width
        x, y = Fraction(doc.width, 1000), Fraction(doc.height, 1000)
        x1, y1, x2, y2 = map(Fraction, doc.bbox)
        wrong.append((x1 * x, y1 * y, x2 * x, y2 * y))
    ious = [iou(pred, doc.bbox) for pred, doc in zip(wrong, MINI, strict=True)]  # type: ignore[arg-type]
    scores = reported(run)
    assert only_status(run, "ok")
    assert {name: scores[name] for name in PRECISIONS} == precisions(ious)
    assert scores["Pr@0.5"] == 0  # the scenes are far from 1000 x 1000, their objects small
    assert scores["meanIoU"] == pytest.approx(float(sum(ious) / len(ious)), rel=1e-12)
    assert sum(ious) > 0


def test_the_oracle_in_another_profile_shows_the_same_cost(oracle: Start) -> None:
    in_pixels, wrong_space = oracle("a", profile="pixel"), oracle("b", error="wrong-space")
    assert reported(in_pixels) == reported(wrong_space)


def test_thousandths_read_as_pixels_cost_what_the_scale_says(
    oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "pixel")
    scores = reported(oracle(error="wrong-space"))
    ious, misplaced = [], 0
    for doc in MINI:
        sides = (doc.width, doc.height) * 2
        numbers = [
            round(Fraction(1000 * n) / side) for n, side in zip(doc.bbox, sides, strict=True)
        ]
        # A number more than a twentieth of the side beyond the image is in no space of pixels.
        if any(20 * n > 21 * side for n, side in zip(numbers, sides, strict=True)):
            misplaced += 1
            ious.append(Fraction(0))
        else:
            x1, y1, x2, y2 = (min(n, side) for n, side in zip(numbers, sides, strict=True))
            ious.append(iou((x1, y1, x2, y2), doc.bbox))
    assert scores["parse_malformed"] == misplaced / len(MINI)
    assert 0 < misplaced < len(MINI)
    assert {name: scores[name] for name in PRECISIONS} == precisions(ious)


def shifted_bounds(document: Document, slack: Fraction, along: int) -> tuple[Fraction, Fraction]:
    """Return the least and greatest IoU of a target with itself moved by half an extent.

    Each written edge may be off by ``slack``; ``along`` is the axis moved along.
    """
    x1, y1, x2, y2 = map(Fraction, document.bbox)
    extents = (x2 - x1, y2 - y1)
    moved, other = extents[along], extents[1 - along]
    area = moved * other
    least = max(moved / 2 - slack, Fraction(0)) * max(other - 2 * slack, Fraction(0))
    most = (moved / 2 + slack) * other
    smallest = max(moved - 2 * slack, Fraction(0)) * max(other - 2 * slack, Fraction(0))
    greatest = (moved + 2 * slack) * (other + 2 * slack)
    return least / (area + greatest - least), most / (area + max(smallest, most) - most)


def test_a_box_shifted_by_half_has_iou_one_third(
    oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "pixel")
    run = oracle(error="shifted")
    scores = reported(run)
    assert only_status(run, "ok")
    exact = 0
    for reading, doc in zip(readings(run), MINI, strict=True):
        value = iou(reading["pred"], doc.bbox)
        left, _, right, _ = doc.bbox
        half = (right - left) / 2
        along = 0 if right + half <= doc.width or left - half >= 0 else 1
        least, most = shifted_bounds(doc, Fraction(1, 2), along)
        assert least <= value <= most, doc
        if (doc.bbox[2 + along] - doc.bbox[along]) % 2 == 0:  # then no edge is rounded
            assert value == Fraction(1, 3)
            exact += 1
    assert exact >= 10
    assert scores["meanIoU"] == pytest.approx(1 / 3, abs=0.01)
    assert scores["Pr@0.6"] == 0


def test_every_third_reply_wrong(oracle: Start) -> None:
    run = oracle(error="empty", every=3)
    scores = reported(run)
    wrong = [i for i, reading in enumerate(readings(run)) if reading["status"] != "ok"]
    assert wrong == list(range(0, 32, 3))
    # Documents 0, 3, .. 30 are 11 of 32; the other 21 are hits.
    assert scores["Pr@0.5"] == 65.625
    assert scores["parse_ok"] == 21 / 32
    assert scores["parse_unparseable"] == 11 / 32


# Mistakes that end a run with one line


def _own_task(folder: Path, profile: str) -> Path:
    folder.mkdir()
    (folder / "mine.yaml").write_text(
        f"include: {tasks_dir()}/rsvg/rsvg_mini.yaml\ntask: mine\n"
        f"lmms_eval_specific_kwargs: {{default: {{profile: {profile}}}}}\n",
        "utf-8",
    )
    return folder


def _refusal(refused: pytest.ExceptionInfo[SystemExit]) -> str:
    message = refused.value.code
    assert isinstance(message, str)
    assert "\n" not in message
    return message


def test_an_unknown_profile_in_the_environment_ends_the_run_with_the_names(
    oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "qwen9")
    with pytest.raises(SystemExit) as refused:
        oracle()
    message = _refusal(refused)
    assert "GROUNDING_PROFILE" in message
    assert "'qwen9'" in message
    assert "qwen3_vl" in message


def test_an_unknown_profile_in_a_task_ends_the_run_with_the_names(tmp_path: Path) -> None:
    folder = _own_task(tmp_path / "tasks", "qwen9")
    run = ("--model", "grounding_oracle", "--include_path", str(folder))
    with pytest.raises(SystemExit) as refused:
        evaluate(tmp_path / "out", *run, task="mine")
    message = _refusal(refused)
    assert "lmms_eval_specific_kwargs" in message
    assert "'qwen9'" in message
    assert "qwen3_vl" in message


def test_a_profile_in_a_task_of_the_user_is_the_runs(tmp_path: Path) -> None:
    folder = _own_task(tmp_path / "tasks", "percent")
    run = ("--model", "dummy", "--include_path", str(folder))
    found = evaluate(tmp_path / "out", *run, task="mine")
    assert {reading["profile"] for reading in readings(found)} == {"percent"}


@pytest.mark.parametrize(
    ("model_args", "names"),
    [
        ({"profile": "qwen9"}, "qwen3_vl"),
        ({"profile": "lisa"}, "'lisa'"),
        ({"error": "typo"}, "wrong-space"),
        ({"error": "empty", "every": 0}, "every=0"),
        ({"error": "empty", "every": "often"}, "every=often"),
        ({"eror": "empty"}, "eror"),
    ],
)
def test_a_wrong_argument_of_the_oracle_ends_the_run(
    model_args: dict[str, Any], names: str, oracle: Start
) -> None:
    with pytest.raises(SystemExit) as refused:
        oracle(**model_args)
    assert names in _refusal(refused)


@pytest.mark.parametrize("task", ["rsvg", "rsvg_val", "rsvg_strict"])
def test_missing_data_end_the_run_with_the_command_that_makes_them(
    task: str, oracle: Start
) -> None:
    with pytest.raises(SystemExit) as refused:
        oracle(task=task)
    assert "lmms-eval-grounding prepare rsvg --source DIOR_RSVG" in _refusal(refused)


# Replay


@pytest.mark.parametrize("form", ["folder", "file"])
def test_a_replayed_run_has_the_same_numbers_bit_for_bit(
    form: str, oracle: Start, replay: Start, tmp_path: Path
) -> None:
    first = oracle(error="shifted", every=3)
    again = replay(tmp_path / "oracle" if form == "folder" else first.samples_file)
    assert again.scores == first.scores
    assert readings(again) == readings(first)


def test_replies_of_another_profile_are_read_with_it_or_not_at_all(
    oracle: Start, replay: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "gemini")
    first = oracle()
    again = replay(first.samples_file)
    assert again.scores == first.scores
    monkeypatch.delenv("GROUNDING_PROFILE")
    with pytest.raises(SystemExit) as refused:
        replay(first.samples_file, "unasked")
    assert "were read with profile gemini" in _refusal(refused)
    assert "set GROUNDING_PROFILE" in _refusal(refused)


def test_the_newest_samples_of_the_task_below_a_folder_are_replayed(
    oracle: Start, replay: Start, tmp_path: Path
) -> None:
    run = oracle(error="empty")
    later = run.samples_file.with_name("99991231_000000_samples_rsvg_mini.jsonl")
    later.write_text(run.samples_file.read_text("utf-8").replace('": ""', '": "none"'), "utf-8")
    (later.with_name("99991231_000001_samples_rsvg.jsonl")).write_text("no samples of the task\n")
    assert {s["filtered_resps"] for s in replay(tmp_path / "oracle").samples} == {"none"}
    with pytest.raises(SystemExit) as refused:
        replay(tmp_path / "no_tasks", "other")
    assert "no_tasks" in _refusal(refused)


def logged(replies: list[Any], file: Path, key: str = "id") -> Path:
    """Write a samples file with one reply to each document of the mini set."""
    lines = [
        {
            "doc_id": i,
            "filtered_resps": reply,
            **({"grounding": {"id": str(i), "reason": None}} if key == "id" else {}),
        }
        for i, reply in enumerate(replies)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file


def _parts(document: Document, whole: int) -> tuple[int, int, int, int]:
    """Return a document's target in whole parts of the width and the height."""
    x1, y1, x2, y2 = document.bbox
    w, h = document.width, document.height
    return (
        round(x1 * whole / w),
        round(y1 * whole / h),
        round(x2 * whole / w),
        round(y2 * whole / h),
    )


def qwen3_vl(document: Document) -> str:
    box = {"bbox_2d": _parts(document, 1000), "label": document.expression}
    return f"```json\n{json.dumps([box], indent=4)}\n```"


def internvl(document: Document) -> str:
    return f"<ref>{document.expression}</ref><box>[{list(_parts(document, 1000))}]</box>"


def paligemma(document: Document) -> str:
    x1, y1, x2, y2 = _parts(document, 1023)
    tokens = "".join(f"<loc{n:04d}>" for n in (y1, x1, y2, x2))
    return f"{tokens} {document.expression}"


def reasoning(document: Document) -> str:
    draft = '<think>Perhaps {"bbox_2d": [0, 0, 1000, 1000]}?</think>\n'
    return f'{draft}{{"bbox_2d": {list(_parts(document, 1000))}}}'


WRITERS: dict[str, tuple[Callable[[Document], str], int]] = {
    "qwen3_vl": (qwen3_vl, 1000),
    "internvl": (internvl, 1000),
    "paligemma": (paligemma, 1023),
    "prompt": (reasoning, 1000),
}


@pytest.mark.parametrize("profile", WRITERS)
@pytest.mark.parametrize("key", ["id", "position"])
def test_replies_as_real_models_write_them_are_replayed(
    profile: str, key: str, replay: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", profile)
    write, whole = WRITERS[profile]
    replies = [write(document) for document in MINI]
    run = replay(logged(replies, tmp_path / "samples.jsonl", key))
    assert [sample["filtered_resps"] for sample in run.samples] == replies
    assert only_status(run, "ok")
    assert reported(run)["Pr@0.5"] == 100
    for reading, doc in zip(readings(run), MINI, strict=True):
        sides = (doc.width, doc.height) * 2
        for given, target, side in zip(reading["pred"], doc.bbox, sides, strict=True):
            assert abs(given - target) <= side / whole / 2 + 1e-9


def test_a_missing_reply_is_named_or_counts_as_empty(replay: Start, tmp_path: Path) -> None:
    samples = logged([qwen3_vl(doc) for doc in MINI[:20]], tmp_path / "samples.jsonl")
    with pytest.raises(SystemExit) as refused:
        replay(samples)
    assert "no reply to sample 20 of rsvg_mini" in _refusal(refused)
    assert "missing=empty" in _refusal(refused)
    scores = reported(replay(samples, "with_empty", more=",missing=empty"))
    assert scores["parse_unparseable"] == 12 / 32
    assert scores["Pr@0.5"] == 62.5  # 20 of 32


def test_a_reply_that_was_logged_as_null_was_empty(replay: Start, tmp_path: Path) -> None:
    run = replay(logged([None, [None], [["x"]], *[""] * 29], tmp_path / "samples.jsonl"))
    assert [s["filtered_resps"] for s in run.samples] == ["", "", "x", *[""] * 29]
    assert only_status(run, "unparseable")


@pytest.mark.parametrize(
    "broken",
    [
        b'{"doc_id": 6, "filtered_resps": "cu',
        b"",
        b"6",
        b"[]",
        b'{"doc_id": 6}',
        b'{"filtered_resps": "x"}',
        b'{"doc_id": 6, "filtered_resps": []}',
        b'{"doc_id": 6, "filtered_resps": {"a": 1}}',
        b'{"doc_id": 6, "filtered_resps": "\xff"}',
    ],
)
def test_a_broken_line_is_named_with_its_file_and_number(
    broken: bytes, replay: Start, tmp_path: Path
) -> None:
    samples = logged(["x"] * len(MINI), tmp_path / "samples.jsonl")
    lines = samples.read_bytes().splitlines()
    lines[6] = broken
    samples.write_bytes(b"\n".join(lines))
    with pytest.raises(SystemExit) as refused:
        replay(samples)
    assert f"{samples}, line 7" in _refusal(refused)


@pytest.mark.parametrize("model_args", ["", "samples=nowhere.jsonl", "samples=.,missing=maybe"])
def test_a_wrong_argument_of_the_replay_ends_the_run(model_args: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as refused:
        evaluate(tmp_path / "out", "--model", "grounding_replay", "--model_args", model_args)
    assert _refusal(refused)


# What a run leaves behind


def mixed(replies: list[str]) -> list[str]:
    """Return replies of every status: every fourth correct, no target, malformed, unparseable."""
    others = ("", '{"bbox_2d": null}', '{"bbox_2d": [1, 2, 3]}', "no idea")
    return [reply if i % 4 == 0 else others[i % 4] for i, reply in enumerate(replies)]


@pytest.fixture
def mixed_run(replay: Start, tmp_path: Path) -> Run:
    replies = mixed([f'{{"bbox_2d": {list(_parts(doc, 1000))}}}' for doc in MINI])
    return replay(logged(replies, tmp_path / "samples.jsonl"), "mixed")


def test_every_reported_number_can_be_recomputed_from_the_samples_file(mixed_run: Run) -> None:
    scores = reported(mixed_run)
    samples = mixed_run.samples

    def items(name: str) -> list[dict[str, Any]]:
        return [sample[name] for sample in samples]

    recomputed = {
        **{f"Pr@{t}": precision_at(items(f"Pr@{t}"), threshold=t) for t in THRESHOLDS},
        "meanIoU": mean_iou(items("meanIoU")),
        "cumIoU": cumulative_iou(items("cumIoU")),
        **{rate: status_rate(items(rate), rate.removeprefix("parse_")) for rate in RATES},
    }
    assert recomputed == scores
    assert [scores[rate] for rate in RATES] == [0.25] * 4
    assert scores["Pr@0.5"] == 25


def test_every_sample_has_the_same_keys_in_the_same_order(mixed_run: Run) -> None:
    first, *others = mixed_run.samples
    for sample in others:
        assert list(sample) == list(first)
        assert list(sample["grounding"]) == list(first["grounding"])
        assert list(sample["cumIoU"]) == list(first["cumIoU"])


def test_an_undefined_number_is_null_in_strict_json(
    oracle: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = Document("0", "a target without area", (5, 5, 5, 5), 40, 40)
    monkeypatch.setenv("GROUNDING_DATA_RSVG", str(write_documents([point], tmp_path / "data")))
    run = oracle(task="rsvg", error="empty")
    scores = reported(run)  # refuses NaN
    assert scores["cumIoU"] is None
    assert scores["meanIoU"] == scores["Pr@0.5"] == 0
    assert len(run.samples) == 1


def test_neither_order_nor_repetition_of_samples_changes_a_number(
    replay: Start, oracle: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = oracle(error="shifted", every=3)
    documents = [*MINI, *MINI[:5], MINI[7], MINI[7]]
    random.Random(0).shuffle(documents)
    monkeypatch.setenv("GROUNDING_DATA_RSVG", str(write_documents(documents, tmp_path / "data")))
    again = replay(first.samples_file, task="rsvg")
    assert [reading["id"] for reading in readings(again)] == [doc.id for doc in documents]
    assert again.scores == first.scores


def test_the_strict_task_misses_an_iou_of_exactly_the_threshold(
    replay: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = Document("0", "the left half", (0, 0, 500, 1000), 1000, 1000)
    whole = Document("1", "everything", (0, 0, 1000, 1000), 1000, 1000)
    folder = write_documents([document, whole], tmp_path / "data")
    monkeypatch.setenv("GROUNDING_DATA_RSVG", str(folder))
    samples = logged(['{"bbox_2d": [0, 0, 1000, 1000]}'] * 2, tmp_path / "samples.jsonl")
    # IoU 1/2 and 1: at 0.5 both count, above 0.5 one
    assert replay(samples, "a", task="rsvg").scores["Pr@0.5"] == 100
    strict = replay(samples, "b", task="rsvg_strict").scores
    assert strict["Pr>0.5"] == strict["Pr>0.9"] == 50
    assert strict["meanIoU"] == 0.75


def test_the_validation_split_is_read_for_rsvg_val(
    oracle: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_documents(MINI[:3], tmp_path / "data", split="val")
    monkeypatch.setenv("GROUNDING_DATA_RSVG", str(folder))
    run = oracle(task="rsvg_val")
    assert [reading["id"] for reading in readings(run)] == ["0", "1", "2"]
    assert reported(run)["Pr@0.5"] == 100


def test_images_reach_the_model_as_rgb_of_their_own_size(tmp_path: Path) -> None:
    import pyarrow.parquet
    from PIL import Image

    from lmms_eval_grounding.benchmarks.rsvg import doc_to_visual

    wide = replace(MINI[0], width=30, height=20)
    folder = write_documents([wide], tmp_path / "data")
    (row,) = pyarrow.parquet.read_table(folder / "data" / "test-00000.parquet").to_pylist()
    (image,) = doc_to_visual(row)  # as a dict of bytes
    assert (image.mode, image.size) == ("RGB", (30, 20))
    (image,) = doc_to_visual({"image": Image.new("L", (7, 9))})
    assert (image.mode, image.size) == ("RGB", (7, 9))
