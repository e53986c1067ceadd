"""MMScan through the host: the numbers of whole runs of `lmms-eval`, derived by hand."""

import importlib
import json
import math
import pickle
import random
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY
from host import RATES, Run, evaluate
from mmscan_documents import GROUP_OF, mini_documents, write_documents

from lmms_eval_grounding.metrics import mmscan as metrics
from lmms_eval_grounding.parsing.profile import profile_names

RANKS = (1, 3, 5, 10)
THRESHOLDS = (0.25, 0.5)
TOPS = tuple(f"gTop-{k}" for k in RANKS)
BY_SAMPLE = (*TOPS, "AP_sample", "AR")
POOLED = ("AP_box", "AR_box")
AT = (*BY_SAMPLE, *POOLED)
NUMBERS = [f"{name}@{threshold}" for threshold in THRESHOLDS for name in AT]
REPORTED = {*NUMBERS, "skipped", *RATES}
TASKS = ("mmscan_mini", "mmscan_candidates_mini")

Start = Callable[..., Run]
Doc = dict[str, Any]


@pytest.fixture(scope="module")
def documents() -> tuple[Doc, ...]:
    return mini_documents()


@pytest.fixture
def oracle(tmp_path: Path) -> Start:
    """Return a function that evaluates the oracle with model arguments in this test's folder."""

    def start(task: str = "mmscan_mini", name: str = "oracle", **model_args: Any) -> Run:
        joined = ",".join(f"{key}={value}" for key, value in model_args.items())
        model = ("--model", "grounding_oracle", "--model_args", joined)
        return evaluate(tmp_path / name, *model, task=task)

    return start


@pytest.fixture
def replay(tmp_path: Path) -> Start:
    """Return a function that replays a samples file."""

    def start(samples: Path, task: str = "mmscan_mini", name: str = "replay") -> Run:
        model = ("--model", "grounding_replay", "--model_args", f"samples={samples}")
        return evaluate(tmp_path / name, *model, task=task)

    return start


def readings(run: Run) -> list[Doc]:
    return [sample["grounding"] for sample in run.samples]


def reported(run: Run) -> dict[str, float | None]:
    """Return the numbers of a run; an undefined one is None."""
    assert set(run.scores) - {"grounding"} == REPORTED
    return {name: value for name, value in run.scores.items() if name in REPORTED}


def only_status(run: Run, status: str) -> bool:
    scores = reported(run)
    return all(scores[rate] == (rate == f"parse_{status}") for rate in RATES)


def numbers_are(run: Run, expected: Mapping[str, Fraction | int], at: float | None = None) -> None:
    """Assert the numbers at a threshold, or at both, by their names without it."""
    scores = reported(run)
    for threshold in THRESHOLDS if at is None else (at,):
        for name in AT:
            got = scores[f"{name}@{threshold}"]
            assert got == pytest.approx(float(expected[name]), abs=1e-12), (name, threshold)


def all_are(value: Fraction | int) -> dict[str, Fraction | int]:
    return dict.fromkeys(AT, value)


def found_first(documents: tuple[Doc, ...], found: list[int]) -> dict[str, Fraction]:
    """Return every number where the answer to a document is its first ``found`` targets, in order.

    Then the i-th prediction hits the i-th target: gTop-k, AP and AR of a sample are the share of
    its targets that are given. A pool holds hits only, so that its AP is its recall.
    """
    shares = [Fraction(n, len(doc["targets"])) for n, doc in zip(found, documents, strict=True)]
    pooled = Fraction(0)
    for group in set(GROUP_OF.values()):
        members = [i for i, doc in enumerate(documents) if GROUP_OF[doc["sub_class"]] == group]
        hits = sum(found[i] for i in members)
        pooled += Fraction(len(members) * hits, sum(len(documents[i]["targets"]) for i in members))
    return {
        **dict.fromkeys(BY_SAMPLE, sum(shares) / len(shares)),
        **dict.fromkeys(POOLED, pooled / len(documents)),
    }


# The oracle in the syntax of every profile


def test_the_mini_set_is_what_these_numbers_are_derived_from(documents: tuple[Doc, ...]) -> None:
    assert len(documents) == 21
    assert {doc["sub_class"] for doc in documents} == set(GROUP_OF)
    assert {len(doc["targets"]) for doc in documents} == {1, 2, 3, 4}


def _declared(name: str) -> dict[str, Any]:
    text = files("lmms_eval_grounding.parsing").joinpath("profiles.json").read_text("utf-8")
    section: dict[str, Any] = json.loads(text)[name]["box3d"]
    return section


def least_iou(box: list[float], name: str) -> float:
    """Return an IoU that no rounding of a profile's numbers can bring a box below.

    A centre is off by half a step along each axis at most, and angles turn the box by at most the
    sum of their errors, t. Along its own axis i that moves a point of it by up to t times the
    point's distance from that axis, and by t^2 / 2 of its distance from the centre in second order.
    What lies deeper in the target than that and half a size's error is in the prediction too.
    """
    section = _declared(name)
    step = 10.0 ** -section.get("decimals", 0)
    per_unit = {"half_turn": math.pi, "degree": math.pi / 180, "radian": 1.0}[section["angle"]]
    turned = 3 * 10.0 ** -section["angle_decimals"] / 2 * per_unit
    sizes = np.array(box[3:6])
    from_axis = np.sqrt((sizes**2).sum() - sizes**2) / 2
    from_centre = np.linalg.norm(sizes) / 2
    moved = math.sqrt(3) * step / 2 + turned * from_axis + turned**2 / 2 * from_centre
    kept = np.prod(np.maximum(sizes - 2 * moved - step / 2, 0))
    return float(kept / (np.prod(sizes) + np.prod(sizes + step / 2) - kept))


FULL_TURN = [
    name
    for name in profile_names("box3d")
    if set("abc") <= set(_declared(name)["slots"]) and "decimals" in _declared(name)
]
# How many of the 21 samples have only targets that are thick enough for the profile's decimals.
CERTAIN = {
    "prompt": 21,
    "gemini": 15,
    "qwen3_vl": 9,
    "seed1_5_vl": 9,
    "vg_llm": 14,
    "vg_llm_2025_06": 14,
}


@pytest.mark.parametrize("name", FULL_TURN)
def test_the_oracle_is_read_back_with_every_profile_of_turned_boxes(
    name: str, oracle: Start, documents: tuple[Doc, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", name)
    run = oracle()
    assert only_status(run, "ok")
    assert {reading["profile"] for reading in readings(run)} == {name}
    certain = 0
    for sample, doc in zip(run.samples, documents, strict=True):
        record = sample["AP_box@0.5"]
        assert len(record["best_ious"]) == len(doc["targets"])
        bounds = [least_iou(box, name) for box in doc["targets"]]
        assert sorted(record["best_targets"]) == list(range(len(bounds)))
        for target, iou in zip(record["best_targets"], record["best_ious"], strict=True):
            assert iou >= bounds[target] - 1e-9, doc["id"]
        if min(bounds) >= 0.5:
            certain += 1
            assert {sample[f"{metric}@0.5"]["value"] for metric in BY_SAMPLE} == {1.0}
    assert certain == CERTAIN[name]
    if certain == len(documents):
        numbers_are(run, all_are(1))


# What cannot be written: n3d_vlm turns about the axis of one tilted camera and places what is in
# its view, spatiallm about the scene's z, ll3da not at all.
def is_writable(box: list[float], name: str) -> bool:
    if name == "ll3da":
        return box[6:] == [0, 0, 0]
    return name == "spatiallm" and box[7:] == [0, 0]


@pytest.mark.parametrize("name", sorted(set(profile_names("box3d")) - set(FULL_TURN)))
def test_profiles_that_turn_boxes_less_hit_what_they_can_write(
    name: str, oracle: Start, documents: tuple[Doc, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", name)
    monkeypatch.setenv("GROUNDING_MMSCAN_FRAMES", "1")
    run = oracle()
    assert only_status(run, "ok")
    hits = 0
    for sample, doc in zip(run.samples, documents, strict=True):
        record = sample["AP_box@0.5"]
        best = dict(zip(record["best_targets"], record["best_ious"], strict=True))
        for place, box in enumerate(doc["targets"]):
            if is_writable(box, name):
                assert best[place] >= 0.5, (doc["id"], box)
                hits += 1
    assert hits == {"spatiallm": 27, "ll3da": 6, "n3d_vlm": 0}[name]


@pytest.mark.parametrize("name", profile_names("candidates"))
def test_the_oracle_names_candidates_in_every_profile(
    name: str, oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", name)
    run = oracle("mmscan_candidates_mini")
    assert only_status(run, "ok")
    assert {reading["profile"] for reading in readings(run)} == {name}
    assert {reported(run)[number] for number in NUMBERS} == {1}
    assert reported(run)["skipped"] == 0


# What the oracle does wrong, and what that costs


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("error", "reason"),
    [("empty", "empty_response"), ("prose", "no_box"), ("failed-request", "request_failed")],
)
def test_a_reply_without_an_answer_is_unparseable_and_scores_0(
    task: str, error: str, reason: str, oracle: Start
) -> None:
    run = oracle(task, error=error)
    assert only_status(run, "unparseable")
    numbers_are(run, all_are(0))
    assert {reading["reason"] for reading in readings(run)} == {reason}
    if error == "failed-request":
        answer = '"bbox_3d": [' if task == "mmscan_mini" else '"id": '
        assert all(answer in sample["filtered_resps"] for sample in run.samples)


def whole_in_half(items: list[str], between: str) -> int:
    """Return how many items of a list in brackets end within the first half of its text."""
    half = (sum(map(len, items)) + len(between) * (len(items) - 1) + 2) // 2
    ends, end = [], 1
    for item in items:
        ends.append(end + len(item))
        end += len(item) + len(between)
    return sum(end <= half for end in ends)


def test_a_truncated_list_of_boxes_counts_as_far_as_it_goes(
    oracle: Start, documents: tuple[Doc, ...]
) -> None:
    run = oracle(error="truncated")
    found = []
    for doc in documents:
        texts = [", ".join(f"{round(v, 3) + 0.0:.3f}" for v in box) for box in doc["targets"]]
        found.append(whole_in_half([f'{{"bbox_3d": [{text}]}}' for text in texts], ",\n "))
    assert set(found) == {0, 1, 2}
    numbers_are(run, found_first(documents, found))
    assert reported(run)["parse_ok"] == sum(map(bool, found)) / 21
    assert reported(run)["parse_unparseable"] == 1 - sum(map(bool, found)) / 21
    assert all("truncated" in reading["flags"] for reading in readings(run))


def test_a_truncated_list_of_ids_counts_as_far_as_it_goes(
    oracle: Start, documents: tuple[Doc, ...]
) -> None:
    run = oracle("mmscan_candidates_mini", error="truncated")
    found = [
        whole_in_half([f'{{"id": {target}}}' for target in doc["target_id"]], ", ")
        for doc in documents
    ]
    assert set(found) == {0, 1, 2}
    numbers_are(run, found_first(documents, found))
    assert reported(run)["parse_ok"] == sum(map(bool, found)) / 21


def test_centimetres_for_metres_hit_nothing(oracle: Start, documents: tuple[Doc, ...]) -> None:
    run = oracle(error="wrong-space")
    assert only_status(run, "ok")
    numbers_are(run, all_are(0))
    for doc in documents:  # no box of these reaches a target
        for box in doc["targets"]:
            given = 100 * np.array(box[:3])
            assert all(
                math.dist(given, t[:3]) > math.dist((0, 0, 0), t[3:6]) for t in doc["targets"]
            )


def test_a_box_shifted_by_half_has_iou_one_third(oracle: Start, documents: tuple[Doc, ...]) -> None:
    run = oracle(error="shifted")
    assert only_status(run, "ok")
    numbers_are(run, all_are(1), at=0.25)
    numbers_are(run, all_are(0), at=0.5)
    for sample, doc in zip(run.samples, documents, strict=True):
        record = sample["AP_box@0.25"]
        assert record["best_targets"] == list(range(len(doc["targets"])))
        for iou, box in zip(record["best_ious"], doc["targets"], strict=True):
            # Half a thousandth of a metre and of a radian along each axis, at a box's thinnest.
            slack = 3 * (0.001 + 0.0015 * max(box[3:6])) / min(box[3:6])
            assert iou == pytest.approx(1 / 3, abs=slack), doc["id"]


@pytest.mark.parametrize("error", ["shifted", "wrong-space"])
def test_the_farthest_object_is_none_of_the_targets(error: str, oracle: Start) -> None:
    run = oracle("mmscan_candidates_mini", error=error)
    assert only_status(run, "ok")
    numbers_are(run, all_are(0))


@pytest.mark.parametrize("task", TASKS)
def test_every_third_reply_wrong(task: str, oracle: Start) -> None:
    run = oracle(task, error="empty", every=3)
    assert [r["status"] != "ok" for r in readings(run)] == [i % 3 == 0 for i in range(21)]
    # Documents 0, 3, .. 18 are 7 of 21. The other 14 are perfect.
    by_sample = Fraction(14, 21)
    # Targets given, of all: ST-attr 13 of 18 (documents 0, 9 and 15 had 5), ST-space 2 of 3,
    # OO-attr 3 of 4, OO-space 2 of 3, OR 4 of 5; weighted by 9, 3, 3, 3 and 3 samples.
    pooled = (
        9 * Fraction(13, 18)
        + 3 * (Fraction(2, 3) + Fraction(3, 4) + Fraction(2, 3) + Fraction(4, 5))
    ) / 21
    numbers_are(run, {**dict.fromkeys(BY_SAMPLE, by_sample), **dict.fromkeys(POOLED, pooled)})
    assert reported(run)["parse_ok"] == 14 / 21
    assert reported(run)["parse_unparseable"] == 7 / 21


# The groups


def test_groups_are_told_in_the_log_and_named_in_every_sample(
    oracle: Start, documents: tuple[Doc, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    run = oracle(error="empty", every=3)
    assert [reading["group"] for reading in readings(run)] == [
        GROUP_OF[doc["sub_class"]] for doc in documents
    ]
    out = capsys.readouterr().out
    table = out[out.index("mmscan by group of sub-classes") :].split("\n\n")[0].splitlines()[1:]
    head, *rows = (line.split() for line in table)
    assert head == ["OO-attr", "OO-space", "OR", "ST-attr", "ST-space", "all"]
    told = {name: dict(zip(head, values, strict=True)) for name, *values in rows}
    assert set(told) == {"samples", *REPORTED}
    assert told["samples"] == dict(zip(head, ["3", "3", "3", "9", "3", "21"], strict=True))
    for group in head[:-1]:
        members = [i for i, doc in enumerate(documents) if GROUP_OF[doc["sub_class"]] == group]
        right = [i for i in members if i % 3]
        samples = len(right) / len(members)
        targets = sum(len(documents[i]["targets"]) for i in right) / sum(
            len(documents[i]["targets"]) for i in members
        )
        for threshold in THRESHOLDS:
            assert {told[f"{name}@{threshold}"][group] for name in BY_SAMPLE} == {f"{samples:.4f}"}
            assert {told[f"{name}@{threshold}"][group] for name in POOLED} == {f"{targets:.4f}"}
    for name in REPORTED:
        assert told[name]["all"] == f"{reported(run)[name]:.4f}"


# Mistakes that end a run with one line


def _refusal(refused: pytest.ExceptionInfo[SystemExit]) -> str:
    message = refused.value.code
    assert isinstance(message, str)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("task", ["mmscan", "mmscan_candidates"])
def test_missing_data_end_the_run_with_the_command_that_makes_them(
    task: str, oracle: Start
) -> None:
    with pytest.raises(SystemExit) as refused:
        oracle(task)
    assert "lmms-eval-grounding prepare mmscan --source mmscan_data" in _refusal(refused)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("frames", ["0", "-1", "eight", "2.5", "1e3", "٣", "9" * 5000])
def test_a_number_of_frames_that_is_none_is_refused_at_once(
    task: str, frames: str, monkeypatch: pytest.MonkeyPatch, documents: tuple[Doc, ...]
) -> None:
    monkeypatch.setenv("GROUNDING_MMSCAN_FRAMES", frames)
    benchmark = importlib.import_module(f"lmms_eval_grounding.benchmarks.{task[:-5]}")
    with pytest.raises(SystemExit) as refused:
        benchmark.doc_to_text(documents[0])
    assert "GROUNDING_MMSCAN_FRAMES" in _refusal(refused)


def test_the_host_is_ended_by_a_number_of_frames_that_is_none(
    oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_MMSCAN_FRAMES", "all")
    with pytest.raises(SystemExit) as refused:
        oracle()
    assert "GROUNDING_MMSCAN_FRAMES is 'all'" in _refusal(refused)


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("mmscan_mini", "minigpt_v2"),
        ("mmscan_mini", "chat_scene"),
        ("mmscan_candidates_mini", "vg_llm"),
    ],
)
def test_a_profile_without_such_answers_ends_the_run_with_those_that_have(
    task: str, name: str, oracle: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", name)
    with pytest.raises(SystemExit) as refused:
        oracle(task)
    message = _refusal(refused)
    assert "GROUNDING_PROFILE" in message
    assert repr(name) in message
    assert "qwen3_vl" in message


@pytest.mark.parametrize("task", ["mmscan", "mmscan_candidates"])
@pytest.mark.parametrize(
    "broken",
    [
        {"targets": [[0, 0, 0, 1, 1, 0, 0, 0, 0]]},
        {"targets": [[0, 0, 0, 1, -1, 1, 0, 0, 0]]},
        {"targets": [[0, 0, float("nan"), 1, 1, 1, 0, 0, 0]]},
        {"targets": [[0, 0, 0, 1, 1, 1, 0, 0]]},
        {"targets": None},
        {"expression": ""},
        {"id": 7},
        {"scan_id": "generated/garage"},
    ],
)
def test_a_broken_document_ends_the_run_before_it_begins(
    task: str, broken: Doc, documents: tuple[Doc, ...]
) -> None:
    benchmark = importlib.import_module(f"lmms_eval_grounding.benchmarks.{task}")
    with pytest.raises(SystemExit):
        benchmark.doc_to_text({**documents[0], **broken})
    with pytest.raises(SystemExit):
        benchmark.doc_to_text({k: v for k, v in documents[0].items() if k not in broken})


# Frames


def release() -> Any:
    path = files("lmms_eval_grounding.data").joinpath(
        "mini/mmscan/embodiedscan_split/embodiedscan-v1/embodiedscan_infos_val.pkl"
    )
    return pickle.loads(path.read_bytes())


def poses_by_file() -> dict[str, np.ndarray]:
    """Return the pose of every frame of the mini release in its scan's aligned frame."""
    poses = {}
    for scan in release()["data_list"]:
        for image in scan["images"]:
            name = Path(image["img_path"])
            poses[f"{name.parent.name}/{name.name}"] = np.array(
                scan["axis_align_matrix"]
            ) @ np.array(image["cam2global"])
    return poses


@pytest.mark.parametrize("count", [None, 1, 3, 50])
def test_images_are_the_frames_of_the_prompt_in_its_order(
    count: int | None, monkeypatch: pytest.MonkeyPatch, documents: tuple[Doc, ...]
) -> None:
    import PIL.Image

    from lmms_eval_grounding.benchmarks import mmscan, mmscan_candidates

    if count:
        monkeypatch.setenv("GROUNDING_MMSCAN_FRAMES", str(count))
    poses = poses_by_file()
    folder = REPOSITORY / "plugin/lmms_eval_grounding/data/mini/mmscan/embodiedscan_split/data"
    for doc in documents[::7]:
        room = doc["scan_id"].split("/")[1]
        pictures = {
            file.name: PIL.Image.open(file).convert("RGB")
            for file in sorted((folder / "generated" / room).glob("*.jpg"))
        }
        images = mmscan.doc_to_visual(doc)
        assert len(images) == min(count or 8, len(pictures))
        assert [i.tobytes() for i in mmscan_candidates.doc_to_visual(doc)] == [
            i.tobytes() for i in images
        ]
        written = re.findall(r"^Frame (\d+): .*\[(.*)\]$", mmscan.doc_to_text(doc), re.MULTILINE)
        assert [int(number) for number, _ in written] == list(range(len(images)))
        for image, (_, matrix) in zip(images, written, strict=True):
            (name,) = [n for n, p in pictures.items() if p.tobytes() == image.tobytes()]
            given = np.array([row.split() for row in matrix.split(";")], dtype=float)
            assert np.abs(given - poses[f"{room}/{name}"][:3]).max() <= 0.5e-4 + 1e-9


def test_a_server_is_sent_the_frames_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, documents: tuple[Doc, ...]
) -> None:
    import base64
    import io

    import PIL.Image
    from mock_openai import MockOpenAI

    from lmms_eval_grounding.benchmarks import mmscan

    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("GROUNDING_MMSCAN_FRAMES", "3")
    with MockOpenAI(lambda prompt: "[]") as server:
        arguments = f"model_version=mock,base_url={server.url},num_concurrent=1,max_retries=1"
        model = ("--model", "openai", "--model_args", arguments, "--limit", "1")
        run = evaluate(tmp_path, *model, task="mmscan_mini")
    assert only_status(run, "no_target")
    assert [reading["frames_shown"] for reading in readings(run)] == [3]
    (request,) = server.requests
    parts = [part for message in request["messages"] for part in message["content"]]
    sent = [
        PIL.Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2])))
        for part in parts
        if part["type"] == "image_url"
    ]
    shown = mmscan.doc_to_visual(documents[0])
    assert [image.convert("RGB").tobytes() for image in sent] == [i.tobytes() for i in shown]
    assert len(shown) == 3


def test_the_scans_of_the_mini_set_do_not_depend_on_other_data(
    documents: tuple[Doc, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, oracle: Start
) -> None:
    monkeypatch.setenv("GROUNDING_DATA_MMSCAN", str(write_documents(documents[:2], tmp_path / "d")))
    assert len(oracle("mmscan").samples) == 2
    assert len(oracle("mmscan_mini", "mini").samples) == 21


# What a run leaves behind


def mixed(task: str, documents: tuple[Doc, ...], file: Path) -> Path:
    """Write a samples file with replies of every status, many predictions, duplicates and ties."""
    rng = random.Random(5)
    lines = []
    for i, doc in enumerate(documents):
        others = ("[]", '[{"bbox_3d": [1]}, {"id": 1.5}]', "no idea", None)
        answers = []
        for _ in range(rng.randrange(1, 12)):
            place = rng.randrange(len(doc["targets"]))
            x, *rest = doc["targets"][place]
            box = [x + rng.choice((0, 0.05, 0.1, 0.3, 2)), *rest]
            score = {} if i % 4 == 0 else {"score": round(rng.random(), 1)}
            named = doc["target_id"][place] if rng.random() < 0.6 else doc["anchor_ids"][:1] or 1
            answers.append(
                {"bbox_3d": box, **score} if task == "mmscan_mini" else {"id": named, **score}
            )
        reply = others[i // 5] if i % 5 == 4 else json.dumps(answers)
        lines.append(
            {"doc_id": i, "filtered_resps": reply, "grounding": {"id": doc["id"], "reason": None}}
        )
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file


@pytest.fixture(params=TASKS)
def mixed_run(
    request: pytest.FixtureRequest, replay: Start, tmp_path: Path, documents: tuple[Doc, ...]
) -> Run:
    samples = mixed(request.param, documents, tmp_path / "samples.jsonl")
    return replay(samples, request.param, "mixed")


def test_a_replayed_run_has_the_same_numbers_bit_for_bit(
    mixed_run: Run, replay: Start, request: pytest.FixtureRequest
) -> None:
    task = request.node.callspec.params["mixed_run"]
    again = replay(mixed_run.samples_file, task)
    assert again.scores == mixed_run.scores
    assert again.results_file != mixed_run.results_file
    metrics_of = [[sample[name] for name in REPORTED] for sample in mixed_run.samples]
    assert [[sample[name] for name in REPORTED] for sample in again.samples] == metrics_of
    assert readings(again) == readings(mixed_run)


def test_every_reported_number_can_be_recomputed_from_the_samples_file(mixed_run: Run) -> None:
    scores, samples = reported(mixed_run), mixed_run.samples
    records = [sample["AP_box@0.5"] for sample in samples]  # they suffice, for any threshold
    assert records == [sample["AP_box@0.25"] for sample in samples]
    functions: dict[str, Callable[..., float]] = {
        "AP_sample": metrics.average_precision_per_sample,
        "AR": metrics.average_recall,
        "AP_box": metrics.pooled_average_precision,
        "AR_box": metrics.pooled_average_recall,
    }
    for t in THRESHOLDS:
        for k in RANKS:
            assert scores[f"gTop-{k}@{t}"] == metrics.gtop_k(records, k, t)
        for name, function in functions.items():
            assert scores[f"{name}@{t}"] == function(records, t)
        for name in BY_SAMPLE:  # and each by its own items alone
            values = [sample[f"{name}@{t}"]["value"] for sample in samples]
            assert scores[f"{name}@{t}"] == math.fsum(values) / len(values)
        hits = [sample[f"AR_box@{t}"] for sample in samples]
        assert scores[f"AR_box@{t}"] == metrics.pooled_average_recall(hits, t)
    for rate in RATES:
        statuses = [sample[rate]["status"] for sample in samples]
        assert scores[rate] == statuses.count(rate.removeprefix("parse_")) / len(samples)
    assert scores["skipped"] == 0
    assert all(0 < scores[f"{name}@0.25"] < 1 for name in AT)
    assert all(scores[rate] for rate in RATES)
    assert len({scores[f"{name}@{t}"] for name in AT for t in THRESHOLDS}) > 5


def test_only_one_metric_a_threshold_logs_all_predictions(mixed_run: Run) -> None:
    for sample in mixed_run.samples:
        n_preds = len(sample["AP_box@0.5"]["scores"])
        for name in REPORTED:
            item = sample[name]
            kept = name.split("@")[0]
            if kept in BY_SAMPLE:
                assert set(item) == {"id", "value"}
            elif kept == "AR_box":
                assert len(item["scores"]) <= min(n_preds, item["n_targets"])
            elif kept != "AP_box":
                assert len(item) == 2


def test_every_sample_has_the_same_keys_in_the_same_order(mixed_run: Run) -> None:
    first, *others = mixed_run.samples
    for sample in others:
        assert list(sample) == list(first)
        for name in ("grounding", *REPORTED):
            assert list(sample[name]) == list(first[name])


@pytest.mark.parametrize("task", ["mmscan", "mmscan_candidates"])
def test_a_run_of_skipped_samples_only_is_strict_json(
    task: str,
    oracle: Start,
    documents: tuple[Doc, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    untargeted = [{**doc, "targets": [], "target_id": [], "target": []} for doc in documents[:3]]
    folder = write_documents(untargeted, tmp_path / "data")
    monkeypatch.setenv("GROUNDING_DATA_MMSCAN", str(folder))
    run = oracle(task, error="shifted")
    scores = reported(run)  # refuses NaN
    assert {scores[number] for number in NUMBERS} == {None}
    assert scores["skipped"] == 1
    assert only_status(run, "no_target")
    assert len(run.samples) == 3  # refuses NaN too


def test_a_skipped_sample_changes_no_metric(
    oracle: Start, documents: tuple[Doc, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    untargeted = {**documents[0], "targets": [], "target_id": [], "target": []}
    folder = write_documents([untargeted, documents[1]], tmp_path / "data")
    monkeypatch.setenv("GROUNDING_DATA_MMSCAN", str(folder))
    run = oracle("mmscan")
    numbers_are(run, all_are(1))
    assert reported(run)["skipped"] == reported(run)["parse_no_target"] == 0.5


def test_neither_order_nor_repetition_of_samples_changes_a_number(
    mixed_run: Run,
    replay: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    documents = mini_documents()
    padded = [*documents, *documents[:5], documents[7], documents[7]]
    random.Random(0).shuffle(padded)
    monkeypatch.setenv("GROUNDING_DATA_MMSCAN", str(write_documents(padded, tmp_path / "data")))
    task = request.node.callspec.params["mixed_run"].removesuffix("_mini")
    again = replay(mixed_run.samples_file, task)
    assert [reading["id"] for reading in readings(again)] == [doc["id"] for doc in padded]
    assert reported(again) == reported(mixed_run)
