"""Scenes for the tests of 3D boxes: random poses, and boxes that a profile can write."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from lmms_eval_grounding.geometry.boxes3d import euler_from_rotation
from lmms_eval_grounding.parsing.scene import Frame, Scene

DECLARED: dict[str, Any] = {
    name: profile["box3d"]
    for name, profile in json.loads(
        files("lmms_eval_grounding.parsing").joinpath("profiles.json").read_text("utf-8")
    ).items()
    if "box3d" in profile
}

# The 24 ways to name the axes of a box: signed permutations that do not mirror.
NAMINGS = [
    matrix
    for order in itertools.permutations(range(3))
    for signs in itertools.product((1, -1), repeat=3)
    if np.linalg.det(matrix := np.diag(signs) @ np.eye(3)[list(order)]) > 0
]

# The box of all examples: a chair turned by 30 degrees about z. Its scene: a camera at (0, 0, 1.5)
# looks along y.
EXAMPLE_BOX = (1.0, 3.0, 0.5, 0.6, 0.8, 1.0, math.pi / 6, 0.0, 0.0)
EXAMPLE_SCENE = Scene(
    frames=[
        Frame(
            [[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 1.5], [0, 0, 0, 1]],
            (500, 500, 400, 300),
            800,
            600,
        )
    ],
    bounds=((-2, -1, 0), (3.1, 4.1, 2.55)),
)


def random_scene(seed: int) -> Scene:
    """Return a scene of three frames in any pose."""
    rng = random.Random(seed)
    frames = []
    for _ in range(3):
        pose = np.eye(4)
        pose[:3, :3] = Rotation.random(random_state=rng.randrange(2**32)).as_matrix()
        pose[:3, 3] = [rng.uniform(-3, 3) for _ in range(3)]
        width, height = rng.choice([(640, 480), (1296, 968), (480, 640)])
        focal = rng.uniform(0.6, 1.4) * width
        centre = (width * rng.uniform(0.4, 0.6), height * rng.uniform(0.4, 0.6))
        frames.append(Frame(pose, (focal, focal * 1.1, *centre), width, height))
    return Scene(frames, ((-4.0, -5.0, -1.0), (6.0, 7.0, 4.0)))


def axes_of(name: str) -> np.ndarray:
    """Return the frame's axes by those of a profile's numbers, (3, 3)."""
    rows = np.zeros((3, 3))
    for row, axis in enumerate(DECLARED[name].get("axes", "xyz")):
        rows[row, "xyz".index(axis[-1])] = -1 if axis[0] == "-" else 1
    return rows


def turn_to_scene(name: str, scene: Scene) -> np.ndarray:
    """Return the rotation from the axes of a profile's numbers to the scene, by the first frame."""
    if DECLARED[name]["frame"] == "scene":
        return axes_of(name)
    return np.asarray(scene.frames[0].pose)[:3, :3] @ axes_of(name)


def writable_boxes(name: str, scene: Scene, seed: int) -> Iterator[tuple[float, ...]]:
    """Yield boxes that a profile can write, of any size and turn, at gimbal lock too.

    Full rotations are written by most profiles. ``spatiallm`` writes turns about the scene's z
    axis, ``n3d_vlm`` about the first camera's y axis, ``ll3da`` none: their boxes are turned so,
    and then have their axes named in any of the 24 ways. ``n3d_vlm`` gives a place in the first
    image: its boxes are in view.
    """
    rng = random.Random(seed)
    section = DECLARED[name]
    angles = [slot for slot in section["slots"] if slot in "abc"]
    order = section.get("rotation", "ZXY")
    for number in range(60):
        written = [0.0, 0.0, 0.0]
        for i in range(len(angles)):
            written[i] = rng.uniform(-math.pi, math.pi)
        if len(angles) == 3 and number % 3 == 0:
            written[1] = rng.choice((-math.pi / 2, math.pi / 2))  # gimbal lock as it is written
        if len(angles) == 3 and number % 5 == 0:
            written = [rng.choice((-2, -1, 0, 1, 2)) * math.pi / 2 for _ in range(3)]
        turn = turn_to_scene(name, scene) @ Rotation.from_euler(order, written).as_matrix()
        sizes = np.exp([rng.uniform(math.log(0.06), math.log(3)) for _ in range(3)])
        if len(angles) < 3:
            naming = rng.choice(NAMINGS)
            turn, sizes = turn @ naming, np.abs(naming).T @ sizes
        if len(angles) == 3 and number % 7 == 0:  # gimbal lock as the scene has it
            scene_angles = [rng.uniform(-3, 3), rng.choice((-1, 1)) * math.pi / 2, 0.0]
            turn = Rotation.from_euler("ZXY", scene_angles).as_matrix()
        yield (*centre(name, scene, rng), *sizes, *euler_from_rotation(turn))


def centre(name: str, scene: Scene, rng: random.Random) -> list[float]:
    """Return a place in the scene, in the view of its first frame if the profile needs that."""
    if "u" not in DECLARED[name]["slots"]:
        assert scene.bounds is not None
        return [rng.uniform(low, high) for low, high in zip(*scene.bounds, strict=True)]
    frame = scene.frames[0]
    assert frame.intrinsics
    assert frame.width
    assert frame.height
    fx, fy, cx, cy = frame.intrinsics
    depth = rng.uniform(0.5, 8)
    x = (rng.uniform(0.01, 0.99) * frame.width - cx) * depth / fx
    y = (rng.uniform(0.01, 0.99) * frame.height - cy) * depth / fy
    pose = np.asarray(frame.pose)
    place: list[float] = (pose @ [x, y, depth, 1.0])[:3].tolist()
    return place
