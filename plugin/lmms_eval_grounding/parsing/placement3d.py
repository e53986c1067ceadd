"""Rows of numbers, or ids, as boxes in the scene's frame, or the faults that keep them from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..geometry.boxes3d import euler_from_rotation, is_rigid, is_valid, rotation_from_euler
from .convention3d import ANGLES, IMAGE_CENTRE, SIZES, Box3dConvention, Floats, Scale, Scales
from .scene import Box3d, Frame, Scene
from .syntaxes3d import Row

FULL_TURN = np.radians(361.0)  # with a degree to spare for rounding
LONGEST = 100.0  # metres; nothing in a room is longer
TOLERANCE = 0.05  # the share of a grid or an image by which a number may lie outside


class Placed(NamedTuple):
    """A box in the scene's frame, or the fault that keeps a row from being one."""

    box: Box3d | None
    fault: str | None = None
    flags: frozenset[str] = frozenset()
    score: float | None = None


class View(NamedTuple):
    """What places a box of a frame in the scene.

    ``pose`` is (4, 4); ``camera`` is fx, fy, cx, cy in shares of the image's width and height, or
    None if it is not known.
    """

    pose: Floats
    camera: Floats | None


SCENE_VIEW = View(np.eye(4), None)  # of boxes that are in the scene's frame already


def candidate_boxes(rows: Sequence[Row], scene: Scene) -> list[Placed]:
    """Return the boxes of the objects that rows name."""
    candidates = scene.candidates or {}

    def placed(row: Row) -> Placed:
        if row.fault:
            return Placed(None, row.fault)
        (id,) = row.numbers
        box = candidates.get(int(id)) if id.is_integer() else None
        if box is None:
            return Placed(None, "unknown_id")
        return Placed(tuple(float(number) for number in box), score=row.score)

    return [placed(row) for row in rows]


def scene_boxes(rows: Sequence[Row], convention: Box3dConvention, scene: Scene) -> list[Placed]:
    """Return rows as boxes in the scene's frame, (9,) as geometry.boxes3d has them."""
    scales = convention.scales(scene.bounds)
    views = {frame: view_of(frame, convention, scene) for frame in {row.frame for row in rows}}
    judged = [(row, row.fault or _fault(row, convention, scales, views[row.frame])) for row in rows]
    sound = [(row, view) for row, fault in judged if not fault and (view := views[row.frame])]
    boxes = iter(_boxes(sound, convention, scales)) if sound and scales else iter(())
    return [Placed(None, fault) if fault else next(boxes) for _, fault in judged]


def view_of(number: int | None, convention: Box3dConvention, scene: Scene) -> View | None:
    """Return the view that a row refers to by its frame number, or None if it is not known."""
    if convention.frame == "scene":
        return SCENE_VIEW
    if number is None and (convention.unnumbered == "first" or len(scene.frames) == 1):
        number = 0
    if number is None or not 0 <= number < len(scene.frames):
        return None
    frame = scene.frames[number]
    if frame.pose is None or not is_rigid(frame.pose):
        return None
    camera = _camera(frame)
    if camera is None and convention.centre == IMAGE_CENTRE:
        return None
    return View(np.asarray(frame.pose), camera)


def _camera(frame: Frame) -> Floats | None:
    if frame.intrinsics is None or not frame.width or not frame.height:
        return None
    camera = np.divide(frame.intrinsics, [frame.width, frame.height, frame.width, frame.height])
    return camera if np.isfinite(camera).all() and (camera[:2] > 0).all() else None


def _fault(
    row: Row,
    convention: Box3dConvention,
    scales: Scales | None,
    view: View | None,
) -> str | None:
    """Return what keeps the numbers of a row from being placed at all."""
    if scales is None:
        return "no_bounds"
    if view is None:
        return "no_pose"
    if convention.grid:
        slack = TOLERANCE * convention.grid.steps
        inside = all(-slack <= number <= convention.grid.steps + slack for number in row.numbers)
    elif convention.centre == IMAGE_CENTRE:
        u, v, depth = (row.numbers[convention.slots.index(slot)] for slot in IMAGE_CENTRE)
        inside = min(u, v) >= -TOLERANCE and max(u, v) <= 1 + TOLERANCE and depth > 0
    else:
        inside = True
    return None if inside else "out_of_space"


def _boxes(
    sound: Sequence[tuple[Row, View]], convention: Box3dConvention, scales: Scales
) -> Iterable[Placed]:
    """Return each row, of which there is one at least, as a box, unless it is none."""
    numbers = np.array([row.numbers for row, _ in sound])
    columns = {slot: numbers[:, place] for place, slot in enumerate(convention.slots)}
    none = np.zeros(len(sound))

    def values(names: tuple[str, ...], scale: Scale) -> Floats:
        """Return what the numbers of three slots mean, zero where the profile has no such slot."""
        known = [name in columns for name in names]
        given = np.column_stack([columns.get(name, none) for name in names])
        return np.where(known, scale.value(given), 0.0)

    poses = np.array([view.pose for _, view in sound])
    turns, shifts = poses[:, :3, :3], poses[:, :3, 3]
    axes = convention.axes_matrix()
    with np.errstate(over="ignore", invalid="ignore"):
        centres = values(convention.centre, scales.position)
        if convention.centre == IMAGE_CENTRE:
            cameras = np.array([view.camera for _, view in sound])
            depth = centres[:, 2:]
            rays = (centres[:, :2] - cameras[:, 2:]) / cameras[:, :2]
            centres = np.hstack([rays * depth, depth])
        else:
            centres = centres @ axes.T
        angles = values(ANGLES, scales.angle)
        rotations = turns @ axes @ rotation_from_euler(angles, convention.rotation)
        centres = np.einsum("nij,nj->ni", turns, centres) + shifts
        sizes = values(SIZES, scales.size)
        boxes = np.hstack([centres, sizes, euler_from_rotation(rotations)])
    return map(_checked, boxes, angles, [row.score for row, _ in sound])


def _checked(box: Floats, angles: Floats, score: float | None) -> Placed:
    """Return a box, (9,), whose angles are written as some radians, (3,), unless it is none."""
    if not np.isfinite(box).all():
        return Placed(None, "not_finite")
    if not is_valid(box):
        return Placed(None, "no_volume")
    flags = {"angle_unit_mismatch"} if np.abs(angles).max() > FULL_TURN else set()
    flags |= {"scale_mismatch"} if box[3:6].max() > LONGEST else set()
    return Placed(tuple(box.tolist()), None, frozenset(flags), score)
