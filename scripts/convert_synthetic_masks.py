"""Convert a synthetic gRefCOCO and a synthetic RefSegRS of full size, and check what comes out.

gRefCOCO: the three splits that papers report, with the official numbers of sentences, with and
without a target, on 1,500, 750 and 750 images; references of train and annotations of other images
give both JSON files the weight of the real ones (59 and 120 MB), or more. Every image has a crowd
annotation and an invalid polygon, which must be left out and counted.

RefSegRS: a zip file with the 4,420 triplets of the release, 512 x 512 pixels, uncompressed TIFF;
masks of one split are written as 0 and 1, the others as 0 and 255.

For each of the two, six things happen:

  1. the release is built,
  2. a child process converts it, and its time and peak memory are printed,
  3. counts, ids, texts and masks are compared with what was built, by pycocotools and numpy alone,
  4. ``check`` must be content, in another child,
  5. a third child converts again into another folder and is killed half-way,
  6. the conversion is started again there; the bytes of all files must equal those of step 2.

    python scripts/convert_synthetic_masks.py                     # full size, some minutes
    python scripts/convert_synthetic_masks.py --share 0.02        # seconds
    python scripts/convert_synthetic_masks.py --only refsegrs

Everything lies in a temporary folder (half a GB), which is removed at the end. Ends with code 1
when anything is not as it should be.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, cycle
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from convert_synthetic_rsvg import digests
from PIL import Image
from pycocotools import mask as coco_mask

MEMORY_LIMIT_MB = 2000

# Images, sentences, and those of them without a target.
GREFCOCO = {
    "val": (1500, 14229, 8905),
    "testA": (750, 19200, 4448),
    "testB": (750, 16063, 4673),
}
TRAIN_REFERENCES = 104_672  # of two sentences each
OTHER_ANNOTATIONS = 170_000
REFSEGRS = {"train": 2172, "val": 431, "test": 1817}

OBJECTS = 6  # of an image; annotation ids are ten times that of the image and the number of one
INVALID, CROWD = 0, 9  # the object with an invalid polygon, and the crowd
WIDTH, HEIGHT = 640, 480
SIDE = 512

# Its own process, so that its peak memory is of the conversion (or the check) alone.
CHILD = """
import importlib, json, resource, sys, time
task, benchmark, source, output, splits = sys.argv[1:]
module = importlib.import_module("lmms_eval_grounding.data." + benchmark)
start = time.monotonic()
if task == "check":
    figures = {"problems": module.check(output)}
else:
    manifest = module.prepare(source, output, splits=splits.split(","), progress=False)
    figures = {"release": manifest.release, "splits": manifest.splits,
               "left_out": manifest.left_out_counts, "details": manifest.details}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
unit = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss: bytes there, kilobytes elsewhere
print(json.dumps({**figures, "seconds": time.monotonic() - start, "peak_mb": peak / unit}))
"""

Box = tuple[int, int, int, int]


@dataclass
class Row:
    """What must come out for one expression; ``boxes`` is None where it has no target."""

    expression: str
    boxes: list[Box] | None
    height: int
    width: int


@dataclass
class Built:
    """A synthetic release, and what must come out of it.

    Attributes
    ----------
    benchmark
        Name of the converter.
    source
        What to convert.
    release
        The name that the release must be given at full size.
    rows
        By split and row id.
    left_out
        By split and reason, what must be counted as left out.
    """

    benchmark: str
    source: Path
    release: str
    rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    left_out: dict[str, dict[str, int]] = field(default_factory=dict)


def build_gres(folder: Path, share: float, seed: int) -> Built:
    """Write the two JSON files and the images."""
    chance = random.Random(seed)
    built = Built("gres", folder / "grefcoco", "August 2023 file")
    (built.source / "images" / "train2014").mkdir(parents=True)
    images: list[dict] = []
    references: list[dict] = []
    for split, counts in GREFCOCO.items():
        pictures, sentences, none = (max(6, round(count * share)) for count in counts)
        new = [image(len(images) + number) for number in range(pictures)]
        images += new
        references += references_of(split, new, sentences - none, chance, targets=True)
        references += references_of(split, new, none, chance, targets=False)
    chance.shuffle(references)
    for ref_id, each in enumerate(references, start=1):
        each["ref_id"] = ref_id
        note(each, built)
    built.left_out = left_out_of_gres(built, references)
    for each in images:
        # A seeded colour, so that an image that is taken for another one differs.
        colour = (each["id"] % 256, each["id"] // 256, 90)
        path = built.source / "images" / "train2014" / each["file_name"]
        Image.new("RGB", (WIDTH, HEIGHT), colour).save(path)
    train = (train_reference(chance) for _ in range(round(TRAIN_REFERENCES * share)))
    annotations = (each for picture in images for each in annotations_of(picture["id"]))
    others = (other_annotation(chance) for _ in range(round(OTHER_ANNOTATIONS * share)))
    write_list(built.source / "grefs(unc).json", "[", chain(references, train), "]")
    head = f'{{"images":{json.dumps(images)},"categories":[],"annotations":['
    write_list(built.source / "instances.json", head, chain(annotations, others), "]}")
    return built


def image(image_id: int) -> dict:
    name = f"COCO_train2014_{image_id:012}.jpg"
    return {"id": image_id, "file_name": name, "width": WIDTH, "height": HEIGHT}


def references_of(
    split: str, images: list[dict], sentences: int, chance: random.Random, *, targets: bool
) -> Iterator[dict]:
    """Yield references of one to three sentences, with so many sentences in all."""
    pictures = cycle(images)
    while sentences:
        count = min(sentences, chance.randint(1, 3))
        sentences -= count
        image_id = next(pictures)["id"]
        numbers = chance.sample(range(OBJECTS), chance.randint(1, 4)) if targets else []
        with_crowd = [CROWD] if numbers and chance.random() < 0.1 else []
        ann_ids = [10 * image_id + number for number in numbers + with_crowd] or [-1]
        yield {
            "image_id": image_id,
            "split": split,
            "ann_id": ann_ids,
            "category_id": [1] * len(ann_ids) if targets else [-1],
            "no_target": not targets,
            "file_name": "not to be used",
            "sentences": [
                sentence(chance.randrange(2**40), f"sentence {number} of {sentences}")
                for number in range(count)
            ],
        }


def sentence(sent_id: int, text: str) -> dict:
    return {"tokens": text.split(), "raw": text, "sent_id": sent_id, "sent": text}


def note(reference: dict, built: Built) -> None:
    """Note what must come out of a reference."""
    image_id, split = reference["image_id"], reference["split"]
    numbers = [ann_id - 10 * image_id for ann_id in reference["ann_id"]]
    boxes = [box_of(image_id, number) for number in numbers if number in range(OBJECTS)]
    rows = built.rows.setdefault(split, {})
    for each in reference["sentences"]:
        key = f"{reference['ref_id']}/{each['sent_id']}"
        rows[key] = Row(each["raw"], None if reference["no_target"] else boxes, HEIGHT, WIDTH)


def box_of(image_id: int, number: int) -> Box:
    """Return the box of an object; each object has a column of the image to itself."""
    x1 = WIDTH // OBJECTS * number + image_id % 30
    y1 = (11 * image_id + 17 * number) % 200
    return x1, y1, x1 + 40 + (7 * image_id + number) % 35, y1 + 50 + (5 * image_id + number) % 200


def annotations_of(image_id: int) -> Iterator[dict]:
    for number in range(OBJECTS):
        x1, y1, x2, y2 = box_of(image_id, number)
        steps = [0, 0.25, 0.5, 0.75]
        outline = [
            *((x1 + (x2 - x1) * step, y1) for step in steps),
            *((x2, y1 + (y2 - y1) * step) for step in steps),
            *((x2 - (x2 - x1) * step, y2) for step in steps),
            *((x1, y2 - (y2 - y1) * step) for step in steps),
        ]
        polygons = [[side for point in outline for side in point]]
        if number == INVALID:
            polygons.append([1.0, 2.0, 3.0, 4.0])
        yield annotation(10 * image_id + number, image_id, polygons)
    runs = [WIDTH * HEIGHT // 2, WIDTH * HEIGHT - WIDTH * HEIGHT // 2]
    crowd = {"size": [HEIGHT, WIDTH], "counts": runs}
    yield {**annotation(10 * image_id + CROWD, image_id, crowd), "iscrowd": 1}


def annotation(ann_id: int, image_id: int, segmentation: list | dict) -> dict:
    return {
        "id": ann_id,
        "image_id": image_id,
        "category_id": 1,
        "iscrowd": 0,
        "bbox": [0.5, 0.5, 10.25, 10.25],
        "area": 100.5,
        "segmentation": segmentation,
    }


def train_reference(chance: random.Random) -> dict:
    """Return a reference of a split that is not converted, to give the file its weight."""
    number = chance.randrange(2**30)
    text = "the people in the second row who wear something"
    return {
        "ref_id": number,
        "image_id": number,
        "split": "train",
        "ann_id": [number],
        "category_id": [1],
        "no_target": False,
        "file_name": f"COCO_train2014_{number:012}_{number}.jpg",
        "sentences": [sentence(number, text), sentence(number + 1, text)],
    }


def other_annotation(chance: random.Random) -> dict:
    """Return an annotation of an image that is not referred to, to give the file its weight."""
    polygon = [chance.randrange(64000) / 100 for _ in range(64)]
    return annotation(10**9 + chance.randrange(2**40), 10**9, [polygon])


def write_list(path: Path, head: str, entries: Iterable[dict], tail: str) -> None:
    with path.open("w") as file:
        file.write(head)
        for number, entry in enumerate(entries):
            file.write("," * bool(number) + json.dumps(entry))
        file.write(tail)


def build_refsegrs(folder: Path, share: float, seed: int) -> Built:
    """Write the zip file."""
    chance = random.Random(seed)
    folder.mkdir(parents=True)
    built = Built("refsegrs", folder / "RefSegRS.zip", "official release")
    total = {split: max(4, round(count * share)) for split, count in REFSEGRS.items()}
    ids = list(range(sum(total.values())))
    chance.shuffle(ids)
    with zipfile.ZipFile(built.source, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for split, count in total.items():
            rows = built.rows[split] = {}
            for number in [ids.pop() for _ in range(count)]:
                x1, y1 = number % 200, number % 300
                boxes = [(x1, y1, x1 + 1 + number % 90, y1 + 1 + number % 70)] if number else []
                rows[str(number)] = Row(f"vehicle  number {number} ", boxes, SIDE, SIDE)
                picture = Image.new("RGB", (SIDE, SIDE), (number % 256, number // 256, 60))
                mask = np.zeros((SIDE, SIDE), np.uint8)
                for x1, y1, x2, y2 in boxes:
                    mask[y1:y2, x1:x2] = 1 if split == "val" else 255
                archive.writestr(f"RefSegRS/images/{number}.tif", tiff(picture))
                archive.writestr(f"RefSegRS/masks/{number}.tif", tiff(Image.fromarray(mask)))
            lines = "".join(f"{key} {row.expression}\n" for key, row in rows.items())
            archive.writestr(f"RefSegRS/output_phrase_{split}.txt", lines)
    return built


def tiff(picture: Image.Image) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "TIFF")
    return stream.getvalue()


def child(task: str, built: Built, output: Path) -> dict:
    """Convert or check in a child process and return its figures."""
    finished = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments(task, built, output)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(finished.stdout)


def arguments(task: str, built: Built, output: Path) -> list[str]:
    return [task, built.benchmark, str(built.source), str(output), ",".join(built.rows)]


def convert_and_kill(built: Built, output: Path, after_bytes: int) -> int:
    """Kill a conversion when it has written so much; return how much it had."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments("prepare", built, output)],
        stdout=subprocess.DEVNULL,
    )
    while process.poll() is None:
        written = sum(path.stat().st_size for path in output.parent.glob(".*.partial/data/*"))
        if written >= after_bytes:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return written
        time.sleep(0.001)
    raise SystemExit("the conversion ended before it could be killed")


def differences(built: Built, output: Path, every: int = 20) -> list[str]:
    """Compare the rows with what was built; of every so many rows each pixel of the mask."""
    found = []
    for split, rows in built.rows.items():
        columns = ["id", "expression", "target", "height", "width"]
        file = output / "data" / f"{split}-00000-of-00001.parquet"
        table = pq.read_table(file, columns=columns).to_pylist()
        if {row["id"] for row in table} != set(rows) or len(table) != len(rows):
            found.append(f"{split}: ids differ")
            continue
        for number, row in enumerate(table):
            wanted = rows[row["id"]]
            if row["expression"] != wanted.expression:
                found.append(f"{split} {row['id']}: the expression differs")
            if (row["height"], row["width"]) != (wanted.height, wanted.width):
                found.append(f"{split} {row['id']}: the size differs")
            elif not is_mask_of(row["target"], wanted, each_pixel=number % every == 0):
                found.append(f"{split} {row['id']}: the mask differs")
    return found


def is_mask_of(target: dict | None, row: Row, *, each_pixel: bool) -> bool:
    """Say whether a target is the mask of boxes that do not overlap."""
    if target is None or row.boxes is None:
        return target is row.boxes is None
    rle = {"size": target["size"], "counts": target["counts"].encode("ascii")}
    if target["size"] != [row.height, row.width]:
        return False
    if not each_pixel:
        return coco_mask.area(rle) == sum((x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in row.boxes)
    pixels = np.zeros((row.height, row.width), np.uint8)
    for x1, y1, x2, y2 in row.boxes:
        pixels[y1:y2, x1:x2] = 1
    return np.array_equal(coco_mask.decode(rle), pixels)


def left_out_of_gres(built: Built, references: Iterable[dict]) -> dict[str, dict[str, int]]:
    """Return how many crowds and how many invalid polygons the references of each split name."""
    named: dict[str, set[int]] = {split: set() for split in built.rows}
    for each in references:
        if each["split"] in named:
            named[each["split"]].update(set(each["ann_id"]) - {-1})
    return {
        split: {
            "crowd annotations": sum(ann_id % 10 == CROWD for ann_id in ids),
            "polygons of fewer than 6 numbers or of an odd count": sum(
                ann_id % 10 == INVALID for ann_id in ids
            ),
        }
        for split, ids in named.items()
    }


def run(built: Built, folder: Path, *, full: bool) -> list[str]:
    """Do the steps after building and return what was not as it should be."""
    output, again = folder / "once" / "out", folder / "again" / "out"
    figures = child("prepare", built, output)
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    print(
        f"  converted in {figures['seconds']:.1f} s, peak memory {figures['peak_mb']:.0f} MB, "
        f"{size / 1e6:.1f} MB on disk\n  {figures['release']}; {figures['splits']}\n"
        f"  {figures['details']}",
        flush=True,
    )
    found = differences(built, output)
    if figures["splits"] != {split: len(rows) for split, rows in built.rows.items()}:
        found.append(f"counts are {figures['splits']}")
    if figures["left_out"] != built.left_out:
        found.append(f"left out are {figures['left_out']}, not {built.left_out}")
    if full and figures["release"] != built.release:
        found.append(f"the release was named {figures['release']}")

    checked = child("check", built, output)
    print(f"  checked in {checked['seconds']:.1f} s, peak memory {checked['peak_mb']:.0f} MB")
    found += checked["problems"]
    for task, peak in (("conversion", figures["peak_mb"]), ("check", checked["peak_mb"])):
        if peak > MEMORY_LIMIT_MB:
            found.append(f"peak memory of the {task} is over {MEMORY_LIMIT_MB} MB")

    again.parent.mkdir()
    written = convert_and_kill(built, again, size // 2)
    if again.exists():
        found.append("a killed conversion left a finished folder")
    print(f"  killed after {written / 1e6:.1f} of {size / 1e6:.1f} MB", flush=True)
    child("prepare", built, again)
    same = digests(again) == digests(output)
    print(f"  started again: {'the same bytes' if same else 'OTHER BYTES'}", flush=True)
    if not same:
        found.append("the bytes after a kill and a restart differ")
    leftovers = [path.name for path in again.parent.glob(".*") if not path.name.endswith(".lock")]
    return [*found, *([f"left behind: {leftovers}"] if leftovers else [])]


BUILDERS: dict[str, Callable[[Path, float, int], Built]] = {
    "gres": build_gres,
    "refsegrs": build_refsegrs,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="of full size, above 0 and at most 1; releases are recognised at 1 only, the default",
    )
    parser.add_argument("--only", choices=sorted(BUILDERS), help="one of the two")
    parser.add_argument("--seed", type=int, default=0, help="another release (default %(default)s)")
    parser.add_argument("--folder", type=Path, help="where to work (default: the system's)")
    options = parser.parse_args()
    if not 0 < options.share <= 1:
        parser.error("--share: above 0 and at most 1")
    found = []
    for benchmark in [options.only] if options.only else BUILDERS:
        folder = Path(tempfile.mkdtemp(prefix=f"synthetic-{benchmark}-", dir=options.folder))
        try:
            start = time.monotonic()
            built = BUILDERS[benchmark](folder / "source", options.share, options.seed)
            megabytes = sum(path.stat().st_size for path in folder.rglob("*")) / 1e6
            seconds = time.monotonic() - start
            print(f"{benchmark}: built {megabytes:.0f} MB in {seconds:.1f} s", flush=True)
            found += run(built, folder, full=options.share == 1)
        finally:
            shutil.rmtree(folder)
    for sentence_ in found[:20]:
        print(f"WRONG: {sentence_}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
