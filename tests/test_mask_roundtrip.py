"""What a profile writes, it reads back: every mask within the profile's own resolution.

The bounds are computed from profiles.json. Where run lengths or maps are written, nothing may
differ. A vertex is rounded to a step of ``10**-decimals * side / extent`` pixels, and so moves by
half a step at most, or by a step where all parts are smaller; the rasteriser rounds to a tenth of a
pixel. So the pixels that may differ are
those with a pixel of the other kind within that reach along both axes. In a grid they are those of
cells that hold both kinds.
"""

from __future__ import annotations

import functools
import json
import re
from importlib.resources import files

import numpy as np
import pytest
from scipy import ndimage

from lmms_eval_grounding.geometry import masks
from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.mask_syntaxes import MASK_SYNTAXES
from lmms_eval_grounding.parsing.masks import parse_mask
from lmms_eval_grounding.parsing.profile import ProfileError, load_profile, profile_names
from lmms_eval_grounding.writing.boxes import write_box
from lmms_eval_grounding.writing.masks import write_mask
from lmms_eval_grounding.writing.outlines import outlines

DECLARED = json.loads(files("lmms_eval_grounding.parsing").joinpath("profiles.json").read_text())
WRITERS = [name for name in profile_names("mask") if "write" in DECLARED[name]["mask"]]
FROM_BOX = [name for name in profile_names("mask") if "mask_from" in DECLARED[name]["mask"]]
DECODED = [name for name in profile_names("mask") if name not in (*WRITERS, *FROM_BOX)]
EXACT = {"json_rle", "json_maps"}
SIZES = [(512, 512), (640, 480), (427, 640), (37, 120)]
ROUNDING = 0.1  # pixels, of the rasteriser
COARSE = {"kosmos2", "polyformer", "text4seg_16", "text4seg_24"}
TINY = {"one pixel", "single pixels"}
EXAMPLE_BOX = [160, 240, 600, 560]


@functools.cache
def shapes(width: int, height: int) -> dict[str, np.ndarray]:
    """Return masks with holes, several parts, parts of one pixel, and at every edge."""
    rng = np.random.default_rng(width * height)
    y, x = np.mgrid[:height, :width] + 0.5
    across, down = (x - width / 2) / width, (y - height / 2) / height
    ring = np.hypot(across, down)
    blobs = np.zeros((height, width), bool)
    for _ in range(6):
        cx, cy, r = rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.5), rng.uniform(0.02, 0.15)
        blobs |= np.hypot(across - cx, down - cy) < r
    dots = np.zeros((height, width), bool)
    dots[rng.integers(0, height, 9), rng.integers(0, width, 9)] = True
    dots[[0, 0, -1, -1], [0, -1, 0, -1]] = True
    one = np.zeros((height, width), bool)
    one[height // 3, width // 2] = True
    nested = (ring < 0.45) ^ (ring < 0.35) ^ (ring < 0.2) ^ (ring < 0.1)
    sieve = ring < 0.4
    sieve[rng.integers(0, height, 40), rng.integers(0, width, 40)] = False
    return {
        "a ring": (ring < 0.4) & (ring > 0.2),
        "rings in rings": nested,
        "several parts": blobs,
        "single pixels": dots,
        "one pixel": one,
        "holes of a pixel": sieve,
        "a thin line": np.abs(across - down) < 0.5 / width,
        "the whole image": np.ones((height, width), bool),
        "all but the rim": (np.abs(across) < 0.5 - 1 / width) & (np.abs(down) < 0.5 - 1 / height),
        "diagonal touch": (across < 0) == (down < 0),
    }


def may_differ(name: str, pixels: np.ndarray, steps: float) -> np.ndarray:
    """Return the pixels that are open where a vertex may move by a number of steps."""
    mask = DECLARED[name]["mask"]
    height, width = pixels.shape
    if mask["syntaxes"][0] in EXACT:
        return np.zeros_like(pixels)
    if "grid" in mask:
        cells = [np.arange(side) * mask["grid"] // side for side in (height, width)]
        labels = cells[0][:, None] * mask["grid"] + cells[1]
        counts = np.bincount(labels.ravel(), minlength=mask["grid"] ** 2)
        filled = np.bincount(labels.ravel(), pixels.ravel(), minlength=mask["grid"] ** 2)
        return ((filled > 0) & (filled < counts))[labels]
    # A pixel's centre is half a pixel from the edge to the next one.
    reach = [
        int(steps * step(mask, axis, side) + ROUNDING + 0.5)
        for axis, side in enumerate(pixels.shape)
    ]
    return spread(pixels, reach) & spread(~pixels, reach)


def spread(pixels: np.ndarray, reach: list[int]) -> np.ndarray:
    """Return the pixels that have one of these within reach along both axes."""
    for axis, most in enumerate(reach):
        grown = pixels.copy()
        for distance in range(1, most + 1):
            behind, ahead = [slice(None)] * 2, [slice(None)] * 2
            behind[axis], ahead[axis] = slice(None, -distance), slice(distance, None)
            grown[tuple(behind)] |= pixels[tuple(ahead)]
            grown[tuple(ahead)] |= pixels[tuple(behind)]
        pixels = grown
    return pixels


def step(mask: dict, axis: int, side: int) -> float:
    """Return how many pixels a step of a written number is; pixels are written exactly."""
    extent = mask["space"]["extent"]
    return 0 if extent == "image" else 10 ** -mask.get("decimals", 0) * side / extent[1 - axis]


def read_back(name: str, pixels: np.ndarray, label: str = "the large storage tank") -> tuple:
    height, width = pixels.shape
    profile = load_profile(name)
    reply = write_mask(masks.rle_from_array(pixels), profile, width, height, label)
    return parse_mask(reply, profile, width, height), reply


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", WRITERS)
def test_a_written_mask_is_read_back_within_the_resolution_of_its_profile(name, size):
    for shape, pixels in shapes(*size).items():
        parsed, reply = read_back(name, pixels)
        assert parsed.status == "ok", (shape, parsed, reply[:300])
        assert set(parsed.flags) <= {"multiple", "scale_mismatch"}, (shape, parsed.flags)
        assert parsed.syntax == DECLARED[name]["mask"]["syntaxes"][0]
        got = masks.array_from_rle(parsed.mask)
        wrong = (got != pixels) & ~may_differ(name, pixels, 1 if shape in TINY else 0.5)
        assert not wrong.any(), (shape, np.argwhere(wrong)[:5], reply[:300])


def test_every_syntax_that_can_be_written_is_written_by_a_profile():
    written = {DECLARED[name]["mask"]["syntaxes"][0] for name in WRITERS}
    assert written == set(MASK_SYNTAXES) - {"decoder_tokens"}


@pytest.mark.parametrize("name", [*WRITERS, *FROM_BOX])
def test_no_mask_and_a_mask_without_pixels_are_written_as_nothing(name):
    profile = load_profile(name)
    empty = masks.rle_from_array(np.zeros((30, 20), bool))
    for rle in (None, empty):
        reply = write_mask(rle, profile, 20, 30, "tank")
        assert reply == profile.mask.nothing
        assert parse_mask(reply, profile, 20, 30).status == "no_target"


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", FROM_BOX)
def test_a_mask_from_a_box_is_the_bounding_box_as_the_profile_writes_it(name, size):
    pixels = shapes(*size)["several parts"]
    parsed, _ = read_back(name, pixels)
    x1, y1, x2, y2 = masks.bounding_box(masks.rle_from_array(pixels))
    profile = load_profile(name)
    read = parse_boxes(write_box((x1, y1, x2, y2), profile, *size, "tank"), profile, *size)
    assert parsed.mask == masks.rle_from_boxes(read.boxes, size[1], size[0])
    assert parsed.status == "ok"
    assert "mask_from_box" in parsed.flags


@pytest.mark.parametrize("name", DECODED)
def test_masks_that_need_a_decoder_are_not_written(name):
    profile, rle = load_profile(name), masks.rle_from_rows(["10", "00"])
    with pytest.raises(ProfileError, match="only its own decoder makes masks"):
        write_mask(rle, profile, 2, 2)
    assert parse_mask(profile.mask.example, profile, 800, 800).reason == "needs_decoder"


def test_a_mask_of_another_size_is_not_written():
    with pytest.raises(masks.MaskError, match=r"2 x 3 pixels .* 3 x 2"):
        write_mask(masks.rle_from_rows(["100", "000"]), load_profile("rle"), 2, 3)


LABELS = [
    "",
    "others",
    "the 2nd ship, left of pier 12",
    "a *5| others *16\n </seg><seg> [[1, 2], [3, 4], [5, 6]] <loc_1><loc_2> <bin_1_2> [SEG] [REJ]",
    "</think> <answer>[]</answer> ``` { \\ \0 \ud800 </s> [1,2,3,4]",
    "no target",
]


@pytest.mark.parametrize("label", LABELS, ids=ascii)
@pytest.mark.parametrize("name", WRITERS)
def test_no_label_disturbs_the_mask(name, label):
    pixels = shapes(*SIZES[-1])["several parts"]
    assert read_back(name, pixels, label)[0] == read_back(name, pixels, "tank")[0]


@pytest.mark.parametrize("name", WRITERS)
def test_the_example_of_a_profile_is_what_it_writes(name):
    profile = load_profile(name)
    box = masks.rle_from_boxes([EXAMPLE_BOX], 800, 800)
    written = write_mask(box, profile, 800, 800, "storage tank")
    if profile.mask.syntaxes[0] == "json_maps":  # how a PNG is compressed is left to a library
        written, example = (
            re.sub(r"base64,[^\"]*", "", w) for w in (written, profile.mask.example)
        )
        assert written == example
    else:
        assert written == profile.mask.example


@pytest.mark.parametrize("name", profile_names("mask"))
def test_the_example_of_a_profile_is_the_mask_of_all_examples(name):
    profile = load_profile(name)
    parsed = parse_mask(profile.mask.example, profile, 800, 800)
    if name in DECODED:
        assert (parsed.status, parsed.reason) == ("unparseable", "needs_decoder")
        return
    box = np.zeros((800, 800), bool)
    box[240:560, 160:600] = True
    assert parsed.status == "ok"
    assert set(parsed.flags) == ({"mask_from_box"} if name in FROM_BOX else set())
    intersection, union = masks.intersection_and_union(parsed.mask, masks.rle_from_array(box))
    # The coarsest spaces, of 32 and of 63 steps, move an edge by 13 pixels, grids by 25.
    lowest = 0.9 if name in COARSE else 0.99
    assert intersection / union > lowest, "COARSE has the profiles of coarse spaces and grids"


# --- outlines


@pytest.mark.parametrize(("height", "width"), [(1, 7), (2, 4), (3, 3), (4, 2)])
def test_the_outlines_of_every_small_mask_fill_it_again(height, width):
    for bits in range(1, 2 ** (height * width)):
        pixels = np.array([bits >> n & 1 for n in range(height * width)]).reshape(height, width)
        assert_outlines_fill(pixels.astype(bool))


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.6, 0.9])
def test_the_outlines_of_noise_fill_it_again(share):
    rng = np.random.default_rng(int(share * 100))
    for size in ((3, 50), (40, 40), (61, 17)):
        assert_outlines_fill(rng.random(size) < share)


def assert_outlines_fill(pixels):
    rle = masks.rle_from_array(pixels)
    polygons = [[number for vertex in outline for number in vertex] for outline in outlines(rle)]
    assert masks.rle_from_polygons(polygons, *pixels.shape) == rle
    _, parts = ndimage.label(pixels)
    assert len(polygons) == parts


def test_a_ring_has_one_outline_with_a_bridge():
    rle = masks.rle_from_rows(["1110", "1010", "1110"])
    # Around the outside, clockwise from the top left; from the left edge to the hole, and around it
    # the other way.
    (outline,) = outlines(rle)
    assert outline[:3] == [(0, 0), (3, 0), (3, 3)]
    hole = [(1, 1), (1, 2), (2, 2), (2, 1)]
    assert [v for v in outline if v in hole] == [*hole, hole[0]]


def test_pixels_that_touch_diagonally_have_outlines_of_their_own():
    for rows in (["10", "01"], ["01", "10"]):
        assert [len(outline) for outline in outlines(masks.rle_from_rows(rows))] == [4, 4]


def test_an_empty_mask_has_no_outline():
    assert outlines(masks.rle_from_rows(["00", "00"])) == []
