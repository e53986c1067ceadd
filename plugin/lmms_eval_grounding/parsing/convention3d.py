"""How a profile writes 3D boxes, and what its numbers mean in metres and radians.

The fields are described in spec/profile.json, their meaning in spec/parsers/boxes3d/.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .scene import Point

Floats = NDArray[np.float64]

METRIC_CENTRE = ("x", "y", "z")
IMAGE_CENTRE = ("u", "v", "depth")
SIZES = ("dx", "dy", "dz")
ANGLES = ("a", "b", "c")

_RADIANS = {"radian": 1.0, "degree": math.pi / 180, "half_turn": math.pi}
_DIRECTIONS = {
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
    "-x": (-1.0, 0.0, 0.0),
    "-y": (0.0, -1.0, 0.0),
    "-z": (0.0, 0.0, -1.0),
}


class Grid(NamedTuple):
    """Numbers from 0 to ``steps`` that are laid over an interval of metres, or of radians.

    An interval is ``(low, high)``; None: the extent of the scene along the axis. Positions count
    from the scene's least coordinate.
    """

    steps: float
    position: tuple[float, float] | None = None
    size: tuple[float, float] | None = None
    angle: tuple[float, float] | None = None


class Scale(NamedTuple):
    """An affine map of three slots, ``value = low + number * step``, with one step or three."""

    low: Floats
    step: Floats | float

    def value(self, numbers: Floats) -> Floats:
        """Return what numbers mean, (..., 3)."""
        value: Floats = self.low + numbers * self.step
        return value

    def number(self, values: Floats) -> Floats:
        """Return the numbers that mean values, (..., 3); the inverse of `value`."""
        number: Floats = (values - self.low) / self.step
        return number


class Scales(NamedTuple):
    """What the numbers of a profile mean: centres and sizes in metres, angles in radians."""

    position: Scale
    size: Scale
    angle: Scale


@dataclass(frozen=True)
class Writing:
    """How a reply is put together; see spec/profile.json."""

    box: str
    reply: str
    between: str = ""
    score: str = ""


@dataclass(frozen=True)
class Box3dConvention:
    """How a profile writes 3D boxes."""

    syntax: str
    slots: tuple[str, ...]
    frame: Literal["scene", "camera"]
    write: Writing
    example: str
    axes: tuple[str, str, str] = METRIC_CENTRE
    rotation: str = "ZXY"
    angle: str = "radian"
    grid: Grid | None = None
    unnumbered: Literal["only", "first"] = "only"
    keys: tuple[str, ...] = ()
    score_keys: tuple[str, ...] = ()
    frame_key: str | None = None
    tag: str = ""
    bare: bool = False
    decimals: int = 0
    angle_decimals: int = 0

    def axes_matrix(self) -> Floats:
        """Return the rotation, (3, 3), from the axes of the numbers to those of the frame."""
        return np.array([_DIRECTIONS[axis] for axis in self.axes])

    def scales(self, bounds: tuple[Point, Point] | None) -> Scales | None:
        """Return what the numbers mean in a scene, or None if that takes bounds it lacks."""
        zero = np.zeros(3)
        if self.grid is None:
            metres = Scale(zero, 1.0)
            return Scales(metres, metres, Scale(zero, self.unit))
        if bounds is None:
            return None
        least, greatest = np.asarray(bounds)
        extent = greatest - least
        if not (np.isfinite(extent).all() and (extent > 0).all()):
            return None
        steps, position, size, angle = self.grid

        def scale(interval: tuple[float, float] | None, origin: Floats) -> Scale:
            low, high = interval or (zero, extent)
            return Scale(origin + low, (high - low) / steps)

        return Scales(scale(position, least), scale(size, zero), scale(angle, zero))

    @property
    def unit(self) -> float:
        """Radians of one unit of the profile's angles."""
        return _RADIANS[self.angle]

    @property
    def centre(self) -> tuple[str, ...]:
        """The three slots of the centre: metres, or a point of the image and its depth."""
        return IMAGE_CENTRE if "u" in self.slots else METRIC_CENTRE


@dataclass(frozen=True)
class CandidateConvention:
    """How a profile names objects to choose from."""

    syntax: str
    write: Writing
    example: str
    keys: tuple[str, ...] = ()
    score_keys: tuple[str, ...] = ()
    frame_key: None = None
    bare: bool = False


def box3d_convention(data: dict[str, Any]) -> Box3dConvention:
    """Return the convention that the ``box3d`` section of a profile declares."""
    grid = Grid(**data["grid"]) if "grid" in data else None
    return Box3dConvention(**{**data, "write": Writing(**data["write"]), "grid": grid})


def candidate_convention(data: dict[str, Any]) -> CandidateConvention:
    """Return the convention that the ``candidates`` section of a profile declares."""
    return CandidateConvention(**{**data, "write": Writing(**data["write"])})
