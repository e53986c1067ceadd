"""Prompts are frozen: a changed text is a changed benchmark, and must raise the task's version.

`python tests/test_prompts.py` writes the snapshots anew.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY

from lmms_eval_grounding.benchmarks import gres, refsegrs, rsvg
from lmms_eval_grounding.benchmarks.conventions import declare_profile, prompt_text
from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.masks import parse_mask
from lmms_eval_grounding.parsing.profile import Answer, load_profile, profile_names

SNAPSHOTS = REPOSITORY / "tests" / "snapshots"


@dataclass(frozen=True)
class Asked:
    """What a benchmark asks for: the kind of answer, how it is read, and an expression."""

    answer: Answer
    parse: Callable[..., Any]
    expression: str


BENCHMARKS = {
    "rsvg": Asked("box", parse_boxes, "the larger storage tank"),
    "gres": Asked("mask", parse_mask, "the two adults"),
    "refsegrs": Asked("mask", parse_mask, "vehicle in the parking area"),
}
PROMPTED = [
    (benchmark, name)
    for benchmark, asked in BENCHMARKS.items()
    for name in profile_names(asked.answer)
]

# Models that are asked in the fixed words of their training, which leave no room for more.
FIXED_WORDS = {
    "paligemma", "florence2", "kosmos2", "minigpt_v2", "lhrs_bot", "skysensegpt", "earthdial",
    "vhm", "polyformer", "ufo", "sam3", "text4seg_16", "text4seg_24", "lisa", "gsva", "sa2va",
}  # fmt: skip


def rendered(benchmark: str) -> dict[str, str]:
    asked = BENCHMARKS[benchmark]
    names = profile_names(asked.answer)
    missing = set(names) - declared(benchmark).keys()
    assert not missing, f"tasks/{benchmark}/prompts.yaml has no prompt for {sorted(missing)}"
    return {
        name: prompt_text(benchmark, load_profile(name), expression=asked.expression)
        for name in names
    }


def declared(benchmark: str) -> dict[str, str]:
    path = REPOSITORY / "tasks" / benchmark / "prompts.yaml"
    prompts: dict[str, str] = yaml.safe_load(path.read_text("utf-8"))["prompts"]
    return prompts


def template(benchmark: str) -> dict[str, Any]:
    text = (REPOSITORY / "tasks" / benchmark / "_default_template_yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text.replace("!function ", ""))
    return loaded


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_prompts_are_those_of_the_snapshot(benchmark: str) -> None:
    frozen = json.loads((SNAPSHOTS / f"{benchmark}.json").read_text("utf-8"))
    assert frozen == {"version": template(benchmark)["metadata"]["version"], **rendered(benchmark)}


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_there_is_a_prompt_for_each_profile_that_can_answer_and_for_no_other(
    benchmark: str,
) -> None:
    assert set(declared(benchmark)) == set(profile_names(BENCHMARKS[benchmark].answer))


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_prompt_holds_the_expression_and_no_open_mark(benchmark: str) -> None:
    for name, prompt in rendered(benchmark).items():
        assert BENCHMARKS[benchmark].expression in prompt, name
        assert "{expression}" not in prompt, name


@pytest.mark.parametrize(("benchmark", "name"), PROMPTED)
def test_an_echoed_prompt_is_no_answer(benchmark: str, name: str) -> None:
    parse, profile = BENCHMARKS[benchmark].parse, load_profile(name)
    prompt = rendered(benchmark)[name]
    # in full, and from any of its lines on, as models repeat what they are asked last
    lines = prompt.split("\n")
    for first in range(len(lines)):
        echo = "\n".join(lines[first:])
        assert parse(echo, profile, 800, 800).status in ("unparseable", "malformed"), echo
    assert parse(prompt, profile, 800, 800).status == "unparseable"


@pytest.mark.parametrize("name", sorted(set(profile_names("mask")) - FIXED_WORDS))
def test_a_prompt_of_gres_says_what_to_answer_when_nothing_matches(name: str) -> None:
    profile = load_profile(name)
    *_, said = rendered("gres")[name].split("answer")
    answer = said.strip(": ").removesuffix(" there.").removesuffix(".")
    assert parse_mask(answer, profile, 800, 800).status == "no_target", answer


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_profile_that_a_model_name_maps_to_has_a_prompt(benchmark: str) -> None:
    for model, kwargs in template(benchmark)["lmms_eval_specific_kwargs"].items():
        assert kwargs["profile"] in profile_names(BENCHMARKS[benchmark].answer), model


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_model_name_is_one_of_the_host(benchmark: str) -> None:
    from lmms_eval.models import list_available_models

    known = {*list_available_models(include_aliases=True), "default"}
    assert set(template(benchmark)["lmms_eval_specific_kwargs"]) <= known


def test_environment_outranks_the_task_and_the_task_outranks_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert declare_profile("rsvg", None).name == "prompt"
    assert declare_profile("rsvg", {"profile": "gemini"}).name == "gemini"
    monkeypatch.setenv("GROUNDING_PROFILE", "qwen2_5_vl:max_pixels=1003520")
    assert declare_profile("rsvg", {"profile": "gemini"}).name == "qwen2_5_vl:max_pixels=1003520"
    doc = {"id": "0", "expression": "a ship", "bbox": [1, 2, 3, 4], "width": 8, "height": 8}
    assert rsvg.doc_to_text(doc) == prompt_text(
        "rsvg", load_profile("qwen2_5_vl"), expression="a ship"
    )


@pytest.mark.parametrize(
    "broken",
    [
        {"id": 7},
        {"bbox": [1, 2, 3]},
        {"bbox": [1, 2, 3, float("nan")]},
        {"bbox": [4, 2, 3, 4]},  # the right edge left of the left one, as with width and height
        {"bbox": [1, 4, 3, 2]},
    ],
    ids=str,
)
def test_a_broken_document_ends_the_run_before_it_begins(broken: dict[str, object]) -> None:
    doc = {"id": "0", "expression": "a ship", "bbox": [1, 2, 3, 4], "width": 8, "height": 8}
    with pytest.raises(SystemExit, match="prepare rsvg --check"):
        rsvg.doc_to_text({**doc, **broken})


MASK_DOCUMENT = {
    "id": "0",
    "expression": "a ship",
    "target": {"size": [4, 5], "counts": "92203"},
    "width": 5,
    "height": 4,
}


@pytest.mark.parametrize("benchmark", [gres, refsegrs], ids=lambda module: module.BENCHMARK)
@pytest.mark.parametrize(
    "broken",
    [
        {"id": ""},
        {"id": 7},
        {"expression": ""},
        {"target": {"size": [5, 4], "counts": "92203"}},  # height and width exchanged
        {"target": {"size": [4, 5], "counts": "9220"}},  # runs that end too early
        {"target": {"size": [4, 5], "counts": [9, 2, 2, 2, 5]}},
        {"target": {"size": [4, 5]}},
        {"target": "92203"},
        {"height": 0},
    ],
    ids=str,
)
def test_a_broken_mask_document_ends_the_run_before_it_begins(
    benchmark: Any, broken: dict[str, object]
) -> None:
    benchmark.doc_to_text(MASK_DOCUMENT)
    with pytest.raises(SystemExit, match=rf"prepare {benchmark.BENCHMARK} --check") as refused:
        benchmark.doc_to_text({**MASK_DOCUMENT, **broken})
    assert "\n" not in str(refused.value.code)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "1e3", "many", " 1", "1" * 5000])
def test_a_wrong_min_pixels_ends_the_run_before_it_begins(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_MIN_PIXELS", value)
    with pytest.raises(SystemExit, match="GROUNDING_MIN_PIXELS"):
        gres.doc_to_text(MASK_DOCUMENT)
    refsegrs.doc_to_text(MASK_DOCUMENT)  # has no such option


@pytest.mark.parametrize("target", [None, {"size": None, "counts": None}], ids=str)
def test_only_gres_has_documents_without_a_target(target: object) -> None:
    gres.doc_to_text({**MASK_DOCUMENT, "target": target})
    with pytest.raises(SystemExit, match="prepare refsegrs --check"):
        refsegrs.doc_to_text({**MASK_DOCUMENT, "target": target})


if __name__ == "__main__":
    for benchmark in BENCHMARKS:
        frozen = {"version": template(benchmark)["metadata"]["version"], **rendered(benchmark)}
        text = json.dumps(frozen, indent=2, ensure_ascii=False)
        (SNAPSHOTS / f"{benchmark}.json").write_text(text + "\n", "utf-8")
