"""Replies with 3D boxes, as a model of a profile would write them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
from numpy.typing import ArrayLike

from ..geometry.boxes3d import euler_from_rotation, rotation_from_euler
from ..parsing.convention3d import (
    ANGLES,
    IMAGE_CENTRE,
    SIZES,
    Box3dConvention,
    CandidateConvention,
    Floats,
)
from ..parsing.placement3d import SCENE_VIEW, View, view_of
from ..parsing.profile import Profile
from ..parsing.scene import Scene

NOTHING = "none"  # a reply that says so in every profile


def write_boxes3d(
    boxes: ArrayLike,
    profile: Profile,
    scene: Scene,
    scores: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
) -> str:
    """Return a reply that gives 3D boxes as a model of the profile would.

    Parameters
    ----------
    boxes : (M, 9)
        In the scene's frame, as geometry.boxes3d has them.
    scene
        As for parsing. Where it has candidates, the ids of those nearest to the boxes are written.
        A profile that numbers frames refers to the first one that shows a box's centre, else to
        the first whose pose is known.
    scores
        One a box. A profile without a place for them gets the boxes by score, descending.
    labels
        One a box; by default each is an "object".

    Returns
    -------
    str
        Numbers are rounded as the profile writes them, and kept inside its grid or image; a size
        is at least one step. A profile that does not write every rotation gets the nearest one
        that it can write, whichever of its edges a box calls x.

    Raises
    ------
    ProfileError
        If the profile does not say how 3D boxes are written, or how candidates are named.
    ValueError
        If the profile takes bounds, poses or cameras that the scene does not have.
    """
    rows = np.asarray(boxes, dtype=np.float64).reshape(-1, 9)
    convention: Box3dConvention | CandidateConvention
    if scene.candidates is None:
        convention = profile.box3d_convention()
        fields = [_box_fields(row, convention, scene) for row in rows]
    else:
        convention = profile.candidate_convention()
        fields = [{"id": _nearest_id(row, scene)} for row in rows]
    if not fields:
        return NOTHING
    for i, written in enumerate(fields):
        written["label"] = _plain(labels[i] if labels else "object")
        written["score"] = ""
        if scores is not None:
            number = json.dumps(float(scores[i]))
            written["score"] = convention.write.score.format(score=number)
    order = list(range(len(rows)))
    if scores is not None and not convention.write.score:
        order.sort(key=[-score for score in scores].__getitem__)
    texts = [convention.write.box.format(number=n, **fields[i]) for n, i in enumerate(order)]
    return convention.write.reply.format(boxes=convention.write.between.join(texts))


def euler_angles(rotation: ArrayLike, order: str) -> Floats:
    """Return Euler angles of rotation matrices, undoing `rotation_from_euler` for any order.

    Parameters
    ----------
    rotation : (..., 3, 3)
    order : str
        As for `rotation_from_euler`.

    Returns
    -------
    (..., 3)
        Radians. At gimbal lock the triple is one of many that give the matrix.
    """
    # Renaming the axes makes any order ZXY; a renaming that mirrors space turns angles around.
    intrinsic = order if order.isupper() else order.upper()[::-1]
    renaming = np.zeros((3, 3))
    renaming[[2, 0, 1], ["XYZ".index(axis) for axis in intrinsic]] = 1.0
    renamed = renaming @ np.asarray(rotation, dtype=np.float64) @ renaming.T
    angles: Floats = np.linalg.det(renaming) * euler_from_rotation(renamed)
    return angles if order.isupper() else angles[..., ::-1]


def _renamings() -> Floats:
    """Return the 24 ways to name the axes of a box, (24, 3, 3), the one they have first."""
    signed = [
        np.diag(signs) @ np.eye(3)[list(order)]
        for order in permutations(range(3))
        for signs in product((1.0, -1.0), repeat=3)
    ]
    return np.array([matrix for matrix in signed if np.linalg.det(matrix) > 0])


_RENAMINGS = _renamings()


def _box_fields(box: Floats, convention: Box3dConvention, scene: Scene) -> dict[str, object]:
    """Return the text of each number of a box by its slot, and the number of its frame."""
    scales = convention.scales(scene.bounds)
    if scales is None:
        raise ValueError("the profile lays its grid over the scene, whose bounds are not known")
    frame, view = _view(box, convention, scene)
    axes = convention.axes_matrix()
    centre, rotation = _in_frame(box, view)
    sizes, angles = _written_turn(axes.T @ rotation, box[3:6], convention)
    centre = _in_image(centre, view) if convention.centre == IMAGE_CENTRE else axes.T @ centre
    values = {
        **dict(zip(convention.centre, scales.position.number(centre), strict=True)),
        **dict(zip(SIZES, scales.size.number(sizes), strict=True)),
        **dict(zip(ANGLES, scales.angle.number(angles), strict=True)),
    }
    texts = {slot: _text(values[slot], slot, convention) for slot in convention.slots}
    return {"frame": frame, **texts}


def _text(value: float, slot: str, convention: Box3dConvention) -> str:
    decimals = convention.angle_decimals if slot in ANGLES else convention.decimals
    if convention.grid:
        value = min(max(value, 0.0), convention.grid.steps)
    if slot in (*SIZES, "depth"):
        value = max(value, 10.0**-decimals)
    return f"{round(value, decimals) + 0.0:.{decimals}f}"  # adding 0 makes -0.0 a plain zero


def _view(box: Floats, convention: Box3dConvention, scene: Scene) -> tuple[int, View]:
    """Return the frame that a box is written for: the first that shows its centre, or any."""
    if convention.frame == "scene":
        return 0, SCENE_VIEW
    numbers = range(len(scene.frames)) if convention.frame_key else [None]
    views = [(n or 0, view) for n in numbers if (view := view_of(n, convention, scene))]
    if not views:
        raise ValueError("the profile writes boxes for a frame, and none is shown that it can use")
    return next(((n, view) for n, view in views if _shows(view, box)), views[0])


def _shows(view: View, box: Floats) -> bool:
    centre, _ = _in_frame(box, view)
    if view.camera is None or centre[2] <= 0:
        return bool(centre[2] > 0)
    u, v = (centre[:2] / centre[2]) * view.camera[:2] + view.camera[2:]
    return bool(0 <= u <= 1 and 0 <= v <= 1)


def _in_frame(box: Floats, view: View) -> tuple[Floats, Floats]:
    """Return the centre, (3,), and the rotation, (3, 3), of a box in the frame of a view."""
    turn, shift = view.pose[:3, :3], view.pose[:3, 3]
    centre = np.asarray(np.linalg.solve(turn, box[:3] - shift), dtype=np.float64)
    rotation = np.linalg.solve(turn, rotation_from_euler(box[6:], "ZXY"))
    return centre, np.asarray(rotation, dtype=np.float64)


def _in_image(centre: Floats, view: View) -> Floats:
    """Return u, v and depth of a point in a camera's frame; u and v stay in the image."""
    assert view.camera is not None
    depth = max(centre[2], 0.0)
    u, v = (centre[:2] / (depth or 1.0)) * view.camera[:2] + view.camera[2:]
    return np.array([min(max(u, 0.0), 1.0), min(max(v, 0.0), 1.0), depth])


def _written_turn(
    rotation: Floats, sizes: Floats, convention: Box3dConvention
) -> tuple[Floats, Floats]:
    """Return sizes and angles, (3,) each, of the nearest rotation that the profile writes."""
    unwritten = [name not in convention.slots for name in ANGLES]
    renamings = _RENAMINGS if any(unwritten) else _RENAMINGS[:1]
    turns = rotation @ renamings
    angles = euler_angles(turns, convention.rotation)
    angles[:, unwritten] = 0.0
    errors = np.abs(rotation_from_euler(angles, convention.rotation) - turns).max(axis=(1, 2))
    # Of equally near ones, the one that turns least.
    nearest = np.lexsort([np.abs(angles).sum(axis=1), np.round(errors, 9)])[0]
    return np.abs(renamings[nearest]).T @ sizes, angles[nearest]


def _nearest_id(box: Floats, scene: Scene) -> int:
    candidates = scene.candidates or {}
    if not candidates:
        raise ValueError("there are no candidates to choose from")
    return min(candidates, key=lambda id: float(np.abs(np.subtract(candidates[id], box)).max()))


def _plain(label: str) -> str:
    """Return a label without the characters that syntaxes are made of."""
    return " ".join(re.sub(r"[^\w\s'-]", " ", label).split())
