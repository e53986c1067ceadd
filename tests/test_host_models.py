"""Models of the host run `rsvg_mini` to the end, offline, and their failures are no boxes."""

import base64
import io
import re
from collections.abc import Callable
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

Start = Callable[..., Run]


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
    troubles: dict[int, Reply] = {
        0: 500,
        1: 500,
        2: "",
        3: " \n",
        4: None,
        5: None,
        6: 400,
        7: "no",
    }
    return troubles.get(place, right_answer(prompt))


@pytest.fixture(params=["openai", "async_openai"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
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
    # async_openai turns a message without content into a text that begins with "Error:"
    without_content = {"openai": "empty_response", "async_openai": "request_failed"}[client]
    assert [reason[EXPRESSIONS[i]] for i in (4, 5)] == [without_content] * 2
    assert reason[EXPRESSIONS[7]] == "no_box"
    # Every failure stays in the denominator: 24 of 32
    assert run.scores["Pr@0.5"] == run.scores["parse_ok"] * 100 == 75
    assert [run.scores[rate] for rate in RATES] == [0.75, 0, 0, 0.25]
    failed = [s for s in run.samples if s["grounding"]["expression"] in EXPRESSIONS[:2]]
    assert all("[10, 20, 30, 40]" in sample["filtered_resps"] for sample in failed)


def test_a_run_with_troubles_is_replayed_with_the_same_numbers(client: str, tmp_path: Path) -> None:
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


@pytest.fixture
def qwen(checkpoint: Path, tmp_path: Path) -> Start:
    """Return a function that evaluates the checkpoint; ``limits`` are more model arguments."""

    def start(*more: str, limits: str = "", task: str = "rsvg_mini") -> Run:
        where = "device=cpu,device_map=cpu,attn_implementation=sdpa"
        model = (
            "--model",
            "qwen2_5_vl",
            "--model_args",
            f"pretrained={checkpoint},{where}{limits}",
        )
        return evaluate(
            tmp_path / "out", *model, "--gen_kwargs", "max_new_tokens=2", *more, task=task
        )

    return start


@pytest.mark.parametrize("wrapper", ["chat", "simple"])
def test_qwen2_5_vl(wrapper: str, qwen: Start) -> None:
    run = qwen(*(["--force_simple"] if wrapper == "simple" else []))
    backend = run.results["config"]["model_backend"]
    assert backend == f"lmms_eval.models.{wrapper}.qwen2_5_vl.Qwen2_5_VL ({wrapper})"
    assert len(run.samples) == MINI_SIZE
    # The host tells a task the name of the model, but not which of its wrappers runs.
    assert {sample["grounding"]["profile"] for sample in run.samples} == {"qwen2_5_vl"}
    assert {sample["grounding"]["status"] for sample in run.samples} == {"unparseable"}
    assert any(sample["filtered_resps"] for sample in run.samples)
    assert run.scores["Pr@0.5"] == 0


SIZES = (
    (800, 800), (300, 200), (500, 333), (1024, 683), (1920, 1080), (1080, 1920), (37, 1200),
    (2400, 19), (28, 28), (14, 42), (70, 98), (3000, 2000), (4000, 4100), (447, 449),
)  # fmt: skip


@pytest.fixture
def resized(
    qwen: Start, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[tuple[int, int], tuple[int, int]]]:
    """Return a function that runs images of SIZES, and what their sizes were in the model."""
    from transformers import AutoTokenizer, Qwen2_5_VLForConditionalGeneration

    documents = [
        Document(str(i), f"image of {width}x{height}", (0, 0, width, height), width, height)
        for i, (width, height) in enumerate(SIZES)
    ]
    folder = write_documents(documents, tmp_path / "data")
    monkeypatch.setenv("GROUNDING_DATA_RSVG", str(folder))
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    sizes = {}

    def generate(self: Any, *, input_ids: Any, image_grid_thw: Any, **_: Any) -> Any:
        ((_, rows, columns),) = image_grid_thw.tolist()
        ((width, height),) = re.findall(r"image of (\d+)x(\d+)", tokenizer.decode(input_ids[0]))
        sizes[int(width), int(height)] = (14 * columns, 14 * rows)  # a patch has 14 x 14 pixels
        return input_ids

    monkeypatch.setattr(Qwen2_5_VLForConditionalGeneration, "generate", generate)

    def start(*more: str, limits: str) -> dict[tuple[int, int], tuple[int, int]]:
        qwen(*more, limits=limits, task="rsvg")
        return sizes

    return start


@pytest.mark.parametrize(
    ("profile", "limits"),
    [
        ("qwen2_5_vl", ""),
        ("qwen2_5_vl", "max_pixels=501760"),
        ("qwen2_5_vl", "min_pixels=3136"),
        ("qwen2_5_vl_simple", ""),
        ("qwen2_5_vl_simple", "min_pixels=3136,max_pixels=501760"),
    ],
)
def test_profiles_of_qwen2_5_vl_have_the_size_that_its_processor_makes(
    profile: str, limits: str, resized: Callable[..., dict[tuple[int, int], tuple[int, int]]]
) -> None:
    wrapper = ["--force_simple"] if profile.endswith("_simple") else []
    made = resized(*wrapper, limits=limits and f",{limits}")
    space = load_profile(f"{profile}:{limits}" if limits else profile).box.space
    assert made == {size: tuple(axis.extent for axis in space.axes(*size)) for size in SIZES}
