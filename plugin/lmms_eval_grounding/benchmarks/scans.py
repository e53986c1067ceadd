"""What a MMScan sample shows of its scan: frames, cameras, objects. Targets play no part."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image

from ..data.mmscan_scan import Scan
from ..data.mmscan_scans import frame_image, image_size, scan_of
from ..data.mmscan_views import SHOWN_FRAMES, spread_views
from ..geometry.boxes3d import corners
from ..parsing.scene import Frame, Point, Scene
from .host import Refusal

FRAMES = "GROUNDING_MMSCAN_FRAMES"


def shown_frames(scan: Scan) -> list[int]:
    """Return which frames of a scan are shown: `SHOWN_FRAMES`, or ``$GROUNDING_MMSCAN_FRAMES``."""
    named = os.environ.get(FRAMES, str(SHOWN_FRAMES))
    if not named.isdecimal() or int(named) < 1:
        raise Refusal(f"{FRAMES} is {named!r}; give a positive whole number")
    return list(_views(scan, int(named)))


def images(doc: Mapping[str, Any]) -> list[Image.Image]:
    """Return the shown frames as RGB images."""
    scan = scan_of(doc)
    return [frame_image(scan, frame) for frame in shown_frames(scan)]


def scene_with_boxes(doc: Mapping[str, Any]) -> Scene:
    """Return the scene of a document whose answer gives boxes."""
    scan = scan_of(doc)
    return _scene(scan, tuple(shown_frames(scan)))


def scene_with_candidates(doc: Mapping[str, Any]) -> Scene:
    """Return the scene of a document whose answer names objects of the scan."""
    scan = scan_of(doc)
    boxes = map(tuple, scan.boxes.tolist())
    return Scene(candidates=dict(zip(scan.object_ids, boxes, strict=True)))


def camera_text(doc: Mapping[str, Any]) -> str:
    """Return the cameras of the shown frames as lines of a prompt, numbered from 0."""
    scan = scan_of(doc)
    lines = []
    for number, frame in enumerate(shown_frames(scan)):
        rows = "; ".join(" ".join(f"{value:.4f}" for value in row) for row in scan.poses[frame, :3])
        fx, fy, cx, cy = scan.intrinsics[frame]
        lines.append(
            f"Frame {number}: fx {fx:.1f}, fy {fy:.1f}, cx {cx:.1f}, cy {cy:.1f}; "
            f"camera to scene [{rows}]"
        )
    return "\n".join(lines)


def object_text(doc: Mapping[str, Any]) -> str:
    """Return the objects of the scan as lines of a prompt: id, category, centre, size, angles."""
    scan = scan_of(doc)
    lines = []
    for object_id, category, box in zip(
        scan.object_ids, scan.categories, scan.boxes.tolist(), strict=True
    ):
        numbers = [" ".join(f"{value:.2f}" for value in box[i : i + 3]) for i in (0, 3, 6)]
        lines.append(
            f"{object_id} {category}: centre {numbers[0]}, size {numbers[1]}, angles {numbers[2]}"
        )
    return "\n".join(lines)


@lru_cache(256)
def _views(scan: Scan, count: int) -> tuple[int, ...]:
    return tuple(spread_views(scan.poses, count))


@lru_cache(256)
def _scene(scan: Scan, shown: tuple[int, ...]) -> Scene:
    frames = []
    for frame in shown:
        width, height = image_size(scan.frame_file(frame))
        fx, fy, cx, cy = map(float, scan.intrinsics[frame])
        frames.append(Frame(scan.poses[frame], (fx, fy, cx, cy), width, height))
    return Scene(frames=tuple(frames), bounds=_bounds(scan))


def _bounds(scan: Scan) -> tuple[Point, Point] | None:
    """Return the least and the greatest corner over all objects of the scan."""
    if not len(scan.boxes):
        return None
    places = corners(scan.boxes).reshape(-1, 3)
    low, high = np.min(places, axis=0).tolist(), np.max(places, axis=0).tolist()
    return (low[0], low[1], low[2]), (high[0], high[1], high[2])
