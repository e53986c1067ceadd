"""The prompts of MMScan are frozen, and say of their profile what its parser does.

`python tests/test_prompts_mmscan.py` writes the snapshots anew.
"""

import importlib
import json
import re
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import REPOSITORY
from mmscan_documents import mini_documents
from scenes3d import random_scene
from scipy.spatial.transform import Rotation

from lmms_eval_grounding.benchmarks import scans
from lmms_eval_grounding.benchmarks.conventions import prompt_text
from lmms_eval_grounding.geometry.boxes3d import corners
from lmms_eval_grounding.parsing.boxes3d import parse_boxes3d
from lmms_eval_grounding.parsing.none_answers import says_none
from lmms_eval_grounding.parsing.profile import load_profile, profile_names
from lmms_eval_grounding.parsing.scene import Scene

SNAPSHOTS = REPOSITORY / "tests" / "snapshots"
ANSWERS = {"mmscan": "box3d", "mmscan_candidates": "candidates"}
# What is filled in, short: the marks of a mini document are tested below.
FIELDS = {
    "cameras": "Frame 0: 320 x 240 pixels, fx 205.0, fy 205.0, cx 160.0, cy 120.0; camera to scene "
    "[1.0000 0.0000 0.0000 0.0000; 0.0000 0.0000 1.0000 -3.0000; 0.0000 -1.0000 0.0000 1.0000]",
    "bounds": "-0.100 -0.100 -0.100 to 5.100 4.100 2.600",
    "objects": "17 chair: centre 0.90 0.85 0.45, size 0.48 0.48 0.90, angles -0.80 0.00 0.00\n"
    "23 chair: centre 3.40 2.55 0.47, size 0.50 0.50 0.95, angles 3.44 0.00 0.00",
    "expression": "Find every chair in this office.",
}
PAIRS = [(task, name) for task, answer in ANSWERS.items() for name in profile_names(answer)]


def rendered(benchmark: str) -> dict[str, str]:
    return {
        name: prompt_text(benchmark, load_profile(name), **FIELDS)
        for name in profile_names(ANSWERS[benchmark])
    }


def template(benchmark: str) -> dict[str, Any]:
    text = (REPOSITORY / "tasks" / benchmark / "_default_template_yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text.replace("!function ", ""))
    return loaded


def declared(benchmark: str) -> dict[str, str]:
    text = (REPOSITORY / "tasks" / benchmark / "prompts.yaml").read_text("utf-8")
    prompts: dict[str, str] = yaml.safe_load(text)["prompts"]
    return prompts


def scene_of(benchmark: str, doc: dict[str, Any]) -> Scene:
    boxes = scans.scene_with_boxes if benchmark == "mmscan" else scans.scene_with_candidates
    return boxes(doc)


@pytest.mark.parametrize("benchmark", ANSWERS)
def test_prompts_are_those_of_the_snapshot(benchmark: str) -> None:
    frozen = json.loads((SNAPSHOTS / f"{benchmark}.json").read_text("utf-8"))
    assert frozen == {"version": template(benchmark)["metadata"]["version"], **rendered(benchmark)}


@pytest.mark.parametrize("benchmark", ANSWERS)
def test_the_profiles_with_a_prompt_are_those_that_write_such_answers(benchmark: str) -> None:
    assert list(declared(benchmark)) == profile_names(ANSWERS[benchmark])
    for model, kwargs in template(benchmark)["lmms_eval_specific_kwargs"].items():
        assert kwargs["profile"] in declared(benchmark), model


@pytest.mark.parametrize(("benchmark", "name"), PAIRS)
def test_a_prompt_holds_expression_and_scan_and_no_open_mark(benchmark: str, name: str) -> None:
    prompt = rendered(benchmark)[name]
    assert FIELDS["expression"] in prompt
    assert FIELDS["cameras" if benchmark == "mmscan" else "objects"] in prompt
    assert not re.search("{(cameras|bounds|objects|expression)}", prompt)
    # The grids of two profiles count from the scene's least corner.
    assert (FIELDS["bounds"] in prompt) == (
        benchmark == "mmscan" and name in ("spatiallm", "ll3da")
    )


@pytest.mark.parametrize(("benchmark", "name"), PAIRS)
def test_an_echoed_prompt_is_no_answer(benchmark: str, name: str) -> None:
    task = importlib.import_module(f"lmms_eval_grounding.benchmarks.{benchmark}")
    profile = load_profile(name)
    for doc in mini_documents()[::7]:
        prompt = task.doc_to_text(doc, {"profile": name})
        for echo in (prompt, f"{prompt}\n", prompt.split("\n", 1)[1], prompt.splitlines()[-2]):
            status = parse_boxes3d(echo, profile, scene_of(benchmark, doc)).status
            assert status in ("unparseable", "malformed"), echo
        assert task.score(doc, prompt, profile)[0]["status"] == "unparseable"


@pytest.mark.parametrize(("benchmark", "name"), PAIRS)
def test_the_answer_for_nothing_is_read_as_such(benchmark: str, name: str) -> None:
    prompt = declared(benchmark)[name]
    (answer,) = re.findall(r"If nothing matches, answer:? (\[\]|\S+)", prompt)
    scene = scene_of(benchmark, mini_documents()[0])
    assert parse_boxes3d(answer, load_profile(name), scene).status == "no_target"
    assert answer == "[]" or says_none(answer, load_profile(name).none)


@pytest.mark.parametrize(("benchmark", "name"), PAIRS)
def test_a_prompt_states_the_order_and_asks_for_scores_where_they_are_read(
    benchmark: str, name: str
) -> None:
    prompt = declared(benchmark)[name]
    assert "the best match first" in prompt
    profile = load_profile(name)
    convention = (
        profile.box3d_convention() if benchmark == "mmscan" else profile.candidate_convention()
    )
    assert ("score" in prompt.lower()) == bool(convention.score_keys)


# Boxes as the words of a prompt mean them, with scipy's rotations


SCENE = random_scene(11)
CENTRE, SIZE = np.array([0.4, -0.3, 2.5]), np.array([0.6, 1.1, 0.9])


def frame(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rotation and the place of a frame's camera in the scene."""
    pose = np.asarray(SCENE.frames[number].pose)
    return pose[:3, :3], pose[:3, 3]


def numbers(*values: Any) -> str:
    return ", ".join(str(float(v)) for value in values for v in np.atleast_1d(value))


def as_asked(name: str) -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
    """Return a reply in the words of a prompt, and the centre, axes and sizes that it means."""
    turn, place = frame(0 if name in ("seed1_5_vl", "n3d_vlm") else 2)
    given = f'"frame": 2, "bbox_3d": [{numbers(CENTRE, SIZE, (0.1, -0.3, 0.6))}]'
    if name == "prompt":
        reply = f'[{{"bbox_3d": [{numbers(CENTRE, SIZE, (0.1, -0.3, 0.6))}], "score": 0.5}}]'
        return reply, CENTRE, Rotation.from_euler("ZXY", (0.1, -0.3, 0.6)).as_matrix(), SIZE
    if name in ("qwen3_vl", "seed1_5_vl"):
        own = Rotation.from_euler("xyz", np.pi * np.array((0.1, -0.3, 0.6))).as_matrix()
        tagged = numbers(CENTRE, SIZE, (0.1, -0.3, 0.6)).replace(",", "")
        reply = f"<3dbbox>{tagged}</3dbbox>" if name == "seed1_5_vl" else f"[{{{given}}}]"
        return reply, turn @ CENTRE + place, turn @ own, SIZE
    if name in ("vg_llm", "vg_llm_2025_06"):
        order = "ZXY" if name == "vg_llm" else "zxy"
        own = Rotation.from_euler(order, (0.1, -0.3, 0.6)).as_matrix()
        return f"{{{given}}}", turn @ CENTRE + place, turn @ own, SIZE
    if name == "gemini":
        seen = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])  # right, forward, up in the camera
        own = Rotation.from_euler("xyz", (10, -30, 60), degrees=True).as_matrix()
        reply = f'[{{"frame": 2, "box_3d": [{numbers(CENTRE, SIZE, (10, -30, 60))}]}}]'
        return reply, turn @ seen @ CENTRE + place, turn @ seen @ own, SIZE
    if name == "n3d_vlm":
        (fx, fy, cx, cy), shown = SCENE.frames[0].intrinsics, SCENE.frames[0]
        u = (fx * CENTRE[0] / CENTRE[2] + cx) / shown.width
        v = (fy * CENTRE[1] / CENTRE[2] + cy) / shown.height
        seen = np.diag([-1.0, -1.0, 1.0])  # left, up, forward in the camera
        own = Rotation.from_euler("y", 0.4).as_matrix()
        reply = f"bbox_0=Bbox(chair,{numbers(u, v, CENTRE[2], 0.4, SIZE)})"
        return reply, turn @ CENTRE + place, turn @ seen @ own, SIZE
    least, greatest = map(np.array, SCENE.bounds)
    if name == "spatiallm":
        own = Rotation.from_euler("z", 4 * np.pi * 700 / 1280 - 2 * np.pi).as_matrix()
        centre, size = least + np.array([120, 160, 20]) / 40, np.array([64, 96, 128]) / 64
        return "bbox_0=Bbox(chair,120,160,20,700,64,96,128)", centre, own, size
    assert name == "ll3da"
    step = (greatest - least) / 255
    centre, size = least + step * [150, 200, 50], step * [30, 40, 100]
    return "<obj>150, 200, 50, 30, 40, 100</obj>", centre, np.eye(3), size


@pytest.mark.parametrize("name", profile_names("box3d"))
def test_a_box_as_the_prompt_asks_for_it_is_read_as_the_prompt_means_it(name: str) -> None:
    reply, centre, axes, size = as_asked(name)
    parsed = parse_boxes3d(reply, load_profile(name), SCENE)
    assert parsed.status == "ok", parsed
    (box,) = parsed.boxes
    halves = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
    asked = (halves * size) @ axes.T + centre
    assert np.abs(corners(box) - asked).max() < 1e-5


def test_ids_and_categories_in_the_prompt_are_those_of_the_scan() -> None:
    (doc,) = [doc for doc in mini_documents() if doc["id"].endswith("bedroom__2")]
    lines = scans.object_text(doc).splitlines()
    for target_id, category, box in zip(
        doc["target_id"], doc["target"], doc["targets"], strict=True
    ):
        (line,) = [line for line in lines if line.startswith(f"{target_id} ")]
        assert line.startswith(f"{target_id} {category}: ")
        written = [float(number) for number in re.findall(r"-?\d+\.\d\d", line)]
        assert np.abs(np.array(written) - box).max() <= 0.005 + 1e-9
    assert len(lines) == len(set(lines)) > 10


def test_marks_in_an_expression_stay_as_they_are() -> None:
    from lmms_eval_grounding.benchmarks import mmscan, mmscan_candidates

    for task in (mmscan, mmscan_candidates):
        doc = {**mini_documents()[0], "expression": "a {cameras} and {objects} {bounds}"}
        assert doc["expression"] in task.doc_to_text(doc)


if __name__ == "__main__":
    for benchmark in ANSWERS:
        frozen = {"version": template(benchmark)["metadata"]["version"], **rendered(benchmark)}
        text = json.dumps(frozen, indent=2, ensure_ascii=False)
        (SNAPSHOTS / f"{benchmark}.json").write_text(text + "\n", "utf-8")
