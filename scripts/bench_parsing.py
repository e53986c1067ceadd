"""Measure how the time and memory of box parsing grow with the length of a reply.

Every family is a hostile or an endless reply: a run of brackets, of quotes, of tags that never
close, of valid boxes. Each is read with one profile of every kind of parser (profiles that differ
only in their space or their order are read by the same code, so one stands for all of them) at two
short lengths, and then at all lengths with the kind that takes longest and, if it is another one,
the kind whose time grows fastest. The last families are the profiles' own replies, repeated.

Times are CPU times of this process, the best of some repeats. What counts is growth: the time per
character at the longest length over the one at the length nearest to an eighth of it, measured in
one run. A linear parser stays near 1 (a little more, since long replies leave the cache), a
quadratic one comes out at 8. Memory is the peak of what one call allocates at the longest length,
beside the reply itself (tracemalloc). A line above a limit is marked with !, and makes the exit
code 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple

from tqdm import tqdm

from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.profile import Profile, load_profile, profile_names
from lmms_eval_grounding.writing.boxes import write_box

WIDTH, HEIGHT = 1024, 683
BOX = (204.8, 136.6, 768.0, 478.1)
SIZES = (62_500, 125_000, 250_000, 500_000, 1_000_000)


class Family(NamedTuple):
    """Replies of any length: ``before``, then ``unit`` again and again, then ``after``.

    Where there is a ``first``, it fills the first half in place of ``unit``.
    """

    unit: str
    before: str = ""
    after: str = ""
    first: str = ""

    def reply(self, length: int) -> str:
        """Return the reply that comes nearest to a length without exceeding it."""
        room = length - len(self.before) - len(self.after)
        half = self.first * (room // 2 // len(self.first)) if self.first else ""
        return self.before + half + self.unit * ((room - len(half)) // len(self.unit)) + self.after


FAMILIES = {
    # brackets
    "open [": Family("["),
    "open {": Family("{"),
    "open (": Family("("),
    "close ]": Family("]"),
    "[]": Family("[]"),
    "{}": Family("{}"),
    "[{]}": Family("[{]}"),
    "[{]": Family("[{]"),
    "[(}": Family("[(}"),
    "deep, then }": Family("}", before="[" * 64),
    "deep, then {]": Family("{]", before="[" * 64),
    "deep, then []": Family("[]", before="[" * 80),
    "nested 500 deep": Family("[" * 500 + "]" * 500),
    "full-width [": Family("［"),
    # JSON
    "[1,": Family("[1,"),
    "[1": Family("[1"),
    "[ then 1,": Family("1,", before="[", after="]"),
    "[ then 1, cut": Family("1,", before="["),
    "[ then {},": Family("{},", before="[", after="]"),
    '{"bbox_2d":': Family('{"bbox_2d":'),
    '{"bbox_2d":[': Family('{"bbox_2d":['),
    '{ then "bbox_2d":1,': Family('"bbox_2d":1,', before="{", after="}"),
    "strict boxes": Family('{"bbox_2d":[1,2,30,40]},', before="[", after="{}]"),
    "strict boxes, cut": Family('{"bbox_2d":[1,2,30,40]},', before="["),
    "strict boxes, loose": Family('{"bbox_2d":[1,2,30,40]}\n'),
    "python boxes": Family("{'bbox_2d':(1,2,30,40)},", before="[", after="]"),
    "corner keys": Family('{"x_min":1,"y_min":2,"x_max":30,"y_max":40}'),
    "point keys": Family('{"point_2d":[1,2]},', before="[", after="{}]"),
    "list as key": Family("{[1]:2}"),
    "[ then :": Family(":", before="["),
    "[ then ,": Family(",", before="[", after="]"),
    "[a]": Family("[a]\n"),
    "words": Family("a ", before="["),
    "one word": Family("a", before="[", after="]"),
    "newlines": Family("\n", before="[", after="a]"),
    # strings
    '"': Family('"'),
    '[ then "': Family('"', before="["),
    "[ then '": Family("'", before="["),
    "open string": Family("a", before='["'),
    "long string": Family("a", before='["', after='"]'),
    "long string, python": Family("a", before="['", after="']"),
    "escapes": Family("\\n", before='["'),
    "escapes, python": Family("\\n", before="['", after="']"),
    "bad escapes": Family("\\x", before='["', after='"]'),
    "many bad escapes": Family("'\\x',", before="[", after="]"),
    "\\u0031": Family("\\u0031", before='["', after='"]'),
    "backslashes": Family("\\"),
    "[ then backslashes": Family("\\", before="["),
    "mixed quotes": Family("\"'\u201c\u2018", before="["),
    "\u201c": Family("\u201c", before="["),
    "\u201c\u201d": Family("\u201c\u201d", before="[", after="]"),
    # numbers
    "digits": Family("9"),
    "[ then digits": Family("9", before="[", after="]"),
    "[ then quoted digits": Family("9", before='["', after='"]'),
    "[ then 0.": Family("9", before="[0.", after="]"),
    "[ then 1e": Family("9", before="[1e", after="]"),
    "[ then many long": Family("9" * 400 + ",", before="[", after="]"),
    "full-width digits": Family("９", before="[", after="]"),
    "combining marks": Family("\u0327\u0301", before="[", after="]"),
    "1.": Family("1."),
    "+-": Family("+-"),
    "1 ": Family("1 ", after="1"),
    "1 then x": Family("1 ", after="x"),
    "1,": Family("1,", after="1"),
    "1_": Family("1_", after="1"),
    "1 , ": Family("1 , ", after="1"),
    "1 with gaps": Family("1" + " " * 50, after="x"),
    # lists in prose
    "[1,2,30,40]": Family("[1,2,30,40]"),
    "[[1,2,30,40]]": Family("[[1,2,30,40]] "),
    "[ then ;": Family(";", before="[", after="]"),
    "[ then 1;": Family("1,2,30,40;", before="[", after="]"),
    "[nan,": Family("[nan,nan]"),
    # point pairs
    "( then spaces": Family(" ", before="(", after="x"),
    "(1 then spaces": Family(" ", before="(1", after="x"),
    "(1, then spaces": Family(" ", before="(1,", after="x"),
    "(1,2 then spaces": Family(" ", before="(1,2", after="x"),
    "(1,2) then spaces": Family(" ", before="(1,2)", after="x"),
    "( spaces": Family("(" + " " * 50),
    "( then digits": Family("1", before="("),
    "(1,": Family("(1,"),
    "(1,2),": Family("(1,2),"),
    "(1,2),(": Family("(1,2),("),
    "(1,2),(30,40)": Family("(1,2),(30,40) "),
    # tags
    "<box>": Family("<box>"),
    "<box>1": Family("<box>1"),
    "<box> then 1 ": Family("1 ", before="<box>"),
    "<box> boxes": Family("<box>1 2 30 40</box>"),
    "{<1>": Family("{<1>"),
    "{ then <1>": Family("<1>", before="{"),
    "{ then <1> ": Family("<1>   ", before="{"),
    "{<1>|": Family("{<1>|"),
    "{ then spaces": Family(" ", before="{", after="x"),
    "<loc_1>": Family("<loc_1>"),
    "<loc_1": Family("<loc_1"),
    "<patch_index_0001>": Family("<patch_index_0001>"),
    "<bin_1_1>": Family("<bin_1_1>"),
    "<bin_1_1> then spaces": Family(" ", before="<bin_1_1>", after="x"),
    "<bin_ then digits": Family("1", before="<bin_"),
    "<bin_1_1> <": Family("<bin_1_1>  <"),
    "<point ": Family("<point "),
    "<point then x ": Family("x ", before="<point "),
    "<point then spaces": Family(" ", before="<point x", after="x"),
    "<point>1": Family("<point>1"),
    "<point> then digits": Family("1", before="<point>"),
    "<point x=": Family('<point x="1" y="2">'),
    "<": Family("<"),
    # where the answer stands
    "<think>": Family("<think>"),
    "</think>": Family("</think>"),
    "<think></think>": Family("<think></think>"),
    "a<think>a</think>": Family("a<think>a</think>"),
    "<answer>": Family("<answer>"),
    "<answer></answer>": Family("<answer></answer>"),
    "<|begin_of_box|>": Family("<|begin_of_box|>"),
    "</s>": Family("</s>", before="x"),
    "</s> ": Family("</s> ", before="x"),
    "`": Family("`"),
    "```[": Family("```["),
    "```[{]}": Family("```[{]}"),
    "```a": Family("```a "),
    "``` then spaces": Family(" ", before="```", after="x"),
    "fenced lists": Family("```json\n[1]\n```\n"),
    "[] fenced": Family("[]", before="```json\n", after="\n```"),
    # anything
    "prose": Family("There are 12 ships near the pier (see the image), 3 of them grey. "),
    "spaces": Family(" ", before="x", after="x"),
    "\\0": Family("\0"),
    "lone surrogates": Family("\ud800"),
    # what is read again and again for everything that follows it
    **{
        f"[ then {first!r}, {unit!r}": Family(unit, before="[", first=first)
        for first in ("a", "1", '"a" ', "1,", "[1],")
        for unit in (" 1", " a", "{]", "],[", " '", '"a"', "(1,2),", "```[")
    },
    "smart prose": Family("It\u2019s \u201cthere\u201d, [isn't it? "),
}


def readers() -> list[Profile]:
    """Return one profile of each kind of parser, the first in the order of profiles.json."""
    kinds: dict[tuple[object, ...], Profile] = {}
    for profile in map(load_profile, profile_names("box")):
        box = profile.box_convention()
        kinds.setdefault((box.syntaxes, box.bare, bool(box.corner_keys)), profile)
    return list(kinds.values())


def own_replies() -> Iterator[tuple[str, Family, list[Profile]]]:
    """Yield every profile with its own reply, repeated."""
    for name in profile_names("box"):
        profile = load_profile(name)
        reply = write_box(BOX, profile, WIDTH, HEIGHT, "storage tank") + "\n"
        yield f"own: {name}", Family(reply), [profile]


def seconds(reply: str, profile: Profile, repeats: int) -> float:
    """Return the CPU time of one call, the best of some."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time_ns()
        parse_boxes(reply, profile, WIDTH, HEIGHT)
        best = min(best, (time.process_time_ns() - start) / 1e9)
    return max(best, 1e-7)


def megabytes(reply: str, profile: Profile) -> float:
    """Return the peak of what one call allocates."""
    tracemalloc.start()
    parse_boxes(reply, profile, WIDTH, HEIGHT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def chosen(family: Family, profiles: list[Profile], base: int, repeats: int) -> list[Profile]:
    """Return the profile that takes longest at a length, and the one whose time grows fastest."""
    short, long = family.reply(base // 8), family.reply(base)
    times = [(seconds(short, p, repeats), seconds(long, p, repeats), p) for p in profiles]
    slowest = max(times, key=lambda row: row[1])
    # Below a tenth of a millisecond the clock and the cache say more than the parser.
    timed = [row for row in times if row[0] > 1e-4] or [slowest]
    steepest = max(timed, key=lambda row: row[1] / row[0])
    return [slowest[2]] if steepest is slowest else [slowest[2], steepest[2]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples: python scripts/bench_parsing.py --family think --profile qwen3_vl\n"
        "          python scripts/bench_parsing.py --no-memory --repeats 1 > growth.txt",
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=list(SIZES),
        help="lengths of the replies in characters (default: 62500 to 1000000, doubling)",
    )
    parser.add_argument("--family", default="", help="only families whose name contains this")
    parser.add_argument("--profile", help="only this profile, instead of one of every kind")
    parser.add_argument(
        "--repeats", type=int, default=2, help="calls per time; the best counts (default 2)"
    )
    parser.add_argument("--no-memory", action="store_true", help="leave out the peaks of memory")
    parser.add_argument(
        "--max-ratio", type=float, default=2, help="mark growth above this (default 2)"
    )
    parser.add_argument(
        "--max-megabytes", type=float, default=300, help="mark peaks above this (default 300)"
    )
    args = parser.parse_args()

    sizes = sorted(args.sizes)
    longest = sizes[-1]
    base = min(sizes, key=lambda size: abs(8 * size - longest))
    profiles = [load_profile(args.profile)] if args.profile else readers()
    work = [(name, family, profiles) for name, family in FAMILIES.items()]
    work += [row for row in own_replies() if args.profile in (None, row[2][0].name)]
    work = [row for row in work if args.family in row[0]]

    head = "".join(f"{size:>9}" for size in sizes)
    print(f"{'family':<34}{'read with':<18}{'status':<12}{head} ms  ns/char  ratio   MB")
    marked, slowest, steepest, largest = 0, 0.0, 0.0, 0.0
    for name, family, kinds in tqdm(work, unit="family", file=sys.stderr, disable=None):
        for profile in chosen(family, kinds, base, args.repeats):
            times = {n: seconds(family.reply(n), profile, args.repeats) for n in sizes}
            ratio = (times[longest] / longest) / (times[base] / base)
            if ratio > args.max_ratio:  # a busy machine or a fault: a second look tells
                times = {n: seconds(family.reply(n), profile, 3 * args.repeats) for n in sizes}
                ratio = (times[longest] / longest) / (times[base] / base)
            per_char = 1e9 * times[longest] / longest
            peak = 0.0 if args.no_memory else megabytes(family.reply(longest), profile)
            bad = ratio > args.max_ratio or peak > args.max_megabytes
            marked += bad
            slowest, steepest = max(slowest, per_char), max(steepest, ratio)
            largest = max(largest, peak)
            status = parse_boxes(family.reply(base), profile, WIDTH, HEIGHT).status
            columns = "".join(f"{1000 * times[size]:9.1f}" for size in sizes)
            tqdm.write(
                f"{name:<34}{profile.name:<18}{status:<12}{columns}   {per_char:8.0f}"
                f"{ratio:7.2f}{peak:5.0f}{' !' if bad else ''}",
                file=sys.stdout,
            )
    print(
        f"\n{len(work)} families, {len(profiles)} kinds of parsers: slowest {slowest:.0f} ns per "
        f"character, largest ratio {steepest:.2f}, largest peak {largest:.0f} MB; "
        f"{marked} lines above a limit"
    )
    return int(marked > 0)


if __name__ == "__main__":
    sys.exit(main())
