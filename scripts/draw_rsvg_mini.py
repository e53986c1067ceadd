"""Draw the pictures of ``rsvg_mini`` and write them in the layout of the official release.

Every scene is seen from above and made of simple shapes. A target is drawn twice, into the picture
and into a mask of its own, and its box is the box of that mask: exact, far edges exclusive. The
same Pillow release gives the same files.

    python scripts/draw_rsvg_mini.py                    # into the package, where they ship
    python scripts/draw_rsvg_mini.py --output FOLDER --outlines   # with the boxes, to look at

Two things are to be checked by eye after a change: each expression is true, and of one object
only.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from PIL import Image, ImageChops, ImageDraw

PACKAGED = Path(__file__).resolve().parents[1] / "plugin" / "lmms_eval_grounding/data/mini/rsvg"

Draw = ImageDraw.ImageDraw
Colour = tuple[int, int, int]
Point = tuple[float, float]
# Draws a shape: the colours are those of the picture, or all white in its mask.
Shape = Callable[[Draw, Callable[[Colour], "Colour | int"]], None]

ASPHALT, WHITE, GRASS, SAND, WATER = (
    (92, 92, 96),
    (236, 236, 232),
    (110, 140, 78),
    (196, 180, 144),
    (44, 92, 128),
)
RED, BLUE, YELLOW, GREY, STEEL, BROWN = (
    (190, 44, 40),
    (40, 70, 180),
    (226, 190, 50),
    (150, 150, 152),
    (190, 194, 200),
    (132, 98, 66),
)


def turned(points: Sequence[Point], centre: Point, degrees: float, scale: float) -> list[Point]:
    """Place a shape given around the origin; degrees count clockwise in the picture."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return [
        (centre[0] + scale * (x * cos - y * sin), centre[1] + scale * (x * sin + y * cos))
        for x, y in points
    ]


def disc(centre: Point, radius: float, colour: Colour, rim: Colour | None = None) -> Shape:
    x, y = centre

    def draw(draw: Draw, ink: Callable) -> None:
        box = (x - radius, y - radius, x + radius, y + radius)
        draw.ellipse(box, fill=ink(colour), outline=ink(rim or colour), width=max(1, radius // 12))

    return draw


def rectangle(box: Sequence[float], colour: Colour) -> Shape:
    """Fill the pixels x1..x2-1, y1..y2-1."""
    x1, y1, x2, y2 = box

    def draw(draw: Draw, ink: Callable) -> None:
        draw.rectangle((x1, y1, x2 - 1, y2 - 1), fill=ink(colour))

    return draw


def polygon(points: Sequence[Point], colour: Colour) -> Shape:
    def draw(draw: Draw, ink: Callable) -> None:
        draw.polygon(list(points), fill=ink(colour))

    return draw


def together(*shapes: Shape) -> Shape:
    def draw(draw: Draw, ink: Callable) -> None:
        for shape in shapes:
            shape(draw, ink)

    return draw


def plane(centre: Point, degrees: float, scale: float, colour: Colour = WHITE) -> Shape:
    """Draw an aeroplane with its nose to the right at 0 degrees; its length is 100 * scale."""
    body = [(50, 0), (44, -4), (-46, -4), (-50, 0), (-46, 4), (44, 4)]
    wings = [(12, 0), (-14, -46), (-22, -46), (-10, 0), (-22, 46), (-14, 46)]
    tail = [(-36, 0), (-48, -17), (-53, -17), (-47, 0), (-53, 17), (-48, 17)]
    return together(
        *(polygon(turned(part, centre, degrees, scale), colour) for part in (wings, tail, body))
    )


def ship(centre: Point, degrees: float, scale: float, hull: Colour, deck: Colour) -> Shape:
    """Draw a ship with its bow to the right at 0 degrees; its length is 100 * scale."""
    outline = [(50, 0), (34, -12), (-46, -12), (-50, -8), (-50, 8), (-46, 12), (34, 12)]
    bridge = [(-38, -8), (-22, -8), (-22, 8), (-38, 8)]
    return together(
        polygon(turned(outline, centre, degrees, scale), hull),
        polygon(turned(bridge, centre, degrees, scale), deck),
    )


def car(box: Sequence[float], colour: Colour) -> Shape:
    x1, y1, x2, y2 = box
    if x2 - x1 > y2 - y1:
        glass = (x1 + (x2 - x1) * 0.6, y1 + 1, x1 + (x2 - x1) * 0.8, y2 - 1)
    else:
        glass = (x1 + 1, y1 + (y2 - y1) * 0.2, x2 - 1, y1 + (y2 - y1) * 0.4)
    return together(rectangle(box, colour), rectangle(tuple(map(int, glass)), (30, 30, 40)))


class Scene:
    """One picture with its targets."""

    def __init__(self, width: int, height: int, ground: Colour, seed: int) -> None:
        self.image = Image.new("RGB", (width, height), ground)
        self.targets: list[tuple[str, str, tuple[int, int, int, int]]] = []
        self._texture(random.Random(seed))

    def _texture(self, chance: random.Random) -> None:
        """Give the ground a soft, seeded mottle."""
        width, height = self.image.size
        small = Image.new("L", (max(2, width // 40), max(2, height // 40)))
        small.putdata([chance.randrange(18) for _ in range(small.width * small.height)])
        mottle = small.resize(self.image.size, Image.Resampling.BICUBIC)
        self.image = ImageChops.subtract(self.image, Image.merge("RGB", [mottle] * 3))

    def add(self, shape: Shape, category: str = "", *expressions: str) -> None:
        """Draw a shape; each expression makes it a target."""
        shape(ImageDraw.Draw(self.image), lambda colour: colour)
        if expressions:
            mask = Image.new("L", self.image.size)
            shape(ImageDraw.Draw(mask), lambda _: 255)
            box = mask.getbbox()
            assert box is not None
            self.targets += [(category, expression, box) for expression in expressions]


def road(scene: Scene, box: Sequence[int], *, dashes: bool = True) -> None:
    scene.add(rectangle(box, ASPHALT))
    if not dashes:
        return
    x1, y1, x2, y2 = box
    if x2 - x1 > y2 - y1:
        middle = (y1 + y2) // 2
        for x in range(x1 + 4, x2 - 10, 30):
            scene.add(rectangle((x, middle - 1, x + 14, middle + 1), WHITE))
    else:
        middle = (x1 + x2) // 2
        for y in range(y1 + 4, y2 - 10, 30):
            scene.add(rectangle((middle - 1, y, middle + 1, y + 14), WHITE))


def tank(scene: Scene, centre: Point, radius: int, *expressions: str, roof: Colour = WHITE) -> None:
    x, y = centre
    scene.add(disc((x + radius * 0.2, y + radius * 0.2), radius, (120, 108, 90)))  # its shadow
    scene.add(disc(centre, radius, roof, rim=(170, 170, 170)), "storagetank", *expressions)


def tank_farm() -> Scene:
    scene = Scene(800, 800, SAND, seed=1)
    road(scene, (0, 372, 800, 420))
    tank(scene, (210, 190), 120, "the larger storage tank above the road")
    tank(scene, (560, 230), 62, "the smaller storage tank above the road")
    tank(scene, (240, 620), 86, "the brown storage tank", roof=(150, 92, 60))
    tank(scene, (560, 620), 86, "the white storage tank below the road")
    scene.add(car((690, 402, 702, 409), RED), "vehicle", "the red car on the road")
    return scene


def airport() -> Scene:
    scene = Scene(640, 480, GRASS, seed=2)
    road(scene, (0, 214, 640, 262))
    scene.add(rectangle((60, 20, 600, 180), (168, 168, 166)))
    scene.add(rectangle((300, 180, 330, 214), ASPHALT))
    scene.add(plane((140, 100), 90, 1.2), "airplane", "the plane in the upper left")
    scene.add(plane((320, 100), 90, 0.7), "airplane", "the smallest plane")
    scene.add(plane((510, 100), 90, 1.2, BLUE), "airplane", "the blue plane")
    scene.add(plane((480, 390), 205, 1.3), "airplane", "the plane on the grass below the runway")
    return scene


def harbour() -> Scene:
    scene = Scene(1024, 683, WATER, seed=3)
    scene.add(rectangle((0, 0, 1024, 120), (170, 164, 150)))
    scene.add(rectangle((480, 120, 524, 420), (186, 182, 172)), "harbor", "the pier")
    scene.add(
        ship((430, 270), 90, 2.2, (70, 70, 78), WHITE), "ship", "the dark ship left of the pier"
    )
    scene.add(ship((584, 290), 90, 2.2, RED, WHITE), "ship", "the red ship")
    scene.add(ship((820, 530), 15, 2.8, STEEL, BROWN), "ship", "the ship in the lower right")
    scene.add(ship((160, 560), 0, 0.14, WHITE, WHITE), "ship", "the small white boat")
    return scene


def fields() -> Scene:
    scene = Scene(512, 800, (150, 158, 92), seed=4)
    scene.add(rectangle((20, 20, 250, 300), (196, 176, 84)), "field", "the yellow field")
    scene.add(rectangle((290, 20, 492, 300), BROWN), "field", "the ploughed brown field at the top")
    road(scene, (0, 330, 512, 360), dashes=False)
    scene.add(disc((170, 520), 130, (70, 122, 58)), "field", "the round green field")
    scene.add(rectangle((330, 420, 480, 640), (70, 122, 58)))
    scene.add(rectangle((20, 690, 492, 780), BROWN), "field", "the brown field at the bottom")
    barn = together(
        rectangle((404, 372, 440, 394), RED), rectangle((404, 382, 440, 384), (120, 20, 20))
    )
    scene.add(barn, "building", "the building with the red roof")
    return scene


def courts() -> Scene:
    scene = Scene(300, 200, GRASS, seed=5)
    court = together(
        rectangle((30, 30, 130, 90), BLUE),
        rectangle((36, 36, 124, 37), WHITE),
        rectangle((36, 83, 124, 84), WHITE),
        rectangle((36, 36, 37, 84), WHITE),
        rectangle((123, 36, 124, 84), WHITE),
        rectangle((79, 34, 81, 86), WHITE),
    )
    scene.add(court, "tenniscourt", "the tennis court")
    scene.add(disc((225, 62), 34, (210, 170, 110)), "baseballfield", "the round sandy field")
    road(scene, (0, 140, 300, 164))
    scene.add(car((60, 143, 71, 149), RED), "vehicle", "the car on the left")
    scene.add(car((230, 155, 241, 161), WHITE), "vehicle", "the car on the right")
    return scene


def crossing() -> Scene:
    scene = Scene(800, 800, (126, 146, 96), seed=6)
    road(scene, (0, 380, 800, 430))
    road(scene, (370, 0, 420, 800))
    scene.add(rectangle((370, 380, 420, 430), ASPHALT))
    roofs = [(90, 90), (210, 110), (560, 80), (690, 200), (110, 560), (230, 690), (600, 560)]
    for x, y in roofs:
        scene.add(rectangle((x - 32, y - 24, x + 32, y), (168, 84, 62)))
        scene.add(rectangle((x - 32, y, x + 32, y + 24), (146, 70, 52)))
    pool = rectangle((660, 650, 720, 690), (80, 190, 220))
    scene.add(pool, "pool", "the swimming pool")
    scene.add(car((250, 388, 261, 394), BLUE), "vehicle", "the blue car left of the crossing")
    scene.add(car((560, 412, 571, 418), BLUE), "vehicle", "the blue car right of the crossing")
    scene.add(car((380, 620, 386, 631), YELLOW), "vehicle", "the yellow car")
    scene.add(rectangle((400, 180, 412, 216), WHITE), "vehicle", "the white bus above the crossing")
    return scene


def river() -> Scene:
    scene = Scene(777, 519, GRASS, seed=7)
    scene.add(polygon([(300, 0), (400, 0), (440, 519), (320, 519)], WATER))
    scene.add(rectangle((250, 240, 480, 272), (160, 160, 160)), "bridge", "the bridge")
    road(scene, (0, 240, 250, 272))
    road(scene, (480, 240, 777, 272))
    track = together(
        disc((610, 110), 70, (176, 80, 60)),
        disc((690, 110), 70, (176, 80, 60)),
        rectangle((610, 40, 691, 181), (176, 80, 60)),
        disc((610, 110), 46, (90, 150, 70)),
        disc((690, 110), 46, (90, 150, 70)),
        rectangle((610, 64, 691, 157), (90, 150, 70)),
    )
    scene.add(track, "groundtrackfield", "the ground track field right of the river")
    scene.add(rectangle((60, 330, 200, 440), STEEL), "building", "the large grey hall")
    scene.add(ship((382, 400), 87, 0.6, WHITE, RED), "ship", "the boat below the bridge")
    return scene


SCENES = (tank_farm, airport, harbour, fields, courts, crossing, river)


def annotation(scene: Scene, name: str) -> str:
    lines = [
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>',
        "<annotation>",
        f"  <filename>{name}</filename>",
        "  <source>",
        "    <database>rsvg_mini</database>",
        "  </source>",
        "  <size>",
        f"    <width>{scene.image.width}</width>",
        f"    <height>{scene.image.height}</height>",
        "    <depth>3</depth>",
        "  </size>",
        "  <segmented>0</segmented>",
    ]
    for category, expression, box in scene.targets:
        lines += ["  <object>", f"    <name>{category}</name>", "    <pose>Unspecified</pose>"]
        lines.append("    <bndbox>")
        for tag, side in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True):
            lines.append(f"      <{tag}>{side}</{tag}>")
        lines.append("    </bndbox>")
        lines.append(f"    <description>{escape(expression)}</description>")
        lines.append("  </object>")
    return "\n".join([*lines, "</annotation>"])


def write(output: Path, *, outlines: bool) -> int:
    """Write the official layout and return the number of expressions."""
    if output.exists():
        shutil.rmtree(output)
    for folder in ("Annotations", "JPEGImages"):
        (output / folder).mkdir(parents=True)
    total = 0
    for number, make in enumerate(SCENES, start=1):
        scene = make()
        if outlines:
            for _, _, (x1, y1, x2, y2) in scene.targets:
                frame = (x1 - 1, y1 - 1, x2, y2)
                ImageDraw.Draw(scene.image).rectangle(frame, outline=(255, 0, 255))
        name = f"{number:05}"
        scene.image.save(output / "JPEGImages" / f"{name}.jpg", quality=80, optimize=True)
        text = annotation(scene, f"{name}.jpg")
        path = output / "Annotations" / f"{name}.xml"
        path.write_text(text, encoding="utf-8", newline="\n")
        total += len(scene.targets)
    lines = "".join(f"{index}\n" for index in range(total))
    (output / "test.txt").write_text(lines, encoding="ascii", newline="\n")
    return total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=PACKAGED, help="folder; it is replaced")
    parser.add_argument("--outlines", action="store_true", help="draw the boxes into the pictures")
    options = parser.parse_args()
    total = write(options.output, outlines=options.outlines)
    size = sum(path.stat().st_size for path in options.output.rglob("*") if path.is_file())
    print(f"{options.output}: {len(SCENES)} pictures, {total} expressions, {size:,} bytes")


if __name__ == "__main__":
    main()
