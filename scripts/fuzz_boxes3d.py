"""Read and score mutated replies with 3D boxes, and check what has to hold for any reply at all.

The replies start as those of the golden cases of parsers/boxes3d and as what every profile writes;
seeded mutations (those of fuzz_boxes.py) then cut, splice and soil them. Each is read with the
profile and the scene it was meant for and with another profile in another scene, and scored as
MMScan. For every reading it is checked that

- nothing raises, and the result keeps the contract (spec/records/parsed_boxes3d.json);
- every box is a cuboid of finite numbers and positive sizes;
- a box is not made up: its three sizes stand in the reply (as steps of the grid, where the profile
  has one), next to each other and in order; in order, where slips in JSON were repaired; its score
  stands there, too; a candidate's box is that of an id whose digits stand there;
- the reading does not change when it is repeated, nor the record with the order of two targets;

and for every thousand of them that the statuses add up to the number of samples, their rates to 1,
and that every metric stays between 0 and 1. The same seed gives the same replies. The first
failures are printed with the reply as Python writes it, and make the exit code 1.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from fuzz_boxes import LONGEST, CheckError, mutated, written_numbers
from tqdm import tqdm

from lmms_eval_grounding.contract import check
from lmms_eval_grounding.corpus import load_cases, reply_text
from lmms_eval_grounding.geometry.boxes3d import is_valid
from lmms_eval_grounding.metrics.mmscan import (
    average_precision_per_sample,
    average_recall,
    gtop_k,
    pooled_average_precision,
    pooled_average_recall,
    sample_record,
)
from lmms_eval_grounding.metrics.samples import status_rate
from lmms_eval_grounding.parsing.boxes3d import parse_boxes3d
from lmms_eval_grounding.parsing.parsed import STATUSES, ParsedBoxes3d
from lmms_eval_grounding.parsing.profile import Profile, load_profile, profile_names
from lmms_eval_grounding.parsing.scene import Frame, Scene
from lmms_eval_grounding.writing.boxes3d import write_boxes3d

METRICS = (
    partial(gtop_k, k=3),
    average_precision_per_sample,
    average_recall,
    pooled_average_precision,
    pooled_average_recall,
)
BATCH = 1000  # samples whose metrics are checked together
BOUNDS = ((-4.0, -5.0, -1.0), (6.0, 7.0, 4.0))
CAMERA = ((500.0, 520.0, 320.0, 230.0), 640, 480)
TURNS = (
    [[1, 0, 0], [0, 0, 1], [0, -1, 0]],
    [[0, 0, 1], [-1, 0, 0], [0, -1, 0]],
    [[0.6, 0, 0.8], [-0.8, 0, 0.6], [0, -1, 0]],
)


class Seed(NamedTuple):
    """A reply to start from, and what it was meant for."""

    reply: str
    profile: str
    scene: Scene


def scenes(rng: random.Random) -> list[Scene]:
    """Return scenes to read replies in: with frames, without, with broken ones, with candidates."""
    frames = []
    for turn in TURNS:
        pose = np.eye(4)
        pose[:3, :3] = turn
        pose[:3, 3] = [rng.uniform(-2, 2) for _ in range(3)]
        frames.append(Frame(pose, *CAMERA))
    unknown = [Frame(None, *CAMERA), Frame(np.full((4, 4), np.nan)), Frame(np.zeros((4, 4)))]
    boxes = [random_box(rng) for _ in range(12)]
    return [
        Scene(frames[:1], BOUNDS),
        Scene(frames, BOUNDS),
        Scene([*unknown, *frames], BOUNDS),
        Scene(),
        Scene(frames, BOUNDS, dict(enumerate(boxes, start=1))),
        Scene(candidates=dict.fromkeys((0, 7, 13, 412), boxes[0])),
    ]


def random_box(rng: random.Random) -> tuple[float, ...]:
    place = (rng.uniform(low, high) for low, high in zip(*BOUNDS, strict=True))
    sizes = (math.exp(rng.uniform(-3, 1.5)) for _ in range(3))
    return (*place, *sizes, *(rng.uniform(-3.2, 3.2) for _ in range(3)))


def names_in(scene: Scene) -> list[str]:
    """Return the profiles that can answer in a scene."""
    return profile_names("box3d" if scene.candidates is None else "candidates")


def seeds(rng: random.Random) -> list[Seed]:
    """Return the replies of the golden cases of 3D boxes, and what every profile writes."""
    found = []
    places = scenes(rng)
    for case in load_cases("parsers/boxes3d"):
        given = case.input
        scene = places[4] if "candidates" in given["scene"] else places[0]
        if given["profile"] in names_in(scene):
            reply = (reply_text(given["reply"]) or "")[:LONGEST]
            found.append(Seed(reply, given["profile"], scene))
    for scene in (places[0], places[1], places[4]):
        for name in names_in(scene):
            boxes = list((scene.candidates or {}).values()) or [random_box(rng) for _ in range(12)]
            for count in (1, 3, 12):
                scores = sorted((rng.random() for _ in range(count)), reverse=True)
                reply = write_boxes3d(boxes[:count], load_profile(name), scene, scores)
                found.append(Seed(reply[:LONGEST], name, scene))
    return found


def check_reading(reply: str, parsed: ParsedBoxes3d, profile: Profile, scene: Scene) -> None:
    """Raise `CheckError` unless a reading keeps what every reading has to."""
    check(asdict(parsed), "records/parsed_boxes3d.json")
    if not is_valid(np.reshape(parsed.boxes, (-1, 9))).all():
        raise CheckError(f"an invalid box in {parsed.boxes}")
    if parsed.scores and len(parsed.scores) != len(parsed.boxes):
        raise CheckError(f"{len(parsed.scores)} scores of {len(parsed.boxes)} boxes")
    numbers = written_numbers(reply)
    anywhere = {number for found in numbers for number in found}
    for score in parsed.scores or ():
        if score is not None and score not in anywhere:
            raise CheckError(f"the score {score} does not stand in the reply")
    if scene.candidates is not None:
        check_candidates(reply, parsed, scene.candidates)
    else:
        check_sizes(numbers, parsed, profile, scene)


def check_candidates(reply: str, parsed: ParsedBoxes3d, candidates: Mapping[int, Any]) -> None:
    """Raise `CheckError` unless every box is that of an id that stands in the reply."""
    digits = {int(text) for text in re.findall(r"\d{1,9}", reply)}
    digits |= {int(n) for found in written_numbers(reply) for n in found if abs(n) < 1e9}
    allowed = {tuple(candidates[id]) for id in digits & set(candidates)}
    if not set(parsed.boxes) <= allowed:
        raise CheckError(f"boxes of objects that are not named: {set(parsed.boxes) - allowed}")


def check_sizes(
    numbers: list[list[float]], parsed: ParsedBoxes3d, profile: Profile, scene: Scene
) -> None:
    """Raise `CheckError` unless the sizes of every box stand in the reply, side by side."""
    scales = profile.box3d_convention().scales(scene.bounds)
    slips = {"repaired", "truncated"} & set(parsed.flags)
    for box in parsed.boxes:
        assert scales is not None
        sizes = scales.size.number(np.array(box[3:6])).tolist()
        if not any(stand_in(sizes, found, side_by_side=not slips) for found in numbers):
            raise CheckError(f"the sizes of {box} do not stand in the reply")


def stand_in(sizes: list[float], numbers: list[float], side_by_side: bool) -> bool:
    """Return whether sizes stand among numbers, in order; give or take the rounding of a grid."""

    def equal(size: float, number: float) -> bool:
        return math.isclose(size, number, rel_tol=1e-9, abs_tol=1e-9)

    first, *rest = sizes
    for start, number in enumerate(numbers):
        if equal(first, number):
            if not side_by_side:
                later = iter(numbers[start + 1 :])
                return all(any(equal(size, other) for other in later) for size in rest)
            others = numbers[start + 1 : start + 3]
            if len(others) == 2 and all(map(equal, rest, others)):
                return True
    return False


def check_sample(
    rng: random.Random, id: str, reply: str, profile: Profile, scene: Scene
) -> dict[str, Any]:
    """Return the record of a reply, checked."""
    parsed = parse_boxes3d(reply, profile, scene)
    check_reading(reply, parsed, profile, scene)
    if parse_boxes3d(reply, profile, scene) != parsed:
        raise CheckError("read again, the reply says something else")
    sub_class = rng.choice(("VG_Single_EQ", "VG_Inter_OR", "VG_Single_Space"))
    targets = [random_box(rng), *parsed.boxes[:2]]
    given = {"preds": parsed.boxes, "scores": parsed.scores}
    record = sample_record(id, parsed.status, sub_class, targets=targets, **given)
    other = sample_record(id, parsed.status, sub_class, targets=targets[::-1], **given)
    check(record, "records/mmscan.json")
    if (record["scores"], record["best_ious"]) != (other["scores"], other["best_ious"]):
        raise CheckError("the order of the targets changes the predictions")
    return record


def check_metrics(records: list[dict[str, Any]]) -> None:
    """Raise `CheckError` unless statuses add up and every metric stays in its range."""
    counts = Counter(record["status"] for record in records)
    if set(counts) - set(STATUSES) or sum(counts.values()) != len(records):
        raise CheckError(f"statuses {counts} of {len(records)} samples")
    rates = [status_rate(records, status) for status in STATUSES]
    if rates != [counts[status] / len(records) for status in STATUSES]:
        raise CheckError(f"rates {rates} of {counts}")
    if not math.isclose(math.fsum(rates), 1, abs_tol=1e-12):
        raise CheckError(f"rates {rates} do not add up to 1")
    values = [metric(records, threshold=0.5) for metric in METRICS]
    if not all(0 <= value <= 1 for value in values):
        raise CheckError(f"a metric leaves its range: {values}")


def samples(seed: int, count: int) -> Iterator[tuple[str, str, Scene]]:
    """Yield mutated replies, each with its own profile and scene, then with others, in turns."""
    rng = random.Random(seed)
    start, places = seeds(rng), scenes(rng)
    for _ in range(count):
        origin = rng.choice(start)
        reply = mutated(rng, origin.reply, rng.choice(start).reply)
        yield reply, origin.profile, origin.scene
        scene = rng.choice(places)
        yield reply, rng.choice(names_in(scene)), scene


def run(seed: int, count: int, most_failures: int = 1) -> tuple[Counter[str], list[str]]:
    """Check ``count`` mutated replies; return what came out how often, and the failures."""
    rng, tally, failures = random.Random(seed), Counter[str](), []
    records: list[dict[str, Any]] = []
    bar = tqdm(total=2 * count, unit="reading", disable=None)
    for reply, name, scene in samples(seed, count):
        try:
            record = check_sample(rng, str(len(records)), reply, load_profile(name), scene)
            records.append(record)
            tally[record["status"]] += 1
            if len(records) == BATCH:
                check_metrics(records)
                records.clear()
        except Exception as fault:
            told = "" if isinstance(fault, CheckError) else traceback.format_exc()
            failures.append(f"{fault!r}\n{told}profile {name}, scene {scene}, reply\n{reply!a}\n")
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
        epilog="examples: python scripts/fuzz_boxes3d.py\n"
        "          python scripts/fuzz_boxes3d.py --count 5000 --seed 7 --failures 20",
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
