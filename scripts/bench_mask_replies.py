"""Parse and score replies with masks, and score the same masks from dense arrays, side by side."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from bench_masks import counts_of_arrays, mask_pairs, parser_of
from pycocotools import mask as coco_mask
from tqdm import tqdm

from lmms_eval_grounding.benchmarks import gres as task
from lmms_eval_grounding.geometry.masks import Rle, intersection_and_union
from lmms_eval_grounding.metrics import gres
from lmms_eval_grounding.parsing.masks import parse_mask
from lmms_eval_grounding.parsing.profile import Profile, load_profile
from lmms_eval_grounding.writing.masks import write_mask

HELP = """\
Every way starts from the same replies (JSON with a compressed COCO RLE, as --model sam3 writes)
and the same targets, and ends with the pixels of intersection and union; the script fails when
they differ.

  dense   json.loads, both masks decoded by pycocotools, logical_and, logical_or and two sums: what
          the evaluators of GRES (ReLA) and RRSIS (RMSIN) do once they hold arrays; nothing in the
          reply is checked
  runs    the counting alone, from run lengths: both are read strictly, no reply is parsed
  parse   parse_mask alone: the final answer is found, JSON read, run lengths checked
  scored  parse_mask, and the record of metrics.gres
  task    benchmarks.gres.score, as a run of the task does it: also the contract checks and the
          reading for the log

Then the same masks are written in other syntaxes, and parsed and scored. Rates are of CPU time and
depend on the machine; the ratios, taken in turns within one run, much less so.
"""

Counts = tuple[int, int]
SAM3 = load_profile("sam3")
OTHERS = ("prompt", "polygon_pixel", "florence2", "polyformer", "gemini", "text4seg_24", "qwen3_vl")


class Sample:
    """A reply with a predicted mask, and the target in the form of a document."""

    def __init__(self, number: int, pred: Rle, target: Rle, reply: str) -> None:
        self.pred, self.target, self.reply = pred, target, reply
        height, width = target["size"]
        self.size = width, height
        self.doc = {
            **{"id": str(number), "expression": "the blobs", "width": width, "height": height},
            **{"target": target},
        }


def dense(sample: Sample) -> Counts:
    pred = json.loads(sample.reply)["masks"][0]
    return counts_of_arrays(coco_mask.decode(pred), coco_mask.decode(sample.target))


def runs(sample: Sample) -> Counts:
    return intersection_and_union(sample.pred, sample.target)


def parse(sample: Sample) -> Counts:
    parsed = parse_mask(sample.reply, SAM3, *sample.size)
    return (0, 0) if parsed.mask is None else (1, 1)


def scored(sample: Sample, profile: Profile = SAM3) -> Counts:
    parsed = parse_mask(sample.reply, profile, *sample.size)
    return counts(gres.sample_record("0", parsed.status, parsed.mask, sample.target))


def whole_task(sample: Sample) -> Counts:
    record, _ = task.score(sample.doc, sample.reply, SAM3)
    return counts(record)


def counts(record: dict[str, Any]) -> Counts:
    return record["intersection"], record["union"]


WAYS: dict[str, Callable[[Sample], Counts]] = {
    "dense": dense,
    "runs": runs,
    "parse": parse,
    "scored": scored,
    "task": whole_task,
}


def main() -> int:
    parser = parser_of(__doc__, HELP, pairs=2_000)
    parser.add_argument(
        "--rounds", type=int, default=3, help="the ways take turns; default %(default)s"
    )
    options = parser.parse_args()
    pairs = mask_pairs(options.pairs, options.height, options.width, options.seed)
    samples = [
        Sample(number, pred, target, written(pred, SAM3))
        for number, (pred, target) in enumerate(pairs)
    ]
    length = statistics.mean(len(sample.reply) for sample in samples)
    print(f"{len(samples)} replies of {length:.0f} characters on average, masks of "
          f"{options.height} x {options.width}\n")  # fmt: skip
    if not compare(samples, options.rounds):
        print("\nThe ways do not agree on the pixel counts.", file=sys.stderr)
        return 1
    print("\nother syntaxes, parsed and scored")
    for name in OTHERS:
        other_syntax(name, samples[:: max(len(samples) // 200, 1)])
    return 0


def written(mask: Rle, profile: Profile) -> str:
    height, width = mask["size"]
    return write_mask(mask, profile, width, height, "the blobs")


def compare(samples: list[Sample], rounds: int) -> bool:
    """Print replies per second of each way, and say whether all gave the same counts."""
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    results: dict[str, list[Counts]] = {}
    with tqdm(total=rounds * len(WAYS), unit="turn", disable=None, leave=False) as bar:
        for _ in range(rounds):
            for name, way in WAYS.items():
                start = time.process_time()
                results[name] = [way(sample) for sample in samples]
                seconds[name].append(time.process_time() - start)
                bar.update()
    print("way      replies a second   times dense   (median of the rounds; best in brackets)")
    for name, taken in seconds.items():
        rate, best = len(samples) / statistics.median(taken), len(samples) / min(taken)
        # Ratios within a round: what slows the machine down then slows both.
        ratio = statistics.median(
            slow / fast for slow, fast in zip(seconds["dense"], taken, strict=True)
        )
        print(f"{name:8} {rate:16,.0f}   {ratio:11.1f}   ({best:,.0f})")
    return all(results[name] == results["dense"] for name in ("runs", "scored", "task"))


def other_syntax(name: str, samples: list[Sample]) -> None:
    profile = load_profile(name)
    replies = [written(sample.pred, profile) for sample in samples]
    again = [
        Sample(number, sample.pred, sample.target, reply)
        for number, (sample, reply) in enumerate(zip(samples, replies, strict=True))
    ]
    start = time.process_time()
    for sample in again:
        scored(sample, profile)
    rate = len(again) / (time.process_time() - start)
    length = np.mean([len(reply) for reply in replies])
    print(f"{name:14} {rate:10,.0f} replies a second, of {length:8,.0f} characters on average")


if __name__ == "__main__":
    sys.exit(main())
