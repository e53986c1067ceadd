"""Rotated cuboids with nine degrees of freedom, and the exact IoU of any two of them.

A box is nine float64 numbers ``[x, y, z, dx, dy, dz, a, b, c]``: the centre and the full sizes
in metres, and intrinsic ZXY Euler angles in radians. A point ``p`` of the box's own frame lies
at ``Rz(a) @ Rx(b) @ Ry(c) @ p + centre``. This is the convention of EmbodiedScan and MMScan:
``OpenRobotLab/EmbodiedScan@090cf3ed:embodiedscan/structures/bbox_3d/euler_box3d.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .cube_coverage import Floats, covered_share

Mask = NDArray[np.bool_]

POSE_TOLERANCE = 1e-3
"""How far ``R.T @ R`` of a pose may be from the identity (poses are often stored rounded)."""

_PAIRS_PER_CHUNK = 4096
"""Pairs in work at a time: bounds the peak memory, and fits the processor's cache."""

_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_TURNING_PLANE = {"X": (1, 2), "Y": (2, 0), "Z": (0, 1)}


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def rotation_from_euler(angles: ArrayLike, order: str) -> Floats:
    """Return the rotation matrices of Euler angles.

    Parameters
    ----------
    angles : (..., 3)
        Radians, one per letter of ``order``.
    order : str
        Each axis once. Capitals are intrinsic (``"ZXY"`` is ``Rz @ Rx @ Ry``), small letters
        extrinsic (``"xyz"`` is ``Rz @ Ry @ Rx``: the first turn is the first applied).

    Returns
    -------
    (..., 3, 3)
        Matrices that map column vectors of the turned frame to the fixed one.

    Raises
    ------
    ValueError
        Unknown order, or not three angles.
    """
    angles = _floats(angles)
    if angles.shape[-1:] != (3,):
        raise ValueError(f"angles must be (..., 3), got {angles.shape}")
    if sorted(order) not in (list("XYZ"), list("xyz")):
        raise ValueError(f"order must be like 'ZXY' (intrinsic) or 'zxy' (extrinsic), got {order}")
    turns = [_turn(axis, angles[..., i]) for i, axis in enumerate(order.upper())]
    first, second, third = turns if order.isupper() else turns[::-1]
    product: Floats = first @ second @ third
    return product


def _turn(axis: str, angle: Floats) -> Floats:
    u, v = _TURNING_PLANE[axis]
    turn = np.zeros((*angle.shape, 3, 3))
    turn[..., range(3), range(3)] = 1.0
    turn[..., u, u] = turn[..., v, v] = np.cos(angle)
    turn[..., v, u] = np.sin(angle)
    turn[..., u, v] = -turn[..., v, u]
    return turn


def euler_from_rotation(rotation: ArrayLike) -> Floats:
    """Return intrinsic ZXY angles of rotation matrices, undoing `rotation_from_euler`.

    Parameters
    ----------
    rotation : (..., 3, 3)

    Returns
    -------
    (..., 3)
        Radians, the second in [-pi/2, pi/2]. At gimbal lock (the second at +-pi/2) the first and
        third are not unique; the triple returned still gives the same matrix.
    """
    r = _floats(rotation)
    a = np.arctan2(-r[..., 0, 1], r[..., 1, 1])
    # b and c are read off Rz(-a) @ R = Rx(b) @ Ry(c): near gimbal lock rounding makes `a`
    # arbitrary, and this way they make up for it.
    sin, cos = np.sin(a), np.cos(a)
    b = np.arctan2(r[..., 2, 1], cos * r[..., 1, 1] - sin * r[..., 0, 1])
    c = np.arctan2(cos * r[..., 0, 2] + sin * r[..., 1, 2], cos * r[..., 0, 0] + sin * r[..., 1, 0])
    return np.stack([a, b, c], axis=-1)


def corners(boxes: ArrayLike) -> Floats:
    """Return the corner points of boxes, (..., 9) -> (..., 8, 3), in the boxes' frame, metres.

    Corner 0 has all three local coordinates at their minimum, corner 7 at their maximum, local
    z changes fastest.
    """
    boxes = _floats(boxes)
    local = _CORNERS * boxes[..., None, 3:6]
    rotation = rotation_from_euler(boxes[..., 6:], "ZXY")
    points: Floats = local @ np.swapaxes(rotation, -1, -2) + boxes[..., None, :3]
    return points


def volumes(boxes: ArrayLike) -> Floats:
    """Return the volumes of boxes, (..., 9) -> (...), cubic metres."""
    product: Floats = np.prod(_floats(boxes)[..., 3:6], axis=-1)
    return product


def is_valid(boxes: ArrayLike) -> Mask:
    """Return which boxes are cuboids, (..., 9) -> (...): all numbers finite, all sizes above 0."""
    boxes = _floats(boxes)
    valid: Mask = np.all(np.isfinite(boxes), axis=-1) & np.all(boxes[..., 3:6] > 0, axis=-1)
    return valid


def transform(boxes: ArrayLike, pose: ArrayLike) -> Floats:
    """Return boxes moved by a rigid transform, such as a camera-to-scene pose.

    Parameters
    ----------
    boxes : (..., 9)
        In the source frame, e.g. the camera's.
    pose : (4, 4)
        Maps homogeneous source coordinates to destination coordinates (camera to scene is the
        inverse of the extrinsic matrix).

    Returns
    -------
    (..., 9)
        In the destination frame. Sizes are unchanged, angles as `euler_from_rotation` has them;
        boxes that were not finite are not finite after it.

    Raises
    ------
    ValueError
        The pose is not rigid to `POSE_TOLERANCE`: scaled, mirrored, transposed, not finite.
    """
    boxes = _floats(boxes)
    pose = _floats(pose)
    if pose.shape != (4, 4) or not is_rigid(pose):
        raise ValueError(f"pose must be a rigid (4, 4) transform, got {pose.tolist()}")
    turn, shift = pose[:3, :3], pose[:3, 3]
    with np.errstate(invalid="ignore"):
        centres = boxes[..., :3] @ turn.T + shift
        rotations = turn @ rotation_from_euler(boxes[..., 6:], "ZXY")
        return np.concatenate([centres, boxes[..., 3:6], euler_from_rotation(rotations)], axis=-1)


def is_rigid(poses: ArrayLike) -> Mask:
    """Return which matrices, (..., 4, 4) -> (...), are rigid transforms to `POSE_TOLERANCE`.

    A scaled, mirrored, transposed or not finite one is not.

    Raises
    ------
    ValueError
        The array is not (..., 4, 4).
    """
    poses = _floats(poses)
    if poses.shape[-2:] != (4, 4):
        raise ValueError(f"poses must be (..., 4, 4), got {poses.shape}")
    finite = np.isfinite(poses).all(axis=(-2, -1))
    turn = poses[..., :3, :3]
    homogeneous = (poses[..., 3, :] == [0.0, 0.0, 0.0, 1.0]).all(axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        skew = np.abs(np.swapaxes(turn, -1, -2) @ turn - np.eye(3)).max(axis=(-2, -1))
        rigid: Mask = finite & homogeneous & (skew <= POSE_TOLERANCE) & (np.linalg.det(turn) > 0)
    return rigid


def iou_matrix(preds: ArrayLike, targets: ArrayLike) -> Floats:
    """Return the exact volume IoU of every predicted with every target box.

    ``IoU = |P & T| / (|P| + |T| - |P & T|)``, in [0, 1], bitwise symmetric; 1 for equal rows.

    Parameters
    ----------
    preds : (M, 9)
        In the targets' frame. A row that is not `is_valid` gets IoU 0 with every target.
    targets : (N, 9)

    Returns
    -------
    (M, N)
        An empty list counts as no boxes, so (0, N) or (M, 0) where nothing is to compare.

    Raises
    ------
    ValueError
        A target is not `is_valid` (its row is named), or an array is not (n, 9).

    Notes
    -----
    The smaller box of a pair becomes the cube [-1, 1]^3, and `covered_share` measures the part
    of it inside the other, by a continuous function of the boxes: coplanar, touching and nearly
    coincident faces need no special case and no tolerance. The error is that of rounding: the
    larger of about 1e-15 and 1e-16 times the ratio of the longest to the shortest side. Unequal
    boxes whose numbers are so large or small that float64 cannot hold their ratios get 0.
    """
    preds, targets = _box_rows(preds, "preds"), _box_rows(targets, "targets")
    invalid = np.flatnonzero(~is_valid(targets))
    if invalid.size:
        raise ValueError(
            f"targets[{invalid[0]}] is not a finite box of positive size: {targets[invalid[0]]}"
        )
    result = np.zeros((len(preds), len(targets)))
    kept = np.flatnonzero(is_valid(preds))
    n_pairs = len(kept) * len(targets)
    with np.errstate(all="ignore"):
        for start in range(0, n_pairs, _PAIRS_PER_CHUNK):
            pair = np.arange(start, min(start + _PAIRS_PER_CHUNK, n_pairs))
            pred, target = kept[pair // len(targets)], pair % len(targets)
            near = np.flatnonzero(_spheres_meet(preds[pred], targets[target]))
            pred, target = pred[near], target[near]
            result[pred, target] = _pair_iou(preds[pred], targets[target])
    return result


def _box_rows(boxes: ArrayLike, name: str) -> Floats:
    rows = _floats(boxes)
    if rows.size == 0:
        return rows.reshape(0, 9)
    if rows.ndim != 2 or rows.shape[1] != 9:
        raise ValueError(f"{name} must be (n, 9), got {rows.shape}")
    return rows


def _spheres_meet(boxes: Floats, others: Floats) -> Mask:
    """Return whether the bounding spheres of box i of either have a point in common."""
    gap = boxes[:, :3] - others[:, :3]
    reach = (_norm(boxes[:, 3:6]) + _norm(others[:, 3:6])) / 2
    meet: Mask = _norm(gap) <= reach
    return meet


def _norm(vectors: Floats) -> Floats:
    length: Floats = np.sqrt(np.einsum("ni,ni->n", vectors, vectors))
    return length


def _pair_iou(boxes: Floats, others: Floats) -> Floats:
    """Return the IoU of box i of either, for every i."""
    small, large = _ordered(boxes, others)
    half, half_large = small[:, 3:6] / 2, large[:, 3:6] / 2
    into_small = np.swapaxes(rotation_from_euler(small[:, 6:], "ZXY"), 1, 2)
    relative = into_small @ rotation_from_euler(large[:, 6:], "ZXY")
    centre = np.einsum("nij,nj->ni", into_small, large[:, :3] - small[:, :3])
    half_edges = relative * half_large[:, None, :]

    # Either box's bounding box in the frame of the other: a gap there separates the two.
    reach = half + np.abs(half_edges).sum(axis=2)
    reach_large = half_large + np.einsum("nij,ni->nj", np.abs(relative), half)
    centre_large = np.einsum("nij,ni->nj", relative, centre)
    gap = (np.abs(centre) >= reach) | (np.abs(centre_large) >= reach_large)
    meet = np.flatnonzero(~gap.any(axis=1))

    size_ratio = np.prod(half_large[meet] / half[meet], axis=1)
    share = covered_share(centre[meet] / half[meet], half_edges[meet] / half[meet, :, None])
    share = np.clip(share, 0.0, np.minimum(size_ratio, 1.0))
    iou = share / (1.0 + size_ratio - share)
    result = np.zeros(len(boxes))
    result[meet] = np.where(np.isfinite(iou), iou, 0.0)
    result[(boxes == others).all(axis=1)] = 1.0
    return result


def _ordered(boxes: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Return the smaller and the larger box of each pair, volumes first, then the nine numbers.

    An order that does not depend on the side a box came from makes the IoU symmetric.
    """
    keys = np.column_stack([volumes(boxes), boxes])
    other_keys = np.column_stack([volumes(others), others])
    decisive = np.argmax(keys != other_keys, axis=1)[:, None]
    swap = np.take_along_axis(keys, decisive, 1) > np.take_along_axis(other_keys, decisive, 1)
    return np.where(swap, others, boxes), np.where(swap, boxes, others)
