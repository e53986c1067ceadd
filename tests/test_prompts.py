"""Prompts are frozen: a changed text is a changed benchmark, and must raise the task's version.

`python tests/test_prompts.py` writes the snapshots anew.
"""

import json

import pytest
import yaml
from conftest import REPOSITORY

from lmms_eval_grounding.benchmarks import rsvg
from lmms_eval_grounding.benchmarks.conventions import declare_profile, prompt_text
from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.profile import load_profile, profile_names

SNAPSHOTS = REPOSITORY / "tests" / "snapshots"
EXPRESSIONS = {"rsvg": "the larger storage tank"}


def rendered(benchmark: str) -> dict[str, str]:
    return {
        name: prompt_text(benchmark, load_profile(name), expression=EXPRESSIONS[benchmark])
        for name in profile_names("box")
    }


def template(benchmark: str) -> dict[str, object]:
    text = (REPOSITORY / "tasks" / benchmark / "_default_template_yaml").read_text("utf-8")
    loaded: dict[str, object] = yaml.safe_load(text.replace("!function ", ""))
    return loaded


@pytest.mark.parametrize("benchmark", EXPRESSIONS)
def test_prompts_are_those_of_the_snapshot(benchmark: str) -> None:
    frozen = json.loads((SNAPSHOTS / f"{benchmark}.json").read_text("utf-8"))
    assert frozen == {"version": template(benchmark)["metadata"]["version"], **rendered(benchmark)}


@pytest.mark.parametrize("benchmark", EXPRESSIONS)
def test_every_prompt_holds_the_expression_and_no_open_mark(benchmark: str) -> None:
    for name, prompt in rendered(benchmark).items():
        assert EXPRESSIONS[benchmark] in prompt, name
        assert "{expression}" not in prompt, name


@pytest.mark.parametrize("name", profile_names("box"))
def test_an_echoed_prompt_is_no_answer(name: str) -> None:
    profile = load_profile(name)
    prompt = prompt_text("rsvg", profile, expression="the larger storage tank")
    assert parse_boxes(prompt, profile, 800, 800).status == "unparseable"


@pytest.mark.parametrize("benchmark", EXPRESSIONS)
def test_every_profile_that_a_model_name_maps_to_exists(benchmark: str) -> None:
    for model, kwargs in template(benchmark)["lmms_eval_specific_kwargs"].items():
        assert kwargs["profile"] in profile_names(), model


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
    "broken", [{"bbox": [1, 2, 3]}, {"bbox": [1, 2, 3, float("nan")]}, {"id": 7}]
)
def test_a_broken_document_ends_the_run_before_it_begins(broken: dict[str, object]) -> None:
    doc = {"id": "0", "expression": "a ship", "bbox": [1, 2, 3, 4], "width": 8, "height": 8}
    with pytest.raises(SystemExit, match="prepare rsvg --check"):
        rsvg.doc_to_text({**doc, **broken})


if __name__ == "__main__":
    for benchmark in EXPRESSIONS:
        frozen = {"version": template(benchmark)["metadata"]["version"], **rendered(benchmark)}
        text = json.dumps(frozen, indent=2, ensure_ascii=False)
        (SNAPSHOTS / f"{benchmark}.json").write_text(text + "\n", "utf-8")
