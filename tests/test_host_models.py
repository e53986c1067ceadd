"""Models of the host run `rsvg_mini` to the end, offline, and their failures are no boxes."""

import base64
import io
import re
from pathlib import Path
from typing import Any

import pytest
from host import MINI_SIZE, RATES, Run, evaluate
from mock_openai import MockOpenAI, Reply
from rsvg_documents import Document, mini_documents, write_documents
from tiny_qwen import save_checkpoint

from lmms_eval_grounding.parsing.profile import load_profile

MINI = {document.expression: document for document in mini_documents()}
EXPRESSIONS = list(MINI)


def test_the_mini_set_is_as_large_as_the_tests_say() -> None:
    assert len(MINI) == MINI_SIZE


def test_dummy(tmp_path: Path) -> None:
    run = evaluate(tmp_path, "--model", "dummy")
    assert run.scores["parse_unparseable"] == 1
    assert run.scores["Pr@0.5"] == run.scores["cumIoU"] == 0


def test_dummy_with_a_box(tmp_path: Path) -> None:
    whole_image = 'response={"bbox_2d": [0, 0, 1000, 1000]}'
    run = evaluate(tmp_path, "--model", "dummy", "--model_args", whole_image)
    assert run.scores["parse_ok"] == 1
    target = sum((d.bbox[2] - d.bbox[0]) * (d.bbox[3] - d.bbox[1]) for d in MINI.values())
    images = sum(d.width * d.height for d in MINI.values())
    assert run.scores["cumIoU"] == pytest.approx(target / images, rel=1e-12)


# Servers


def expression_of(prompt: str) -> str:
    (line,) = re.findall("^Expression: (.*)$", prompt, re.MULTILINE)
    return str(line)


def right_answer(prompt: str) -> str:
    """Return the target of the prompt's expression in whole thousandths."""
    document = MINI[expression_of(prompt)]
    sides = (document.width, document.height) * 2
    box = [round(1000 * n / side) for n, side in zip(document.bbox, sides, strict=True)]
    return f'{{"bbox_2d": {box}}}'


def troubled_answer(prompt: str) -> Reply:
    """Answer the first eight expressions as a server in trouble, the others rightly."""
    place = EXPRESSIONS.index(expression_of(prompt))
    troubles: dict[int, Reply] = {0: 500, 1: 500, 2: "", 3: " \n", 4: None, 5: None, 6: 400, 7: "no"}
    return troubles.get(place, right_answer(prompt))


@pytest.fixture(params=["openai", "async_openai"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return str(request.param)


def served(client: str, server: MockOpenAI, folder: Path) -> Run:
    arguments = f"model_version=mock,base_url={server.url},num_concurrent=8,max_retries=1"
    return evaluate(folder, "--model", client, "--model_args", arguments)


def test_a_server_that_answers_rightly(client: str, tmp_path: Path) -> None:
    with MockOpenAI(right_answer) as server:
        run = served(client, server, tmp_path)
    assert run.scores["Pr@0.5"] == 100
    assert run.scores["parse_ok"] == 1
    assert {sample["grounding"]["profile"] for sample in run.samples} == {"prompt"}
    assert len(server.requests) == MINI_SIZE
    for request in server.requests:
        document = MINI[expression_of(_text(request))]
        assert _image_size(request) == (document.width, document.height)
        assert request["max_tokens"] == 1024
        assert request["temperature"] == 0


def test_a_server_in_trouble(client: str, tmp_path: Path) -> None:
    with MockOpenAI(troubled_answer) as server:
        run = served(client, server, tmp_path)
    status = {s["grounding"]["expression"]: s["grounding"]["status"] for s in run.samples}
    reason = {s["grounding"]["expression"]: s["grounding"]["reason"] for s in run.samples}
    assert [status[e] for e in EXPRESSIONS[:8]] == ["unparseable"] * 8
    assert {status[e] for e in EXPRESSIONS[8:]} == {"ok"}
    assert [reason[EXPRESSIONS[i]] for i in (0, 1, 6)] == ["request_failed"] * 3
    assert [reason[EXPRESSIONS[i]] for i in (2, 3)] == ["empty_response"] * 2
    assert reason[EXPRESSIONS[7]] == "no_box"
    # Every failure stays in the denominator: 24 of 32
    assert run.scores["Pr@0.5"] == run.scores["parse_ok"] * 100 == 75
    assert [run.scores[rate] for rate in RATES] == [0.75, 0, 0, 0.25]
    failed = [s for s in run.samples if s["grounding"]["expression"] in EXPRESSIONS[:2]]
    assert all("[10, 20, 30, 40]" in sample["filtered_resps"] for sample in failed)


def test_a_run_with_troubles_is_replayed_with_the_same_numbers(
    client: str, tmp_path: Path
) -> None:
    with MockOpenAI(troubled_answer) as server:
        run = served(client, server, tmp_path / "first")
    again = evaluate(
        tmp_path / "again", "--model", "grounding_replay",
        "--model_args", f"samples={run.samples_file}",
    )  # fmt: skip
    assert again.scores == run.scores


def _text(request: dict[str, Any]) -> str:
    (text,) = [p["text"] for m in request["messages"] for p in m["content"] if p["type"] == "text"]
    return str(text)


def _image_size(request: dict[str, Any]) -> tuple[int, int]:
    import PIL.Image

    parts = [part for message in request["messages"] for part in message["content"]]
    (url,) = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return PIL.Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size


# Qwen2.5-VL: its reply is in pixels of an image that wrapper and processor have resized


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny_qwen")
    save_checkpoint(folder)
    return folder


def qwen(checkpoint: Path, folder: Path, *more: str, task: str = "rsvg_mini", limits: str = "") -> Run:
    arguments = f"pretrained={checkpoint},device=cpu,device_map=cpu,attn_implementation=sdpa{limits}"
    return evaluate(
        folder, "--model", "qwen2_5_vl", "--model_args", arguments,
        "--gen_kwargs", "max_new_tokens=2", *more, task=task,
    )  # fmt: skip


@pytest.mark.parametrize("wrapper", ["chat", "simple"])
def test_qwen2_5_vl(wrapper: str, checkpoint: Path, tmp_path: Path) -> None:
    run = qwen(checkpoint, tmp_path, *(["--force_simple"] if wrapper == "simple" else []))
    backend = run.results["config"]["model_backend"]
    assert backend == f"lmms_eval.models.{wrapper}.qwen2_5_vl.Qwen2_5_VL ({wrapper})"
    assert len(run.samples) == MINI_SIZE
    assert {sample["grounding"]["profile"] for sample in run.samples} == {"qwen2_5_vl"}
    assert {sample["grounding"]["status"] for sample in run.samples} == {"unparseable"}
    assert any(sample["filtered_resps"] for sample in run.samples)
    assert run.scores["Pr@0.5"] == 0


SIZES = (
    (800, 800), (300, 200), (500, 333), (1024, 683), (1920, 1080), (1080, 1920), (37, 1200),
    (2400, 19), (28, 28), (14, 42), (70, 98), (3000, 2000), (4000, 4100), (447, 449),
)  # fmt: skip


@pytest.mark.parametrize(
    ("more", "limits", "profile"),
    [
        ([], "", "qwen2_5_vl"),
        (["--force_simple"], "", "qwen2_5_vl_simple"),
        ([], ",max_pixels=501760", "qwen2_5_vl:max_pixels=501760"),
        ([], ",min_pixels=3136", "qwen2_5_vl:min_pixels=3136"),
        (
            ["--force_simple"],
            ",min_pixels=3136,max_pixels=501760",
            "qwen2_5_vl_simple:min_pixels=3136,max_pixels=501760",
        ),
    ],
)
def test_profiles_of_qwen2_5_vl_have_the_size_that_its_processor_makes(
    more: list[str],
    limits: str,
    profile: str,
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from transformers import AutoTokenizer, Qwen2_5_VLForConditionalGeneration

    documents = [
        Document(str(i), f"image of {width}x{height}", (0, 0, width, height), width, height)
        for i, (width, height) in enumerate(SIZES)
    ]
    folder = write_documents(documents, tmp_path / "data")
    monkeypatch.setenv("GROUNDING_DATA_RSVG", str(folder))
    seen: list[tuple[Any, tuple[int, int]]] = []

    def generate(self: Any, *, input_ids: Any, image_grid_thw: Any, **_: Any) -> Any:
        ((_, rows, columns),) = image_grid_thw.tolist()
        seen.append((input_ids, (14 * columns, 14 * rows)))  # a patch has 14 x 14 pixels
        return input_ids

    monkeypatch.setattr(Qwen2_5_VLForConditionalGeneration, "generate", generate)
    qwen(checkpoint, tmp_path / "out", *more, task="rsvg", limits=limits)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    made = {}
    for (tokens,), size in seen:
        (width, height) = re.findall(r"image of (\d+)x(\d+)", tokenizer.decode(tokens))[0]
        made[int(width), int(height)] = size
    space = load_profile(profile).box.space
    declared = {size: tuple(axis.extent for axis in space.axes(*size)) for size in SIZES}
    assert made == declared
