"""Read and score mutated replies, and check what has to hold for any reply at all.

The replies start as those of the golden cases of the parsers and as what every profile writes;
seeded mutations then cut, splice and soil them. Each is read with the profile it was meant for and
with another one, on an image of its own size and on one of another size, and scored as RSVG. For
every reading it is checked that

- nothing raises, and the result keeps the contract (spec/records/parsed_boxes.json);
- the boxes lie in the image and have an area;
- a box is not made up: its numbers stand in the reply, next to each other and in order (anywhere,
  for fields with names);
- the reading is the same for any target, and the parser takes none;

and for every thousand of them that the statuses add up to the number of samples, their rates to 1,
and that the other metrics stay in their ranges. The same seed gives the same replies. The first
failures are printed with the reply as Python writes it, and make the exit code 1.
"""

from __future__ import annotations

import argparse
import inspect
import math
import random
import re
import sys
import time
import traceback
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from typing import Any, NamedTuple

from tqdm import tqdm

from lmms_eval_grounding.benchmarks.rsvg import METRICS, STRICT_METRICS, score
from lmms_eval_grounding.contract import check
from lmms_eval_grounding.corpus import load_cases, reply_text
from lmms_eval_grounding.geometry.boxes import Box, bounds_of_rotated, clip
from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.parsed import STATUSES, ParsedBoxes
from lmms_eval_grounding.parsing.profile import Profile, load_profile, profile_names
from lmms_eval_grounding.writing.boxes import write_box

SIZES = [(800, 800), (300, 200), (1024, 683), (37, 1200), (1, 1), (5000, 3)]
ALL_METRICS = {**STRICT_METRICS, **METRICS}
BATCH = 1000  # samples whose metrics are checked together
LONGEST = 4000  # characters; the time of longer replies is what bench_parsing.py is for
REASONING = r"(?is)<(think|thinking|reasoning|analysis)>.*?</(think|thinking|reasoning|analysis)>"
WORD = r"""(?<![^\s\[\]{}():,;"'])[^\s\[\]{}():,;"'0-9+.-][^\s\[\]{}():,;"']*"""
PARTS = [
    *("[", "]", "{", "}", "(", ")", "<", ">", "[[", "]]", "{}", "[]", ",", ";", ":", ".", "|", "/"),
    *(
        "\\",
        "-",
        "+",
        "_",
        "%",
        "=",
        "`",
        "```",
        "```json",
        '"',
        "'",
        '\\"',
        "\\n",
        "\n",
        "\t",
        "\r",
    ),
    *(
        "\0",
        "\ud800",
        "\udfff",
        "\ufeff",
        "\u200b",
        "\u0301",
        "\u0665",
        "\u201c",
        "\u201d",
        "\u2018",
    ),
    *(
        "\u2019",
        "［",
        "］",
        "（",
        "）",
        "｛",
        "｝",
        "，",
        "；",
        "：",
        "。",
        "、",
        "．",
        "－",
        "５",
        "００",
    ),
    *("<think>", "</think>", "<thinking>", "<reasoning>", "◁think▷", "◁/think▷", "<answer>"),
    *("</answer>", "<|begin_of_box|>", "<|end_of_box|>", "<box>", "</box>", "<bbox>", "</bbox>"),
    *(
        "<|box_start|>",
        "<|box_end|>",
        "<|det|>",
        "<ref>",
        "</ref>",
        "<loc_12>",
        "<loc0345>",
        "<loc",
    ),
    *("<bin_3_4>", "<patch_index_0033>", "<point>", "<|im_end|>", "</s>", "<eos>", "<pad>"),
    *('"bbox_2d":', '"box_2d":', '"bbox":', "x_min", "x1", "bbox_2d", "null", "None", "true"),
    *("NaN", "nan", "Infinity", "-inf", "1e999", "1e-999", "-0", "007", "0x10", "1_000", "12%"),
    *("0.5", ".5", "5.", "1e2", "-7", "999", "1000", "1001", "99999999999999999999", "\\u0031"),
    *("\\u12", "Error:", "[SEG]", "no target", "There is none", "[LMMS_EVAL_REQUEST_FAILED"),
    *("a ship", " ", " " * 300, "9" * 500, "[" * 80, "]" * 80, "{" * 80, "[{" * 40, '{"a":' * 80),
]


class CheckError(Exception):
    """A check that did not hold; the message says which."""


class Seed(NamedTuple):
    """A reply to start from, and what it was meant for."""

    reply: str
    profile: str
    width: int
    height: int


def seeds(rng: random.Random) -> list[Seed]:
    """Return the replies of the golden parser cases, and boxes written by every profile."""
    found, names = [], profile_names("box")
    for case in load_cases("parsers"):
        given = case.input
        if "reply" in given:
            reply = (reply_text(given["reply"]) or "")[:LONGEST]
            profile = given["profile"] if given["profile"].partition(":")[0] in names else names[0]
            found.append(Seed(reply, profile, given.get("width", 800), given.get("height", 800)))
    for name in names:
        for width, height in SIZES[:4]:
            x1, x2 = sorted(rng.uniform(0, width) for _ in range(2))
            y1, y2 = sorted(rng.uniform(0, height) for _ in range(2))
            box, profile = (x1, y1, x2, y2), load_profile(name)
            found.append(
                Seed(write_box(box, profile, width, height, "a ship"), name, width, height)
            )
    return found


def mutated(rng: random.Random, reply: str, other: str) -> str:
    """Return a reply with one to six mutations, spliced with ``other`` now and then."""
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 6))):
        reply = rng.choice(MUTATIONS)(rng, reply, other)[:LONGEST]
    return reply


def piece(rng: random.Random, text: str) -> tuple[int, int]:
    """Return the ends of a slice, mostly a short one."""
    start = rng.randint(0, len(text))
    length = rng.randint(0, rng.choice((1, 4, 20, 200)))
    return start, min(start + length, len(text))


def delete(rng: random.Random, reply: str, other: str) -> str:
    start, end = piece(rng, reply)
    return reply[:start] + reply[end:]


def duplicate(rng: random.Random, reply: str, other: str) -> str:
    start, end = piece(rng, reply)
    return reply[:end] + reply[start:end] * rng.choice((1, 1, 2, 20)) + reply[end:]


def swap(rng: random.Random, reply: str, other: str) -> str:
    (a, b), (c, d) = sorted((piece(rng, reply), piece(rng, reply)))
    return reply[:a] + reply[c:d] + reply[b:c] + reply[a:b] + reply[d:] if b <= c else reply


def insert(rng: random.Random, reply: str, other: str) -> str:
    at = rng.randint(0, len(reply))
    return reply[:at] + rng.choice(PARTS) + reply[at:]


def replace(rng: random.Random, reply: str, other: str) -> str:
    start, end = piece(rng, reply)
    return reply[:start] + rng.choice(PARTS) + reply[end:]


def truncate(rng: random.Random, reply: str, other: str) -> str:
    return reply[: rng.randint(0, len(reply))]


def behead(rng: random.Random, reply: str, other: str) -> str:
    return reply[rng.randint(0, len(reply)) :]


def splice(rng: random.Random, reply: str, other: str) -> str:
    return reply[: rng.randint(0, len(reply))] + other[rng.randint(0, len(other)) :]


def append(rng: random.Random, reply: str, other: str) -> str:
    return reply + rng.choice(("", " ", "\n", ", ", "; ")) + other


def nest(rng: random.Random, reply: str, other: str) -> str:
    at = rng.randint(0, len(reply))
    return reply[:at] + other + reply[at:]


def wrap(rng: random.Random, reply: str, other: str) -> str:
    before, after = rng.choice(
        (
            ("<think>", "</think>"),
            ("<think>" + other + "</think>", ""),
            ("<answer>", "</answer>"),
            ("```json\n", "\n```"),
            ("[", "]"),
            ('{"bbox_2d": ', "}"),
            ('"', '"'),
        )
    )
    return before + reply + after


def new_digits(rng: random.Random, reply: str, other: str) -> str:
    share = rng.choice((0.05, 0.3, 1))
    return re.sub(r"\d", lambda m: str(rng.randint(0, 9)) if rng.random() < share else m[0], reply)


def new_number(rng: random.Random, reply: str, other: str) -> str:
    numbers = list(re.finditer(r"-?\d+(\.\d+)?", reply))
    if not numbers:
        return reply
    old = rng.choice(numbers)
    size = rng.choice((1, 30, 100, 1000, 1100, 1e6, 1e300))
    new = rng.choice((str(rng.randint(-5, int(min(size, 1e6)))), repr(rng.random() * size)))
    return reply[: old.start()] + new + reply[old.end() :]


def full_width(rng: random.Random, reply: str, other: str) -> str:
    start, end = piece(rng, reply)
    wide = reply[start:end].translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
    return reply[:start] + wide + reply[end:]


def other_quotes(rng: random.Random, reply: str, other: str) -> str:
    return reply.replace('"', rng.choice(("'", "“", "”", '\\"', "`", "")))


def other_blanks(rng: random.Random, reply: str, other: str) -> str:
    old, new = rng.choice((("\n", "\\n"), ("\n", ""), ("\n", "\r\n"), (" ", "\n"), (" ", "\u3000")))
    return reply.replace(old, new)


def other_case(rng: random.Random, reply: str, other: str) -> str:
    return reply.upper()


MUTATIONS = (
    *(delete, duplicate, swap, insert, insert, replace, truncate, behead, splice, append, nest),
    *(wrap, new_digits, new_number, new_number, full_width, other_quotes, other_blanks, other_case),
)


def check_reading(reply: str, parsed: ParsedBoxes, profile: Profile, size: tuple[int, int]) -> None:
    """Raise `CheckError` unless a reading keeps the contract and gives what the reply holds."""
    check(asdict(parsed), "records/parsed_boxes.json")
    width, height = size
    for x1, y1, x2, y2 in parsed.boxes:
        if not (0 <= x1 < x2 <= width and 0 <= y1 < y2 <= height):
            raise CheckError(f"a box leaves the image or has no area: {(x1, y1, x2, y2)}")
    apart = set(parsed.boxes) - set(given_boxes(reply, profile, size)) if parsed.boxes else ()
    named = bool(profile.box_convention().corner_keys)
    for box in apart:
        if not (named and holds(reply, box, profile, size)):
            raise CheckError(f"made up, its numbers do not stand in the reply: {box}")


def given_boxes(reply: str, profile: Profile, size: tuple[int, int]) -> Iterator[Box]:
    """Yield the boxes that the numbers of a reply mean, each row of neighbours taken for one."""
    for numbers in written_numbers(reply):
        for count in profile.box_convention().order.counts:
            for start in range(len(numbers) - count + 1):
                yield _meaning(tuple(numbers[start : start + count]), profile, size)


def written_numbers(reply: str) -> list[list[float]]:
    """Return all numbers of a reply in order, in each of the ways in which it may be written.

    As it stands, without its reasoning, which is taken out before anything is read, and with
    escapes resolved; with words (``loc0123``) and without those that do not begin as a number does,
    since in JSON they mean nothing (``bbox_2d``); with and without exponents, which only JSON has.
    """
    texts = {reply, re.sub(REASONING, " ", reply)}
    texts |= {re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), t) for t in texts}
    texts = {unicodedata.normalize("NFKC", text) for text in texts}
    texts |= {re.sub(WORD, " ", text) for text in texts}
    plain = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
    patterns = (plain, plain + r"(?:[eE][+-]?\d+)?")
    return [[float(n) for n in re.findall(p, text)] for text in texts for p in patterns]


def _meaning(numbers: tuple[float, ...], profile: Profile, size: tuple[int, int]) -> Box:
    """Return the box in the image that a row of numbers means, whether it is valid or not."""
    convention = profile.box_convention()
    order, axes = convention.order, convention.space.axes(*size) * 2
    if not all(map(math.isfinite, numbers)):
        return (0, 0, 0, 0)
    corners = order.corners(numbers)
    x1, y1, x2, y2 = (axis.pixel(n) for axis, n in zip(axes, corners, strict=True))
    box = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    return clip(bounds_of_rotated(box, numbers[4]) if len(numbers) > 4 else box, *size)


def holds(reply: str, box: Box, profile: Profile, size: tuple[int, int]) -> bool:
    """Return whether the numbers of a box stand anywhere in the reply, axis by axis."""
    numbers = {n for found in written_numbers(reply) for n in found}
    meant = [_meaning((a, a, b, b), profile, size) for a, b in product(numbers, numbers)]
    return all(any(found[axis::2] == box[axis::2] for found in meant) for axis in (0, 1))


def target(rng: random.Random, size: tuple[int, int]) -> Box:
    """Return a box in an image."""
    x1, x2 = sorted(rng.uniform(0, size[0]) for _ in range(2))
    y1, y2 = sorted(rng.uniform(0, size[1]) for _ in range(2))
    return x1, y1, x2, y2


def check_sample(
    rng: random.Random, id: str, reply: str, profile: Profile, size: tuple[int, int]
) -> dict[str, Any]:
    """Return the record of a reply; raise `CheckError` unless all holds that has to."""
    parsed = parse_boxes(reply, profile, *size)
    check_reading(reply, parsed, profile, size)
    scored = []
    for box in (target(rng, size), target(rng, size)):
        doc = {"id": id, "expression": "a ship", "bbox": box, "width": size[0], "height": size[1]}
        record, reading = score(doc, reply, profile)
        if reading.pop("target") != box:
            raise CheckError("the target was changed")
        scored.append((record, reading))
    (record, reading), (_, other) = scored
    if reading != other:
        raise CheckError(f"the target changes the reading: {reading} and {other}")
    first = parsed.boxes[0] if parsed.boxes else None
    seen = (reading["status"], reading["reason"], reading["pred"], reading["boxes_given"])
    if seen != (parsed.status, parsed.reason, first, len(parsed.boxes)):
        raise CheckError(f"scoring reads {reading} where parsing reads {parsed}")
    return record


def check_metrics(records: list[dict[str, Any]]) -> None:
    """Raise `CheckError` unless statuses add up and every metric stays in its range."""
    counts = Counter(record["status"] for record in records)
    if set(counts) - set(STATUSES) or sum(counts.values()) != len(records):
        raise CheckError(f"statuses {counts} of {len(records)} samples")
    values = {name: metric(records) for name, metric in ALL_METRICS.items()}
    rates = [values[f"parse_{status}"] for status in STATUSES]
    if rates != [counts[status] / len(records) for status in STATUSES]:
        raise CheckError(f"rates {rates} of {counts}")
    if not math.isclose(math.fsum(rates), 1, abs_tol=1e-12):
        raise CheckError(f"rates {rates} do not add up to 1")
    if not all(0 <= value <= (100 if name[:2] == "Pr" else 1) for name, value in values.items()):
        raise CheckError(f"a metric leaves its range: {values}")


def check_parser_sees_no_target() -> None:
    """Raise `CheckError` if the parser could be told a target."""
    takes = list(inspect.signature(parse_boxes).parameters)
    if takes != ["reply", "profile", "width", "height"]:
        raise CheckError(f"the parser takes {takes}")


def samples(seed: int, count: int) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yield mutated replies, each with its own profile and size, then with others, in turns."""
    rng = random.Random(seed)
    start, names = seeds(rng), profile_names("box")
    for _ in range(count):
        origin = rng.choice(start)
        reply = mutated(rng, origin.reply, rng.choice(start).reply)
        yield reply, origin.profile, (origin.width, origin.height)
        yield reply, rng.choice(names), rng.choice(SIZES)


def run(seed: int, count: int, most_failures: int = 1) -> tuple[Counter[str], list[str]]:
    """Check ``count`` mutated replies; return what came out how often, and the failures."""
    check_parser_sees_no_target()
    rng, tally, failures = random.Random(seed), Counter[str](), []
    records: list[dict[str, Any]] = []
    bar = tqdm(total=2 * count, unit="reading", disable=None)
    for reply, name, size in samples(seed, count):
        try:
            record = check_sample(rng, str(len(records)), reply, load_profile(name), size)
            records.append(record)
            tally[record["status"]] += 1
            if len(records) == BATCH:
                check_metrics(records)
                records.clear()
        except Exception as fault:
            told = "" if isinstance(fault, CheckError) else traceback.format_exc()
            failures.append(f"{fault!r}\n{told}profile {name}, size {size}, reply\n{reply!a}\n")
            if len(failures) == most_failures:
                break
        bar.update()
    bar.close()
    if records:
        check_metrics(records)
    return tally, failures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples: python scripts/fuzz_boxes.py\n"
        "          python scripts/fuzz_boxes.py --count 5000 --seed 7 --failures 20",
    )
    parser.add_argument(
        "--count", type=int, default=100_000, help="mutated replies (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the mutations (default 0)")
    parser.add_argument(
        "--failures", type=int, default=10, help="stop after this many (default %(default)s)"
    )
    args = parser.parse_args()
    start = time.process_time()
    tally, failures = run(args.seed, args.count, args.failures)
    print("\n".join(failures), end="", file=sys.stderr)
    outcome = ", ".join(f"{status} {tally[status]}" for status in STATUSES)
    print(
        f"{args.count} replies, {sum(tally.values())} readings in {time.process_time() - start:.0f}"
        f" s of CPU time: {outcome}; {len(failures)} failures"
    )
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
