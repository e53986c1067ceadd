"""One scan of MMScan: its frames, and the objects in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scan:
    """A scan in its aligned frame: metres, z up. Arrays are read-only.

    Attributes
    ----------
    scan_id
        As in the release, such as ``scannet/scene0000_00``.
    frames_root
        The folder that ``frames`` start from.
    frames
        Path of each colour image, with ``/``; in the order of the release.
    poses : (F, 4, 4)
        Of each frame, camera to scene: it maps homogeneous coordinates of the camera (x right, y
        down, z forward) to those of the scene.
    intrinsics : (F, 4)
        Of each frame: fx, fy, cx, cy in pixels of the image, without skew.
    object_ids
        The id of each object, by which samples name it; unlike in one scan.
    categories
        The class name of each object.
    boxes : (M, 9)
        Of each object, as in ``geometry.boxes3d``: centre, full sizes, ZXY angles in radians.
    """

    scan_id: str
    frames_root: Path
    frames: Sequence[str]
    poses: Floats
    intrinsics: Floats
    object_ids: Sequence[int]
    categories: Sequence[str]
    boxes: Floats

    def frame_file(self, frame: int) -> Path:
        """Return the path of a frame by its number in ``frames``."""
        return self.frames_root / self.frames[frame]
