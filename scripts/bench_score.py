"""Score many masks with the command ``score``, and measure time and memory."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_masks import Rle, blobs, parser_of, peak_memory
from tqdm import tqdm

from lmms_eval_grounding import cli

HELP = """\
Each line of the table is one run of `lmms-eval-grounding score gres` in a process of its own, with
targets and predictions as compressed COCO RLE in JSONL files, the predictions in another order than
the targets, and 1,000 bootstrap resamples: everything is read, validated, compared and reported.
A third of the samples has no target; the predictions are those of bench_masks.py.

  at size    the number of samples asked for, at the size asked for
  half       half as many samples: what a sample costs in memory
  large      half as many samples, masks of twice the height and width
  decoding   what decoding the masks of `at size` to arrays alone takes, with pycocotools: no
             reading, no checks, no records, no bootstrap

Memory that grows with the number of samples is their records and the places of the predictions in
the file; `large` against `half` shows that masks are not kept.
"""


def main() -> int:
    arguments = parsed_arguments()
    if arguments.run:
        return scored(arguments.run, arguments.decode)
    samples, height, width = arguments.samples, arguments.height, arguments.width
    print(f"{'':9} {'samples':>8} {'size':>11} {'files, MB':>10} {'seconds':>8} {'peak, MB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name, count, scale in (("at size", samples, 1), ("half", samples // 2, 1),
                                   ("large", samples // 2, 2)):  # fmt: skip
            files = Path(folder) / name.replace(" ", "_")
            files.mkdir()
            write_samples(files, count, scale * height, scale * width, arguments.seed)
            tell(name, count, scale * height, scale * width, files)
            if name == "at size":
                tell("decoding", count, height, width, files, "--decode")
    return 0


def parsed_arguments() -> argparse.Namespace:
    parser = parser_of(__doc__, HELP, samples=20_000)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--decode", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def write_samples(folder: Path, count: int, height: int, width: int, seed: int) -> None:
    """Write targets and, shuffled, predictions."""
    generator = np.random.default_rng(seed)
    predictions = []
    with (folder / "targets.jsonl").open("w") as targets:
        for number in tqdm(range(count), desc="Drawing", leave=False, disable=None):
            pred, target = blobs(generator, height, width)
            has_target = number % 3 > 0
            doc: dict[str, object] = {"id": str(number), "expression": "the blobs"}
            doc |= {"target": target if has_target else None, "width": width, "height": height}
            targets.write(json.dumps(doc) + "\n")
            given: Rle | None = pred if has_target or number % 2 else None
            predictions.append(json.dumps({"id": str(number), "mask": given}) + "\n")
    random.Random(seed).shuffle(predictions)
    (folder / "predictions.jsonl").write_text("".join(predictions))


def tell(name: str, count: int, height: int, width: int, files: Path, *options: str) -> None:
    """Print how long a process takes, start and end included, and its peak memory."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--run", str(files), *options],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    seconds = time.perf_counter() - start
    size = sum(file.stat().st_size for file in files.iterdir())
    peak = int(done.stdout.splitlines()[-1])
    print(
        f"{name:9} {count:8,} {f'{height} x {width}':>11} {size / 1e6:10.1f} "
        f"{seconds:8.1f} {peak / 1e6:9.1f}",
        flush=True,
    )


def scored(files: Path, only_decode: bool) -> int:
    """Do the work of one line of the table in this process, and print its peak memory."""
    if only_decode:
        decode(files)
        fault = 0
    else:
        names = ("predictions", "targets")
        inputs = [part for n in names for part in (f"--{n}", str(files / f"{n}.jsonl"))]
        fault = cli.main(["score", "gres", *inputs])
    print(peak_memory())
    return fault


def decode(files: Path) -> None:
    from pycocotools import mask as coco_mask  # noqa: PLC0415 - for this line alone

    for name, column in (("targets", "target"), ("predictions", "mask")):
        with (files / f"{name}.jsonl").open() as lines:
            for line in lines:
                mask = json.loads(line)[column]
                if mask:
                    coco_mask.decode(mask)


if __name__ == "__main__":
    sys.exit(main())
