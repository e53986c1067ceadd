"""Wrong parsers of 3D boxes are refused by the golden cases alone.

Each fault is one that published code has, or that is easily made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lmms_eval_grounding import conformance
from lmms_eval_grounding.conformance import own_answer, passes
from lmms_eval_grounding.corpus import Case, load_cases
from lmms_eval_grounding.geometry.boxes3d import is_rigid, rotation_from_euler
from lmms_eval_grounding.parsing import (
    answer,
    boxes3d,
    convention3d,
    placement3d,
    syntaxes3d,
    tolerant_json,
)
from lmms_eval_grounding.parsing.boxes3d import parse_boxes3d
from lmms_eval_grounding.parsing.convention3d import Box3dConvention, Scale, Scales
from lmms_eval_grounding.parsing.parsed import ParsedBoxes3d
from lmms_eval_grounding.parsing.placement3d import View, view_of
from lmms_eval_grounding.parsing.profile import Profile, load_profile
from lmms_eval_grounding.parsing.scene import Frame, Scene

CASES = load_cases("parsers/boxes3d")
SHORT_FIRST = sorted(CASES, key=lambda case: isinstance(case.input["reply"], dict))

Patch = Callable[[pytest.MonkeyPatch], None]
FAULTS: list[Patch] = []


def refused(case: Case) -> bool:
    return not passes(case, own_answer)


def fault(patch: Patch) -> Patch:
    FAULTS.append(patch)
    return patch


def test_right_parser_is_refused_by_no_case() -> None:
    assert [str(case) for case in CASES if refused(case)] == []


def parse_with(patch: pytest.MonkeyPatch, wrong: Callable[..., ParsedBoxes3d]) -> None:
    patch.setattr(conformance, "parse_boxes3d", wrong)


def read_as(patch: pytest.MonkeyPatch, change: Callable[[Box3dConvention], Any]) -> None:
    """Read every reply of boxes in a changed convention."""

    def wrong(reply: str | None, profile: Profile, scene: Scene) -> ParsedBoxes3d:
        if profile.box3d:
            profile = replace(profile, box3d=replace(profile.box3d, **change(profile.box3d)))
        return parse_boxes3d(reply, profile, scene)

    parse_with(patch, wrong)


def change_result(
    patch: pytest.MonkeyPatch, change: Callable[[ParsedBoxes3d], ParsedBoxes3d]
) -> None:
    parse_with(patch, lambda *args: change(parse_boxes3d(*args)))


def change_boxes(
    patch: pytest.MonkeyPatch, change: Callable[[tuple[float, ...]], Sequence[float]]
) -> None:
    change_result(
        patch, lambda parsed: replace(parsed, boxes=tuple(tuple(change(b)) for b in parsed.boxes))
    )


# Angles


@fault
def zyx_for_zxy(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"rotation": "ZYX"} if c.rotation == "ZXY" else {})


@fault
def zxy_written_into_zyx(patch: pytest.MonkeyPatch) -> None:
    def angles(rotation: Any) -> Any:
        r = np.asarray(rotation)
        return np.stack(
            [
                np.arctan2(r[..., 1, 0], r[..., 0, 0]),
                np.arcsin(np.clip(-r[..., 2, 0], -1, 1)),
                np.arctan2(r[..., 2, 1], r[..., 2, 2]),
            ],
            axis=-1,
        )

    patch.setattr(placement3d, "euler_from_rotation", angles)


@fault
def intrinsic_for_extrinsic(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"rotation": c.rotation.upper()})


@fault
def extrinsic_for_intrinsic(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"rotation": c.rotation.lower()})


@fault
def angles_in_reverse_order(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"rotation": c.rotation[::-1]})


@fault
def degrees_for_radians(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"angle": "degree"} if c.angle == "radian" else {})


@fault
def radians_for_degrees(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"angle": "radian"} if c.angle == "degree" else {})


@fault
def radians_for_half_turns(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"angle": "radian"} if c.angle == "half_turn" else {})


@fault
def degrees_for_half_turns(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"angle": "degree"} if c.angle == "half_turn" else {})


@fault
def whole_turns_for_half_turns(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(convention3d._RADIANS, "half_turn", 2 * np.pi)


@fault
def turns_go_the_other_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        placement3d,
        "rotation_from_euler",
        lambda angles, order: rotation_from_euler(-np.asarray(angles), order),
    )


@fault
def yaw_only(patch: pytest.MonkeyPatch) -> None:
    def turned(angles: Any, order: str) -> Any:
        kept = np.array(angles)
        kept[..., 1:] = 0
        return rotation_from_euler(kept, order)

    patch.setattr(placement3d, "rotation_from_euler", turned)


@fault
def not_turned(patch: pytest.MonkeyPatch) -> None:
    change_boxes(patch, lambda box: (*box[:6], 0.0, 0.0, 0.0))


@fault
def degrees_guessed_by_magnitude(patch: pytest.MonkeyPatch) -> None:
    def turned(angles: Any, order: str) -> Any:
        angles = np.asarray(angles)
        large = np.abs(angles).max() > 2 * np.pi
        return rotation_from_euler(np.radians(angles) if large else angles, order)

    patch.setattr(placement3d, "rotation_from_euler", turned)


@fault
def no_flag_for_large_angles(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement3d, "FULL_TURN", np.inf)


@fault
def flag_for_a_rounded_full_turn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement3d, "FULL_TURN", 2 * np.pi)


# Centres and sizes


@fault
def bottom_centre_for_centre(patch: pytest.MonkeyPatch) -> None:
    change_boxes(
        patch,
        lambda b: (
            *(np.array(b[:3]) + rotation_from_euler(b[6:], "ZXY")[:, 2] * b[5] / 2),
            *b[3:],
        ),
    )


@fault
def half_sizes_for_sizes(patch: pytest.MonkeyPatch) -> None:
    change_boxes(patch, lambda b: (*b[:3], *(2 * side for side in b[3:6]), *b[6:]))


@fault
def corner_for_centre(patch: pytest.MonkeyPatch) -> None:
    change_boxes(patch, lambda b: (*np.add(b[:3], np.divide(b[3:6], 2)), *b[3:]))


@fault
def sizes_in_another_order(patch: pytest.MonkeyPatch) -> None:
    change_boxes(patch, lambda b: (*b[:3], b[4], b[3], b[5], *b[6:]))


@fault
def sizes_turned_with_the_box(patch: pytest.MonkeyPatch) -> None:
    def upright(b: tuple[float, ...]) -> Sequence[float]:
        sides = np.abs(rotation_from_euler(b[6:], "ZXY")) @ b[3:6]
        return (*b[:3], *sides, 0.0, 0.0, 0.0)

    change_boxes(patch, upright)


@fault
def negative_sizes_made_positive(patch: pytest.MonkeyPatch) -> None:
    right = placement3d._checked

    def wrong(box: Any, angles: Any, score: Any) -> Any:
        return right(np.concatenate([box[:3], np.abs(box[3:6]), box[6:]]), angles, score)

    patch.setattr(placement3d, "_checked", wrong)


@fault
def sizes_of_zero_are_valid(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement3d, "is_valid", lambda box: bool((box[3:6] >= 0).all()))


@fault
def large_boxes_rescued_as_millimetres(patch: pytest.MonkeyPatch) -> None:
    change_boxes(patch, lambda b: np.divide(b, 1000) if max(b[3:6]) > 100 else b)


@fault
def no_flag_for_large_boxes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement3d, "LONGEST", np.inf)


# Frames


@fault
def camera_box_read_as_scene_box(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"frame": "scene"})


@fault
def scene_box_read_as_camera_box(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"frame": "camera", "unnumbered": "first"})


def patch_view(patch: pytest.MonkeyPatch, change: Callable[[View], View]) -> None:
    def wrong(*args: Any) -> View | None:
        view = view_of(*args)
        return view and change(view)

    patch.setattr(placement3d, "view_of", wrong)


@fault
def inverse_pose(patch: pytest.MonkeyPatch) -> None:
    patch_view(patch, lambda view: view._replace(pose=np.linalg.inv(view.pose)))


@fault
def transposed_pose(patch: pytest.MonkeyPatch) -> None:
    def transposed(view: View) -> View:
        pose = view.pose.copy()
        pose[:3, :3] = pose[:3, :3].T
        return view._replace(pose=pose)

    patch_view(patch, transposed)


@fault
def pose_without_its_rotation(patch: pytest.MonkeyPatch) -> None:
    def shifted(view: View) -> View:
        pose = np.eye(4)
        pose[:3, 3] = view.pose[:3, 3]
        return view._replace(pose=pose)

    patch_view(patch, shifted)


@fault
def pose_moves_the_centre_only(patch: pytest.MonkeyPatch) -> None:
    def wrong(reply: str | None, profile: Profile, scene: Scene) -> ParsedBoxes3d:
        unmoved = [Frame(np.eye(4), f.intrinsics, f.width, f.height) for f in scene.frames]
        still = parse_boxes3d(reply, profile, replace(scene, frames=unmoved))
        parsed = parse_boxes3d(reply, profile, scene)
        pairs = zip(parsed.boxes, still.boxes, strict=False)
        return replace(parsed, boxes=tuple((*moved[:6], *kept[6:]) for moved, kept in pairs))

    parse_with(patch, wrong)


@fault
def y_up_for_z_up(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"axes": ("x", "y", "z")})


@fault
def axes_of_the_viewer_for_every_camera(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"axes": ("x", "-z", "y")} if c.frame == "camera" else {})


@fault
def frames_counted_from_1(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        placement3d, "view_of", lambda number, *args: view_of(number and number - 1, *args)
    )


@fault
def first_frame_where_none_is_named(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"unnumbered": "first"})


@fault
def first_frame_whatever_is_named(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement3d, "view_of", lambda number, *args: view_of(number and 0, *args))


@fault
def last_frame_for_negative_numbers(patch: pytest.MonkeyPatch) -> None:
    def wrong(number: int | None, convention: Any, scene: Scene) -> View | None:
        counted = number % len(scene.frames) if number and scene.frames else number
        return view_of(counted, convention, scene)

    patch.setattr(placement3d, "view_of", wrong)


@fault
def identity_for_an_unknown_pose(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        placement3d, "view_of", lambda *args: view_of(*args) or View(np.eye(4), np.ones(4))
    )


@fault
def any_matrix_is_a_pose(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement3d, "is_rigid", lambda pose: True)


@fault
def mirrored_poses_are_poses(patch: pytest.MonkeyPatch) -> None:
    def unmirrored(pose: Any) -> bool:
        return bool(is_rigid(pose) or is_rigid(np.asarray(pose) @ np.diag([1, 1, -1, 1])))

    patch.setattr(placement3d, "is_rigid", unmirrored)


@fault
def image_point_in_thousandths(patch: pytest.MonkeyPatch) -> None:
    def scales(convention: Box3dConvention, bounds: Any) -> Scales | None:
        right = Box3dConvention.scales(convention, bounds)
        if right is None or "u" not in convention.slots:
            return right
        return right._replace(position=Scale(np.zeros(3), np.array([1e-3, 1e-3, 1.0])))

    read_with_scales(patch, scales)


def read_with_scales(
    patch: pytest.MonkeyPatch, scales: Callable[[Box3dConvention, Any], Scales | None]
) -> None:
    class Wrong(Box3dConvention):
        def scales(self, bounds: Any) -> Scales | None:
            return scales(self, bounds)

    def wrong(reply: str | None, profile: Profile, scene: Scene) -> ParsedBoxes3d:
        if profile.box3d:
            profile = replace(profile, box3d=Wrong(**vars(profile.box3d)))
        return parse_boxes3d(reply, profile, scene)

    parse_with(patch, wrong)


@fault
def depth_along_the_ray(patch: pytest.MonkeyPatch) -> None:
    def wrong(reply: str | None, profile: Profile, scene: Scene) -> ParsedBoxes3d:
        parsed = parse_boxes3d(reply, profile, scene)
        if not profile.box3d or "u" not in profile.box3d.slots:
            return parsed

        def nearer(box: tuple[float, ...]) -> tuple[float, ...]:
            pose = np.asarray(scene.frames[0].pose)
            ray = np.array(box[:3]) - pose[:3, 3]
            depth = ray @ pose[:3, 2]
            return (*(pose[:3, 3] + ray * depth / np.linalg.norm(ray)), *box[3:])

        return replace(parsed, boxes=tuple(map(nearer, parsed.boxes)))

    parse_with(patch, wrong)


@fault
def no_tolerance_at_the_edge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement3d, "TOLERANCE", 0.0)


@fault
def nothing_is_out_of_space(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement3d, "TOLERANCE", np.inf)


# Grids


@fault
def grid_from_the_origin(patch: pytest.MonkeyPatch) -> None:
    def scales(convention: Box3dConvention, bounds: Any) -> Scales | None:
        right = Box3dConvention.scales(convention, bounds)
        if right is None or not convention.grid:
            return right
        return right._replace(position=Scale(np.zeros(3), right.position.step))

    read_with_scales(patch, scales)


@fault
def half_a_step_added(patch: pytest.MonkeyPatch) -> None:
    def scales(convention: Box3dConvention, bounds: Any) -> Scales | None:
        right = Box3dConvention.scales(convention, bounds)
        if right is None or not convention.grid:
            return right
        low = right.position.low + right.position.step / 2
        return right._replace(position=Scale(low, right.position.step))

    read_with_scales(patch, scales)


@fault
def steps_over_one_fewer(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"grid": c.grid._replace(steps=c.grid.steps - 1)} if c.grid else {})


@fault
def sizes_on_the_scale_of_positions(patch: pytest.MonkeyPatch) -> None:
    read_as(patch, lambda c: {"grid": c.grid._replace(size=c.grid.position)} if c.grid else {})


@fault
def unit_cube_for_unknown_bounds(patch: pytest.MonkeyPatch) -> None:
    parse_with(
        patch,
        lambda reply, profile, scene: parse_boxes3d(
            reply, profile, replace(scene, bounds=scene.bounds or ((0, 0, 0), (1, 1, 1)))
        ),
    )


# Order, scores, status


@fault
def first_box_only(patch: pytest.MonkeyPatch) -> None:
    change_result(patch, lambda parsed: replace(parsed, boxes=parsed.boxes[:1]))


@fault
def last_box_first(patch: pytest.MonkeyPatch) -> None:
    change_result(patch, lambda parsed: replace(parsed, boxes=parsed.boxes[::-1]))


@fault
def boxes_sorted_by_score(patch: pytest.MonkeyPatch) -> None:
    def by_score(parsed: ParsedBoxes3d) -> ParsedBoxes3d:
        if not parsed.scores or None in parsed.scores:
            return parsed
        pairs = sorted(zip(parsed.scores, parsed.boxes, strict=True), reverse=True)
        scores, found = zip(*pairs, strict=True)
        return replace(parsed, boxes=found, scores=scores)

    change_result(patch, by_score)


@fault
def boxes_sorted_by_size(patch: pytest.MonkeyPatch) -> None:
    def by_volume(box: tuple[float, ...]) -> float:
        return float(np.prod(box[3:6]))

    change_result(
        patch, lambda parsed: replace(parsed, boxes=tuple(sorted(parsed.boxes, key=by_volume)))
    )


@fault
def repeated_boxes_dropped(patch: pytest.MonkeyPatch) -> None:
    change_result(patch, lambda parsed: replace(parsed, boxes=tuple(dict.fromkeys(parsed.boxes))))


@fault
def scores_ignored(patch: pytest.MonkeyPatch) -> None:
    change_result(patch, lambda parsed: replace(parsed, scores=None))


@fault
def missing_scores_are_zero(patch: pytest.MonkeyPatch) -> None:
    change_result(
        patch,
        lambda parsed: replace(
            parsed, scores=parsed.scores and tuple(score or 0.0 for score in parsed.scores)
        ),
    )


@fault
def missing_scores_are_ranks(patch: pytest.MonkeyPatch) -> None:
    change_result(
        patch,
        lambda parsed: (
            replace(parsed, scores=tuple(1 / (i + 1) for i in range(len(parsed.boxes))))
            if parsed.boxes and not parsed.scores
            else parsed
        ),
    )


@fault
def scores_of_dropped_boxes_stay(patch: pytest.MonkeyPatch) -> None:
    right = boxes3d._ranked

    def wrong(valid: Any, flags: Any, syntax: str) -> ParsedBoxes3d:
        parsed = right(valid, flags, syntax)
        if "partial" not in flags or not parsed.scores:
            return parsed
        return replace(parsed, scores=(0.9, *parsed.scores)[: len(parsed.scores)])

    patch.setattr(boxes3d, "_ranked", wrong)


@fault
def quoted_scores_ignored(patch: pytest.MonkeyPatch) -> None:
    right = syntaxes3d._score
    patch.setattr(syntaxes3d, "_score", lambda item: None if isinstance(item, str) else right(item))


@fault
def nan_is_a_score(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(syntaxes3d, "_score", syntaxes3d.json_number)


@fault
def scores_clamped_to_1(patch: pytest.MonkeyPatch) -> None:
    right = syntaxes3d._score

    def wrong(item: Any) -> float | None:
        score = right(item)
        return score if score is None else min(max(score, 0.0), 1.0)

    patch.setattr(syntaxes3d, "_score", wrong)


@fault
def one_invalid_box_drops_all(patch: pytest.MonkeyPatch) -> None:
    change_result(
        patch,
        lambda parsed: (
            ParsedBoxes3d("malformed", reason="broken") if "partial" in parsed.flags else parsed
        ),
    )


@fault
def failure_read_as_an_empty_list(patch: pytest.MonkeyPatch) -> None:
    change_result(
        patch,
        lambda parsed: ParsedBoxes3d("no_target") if parsed.status == "unparseable" else parsed,
    )


@fault
def invalid_boxes_read_as_an_empty_list(patch: pytest.MonkeyPatch) -> None:
    change_result(
        patch, lambda parsed: ParsedBoxes3d("no_target") if parsed.status == "malformed" else parsed
    )


@fault
def failure_read_as_a_box_of_zeros(patch: pytest.MonkeyPatch) -> None:
    change_result(
        patch, lambda parsed: parsed if parsed.boxes else ParsedBoxes3d("ok", ((0.0,) * 9,))
    )


@fault
def any_nine_numbers_are_a_box(patch: pytest.MonkeyPatch) -> None:
    def wrong(reply: str | None, profile: Profile, scene: Scene) -> ParsedBoxes3d:
        parsed = parse_boxes3d(reply, profile, scene)
        numbers = re.findall(r"-?\d+(?:\.\d+)?", reply or "")[:9]
        if parsed.reason != "no_box" or len(numbers) < 9:
            return parsed
        return parse_boxes3d(f"[{','.join(numbers)}]", load_profile("prompt"), scene)

    parse_with(patch, wrong)


@fault
def numbers_beyond_the_ninth_dropped(patch: pytest.MonkeyPatch) -> None:
    right = syntaxes3d._number_row
    patch.setattr(
        syntaxes3d,
        "_number_row",
        lambda numbers, convention: right(numbers[: len(convention.slots)], convention),
    )


@fault
def seven_numbers_are_a_box_and_a_yaw(patch: pytest.MonkeyPatch) -> None:
    right = syntaxes3d._number_row

    def wrong(numbers: list[Any], convention: Box3dConvention) -> Any:
        yaw_first = len(numbers) == 7 and len(convention.slots) == 9
        return right([*numbers, 0.0, 0.0] if yaw_first else numbers, convention)

    patch.setattr(syntaxes3d, "_number_row", wrong)


@fault
def strict_json_only(patch: pytest.MonkeyPatch) -> None:
    def wrong(reply: str | None, profile: Profile, scene: Scene) -> ParsedBoxes3d:
        try:
            json.loads(reply or "")
        except ValueError:
            return ParsedBoxes3d("no_target")
        return parse_boxes3d(reply, profile, scene)

    parse_with(patch, wrong)


@fault
def boxes_in_reasoning_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(answer, "_after_reasoning", lambda text: text)


@fault
def failure_tags_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(answer, "_FAILURE_TAGS", ("\0",))


@fault
def no_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(boxes3d, "MAX_BOXES", 10_000)


@fault
def too_low_a_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(boxes3d, "MAX_BOXES", 999)


# Candidates


@fault
def first_candidate_for_an_unknown_id(patch: pytest.MonkeyPatch) -> None:
    def wrong(reply: str | None, profile: Profile, scene: Scene) -> ParsedBoxes3d:
        parsed = parse_boxes3d(reply, profile, scene)
        if parsed.reason != "unknown_id" or not scene.candidates:
            return parsed
        return ParsedBoxes3d("ok", (tuple(map(float, next(iter(scene.candidates.values())))),))

    parse_with(patch, wrong)


@fault
def ids_are_places_in_the_list(patch: pytest.MonkeyPatch) -> None:
    parse_with(
        patch,
        lambda reply, profile, scene: parse_boxes3d(
            reply,
            profile,
            replace(scene, candidates=dict(enumerate(scene.candidates.values())))
            if scene.candidates
            else scene,
        ),
    )


@fault
def ids_anywhere_in_prose(patch: pytest.MonkeyPatch) -> None:
    def wrong(text: str, convention: Any) -> Any:
        found = re.findall(r"\d+", text)
        return (syntaxes3d.Found(syntaxes3d.Row((float(id),))) for id in found)

    patch.setitem(syntaxes3d.ID_SYNTAXES, "json_ids", wrong)


@fault
def a_list_of_ids_that_is_cut_is_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(syntaxes3d, "_up_to_cut", lambda text: next(tolerant_json.values(text)).data)


@fault
def half_a_token_is_an_id(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(syntaxes3d, "_ID_TEXT", re.compile(r"(<OBJ)?([0-9]{1,9})>?"))


@fault
def a_call_ends_at_its_first_parenthesis(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(syntaxes3d, "_CALL", re.compile(r"\bBbox\s*\(([^)]*)(?:(\))|\Z)"))


@fault
def sections_not_asked_for(patch: pytest.MonkeyPatch) -> None:
    def wrong(reply: str | None, profile: Profile, scene: Scene) -> ParsedBoxes3d:
        own = profile.candidates if scene.candidates is not None else profile.box3d
        return parse_boxes3d(reply, profile if own else load_profile("prompt"), scene)

    parse_with(patch, wrong)


@pytest.mark.parametrize("wrong", FAULTS, ids=lambda wrong: wrong.__name__)
def test_wrong_parser_is_refused(wrong: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch)
    assert any(map(refused, SHORT_FIRST))
