"""Profiles: data that meets its schema, examples that are right, names and options that exist."""

import json
from importlib.resources import files

import pytest

from lmms_eval_grounding.contract import validator
from lmms_eval_grounding.corpus import load_cases
from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.orders import ORDERS
from lmms_eval_grounding.parsing.profile import ProfileError, load_profile, profile_names
from lmms_eval_grounding.parsing.syntaxes import SYNTAXES
from lmms_eval_grounding.writing.boxes import write_box

DECLARED = json.loads(
    files("lmms_eval_grounding.parsing").joinpath("profiles.json").read_text("utf-8")
)
BOX_SCHEMA = json.loads(
    files("lmms_eval_grounding.spec").joinpath("profile.json").read_text("utf-8")
)["$defs"]["box"]["properties"]

# The box that every example gives, in an image of 800 x 800.
EXAMPLE_BOX = (160.0, 240.0, 600.0, 560.0)
# The largest error of a coordinate, in pixels, where it is not half a step of whole per mille.
EXAMPLE_ERRORS = {
    "unit": 0.4,
    "percent": 0.4,
    "kimi_vl": 0.4,
    "florence2": 0.4,
    "llava": 4,
    "llava_padded": 4,
    "shikra": 0.4,
    "earthgpt": 0.4,
    "minigpt_v2": 4,
    "lhrs_bot": 4,
    "geochat": 4,
    "earthdial": 4,
    "polyformer": 800 / 63 / 2,
    "kosmos2": 800 / 32 / 2,
    "ufo": 800 / 896 * 3 / 4,  # a centre and a size are rounded
}


def test_profiles_meet_their_schema() -> None:
    errors = [
        f"{e.json_path}: {e.message}" for e in validator("profile.json").iter_errors(DECLARED)
    ]
    assert errors == []


def test_schema_names_the_orders_and_syntaxes_that_there_are() -> None:
    assert BOX_SCHEMA["order"]["enum"] == list(ORDERS)
    assert BOX_SCHEMA["syntaxes"]["items"]["enum"] == list(SYNTAXES)


def test_every_order_and_every_syntax_has_a_profile() -> None:
    boxes = [DECLARED[name]["box"] for name in profile_names("box")]
    assert {box["order"] for box in boxes} == set(ORDERS)
    assert {syntax for box in boxes for syntax in box["syntaxes"]} == set(SYNTAXES)


@pytest.mark.parametrize("name", profile_names("box"))
def test_example_is_a_reply_with_the_box_of_all_examples(name: str) -> None:
    profile = load_profile(name)
    parsed = parse_boxes(profile.box.example, profile, 800, 800)
    if name == "molmo":
        assert (parsed.status, parsed.reason) == ("malformed", "point")
        return
    assert (parsed.status, parsed.flags) == ("ok", ())
    (box,) = parsed.boxes
    bound = EXAMPLE_ERRORS.get(name, 0.5) + 1e-9
    assert all(abs(a - b) <= bound for a, b in zip(box, EXAMPLE_BOX, strict=True)), (
        f"{box} is not within {bound} px of {EXAMPLE_BOX}; EXAMPLE_ERRORS has the bounds of "
        "profiles with coarser numbers"
    )


@pytest.mark.parametrize("name", profile_names("box"))
def test_example_is_what_the_profile_writes(name: str) -> None:
    profile = load_profile(name)
    assert write_box(EXAMPLE_BOX, profile, 800, 800, "storage tank") == profile.box.example


@pytest.mark.parametrize("name", profile_names("box"))
def test_profile_has_a_golden_case(name: str) -> None:
    used = {case.input["profile"].partition(":")[0] for case in load_cases("parsers")}
    assert name in used, f"no case in golden_cases/parsers/ has the profile {name}"


def test_an_unknown_profile_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(ProfileError, match="unknown profile 'qwen9'; choose one of: prompt, pixel"):
        load_profile("qwen9")


@pytest.mark.parametrize(
    "name",
    [
        "qwen2_5_vl:min_pixels=3136",
        "qwen2_5_vl:min_pixels=3136,max_pixels=12845056",
        "mimo_vl:max_pixels=1003520",
    ],
)
def test_options_are_part_of_the_name(name: str) -> None:
    profile = load_profile(f" {name} ")
    assert profile.name == name
    assert load_profile(profile.name) == profile


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("qwen3_vl:max_pixels=1003520", "only profiles in resized pixels take options"),
        ("qwen2_5_vl:max_pixel=1003520", "only profiles in resized pixels take options"),
        ("qwen2_5_vl:max_pixels", "are positive integers"),
        ("qwen2_5_vl:max_pixels=0", "are positive integers"),
        ("qwen2_5_vl:max_pixels=-3", "are positive integers"),
        ("qwen2_5_vl:max_pixels=1e6", "are positive integers"),
        ("qwen2_5_vl:max_pixels=１００３５２０", "are positive integers"),
        (f"qwen2_5_vl:max_pixels={'9' * 400}", "are positive integers"),
        ("qwen2_5_vl:min_pixels=3136,max_pixels=784", "min_pixels is larger than max_pixels"),
        ("qwen2_5_vl:max_pixels=784,max_pixels=1003520", "max_pixels is given twice"),
        ("qwen2_5_vl:", "only profiles in resized pixels take options"),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(ProfileError, match=complaint):
        load_profile(name)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("qwen2_5_vl", [(28, 3136, 12845056), (28, 200704, 3136000)]),
        ("qwen2_5_vl_native", [(28, 3136, 3136000)]),
    ],
)
def test_limits_of_a_run_are_those_of_the_last_step(
    name: str, steps: list[tuple[int, int, int]]
) -> None:
    assert list(load_profile(f"{name}:max_pixels=3136000").box.space.resizes) == steps


@pytest.mark.parametrize("size", [(800, 800), (37, 1200), (300, 200), (1920, 1080), (6000, 4000)])
def test_resize_step_is_that_of_qwen(size: tuple[int, int]) -> None:
    qwen = pytest.importorskip("qwen_vl_utils", reason="qwen-vl-utils is not installed")
    width, height = size
    for name in ("qwen2_5_vl_simple", "qwen2_5_vl_native", "mimo_vl"):
        (step,) = load_profile(name).box.space.resizes
        high, wide = qwen.vision_process.smart_resize(height, width, *step)
        assert step(width, height) == (wide, high)
