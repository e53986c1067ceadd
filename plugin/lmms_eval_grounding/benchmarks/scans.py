"""What a MMScan sample shows of its scan: frames, cameras, objects. Targets play no part.

Prompts of two hundred thousand samples are made before a run, in an order in which neighbours have
different scans, so all that is made of a scan is kept for thousands of scans.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ..data.mmscan_scan import Scan
from ..data.mmscan_scans import frame_image, image_size, scan_of
from ..data.mmscan_views import SHOWN_FRAMES, spread_views
from ..geometry.boxes3d import corners
from ..parsing.scene import Frame, Point, Scene
from .host import Refusal

FRAMES = "GROUNDING_MMSCAN_FRAMES"
# Scans that are kept, about 10 kB each. A scan is named by what its table holds, wherever that is.
_KEPT = 2**13


class _Shown(NamedTuple):
    """The frames of a scan that are shown, as their scene and as lines of a prompt."""

    frames: tuple[int, ...]
    scene: Scene
    text: str


class _Objects(NamedTuple):
    """The objects of a scan, as a scene of candidates and as lines of a prompt."""

    scene: Scene
    text: str


def declared_frames() -> int:
    """Return how many frames are shown: `SHOWN_FRAMES`, or ``$GROUNDING_MMSCAN_FRAMES``.

    Raises
    ------
    Refusal
        If that is no positive whole number.
    """
    named = os.environ.get(FRAMES) or str(SHOWN_FRAMES)
    if not re.fullmatch(r"[1-9][0-9]{0,8}", named):
        raise Refusal(f"{FRAMES} is {named!r}; give a positive whole number of frames")
    return int(named)


def images(doc: Mapping[str, Any]) -> list[Image.Image]:
    """Return the shown frames as RGB images, in the order of `camera_text`."""
    scan = scan_of(doc)
    return [frame_image(scan, frame) for frame in _shown_of(doc).frames]


def scene_with_boxes(doc: Mapping[str, Any]) -> Scene:
    """Return the scene of a document whose answer gives boxes."""
    return _shown_of(doc).scene


def scene_with_candidates(doc: Mapping[str, Any]) -> Scene:
    """Return the scene of a document whose answer names objects of the scan."""
    return _objects_of(doc).scene


def camera_text(doc: Mapping[str, Any]) -> str:
    """Return the cameras of the shown frames as lines of a prompt, numbered from 0."""
    return _shown_of(doc).text


def bounds_text(doc: Mapping[str, Any]) -> str:
    """Return the least and the greatest corner of the scene as words of a prompt."""
    bounds = _shown_of(doc).scene.bounds
    if bounds is None:
        return "an unknown corner to an unknown one"
    return " to ".join(" ".join(f"{value:.3f}" for value in corner) for corner in bounds)


def object_text(doc: Mapping[str, Any]) -> str:
    """Return the objects of the scan as lines of a prompt: id, category, centre, size, angles."""
    return _objects_of(doc).text


def _shown_of(doc: Mapping[str, Any]) -> _Shown:
    return _shown(doc["scans"], doc["scan_id"], declared_frames())


def _objects_of(doc: Mapping[str, Any]) -> _Objects:
    return _objects(doc["scans"], doc["scan_id"])


@lru_cache(_KEPT)
def _shown(scans: str, scan_id: str, count: int) -> _Shown:
    scan = scan_of({"scans": scans, "scan_id": scan_id})
    numbers = tuple(spread_views(scan.poses, count))
    frames, lines = [], []
    for place, number in enumerate(numbers):
        width, height = image_size(scan.frame_file(number))
        fx, fy, cx, cy = map(float, scan.intrinsics[number])
        pose = scan.poses[number].copy()  # a view would keep the poses of all frames
        frames.append(Frame(pose, (fx, fy, cx, cy), width, height))
        rows = "; ".join(" ".join(f"{value:.4f}" for value in row) for row in pose[:3])
        lines.append(
            f"Frame {place}: {width} x {height} pixels, fx {fx:.1f}, fy {fy:.1f}, cx {cx:.1f}, "
            f"cy {cy:.1f}; camera to scene [{rows}]"
        )
    return _Shown(numbers, Scene(tuple(frames), bounds=_bounds(scan)), "\n".join(lines))


@lru_cache(_KEPT)
def _objects(scans: str, scan_id: str) -> _Objects:
    scan = scan_of({"scans": scans, "scan_id": scan_id})
    boxes = scan.boxes.tolist()
    lines = []
    for object_id, category, box in zip(scan.object_ids, scan.categories, boxes, strict=True):
        numbers = [" ".join(f"{value:.2f}" for value in box[i : i + 3]) for i in (0, 3, 6)]
        lines.append(
            f"{object_id} {category}: centre {numbers[0]}, size {numbers[1]}, angles {numbers[2]}"
        )
    candidates = dict(zip(scan.object_ids, map(tuple, boxes), strict=True))
    return _Objects(Scene(candidates=candidates), "\n".join(lines))


def _bounds(scan: Scan) -> tuple[Point, Point] | None:
    """Return the least and the greatest corner over all objects of the scan."""
    if not len(scan.boxes):
        return None
    places = corners(scan.boxes).reshape(-1, 3)
    low, high = np.min(places, axis=0).tolist(), np.max(places, axis=0).tolist()
    return (low[0], low[1], low[2]), (high[0], high[1], high[2])
