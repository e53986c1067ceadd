"""How much of a cube a parallelepiped covers, for many at a time and without tolerances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# The corners of the cube in binary order (z fastest), and its faces seen anticlockwise from
# outside, so that the xy-projection of a face has positive area where the face looks up.
_CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_FACES = np.array(
    [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
)


def covered_share(centre: Floats, half_edges: Floats) -> Floats:
    """Return the share of the cube [-1, 1]^3 that is inside parallelepipeds.

    Parameters
    ----------
    centre : (n, 3)
        Centre of each parallelepiped in the cube's frame.
    half_edges : (n, 3, 3)
        Columns lead from the centre to three face centres, in right-handed order.

    Returns
    -------
    (n,)
        Shares in [0, 1] but for rounding (about 1e-16 times the longest half edge).

    Notes
    -----
    With ``k`` the clamp of a number to [-1, 1], the volume of the common part is the sum over the
    faces of ``integral of k(z) dk(x) dk(y)``: the divergence theorem, pulled back by the clamp
    that maps space onto the cube. So only one body's faces are clipped, no body is assembled from
    pieces, and no decision has to be taken on coplanar faces: each term is continuous.
    """
    n = len(centre)
    points = np.swapaxes(half_edges @ _CORNERS.T + centre[:, :, None], 0, 1)
    xyz = points[:, :, _FACES].reshape(3, 24 * n)
    face = np.repeat(np.arange(6 * n), 4)
    for axis, side in ((2, -1.0), (0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)):
        xyz, face = _clipped(xyz, face, axis, side)
    area, _ = _integrals(xyz, face, n)
    xyz, face = _clipped(xyz, face, 2, 1.0)
    area_below, height_below = _integrals(xyz, face, n)
    # z clamped to [-1, 1], plus 1: it is 2 on the parts cut off above and 0 on those below.
    return (2.0 * (area - area_below) + height_below + area_below) / 8.0


def _clipped(xyz: Floats, face: Indices, axis: int, side: float) -> tuple[Floats, Indices]:
    """Return the parts of polygons where ``side * coordinate <= 1`` (Sutherland, Hodgman 1974).

    Polygons lie behind one another: ``xyz`` (3, n) holds the vertices in order, ``face`` (n,) the
    polygon of each. A polygon that is cut away altogether has no vertices left.
    """
    depth = 1.0 - side * xyz[axis]
    inside = depth >= 0
    follower = _followers(face)
    crosses = inside != inside[follower]
    emitted = inside.astype(np.intp) + crosses
    source = np.repeat(np.arange(len(face)), emitted)
    clipped = xyz.take(source, axis=1)
    slot = np.cumsum(emitted)[crosses] - 1
    start = np.flatnonzero(crosses)
    end = follower[start]
    way = depth[start] / (depth[start] - depth[end])
    origin = xyz.take(start, axis=1)
    clipped[:, slot] = origin + way * (xyz.take(end, axis=1) - origin)
    clipped[axis, slot] = side
    return clipped, face[source]


def _followers(face: Indices) -> Indices:
    """Return the index of the next vertex of each vertex in its polygon."""
    last = np.flatnonzero(np.diff(face, append=-1))
    follower = np.arange(1, len(face) + 1)
    follower[last[1:]] = last[:-1] + 1
    follower[last[:1]] = 0
    return follower


def _integrals(xyz: Floats, face: Indices, n: int) -> tuple[Floats, Floats]:
    """Return the signed integrals of 1 and of z over xy-projected polygons, summed per body."""
    follower = _followers(face)
    first = np.searchsorted(face, face)
    x, y, _ = xyz - xyz.take(first, axis=1)
    z = xyz[2]
    doubled = x * y[follower] - x[follower] * y
    height = doubled * (z + z[follower] + z[first]) / 6.0
    return _per_body(doubled / 2.0, face, n), _per_body(height, face, n)


def _per_body(values: Floats, face: Indices, n: int) -> Floats:
    return np.bincount(face // 6, values, minlength=n).astype(np.float64)
