"""Rotated 3D boxes against hand-derived values, exact ratios and two independent methods."""

from __future__ import annotations

import itertools
import json
import math
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull, HalfspaceIntersection
from scipy.spatial.transform import Rotation

from lmms_eval_grounding.geometry import boxes3d
from lmms_eval_grounding.geometry.boxes3d import (
    corners,
    euler_from_rotation,
    iou_matrix,
    is_valid,
    rotation_from_euler,
    transform,
    volumes,
)

QUARTER = math.pi / 2
UNIT = [0, 0, 0, 1, 1, 1, 0, 0, 0]
VECTORS = Path(__file__).parents[2] / "shared" / "reference_vectors" / "box3d_iou.json"


def iou(a, b) -> float:
    return float(iou_matrix([a], [b])[0, 0])


def pose(angles, shift) -> np.ndarray:
    """Rigid transform built by scipy, not by the code under test."""
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_euler("ZXY", angles).as_matrix()
    matrix[:3, 3] = shift
    return matrix


# --- rotations ------------------------------------------------------------------------------------


def test_zxy_turns_the_axes_as_derived_by_hand():
    # Ry(0) does nothing; Rx(90) sends y to z and z to -y; Rz(90) then sends x to y and -y to x.
    rotation = rotation_from_euler([QUARTER, QUARTER, 0], "ZXY")
    assert np.allclose(rotation, [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15)


@pytest.mark.parametrize("axes", ["".join(axes) for axes in itertools.permutations("XYZ")])
def test_rotations_agree_with_scipy_in_every_order(axes):
    angles = np.random.default_rng(0).uniform(-7, 7, (4, 5, 3))
    for order in (axes, axes.lower()):
        expected = Rotation.from_euler(order, angles.reshape(-1, 3)).as_matrix()
        ours = rotation_from_euler(angles, order)
        assert ours.shape == (4, 5, 3, 3)
        assert np.allclose(ours.reshape(-1, 3, 3), expected, atol=1e-14)


@pytest.mark.parametrize("order", ["", "ZX", "ZXYZ", "ZXZ", "zXY", "abc"])
def test_unknown_order_is_refused(order):
    with pytest.raises(ValueError, match="order"):
        rotation_from_euler([0, 0, 0], order)


def test_wrong_number_of_angles_is_refused():
    with pytest.raises(ValueError, match=r"\(2,\)"):
        rotation_from_euler([0, 0], "ZXY")


def test_euler_angles_come_back():
    rng = np.random.default_rng(1)
    angles = rng.uniform(-1, 1, (500, 3)) * [math.pi, QUARTER - 1e-3, math.pi]
    assert np.allclose(euler_from_rotation(rotation_from_euler(angles, "ZXY")), angles, atol=1e-11)


@pytest.mark.parametrize("short_of_lock", [0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-6, 1e-3])
def test_euler_angles_at_gimbal_lock_give_the_same_matrix(short_of_lock):
    turns = np.linspace(-math.pi, math.pi, 9)
    angles = [
        (a, sign * (QUARTER - short_of_lock), c)
        for a, sign, c in itertools.product(turns, (1, -1), turns)
    ]
    rotation = Rotation.from_euler("ZXY", angles).as_matrix()
    again = rotation_from_euler(euler_from_rotation(rotation), "ZXY")
    assert np.abs(again - rotation).max() < 2e-15


def test_exact_gimbal_lock_matrices():
    for rotation in ([[0, 0, 1], [1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 0, 1], [0, -1, 0]]):
        again = rotation_from_euler(euler_from_rotation(rotation), "ZXY")
        assert np.allclose(again, rotation, atol=1e-15)


# --- corners, volumes, validity, transform --------------------------------------------------------


def test_corners_of_a_turned_box():
    # A quarter turn about z lays dx = 2 along y and dy = 4 along -x.
    points = corners([10, 20, 30, 2, 4, 6, QUARTER, 0, 0])
    assert np.allclose(points[0], [12, 19, 27])
    assert np.allclose(points[1], [12, 19, 33])
    assert np.allclose(points[2], [8, 19, 27])
    assert np.allclose(points[4], [12, 21, 27])
    assert np.allclose(points[7], [8, 21, 33])
    assert corners(np.zeros((0, 9))).shape == (0, 8, 3)


def test_volumes():
    assert volumes([[0, 0, 0, 2, 3, 4, 1, 1, 1], UNIT]).tolist() == [24, 1]


def test_validity():
    rows = np.tile(np.array(UNIT, dtype=float), (6, 1))
    rows[1, 5], rows[2, 4], rows[3, 6], rows[4, 0] = 0, -1, np.nan, np.inf
    assert is_valid(rows).tolist() == [True, False, False, False, False, True]
    assert is_valid(np.zeros((0, 9))).shape == (0,)


def test_camera_to_scene_as_derived_by_hand():
    # A camera at (1, 2, 3) that looks along scene y: right is x, down is -z, forward is y.
    camera = np.array([[1, 0, 0, 1], [0, 0, 1, 2], [0, -1, 0, 3], [0, 0, 0, 1]])
    moved = transform([0, 0, 4, 1, 2, 3, 0, 0, 0], camera)
    assert np.allclose(moved[:3], [1, 6, 3])
    assert moved[3:6].tolist() == [1, 2, 3]
    assert iou(moved, [1, 6, 3, 1, 3, 2, 0, 0, 0]) == pytest.approx(1, abs=1e-12)


def test_transform_moves_every_corner_rigidly():
    rng = np.random.default_rng(2)
    boxes = np.hstack([rng.normal(0, 3, (40, 3)), rng.uniform(0.1, 2, (40, 3))])
    boxes = np.hstack([boxes, rng.uniform(-4, 4, (40, 3))])
    boxes[::4, 7] = QUARTER
    matrix = pose([0.3, QUARTER, -2.0], [5, -6, 7])
    expected = corners(boxes) @ matrix[:3, :3].T + matrix[:3, 3]
    assert np.allclose(corners(transform(boxes, matrix)), expected, atol=1e-13)
    back = transform(transform(boxes, matrix), np.linalg.inv(matrix))
    assert np.allclose(corners(back), corners(boxes), atol=1e-13)


@pytest.mark.filterwarnings("error")
def test_transform_keeps_a_box_that_is_not_finite_so():
    box = np.array(UNIT, dtype=float)
    for slot, value in itertools.product((0, 4, 7), (np.nan, np.inf)):
        broken = box.copy()
        broken[slot] = value
        assert not is_valid(transform(broken, pose([1, 2, 3], [1, 2, 3])))


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(3),
        np.diag([1000.0, 1000, 1000, 1]),
        np.diag([1.0, 1, -1, 1]),
        np.full((4, 4), np.nan),
        pose([1, 0, 0], [1, 2, 3]).T,
    ],
    ids=["three by three", "millimetres", "mirrored", "nan", "transposed"],
)
@pytest.mark.filterwarnings("error")
def test_transform_refuses_what_is_not_rigid(matrix):
    with pytest.raises(ValueError, match="rigid"):
        transform(UNIT, matrix)


# --- IoU derived by hand --------------------------------------------------------------------------


def turned_square_iou(angle: float) -> float:
    """IoU of a unit square and itself turned about its centre.

    The common octagon has an inscribed circle of radius 1/2 and area 2 / (1 + |sin| + |cos|).
    """
    area = 2 / (1 + abs(math.sin(angle)) + abs(math.cos(angle)))
    return area / (2 - area)


@pytest.mark.parametrize("slot", [6, 7, 8])
def test_cube_turned_about_one_axis(slot):
    angles = np.concatenate([np.linspace(-7, 7, 57), 10.0 ** np.arange(-15, 0)])
    turned = np.tile(np.array(UNIT, dtype=float), (len(angles), 1))
    turned[:, slot] = angles
    expected = [turned_square_iou(angle) for angle in angles]
    assert np.allclose(iou_matrix(turned, [UNIT])[:, 0], expected, rtol=0, atol=1e-14)


def tilted_plate_iou(width: float, height: float, angle: float) -> float:
    """IoU of a rectangle and itself turned about its centre by a small angle.

    The turned sides cut four right triangles off the corners, two with the leg
    ``(width - height * u) / 2`` and two with ``(height - width * u) / 2``, where
    ``u = tan(angle / 2)``; the other leg is ``tan(angle)`` times that.
    """
    u = math.tan(angle / 2)
    assert width * u <= height
    cut = math.tan(angle) * ((width - height * u) ** 2 + (height - width * u) ** 2) / 4
    area = width * height
    return (area - cut) / (area + cut)


@pytest.mark.parametrize("height", [0.001, 0.02, 0.5])
@pytest.mark.parametrize("angle", [1e-12, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2])
def test_nearly_coincident_thin_boxes(height, angle):
    if math.tan(angle / 2) > height:
        angle = height  # the formula holds up to tan(angle / 2) = height / width
    pair = np.array([[0, 0, 0, 1, height, 2, 0, 0, 0], [0, 0, 0, 1, height, 2, angle, 0, 0]])
    expected = tilted_plate_iou(1, height, angle)
    for matrix in (np.eye(4), pose([2.5, -0.7, 0.4], [0, 0, 0]), pose([1, 2, 3], [90, -40, 2])):
        a, b = transform(pair, matrix)
        assert iou(a, b) == pytest.approx(expected, abs=1e-12)
    assert 0 < expected < 1


def test_shift_of_one_millimetre():
    assert iou(UNIT, [0, 0, 0.001, 1, 1, 1, 0, 0, 0]) == pytest.approx(0.999 / 1.001, abs=1e-14)


TRUE = [0, 0, 0, 1, 2, 3, QUARTER, QUARTER, 0]
"""Sizes 1, 2, 3 lie along y, z, x, so this is the axis-aligned box of sizes (3, 1, 2)."""


def bounds(box, order: str) -> np.ndarray:
    """Axis-aligned sizes of a box whose angles are read in ``order``."""
    return np.abs(rotation_from_euler(box[6:], order)) @ box[3:6]


def test_intrinsic_zxy_is_the_convention():
    assert iou(TRUE, [0, 0, 0, 3, 1, 2, 0, 0, 0]) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("order", ["ZYX", "zxy"])
def test_other_orders_differ(order):
    # Either order lays the sizes 2, 3, 1 along x, y, z: common part 2 of a union of 6 + 6 - 2.
    sizes = bounds(TRUE, order)
    assert np.allclose(sizes, [2, 3, 1])
    assert iou(TRUE, [0, 0, 0, *sizes, 0, 0, 0]) == pytest.approx(1 / 5, abs=1e-12)


def test_degrees_for_radians_differ():
    right, wrong = [*UNIT[:6], math.pi / 6, 0, 0], [*UNIT[:6], 30, 0, 0]
    assert iou(wrong, right) == pytest.approx(turned_square_iou(30 - math.pi / 6), abs=1e-12)
    assert iou(wrong, right) < 0.8


def test_half_sizes_differ():
    assert iou(UNIT, [0, 0, 0, 0.5, 0.5, 0.5, 0, 0, 0]) == pytest.approx(1 / 8, abs=1e-15)


def test_bounding_boxes_of_rotated_boxes_differ():
    turned = [0, 0, 0, 1, 1, 1, math.pi / 4, 0, 0]
    assert iou(UNIT, turned) == pytest.approx(math.sqrt(1 / 2), abs=1e-14)
    assert iou(UNIT, [0, 0, 0, *bounds(turned, "ZXY"), 0, 0, 0]) == pytest.approx(1 / 2, abs=1e-14)


@pytest.mark.parametrize("angles", [(0, 0, 0), (0.3, -1.1, 2.0)])
@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([2, 0, 0, 2, 2, 2], "0"),  # a face in common, bodies apart
        ([2, 0.5, -1, 2, 2, 2], "0"),  # part of a face in common
        ([2, 2, 0, 2, 2, 2], "0"),  # an edge in common
        ([2, -2, 2, 2, 2, 2], "0"),  # a corner in common
        ([-0.5, 0, 0, 1, 2, 2], "1/2"),  # inside, five coplanar faces
        ([0, 0, 0, 2, 2, 1], "1/2"),  # inside, four coplanar faces
        ([0, 0, 0, 1, 1, 1], "1/8"),  # inside
        ([0, 0, 0, 4, 4, 4], "1/8"),  # around
        ([1, 0, 0, 2, 2, 2], "1/3"),  # half of each
    ],
)
def test_shared_faces_and_containment(other, expected, angles):
    box = [0, 0, 0, 2, 2, 2, 0, 0, 0]
    pair = transform(np.stack([box, [*other, 0, 0, 0]]), pose(angles, [3, -2, 1]))
    assert iou(*pair) == pytest.approx(float(Fraction(expected)), abs=1e-12)
    assert iou(*pair) == iou(*pair[::-1])


def test_tiny_boxes_inside_a_huge_one_keep_their_relative_precision():
    rng = np.random.default_rng(9)
    places, sizes = rng.uniform(-200, 200, (200, 3)), 10 ** rng.uniform(-6, -5, (200, 3))
    tiny = np.hstack([places, sizes, rng.uniform(-3, 3, (200, 3))])
    ious = iou_matrix(tiny, [[0, 0, 0, 1e3, 1e3, 1e3, 0.3, -0.2, 0.1]])[:, 0]
    assert np.allclose(ious, sizes.prod(axis=1) / 1e9, rtol=1e-13, atol=0)


def test_equal_rows_give_exactly_one_at_every_scale():
    rng = np.random.default_rng(3)
    boxes = np.hstack(
        [rng.normal(0, 1e3, (60, 3)), 10 ** rng.uniform(-6, 6, (60, 3)), rng.normal(0, 3, (60, 3))]
    )
    assert (np.diagonal(iou_matrix(boxes, boxes)) == 1).all()


# --- faults reported elsewhere --------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_degenerate_predictions_have_a_defined_result():
    """InternRobotics/EmbodiedScan#22, #30, #40: a flat box ends the whole evaluation there."""
    sizes = [[1, 1, 0], [1, 1, 1e-6], [1, 1, -1], [1, 1, 1], [1, 1, np.inf], [1, 1, 1]]
    preds = np.array([[0, 0, 0, *size, 0, 0, 0] for size in sizes])
    preds[3, 6], preds[5, 1] = np.nan, -np.inf
    ious = iou_matrix(preds, [UNIT, [0, 0, 0, 1, 1, 2, 0, 0, 0]])
    assert np.allclose(ious, np.outer([0, 1e-6, 0, 0, 0, 0], [1, 0.5]), rtol=1e-12, atol=0)


def test_degenerate_target_is_an_error_that_names_its_row():
    with pytest.raises(ValueError, match=r"targets\[1\]"):
        iou_matrix([UNIT], [UNIT, [0, 0, 0, 1, 1, 0, 0, 0, 0]])
    with pytest.raises(ValueError, match=r"targets\[0\]"):
        iou_matrix([], [[np.nan, *UNIT[1:]]])


def test_large_coordinates_keep_self_iou_at_one():
    """facebookresearch/pytorch3d#1894: an absolute tolerance fails far from the origin."""
    for a, b, c in ([0, 0, 0], [0.7, 0, 0], [0.7, 0.2, -0.4]):
        box = [-115.2, 30.4, 1.1, 10.3, 3.9, 4.3, a, b, c]
        other_angles = [*box[:6], a + math.pi, math.pi - b, c + math.pi]
        assert iou(box, box) == 1
        assert iou(box, other_angles) == pytest.approx(1, abs=1e-9)


def test_quarter_turn_swaps_sizes():
    """InternRobotics/EmbodiedScan#101, #107: oriented boxes are not their bounding boxes."""
    assert iou([0, 0, 0, 2, 1, 1, QUARTER, 0, 0], [0, 0, 0, 1, 2, 1, 0, 0, 0]) == pytest.approx(
        1, abs=1e-12
    )
    assert iou([0, 0, 0, 2, 1, 1, 0, 0, 0], [0, 0, 0, 1, 2, 1, 0, 0, 0]) == pytest.approx(1 / 3)


@pytest.mark.filterwarnings("error")
def test_numbers_at_the_ends_of_float64_do_no_harm():
    values = [5e-324, 1e-200, 1.0, 1e200, 1.7e308]
    boxes = [[c, -c, 0, s, t, 1, 1e5, 2, 3] for c in (0, *values) for s in values for t in values]
    ious = iou_matrix(boxes, boxes)
    assert ((ious >= 0) & (ious <= 1)).all()
    assert (np.diagonal(ious) == 1).all()


# --- shapes and memory ----------------------------------------------------------------------------


def test_empty_inputs():
    for nothing in ([], np.zeros((0, 9))):
        assert iou_matrix(nothing, [UNIT, UNIT]).shape == (0, 2)
        assert iou_matrix([UNIT, UNIT, UNIT], nothing).shape == (3, 0)
        assert iou_matrix(nothing, nothing).shape == (0, 0)
    assert iou_matrix([[np.nan] * 9], [UNIT]).tolist() == [[0]]


@pytest.mark.parametrize("wrong", [UNIT, [UNIT[:7]], [[UNIT]]], ids=["one box", "yaw only", "3d"])
def test_wrong_shapes_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match="preds must be"):
        iou_matrix(wrong, [UNIT])
    with pytest.raises(ValueError, match="targets must be"):
        iou_matrix([UNIT], wrong)


def cluster(rng: np.random.Generator, n: int) -> np.ndarray:
    """Boxes of furniture size in a heap, so that most of them overlap."""
    parts = rng.normal(0, 0.4, (n, 3)), rng.uniform(0.2, 2, (n, 3)), rng.uniform(-4, 4, (n, 3))
    return np.hstack(parts)


def test_rows_do_not_depend_on_their_company(monkeypatch):
    rng = np.random.default_rng(4)
    preds, targets = cluster(rng, 23), cluster(rng, 5)
    preds[7, 4] = -1
    whole = iou_matrix(preds, targets)
    assert (whole[7] == 0).all()
    assert whole[0, 3] == iou(preds[0], targets[3])
    monkeypatch.setattr(boxes3d, "_PAIRS_PER_CHUNK", 7)
    assert np.array_equal(iou_matrix(preds, targets), whole)


def test_peak_memory_does_not_grow_with_the_number_of_pairs():
    boxes = cluster(np.random.default_rng(5), 180)

    def peak(n: int) -> float:
        tracemalloc.start()
        iou_matrix(boxes[:n], boxes[:n])
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    assert peak(180) < 1.3 * peak(90)


# --- properties -----------------------------------------------------------------------------------

numbers = st.floats(-1, 1)
exponents = st.floats(-1.5, 1)


@st.composite
def pairs(draw) -> np.ndarray:
    """Two boxes: apart, overlapping, or equal but for a nudge of 1e-3 ... 1e-12 or none."""
    first = [3 * draw(numbers) for _ in range(3)] + [10 ** draw(exponents) for _ in range(3)]
    first = np.array(first + [7 * draw(numbers) for _ in range(3)])
    scale = draw(st.sampled_from([2.0, 0.3, 0.05, 1e-3, 1e-6, 1e-9, 1e-12, 0.0]))
    second = first + scale * np.array([draw(numbers) for _ in range(9)])
    second[3:6] = np.maximum(second[3:6], 0.02)
    return np.stack([first, second])


property_test = settings(max_examples=200, deadline=None, derandomize=True)


@property_test
@given(pairs())
def test_symmetry_and_range(pair):
    value = iou(*pair)
    assert 0 <= value <= 1
    assert value == iou(*pair[::-1])
    assert value <= min(volumes(pair)) / max(volumes(pair)) + 1e-12


@property_test
@given(pairs(), st.permutations(range(3)), st.sampled_from([-1, 1]))
def test_self_iou_in_every_parametrisation(pair, axes, sign):
    box = pair[0]
    assert iou(box, box) == 1
    # Renaming the box's own axes permutes its sizes and leaves it where it is.
    renaming = np.eye(3)[:, axes]
    renaming[:, 0] *= sign
    renaming[:, 2] *= np.linalg.det(renaming)
    angles = euler_from_rotation(rotation_from_euler(box[6:], "ZXY") @ renaming)
    assert iou(box, [*box[:3], *box[3:6][list(axes)], *angles]) == pytest.approx(1, abs=1e-9)


@property_test
@given(pairs(), st.tuples(numbers, numbers, numbers), st.tuples(numbers, numbers, numbers))
def test_rigid_invariance(pair, angles, shift):
    moved = transform(pair, pose(4 * np.array(angles), 100 * np.array(shift)))
    assert iou(*moved) == pytest.approx(iou(*pair), abs=1e-9)


@property_test
@given(pairs(), st.floats(-5, 5))
def test_scale_invariance(pair, exponent):
    scaled = pair * np.array([10**exponent] * 6 + [1] * 3)
    assert iou(*scaled) == pytest.approx(iou(*pair), abs=1e-9)


# --- independent methods --------------------------------------------------------------------------


def test_exact_ratios_on_axis_aligned_boxes():
    rng = np.random.default_rng(6)
    for spread in (0, 1, 6):
        size = 10 ** rng.uniform(-spread, spread, (300, 3))
        other_size = size * rng.uniform(0.3, 3, (300, 3))
        centre = rng.normal(0, 10.0**spread, (300, 3))
        other_centre = centre + rng.uniform(-0.8, 0.8, (300, 3)) * size
        straight = np.zeros((300, 3))
        boxes = np.hstack([centre, size, straight])
        others = np.hstack([other_centre, other_size, straight])
        for box, other in zip(boxes, others, strict=True):
            assert iou(box, other) == pytest.approx(float(exact_iou(box, other)), abs=1e-12)


def exact_iou(box, other) -> Fraction:
    """IoU of axis-aligned boxes in rational arithmetic."""
    common = volume = other_volume = Fraction(1)
    for axis in range(3):
        c, s, d, t = (Fraction(float(v)) for v in (*box[axis:6:3], *other[axis:6:3]))
        common *= max(min(c + s / 2, d + t / 2) - max(c - s / 2, d - t / 2), 0)
        volume *= s
        other_volume *= t
    return common / (volume + other_volume - common)


def halfspaces(box) -> np.ndarray:
    axes = Rotation.from_euler("ZXY", box[6:]).as_matrix()
    normals = np.vstack([axes.T, -axes.T])
    return np.column_stack([normals, -normals @ box[:3] - np.tile(box[3:6] / 2, 2)])


def test_halfspace_intersection_agrees_on_2000_random_pairs():
    rng = np.random.default_rng(7)
    boxes, others = cluster(rng, 2000), cluster(rng, 2000)
    # A point well inside both is what the half-space method needs to start from.
    within = rng.uniform(-0.45, 0.45, (2, 2000, 3))
    for kind, place in zip((boxes, others), within, strict=True):
        turn = Rotation.from_euler("ZXY", kind[:, 6:])
        kind[:, :3] = -turn.apply(place * kind[:, 3:6])
    worst = 0.0
    for box, other in zip(boxes, others, strict=True):
        planes = np.vstack([halfspaces(box), halfspaces(other)])
        common = ConvexHull(HalfspaceIntersection(planes, np.zeros(3)).intersections).volume
        expected = common / (np.prod(box[3:6]) + np.prod(other[3:6]) - common)
        worst = max(worst, abs(iou(box, other) - expected))
    assert worst < 1e-7


def test_manifold_agrees_on_2000_random_pairs():
    manifold3d = pytest.importorskip("manifold3d", reason="manifold3d is not installed")

    def solid(box):
        axes = Rotation.from_euler("ZXY", box[6:]).as_matrix()
        affine = np.column_stack([axes, box[:3]])
        return manifold3d.Manifold.cube(box[3:6].tolist(), True).transform(affine)

    rng = np.random.default_rng(8)
    boxes, others = cluster(rng, 2000), cluster(rng, 2000)
    others[:, :3] += rng.choice([0.0, 0.8], (2000, 1)) * [1, -1, 1]
    apart = 0
    for box, other in zip(boxes, others, strict=True):
        common = (solid(box) ^ solid(other)).volume()
        expected = common / (np.prod(box[3:6]) + np.prod(other[3:6]) - common)
        assert iou(box, other) == pytest.approx(expected, abs=1e-7)
        if common == 0:
            apart += 1
            assert iou(box, other) <= 1e-12
    assert 100 < apart < 1900


@pytest.fixture(scope="module")
def vectors() -> list[dict]:
    if not VECTORS.exists():
        pytest.skip("the shared reference vectors (box3d_iou.json) are not beside the repository")
    return json.loads(VECTORS.read_text())


def errors(cases: list[dict]) -> dict[str, float]:
    """Distance from the exact value, either way round, by case."""
    return {
        case["name"]: max(
            abs(iou(case["input"][first], case["input"][second]) - case["exact"]["iou"])
            for first, second in ("ab", "ba")
        )
        for case in cases
    }


def official_error(case: dict) -> float:
    values = (case["official"].get(key, math.inf) for key in ("iou", "iou_swapped"))
    return max(abs(value - case["exact"]["iou"]) for value in values)


def test_all_reference_vectors(vectors):
    assert len(vectors) == 400
    assert {name: error for name, error in errors(vectors).items() if error > 1e-9} == {}


def test_reference_vectors_where_pytorch3d_is_off_or_raises(vectors):
    hard = [case for case in vectors if official_error(case) > 1e-4]
    assert sum("error" in case["official"] for case in hard) == 8
    assert len(hard) == 23 + 8
    assert {name: error for name, error in errors(hard).items() if error > 1e-9} == {}
