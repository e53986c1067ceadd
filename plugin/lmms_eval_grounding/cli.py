"""The command ``lmms-eval-grounding``."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import __version__, prepare
from .parsing.parsed import ParsedBoxes, ParsedMask
from .parsing.profile import Answer, load_profile, profile_names
from .runner import command as conformance
from .scoring import command as scoring

ANSWERS: tuple[Answer, ...] = ("box", "mask", "box3d", "candidates")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 1 after a message that says what to do."""
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # replies and rules hold any character
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return int(options.run(options) or 0)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as fault:
        message = str(fault)
    # Said out here, where the fault and with it the progress bars that it left open are gone.
    print(f"lmms-eval-grounding: {message}", file=sys.stderr)
    return 1


def _tasks_dir(options: argparse.Namespace) -> None:
    from .register import tasks_dir

    print(tasks_dir())


def _profiles(options: argparse.Namespace) -> None:
    for name in options.name or profile_names(options.answer):
        profile = load_profile(name)
        print(f"{name:18} {profile.title}")
        for answer in ANSWERS:
            convention = getattr(profile, answer)
            if convention:
                print(f"{'':18} {answer + ':':11} {_one_line(convention.example)}")


def _parse(options: argparse.Namespace) -> None:
    from .parsing.boxes import parse_boxes
    from .parsing.masks import parse_mask

    size = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", options.size.lower())
    if size is None:
        raise ValueError(f"--size {options.size}: give width x height in pixels, as in 800x800")
    width, height = map(int, size.groups())
    reply = sys.stdin.read() if options.reply == "-" else options.reply
    parsers: dict[str, Callable[..., ParsedBoxes | ParsedMask]]
    parsers = {"box": parse_boxes, "mask": parse_mask}
    parsed = parsers[options.answer](reply, load_profile(options.profile), width, height)
    print(json.dumps(asdict(parsed)))


def _audit(options: argparse.Namespace) -> None:
    from .audit import audit

    for path in options.samples:
        print("\n".join(audit(path)))


def _one_line(text: str) -> str:
    line = text.replace("\n", "\\n").replace("\t", "\\t")
    return line if len(line) <= 160 else f"{line[:80]} .. {line[-60:]}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lmms-eval-grounding",
        description="Grounding benchmarks for lmms-eval: their data, profiles and replies.",
        epilog="Evaluate with: lmms-eval --model MODEL --tasks rsvg --output_path results",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str, example: str) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"Example: lmms-eval-grounding {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,  # commands stay on one line
        )
        added.set_defaults(run=run)
        return added

    command(
        "tasks-dir",
        _tasks_dir,
        "print the folder of the task definitions, for --include_path",
        'tasks-dir   (lmms-eval --include_path "$(lmms-eval-grounding tasks-dir)" ..)',
    )

    profiles = command(
        "profiles",
        _profiles,
        "list the profiles: how families of models write boxes and masks, with examples",
        "profiles qwen3_vl gemini",
    )
    profiles.add_argument("name", nargs="*", help="only these")
    profiles.add_argument("--answer", choices=ANSWERS, help="only those that write such answers")

    parse = command(
        "parse",
        _parse,
        "show what the parser makes of one reply",
        "parse --profile qwen3_vl --size 800x600 '{\"bbox_2d\": [10, 20, 300, 400]}'",
    )
    parse.add_argument("--profile", default="prompt", help="see the command profiles")
    parse.add_argument("--answer", choices=("box", "mask"), default="box", help="default: box")
    parse.add_argument("--size", required=True, metavar="WxH", help="of the image, in pixels")
    parse.add_argument("reply", help="the reply, or - for standard input")

    prepare.add_arguments(
        command(
            "prepare",
            prepare.run,
            "turn an official release into the data that the tasks read, or check such data",
            "prepare rsvg --source DIOR_RSVG",
        )
    )

    audit = command(
        "audit",
        _audit,
        "count the statuses, reasons and flags in the samples files of runs (--log_samples)",
        "audit results/*/*_samples_rsvg.jsonl",
    )
    audit.add_argument("samples", nargs="+", type=Path, metavar="SAMPLES.jsonl")

    conformance.add_arguments(
        command(
            "conformance",
            conformance.run,
            "run the golden cases against this package, or against your own evaluator",
            "conformance --command 'node my_eval.js' --benchmark rsvg",
        )
    )

    scoring.add_score_arguments(
        command(
            "score",
            scoring.run_score,
            "score predictions without lmms-eval: replies, boxes, masks, or the log of a run",
            "score rsvg --predictions predictions.jsonl",
        )
    )

    scoring.add_merge_arguments(
        command(
            "merge",
            scoring.run_merge,
            "report on shards together that score --partial scored apart",
            "merge shard1.records shard2.records --json scores.json",
        )
    )
    return parser
