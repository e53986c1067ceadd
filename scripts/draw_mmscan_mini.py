"""Draw the rooms of ``mmscan_mini`` and write them in the layout of the official release.

Three rooms of boxes and of things made of boxes. Every pixel is the nearest box on its ray, so
pictures, poses, cameras and annotations are one truth; a target must be seen in some frame. Rooms
lie turned and shifted in the raw frame of their scan, and ids are neither places in a list nor in
its order, so that code which mixes these up is found out. The same releases of numpy and Pillow
give the same files.

    python scripts/draw_mmscan_mini.py                     # into the package, where they ship
    python scripts/draw_mmscan_mini.py --output FOLDER --outlines   # with the targets' boxes

To be checked by eye after a change: each prompt is true, and of its targets only.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from lmms_eval_grounding.geometry.boxes3d import corners, iou_matrix, rotation_from_euler

PACKAGED = Path(__file__).resolve().parents[1] / "plugin" / "lmms_eval_grounding/data/mini/mmscan"
WIDTH, HEIGHT = 320, 240
FINER = 2  # rays per pixel and axis
SEEN = 40  # rays that must meet a target in some frame

Colour = tuple[int, int, int]
RED, BLUE, GREEN, YELLOW, WHITE, BLACK = (
    (190, 50, 45),
    (50, 80, 180),
    (70, 140, 70),
    (225, 190, 50),
    (232, 232, 226),
    (38, 38, 44),
)
GREY, DARK, WOOD, BROWN, CARDBOARD, GLASS, PLASTER, STEEL = (
    (140, 140, 144),
    (84, 84, 90),
    (178, 134, 88),
    (116, 78, 50),
    (190, 156, 112),
    (160, 205, 232),
    (214, 206, 192),
    (176, 182, 190),
)
LIGHT = np.array([0.35, 0.55, 0.9])

# A part of a thing: its middle and its extent in a cube of side 1 around the origin.
Part = tuple[tuple[float, float, float], tuple[float, float, float]]
SOLID: tuple[Part, ...] = (((0, 0, 0), (1, 1, 1)),)


def _legs(top: float, width: float) -> tuple[Part, ...]:
    """Return four legs from the ground up to ``top``."""
    middle, height, side = (top - 0.5) / 2, top + 0.5, 0.5 - width / 2
    return tuple(
        ((x, y, middle), (width, width, height)) for x in (-side, side) for y in (-side, side)
    )


TABLE = (((0, 0, 0.46), (1, 1, 0.08)), *_legs(0.42, 0.08))
CHAIR = (((0, 0, 0), (1, 1, 0.08)), ((0, 0.45, 0.25), (1, 0.1, 0.5)), *_legs(0, 0.12))
STOOL = (((0, 0, 0.42), (1, 1, 0.16)), *_legs(0.34, 0.16))
ARMCHAIR = (
    ((0, 0, -0.25), (1, 1, 0.5)),
    ((0, 0.4, 0.1), (1, 0.2, 0.8)),
    ((-0.42, 0, 0), (0.16, 1, 0.5)),
    ((0.42, 0, 0), (0.16, 1, 0.5)),
)
LAMP = (
    ((0, 0, -0.46), (0.7, 0.7, 0.08)),
    ((0, 0, -0.1), (0.12, 0.12, 0.8)),
    ((0, 0, 0.25), (1, 1, 0.5)),
)
HANGING_LAMP = (((0, 0, -0.3), (1, 1, 0.4)), ((0, 0, 0.2), (0.08, 0.08, 0.6)))
SHELF = (
    ((-0.47, 0, 0), (0.06, 1, 1)),
    ((0.47, 0, 0), (0.06, 1, 1)),
    ((0, 0.45, 0), (1, 0.1, 1)),
    *(((0, 0, z), (1, 1, 0.04)) for z in (-0.48, -0.16, 0.16, 0.48)),
)
BED = (((0, 0, -0.2), (1, 1, 0.6)), ((0, 0.47, 0), (1, 0.06, 1)))
LADDER = (
    ((-0.44, 0, 0), (0.12, 1, 1)),
    ((0.44, 0, 0), (0.12, 1, 1)),
    *(((0, 0, z), (1, 0.6, 0.03)) for z in (-0.4, -0.24, -0.08, 0.08, 0.24, 0.4)),
)
FRAME = (((0, 0.1, 0), (1, 0.8, 1)), ((0, -0.25, 0), (0.8, 0.5, 0.8)))


@dataclass
class Thing:
    """One object: its box in the scene as the annotation has it, and how it looks."""

    name: str
    category: str
    box: list[float]
    colour: Colour
    parts: tuple[Part, ...] = SOLID
    tiles: bool = False
    object_id: int = -1


@dataclass
class Prompt:
    """A prompt with its answer; the phrases are what ``tokens_positive`` marks."""

    sub_class: str
    text: str
    phrase: str
    targets: Sequence[str]
    anchors: Sequence[tuple[str, str]] = ()
    distractors: Sequence[str] = ()


@dataclass
class Room:
    """A room from (0, 0) to (width, depth), with its floor at 0."""

    name: str
    width: float
    depth: float
    align: np.ndarray  # the axis_align_matrix: raw frame to the scene
    cameras: int
    focal: float
    per_image_camera: bool = False
    things: list[Thing] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)

    def put(
        self,
        name: str,
        category: str,
        at: Sequence[float],
        size: Sequence[float],
        colour: Colour,
        *,
        angles: Sequence[float] = (0, 0, 0),
        parts: tuple[Part, ...] = SOLID,
    ) -> Thing:
        """Place a thing with its middle above ``at`` and its lowest corner at that height."""
        box = np.array([*at, *size, *angles], dtype=float)
        box[2] += at[2] - corners(box)[:, 2].min()
        thing = Thing(name, category, [round(float(number), 6) for number in box], colour, parts)
        self.things.append(thing)
        return thing

    def ask(
        self,
        sub_class: str,
        text: str,
        phrase: str,
        targets: Sequence[str],
        anchors: Sequence[tuple[str, str]] = (),
        *,
        distractors: Sequence[str] = (),
    ) -> None:
        """Add a prompt; things are given by name, anchors with their phrase in the text."""
        self.prompts.append(Prompt(f"VG_{sub_class}", text, phrase, targets, anchors, distractors))

    def thing(self, name: str) -> Thing:
        """Return the thing of this name."""
        return next(thing for thing in self.things if thing.name == name)

    def walls(self, height: float = 2.6) -> None:
        """Put the floor and four walls, 10 cm thick, around the room."""
        w, d, t = self.width, self.depth, 0.1
        floor = self.put("floor", "floor", (w / 2, d / 2, -t), (w, d, t), (186, 170, 150))
        floor.tiles = True
        for name, x, y, size in (
            ("west wall", -t / 2, d / 2, (t, d, height)),
            ("east wall", w + t / 2, d / 2, (t, d, height)),
            ("south wall", w / 2, -t / 2, (w, t, height)),
        ):
            self.put(name, "wall", (x, y, 0), size, PLASTER)
        # The same kind of box, written the other way: lying down, and set up by a quarter turn.
        self.put(
            "north wall",
            "wall",
            (w / 2, d + t / 2, 0),
            (w, height, t),
            PLASTER,
            angles=(0, -math.pi / 2, 0),
        )


def rigid(angles: Sequence[float], shift: Sequence[float]) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = rotation_from_euler(angles, "ZXY")
    matrix[:3, 3] = shift
    return matrix


def office() -> Room:
    room = Room("office", 5.0, 4.0, rigid((0.6, 0, 0), (1.2, -0.7, 0.3)), cameras=10, focal=205.0)
    room.walls()
    room.put("door", "door", (0.03, 3.2, 0), (0.06, 0.9, 2.0), BROWN)
    room.put("window", "window", (3.4, 3.97, 1.05), (1.5, 0.06, 1.1), GLASS)
    room.put("desk", "desk", (3.5, 3.35, 0), (1.7, 0.8, 0.75), WOOD, parts=TABLE)
    room.put("monitor", "monitor", (3.5, 3.5, 0.75), (0.62, 0.1, 0.4), BLACK, angles=(0.2, 0, 0))
    room.put(
        "red chair",
        "chair",
        (3.4, 2.55, 0),
        (0.5, 0.5, 0.95),
        RED,
        angles=(math.pi + 0.3, 0, 0),
        parts=CHAIR,
    )
    room.put(
        "blue chair 1",
        "chair",
        (0.9, 0.85, 0),
        (0.48, 0.48, 0.9),
        BLUE,
        angles=(-0.8, 0, 0),
        parts=CHAIR,
    )
    room.put(
        "blue chair 2",
        "chair",
        (2.3, 0.75, 0),
        (0.48, 0.48, 0.9),
        BLUE,
        angles=(2.6, 0, 0),
        parts=CHAIR,
    )
    room.put(
        "bookshelf",
        "shelf",
        (4.8, 1.2, 0),
        (1.3, 0.36, 1.9),
        WHITE,
        angles=(-math.pi / 2, 0, 0),
        parts=SHELF,
    )
    room.put("trash can", "trash can", (4.62, 2.75, 0), (0.3, 0.3, 0.42), DARK)
    room.put(
        "ladder",
        "ladder",
        (3.35, 0.33, 0),
        (0.5, 0.08, 2.1),
        YELLOW,
        angles=(0.04, 0.24, 0.05),
        parts=LADDER,
    )
    room.put("large box", "box", (0.75, 1.95, 0), (0.6, 0.5, 0.45), CARDBOARD, angles=(0.45, 0, 0))
    room.put("small box", "box", (0.78, 1.93, 0.45), (0.34, 0.28, 0.24), GREEN, angles=(1.2, 0, 0))

    room.ask("Single_Attribute_Unique", "Find the yellow object.", "yellow object", ["ladder"])
    room.ask(
        "Single_Attribute_Common",
        "Find all the chairs that are blue.",
        "chairs that are blue",
        ["blue chair 1", "blue chair 2"],
        distractors=["red chair"],
    )
    room.ask(
        "Single_EQ",
        "Find every chair in this office.",
        "every chair",
        ["red chair", "blue chair 1", "blue chair 2"],
    )
    room.ask(
        "Single_Space",
        "The item that leans against a wall at a slant.",
        "item that leans against a wall at a slant",
        ["ladder"],
    )
    room.ask(
        "Inter_Space_OO",
        "The box that lies on top of another box.",
        "box that lies on top",
        ["small box"],
        [("another box", "large box")],
        distractors=["large box"],
    )
    room.ask(
        "Inter_Attribute_OO",
        "The chair that differs in colour from the other two chairs.",
        "chair that differs in colour",
        ["red chair"],
        [("other two chairs", "blue chair 1"), ("other two chairs", "blue chair 2")],
        distractors=["blue chair 1", "blue chair 2"],
    )
    room.ask(
        "Inter_OR",
        "The chair that belongs to the working place at the window.",
        "chair that belongs to the working place",
        ["red chair"],
        [("window", "window")],
        distractors=["blue chair 1", "blue chair 2"],
    )
    return room


def bedroom() -> Room:
    room = Room(
        "bedroom", 4.6, 4.2, rigid((-1.9, 0.12, -0.08), (-0.4, 2.2, 0.9)), cameras=9, focal=200.0,
        per_image_camera=True,
    )  # fmt: skip
    room.walls()
    room.put("bed", "bed", (2.4, 3.1, 0), (1.7, 2.1, 0.9), BLUE, parts=BED)
    room.put(
        "left pillow", "pillow", (2.0, 3.78, 0.56), (0.6, 0.4, 0.14), WHITE, angles=(0.1, 0.5, 0)
    )
    room.put(
        "right pillow",
        "pillow",
        (2.8, 3.78, 0.56),
        (0.6, 0.4, 0.14),
        WHITE,
        angles=(-0.15, 0.45, 0.1),
    )
    room.put("left nightstand", "nightstand", (1.2, 3.85, 0), (0.45, 0.45, 0.55), WOOD)
    room.put("right nightstand", "nightstand", (3.6, 3.85, 0), (0.45, 0.45, 0.55), WOOD)
    room.put("lamp", "lamp", (3.6, 3.85, 0.55), (0.3, 0.3, 0.5), YELLOW, parts=LAMP)
    room.put("wardrobe", "wardrobe", (0.35, 1.5, 0), (0.65, 1.5, 2.1), BROWN)
    room.put(
        "mirror",
        "mirror",
        (0.26, 3.0, 0),
        (0.6, 0.06, 1.5),
        STEEL,
        angles=(math.pi / 2, -0.22, 0),
        parts=FRAME,
    )
    room.put("rug", "rug", (2.6, 1.2, 0), (1.6, 1.1, 0.03), GREEN, angles=(0.2, 0, 0))
    room.put(
        "armchair",
        "armchair",
        (3.95, 0.85, 0),
        (0.85, 0.8, 0.9),
        GREEN,
        angles=(-2.3, 0, 0),
        parts=ARMCHAIR,
    )
    # Hangs upright; the box is written lying down and set up by a quarter turn.
    room.put(
        "picture", "picture", (4.57, 2.4, 1.3), (0.9, 0.6, 0.06), RED,
        angles=(math.pi / 2, -math.pi / 2, 0),
    )  # fmt: skip
    room.put("door", "door", (1.6, 0.03, 0), (0.9, 0.06, 2.0), GREY)

    room.ask(
        "Single_Attribute_Unique", "The green seat for one person.", "green seat", ["armchair"]
    )
    room.ask(
        "Single_Attribute_Common",
        "Find all the white soft things.",
        "white soft things",
        ["left pillow", "right pillow"],
    )
    room.ask(
        "Single_EQ",
        "Every nightstand in the room.",
        "Every nightstand",
        ["left nightstand", "right nightstand"],
    )
    room.ask(
        "Single_Space", "The red picture that hangs on a wall.", "picture that hangs", ["picture"]
    )
    room.ask(
        "Inter_Space_OO",
        "The nightstand that carries the lamp.",
        "nightstand",
        ["right nightstand"],
        [("lamp", "lamp")],
        distractors=["left nightstand"],
    )
    room.ask(
        "Inter_Attribute_OO",
        "The object with the same colour as the armchair.",
        "object with the same colour",
        ["rug"],
        [("armchair", "armchair")],
    )
    room.ask(
        "Inter_OR",
        "The mirror in the corner where one gets dressed, between the wardrobe and the bed.",
        "mirror",
        ["mirror"],
        [("wardrobe", "wardrobe"), ("bed", "bed")],
    )
    return room


def kitchen() -> Room:
    room = Room(
        "kitchen",
        5.4,
        4.4,
        rigid((2.4, math.pi / 2, 0.2), (0.8, -1.6, 1.1)),
        cameras=9,
        focal=210.0,
    )
    room.walls()
    room.put(
        "table", "table", (3.2, 1.9, 0), (1.7, 1.0, 0.75), WOOD, angles=(0.15, 0, 0), parts=TABLE
    )
    room.put(
        "red chair 1",
        "chair",
        (2.85, 2.75, 0),
        (0.46, 0.46, 0.92),
        RED,
        angles=(0.15, 0, 0),
        parts=CHAIR,
    )
    room.put(
        "red chair 2",
        "chair",
        (3.6, 1.1, 0),
        (0.46, 0.46, 0.92),
        RED,
        angles=(3.3, 0, 0),
        parts=CHAIR,
    )
    room.put(
        "white chair 1",
        "chair",
        (3.75, 2.9, 0),
        (0.46, 0.46, 0.92),
        WHITE,
        angles=(0.05, 0, 0),
        parts=CHAIR,
    )
    room.put(
        "white chair 2",
        "chair",
        (2.75, 0.95, 0),
        (0.46, 0.46, 0.92),
        WHITE,
        angles=(2.95, 0, 0),
        parts=CHAIR,
    )
    room.put("bowl", "bowl", (3.2, 1.9, 0.75), (0.34, 0.34, 0.14), BLUE, angles=(0.4, 0, 0))
    room.put("green bottle", "bottle", (2.75, 1.95, 0.75), (0.11, 0.11, 0.34), GREEN)
    room.put("black bottle", "bottle", (3.65, 1.75, 0.75), (0.11, 0.11, 0.34), BLACK)
    room.put("refrigerator", "refrigerator", (0.4, 3.9, 0), (0.75, 0.75, 1.9), WHITE)
    room.put("counter", "counter", (2.2, 4.05, 0), (2.4, 0.62, 0.9), GREY)
    room.put("cabinet", "cabinet", (2.2, 4.2, 1.55), (2.4, 0.34, 0.7), BROWN)
    room.put("tray", "tray", (2.75, 4.29, 0.9), (0.5, 0.34, 0.03), STEEL, angles=(0.15, 1.15, -0.1))
    room.put(
        "hanging lamp",
        "lamp",
        (3.2, 1.9, 1.75),
        (0.5, 0.5, 0.85),
        YELLOW,
        angles=(0.3, 0, 0),
        parts=HANGING_LAMP,
    )
    room.put(
        "stool", "stool", (1.2, 2.9, 0), (0.36, 0.36, 0.65), BROWN, angles=(0.5, 0, 0), parts=STOOL
    )
    room.put("trash can", "trash can", (0.35, 2.5, 0), (0.34, 0.34, 0.5), DARK)
    room.put("door", "door", (5.37, 3.4, 0), (0.06, 0.9, 2.0), BLUE)

    room.ask(
        "Single_Attribute_Unique",
        "The tall white appliance that keeps food cold.",
        "tall white appliance",
        ["refrigerator"],
    )
    room.ask(
        "Single_Attribute_Common",
        "Find all the red chairs.",
        "red chairs",
        ["red chair 1", "red chair 2"],
        distractors=["white chair 1", "white chair 2"],
    )
    room.ask(
        "Single_EQ",
        "Every chair that has a back, whatever its colour.",
        "Every chair",
        ["red chair 1", "red chair 2", "white chair 1", "white chair 2"],
    )
    room.ask("Single_Space", "The lamp that hangs in the air.", "lamp", ["hanging lamp"])
    room.ask(
        "Inter_Space_OO",
        "The red chair that is closest to the refrigerator.",
        "red chair",
        ["red chair 1"],
        [("refrigerator", "refrigerator")],
        distractors=["red chair 2"],
    )
    room.ask(
        "Inter_Attribute_OO",
        "The chairs with the same colour as the refrigerator.",
        "chairs with the same colour",
        ["white chair 1", "white chair 2"],
        [("refrigerator", "refrigerator")],
        distractors=["red chair 1", "red chair 2"],
    )
    room.ask(
        "Inter_OR",
        "Everything that stands on top of the table in the eating area.",
        "Everything that stands on top",
        ["bowl", "green bottle", "black bottle"],
        [("table", "table")],
    )
    return room


ROOMS = (office, bedroom, kitchen)
CATEGORIES = (
    "armchair", "bed", "bottle", "bowl", "box", "cabinet", "chair", "counter", "desk", "door",
    "floor", "ladder", "lamp", "mirror", "monitor", "nightstand", "picture", "pillow",
    "refrigerator", "rug", "shelf", "stool", "table", "trash can", "tray", "wall", "wardrobe",
    "window",
)  # fmt: skip


def cameras_of(room: Room, chance: random.Random) -> list[np.ndarray]:
    """Return poses, camera to scene, of a walk along the walls with a look across the room."""
    middle = np.array([room.width / 2, room.depth / 2])
    poses = []
    for number in range(room.cameras):
        angle = 2 * math.pi * (number + 0.35) / room.cameras
        place = middle + 0.4 * np.array(
            [room.width * math.cos(angle), room.depth * math.sin(angle)]
        )
        aim = middle - 0.12 * (place - middle) + [chance.uniform(-0.4, 0.4) for _ in range(2)]
        eye = np.array([*place, chance.uniform(1.45, 1.75)])
        forward = np.array([*aim, chance.uniform(0.45, 0.75)]) - eye
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0, 0, 1])
        right /= np.linalg.norm(right)
        down = np.cross(forward, right)
        roll = chance.uniform(-0.05, 0.05)
        pose = np.eye(4)
        pose[:3, 0] = math.cos(roll) * right + math.sin(roll) * down
        pose[:3, 1] = math.cos(roll) * down - math.sin(roll) * right
        pose[:3, 2] = forward
        pose[:3, 3] = eye
        poses.append(pose)
    return poses


def nearest_hits(
    box: np.ndarray, eye: np.ndarray, rays: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far each ray goes to the box (infinite where it misses) and the axis it meets."""
    turn = rotation_from_euler(box[6:], "ZXY")
    start, along, half = turn.T @ (eye - box[:3]), rays @ turn, box[3:6] / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        first = (-np.copysign(half, along) - start) / along
        last = (np.copysign(half, along) - start) / along
    enter, axis = first.max(axis=1), first.argmax(axis=1)
    met = (enter < last.min(axis=1)) & (enter > 1e-6)
    return np.where(met, enter, np.inf), axis


def part_box(thing: Thing, part: Part) -> np.ndarray:
    """Return the box of a part in the scene."""
    box = np.array(thing.box)
    middle, extent = part
    turn = rotation_from_euler(box[6:], "ZXY")
    centre = box[:3] + turn @ (np.array(middle) * box[3:6])
    return np.array([*centre, *(np.array(extent) * box[3:6]), *box[6:]])


def render(room: Room, pose: np.ndarray, focal: float) -> tuple[Image.Image, np.ndarray]:
    """Return the picture, and for every ray the number of the thing it meets (-1 for none)."""
    width, height = WIDTH * FINER, HEIGHT * FINER
    columns, lines = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    across = (columns.ravel() / FINER - WIDTH / 2) / focal
    downward = (lines.ravel() / FINER - HEIGHT / 2) / focal
    rays = np.column_stack([across, downward, np.ones(width * height)]) @ pose[:3, :3].T
    eye = pose[:3, 3]
    depth = np.full(len(rays), np.inf)
    seen = np.full(len(rays), -1)
    colours = np.full((len(rays), 3), 235.0)
    for number, thing in enumerate(room.things):
        near = np.flatnonzero(np.isfinite(nearest_hits(np.array(thing.box), eye, rays)[0]))
        for part in thing.parts:
            box = part_box(thing, part)
            distance, axis = nearest_hits(box, eye, rays[near])
            front = distance < depth[near]
            rows, axis = near[front], axis[front]
            depth[rows], seen[rows] = distance[front], number
            normals = rotation_from_euler(box[6:], "ZXY").T[axis]
            facing = -np.sign(np.einsum("ni,ni->n", normals, rays[rows]))
            shade = 0.72 + 0.28 * (normals @ LIGHT) * facing / np.linalg.norm(LIGHT)
            if thing.tiles:
                ground = eye + rays[rows] * depth[rows, None]
                shade = shade * (1 - 0.07 * (np.floor(ground[:, :2] / 0.5).sum(axis=1) % 2))
            colours[rows] = np.array(thing.colour) * shade[:, None]
    blocks = colours.reshape(HEIGHT, FINER, WIDTH, FINER, 3).mean(axis=(1, 3))
    return Image.fromarray(np.round(blocks).clip(0, 255).astype(np.uint8)), seen


def outline(image: Image.Image, box: Sequence[float], pose: np.ndarray, focal: float) -> None:
    """Draw the edges of a box that lie in front of the camera."""
    points = (corners(box) - pose[:3, 3]) @ pose[:3, :3]
    draw = ImageDraw.Draw(image)
    for one in range(8):
        for axis in (1, 2, 4):
            other = one | axis
            if other != one and min(points[one, 2], points[other, 2]) > 0.1:
                line = [
                    tuple(points[k, :2] / points[k, 2] * focal + (WIDTH / 2, HEIGHT / 2))
                    for k in (one, other)
                ]
                draw.line(line, fill=(255, 0, 255))


def check_room(room: Room) -> None:
    """Refuse a room whose annotations would not be true."""
    names = [thing.name for thing in room.things]
    assert len(set(names)) == len(names)
    owners = [thing.name for thing in room.things for _ in thing.parts]
    boxes = np.array([part_box(thing, part) for thing in room.things for part in thing.parts])
    for one, other in np.argwhere(iou_matrix(boxes, boxes) > 1e-3):
        if owners[one] != owners[other]:
            raise SystemExit(f"{room.name}: {owners[one]} and {owners[other]} are in each other")
    for thing in room.things:
        middles, extents = (np.array(column) for column in zip(*thing.parts, strict=True))
        ends = np.array([(middles - extents / 2).min(0), (middles + extents / 2).max(0)])
        assert np.allclose(np.abs(ends), 0.5), f"{thing.name}: its parts do not fill its box"


def write_room(
    room: Room, output: Path, chance: random.Random, outlines: bool
) -> tuple[dict, list[dict]]:
    """Write the frames of a room; return its entry in the pickle and its samples."""
    check_room(room)
    scan_id = f"generated/{room.name}"
    # Neither the place in the list nor in its order.
    ids = chance.sample(range(3, 90), len(room.things))
    for thing, object_id in zip(room.things, ids, strict=True):
        thing.object_id = object_id
    camera = np.array(
        [[room.focal, 0, WIDTH / 2, 0], [0, room.focal, HEIGHT / 2, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    )
    folder = Path("generated") / room.name
    (output / "embodiedscan_split" / "data" / folder).mkdir(parents=True)
    images, most = [], np.zeros(len(room.things), dtype=int)
    asked = {name for prompt in room.prompts for name in prompt.targets}
    for number, pose in enumerate(cameras_of(room, chance)):
        image, seen = render(room, pose, room.focal)
        counts = np.bincount(seen[seen >= 0], minlength=len(room.things))
        most = np.maximum(most, counts)
        if outlines:
            for thing in room.things:
                if thing.name in asked:
                    outline(image, thing.box, pose, room.focal)
        path = folder / f"{number * 10:05}.jpg"
        image.save(output / "embodiedscan_split" / "data" / path, quality=80, optimize=True)
        entry = {
            "img_path": path.as_posix(),
            "depth_path": path.with_suffix(".png").as_posix(),
            "cam2global": np.linalg.inv(room.align) @ pose,
            "visible_instance_ids": np.flatnonzero(counts >= SEEN),
        }
        if room.per_image_camera:
            entry["cam2img"] = camera
        images.append(entry)
    for thing, count in zip(room.things, most, strict=True):
        if thing.name in asked and count < SEEN * 2:
            raise SystemExit(f"{room.name}: {thing.name} is seen by {count} rays at most")
    labels = {name: label for label, name in enumerate(CATEGORIES, start=1)}
    scan = {
        "sample_idx": scan_id,
        "axis_align_matrix": room.align,
        "images": images,
        "instances": [
            {
                "bbox_3d": thing.box,
                "bbox_label_3d": labels[thing.category],
                "bbox_id": thing.object_id,
            }
            for thing in room.things
        ],
    }
    if not room.per_image_camera:
        scan |= {"cam2img": camera, "depth_cam2img": camera}
    samples = [
        sample_of(room, prompt, scan_id, number) for number, prompt in enumerate(room.prompts)
    ]
    return scan, samples


def sample_of(room: Room, prompt: Prompt, scan_id: str, number: int) -> dict:
    def span(phrase: str) -> list[list[int]]:
        assert prompt.text.count(phrase) == 1, (prompt.text, phrase)
        start = prompt.text.index(phrase)
        return [[start, start + len(phrase)]]

    targets = [room.thing(name) for name in prompt.targets]
    anchors = [(phrase, room.thing(name)) for phrase, name in prompt.anchors]
    return {
        "sub_class": prompt.sub_class,
        "scan_id": scan_id,
        "target_id": [thing.object_id for thing in targets],
        "distractor_ids": [room.thing(name).object_id for name in prompt.distractors],
        "text": prompt.text,
        "target": [thing.category for thing in targets],
        "anchors": [thing.category for _, thing in anchors],
        "anchor_ids": [thing.object_id for _, thing in anchors],
        "tokens_positive": {
            **{str(thing.object_id): span(phrase) for phrase, thing in anchors},
            **{str(thing.object_id): span(prompt.phrase) for thing in targets},
        },
        "ID": f"{prompt.sub_class}__{scan_id}__{number}",
    }


def write(output: Path, *, outlines: bool) -> tuple[int, int]:
    """Write the official layout; return the number of frames and of prompts."""
    if output.exists():
        shutil.rmtree(output)
    release = output / "MMScan-beta-release"
    (release / "MMScan_samples").mkdir(parents=True)
    (release / "Data_splits").mkdir()
    chance = random.Random(5)
    scans, samples = [], []
    for make in ROOMS:
        scan, some = write_room(make(), output, chance, outlines)
        scans.append(scan)
        samples += some
    labels = {name: label for label, name in enumerate(CATEGORIES, start=1)}
    pickled = output / "embodiedscan_split" / "embodiedscan-v1" / "embodiedscan_infos_val.pkl"
    pickled.parent.mkdir()
    contents = {"metainfo": {"categories": labels}, "data_list": scans}
    pickled.write_bytes(pickle.dumps(contents, protocol=4))
    listed = [scan["sample_idx"] for scan in scans]
    for path, value in (
        (release / "MMScan_samples" / "MMScan_VG.json", {"train": [], "val": samples}),
        (release / "Data_splits" / "val-split.json", listed),
    ):
        path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8", newline="\n")
    return sum(len(scan["images"]) for scan in scans), len(samples)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=PACKAGED, help="folder; it is replaced")
    parser.add_argument("--outlines", action="store_true", help="draw boxes into the pictures")
    options = parser.parse_args()
    frames, prompts = write(options.output, outlines=options.outlines)
    size = sum(path.stat().st_size for path in options.output.rglob("*") if path.is_file())
    print(
        f"{options.output}: {len(ROOMS)} rooms, {frames} frames, {prompts} prompts, {size:,} bytes"
    )


if __name__ == "__main__":
    main()
