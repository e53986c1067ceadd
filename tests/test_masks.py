"""Masks as run-length encodings: the reading of untrusted ones, and exact pixel counts.

Expected values are derived by hand in the comments, from dense numpy arrays, or from pycocotools
on encodings that are known to be valid.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import math
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile
from pycocotools import mask as coco_mask

from lmms_eval_grounding.geometry import masks, polygons
from lmms_eval_grounding.geometry.masks import MaskError

# Runs 9, 2, 2, 2, 5 down the columns of 4 rows: pixels 9, 10 are column 2, rows 1 and 2; pixels
# 13, 14 are column 3, rows 1 and 2. In the text the fourth run is 2 - 2 = 0, the fifth 5 - 2 = 3.
EXAMPLE = {"size": [4, 5], "counts": "92203"}
EXAMPLE_ROWS = ["00000", "00110", "00110", "00000"]

seeded = functools.partial(settings, derandomize=True, deadline=None)
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def dense(rle: masks.Rle) -> np.ndarray:
    """Return the pixels by pycocotools, for encodings that are known to be valid."""
    return coco_mask.decode(rle).astype(bool)


def sized(counts: object, height: int = 4, width: int = 5) -> dict[str, object]:
    return {"size": [height, width], "counts": counts}


# --- the encoding


def test_example_read_column_by_column():
    assert masks.rows_from_rle(EXAMPLE) == EXAMPLE_ROWS
    assert masks.area(EXAMPLE) == 4
    x1, y1, x2, y2 = masks.bounding_box(EXAMPLE)
    assert (x1, y1, x2 - x1, y2 - y1) == (2, 1, 2, 2)


def test_runs_go_down_the_columns_not_along_the_rows():
    # 1 + 2 + 3 pixels of 3 rows and 2 columns: column 0 holds 0, 1, 1.
    rle = masks.rle_from_coco(sized([1, 2, 3], 3, 2))
    assert masks.rows_from_rle(rle) == ["00", "10", "10"]
    assert masks.rows_from_rle(rle) != ["01", "10", "00"]


@pytest.mark.parametrize(
    ("runs", "counts", "size"),
    [
        # 9, 5, 2, then 3 - 5 = -2 (30: "N") and 1 - 2 = -1 (31: "O").
        ([9, 5, 2, 3, 1], "952NO", [4, 5]),
        # 1000 = 8 + 31 * 32; the top bit of 31 is no sign, so a group of zeros follows: "Xo0".
        # 50 = 18 + 32: "b1". 8950 = 22 + 23 * 32 + 8 * 1024: "fg8".
        ([1000, 50, 8950], "Xo0b1fg8", [100, 100]),
        # 17 = 17 + 0 * 32, "a0", then 1 - 17 = -16 (16: "@"), the least number of one group.
        ([1, 17, 1, 1], "1a01@", [4, 5]),
        ([20], "d0", [4, 5]),  # 20 = 20 + 0 * 32, with the top bit set
        ([0, 20], "0d0", [4, 5]),
        ([0, 1], "01", [1, 1]),
    ],
)
def test_text_of_counts(runs, counts, size):
    rle = {"size": size, "counts": counts}
    assert masks.rle_from_coco({"size": size, "counts": runs}) == rle
    assert masks.rle_from_coco(rle) == rle
    assert masks.rle_from_coco({"size": size, "counts": counts.encode()}) == rle
    assert masks.area(rle) == sum(runs[1::2])


def test_first_pixel_needs_an_empty_run_of_background():
    rle = masks.rle_from_rows(["10", "00"])
    assert rle == masks.rle_from_coco(sized([0, 1, 3], 2, 2))
    assert masks.rows_from_rle(masks.rle_from_coco(sized([1, 3], 2, 2))) == ["01", "11"]


@pytest.mark.parametrize(
    ("given_counts", "canonical"),
    [
        ([9, 1, 0, 1, 2, 2, 5], "92203"),  # an empty run of background joins two runs
        ([4, 0, 5, 2, 2, 2, 5], "92203"),  # an empty run of foreground
        ([9, 2, 2, 2, 5, 0], "92203"),  # an empty run at the end
        ([9, 0, 0, 2, 2, 2, 5], "92203"),
        ("Y02203", "92203"),  # 9 with a superfluous group of zeros
        ("952nOO", "952NO"),  # -2 with a superfluous group of ones
        ("920000O03", None),  # 9, 2, 0, 2, 0, 2, -1
    ],
)
def test_equal_masks_have_equal_counts(given_counts, canonical):
    if canonical is None:
        with pytest.raises(MaskError, match="-1"):
            masks.rle_from_coco(sized(given_counts))
    else:
        assert masks.rle_from_coco(sized(given_counts))["counts"] == canonical


def test_json_round_trip():
    rle = masks.rle_from_coco(sized([9, 2, 2, 2, 5]))
    assert json.loads(json.dumps(rle, allow_nan=False)) == EXAMPLE == rle
    assert masks.area(json.loads(json.dumps(rle))) == 4


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([9, 2, 2, 2, 50], "run of 50"),
        ([9, 2, 2, 2, 6], "add up to 21 .* 20"),
        ([9, 2], "add up to 11 .* 20"),
        ([], "empty"),
        ([9, -2, 13], "run of -2"),
        ([2**62 - 1, 2**62 - 1], "run of"),
        ([2**70, 20 - 2**70], "1180591620717411303424"),
        ([10**5000], "counts hold"),
        ([0] * 1000 + [20], "1001 runs"),
        ([9, 2, 2.5, 6.5], r"2\.5"),
        ([9, math.inf, 11], "inf"),
        ([9, True, 10], "True"),
        ([math.nan, 20], "nan"),
        ([None, 20], "None"),
        (["9", 11], "'9'"),
        ([[9, 11]], r"\[9, 11\]"),
        ("", "empty"),
        (b"", "empty"),
        ("92", "add up to 11 .* 20"),
        ("9220g1", "run of 57"),  # 23 + 1 * 32, and the 2 of two runs before
        ("922O3", "add up to 19"),
        ("9Nd0", "run of -2"),
        ("9220S", "cut off"),  # 0x20 of the last character says that another one follows
        ("922PPPPPP003", "7 characters"),
        ("o" * 50, "cut off"),
        ("0" * 100, "100 characters"),
        ("92 203", "character ' '"),
        ("92203\n", "code 10"),
        ("92203\0", "code 0"),
        ("92203p", "code 112"),
        ("9220/", "code 47"),
        ("9220٣", "not ASCII"),
        ("9220\ud800", "not ASCII"),
        (b"92203\xff", "code 255"),
        ("b'92203'", "decode"),
        ('b"92203"', "decode"),
        (None, "None"),
        (92203, "92203"),
        ({"0": 9}, "text or a list"),
    ],
)
def test_invalid_counts_are_refused_before_pycocotools_sees_them(counts, message, monkeypatch):
    for name in ("decode", "encode", "area", "iou", "merge", "toBbox", "frPyObjects"):
        monkeypatch.setattr(coco_mask, name, None)
    with pytest.raises(MaskError, match=message):
        masks.rle_from_coco(sized(counts))


@pytest.mark.parametrize("counts", ["92", "9220S", "", "b'92203'", 5, ["9"], [20]])
@pytest.mark.parametrize(
    "use",
    [
        masks.area,
        masks.bounding_box,
        masks.rows_from_rle,
        masks.array_from_rle,
        lambda rle: masks.union([EXAMPLE, rle], (4, 5)),
        lambda rle: masks.intersection_and_union(rle, EXAMPLE),
        lambda rle: masks.intersection_and_union(EXAMPLE, rle),
    ],
)
def test_every_function_reads_its_masks_strictly(counts, use):
    with pytest.raises(MaskError):
        use(sized(counts))


def test_whole_numbers_may_be_floats():
    rle = masks.rle_from_coco({"size": [4.0, 5.0], "counts": [9.0, 2, 2.0, 2, 5]}, (4, 5))
    assert rle == {"size": [4, 5], "counts": "92203"}
    assert [type(side) for side in rle["size"]] == [int, int]


@pytest.mark.parametrize(
    "size",
    [[0, 5], [4], [4, 5, 1], [4.5, 5], [True, 5], [-4, -5], [65_536, 1], [16_385, 16_385],
     ["4", "5"], None, "45", {"h": 4}, [math.nan, 5], [10**5000, 1], 20],
)  # fmt: skip
def test_invalid_sizes(size):
    with pytest.raises(MaskError, match="size is"):
        masks.rle_from_coco({"size": size, "counts": "92203"})


@pytest.mark.parametrize("value", [None, "92203", [4, 5], {"size": [4, 5]}, {"counts": "92203"}, 3])
def test_values_that_are_no_rle(value):
    with pytest.raises(MaskError, match="mapping"):
        masks.rle_from_coco(value)


def test_deeply_nested_value_is_shown_without_recursion():
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(MaskError):
        masks.rle_from_coco(sized(nested))
    with pytest.raises(MaskError):
        masks.rle_from_coco({"size": nested, "counts": "92203"})
    with pytest.raises(MaskError):
        masks.rle_from_polygons(nested, 4, 5)


def test_size_mismatch_names_both_sizes():
    wide, tall = masks.union([], (4, 5)), masks.union([], (5, 4))
    for use in (
        lambda: masks.rle_from_coco(wide, (5, 4)),
        lambda: masks.intersection_and_union(wide, tall),
        lambda: masks.intersection_and_union(tall, wide),
        lambda: masks.union([wide, tall], (4, 5)),
    ):
        with pytest.raises(MaskError, match=r"(?s)(4 x 5.*5 x 4|5 x 4.*4 x 5)"):
            use()
    # Neither is a mask of one row or column stretched over the others.
    with pytest.raises(MaskError, match="800 x 787"):
        masks.intersection_and_union(masks.union([], (800, 787)), masks.union([], (800, 800)))


# --- counts of pixels


@pytest.mark.parametrize(
    ("pred", "target", "expected"),
    [
        (["1100", "0000"], ["0110", "0000"], (1, 3)),
        (["11", "11"], ["10", "00"], (1, 4)),
        (["10", "01"], ["01", "10"], (0, 4)),
        (["11", "11"], ["11", "11"], (4, 4)),
        (["00", "00"], ["01", "00"], (0, 1)),
        (["00", "00"], ["00", "00"], (0, 0)),
    ],
)
def test_intersection_and_union(pred, target, expected):
    ours, theirs = masks.rle_from_rows(pred), masks.rle_from_rows(target)
    assert masks.intersection_and_union(ours, theirs) == expected
    assert masks.intersection_and_union(theirs, ours) == expected


def test_union_is_that_of_both_masks_not_the_area_of_the_prediction():
    # A crowd target would give 10 / 10 for 10 pixels inside 50.
    pred = masks.rle_from_boxes([[0, 0, 10, 1]], 10, 10)
    target = masks.rle_from_boxes([[0, 0, 10, 5]], 10, 10)
    assert masks.intersection_and_union(pred, target) == (10, 50)


@pytest.mark.parametrize(("height", "width"), [(20, 20), (300, 300), (1, 65_535), (4_096, 65_535)])
def test_counts_do_not_wrap(height, width):
    # 400 overflows uint8, 90,000 int16; squares and differences of the others overflow 32 bits.
    total = height * width
    full, empty = masks.rle_from_coco(sized([0, total], height, width)), sized([total])
    empty = masks.union([], (height, width))
    assert masks.intersection_and_union(full, full) == (total, total)
    assert masks.intersection_and_union(full, empty) == (0, total)
    assert masks.area(empty) - masks.area(full) == -total
    assert type(masks.area(full)) is int
    assert [type(count) for count in masks.intersection_and_union(full, empty)] == [int, int]
    assert masks.bounding_box(full) == (0, 0, width, height)


def test_arrays_of_any_integer_type_are_binarised():
    labels = np.array([[0, 1], [2, 3]])
    for kind in (np.uint8, np.int8, np.uint16, np.int32, np.int64, np.uint64):
        assert masks.area(masks.rle_from_array(labels.astype(kind))) == 3
    assert masks.rle_from_array(np.array([[256, 0]], np.int16)) == masks.rle_from_rows(["10"])
    assert masks.rle_from_array(np.array([[-1, 0]], np.int8)) == masks.rle_from_rows(["10"])
    assert masks.rle_from_array(np.array([[True, False]])) == masks.rle_from_rows(["10"])


@pytest.mark.parametrize(
    "array",
    [
        np.array([[0.0, 1.0]]),
        np.array([[np.nan]]),
        np.zeros((2, 2, 1), np.uint8),
        np.zeros(4, np.uint8),
        np.zeros((0, 4), np.uint8),
        np.array([["1"]]),
        [[0, 1]],
    ],
)
def test_arrays_that_are_no_mask(array):
    with pytest.raises(MaskError):
        masks.rle_from_array(array)


def test_memory_order_of_an_array_does_not_matter():
    array = np.array([[0, 1, 1], [0, 0, 1]], np.uint8)
    expected = masks.rle_from_rows(["011", "001"])
    assert masks.rle_from_array(array) == expected
    assert masks.rle_from_array(np.asfortranarray(array)) == expected
    assert masks.rle_from_array(array.T) == masks.rle_from_rows(["00", "10", "11"])


def test_union_of_parts():
    left, middle = masks.rle_from_rows(["1100", "0000"]), masks.rle_from_rows(["0110", "0000"])
    assert masks.rows_from_rle(masks.union([left, middle], (2, 4))) == ["1110", "0000"]
    assert masks.area(masks.union([left, left, left], (2, 4))) == 2
    assert masks.rows_from_rle(masks.union([], (2, 4))) == ["0000", "0000"]


@pytest.mark.parametrize(
    ("rows", "box"),
    [
        (["000", "000"], None),
        (["000", "010"], (1, 1, 2, 2)),
        (["001", "100"], (0, 0, 3, 2)),
        (["0100", "0100", "0010"], (1, 0, 3, 3)),  # runs 3..4, then 8: two columns, no wrap
        (["0010", "0000", "0100"], (1, 0, 3, 3)),  # one run across the end of a column
    ],
)
def test_bounding_box(rows, box):
    assert masks.bounding_box(masks.rle_from_rows(rows)) == box


@pytest.mark.parametrize("rows", [[], [""], ["01", "1"], ["02"], "0110", ["0 1"], [b"01"], [0, 1]])
def test_rows_that_are_no_mask(rows):
    with pytest.raises(MaskError):
        masks.rle_from_rows(rows)


# --- polygons


def test_polygon_notations():
    flat = [2, 1, 4, 1, 4, 2, 2, 2]  # columns 2 and 3 of row 1
    pairs = [[2, 1], [4, 1], [4, 2], [2, 2]]
    for value in (flat, pairs, [flat], [pairs], tuple(flat), [flat, flat], [pairs, pairs]):
        assert masks.rows_from_rle(masks.rle_from_polygons(value, 3, 5)) == [
            "00000",
            "00110",
            "00000",
        ]


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        # Two parts share column 1: it stays filled.
        ([[0, 0, 2, 0, 2, 2, 0, 2], [1, 0, 3, 0, 3, 2, 1, 2]], ["1110", "1110", "0000"]),
        # One outline that goes around twice: even-odd leaves nothing.
        ([0, 0, 3, 0, 3, 2, 0, 2] * 2, ["0000", "0000", "0000"]),
        # Closed by repeating the first vertex.
        ([0, 0, 2, 0, 2, 2, 0, 2, 0, 0], ["1100", "1100", "0000"]),
        # Outside of the image, on each side.
        ([9, 9, 12, 9, 12, 12], ["0000", "0000", "0000"]),
        ([-9, 0, -5, 0, -5, 3], ["0000", "0000", "0000"]),
        ([0, -9, 4, -9, 4, -5], ["0000", "0000", "0000"]),
        # Reaching over it.
        ([-1000, 1, 1000, 1, 1000, 2, -1000, 2], ["0000", "1111", "0000"]),
        ([-9e5, -9e5, 9e5, -9e5, 9e5, 9e5, -9e5, 9e5], ["1111", "1111", "1111"]),
        # A fork whose handle lies to the left of the image: two tines, rows 0 and 2.
        (
            [-9, 0, 4, 0, 4, 1, -5, 1, -5, 2, 4, 2, 4, 3, -9, 3],
            ["1111", "0000", "1111"],
        ),
        # A line and a point have no inside.
        ([0, 0, 4, 3, 0, 0], ["0000", "0000", "0000"]),
        ([1, 1, 1, 1, 1, 1], ["0000", "0000", "0000"]),
    ],
)
def test_filled_polygons(value, rows):
    assert masks.rows_from_rle(masks.rle_from_polygons(value, 3, 4)) == rows


def test_pentagram_has_a_hole():
    tips = [(50 + 48 * math.sin(a), 50 - 48 * math.cos(a)) for a in np.arange(5) * 0.8 * math.pi]
    filled = masks.array_from_rle(masks.rle_from_polygons([list(tip) for tip in tips], 100, 100))
    assert not filled[50, 50]  # its outline goes around the middle twice
    assert filled[10, 50]  # below the upper tip
    assert filled[41, 20]
    assert not filled[70, 50]


@pytest.mark.parametrize(
    "value",
    [
        [],
        [[]],
        [[], [0, 0, 2, 0, 2, 2]],
        [0, 0, 2, 2],  # pycocotools reads four numbers as a box
        [[0, 0, 2, 2]],
        [0, 0, 2, 0, 2, 2, 0],
        [[0, 0], [2, 2]],
        [[0, 0], [2, 0], [2, 2, 2]],
        [[0, 0, 2, 0, 2, 2], 5],
        [5, [0, 0, 2, 0, 2, 2]],
        [[[0, 0], [2, 0], [2]]],
        [[[[0, 0], [2, 0], [2, 2]]]],
        [0, 0, 2, 0, 2, math.nan],
        [0, 0, 2, 0, 2, math.inf],
        [0, 0, 2, 0, 2, -math.inf],
        [0, 0, 2, 0, 2, 1e308],
        [0, 0, 2, 0, 2, 10**400],
        [0, 0, 2, 0, 2, 1_000_001],
        [0, 0, 2, 0, 2, -1_000_001],
        [0, 0, 2, 0, 2, True],
        [0, 0, 2, 0, 2, "2"],
        [0, 0, 2, 0, 2, None],
        "0 0 2 0 2 2",
        {"x": 1},
        None,
    ],
)
def test_invalid_polygons_are_refused_before_pycocotools_sees_them(value, monkeypatch):
    monkeypatch.setattr(coco_mask, "frPyObjects", None)
    with pytest.raises(MaskError):
        masks.rle_from_polygons(value, 3, 4)


def test_outlines_too_long_to_rasterise():
    zigzag = [number for k in range(2_000) for number in (1_000 * (k % 2), k)]
    with pytest.raises(MaskError, match="outlines of"):
        masks.rle_from_polygons(zigzag, 2_000, 1_000)
    with pytest.raises(MaskError, match="10001 polygons"):
        masks.rle_from_polygons([[0, 0, 0, 0, 0, 0]] * 10_001, 4, 5)


def test_vertices_count_even_where_they_are_close(monkeypatch):
    monkeypatch.setattr(masks, "MAX_BOUNDARY", 100)
    near = [1, 1, 1.01, 1, 1.01, 1.01]
    masks.rle_from_polygons(near * 33, 3, 4)
    with pytest.raises(MaskError, match="outlines of 102"):
        masks.rle_from_polygons(near * 34, 3, 4)


def crossings(outline: list[list[float]], height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inside by even-odd at the pixel centres, and their distance to the outline."""
    y, x = np.mgrid[:height, :width] + 0.5
    inside = np.zeros((height, width), bool)
    distance = np.full((height, width), np.inf)
    for (ax, ay), (bx, by) in zip(outline, outline[1:] + outline[:1], strict=True):
        if ay != by:
            inside ^= ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
        length = (bx - ax) ** 2 + (by - ay) ** 2
        share = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length if length else 0 * x
        share = np.clip(share, 0, 1)
        away = np.hypot(x - ax - share * (bx - ax), y - ay - share * (by - ay))
        distance = np.minimum(distance, away)
    return inside, distance


@seeded(max_examples=150)
@given(
    st.lists(
        st.tuples(st.integers(-30, 60), st.integers(-30, 60)).map(list), min_size=3, max_size=9
    )
)
def test_polygons_against_crossing_counts(outline):
    filled = masks.array_from_rle(masks.rle_from_polygons(outline, 20, 30))
    inside, distance = crossings(outline, 20, 30)
    # The rasteriser rounds outlines to fifths of a pixel; clipping moves no point of them.
    assert (filled == inside)[distance > 0.25].all()


@seeded(max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 30), st.floats(0, 20)).map(list), min_size=3, max_size=9))
def test_polygons_inside_the_image_are_rasterised_as_coco_does(outline):
    (expected,) = coco_mask.frPyObjects([list(itertools.chain(*outline))], 20, 30)
    filled = masks.array_from_rle(masks.rle_from_polygons(outline, 20, 30))
    assert (filled == dense(expected)).all()


def test_clipped_polygon_stays_in_the_image():
    outline = np.array([[-1e6, -3.3], [1e6, 7.7], [5.1, 1e6], [-0.1, 5.0]])
    clipped = polygons.clip(outline, 20, 30)
    assert len(clipped) >= 3
    assert (clipped > -1e-9).all()
    assert (clipped < (30 + 1e-9, 20 + 1e-9)).all()


# --- boxes and grids


@pytest.mark.parametrize(
    ("boxes", "rows"),
    [
        ([], ["00000", "00000", "00000"]),
        ([[2, 1, 4, 2]], ["00000", "00110", "00000"]),
        ([[0.5, 0, 1.5, 1]], ["10000", "00000", "00000"]),  # centres 0.5 and 1.5
        ([[0.6, 0, 1.6, 1]], ["01000", "00000", "00000"]),
        ([[0.6, 0, 1.4, 3]], ["00000", "00000", "00000"]),  # between the centres
        ([[1, 1, 1, 1]], ["00000", "00000", "00000"]),
        ([[-100, -100, 1, 100]], ["10000", "10000", "10000"]),
        ([[4, 2, 1e6, 1e6]], ["00000", "00000", "00001"]),
        ([[7, 7, 9, 9], [-9, 0, -1, 3]], ["00000", "00000", "00000"]),
        ([[0, 0, 3, 1], [2, 0, 5, 2]], ["11111", "00111", "00000"]),
        ([[0, 0, 5, 3]], ["11111", "11111", "11111"]),
    ],
)
def test_filled_boxes(boxes, rows):
    assert masks.rows_from_rle(masks.rle_from_boxes(boxes, 3, 5)) == rows


@pytest.mark.parametrize(
    "boxes",
    [
        [[2, 0, 1, 3]],
        [[0, 2, 1, 1]],
        [[0, 0, math.nan, 1]],
        [[0, 0, math.inf, 1]],
        [[0, 0, 10**400, 1]],
        [[0, 0, 1]],
        [[0, 0, 1, True]],
        [0, 0, 1, 1],
        None,
        "0011",
        [[0, 0, 1, 1]] * 10_001,
    ],
)
def test_invalid_boxes(boxes):
    with pytest.raises(MaskError):
        masks.rle_from_boxes(boxes, 3, 5)


def test_boxes_too_large_in_all():
    # 2 * (2000 + 2000) pixels around each; 2 ** 20 = 1,048,576 is the limit.
    assert masks.area(masks.rle_from_boxes([[0, 0, 2e3, 2e3]] * 131, 2_000, 2_000)) == 4_000_000
    with pytest.raises(MaskError, match="1056000"):
        masks.rle_from_boxes([[0, 0, 2e3, 2e3]] * 132, 2_000, 2_000)


def test_boxes_that_touch_share_no_pixel():
    for edge in (0.0, 0.25, 0.5, 1.0, 1.5, 2.49, 2.5, 2.51, 5.0):
        left = masks.rle_from_boxes([[0, 0, edge, 3]], 3, 5)
        right = masks.rle_from_boxes([[edge, 0, 5, 3]], 3, 5)
        assert masks.intersection_and_union(left, right) == (0, 15)


@pytest.mark.parametrize(
    ("cells", "rows"),
    [
        # Rows 0 1 2 3 4 of 5 take cells 0 0 0 1 1 (2 r // 5); columns 0 1 2 of 3 take 0 0 1.
        ([[1, 0], [0, 1]], ["110", "110", "110", "001", "001"]),
        ([[0, 1], [0, 0]], ["001", "001", "001", "000", "000"]),
        ([[1]], ["111"] * 5),
        ([[0]], ["000"] * 5),
        # More cells than pixels: rows take cells 0 1 2 3 4 of 6, columns 0 1 2 of 4 (4 c // 3).
        ([[1, 1, 1, 1]] + [[0] * 4] * 4 + [[1] * 4], ["111", "000", "000", "000", "000"]),
    ],
)
def test_grids(cells, rows):
    assert masks.rows_from_rle(masks.rle_from_grid(cells, 5, 3)) == rows


def test_grid_of_a_text_descriptor():
    cells = [[0] * 16 for _ in range(16)]
    cells[2][3] = 1  # rows 60 to 89 of 480, columns 120 to 159 of 640
    rle = masks.rle_from_grid(cells, 480, 640)
    assert masks.bounding_box(rle) == (120, 60, 160, 90)
    assert masks.area(rle) == 30 * 40


@pytest.mark.parametrize(
    "cells",
    [[], [[]], [[0, 1], [0]], [[0, 2]], [[0, True]], [[0, 0.5]], ["01"], [[0] * 257], None, 5,
     [[0]] * 257, [0, 1]],
)  # fmt: skip
def test_invalid_grids(cells):
    with pytest.raises(MaskError):
        masks.rle_from_grid(cells, 5, 3)


@seeded(max_examples=60)
@given(st.data())
def test_grids_against_index_arithmetic(data):
    m, n, height, width = (data.draw(st.integers(1, 24)) for _ in range(4))
    row = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    cells = data.draw(st.lists(row, min_size=m, max_size=m))
    expected = np.array(cells)[np.arange(height) * m // height][:, np.arange(width) * n // width]
    assert (masks.array_from_rle(masks.rle_from_grid(cells, height, width)) == expected).all()


# --- PNG


def png_of(pixels: object, mode: str = "L") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.array(pixels, np.uint8)).convert(mode).save(stream, "PNG")
    return stream.getvalue()


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def raw_png(width: int, height: int, body: bytes, depth: int = 8, interlaced: int = 0) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, interlaced)
    pixels = chunk(b"IDAT", zlib.compress(body, 9))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


@pytest.mark.parametrize("foreground", [1, 255])
@pytest.mark.parametrize("mode", ["L", "1"])
def test_png_mask(foreground, mode):
    pixels = np.array([[0, 1, 1], [0, 0, 1]]) * (foreground if mode == "L" else 255)
    rle = masks.rle_from_png(png_of(pixels, mode), 2, 3)
    assert masks.rows_from_rle(rle) == ["011", "001"]


def test_png_written_by_hand():
    # One filter byte a row, 0: none.
    data = raw_png(3, 2, b"\0\0\xff\xff" + b"\0\0\0\xff")
    assert masks.rows_from_rle(masks.rle_from_png(data, 2, 3)) == ["011", "001"]


def test_png_mask_without_foreground_is_empty():
    assert masks.area(masks.rle_from_png(png_of(np.zeros((2, 3))), 2, 3)) == 0


GOOD = png_of([[0, 255, 255], [0, 0, 255]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a PNG"),
        (b"GIF89a" + bytes(40), "not a PNG"),
        (GOOD[:20], "header"),
        (png_of([[0, 255, 255]]), "1 x 3 .* 2 x 3"),
        (png_of([[0, 255], [0, 0], [0, 0]]), "3 x 2 .* 2 x 3"),
        (png_of([[0, 128, 255], [0, 0, 0]]), r"0, 128, 255"),
        (png_of([[0, 2, 2], [0, 0, 0]]), r"0, 2"),
        (png_of([[0, 255, 255], [0, 0, 255]], "RGB"), "colour type 2"),
        (png_of([[0, 255, 255], [0, 0, 255]], "RGBA"), "colour type 6"),
        (png_of([[0, 255, 255], [0, 0, 255]], "P"), "colour type 3"),
        (raw_png(3, 2, bytes(14), depth=16), "16 bits"),
        (raw_png(3, 2, bytes(8), interlaced=1), "interlace method 1"),
        (raw_png(0, 2, bytes(2)), "2 x 0 pixels"),
        ("not bytes", "bytes"),
        (None, "bytes"),
    ],
)
def test_invalid_png(data, message):
    with pytest.raises(MaskError, match=message):
        masks.rle_from_png(data, 2, 3)


@pytest.mark.parametrize("tolerant", [False, True])
def test_png_that_is_cut_off_never_reads_as_background(tolerant, monkeypatch):
    # The host tells Pillow to fill what is missing with zeros.
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", tolerant)
    rng = np.random.default_rng(0)
    data = png_of(rng.integers(0, 2, (40, 30)) * 255)
    whole = masks.rle_from_png(data, 40, 30)
    end_of_pixels = len(data) - 12 - 4  # the last chunk, and the checksum of the one before
    for length in range(len(data)):
        if length < end_of_pixels:
            with pytest.raises(MaskError):
                masks.rle_from_png(data[:length], 40, 30)
        else:
            with contextlib.suppress(MaskError):
                assert masks.rle_from_png(data[:length], 40, 30) == whole


@pytest.mark.parametrize("tolerant", [False, True])
def test_damaged_png_raises_nothing_else(tolerant, monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", tolerant)
    rng = np.random.default_rng(0)
    data = png_of(rng.integers(0, 2, (12, 9)) * 255)
    refused = 0
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << int(rng.integers(8))
        try:
            masks.rle_from_png(bytes(damaged), 12, 9)
        except MaskError:
            refused += 1
    assert refused > len(data) // 2


def test_png_bombs_are_refused_without_inflating_them():
    tracemalloc.start()
    bombs = [
        raw_png(60_000, 60_000, b""),
        raw_png(3, 2, bytes(50_000_000)),
        raw_png(2**31, 2**31, b""),
    ]
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    for bomb in bombs:
        with pytest.raises(MaskError):
            masks.rle_from_png(bomb, 2, 3)
        with pytest.raises(MaskError, match=r"limit|bytes of pixels"):
            masks.rle_from_probability_map(bomb, [0, 0, 2, 2], 4, 5)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < 2_000_000


# --- probability maps


def test_probability_map_above_the_threshold():
    data = png_of([[127, 128], [0, 255]])
    rle = masks.rle_from_probability_map(data, [1, 1, 3, 3], 4, 5)
    assert masks.rows_from_rle(rle) == ["00000", "00100", "00100", "00000"]
    rle = masks.rle_from_probability_map(data, [1, 1, 3, 3], 4, 5, threshold=0)
    assert masks.rows_from_rle(rle) == ["00000", "01100", "00100", "00000"]
    rle = masks.rle_from_probability_map(data, [1, 1, 3, 3], 4, 5, threshold=128)
    assert masks.rows_from_rle(rle) == ["00000", "00000", "00100", "00000"]


def test_probability_map_is_resized_bilinearly():
    # Centres of 4 pixels lie at 0.25, 0.75, 1.25, 1.75 of 2: values 0, 64, 191, 255.
    data = png_of([[0, 255]])
    for threshold, row in ((127, "0011"), (63, "0111"), (64, "0011"), (191, "0001")):
        rle = masks.rle_from_probability_map(data, [0, 0, 4, 1], 1, 4, threshold)
        assert masks.rows_from_rle(rle) == [row]


@pytest.mark.parametrize(
    ("box", "rows"),
    [
        ([1.9, 1.0, 3.9, 2.9], ["00000", "01100", "00000"]),  # down to 1, 1, 3, 2
        ([-2, 0, 2, 1], ["11000", "00000", "00000"]),
        ([3, 2, 9, 9], ["00000", "00000", "00011"]),
        ([-9, -9, 99, 99], ["11111", "11111", "11111"]),
    ],
)
def test_box_of_a_probability_map(box, rows):
    rle = masks.rle_from_probability_map(png_of([[255]]), box, 3, 5)
    assert masks.rows_from_rle(rle) == rows


def test_probability_map_of_one_bit():
    data = png_of([[0, 255]], "1")
    rle = masks.rle_from_probability_map(data, [0, 0, 2, 1], 1, 3)
    assert masks.rows_from_rle(rle) == ["010"]


def test_probability_map_too_large_is_refused_by_its_header():
    with pytest.raises(MaskError, match="60000 x 60000 pixels; the limit"):
        masks.rle_from_probability_map(raw_png(60_000, 60_000, b""), [0, 0, 2, 2], 4, 5)


def test_probability_map_without_foreground_is_empty():
    assert masks.area(masks.rle_from_probability_map(png_of([[127]]), [0, 0, 2, 2], 3, 5)) == 0


@pytest.mark.parametrize(
    "box",
    [
        [1, 1, 1, 3],
        [1.1, 1, 1.9, 3],
        [3, 0, 1, 2],
        [5, 0, 9, 3],
        [-9, 0, 0, 3],
        [0, 0, math.nan, 3],
        [0, 0, 1e6, 1e6],
        [0, 0, 1],
        None,
    ],
)
def test_invalid_box_of_a_probability_map(box):
    with pytest.raises(MaskError):
        masks.rle_from_probability_map(png_of([[255]]), box, 3, 5)


# --- properties


@st.composite
def arrays(draw, count=1):
    """Draw arrays of one shape; runs of any length come up, not noise alone."""
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    result = []
    for _ in range(count):
        runs = draw(st.lists(st.integers(0, 20), max_size=20))
        flat = np.repeat(np.arange(len(runs)) % 2, runs)[: height * width]
        flat = np.concatenate((flat, np.full(height * width - len(flat), draw(st.booleans()))))
        result.append(flat.reshape(height, width).astype(bool))
    return result


@seeded(max_examples=200)
@given(arrays())
def test_round_trip(drawn):
    (array,) = drawn
    rle = masks.rle_from_array(array)
    reference = coco_mask.encode(np.asfortranarray(array.astype(np.uint8)))
    assert rle == {"size": list(array.shape), "counts": reference["counts"].decode()}
    assert (masks.array_from_rle(rle) == array).all()
    assert masks.rle_from_coco(reference, array.shape) == rle
    assert masks.rle_from_rows(masks.rows_from_rle(rle)) == rle
    assert masks.area(rle) == array.sum()
    x, y, width, height = coco_mask.toBbox(reference).astype(int).tolist()
    assert masks.bounding_box(rle) == ((x, y, x + width, y + height) if array.any() else None)


@seeded(max_examples=200)
@given(arrays(count=2))
def test_intersection_and_union_against_arrays(pair):
    ours, theirs = pair
    expected = (int((ours & theirs).sum()), int((ours | theirs).sum()))
    rles = masks.rle_from_array(ours), masks.rle_from_array(theirs)
    assert masks.intersection_and_union(*rles) == expected


@seeded(max_examples=100)
@given(arrays(count=4))
def test_union_against_arrays(parts):
    rle = masks.union([masks.rle_from_array(part) for part in parts], parts[0].shape)
    assert rle == masks.rle_from_array(np.logical_or.reduce(parts))


@seeded(max_examples=100)
@given(st.lists(st.integers(0, 2**22), min_size=1, max_size=40))
def test_long_runs_against_pycocotools(runs):
    # Texts with numbers of one to six characters; the image is one column per 65,535 pixels.
    height, width = 65_535, sum(runs) // 65_535 + 1
    runs = [*runs, height * width - sum(runs)]
    (reference,) = coco_mask.frPyObjects([sized(runs, height, width)], height, width)
    rle = masks.rle_from_coco(reference)
    assert rle == masks.rle_from_coco(sized(runs, height, width))
    assert masks.area(rle) == sum(runs[1::2])


counts_like_texts = st.one_of(
    st.binary(max_size=40),
    st.text(st.characters(min_codepoint=40, max_codepoint=120), max_size=40),
    st.text(max_size=20),
    st.lists(st.integers(0, 31), max_size=12).map(lambda digits: bytes(48 + d for d in digits)),
    st.lists(st.integers(-3, 30), max_size=12),
    st.lists(st.one_of(st.integers(), st.floats(), st.none(), st.text(max_size=2)), max_size=6),
)


@seeded(max_examples=1_000)
@given(counts_like_texts, st.integers(1, 6), st.integers(1, 6))
def test_counts_from_anywhere_are_a_mask_or_a_mask_error(counts, height, width):
    try:
        rle = masks.rle_from_coco(sized(counts, height, width))
    except MaskError:
        return
    # What is accepted is a valid encoding, of the mask that was written.
    assert masks.rle_from_array(dense(rle)) == rle
    if not isinstance(counts, list):
        assert (dense(sized(counts, height, width)) == dense(rle)).all()


@seeded(max_examples=300)
@given(arrays(), st.data())
def test_mutated_counts_are_a_mask_or_a_mask_error(drawn, data):
    rle = masks.rle_from_array(drawn[0])
    text = list(rle["counts"])
    position = data.draw(st.integers(0, len(text) - 1))
    text[position : position + data.draw(st.integers(0, 2))] = data.draw(
        st.text(st.characters(min_codepoint=47, max_codepoint=113), max_size=2)
    )
    mutated = {**rle, "counts": "".join(text)}
    try:
        masks.intersection_and_union(rle, mutated)
    except MaskError:
        return
    assert masks.rle_from_array(dense(mutated)) == masks.rle_from_coco(mutated)


@pytest.mark.parametrize("counts", ["0" * 20_000_000, "o" * 20_000_000, [0] * 2_000_000])
def test_huge_counts_of_a_small_image_are_refused(counts):
    with pytest.raises(MaskError, match="more than"):
        masks.rle_from_coco(sized(counts))
