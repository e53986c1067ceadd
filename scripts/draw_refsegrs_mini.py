"""Draw the pictures of ``refsegrs_mini`` and write them in the layout of the official release.

Every scene is seen from above, 512 x 512 pixels. Each shape is drawn twice, into the picture and
with a number of its own into a map, so that a mask holds exactly the pixels in which its shapes
can be seen. As in the release, a picture is stored once for each phrase. Masks with an even number
are written as 0 and 1, the others as 0 and 255. The same Pillow release gives the same pixels.

    python scripts/draw_refsegrs_mini.py                    # into the package, where they ship
    python scripts/draw_refsegrs_mini.py --output FOLDER --targets   # with the masks, to look at

One thing is to be checked by eye after a change: each phrase is true, of all that its mask shows
and of nothing else.
"""

from __future__ import annotations

import argparse
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from draw_rsvg_mini import (
    ASPHALT,
    BLUE,
    GRASS,
    GREY,
    RED,
    SAND,
    STEEL,
    WHITE,
    YELLOW,
    Colour,
    Shape,
    car,
    disc,
    polygon,
    rectangle,
    together,
    turned,
)
from draw_rsvg_mini import PACKAGED as RSVG
from PIL import Image, ImageDraw

PACKAGED = RSVG.with_name("refsegrs")

SIDE = 512
ROOF, TREE, LOW_GREEN, PAVEMENT, BIKEWAY = (
    (168, 84, 62),
    (58, 96, 56),
    (132, 166, 92),
    (176, 172, 164),
    (172, 92, 82),
)


class Scene:
    """One picture, and the phrases about it.

    Attributes
    ----------
    phrases
        A phrase, and the numbers of the shapes that it means.
    """

    def __init__(self, ground: Colour, seed: int) -> None:
        self.image = Image.new("RGB", (SIDE, SIDE), ground)
        self.phrases: list[tuple[str, list[int]]] = []
        self._numbers = Image.new("L", (SIDE, SIDE))
        self._count = 0
        self._patches(ground, random.Random(seed))

    def _patches(self, ground: Colour, chance: random.Random) -> None:
        """Give the ground some seeded patches; flat ones, since TIFF keeps every pixel."""
        for _ in range(24):
            x, y, step = chance.randrange(SIDE), chance.randrange(SIDE), chance.randrange(-7, 8)
            shade = tuple(side + step for side in ground)
            corners = (x - chance.randrange(20, 80), y - chance.randrange(20, 80), x + 60, y + 60)
            ImageDraw.Draw(self.image).ellipse(corners, fill=shade)

    def add(self, *shapes: Shape) -> list[int]:
        """Draw shapes over what is there; return their numbers."""
        first = self._count + 1
        for shape in shapes:
            self._count += 1
            shape(ImageDraw.Draw(self.image), lambda colour: colour)
            shape(ImageDraw.Draw(self._numbers), lambda _: self._count)
        return list(range(first, self._count + 1))

    def say(self, phrase: str, *numbers: Sequence[int]) -> None:
        """Note a phrase and what it means."""
        self.phrases.append((phrase, [number for each in numbers for number in each]))

    def mask(self, numbers: Sequence[int], foreground: int) -> Image.Image:
        """Return where the shapes can be seen."""
        return self._numbers.point([foreground * (value in numbers) for value in range(256)])


def dashes(x: int, y: int, count: int, *, across: bool) -> list[Shape]:
    """Return lane markings two pixels thin, from (x, y) to the right or downwards."""
    steps = range(0, 32 * count, 32)
    if across:
        return [rectangle((x + step, y, x + step + 16, y + 2), WHITE) for step in steps]
    return [rectangle((x, y + step, x + 2, y + step + 16), WHITE) for step in steps]


def house(x: int, y: int, width: int, height: int, roof: Colour) -> Shape:
    ridge = tuple(side * 4 // 5 for side in roof)
    return together(
        rectangle((x, y, x + width, y + height), roof),
        rectangle((x, y + height // 2, x + width, y + height), ridge),
    )


def crossing() -> Scene:
    scene = Scene(GRASS, seed=1)
    lane = scene.add(polygon([(0, 60), (6, 54), (512, 330), (512, 340)], SAND))
    roads = scene.add(
        rectangle((0, 380, 512, 420), ASPHALT), rectangle((330, 0, 366, 512), ASPHALT)
    )
    marks = scene.add(*dashes(6, 399, 10, across=True), *dashes(347, 6, 11, across=False))
    left = scene.add(car((90, 386, 101, 392), RED))
    right = scene.add(car((430, 407, 441, 413), WHITE))
    above = scene.add(car((336, 120, 342, 131), BLUE))
    trees = scene.add(*(disc((x, 450), 14, TREE) for x in (40, 110, 180, 250)))
    scene.say("paved road", roads)
    scene.say("unpaved path", lane)
    scene.say("vehicle", left, right, above)
    scene.say("red car on the road", left)
    scene.say("road marking", marks)
    scene.say("tree along the road", trees)
    return scene


def parking() -> Scene:
    scene = Scene(LOW_GREEN, seed=2)
    scene.add(rectangle((40, 60, 380, 300), PAVEMENT))
    hall = scene.add(house(60, 340, 260, 120, STEEL))
    houses = scene.add(house(410, 60, 70, 90, ROOF), house(410, 200, 70, 60, ROOF))
    road = scene.add(rectangle((0, 486, 512, 506), ASPHALT))
    places = [(56 + 16 * column, y) for y in (80, 180) for column in range(18)]
    chance = random.Random(2)
    taken = [place for place in places if chance.random() < 0.7]
    colours = [chance.choice((RED, BLUE, WHITE, GREY)) for _ in taken]
    parked = scene.add(
        *(car((x, y, x + 6, y + 12), colour) for (x, y), colour in zip(taken, colours, strict=True))
    )
    moving = scene.add(car((200, 489, 211, 495), YELLOW))
    scene.say("vehicle in the parking area", parked)
    scene.say("yellow car on the road", moving)
    scene.say("building with a grey roof", hall)
    scene.say("building with a red roof", houses)
    scene.say("road", road)
    return scene


def motorway() -> Scene:
    scene = Scene((120, 148, 96), seed=3)
    lanes = scene.add(polygon([(0, 120), (512, 200), (512, 300), (0, 220)], ASPHALT))
    outline = [(-1, -1), (1, -1), (1, 1), (-1, 1)]

    def marking(x: int) -> Shape:
        return polygon(
            [
                (x, 169 + x * 0.15625),
                (x + 18, 171.8 + x * 0.15625),
                (x + 18, 174 + x * 0.15625),
                (x, 171.2 + x * 0.15625),
            ],
            WHITE,
        )

    marks = scene.add(*(marking(x) for x in range(6, 490, 40)))
    bikeway = scene.add(polygon([(0, 330), (512, 410), (512, 415), (0, 335)], BIKEWAY))

    def vehicle(x: float, y: float, length: float, width: float, colour: Colour) -> Shape:
        corners = [(length / 2 * a, width / 2 * b) for a, b in outline]
        return polygon(turned(corners, (x, y), 8.88, 1), colour)

    truck = scene.add(together(vehicle(150, 160, 58, 11, STEEL), vehicle(183, 165, 9, 10, RED)))
    bus = scene.add(vehicle(360, 252, 42, 11, YELLOW))
    cars = scene.add(
        *(
            vehicle(x, y, 15, 7, colour)
            for x, y, colour in (
                (40, 148, WHITE),
                (300, 184, BLUE),
                (90, 215, RED),
                (470, 275, GREY),
            )
        )
    )
    scene.say("road", lanes)
    scene.say("long truck", truck)
    scene.say("bus", bus)
    scene.say("light-duty vehicle", cars)
    scene.say("road marking", marks)
    scene.say("bikeway", bikeway)
    return scene


def suburb() -> Scene:
    scene = Scene((164, 142, 112), seed=4)
    green = scene.add(disc((380, 380), 90, LOW_GREEN))
    road = scene.add(rectangle((0, 226, 512, 252), ASPHALT))
    walks = scene.add(
        rectangle((0, 219, 512, 222), PAVEMENT), rectangle((0, 256, 512, 259), PAVEMENT)
    )
    roofs = [ROOF, GREY, ROOF, GREY, ROOF]
    houses = scene.add(
        *(house(24 + 100 * place, 90, 56, 70, roof) for place, roof in enumerate(roofs))
    )
    lone = scene.add(house(70, 350, 90, 70, GREY))
    trees = scene.add(
        *(disc((x, y), r, TREE) for x, y, r in ((350, 360, 16), (400, 400, 20), (420, 350, 12)))
    )
    van = scene.add(car((250, 240, 263, 247), WHITE))
    scene.say("sidewalk along the road", walks)
    scene.say("building above the road", houses)
    scene.say("building below the road", lone)
    scene.say("tree", trees)
    scene.say("low vegetation", green)
    scene.say("white van", van)
    scene.say("road", road)
    return scene


SCENES = (crossing, parking, motorway, suburb)


def write(output: Path, *, targets: bool) -> int:
    """Write the official layout; return the number of phrases."""
    if output.exists():
        shutil.rmtree(output)
    for folder in ("images", "masks", *(["targets"] if targets else [])):
        (output / folder).mkdir(parents=True)
    lines: list[str] = []
    for make in SCENES:
        scene = make()
        for phrase, numbers in scene.phrases:
            number = len(lines) + 1
            mask = scene.mask(numbers, foreground=255 if number % 2 else 1)
            for folder, picture in (("images", scene.image), ("masks", mask)):
                path = output / folder / f"{number}.tif"
                picture.save(path, compression="tiff_adobe_deflate")
            if targets:
                show(scene, phrase, numbers).save(output / "targets" / f"{number:02}.png")
            lines.append(f"{number} {phrase}\n")
    text = "".join(lines)
    (output / "output_phrase_test.txt").write_text(text, encoding="ascii", newline="\n")
    return len(lines)


def show(scene: Scene, phrase: str, numbers: Sequence[int]) -> Image.Image:
    """Return a picture of one target, with its phrase."""
    dim = scene.image.point(lambda value: value // 3)
    picture = Image.composite(scene.image, dim, scene.mask(numbers, foreground=255))
    ImageDraw.Draw(picture).text((6, 6), phrase, fill=(255, 255, 255), font_size=22)
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=PACKAGED, help="folder; it is replaced")
    parser.add_argument(
        "--targets", action="store_true", help="add a picture of each mask, in a folder targets"
    )
    options = parser.parse_args()
    phrases = write(options.output, targets=options.targets)
    size = sum(path.stat().st_size for path in options.output.rglob("*") if path.is_file())
    print(f"{options.output}: {len(SCENES)} pictures, {phrases} phrases, {size:,} bytes")


if __name__ == "__main__":
    main()
