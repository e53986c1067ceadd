"""Convert a synthetic DIOR-RSVG of full size, and check what comes out.

The tree has the official layout: 17,402 annotation files with 38,320 objects, tiny pictures, and
split files with the official counts over a seeded partition of the objects. Files are written in a
shuffled order, and the description of an object holds the number it must get, so a converter that
counts in the order of the disk is found out.

Five things happen:

  1. the tree is built,
  2. a child process converts it, and its time and peak memory are printed,
  3. counts, ids, texts and boxes are compared with what was built, and ``check`` must be content,
  4. a second child converts it again into another folder and is killed half-way,
  5. the conversion is started again there; the bytes of all files must equal those of step 2.

    python scripts/convert_synthetic_rsvg.py                        # full size, minutes
    python scripts/convert_synthetic_rsvg.py --objects 2000         # seconds
    python scripts/convert_synthetic_rsvg.py --picture-kb 200       # as heavy as the real pictures

Everything lies in a temporary folder, which is removed at the end. Ends with code 1 when anything
is not as it should be.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
from PIL import Image

FULL_OBJECTS = 38_320
FULL_FILES = 17_402
RELEASE = {"train": 26_991, "val": 3_829, "test": 7_500}
SIDE = 16
MEMORY_LIMIT_MB = 1000

# Its own process, so that its peak memory is of the conversion (or the check) alone.
CHILD = """
import json, resource, sys, time
from lmms_eval_grounding.data.rsvg import check, prepare
start = time.monotonic()
if sys.argv[1] == "check":
    figures = {"problems": check(sys.argv[2])}
else:
    manifest = prepare(sys.argv[2], sys.argv[3], progress=False)
    figures = {"release": manifest.release, "splits": manifest.splits}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
unit = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss: bytes there, kilobytes elsewhere
print(json.dumps({**figures, "seconds": time.monotonic() - start, "peak_mb": peak / unit}))
"""


def counts_for(objects: int) -> dict[str, int]:
    """Split counts: the official ones at full size, else in the same proportion."""
    if objects == FULL_OBJECTS:
        return dict(RELEASE)
    test, val = objects * 7_500 // FULL_OBJECTS, objects * 3_829 // FULL_OBJECTS
    return {"train": objects - val - test, "val": val, "test": test}


def box_for(index: int) -> list[int]:
    """Return a box inside the picture that depends on the object."""
    x1, y1 = index % 7, index % 5
    return [x1, y1, x1 + 1 + index % 9, y1 + 1 + index % 11]


def picture(number: int, kilobytes: int) -> bytes:
    """Return a tiny JPEG, made heavier by comment segments when asked to."""
    stream = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), (number % 256, number // 256 % 256, 90)).save(stream, "JPEG")
    data = stream.getvalue()
    chance = random.Random(number)
    comments = b""
    while len(data) + len(comments) < kilobytes * 1000:
        comments += b"\xff\xfe" + (65_533).to_bytes(2, "big") + chance.randbytes(65_531)
    return data[:2] + comments + data[2:]


def build(root: Path, objects: int, kilobytes: int, seed: int) -> dict[str, list[int]]:
    """Write the tree and return the indices of each split."""
    chance = random.Random(seed)
    files = max(1, objects * FULL_FILES // FULL_OBJECTS)
    per_file = [1] * files
    for _ in range(objects - files):
        per_file[chance.randrange(files)] += 1
    plan, first = [], 0
    for number, count in enumerate(per_file, start=1):
        plan.append((number, first, count))
        first += count
    chance.shuffle(plan)  # the order on disk must not matter
    for folder in ("Annotations", "JPEGImages"):
        (root / folder).mkdir(parents=True)
    for number, start, count in plan:
        name = f"{number:05}"
        (root / "JPEGImages" / f"{name}.jpg").write_bytes(picture(number, kilobytes))
        (root / "Annotations" / f"{name}.xml").write_text(annotation(name, start, count))
    order = list(range(objects))
    chance.shuffle(order)
    splits = {}
    for split, count in counts_for(objects).items():
        splits[split], order = sorted(order[:count]), order[count:]
        (root / f"{split}.txt").write_text("".join(f"{index}\n" for index in splits[split]))
    return splits


def annotation(name: str, start: int, count: int) -> str:
    items = []
    for index in range(start, start + count):
        sides = "".join(
            f"<{tag}>{side}</{tag}>"
            for tag, side in zip(("xmin", "ymin", "xmax", "ymax"), box_for(index), strict=True)
        )
        items.append(
            f"<object><name>ship</name><pose>Unspecified</pose><bndbox>{sides}</bndbox>"
            f"<description>object number {index}</description></object>"
        )
    return (
        f"<annotation><filename>{name}.jpg</filename><size><width>{SIDE}</width>"
        f"<height>{SIDE}</height><depth>3</depth></size>{''.join(items)}</annotation>"
    )


def child(*arguments: str | Path) -> dict:
    """Convert or check in a child process and return its figures."""
    finished = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, arguments)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(finished.stdout)


def convert_and_kill(root: Path, output: Path, after_bytes: int) -> int:
    """Kill a conversion when it has written so much; return how much it had."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, "prepare", str(root), str(output)], stdout=subprocess.DEVNULL
    )
    while process.poll() is None:
        written = sum(path.stat().st_size for path in output.parent.glob(".*.partial/data/*"))
        if written >= after_bytes:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return written
        time.sleep(0.002)
    raise SystemExit("the conversion ended before it could be killed")


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def differences(output: Path, splits: dict[str, list[int]]) -> list[str]:
    """Compare the rows with what was built, by other means than the converter's."""
    found = []
    for split, indices in splits.items():
        table = pq.read_table(
            output / "data" / f"{split}-00000-of-00001.parquet",
            columns=["id", "expression", "bbox"],
        ).to_pydict()
        if table["id"] != [str(index) for index in indices]:
            found.append(f"{split}: ids differ")
        if table["expression"] != [f"object number {index}" for index in indices]:
            found.append(f"{split}: expressions differ")
        if table["bbox"] != [box_for(index) for index in indices]:
            found.append(f"{split}: boxes differ")
    return found


def run(folder: Path, options: argparse.Namespace) -> list[str]:
    """Do the five steps and return what was not as it should be."""
    root, output = folder / "DIOR_RSVG", folder / "once" / "rsvg"
    start = time.monotonic()
    splits = build(root, options.objects, options.picture_kb, options.seed)
    print(f"built {options.objects:,} objects in {time.monotonic() - start:.1f} s", flush=True)

    figures = child("prepare", root, output)
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    print(
        f"converted in {figures['seconds']:.1f} s, peak memory {figures['peak_mb']:.0f} MB, "
        f"{size / 1e6:.1f} MB on disk; {figures['release']}; {figures['splits']}",
        flush=True,
    )
    found = differences(output, splits)
    if figures["peak_mb"] > MEMORY_LIMIT_MB:
        found.append(f"peak memory is over {MEMORY_LIMIT_MB} MB")
    if figures["splits"] != counts_for(options.objects):
        found.append(f"counts are {figures['splits']}")
    if options.objects == FULL_OBJECTS and figures["release"] != "2023 split":
        found.append(f"the release was named {figures['release']}")

    checked = child("check", output)
    print(f"checked in {checked['seconds']:.1f} s, peak memory {checked['peak_mb']:.0f} MB")
    found += checked["problems"]
    if checked["peak_mb"] > MEMORY_LIMIT_MB:
        found.append(f"peak memory of the check is over {MEMORY_LIMIT_MB} MB")

    again = folder / "again" / "rsvg"
    again.parent.mkdir()
    written = convert_and_kill(root, again, size // 2)
    if again.exists():
        found.append("a killed conversion left a finished folder")
    print(f"killed after {written / 1e6:.1f} of {size / 1e6:.1f} MB", flush=True)
    child("prepare", root, again)
    same = digests(again) == digests(output)
    print(f"started again: {'the same bytes' if same else 'OTHER BYTES'}")
    if not same:
        found.append("the bytes after a kill and a restart differ")
    leftovers = [path.name for path in again.parent.glob(".*") if not path.name.endswith(".lock")]
    if leftovers:
        found.append(f"left behind: {leftovers}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--objects",
        type=int,
        default=FULL_OBJECTS,
        help="how many objects; split counts are official only at the default, %(default)s",
    )
    parser.add_argument(
        "--picture-kb",
        type=int,
        default=0,
        help="pad each picture to so many kB (the released ones have about 200); "
        "full size then takes about 12 GB of disk",
    )
    parser.add_argument("--seed", type=int, default=0, help="another tree (default %(default)s)")
    parser.add_argument("--folder", type=Path, help="where to work (default: the system's)")
    options = parser.parse_args()
    if options.objects < 50:
        parser.error("--objects: at least 50, so that every split has some")
    folder = Path(tempfile.mkdtemp(prefix="synthetic-rsvg-", dir=options.folder))
    try:
        found = run(folder, options)
    finally:
        shutil.rmtree(folder)
    for sentence in found:
        print(f"WRONG: {sentence}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
