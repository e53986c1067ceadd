"""Reading 3D boxes: names in step, right profiles, an independent reading, no surprises."""

from __future__ import annotations

import inspect
import json
import math
import random
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
from scenes3d import (
    DECLARED,
    EXAMPLE_BOX,
    EXAMPLE_SCENE,
    axes_of,
    random_scene,
    turn_to_scene,
)
from scipy.spatial.transform import Rotation

from lmms_eval_grounding.contract import check, validator
from lmms_eval_grounding.corpus import load_cases, read_json, spec_names
from lmms_eval_grounding.geometry.boxes3d import corners, is_valid
from lmms_eval_grounding.metrics.mmscan import sample_record
from lmms_eval_grounding.parsing.boxes3d import MAX_BOXES, parse_boxes3d
from lmms_eval_grounding.parsing.profile import ProfileError, load_profile, profile_names
from lmms_eval_grounding.parsing.scene import Frame, Scene
from lmms_eval_grounding.parsing.syntaxes3d import BOX_SYNTAXES, ID_SYNTAXES
from lmms_eval_grounding.writing.boxes3d import euler_angles, write_boxes3d

FOLDER = "parsers/boxes3d"
CASES = load_cases(FOLDER)
SHARED_RULES = {"ranked_boxes", "box_frames", "box_rotations", "box_grids"}
SYNTAXES = {**BOX_SYNTAXES, **ID_SYNTAXES}
SCHEMA = read_json("spec", "profile.json")["$defs"]
PROMPT = load_profile("prompt")


def test_syntaxes_specs_and_case_files_have_the_same_names() -> None:
    names = {name.rpartition("/")[2] for name in spec_names() if name.startswith(FOLDER)}
    assert names == set(SYNTAXES) | SHARED_RULES
    assert SCHEMA["box3d"]["properties"]["syntax"]["enum"] == list(BOX_SYNTAXES)
    assert SCHEMA["candidates"]["properties"]["syntax"]["enum"] == list(ID_SYNTAXES)


@pytest.mark.parametrize("name", SYNTAXES)
def test_syntax_is_recognised_in_its_own_cases_and_has_a_profile(name: str) -> None:
    named = {case.expected.get("syntax") for case in CASES if case.spec == f"{FOLDER}/{name}"}
    assert name in named
    used = [load_profile(profile).box3d for profile in profile_names("box3d")]
    used += [load_profile(profile).candidates for profile in profile_names("candidates")]
    assert name in {convention.syntax for convention in used if convention}


@pytest.mark.parametrize("answer", ["box3d", "candidates"])
def test_profile_has_a_golden_case(answer: str) -> None:
    used = {
        case.input["profile"]
        for case in CASES
        if ("candidates" in case.input["scene"]) == (answer == "candidates")
        and "error" not in case.expected
    }
    assert set(profile_names(answer)) == used


@pytest.mark.parametrize("name", DECLARED)
def test_profile_declares_axes_and_slots_that_make_a_box(name: str) -> None:
    section = DECLARED[name]
    assert np.linalg.det(axes_of(name)) == 1  # turned, never mirrored
    assert sorted(section.get("rotation", "ZXY").upper()) == ["X", "Y", "Z"]
    assert len(set(section["slots"])) == len(section["slots"])
    assert validator("profile.json").is_valid(
        {name: {"title": "...", "source": "...", "box3d": section}}
    )


@pytest.mark.parametrize(
    "broken",
    [
        {"slots": ["x", "y", "z", "dx", "dy"]},
        {"slots": ["x", "y", "z", "u", "v", "depth", "dx", "dy", "dz"]},
        {"axes": ["x", "-z", "y"]},
        {"tag": "obj"},
        {"rotation": "ZxY"},
        {"angle": "gradian"},
        {"unknown": 1},
    ],
)
def test_schema_refuses_a_section_that_means_nothing(broken: dict[str, object]) -> None:
    section = {**DECLARED["prompt"], **broken}
    profile = {"title": "...", "source": "...", "box3d": section}
    assert not validator("profile.json").is_valid({"prompt": profile})


@pytest.mark.parametrize("name", DECLARED)
def test_example_is_what_the_profile_writes_and_gives_the_box_of_all_examples(name: str) -> None:
    profile = load_profile(name)
    convention = profile.box3d_convention()
    written = write_boxes3d([EXAMPLE_BOX], profile, EXAMPLE_SCENE, [0.9], ["chair"])
    assert written == convention.example
    parsed = parse_boxes3d(convention.example, profile, EXAMPLE_SCENE)
    assert (parsed.status, parsed.flags) == ("ok", ())
    assert parsed.scores == ((0.9,) if convention.write.score else None)
    box = np.array(EXAMPLE_BOX)
    if "a" not in convention.slots:
        box[6] = 0.0  # LL3DA does not turn boxes
    gap = corners(parsed.boxes[0])[:, None] - corners(box)[None]
    assert np.linalg.norm(gap, axis=-1).min(axis=1).max() < 0.02


@pytest.mark.parametrize("name", profile_names("candidates"))
def test_example_of_candidates_is_what_the_profile_writes(name: str) -> None:
    profile = load_profile(name)
    scene = Scene(candidates={13: EXAMPLE_BOX})
    assert write_boxes3d([EXAMPLE_BOX], profile, scene, [0.9]) == profile.candidates.example
    assert parse_boxes3d(profile.candidates.example, profile, scene).boxes == (EXAMPLE_BOX,)


def test_a_profile_without_a_section_is_refused_in_one_sentence() -> None:
    with pytest.raises(ProfileError) as refusal:
        parse_boxes3d("[]", load_profile("minigpt_v2"), Scene())
    assert str(refusal.value) == (
        "profile 'minigpt_v2' does not say how a 3D box is written; choose one of: prompt, "
        "qwen3_vl, gemini, seed1_5_vl, vg_llm, vg_llm_2025_06, spatiallm, n3d_vlm, ll3da"
    )
    with pytest.raises(ProfileError, match="how objects to choose from are named; choose one of"):
        parse_boxes3d("[]", load_profile("ll3da"), Scene(candidates={}))
    with pytest.raises(ProfileError, match="how a 3D box is written"):
        write_boxes3d([EXAMPLE_BOX], load_profile("chat_scene"), Scene())


# An independent reading: by the conventions as they are published, in scipy's terms. Centres and
# sizes are as written; turns are extrinsic where scipy's letters are small.
PUBLISHED = {
    "prompt": ("ZXY", 1.0),
    "qwen3_vl": ("xyz", math.pi),
    "gemini": ("xyz", math.pi / 180),
    "seed1_5_vl": ("xyz", math.pi),
    "vg_llm": ("ZXY", 1.0),
    "vg_llm_2025_06": ("zxy", 1.0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_corners_are_those_of_an_independent_reading(name: str) -> None:
    order, unit = PUBLISHED[name]
    profile, scene, rng = load_profile(name), random_scene(11), random.Random(name)
    template = profile.box3d.write
    for _ in range(50):
        centre = [rng.uniform(-3, 3) for _ in range(3)]
        sizes = [rng.uniform(0.1, 3) for _ in range(3)]
        angles = [rng.uniform(-math.pi, math.pi) / unit for _ in range(3)]
        numbers = dict(zip(profile.box3d.slots, [*centre, *sizes, *angles], strict=True))
        text = template.box.format(**numbers, frame=0, number=0, label="", score="")
        parsed = parse_boxes3d(template.reply.format(boxes=text), profile, scene)
        assert parsed.status == "ok", text
        turn = Rotation.from_euler(order, [angle * unit for angle in angles]).as_matrix()
        local = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
        points = (local * sizes) @ turn.T + centre
        shift = np.zeros(3)
        if DECLARED[name]["frame"] == "camera":
            shift = np.asarray(scene.frames[0].pose)[:3, 3]
        points = points @ turn_to_scene(name, scene).T + shift
        assert np.abs(corners(parsed.boxes[0]) - points).max() < 1e-9


@pytest.mark.parametrize(
    "order", ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "xyz", "xzy", "yxz", "yzx", "zxy", "zyx"]
)
def test_euler_angles_of_any_order_give_the_rotation(order: str) -> None:
    rotations = Rotation.random(50, random_state=5).as_matrix()
    angles = euler_angles(rotations, order)
    assert np.abs(Rotation.from_euler(order, angles).as_matrix() - rotations).max() < 1e-12
    locked = Rotation.from_euler(order, [[0.3, math.pi / 2, -1.1], [2, -math.pi / 2, 0]])
    back = Rotation.from_euler(order, euler_angles(locked.as_matrix(), order))
    assert np.abs(back.as_matrix() - locked.as_matrix()).max() < 1e-7


def test_parsing_takes_a_reply_a_profile_and_the_geometry_of_the_scene() -> None:
    assert list(inspect.signature(parse_boxes3d).parameters) == ["reply", "profile", "scene"]
    assert [field.name for field in fields(Scene)] == ["frames", "bounds", "candidates"]
    assert [field.name for field in fields(Frame)] == ["pose", "intrinsics", "width", "height"]


def test_a_long_list_is_read_up_to_the_limit() -> None:
    boxes = [{"bbox_3d": [i, 0, 0, 1, 1, 1, 0, 0, 0], "score": i} for i in range(5 * MAX_BOXES)]
    parsed = parse_boxes3d(json.dumps(boxes), PROMPT, Scene())
    assert [box[0] for box in parsed.boxes] == list(range(MAX_BOXES))
    assert parsed.scores == tuple(range(MAX_BOXES))
    assert parsed.flags == ("too_many",)
    check(asdict(parsed), "records/parsed_boxes3d.json")
    whole = parse_boxes3d(json.dumps(boxes[:MAX_BOXES]), PROMPT, Scene())
    assert replace(parsed, flags=()) == whole


def test_what_is_read_is_what_the_metrics_take() -> None:
    reply = (
        '[{"bbox_3d": [0, 0, 0, 1, 1, 1, 0, 0, 0], "score": 0.2}, {"bbox_3d": [9, 9], "score": 1},'
        ' {"bbox_3d": [5, 5, 5, 1, 1, 1, 0, 0, 0], "score": 0.8}]'
    )
    parsed = parse_boxes3d(reply, PROMPT, Scene())
    record = sample_record(
        "0",
        parsed.status,
        "VG_Single_EQ",
        preds=parsed.boxes,
        scores=parsed.scores,
        targets=[[0, 0, 0, 1, 1, 1, 0, 0, 0]],
    )
    assert (record["scores"], record["best_ious"]) == ([0.8, 0.2], [0.0, 1.0])


@pytest.mark.parametrize("name", profile_names("box3d"))
def test_whatever_stands_in_a_reply_is_read_without_an_exception(name: str) -> None:
    profile, rng = load_profile(name), random.Random(name)
    pieces = ["[", "{", "}", "]", ",", ":", '"', "bbox_3d", "box_3d", "frame", "1", "-1e999", "NaN"]
    pieces += ["<3dbbox>", "</3dbbox>", "<obj>", "</obj>", "bbox_0=Bbox(", ")", "null", " ", "\n"]
    for _ in range(300):
        reply = "".join(rng.choice(pieces) for _ in range(rng.randrange(40)))
        parsed = parse_boxes3d(reply, profile, EXAMPLE_SCENE)
        check(asdict(parsed), "records/parsed_boxes3d.json")
        assert is_valid(np.reshape(parsed.boxes, (-1, 9))).all()


@pytest.mark.parametrize(
    "text",
    [
        '{"bbox_3d": ' * 5_000,
        "[" * 20_000,
        "<3dbbox>" * 50_000,
        "<3dbbox>" + "1 " * 100_000 + "</3dbbox>",
        "Bbox(" * 50_000,
        "bbox_0=Bbox(" + "1," * 100_000 + ")",
        "Bbox" + " " * 100_000 + "(",
        "13, " * 100_000,
        "1" * 200_000,
        "<OBJ" * 50_000,
    ],
    ids=lambda text: text[:12],
)
def test_endless_replies_are_read(text: str) -> None:
    scene = replace(EXAMPLE_SCENE, candidates={13: EXAMPLE_BOX})
    for name in profile_names("box3d"):
        assert parse_boxes3d(text, load_profile(name), EXAMPLE_SCENE).status != "ok"
    for name in profile_names("candidates"):
        parsed = parse_boxes3d(text, load_profile(name), scene)
        assert len(parsed.boxes) in (0, MAX_BOXES)
