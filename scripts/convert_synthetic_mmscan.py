"""Convert a synthetic MMScan of full size, and check what comes out.

The tree has the official layout and the official counts: 217,002 val samples (after 848,867 train
samples in the same JSON file, as released) over 4,000 scans, which is more than val has, with 170
frames each, the average of EmbodiedScan. Frames are tiny and share their bytes by hard links. Some
samples are faulty in the ways the real ones are, and it is known of each why it must be left out.

Six things happen:

  1. the tree is built,
  2. a child process converts it, and its time and peak memory are printed,
  3. rows, boxes, poses and counts by reason are compared with what was built,
  4. a second child checks the folder, and must find nothing,
  5. a third converts it again into another folder and is killed half-way,
  6. the conversion is started again there; the bytes of all files must equal those of step 2.

    python scripts/convert_synthetic_mmscan.py                       # full size, about ten minutes
    python scripts/convert_synthetic_mmscan.py --samples 3000 --scans 40 --train-samples 0  # quick
    python scripts/convert_synthetic_mmscan.py --no-frames           # without image files

Everything lies in a temporary folder (about 4 GB at full size), which is removed at the end. Ends
with code 1 when anything is not as it should be.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

T = TypeVar("T")

FULL_SAMPLES, FULL_TRAIN, FULL_SCANS, FRAMES_PER_SCAN = 217_002, 848_867, 4_000, 170
OBJECTS = 30
MEMORY_LIMIT_MB = 4000
SUB_CLASSES = (
    "VG_Single_Attribute_Unique",
    "VG_Single_Attribute_Common",
    "VG_Single_EQ",
    "VG_Single_Space",
    "VG_Inter_Attribute_OO",
    "VG_Inter_Space_OO",
    "VG_Inter_OR",
)
CATEGORIES = ("chair", "table", "lamp", "door", "object")
# One in a hundred samples is faulty, in turn by one of these, whose reasons the converter words.
FAULTS = {
    "none": "samples without a target",
    "count": "samples with another number of target names than of target ids",
    "scan": "samples of a scan that the annotations lack",
    "target": "samples with a target that is not in the scan",
    "anchor": "samples with an anchor that is not in the scan",
    "distractor": "samples with a distractor that is not in the scan",
    "flat": "samples with a target whose box is not finite or has no volume",
}
FLAT_OBJECT = 1  # in every scan, the id of an object without height

# Its own process, so that its peak memory is of the conversion (or the check) alone.
CHILD = """
import json, resource, sys, time
from lmms_eval_grounding.data.mmscan import check, prepare
start = time.monotonic()
if sys.argv[1] == "check":
    figures = {"problems": check(sys.argv[2])}
else:
    manifest = prepare(sys.argv[2], sys.argv[3], progress=False, look_for_frames=sys.argv[4] == "1")
    figures = {"rows": manifest.splits["val"], "left_out": manifest.left_out_counts["val"]}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
unit = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss: bytes there, kilobytes elsewhere
print(json.dumps({**figures, "seconds": time.monotonic() - start, "peak_mb": peak / unit}))
"""


def scan_id(number: int) -> str:
    """Return the name of a scan; every third is of Matterport3D, with a camera per image."""
    return f"matterport3d/house{number:04}/region0" if number % 3 == 0 else f"scannet/s{number:04}"


def object_ids(number: int) -> list[int]:
    """Return ids that are neither positions nor in order."""
    ids = [FLAT_OBJECT, *(7 * k + 3 + number % 5 for k in range(OBJECTS - 1))]
    random.Random(number).shuffle(ids)
    return ids


def box_of(number: int, object_id: int) -> list[float]:
    """Return the box of an object, which depends on scan and id."""
    x = (number * 31 + object_id * 17) % 97 / 10
    flat = object_id == FLAT_OBJECT
    return [x, -x / 2, 0.5 + x / 8, 0.4 + x / 9, 0.7, 0.0 if flat else 0.9, x / 3 - 1.5, 0.1, -0.2]


def rigid(angles: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return turns about z, x and y in that order, with shifts: (n, 3), (n, 3) -> (n, 4, 4)."""
    matrices = np.zeros((len(angles), 4, 4))
    matrices[:] = np.eye(4)
    for column, (u, v) in zip(range(3), ((0, 1), (1, 2), (2, 0)), strict=True):
        turn = np.zeros((len(angles), 4, 4))
        turn[:] = np.eye(4)
        turn[:, u, u] = turn[:, v, v] = np.cos(angles[:, column])
        turn[:, v, u] = np.sin(angles[:, column])
        turn[:, u, v] = -turn[:, v, u]
        matrices = matrices @ turn
    matrices[:, :3, 3] = shifts
    return matrices


def poses_of(number: int, frames: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the axis_align_matrix of a scan, (4, 4), and cam2global of its frames, (n, 4, 4)."""
    chance = np.random.default_rng([seed, number])
    align = rigid(chance.uniform(-0.5, 0.5, (1, 3)), chance.uniform(-3, 3, (1, 3)))[0]
    return align, rigid(chance.uniform(-3, 3, (frames, 3)), chance.uniform(-4, 4, (frames, 3)))


def entry_of(number: int, frames: int, seed: int) -> dict:
    """Return a scan as the pickle has it."""
    align, poses = poses_of(number, frames, seed)
    camera = np.array([[500.0 + number, 0, 320, 0], [0, 510, 240, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    name = scan_id(number)
    images = []
    for frame in range(frames):
        images.append(
            {
                "img_path": f"{name}/{frame:05}.jpg",
                "depth_path": f"{name}/{frame:05}.png",
                "cam2global": poses[frame].copy(),
                "visible_instance_ids": np.arange(frame % OBJECTS),
            }
        )
        if number % 3 == 0:
            images[-1]["cam2img"] = camera
    instances = [
        {
            "bbox_3d": box_of(number, object_id),
            "bbox_label_3d": object_id % len(CATEGORIES) + 1,
            "bbox_id": object_id,
        }
        for object_id in object_ids(number)
    ]
    shared = {} if number % 3 == 0 else {"cam2img": camera, "depth_cam2img": camera}
    return {
        "sample_idx": name,
        "axis_align_matrix": align,
        "images": images,
        "instances": instances,
        **shared,
    }


def fault_of(index: int) -> str:
    """Return how a sample is faulty, or an empty text."""
    return list(FAULTS)[index // 100 % len(FAULTS)] if index % 100 == 50 else ""


def sample_of(index: int, scans: int) -> dict:
    """Return a val sample; scans come in no order."""
    number = index * 7919 % scans
    ids = [object_id for object_id in object_ids(number) if object_id != FLAT_OBJECT]
    targets = [ids[(index + k) % len(ids)] for k in range(1 + index % 4)]
    sub_class = SUB_CLASSES[index % len(SUB_CLASSES)]
    fault = fault_of(index)
    if fault == "target":
        targets = [*targets, 9999]
    if fault == "flat":
        targets = [*targets, FLAT_OBJECT]
    if fault == "none":
        targets = []
    return {
        "sub_class": sub_class,
        "scan_id": "scannet/unknown" if fault == "scan" else scan_id(number),
        "target_id": targets,
        "distractor_ids": [9999 if fault == "distractor" else ids[-1]],
        "text": f"Find the thing number {index} that is placed next to the table by the window. ",
        "target": ["chair"] * (len(targets) + (fault == "count")),
        "anchors": ["table"],
        "anchor_ids": [9999 if fault == "anchor" else ids[-2]],
        "tokens_positive": {str(object_id): [[9, 14]] for object_id in targets},
        "ID": f"{sub_class}__{scan_id(number)}__{index}",
    }


def train_sample(index: int) -> dict:
    return {**sample_of(index, FULL_SCANS), "ID": f"train__{index}"}


def json_list(items: Iterator[dict]) -> Iterator[str]:
    for place, item in enumerate(items):
        yield (",\n" if place else "") + json.dumps(item)


def build(root: Path, options: argparse.Namespace) -> None:
    """Write the tree."""
    samples = root / "MMScan-beta-release" / "MMScan_samples" / "MMScan_VG.json"
    scans = root / "embodiedscan_split" / "embodiedscan-v1" / "embodiedscan_infos_val.pkl"
    frames = root / "embodiedscan_split" / "data"
    for folder in (samples.parent, scans.parent, frames):
        folder.mkdir(parents=True)
    with samples.open("w", encoding="utf-8") as file:
        file.write('{"train": [')
        file.writelines(json_list(map(train_sample, range(options.train_samples))))
        file.write('],\n"val": [')
        val = (sample_of(index, options.scans) for index in range(options.samples))
        file.writelines(json_list(val))
        file.write("]}")
    entries = [entry_of(n, options.frames_per_scan, options.seed) for n in range(options.scans)]
    labels = {name: label for label, name in enumerate(CATEGORIES, start=1)}
    with scans.open("wb") as file:
        pickle.dump({"metainfo": {"categories": labels}, "data_list": entries}, file, protocol=4)
    if options.no_frames:
        return
    for number in range(options.scans):
        folder = frames / scan_id(number)
        folder.mkdir(parents=True)
        stream = io.BytesIO()
        Image.new("RGB", (16, 12), (number % 256, 90, 60)).save(stream, "JPEG")
        first = folder / "00000.jpg"
        first.write_bytes(stream.getvalue())
        for frame in range(1, options.frames_per_scan):
            os.link(first, folder / f"{frame:05}.jpg")


def aside(function: Callable[..., T], *arguments: object) -> T:
    """Run a function of this script in a process of its own.

    A child process starts with the peak memory of its parent at that moment, on Linux. So what
    needs memory does not happen here.
    """
    with ProcessPoolExecutor(max_workers=1) as process:
        return process.submit(function, *arguments).result()


def child(*arguments: str | Path) -> dict:
    """Convert or check in a child process and return its figures."""
    finished = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, arguments)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(finished.stdout)


def convert_and_kill(root: Path, output: Path, look: str, after_bytes: int) -> int:
    """Kill a conversion when it has written so much; return how much it had."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, "prepare", str(root), str(output), look],
        stdout=subprocess.DEVNULL,
    )
    while process.poll() is None:
        files = output.parent.glob(".*.partial/data/**/*")
        written = sum(path.stat().st_size for path in files if path.is_file())
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


def differences(output: Path, figures: dict, options: argparse.Namespace) -> list[str]:
    """Compare what was made with what was built, by other means than the converter's."""
    found = []
    faults = Counter(map(fault_of, range(options.samples)))
    sound = faults.pop("", 0)
    expected = {FAULTS[fault]: count for fault, count in faults.items()}
    counts = {reason: n for reason, n in figures["left_out"].items() if reason in FAULTS.values()}
    if figures["rows"] != sound or counts != expected:
        found.append(f"made {figures['rows']:,} rows, left out {counts}, not {sound:,}, {expected}")
    rows = pq.read_table(output / "data" / "val-00000-of-00001.parquet").to_pydict()
    if rows["index"] != [index for index in range(options.samples) if not fault_of(index)]:
        found.append("other samples than the sound ones")
    for place, index in enumerate(rows["index"]):
        sample, number = sample_of(index, options.scans), index * 7919 % options.scans
        boxes = [box_of(number, object_id) for object_id in sample["target_id"]]
        if rows["targets"][place] != boxes or rows["expression"][place] != sample["text"]:
            found.append(f"row {place} is not sample {index}")
            break
    used = {index * 7919 % options.scans for index in rows["index"]}
    scans = pq.ParquetFile(output / "data" / "scans" / "val.parquet")
    if scans.num_row_groups != len(used):
        found.append(f"{scans.num_row_groups} scans, not {len(used)}")
    for place in range(0, scans.num_row_groups, 1 + scans.num_row_groups // 200):
        (row,) = scans.read_row_group(place).to_pylist()
        number = next(n for n in sorted(used) if scan_id(n) == row["scan_id"])
        align, poses = poses_of(number, options.frames_per_scan, options.seed)
        aligned = np.einsum("ij,njk->nik", align, poses)
        if not np.allclose(np.reshape(row["poses"], (-1, 4, 4)), aligned, rtol=0, atol=1e-12):
            found.append(f"the poses of {row['scan_id']} are not in the aligned frame")
        ids = [object_id for object_id in object_ids(number) if object_id != FLAT_OBJECT]
        if row["object_ids"] != ids:
            found.append(f"the objects of {row['scan_id']} are others")
    return found


def run(folder: Path, options: argparse.Namespace) -> list[str]:
    """Do the six steps and return what was not as it should be."""
    root, output = folder / "mmscan_data", folder / "once" / "mmscan"
    look = "0" if options.no_frames else "1"
    start = time.monotonic()
    aside(build, root, options)
    print(
        f"built {options.samples:,} val and {options.train_samples:,} train samples, "
        f"{options.scans:,} scans of {options.frames_per_scan} frames in "
        f"{time.monotonic() - start:.1f} s",
        flush=True,
    )
    figures = child("prepare", root, output, look)
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    print(
        f"converted in {figures['seconds']:.1f} s, peak memory {figures['peak_mb']:.0f} MB, "
        f"{size / 1e6:.1f} MB on disk: {figures['rows']:,} rows",
        flush=True,
    )
    for reason, count in figures["left_out"].items():
        print(f"  left out: {count:,} {reason}")
    found = aside(differences, output, figures, options)
    if figures["peak_mb"] > MEMORY_LIMIT_MB:
        found.append(f"peak memory is over {MEMORY_LIMIT_MB} MB")

    checked = child("check", output)
    print(
        f"checked in {checked['seconds']:.1f} s, peak memory {checked['peak_mb']:.0f} MB",
        flush=True,
    )
    found += checked["problems"]
    if checked["peak_mb"] > MEMORY_LIMIT_MB:
        found.append(f"peak memory of the check is over {MEMORY_LIMIT_MB} MB")

    again = folder / "again" / "mmscan"
    again.parent.mkdir()
    written = convert_and_kill(root, again, look, size // 2)
    if again.exists():
        found.append("a killed conversion left a finished folder")
    print(f"killed after {written / 1e6:.1f} of {size / 1e6:.1f} MB", flush=True)
    child("prepare", root, again, look)
    same = digests(again) == digests(output)
    print(f"started again: {'the same bytes' if same else 'OTHER BYTES'}")
    if not same:
        found.append("the bytes after a kill and a restart differ")
    leftovers = [path.name for path in again.parent.glob(".*") if not path.name.endswith(".lock")]
    if leftovers:
        found.append(f"left behind: {leftovers}")
    return found


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default, text in (
        ("samples", FULL_SAMPLES, "val samples, at least 1,000"),
        ("train-samples", FULL_TRAIN, "train samples in the same file, which are passed over"),
        ("scans", FULL_SCANS, "scans"),
        ("frames-per-scan", FRAMES_PER_SCAN, "frames of each scan"),
        ("seed", 0, "another set of poses"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"{text} (default %(default)s)"
        )
    parser.add_argument("--no-frames", action="store_true", help="make no image files")
    parser.add_argument("--folder", type=Path, help="where to work (default: the system's)")
    options = parser.parse_args(arguments)
    if options.samples < 1000 or min(options.scans, options.frames_per_scan) < 1:
        parser.error("at least 1,000 samples (so that every fault occurs), 1 scan and 1 frame")
    return options


def main() -> None:
    options = parse()
    folder = Path(tempfile.mkdtemp(prefix="synthetic-mmscan-", dir=options.folder))
    try:
        found = run(folder, options)
    finally:
        shutil.rmtree(folder)
    for sentence in found:
        print(f"WRONG: {sentence}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
