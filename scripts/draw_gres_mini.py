"""Draw the pictures of ``gres_mini`` and write them as gRefCOCO and COCO do.

Every thing in a scene is made of polygons, and its annotation is these polygons, as in COCO: what
covers it is not cut out of them. The crowd is a crowd annotation, an uncompressed RLE. The same
Pillow release gives the same files.

    python scripts/draw_gres_mini.py                    # into the package, where they ship
    python scripts/draw_gres_mini.py --output FOLDER --targets   # with the targets, to look at

One thing is to be checked by eye after a change: each expression is true, of these things and no
others.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from draw_rsvg_mini import PACKAGED as RSVG
from PIL import Image, ImageChops, ImageDraw

PACKAGED = RSVG.with_name("gres")

Colour = tuple[int, int, int]
Point = tuple[float, float]
# What is drawn, in this order; its polygons are those of the annotation.
Thing = Sequence[tuple[Colour, Sequence[Point]]]

SKIN, HAIR, RED, BLUE, YELLOW, GREEN = (
    (222, 180, 150),
    (70, 46, 34),
    (196, 44, 40),
    (52, 84, 190),
    (232, 196, 50),
    (70, 150, 70),
)
WHITE, BLACK, GREY, BROWN, ORANGE, JEANS = (
    (240, 240, 236),
    (34, 34, 38),
    (150, 152, 156),
    (134, 90, 52),
    (238, 140, 40),
    (60, 74, 110),
)
CATEGORIES = {
    "person": 1,
    "car": 3,
    "bus": 6,
    "dog": 18,
    "sheep": 20,
    "umbrella": 28,
    "suitcase": 33,
    "bowl": 51,
    "banana": 52,
    "apple": 53,
    "orange": 55,
}


def box(x1: float, y1: float, x2: float, y2: float) -> list[Point]:
    return [(x1, y1), (x2, y1), (x2, y2), (x1, y2)]


def oval(x: float, y: float, a: float, b: float, corners: int = 24) -> list[Point]:
    """Return an ellipse around (x, y) with the half axes a and b."""
    turns = [2 * math.pi * corner / corners for corner in range(corners)]
    return [(x + a * math.cos(turn), y + b * math.sin(turn)) for turn in turns]


def person(x: float, feet: float, height: float, top: Colour, legs: Colour = JEANS) -> Thing:
    """Return somebody who stands with the middle at x."""
    unit = height / 8
    head, hip, shoulder = feet - 7.3 * unit, feet - 4 * unit, feet - 6.5 * unit
    return [
        (legs, box(x - unit, hip, x - 0.1 * unit, feet)),
        (legs, box(x + 0.1 * unit, hip, x + unit, feet)),
        (SKIN, box(x - 1.6 * unit, shoulder, x - 1.1 * unit, hip)),
        (SKIN, box(x + 1.1 * unit, shoulder, x + 1.6 * unit, hip)),
        (top, box(x - 1.2 * unit, shoulder, x + 1.2 * unit, hip + 0.3 * unit)),
        (SKIN, oval(x, head, 0.6 * unit, 0.75 * unit)),
        (HAIR, oval(x, head - 0.45 * unit, 0.6 * unit, 0.4 * unit)),
    ]


def in_a_dress(x: float, feet: float, height: float, colour: Colour) -> Thing:
    unit = height / 8
    dress = [(-0.7, -6.5), (0.7, -6.5), (1.8, -2.2), (-1.8, -2.2)]
    rest = person(x, feet, height, colour, SKIN)
    hem = (colour, [(x + a * unit, feet + b * unit) for a, b in dress])
    return [*rest[:4], hem, *rest[5:]]


def animal(x: float, feet: float, length: float, coat: Colour, head: Colour) -> Thing:
    """Return a four-legged one that looks to the right; x is the middle of its body."""
    unit = length / 10
    legs = [(-3.6, -2.6), (-2.2, -1.2), (1.6, 2.6), (3, 4)]
    return [
        *((head, box(x + a * unit, feet - 3 * unit, x + b * unit, feet)) for a, b in legs),
        (coat, oval(x, feet - 4 * unit, 4.6 * unit, 2.2 * unit)),
        (head, oval(x + 5 * unit, feet - 5.6 * unit, 1.6 * unit, 1.3 * unit)),
    ]


def car(x: float, ground: float, length: float, colour: Colour) -> Thing:
    unit = length / 10
    roof = [(-3, -2.6), (-1.8, -4.2), (2, -4.2), (3.4, -2.6)]
    glass = [(-2.3, -2.7), (-1.5, -3.8), (1.7, -3.8), (2.6, -2.7)]
    return [
        (colour, [(x + a * unit, ground + b * unit) for a, b in roof]),
        ((170, 200, 214), [(x + a * unit, ground + b * unit) for a, b in glass]),
        (colour, box(x - 5 * unit, ground - 2.7 * unit, x + 5 * unit, ground - 0.7 * unit)),
        (BLACK, oval(x - 3 * unit, ground - 0.9 * unit, 0.9 * unit, 0.9 * unit)),
        (BLACK, oval(x + 3 * unit, ground - 0.9 * unit, 0.9 * unit, 0.9 * unit)),
    ]


def banana(x: float, y: float, length: float) -> Thing:
    turns = [math.radians(20 + 14 * step) for step in range(11)]
    outer = [(x + length / 2 * math.cos(t), y + length / 2 * math.sin(t)) for t in turns]
    inner = [(x + 0.36 * length * math.cos(t), y + 0.3 * length * math.sin(t)) for t in turns]
    return [(YELLOW, [*outer, *reversed(inner)])]


class Scene:
    """One picture, with its annotations and the references to them.

    Attributes
    ----------
    annotations
        Category, whether it is a crowd, polygons.
    references
        Numbers of annotations, and the sentences that mean them.
    """

    def __init__(self, width: int, height: int, seed: int) -> None:
        self.image = Image.new("RGB", (width, height))
        self.annotations: list[tuple[str, bool, list[Sequence[Point]]]] = []
        self.references: list[tuple[tuple[int, ...], tuple[str, ...]]] = []
        self._chance = random.Random(seed)

    def paint(self, colour: Colour, *polygons: Sequence[Point]) -> None:
        """Draw what is no annotated thing."""
        for polygon in polygons:
            ImageDraw.Draw(self.image).polygon([*polygon], fill=colour)

    def mottle(self) -> None:
        """Give what is drawn so far a soft, seeded texture."""
        small = Image.new("L", (12, 12))
        small.putdata([self._chance.randrange(20) for _ in range(144)])
        soft = small.resize(self.image.size, Image.Resampling.BICUBIC)
        self.image = ImageChops.subtract(self.image, Image.merge("RGB", [soft] * 3))

    def add(self, category: str, thing: Thing) -> int:
        """Draw a thing; return the number of its annotation."""
        for colour, polygon in thing:
            self.paint(colour, polygon)
        return self.annotate(category, [polygon for _, polygon in thing])

    def annotate(self, category: str, polygons: list[Sequence[Point]], crowd: bool = False) -> int:
        """Annotate what is drawn by other means."""
        self.annotations.append((category, crowd, polygons))
        return len(self.annotations) - 1

    def refer(self, numbers: Sequence[int], *sentences: str) -> None:
        """Say what sentences mean: the things with these numbers, or none."""
        self.references.append((tuple(numbers), sentences))


def park() -> Scene:
    scene = Scene(640, 480, seed=1)
    scene.paint((150, 190, 226), box(0, 0, 640, 190))
    scene.paint((116, 164, 88), box(0, 190, 640, 480))
    scene.mottle()
    scene.paint(BROWN, box(556, 120, 578, 300))
    scene.paint((60, 116, 62), oval(567, 92, 60, 66))
    man = scene.add("person", person(120, 430, 300, RED))
    woman = scene.add("person", in_a_dress(270, 420, 270, BLUE))
    child = scene.add("person", person(390, 420, 150, YELLOW))
    dog = scene.add("dog", animal(500, 440, 110, BROWN, (104, 66, 36)))
    scene.refer([man], "the man in the red shirt", "person on the far left")
    scene.refer([man, woman], "the two adults", "everybody taller than the child in yellow")
    scene.refer([man, woman, child], "all three people")
    scene.refer([child, dog], "the child and the dog")
    scene.refer([], "the man riding a bicycle", "a cat lying in the grass")
    return scene


def street() -> Scene:
    scene = Scene(640, 427, seed=2)
    scene.paint((178, 200, 220), box(0, 0, 640, 230))
    scene.paint((98, 98, 102), box(0, 230, 640, 427))
    scene.mottle()
    scene.paint((168, 120, 96), box(20, 40, 190, 230))
    scene.paint((150, 158, 164), box(210, 10, 330, 230))
    scene.paint((250, 230, 160), *(box(x, y, x + 24, y + 30) for x in (45, 105) for y in (70, 140)))
    scene.paint(YELLOW, box(330, 110, 620, 272))
    scene.paint((150, 190, 206), *(box(x, 132, x + 44, 180) for x in (346, 398, 482, 534)))
    scene.paint(BLACK, oval(388, 272, 20, 20), oval(560, 272, 20, 20))
    # The lamp post hides a part of the bus, whose annotation is therefore in two pieces.
    scene.paint((60, 62, 66), box(450, 20, 470, 320), box(430, 12, 490, 26))
    bus = scene.annotate(
        "bus",
        [
            [
                (330, 110),
                (450, 110),
                (450, 272),
                (408, 272),
                *lower_half(388),
                (368, 272),
                (330, 272),
            ],
            [
                (470, 110),
                (620, 110),
                (620, 272),
                (580, 272),
                *lower_half(560),
                (540, 272),
                (470, 272),
            ],
        ],
    )
    red = scene.add("car", car(140, 370, 200, RED))
    blue = scene.add("car", car(520, 400, 200, BLUE))
    scene.refer([bus], "the yellow bus behind the lamp post")
    scene.refer([red, blue], "both cars", "cars on the road")
    scene.refer([bus, red], "the bus and the red car")
    scene.refer([blue], "car on the right")
    scene.refer([], "the green car")
    scene.refer([], "a motorcycle between the two cars")
    return scene


def lower_half(x: float) -> list[Point]:
    """Return the lower half of a wheel of the bus, right to left."""
    turns = [math.radians(15 * step) for step in range(1, 12)]
    return [(x + 20 * math.cos(turn), 272 + 20 * math.sin(turn)) for turn in turns]


def table() -> Scene:
    scene = Scene(480, 640, seed=3)
    scene.paint((214, 204, 190), box(0, 0, 480, 220))
    scene.paint((172, 128, 86), box(0, 220, 480, 640))
    scene.mottle()
    left = scene.add("apple", [(RED, oval(110, 330, 46, 46)), (BROWN, box(107, 270, 113, 290))])
    right = scene.add("apple", [(RED, oval(372, 322, 46, 46)), (BROWN, box(369, 262, 375, 282))])
    green = scene.add("apple", [(GREEN, oval(250, 320, 44, 44)), (BROWN, box(247, 262, 253, 282))])
    yellow = scene.add("banana", banana(236, 312, 170))
    oranges = [
        scene.add("orange", [(ORANGE, [(a, min(b, 500)) for a, b in oval(x, 482, 36, 36)])])
        for x in (170, 240, 310)
    ]
    half = [(240 + a, 500 + b) for a, b in oval(0, 0, 140, 96, 48) if b >= -0.01]
    bowl = scene.add("bowl", [((96, 140, 170), half)])
    scene.refer([left, right], "the two red apples")
    scene.refer([left, right, green], "every apple on the table", "all apples, red or green")
    scene.refer([green, yellow], "the banana and the apple that it covers in part")
    scene.refer(oranges, "the oranges in the bowl")
    scene.refer([bowl], "the blue bowl")
    scene.refer([], "the knife", "a bunch of grapes in the bowl")
    return scene


def stadium() -> Scene:
    scene = Scene(427, 640, seed=4)
    scene.paint((92, 98, 112), box(0, 0, 427, 300))
    scene.paint((88, 150, 76), box(0, 300, 427, 640))
    scene.mottle()
    scene.paint(WHITE, box(0, 470, 427, 474))
    chance = random.Random(4)
    heads = [
        (x + chance.randrange(-6, 7), y + chance.randrange(-6, 7))
        for y in range(60, 280, 36)
        for x in range(22, 420, 32)
    ]
    for x, y in heads:
        scene.paint(chance.choice((BLUE, YELLOW, GREY, GREEN)), box(x - 11, y + 8, x + 11, y + 30))
        scene.paint(SKIN, oval(x, y, 8, 9, 12))
    player = scene.add("person", person(150, 590, 330, WHITE, WHITE))
    keeper = scene.add("person", person(330, 560, 290, ORANGE, BLACK))
    crowd = scene.annotate("person", [box(4, 40, 423, 292)], crowd=True)
    scene.refer([player, keeper, crowd], "everybody in the stadium")
    scene.refer([player], "the player all in white")
    scene.refer([keeper], "the player in the orange shirt")
    scene.refer([player, keeper], "the players on the grass")
    scene.refer([], "the referee in black", "the ball")
    return scene


def meadow() -> Scene:
    scene = Scene(500, 375, seed=5)
    scene.paint((168, 200, 230), box(0, 0, 500, 130))
    scene.paint((128, 170, 92), box(0, 130, 500, 375))
    scene.mottle()
    first = scene.add("sheep", animal(100, 230, 110, WHITE, BLACK))
    black = scene.add("sheep", animal(250, 330, 130, BLACK, (58, 52, 50)))
    second = scene.add("sheep", animal(390, 240, 110, WHITE, BLACK))
    lamb = scene.add("sheep", animal(430, 340, 60, WHITE, (190, 180, 170)))
    scene.refer([black], "the black sheep", "the one sheep that is not white")
    scene.refer([first, second, lamb], "all white sheep")
    scene.refer([lamb], "the lamb")
    scene.refer([first, black, second, lamb], "the whole flock")
    scene.refer([], "the shepherd")
    scene.refer([], "the sheep lying under a tree", "a brown cow")
    return scene


def station() -> Scene:
    scene = Scene(640, 480, seed=6)
    scene.paint((196, 198, 200), box(0, 0, 640, 320))
    scene.paint((150, 146, 140), box(0, 320, 640, 480))
    scene.mottle()
    scene.paint(
        (120, 124, 130), box(40, 40, 600, 60), box(90, 60, 106, 330), box(520, 60, 536, 330)
    )
    man = scene.add("person", person(230, 440, 290, GREY, BLACK))
    # In front of his leg, so the two annotations overlap.
    suitcase = scene.add(
        "suitcase",
        [
            (BLACK, box(262, 330, 268, 362)),
            (BLACK, box(296, 330, 302, 362)),
            (BLACK, box(262, 326, 302, 332)),
            (RED, box(244, 360, 320, 446)),
        ],
    )
    woman = scene.add("person", in_a_dress(440, 440, 270, GREEN))
    canopy = [(352, 190), (378, 156), (420, 136), (462, 136), (504, 156), (530, 190)]
    umbrella = scene.add("umbrella", [(BLACK, box(480, 188, 484, 320)), (YELLOW, canopy)])
    scene.refer([man, suitcase], "the man and his suitcase")
    scene.refer([suitcase], "the red suitcase")
    scene.refer([woman, umbrella], "the woman together with her umbrella")
    scene.refer([man, woman], "two people waiting", "the man and the woman")
    scene.refer([], "the train")
    scene.refer([], "the man with a blue backpack", "the closed umbrella")
    return scene


SCENES = (park, street, table, stadium, meadow, station)


def runs_of(mask: Image.Image) -> list[int]:
    """Return the uncompressed COCO counts of a mask: runs down the columns, background first."""
    runs, value, length = [], 0, 0
    for x in range(mask.width):
        for y in range(mask.height):
            pixel = bool(mask.getpixel((x, y)))
            if pixel != value:
                runs.append(length)
                value, length = pixel, 0
            length += 1
    return [*runs, length]


def mask_of(size: tuple[int, int], polygons: Sequence[Sequence[Point]]) -> Image.Image:
    mask = Image.new("L", size)
    for polygon in polygons:
        ImageDraw.Draw(mask).polygon([*polygon], fill=255)
    return mask


def annotation(scene: Scene, number: int, ann_id: int, image_id: int) -> dict:
    category, crowd, polygons = scene.annotations[number]
    mask = mask_of(scene.image.size, polygons)
    x1, y1, x2, y2 = mask.getbbox()
    flat = [[round(side, 2) for point in polygon for side in point] for polygon in polygons]
    rle = {"size": [mask.height, mask.width], "counts": runs_of(mask)} if crowd else None
    return {
        "id": ann_id,
        "image_id": image_id,
        "category_id": CATEGORIES[category],
        "iscrowd": int(crowd),
        "bbox": [x1, y1, x2 - x1, y2 - y1],
        "area": mask.histogram()[255],
        "segmentation": rle or flat,
    }


def write(output: Path, *, targets: bool) -> tuple[int, int]:
    """Write the official layout; return the number of sentences, and of those without a target."""
    if output.exists():
        shutil.rmtree(output)
    (output / "images" / "train2014").mkdir(parents=True)
    images, annotations, references = [], [], []
    sentences = without = 0
    for image_id, make in enumerate(SCENES, start=1):
        scene = make()
        name = f"COCO_train2014_{image_id:012}.jpg"
        first = len(annotations) + 1
        annotations += [
            annotation(scene, number, first + number, image_id)
            for number in range(len(scene.annotations))
        ]
        for numbers, texts in scene.references:
            ann_ids = [first + number for number in numbers] or [-1]
            names = [CATEGORIES[scene.annotations[number][0]] for number in numbers] or [-1]
            references.append(
                {
                    "ref_id": len(references) + 1,
                    "image_id": image_id,
                    "split": "val",
                    "ann_id": ann_ids,
                    "category_id": names,
                    "no_target": not numbers,
                    "file_name": name,
                    "sentences": [
                        {
                            "sent_id": sentences + offset,
                            "raw": text,
                            "sent": text,
                            "tokens": text.split(),
                        }
                        for offset, text in enumerate(texts, start=1)
                    ],
                }
            )
            sentences += len(texts)
            without += len(texts) * (not numbers)
            if targets:
                show(scene, numbers, texts, output, image_id)
        images.append(
            {
                "id": image_id,
                "file_name": name,
                "width": scene.image.width,
                "height": scene.image.height,
            }
        )
        scene.image.save(output / "images" / "train2014" / name, quality=80, optimize=True)
    categories = [{"id": number, "name": name} for name, number in CATEGORIES.items()]
    instances = {"images": images, "annotations": annotations, "categories": categories}
    write_json(output / "instances.json", instances)
    write_json(output / "grefs(unc).json", references)
    return sentences, without


def show(
    scene: Scene, numbers: Sequence[int], texts: Sequence[str], output: Path, image_id: int
) -> None:
    """Write a picture of one target, with its sentences."""
    polygons = [polygon for number in numbers for polygon in scene.annotations[number][2]]
    mask = mask_of(scene.image.size, polygons)
    dim = scene.image.point(lambda value: value // 3)
    picture = Image.composite(scene.image, dim, mask)
    ImageDraw.Draw(picture).text((6, 6), "\n".join(texts), fill=(255, 255, 255), font_size=18)
    place = output / "targets" / f"{image_id}-{'-'.join(map(str, numbers)) or texts[0]}.png"
    place.parent.mkdir(exist_ok=True)
    picture.save(place)


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, separators=(",", ":")), encoding="ascii", newline="\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=PACKAGED, help="folder; it is replaced")
    parser.add_argument(
        "--targets", action="store_true", help="add a picture of each target, in a folder targets"
    )
    options = parser.parse_args()
    sentences, without = write(options.output, targets=options.targets)
    size = sum(path.stat().st_size for path in options.output.rglob("*") if path.is_file())
    print(
        f"{options.output}: {len(SCENES)} pictures, {sentences} expressions, {without} without a "
        f"target, {size:,} bytes"
    )


if __name__ == "__main__":
    main()
