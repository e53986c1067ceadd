"""What a profile writes of 3D boxes, it reads back: within the profile's own resolution.

The bound on the displacement of a corner is computed from profiles.json: half a step of each
number of the centre, a quarter of a step of each size (a corner is half a size away), and the
angle of half a step of each written angle, over half the diagonal: a rotation composed of several
is off by at most the sum of what they are off. At gimbal lock, too, where the written angles are
not unique.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scenes3d import DECLARED, EXAMPLE_BOX, EXAMPLE_SCENE, random_scene, writable_boxes

from lmms_eval_grounding.geometry.boxes3d import corners, iou_matrix, volumes
from lmms_eval_grounding.parsing.boxes3d import parse_boxes3d
from lmms_eval_grounding.parsing.parsed import ParsedBoxes3d
from lmms_eval_grounding.parsing.profile import load_profile, profile_names
from lmms_eval_grounding.parsing.scene import Frame, Scene
from lmms_eval_grounding.writing.boxes3d import write_boxes3d

NOISE = 1e-9  # metres, for the rounding of floating point
RADIANS = {"radian": 1.0, "degree": math.pi / 180, "half_turn": math.pi}
CANDIDATE_NAMES = profile_names("candidates")


def steps(name: str, scene: Scene) -> tuple[np.ndarray, np.ndarray, float]:
    """Return one step of a profile's centre and sizes, (3,) in metres, and of an angle."""
    section, ones = DECLARED[name], np.ones(3)
    grid = section.get("grid")
    if not grid:
        length = 10.0 ** -section.get("decimals", 0) * ones
        unit = RADIANS[section.get("angle", "radian")]
        return length, length, 10.0 ** -section.get("angle_decimals", 0) * unit
    extent = np.subtract(scene.bounds[1], scene.bounds[0])

    def step(kind: str) -> np.ndarray:
        low, high = grid.get(kind, (0, extent))
        return (np.asarray(high) - low) / grid["steps"] * ones

    return step("position"), step("size"), step("angle")[0] if "angle" in grid else 0.0


def centre_error(name: str, box, scene: Scene) -> float:
    """Return by how many metres a centre may be off."""
    length, _, _ = steps(name, scene)
    if "u" not in DECLARED[name]["slots"]:
        return float(np.linalg.norm(length / 2))
    frame = scene.frames[0]
    pose = np.asarray(frame.pose)
    x, y, depth = np.linalg.solve(pose[:3, :3], np.asarray(box[:3]) - pose[:3, 3])
    share = length[0] / 2  # of u, v and depth alike
    sides = np.array([frame.width, frame.height]) / np.asarray(frame.intrinsics)[:2]
    across = share * sides * (depth + share) + np.abs([x, y]) / depth * share
    return float(np.linalg.norm([*across, share]))


def corner_error(name: str, box, scene: Scene) -> float:
    """Return by how many metres a corner may be off."""
    _, size_step, angle_step = steps(name, scene)
    turned = sum(slot in "abc" for slot in DECLARED[name]["slots"]) * angle_step / 2
    sizes = np.asarray(box[3:6])
    reach = np.linalg.norm(sizes + size_step) / 2  # of the box as it is written
    return float(
        centre_error(name, box, scene)
        + np.linalg.norm(size_step.max() * np.ones(3)) / 4
        + turned * reach
        + NOISE
    )


def farthest(points: np.ndarray, others: np.ndarray) -> float:
    """Return how far a point of one set is from the nearest of the other, at most."""
    distances = np.linalg.norm(points[:, None] - others[None], axis=-1)
    return float(max(distances.min(axis=1).max(), distances.min(axis=0).max()))


def least_iou(box, error: float) -> float:
    """Return the IoU that two boxes have at least whose corners are no farther apart.

    Each contains the other when that is made smaller by the error on every side.
    """
    shared = float(np.prod(np.maximum(np.asarray(box[3:6]) - 2 * error, 0)))
    largest = float(np.prod(np.asarray(box[3:6]) + 2 * error))
    return shared / (volumes(box) + largest - shared)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DECLARED)
def test_a_written_box_is_read_back_within_the_resolution_of_its_profile(name, seed):
    profile, scene = load_profile(name), random_scene(seed)
    for box in writable_boxes(name, scene, seed):
        reply = write_boxes3d([box], profile, scene)
        parsed = parse_boxes3d(reply, profile, scene)
        assert (parsed.status, parsed.flags, len(parsed.boxes)) == ("ok", (), 1), (box, reply)
        allowed = corner_error(name, box, scene)
        error = farthest(corners(parsed.boxes[0]), corners(box))
        assert error <= allowed, f"{box} became {parsed.boxes[0]} by {reply!r}: {error} {allowed}"
        ((iou,),) = iou_matrix(parsed.boxes, [box])
        assert iou >= least_iou(box, allowed), (box, reply, iou)


@pytest.mark.parametrize("name", DECLARED)
def test_the_iou_of_boxes_that_are_not_thin_stays_near_1(name):
    profile, scene = load_profile(name), random_scene(7)
    boxes = [box for box in writable_boxes(name, scene, 7) if min(box[3:6]) > 0.5]
    parsed = parse_boxes3d(write_boxes3d(boxes, profile, scene), profile, scene)
    assert len(boxes) >= 3
    assert np.diag(iou_matrix(parsed.boxes, boxes)).min() > 0.85


@pytest.mark.parametrize("name", DECLARED)
def test_many_boxes_keep_their_order(name):
    profile, scene = load_profile(name), random_scene(3)
    boxes = list(writable_boxes(name, scene, 3))
    parsed = parse_boxes3d(write_boxes3d(boxes, profile, scene), profile, scene)
    alone = [
        parse_boxes3d(write_boxes3d([box], profile, scene), profile, scene).boxes[0]
        for box in boxes
    ]
    assert list(parsed.boxes) == alone


@pytest.mark.parametrize("name", DECLARED)
def test_scores_are_written_or_make_the_order(name):
    profile = load_profile(name)
    boxes = [EXAMPLE_BOX, (*EXAMPLE_BOX[:3], 0.2, 0.2, 0.2, 0.0, 0.0, 0.0), EXAMPLE_BOX]
    reply = write_boxes3d(boxes, profile, EXAMPLE_SCENE, scores=[0.125, 0.75, 0.125])
    parsed = parse_boxes3d(reply, profile, EXAMPLE_SCENE)
    small = [max(box[3:6]) < 0.5 for box in parsed.boxes]
    if "score" in DECLARED[name]["write"]:
        assert (parsed.scores, small) == ((0.125, 0.75, 0.125), [False, True, False])
    else:
        assert (parsed.scores, small) == (None, [True, False, False])


LABELS = [
    "",
    "the 2nd chair, left of bbox_1=Bbox(a,1,2,3,4,5,6,7)",
    'a "[1, 2]" {<obj>1, 2, 3, 4, 5, 6</obj>} <3dbbox>1</3dbbox> <OBJ001>',
    "</think> <answer>[1,2,3,4]</answer> ``` { \\ \0 \ud800 </s>",
    "no target",
]


@pytest.mark.parametrize("label", LABELS, ids=ascii)
@pytest.mark.parametrize("name", DECLARED)
def test_no_label_disturbs_the_box(name, label):
    profile = load_profile(name)
    plain = write_boxes3d([EXAMPLE_BOX], profile, EXAMPLE_SCENE)
    labelled = write_boxes3d([EXAMPLE_BOX], profile, EXAMPLE_SCENE, labels=[label])
    expected = parse_boxes3d(plain, profile, EXAMPLE_SCENE)
    assert parse_boxes3d(labelled, profile, EXAMPLE_SCENE) == expected


@pytest.mark.parametrize("name", DECLARED)
def test_a_box_without_a_view_of_its_own_is_written_for_any_frame(name):
    profile, scene = load_profile(name), random_scene(5)
    if "u" in DECLARED[name]["slots"]:
        pytest.skip("this profile writes boxes that the first frame shows only")
    pose = np.asarray(scene.frames[0].pose)
    behind = (pose @ [0.0, 0.0, -2.0, 1.0])[:3]
    alone = Scene(scene.frames[:1], scene.bounds)
    box = (*np.clip(behind, *np.array(scene.bounds)), 1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    parsed = parse_boxes3d(write_boxes3d([box], profile, alone), profile, alone)
    assert parsed.status == "ok"
    if len(DECLARED[name]["slots"]) == 9:
        error = farthest(corners(parsed.boxes[0]), corners(box))
        assert error <= corner_error(name, box, scene)


def test_the_frame_that_shows_a_box_is_named():
    away = Frame([[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 1.5], [0, 0, 0, 1]], (500, 500, 400, 300))
    scene = Scene([Frame(None), away, *EXAMPLE_SCENE.frames])
    reply = write_boxes3d([EXAMPLE_BOX], load_profile("vg_llm"), scene)
    assert '"frame": 2' in reply


@pytest.mark.parametrize("name", CANDIDATE_NAMES)
def test_candidates_are_written_as_their_ids(name):
    profile, room = load_profile(name), random_scene(2)
    boxes = list(writable_boxes("prompt", room, 2))
    scene = Scene(candidates={3 * i + 7: box for i, box in enumerate(boxes)})
    chosen = [boxes[9], boxes[0], boxes[30]]
    nearly = [tuple(np.add(box, 1e-6)) for box in chosen]
    parsed = parse_boxes3d(write_boxes3d(nearly, profile, scene), profile, scene)
    assert list(parsed.boxes) == chosen
    ranked = write_boxes3d(chosen, profile, scene, scores=[0.1, 0.2, 0.3])
    parsed = parse_boxes3d(ranked, profile, scene)
    order = chosen if parsed.scores else chosen[::-1]
    assert (list(parsed.boxes), parsed.scores) == (
        order,
        (0.1, 0.2, 0.3) if parsed.scores else None,
    )


def test_what_cannot_be_written_is_refused():
    seed, grid = load_profile("seed1_5_vl"), load_profile("ll3da")
    with pytest.raises(ValueError, match="none is shown"):
        write_boxes3d([EXAMPLE_BOX], seed, Scene())
    with pytest.raises(ValueError, match="none is shown"):
        write_boxes3d([EXAMPLE_BOX], load_profile("n3d_vlm"), Scene([Frame(np.eye(4))]))
    with pytest.raises(ValueError, match="bounds are not known"):
        write_boxes3d([EXAMPLE_BOX], grid, Scene(EXAMPLE_SCENE.frames))
    with pytest.raises(ValueError, match="no candidates"):
        write_boxes3d([EXAMPLE_BOX], seed, Scene(candidates={}))


@pytest.mark.parametrize("name", DECLARED)
def test_no_boxes_are_written_as_none(name):
    profile = load_profile(name)
    parsed = parse_boxes3d(write_boxes3d([], profile, EXAMPLE_SCENE), profile, EXAMPLE_SCENE)
    assert parsed == ParsedBoxes3d("no_target")
