"""What a parser of 3D boxes may know of a scene: geometry, and no target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

Point = tuple[float, float, float]
Box3d = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Frame:
    """An image that was shown, and its camera: x right, y down, z forward.

    Attributes
    ----------
    pose : (4, 4) or None
        Camera to scene: maps homogeneous coordinates of the camera to those of the scene, metres.
        None, or a matrix that is not rigid: not known.
    intrinsics
        fx, fy, cx, cy in pixels of the image, without skew; None: not known.
    width, height
        Of the image, in pixels; None: not known.
    """

    pose: ArrayLike | None
    intrinsics: tuple[float, float, float, float] | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, eq=False)
class Scene:
    """The scene an answer is about: metres, z up.

    Attributes
    ----------
    frames
        The images, in the order in which they were shown.
    bounds
        The least and the greatest x, y, z of the scene; None: not known.
    candidates
        The objects to choose from, id to box, (9,) as geometry.boxes3d has them. Where they are
        given, the answer names ids; None: it gives boxes.
    """

    frames: Sequence[Frame] = ()
    bounds: tuple[Point, Point] | None = None
    candidates: Mapping[int, Sequence[float]] | None = None
