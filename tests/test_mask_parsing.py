"""What golden cases of mask parsing cannot hold: contracts, limits, profiles, names in step."""

import base64
import inspect
import io
import json
import struct
import tracemalloc
import zlib
from dataclasses import asdict

import numpy as np
import pytest
import yaml
from conftest import REPOSITORY
from PIL import Image, ImageFile

from lmms_eval_grounding.benchmarks import rsvg
from lmms_eval_grounding.contract import check, validator
from lmms_eval_grounding.corpus import load_cases, read_json, reply_text, spec_names
from lmms_eval_grounding.geometry import masks
from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.mask_polygons import place_polygon
from lmms_eval_grounding.parsing.mask_syntaxes import MASK_SYNTAXES
from lmms_eval_grounding.parsing.masks import parse_mask
from lmms_eval_grounding.parsing.profile import ProfileError, load_profile, profile_names
from lmms_eval_grounding.parsing.syntaxes import Row

CASES = load_cases("parsers/masks")
SHARED_RULES = {"mask_answers", "filled_boxes"}
MASK_PROFILES = {name: load_profile(name) for name in profile_names("mask")}


# --- names in step


def test_syntaxes_specs_and_case_files_have_the_same_names() -> None:
    names = {spec.rpartition("/")[2] for spec in spec_names() if spec.startswith("parsers/masks/")}
    assert names == set(MASK_SYNTAXES) | SHARED_RULES


def test_schema_names_the_syntaxes_that_there_are() -> None:
    mask = read_json("spec", "profile.json")["$defs"]["mask"]["properties"]
    assert mask["syntaxes"]["items"]["enum"] == list(MASK_SYNTAXES)
    declared = {name for p in MASK_PROFILES.values() for name in p.mask.syntaxes}
    assert declared == set(MASK_SYNTAXES)


@pytest.mark.parametrize("name", MASK_SYNTAXES)
def test_syntax_is_recognised_in_its_own_cases(name: str) -> None:
    named = {c.expected.get("syntax") for c in CASES if c.spec == f"parsers/masks/{name}"}
    assert name in named


def test_every_profile_with_masks_of_its_own_has_a_golden_case() -> None:
    used = {case.input["profile"].partition(":")[0] for case in CASES}
    missing = {name for name, p in MASK_PROFILES.items() if not p.mask.from_box} - used
    assert not missing, f"no case in golden_cases/parsers/masks/ has the profiles {missing}"


# --- contract


def test_every_reading_of_a_golden_case_keeps_the_contract() -> None:
    for case in CASES:
        given = case.input
        parsed = parse_mask(
            reply_text(given["reply"]),
            load_profile(given["profile"]),
            given["width"],
            given["height"],
        )
        check(asdict(parsed), "records/parsed_mask.json")
        if parsed.mask:
            assert parsed.mask["size"] == [given["height"], given["width"]]
            assert masks.rle_from_coco(parsed.mask) == parsed.mask


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "ok", "mask": None, "parts": 1},
        {"status": "no_target", "mask": {"size": [1, 1], "counts": "1"}, "parts": 0},
        {"status": "malformed", "reason": None},
        {"status": "no_target", "reason": "bad_mask"},
        {"status": "ok", "mask": {"size": [1, 1], "counts": "1"}, "parts": 0},
    ],
)
def test_contract_refuses_contradictions(wrong: dict[str, object]) -> None:
    sound = {"status": "no_target", "mask": None, "flags": [], "reason": None, "syntax": None}
    assert list(validator("records/parsed_mask.json").iter_errors({**sound, "parts": 0, **wrong}))


def test_parser_takes_no_target() -> None:
    taken = list(inspect.signature(parse_mask).parameters)
    assert taken == ["reply", "profile", "width", "height"]


# --- profiles and their options


@pytest.mark.parametrize("name", sorted(set(profile_names()) - set(MASK_PROFILES)))
def test_a_profile_without_masks_refuses_them_in_one_sentence(name: str) -> None:
    with pytest.raises(ProfileError) as refusal:
        parse_mask("[]", load_profile(name), 6, 4)
    message = str(refusal.value)
    assert message.startswith(f"profile '{name}' does not say how a mask is written; choose one of")
    assert "polygon_pixel" in message
    assert "molmo" not in message.partition("choose")[2]
    assert "\n" not in message


@pytest.mark.parametrize("name", sorted(set(profile_names()) - set(profile_names("box"))))
def test_a_profile_without_boxes_refuses_them_in_one_sentence(name: str) -> None:
    assert load_profile(name).box is None
    with pytest.raises(ProfileError, match=f"'{name}' does not say how a box is written; choose"):
        parse_boxes("[1, 2, 3, 4]", load_profile(name), 6, 4)


def test_a_box_task_refuses_a_profile_without_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "lisa")
    doc = {"id": "0", "expression": "a ship", "bbox": [1, 2, 3, 4], "width": 8, "height": 8}
    with pytest.raises(SystemExit, match=r"GROUNDING_PROFILE: .*'lisa'.* choose one of: prompt, "):
        rsvg.doc_to_text(doc)


@pytest.mark.parametrize(
    "name", ["sam3:score_threshold=0.5", "gemini:mask_from=box", "paligemma:mask_from=box"]
)
def test_options_are_part_of_the_name(name: str) -> None:
    assert load_profile(name).name == name


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("rle:score_threshold=0.5", "only profiles whose masks come with scores"),
        ("sam3:score_threshold=1.5", "a number from 0 to 1"),
        ("sam3:score_threshold=nan", "a number from 0 to 1"),
        ("sam3:score_threshold", "a number from 0 to 1"),
        ("prompt:mask_from=box", "only profiles whose masks come with boxes"),
        ("florence2:mask_from=box", "only profiles whose masks come with boxes"),
        ("gemini:mask_from=polygon", "only as in gemini:mask_from=box"),
        ("lisa:threshold=0.5", "unknown options: threshold"),
        ("molmo:mask_from=box", "only profiles in resized pixels take options"),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(ProfileError, match=complaint):
        load_profile(name)


def test_limits_of_resized_pixels_hold_for_filled_boxes() -> None:
    reply = '[{"bbox_2d": [0, 0, 560, 392]}]'
    wrapper = load_profile("qwen2_5_vl_simple")  # 300 x 200 becomes 560 x 392
    native = load_profile("qwen2_5_vl_simple:min_pixels=3136")  # 308 x 196
    assert masks.area(parse_mask(reply, wrapper, 300, 200).mask) == 300 * 200
    assert parse_mask(reply, native, 300, 200).reason == "out_of_space"


@pytest.mark.parametrize("benchmark", ["gres", "refsegrs"])
def test_an_echoed_prompt_is_no_answer(benchmark: str) -> None:
    text = (REPOSITORY / "tasks" / benchmark / "prompts.yaml").read_text("utf-8")
    prompts = yaml.safe_load(text)["prompts"]
    assert set(prompts) == set(MASK_PROFILES)
    for name, prompt in prompts.items():
        parsed = parse_mask(prompt.replace("{expression}", "a ship"), load_profile(name), 800, 600)
        assert (parsed.status, parsed.flags) == (
            "unparseable",
            ("mask_from_box",) if MASK_PROFILES[name].mask.from_box else (),
        ), name


# --- what is too large, or needs a large image, for a case


def test_backticks_in_run_lengths_are_no_fence() -> None:
    # A run of 16 + 16 * 32 + 16 * 1024 = 16,912 pixels is written ```0.
    pixels = np.zeros((256, 256), bool)
    pixels.T.flat[16_912:20_000] = True
    rle = masks.rle_from_array(pixels)
    assert rle["counts"].startswith("```0")
    fenced = f"Here:\n```json\n{json.dumps({'masks': [rle]}, indent=1)}\n```\nThat is all."
    for reply in (json.dumps(rle), f"```json\n{json.dumps(rle)}\n```", fenced):
        assert parse_mask(reply, load_profile("rle"), 256, 256).mask == rle


def test_a_bin_of_florence_means_its_centre() -> None:
    row = Row((100.0, 200.0, 999.0, 200.0, 999.0, 999.0))
    part = place_polygon(row, load_profile("florence2").mask, 2000, 1000)
    assert part.polygon == pytest.approx((201, 200.5, 1999, 200.5, 1999, 999.5))


def test_a_map_that_is_cut_is_bad_where_the_host_lets_images_be_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)  # lmms-eval 0.7.3 sets it
    reply, profile = map_reply(png_of(np.full((64, 64), 255, np.uint8))[:-30]), "gemini"
    parsed = parse_mask(reply, load_profile(profile), 100, 100)
    assert (parsed.status, parsed.reason) == ("malformed", "bad_mask")


def png_of(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    return file.getvalue()


def map_reply(*pngs: bytes) -> str:
    maps = [base64.b64encode(png).decode() for png in pngs]
    return json.dumps([{"box_2d": [0, 0, 1000, 1000], "mask": text} for text in maps])


def bomb(side: int) -> bytes:
    """Return a PNG of zeros, which unpacks to a thousand times its size."""
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    packed = zlib.compress(bytes(side * (side + 1)), 9)
    chunks = [(b"IHDR", header), (b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def test_maps_may_hold_so_many_values_and_no_more() -> None:
    # 2 ** 26 values in all: four maps of 4096 x 4096 leave none for the small one.
    small, large = bomb(64), bomb(4096)
    parsed = parse_mask(
        map_reply(large, large, large, large, small), load_profile("gemini"), 50, 50
    )
    assert (parsed.status, parsed.parts, parsed.flags) == ("ok", 4, ("multiple", "partial"))


HOSTILE = {
    "brackets": ("rle", "[" * 50_000),
    "objects": ("rle", '{"a":' * 10_000),
    "small masks": ("rle", '{"size": [4, 5], "counts": "92203"},' * 2_000),
    "a long string of counts": ("rle", '{"size": [4, 5], "counts": "' + "0" * 300_000 + '"}'),
    "a long list of counts": ("rle", '{"size": [4, 5], "counts": [' + "0, " * 20_000 + "20]}"),
    "numbers under a key": ("rle", '{"masks": [' + "1, " * 20_000 + "1]}"),
    "small polygons": ("prompt", '{"polygons": [' + "[1,1,4,1,4,3]," * 1_500 + "[]]}"),
    "a long polygon": ("prompt", '{"polygons": [' + "1, 999, 2, 1, " * 5_000 + "1]}"),
    "pairs": ("prompt", '{"polygons": [' + "[1, 999], [2, 1], " * 3_000 + "[1, 1]]}"),
    "maps without PNG": ("gemini", '{"box_2d": [0,0,9,9], "mask": "AAAA"},' * 2_000),
    "grids": ("text4seg_16", "<seg>" * 20_000),
    "runs of a grid": ("text4seg_16", "<seg>" + "others *16\n" * 6_000 + "</seg>"),
    "stars": ("text4seg_16", "<seg>" + "*" * 300_000 + "</seg>"),
    "bars": ("text4seg_16", "<seg>" + "a *1|" * 12_000 + "</seg>"),
    "blanks in a grid": ("text4seg_16", "<seg>* " + " " * 300_000 + "1|</seg>"),
    "location tokens": ("florence2", "<loc_5>" * 10_000),
    "runs of location tokens": ("florence2", "<loc_1><loc_2><loc_3><loc_4><loc_9><loc_5>;" * 1_500),
    "bins": ("polyformer", "<bin_1_2> <separator> " * 3_000),
    "boxes": ("qwen3_vl", '{"bbox_2d": [100, 100, 900, 900]},' * 2_000),
    "tokens": ("lisa", "[SEG]" * 10_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_endless_reply_takes_memory_in_proportion_to_its_length(name: str) -> None:
    profile, reply = HOSTILE[name]
    tracemalloc.start()
    parsed = parse_mask(reply, load_profile(profile), 640, 480)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    check(asdict(parsed), "records/parsed_mask.json")
    assert parsed.status != "no_target"
    assert peak < 300 * len(reply) + 5_000_000, f"{peak / len(reply):.0f} bytes a character"


@pytest.mark.parametrize("name", MASK_PROFILES)
def test_an_image_that_is_too_large_for_a_mask_raises_nothing(name: str) -> None:
    profile = MASK_PROFILES[name]
    parsed = parse_mask(profile.mask.example, profile, 70_000, 70_000)
    check(asdict(parsed), "records/parsed_mask.json")
    assert parsed.status in ("malformed", "unparseable")


def test_a_reply_of_20_million_characters_is_refused_unread() -> None:
    reply = '{"polygons": [' + "[1,1,4,1,4,3]," * 1_500_000 + "[]]}"
    tracemalloc.start()
    parsed = parse_mask(reply, load_profile("prompt"), 640, 480)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(reply) > 20_000_000
    assert (parsed.status, parsed.reason) == ("unparseable", "too_long")
    assert peak < 30_000_000  # one copy of the reply without blanks around it
