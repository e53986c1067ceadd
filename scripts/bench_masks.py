"""Score pairs of masks from their run-length encodings and from dense arrays, side by side."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pycocotools import mask as coco_mask

from lmms_eval_grounding.geometry import masks
from lmms_eval_grounding.geometry.masks import Rle

HELP = """\
Both ways start from the same compressed COCO RLE strings and end with the same two integers a
pair, the pixels of intersection and union; the script fails when they differ.

  dense     decodes both masks with pycocotools, then logical_and, logical_or and two sums: what
            the evaluators of GRES (ReLA) and RRSIS (RMSIN) do once they hold arrays
  rle       geometry.masks.intersection_and_union: reads both encodings strictly, every run
            checked, and counts on the runs; nothing is kept from one pair to the next
  reply     the same after geometry.masks.rle_from_coco of the prediction, as when it comes from
            a reply: the prediction is checked twice and brought into canonical form
  trusting  pycocotools' own merge and area, which check nothing: what the checks cost

The masks are made up: each target is a few blobs, its prediction the same blobs moved and
reshaped. The rates depend on the machine; the ratios, taken in turns within one run, much less so.

Memory is measured in processes of their own, one for each way and number of samples. The dense
one keeps its arrays until all samples are there, as the official GRES evaluator does.
"""

Pair = tuple[Rle, Rle]
Counts = tuple[int, int]


def main() -> int:
    arguments = parsed_arguments()
    pairs = mask_pairs(arguments.pairs, arguments.height, arguments.width, arguments.seed)
    if arguments.peak_of:
        before = peak_memory()
        PEAK_OF[arguments.peak_of](pairs)
        print(before, peak_memory())
        return 0
    lengths = [len(rle["counts"]) for pair in pairs for rle in pair]
    print(
        f"{len(pairs)} pairs of {arguments.height} x {arguments.width} masks, "
        f"counts of {statistics.mean(lengths):.0f} bytes on average "
        f"({min(lengths)} to {max(lengths)})\n"
    )
    if not compare_speed(pairs, arguments.rounds):
        print("\nThe ways do not agree on the pixel counts.", file=sys.stderr)
        return 1
    if not arguments.no_memory:
        compare_memory(arguments)
    return 0


def parsed_arguments() -> argparse.Namespace:
    parser = parser_of(__doc__, HELP, pairs=2_000)
    parser.add_argument(
        "--rounds", type=int, default=5, help="the ways take turns; default %(default)s"
    )
    parser.add_argument("--no-memory", action="store_true", help="leave memory out")
    parser.add_argument("--peak-of", choices=["dense", "rle"], help=argparse.SUPPRESS)
    return parser.parse_args()


def parser_of(description: str | None, epilog: str, **count: int) -> argparse.ArgumentParser:
    """Return a parser that takes how many masks are made up, of what size, with which seed."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sizes = {**count, "height": 480, "width": 640}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the masks; default %(default)s")
    return parser


def mask_pairs(count: int, height: int, width: int, seed: int) -> list[Pair]:
    """Return made-up predictions and targets, drawn and encoded by pycocotools alone."""
    rng = np.random.default_rng(seed)
    return [blobs(rng, height, width) for _ in range(count)]


def blobs(rng: np.random.Generator, height: int, width: int) -> Pair:
    """Return a few wobbly blobs, and the same again moved and reshaped a little."""
    pred, target = [], []
    around = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    for _ in range(rng.integers(2, 6)):
        centre = rng.uniform((0, 0), (width, height))
        radius = rng.uniform(0.03, 0.13) * (height + width) / 2
        phases = rng.uniform(0, 2 * np.pi, 3)
        for outlines, shift in ((pred, 0.0), (target, 0.1)):
            moved = centre + rng.normal(0, shift * radius + 1e-9, 2)
            wobble = sum(
                np.sin(k * around + phase + rng.normal(0, shift))
                for k, phase in zip((3, 7, 13), phases, strict=True)
            )
            reach = radius * (1 + 0.1 * wobble)
            points = moved + reach[:, None] * np.stack((np.cos(around), np.sin(around)), axis=1)
            outlines.append(np.clip(points, 0, (width, height)).ravel().tolist())
    return encoded(pred, height, width), encoded(target, height, width)


def encoded(outlines: list[list[float]], height: int, width: int) -> Rle:
    rle = coco_mask.merge(coco_mask.frPyObjects(outlines, height, width))
    return {"size": [height, width], "counts": rle["counts"].decode("ascii")}


def counts_of_arrays(pred: np.ndarray, target: np.ndarray) -> Counts:
    intersection, union = np.logical_and(pred, target), np.logical_or(pred, target)
    return int(intersection.sum()), int(union.sum())


def dense(pair: Pair) -> Counts:
    return counts_of_arrays(coco_mask.decode(pair[0]), coco_mask.decode(pair[1]))


def rle(pair: Pair) -> Counts:
    return masks.intersection_and_union(*pair)


def reply(pair: Pair) -> Counts:
    pred, target = pair
    return masks.intersection_and_union(masks.rle_from_coco(pred, target["size"]), target)


def trusting(pair: Pair) -> Counts:
    both = list(pair)
    intersection = int(coco_mask.area(coco_mask.merge(both, intersect=True)))
    return intersection, int(coco_mask.area(both).sum(dtype=np.int64)) - intersection


WAYS: dict[str, Callable[[Pair], Counts]] = {
    "dense": dense,
    "rle": rle,
    "reply": reply,
    "trusting": trusting,
}


def compare_speed(pairs: list[Pair], rounds: int) -> bool:
    """Print pairs per second of each way, and say whether all gave the same counts."""
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    results: dict[str, list[Counts]] = {}
    for _ in range(rounds):
        for name, score in WAYS.items():
            start = time.perf_counter()
            results[name] = [score(pair) for pair in pairs]
            seconds[name].append(time.perf_counter() - start)
    print("way        pairs a second   times dense   (median of the rounds; best in brackets)")
    for name, taken in seconds.items():
        rate, best = len(pairs) / statistics.median(taken), len(pairs) / min(taken)
        # Ratios within a round: what slows the machine down then slows both.
        ratio = statistics.median(
            slow / fast for slow, fast in zip(seconds["dense"], taken, strict=True)
        )
        print(f"{name:9}  {rate:14,.0f}   {ratio:11.1f}   ({best:,.0f})")
    return all(result == results["dense"] for result in results.values())


def total_of_dense(pairs: list[Pair]) -> Counts:
    held = [(coco_mask.decode(pred), coco_mask.decode(target)) for pred, target in pairs]
    return totals([counts_of_arrays(*arrays) for arrays in held])


def total_of_rle(pairs: list[Pair]) -> Counts:
    return totals([masks.intersection_and_union(*pair) for pair in pairs])


def totals(counts: list[Counts]) -> Counts:
    return sum(count[0] for count in counts), sum(count[1] for count in counts)


PEAK_OF = {"dense": total_of_dense, "rle": total_of_rle}


def compare_memory(arguments: argparse.Namespace) -> None:
    """Print how far scoring raises the peak memory of a process, by the number of samples."""
    print("\npeak memory that scoring adds, in MB")
    numbers = [arguments.pairs // 4, arguments.pairs // 2, arguments.pairs]
    print("way      " + "".join(f"{number:>9,} samples" for number in numbers) + "   a sample")
    for name in PEAK_OF:
        added = [peak_added(name, number, arguments) for number in numbers]
        slope = (added[-1] - added[0]) / max(numbers[-1] - numbers[0], 1)
        cells = "".join(f"{amount / 1e6:17,.1f}" for amount in added)
        print(f"{name:9}{cells}   {slope / 1e3:,.1f} kB")


def peak_added(name: str, pairs: int, arguments: argparse.Namespace) -> int:
    """Return the bytes by which a fresh process grows while it scores."""
    command = [sys.executable, __file__, "--peak-of", name, "--pairs", str(pairs)]
    for option in ("height", "width", "seed"):
        command += [f"--{option}", str(getattr(arguments, option))]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    before, after = map(int, output.split())
    return after - before


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource  # noqa: PLC0415 - not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    sys.exit(main())
