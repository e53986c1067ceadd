"""Read and score mutated replies with masks, and check what has to hold for any reply at all.

The replies start as those of the golden cases of parsers/masks and as what every profile writes;
seeded mutations (those of fuzz_boxes.py, and some for run lengths, maps and grids) then cut, splice
and soil them. Each is read with the profile it was meant for and with another one, on an image of
its own size and on one of another size, and scored as GRES and RefSegRS. For every reading it is
checked that

- nothing raises, and the result keeps the contract (spec/records/parsed_mask.json);
- the mask has the size of the image and is canonical: read again strictly, it is the same;
- a reply that is strict JSON with run lengths gives the pixels that a second, slow reader of run
  lengths finds in it, and nothing where that reader finds a fault in every mask;
- blanks around the reply change nothing, and the parser takes no target;
- a failed reply is no right rejection, and adds no pixel;

and for every thousand of them that the statuses add up to the number of samples, their rates to 1,
and that every metric stays in its range; at the end, that the peak memory of the process has not
grown by more than --memory MB. The same seed gives the same replies. The first failures are
printed with the reply as Python writes it, and make the exit code 1.

With --growth, hostile replies of growing length are read instead: the table shows the time per
character at the longest length over the one at an eighth of it (a linear parser stays near 1, a
quadratic one comes out at 8), and the memory that one call allocates at the longest length.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import random
import sys
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from bench_masks import peak_memory
from fuzz_boxes import LONGEST, CheckError, Seed, mutated
from tqdm import tqdm

from lmms_eval_grounding.contract import check
from lmms_eval_grounding.corpus import load_cases, reply_text
from lmms_eval_grounding.geometry.masks import (
    MAX_SIDE,
    Rle,
    area,
    array_from_rle,
    rle_from_array,
    rle_from_coco,
)
from lmms_eval_grounding.metrics import gres, refsegrs
from lmms_eval_grounding.metrics.samples import status_rate
from lmms_eval_grounding.parsing.masks import parse_mask
from lmms_eval_grounding.parsing.parsed import STATUSES, ParsedMask
from lmms_eval_grounding.parsing.profile import ProfileError, load_profile, profile_names
from lmms_eval_grounding.writing.masks import write_mask

SIZES = [(16, 16), (64, 48), (5, 4), (6, 4), (10, 5), (1, 1), (3, 700), (640, 480)]
BATCH = 1000  # samples whose metrics are checked together
METRICS = {
    "gIoU": (gres.mean_iou, 1),
    "cIoU": (gres.cumulative_iou, 1),
    "N-acc": (gres.no_target_accuracy, 100),
    "T-acc": (gres.target_accuracy, 100),
    "target-mIoU": (gres.target_mean_iou, 1),
}
PARTS = [
    *('"counts":', '"size": [4, 5]', '{"size": [4, 5], "counts": "92203"}', '"masks": [', "92203"),
    *('"polygons": [', '"mask":', '"scores": [0.5]', "[1, 1, 4, 1, 4, 3]", "[[1, 1], [4, 1]]"),
    *("data:image/png;base64,", "iVBORw0KGgoAAAANSUhEUgAA", "AAAA", "b'92203'", "\\\\", "\\", "`"),
    *("<seg>", "</seg>", "others *16\n", "| ", " *3", "*16", "<sep>", "<poly>", "<separator>"),
    *("<loc_3>", "<bin_1_2>", "<seg_4>", "<seg012>", "<start_of_mask>", "<MASK>", "[SEG]", "[REJ]"),
    *("1e308", "-1", "4294967296", "18446744073709551616", "NaN", "[]", "null", "<THINK>", "[["),
]  # fmt: skip


def seeds(rng: random.Random) -> list[Seed]:
    """Return the replies of the golden cases of masks, and masks written by every profile."""
    found = []
    for case in load_cases("parsers/masks"):
        given = case.input
        if max(given["width"], given["height"]) > MAX_SIDE:
            continue  # no target has that size
        reply = (reply_text(given["reply"]) or "")[:LONGEST]
        found.append(Seed(reply, given["profile"], given["width"], given["height"]))
    for name in profile_names("mask"):
        for width, height in SIZES[:2]:
            try:
                reply = write_mask(blob(rng, width, height), load_profile(name), width, height)
            except ProfileError:  # only a decoder makes its masks
                continue
            found.append(Seed(reply[:LONGEST], name, width, height))
    return found


def blob(rng: random.Random, width: int, height: int) -> Rle:
    """Return a disc, now and then with a hole, somewhere in an image."""
    y, x = np.mgrid[:height, :width]
    radius = rng.uniform(0.1, 0.7) * max(width, height)
    distance = np.hypot(x - rng.uniform(0, width), y - rng.uniform(0, height))
    hole = rng.choice((0, 0.5)) * radius
    return rle_from_array((distance < radius) & (distance >= hole))


def soiled(rng: random.Random, reply: str, other: str) -> str:
    """Return a reply with mutations of text, of single characters, and of masks."""
    if rng.random() < 0.3:
        at = rng.randint(0, len(reply))
        reply = reply[:at] + rng.choice(PARTS) + reply[at + rng.choice((0, 0, 1, 5)) :]
    if rng.random() < 0.3 and reply:  # a slip inside run lengths or base64
        at = rng.randrange(len(reply))
        reply = reply[:at] + chr(rng.randint(48, 111)) + reply[at + 1 :]
    return reply if rng.random() < 0.4 else mutated(rng, reply, other)


def check_reading(reply: str, parsed: ParsedMask, name: str, size: tuple[int, int]) -> None:
    """Raise `CheckError` unless a reading keeps the contract and is what the reply holds."""
    check(asdict(parsed), "records/parsed_mask.json")
    width, height = size
    if parsed.mask and rle_from_coco(parsed.mask, (height, width)) != parsed.mask:
        raise CheckError(f"not canonical: {parsed.mask}")
    profile = load_profile(name)
    if parse_mask(f" \n{reply}\n\t", profile, width, height) != parsed:
        raise CheckError("blanks around the reply change the reading")
    if profile.mask_convention().syntaxes[:1] == ("json_rle",) and ":" not in name:
        data = strict_json(reply)
        again = second_reading(data, height, width) if data is not None else None
        mask = array_from_rle(parsed.mask) if parsed.mask else None
        if data is not None and not np.array_equal(again, mask):
            raise CheckError(f"a second reader of run lengths sees another mask: {again}, {mask}")


def strict_json(reply: str) -> Any:
    """Return a list or an object, as a tuple of its pairs, of strict JSON; None for all else."""
    try:
        data = json.loads(reply.strip(), object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, (list, tuple)) else None


def second_reading(data: Any, height: int, width: int) -> np.ndarray | None:
    """Return the union of the sound run lengths in JSON; None if there are none. Slow."""
    pending = [data]
    total = None
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            counts = [item for key, item in value if key == "counts"]
            sizes = [item for key, item in value if key == "size"]
            if not counts:
                pending += [item for _, item in value]
            elif len(counts) == len(sizes) == 1 and is_size(sizes[0], height, width):
                runs = runs_of(counts[0])
                if runs and min(runs) >= 0 and sum(runs) == height * width:
                    values = [n % 2 == 1 for n, run in enumerate(runs) for _ in range(run)]
                    pixels = np.array(values).reshape(width, height).T
                    total = pixels if total is None else total | pixels
        elif isinstance(value, list):
            pending += value
    return total


def is_size(size: Any, height: int, width: int) -> bool:
    return size == [height, width] and all(type(side) is not bool for side in size)


def runs_of(counts: Any) -> list[int]:
    """Return the run lengths of counts, as maskApi.c of cocodataset/cocoapi reads them; or none."""
    if isinstance(counts, list):
        is_run = [type(run) in (int, float) and run == run // 1 for run in counts]
        return [int(run) for run in counts] if all(is_run) else []
    if not isinstance(counts, str) or not all("0" <= character <= "o" for character in counts):
        return []
    runs: list[int] = []
    number = shift = 0
    for character in counts:
        code = ord(character) - 48
        number |= (code & 31) << shift
        shift += 5
        if not code & 32:
            if code & 16:
                number -= 1 << shift
            runs.append(number + (runs[-2] if len(runs) > 2 else 0))
            number = shift = 0
    return [] if shift else runs


def check_sample(
    rng: random.Random, id: str, reply: str, name: str, size: tuple[int, int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the records of a reply for both benchmarks; see the module's text."""
    parsed = parse_mask(reply, load_profile(name), *size)
    check_reading(reply, parsed, name, size)
    target = blob(rng, *size) if rng.random() < 0.5 else None
    record = gres.sample_record(id, parsed.status, parsed.mask, target)
    failed = parsed.status in ("malformed", "unparseable")
    pixels = area(target) if target else 0
    if failed and (record["is_empty"] or record["intersection"] or record["union"] != pixels):
        raise CheckError(f"a failed reply scores {record}")
    if failed and gres.sample_iou(record):
        raise CheckError("a failed reply scores")
    whole = target or rle_from_array(np.zeros(size[::-1], bool))
    return record, refsegrs.sample_record(id, parsed.status, parsed.mask, whole)


def check_metrics(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Raise `CheckError` unless statuses add up and every metric stays in its range."""
    records = [record for record, _ in pairs]
    counts = Counter(record["status"] for record in records)
    if set(counts) - set(STATUSES) or sum(counts.values()) != len(records):
        raise CheckError(f"statuses {counts} of {len(records)} samples")
    rates = [status_rate(records, status) for status in STATUSES]
    if rates != [counts[status] / len(records) for status in STATUSES]:
        raise CheckError(f"rates {rates} of {counts}")
    if not math.isclose(math.fsum(rates), 1, abs_tol=1e-12):
        raise CheckError(f"rates {rates} do not add up to 1")
    values = {name: (metric(records), most) for name, (metric, most) in METRICS.items()}
    values["mIoU"] = refsegrs.mean_iou([record for _, record in pairs]), 1
    values["oIoU"] = refsegrs.overall_iou([record for _, record in pairs]), 1
    if not all(0 <= value <= most or math.isnan(value) for value, most in values.values()):
        raise CheckError(f"a metric leaves its range: {values}")


def check_parser_sees_no_target() -> None:
    """Raise `CheckError` if the parser could be told a target."""
    takes = list(inspect.signature(parse_mask).parameters)
    if takes != ["reply", "profile", "width", "height"]:
        raise CheckError(f"the parser takes {takes}")


def samples(seed: int, count: int) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield mutated replies, each with its own profile and size, then with others, in turns."""
    rng = random.Random(seed)
    start, names = seeds(rng), profile_names("mask")
    for _ in range(count):
        origin = rng.choice(start)
        reply = soiled(rng, origin.reply, rng.choice(start).reply)[:LONGEST]
        yield reply, origin.profile, (origin.width, origin.height)
        yield reply, rng.choice(names), rng.choice(SIZES)


def run(
    seed: int, count: int, most_failures: int = 1, memory: int = 300
) -> tuple[Counter[str], list[str]]:
    """Check ``count`` mutated replies; return what came out how often, and the failures."""
    check_parser_sees_no_target()
    rng, tally, failures = random.Random(seed), Counter[str](), []
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    before = peak_memory()
    bar = tqdm(total=2 * count, unit="reading", disable=None)
    for reply, name, size in samples(seed, count):
        try:
            pairs.append(check_sample(rng, str(len(pairs)), reply, name, size))
            tally[pairs[-1][0]["status"]] += 1
            if len(pairs) == BATCH:
                check_metrics(pairs)
                pairs.clear()
        except Exception as fault:
            told = "" if isinstance(fault, CheckError) else traceback.format_exc()
            failures.append(f"{fault!r}\n{told}profile {name}, size {size}, reply\n{reply!a}\n")
            if len(failures) == most_failures:
                break
        bar.update()
    bar.close()
    if pairs:
        check_metrics(pairs)
    grown = (peak_memory() - before) / 1e6
    if grown > memory:
        failures.append(f"the peak memory grew by {grown:.0f} MB\n")
    return tally, failures


# --- growth


class Family(NamedTuple):
    """Hostile replies of any length: ``before``, then ``unit`` again and again, then ``after``."""

    profile: str
    unit: str
    before: str = ""
    after: str = ""

    def reply(self, length: int) -> str:
        """Return the reply that comes nearest to a length without exceeding it."""
        room = length - len(self.before) - len(self.after)
        return self.before + self.unit * (room // len(self.unit)) + self.after


RLE = '{"size": [480, 640], "counts": "'
FAMILIES = {
    "open [": Family("rle", "["),
    "open {": Family("rle", "{"),
    'open {"a":': Family("rle", '{"a":'),
    "masks": Family("rle", RLE + 'PP\\\\9"},', "[", "]"),  # one run of 307,200 pixels
    "bad masks": Family("rle", RLE + '92203"},', "[", "]"),
    "masks without commas": Family("rle", RLE + '92203"}'),
    "counts of one character": Family("rle", "0", RLE, '"}'),
    "counts never closed": Family("rle", "0", RLE),
    "counts of escapes": Family("rle", "\\\\", RLE, '"}'),
    "runs in a list": Family("rle", "0, ", '{"size": [480, 640], "counts": [', "307200]}"),
    "numbers under a key": Family("rle", "1, ", '{"masks": [', "1]}"),
    "polygons": Family("prompt", "[1, 1, 9, 1, 9, 9], ", '{"polygons": [', "[]]}"),
    "one polygon of numbers": Family("prompt", "1, 9, ", '{"polygons": [', "1, 1]}"),
    "one polygon of pairs": Family("prompt", "[1, 9], ", '{"polygons": [', "[1, 1]]}"),
    "pairs never closed": Family("prompt", "[1, 9], ", '{"polygons": ['),
    "long outlines": Family("prompt", "1, 999, 999, 1, ", '{"polygons": [[', "1, 1]]}"),
    "bare polygons": Family("prompt", "[1, 1, 9, 1, 9, 9], ", "[", "[]]"),
    "single quotes": Family("prompt", "{'polygon': [1, 1, 9, 1, 9, 9]}, "),
    "maps without a PNG": Family("gemini", '{"box_2d": [0, 0, 9, 9], "mask": "AAAA"},', "[", "]"),
    "one map of A": Family("gemini", "AAAA", '{"box_2d": [0, 0, 9, 9], "mask": "', '"}'),
    "<seg>": Family("text4seg_16", "<seg>"),
    "<seg></seg>": Family("text4seg_16", "<seg></seg>"),
    "rows of a grid": Family("text4seg_16", "others *16\n", "<seg>", "</seg>"),
    "runs of a row": Family("text4seg_16", "a *1| ", "<seg>", "</seg>"),
    "stars": Family("text4seg_16", "*", "<seg>", "</seg>"),
    "stars and digits": Family("text4seg_16", "*1", "<seg>", "</seg>"),
    "a star and blanks": Family("text4seg_16", " ", "<seg>*", "1</seg>"),
    "location tokens": Family("florence2", "<loc_5><loc_9>"),
    "runs of location tokens": Family("florence2", "<loc_1><loc_1><loc_9><loc_1><loc_9><loc_9>;"),
    "pieces of tokens": Family("florence2", "<loc_5><loc"),
    "bins": Family("polyformer", "<bin_5_9> "),
    "separators": Family("polyformer", "<separator>", "<bin_1_1>"),
    "[SEG]": Family("lisa", "[SEG]"),
    "[REJ]": Family("gsva", "[REJ]"),
    "boxes": Family("qwen3_vl", '{"bbox_2d": [100, 100, 900, 900]},', "[", "]"),
    "<think>": Family("rle", "<think>"),
    "```": Family("rle", "```"),
}


def growth(longest: int, worst_ratio: float, most_bytes: int) -> bool:
    """Print how time and memory grow with each family, and say whether all stay in bounds."""
    print(f"{'reply':26} {'status':12} {'s/M char':>9} {'growth':>7} {'bytes/char':>11}")
    all_well = True
    for name, family in FAMILIES.items():
        profile = load_profile(family.profile)
        short, long_ = (seconds_a_character(family, n) for n in (longest // 8, longest))
        reply = family.reply(longest)
        tracemalloc.start()
        parsed = parse_mask(reply, profile, 640, 480)
        peak = tracemalloc.get_traced_memory()[1] / len(reply)
        tracemalloc.stop()
        bad = long_ / short > worst_ratio or peak > most_bytes
        all_well &= not bad
        print(
            f"{name:26} {parsed.reason or parsed.status:12} {long_ * 1e6:9.2f} "
            f"{long_ / short:7.2f} {peak:11.0f} {'!' if bad else ''}"
        )
    reply = FAMILIES["polygons"].reply(20_000_000)
    start = time.process_time()
    parsed = parse_mask(reply, load_profile("prompt"), 640, 480)
    print(f"{len(reply):,} characters: {parsed.reason} in {time.process_time() - start:.3f} s")
    return all_well and parsed.reason == "too_long"


def seconds_a_character(family: Family, length: int) -> float:
    """Return the CPU time that reading a reply takes, the better of two, by its length."""
    reply, profile = family.reply(length), load_profile(family.profile)
    best = math.inf
    for _ in range(2):
        start = time.process_time_ns()
        parse_mask(reply, profile, 640, 480)
        best = min(best, time.process_time_ns() - start)
    return max(best, 1) / 1e9 / len(reply)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples: python scripts/fuzz_masks.py\n"
        "          python scripts/fuzz_masks.py --count 5000 --seed 7 --failures 20\n"
        "          python scripts/fuzz_masks.py --growth --longest 4000000",
    )
    parser.add_argument(
        "--count", type=int, default=100_000, help="mutated replies (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the mutations (default 0)")
    parser.add_argument(
        "--failures", type=int, default=10, help="stop after this many (default %(default)s)"
    )
    parser.add_argument(
        "--memory", type=int, default=300, metavar="MB", help="(default %(default)s)"
    )
    parser.add_argument("--growth", action="store_true", help="time replies of growing length")
    parser.add_argument(
        "--longest", type=int, default=1_000_000, help="characters, with --growth (1 million)"
    )
    args = parser.parse_args()
    if args.growth:
        return int(not growth(args.longest, worst_ratio=3, most_bytes=600))
    start = time.process_time()
    tally, failures = run(args.seed, args.count, args.failures, args.memory)
    print("\n".join(failures), end="", file=sys.stderr)
    outcome = ", ".join(f"{status} {tally[status]}" for status in STATUSES)
    print(
        f"{args.count} replies, {sum(tally.values())} readings in "
        f"{time.process_time() - start:.0f} s of CPU time: {outcome}; {len(failures)} failures; "
        f"peak memory {peak_memory() / 1e6:.0f} MB"
    )
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
