"""``lmms-eval-grounding conformance``: an implementation against the golden cases."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from ..corpus import Case, load_cases
from ..json_files import check_writable, write_whole
from .answer import Answer
from .answers import own_answers, program_answers
from .explain import statement
from .known_failures import KnownFailures, load_known_failures
from .report import (
    failure_text,
    failures_first_of_each,
    json_report,
    junit_report,
    nothing_answered,
    summary,
    table,
)
from .verdict import Verdict, judged

OWN = "lmms-eval-grounding"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    under_test = parser.add_argument_group("what is tested (default: this package)")
    which = under_test.add_mutually_exclusive_group()
    which.add_argument(
        "--command", metavar="CMD", help="a program: cases in, answers out, line by line"
    )
    which.add_argument("--python", metavar="MODULE:FUNCTION", help="called with spec and input")
    which.add_argument(
        "--explain", action="store_true", help="run nothing; say what the chosen specs ask for"
    )
    which.add_argument("--lint", action="store_true", help="check the corpus itself instead")
    under_test.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="for each case (default: 60)"
    )
    under_test.add_argument(
        "--give-up",
        type=int,
        default=3,
        metavar="N",
        help="after N breakdowns running (default: 3)",
    )
    under_test.add_argument(
        "--known-failures", type=Path, metavar="FILE", help="cases that must fail, with reasons"
    )
    chosen = parser.add_argument_group("which cases (default: all)")
    chosen.add_argument("--benchmark", nargs="+", metavar="NAME", help="rsvg gres refsegrs mmscan")
    chosen.add_argument("--metric", nargs="+", metavar="NAME", help="e.g. precision_at")
    chosen.add_argument("--rule", nargs="+", metavar="NAME", help="e.g. threshold-inclusive")
    chosen.add_argument("--spec", default="", metavar="PREFIX", help="e.g. parsers/masks")
    shown = parser.add_argument_group("what is reported")
    shown.add_argument("--by-rule", action="store_true", help="count the cases of every rule")
    shown.add_argument(
        "--show",
        type=int,
        default=10,
        metavar="N",
        help="failures to explain (default: 10)",
    )
    shown.add_argument("--json", type=Path, metavar="FILE", help="write all verdicts as JSON")
    shown.add_argument("--junit", type=Path, metavar="FILE", help="write all verdicts as JUnit XML")


def run(options: argparse.Namespace) -> int:
    """Run the chosen cases, or check the corpus; return 1 unless nothing is wrong."""
    if options.lint:
        from .lint import corpus_problems

        problems = corpus_problems()
        print("\n".join(problems) or "the corpus keeps its rules")
        return 1 if problems else 0
    cases = chosen_cases(options)
    if options.explain:
        print("\n\n".join(statement(spec) for spec in dict.fromkeys(case.spec for case in cases)))
        return 0
    if options.show < 0:
        raise ValueError("--show is 0 or more")
    for path in (options.json, options.junit):
        check_writable(path)
    known = KnownFailures()
    if options.known_failures:
        known = load_known_failures(options.known_failures)
    verdicts = [
        judged(case, answer, *known)
        for case, answer in zip(cases, _answers(cases, options), strict=True)
    ]
    _report(verdicts, options)
    return 1 if any(v.is_failure for v in verdicts) or nothing_answered(verdicts) else 0


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    """Return the cases that all filters let through.

    Raises
    ------
    ValueError
        If there are none, or none at all has a name that is asked for.
    """
    every = load_cases()
    exist = {
        "benchmark": set(map(_benchmark, every)),
        "metric": set(map(_metric, every)),
        "rule": {rule for case in every for rule in case.rules},
    }
    for filter, names in exist.items():
        for name in getattr(options, filter) or ():
            if name not in names:
                raise ValueError(f"--{filter}: no case has {name!r}; `--by-rule` lists all")
    cases = [
        case
        for case in every
        if case.spec.startswith(options.spec)
        and (not options.benchmark or _benchmark(case) in options.benchmark)
        and (not options.metric or _metric(case) in options.metric)
        and (not options.rule or set(options.rule) & set(case.rules))
    ]
    if not cases:
        raise ValueError("no case is chosen; `conformance --by-rule` lists the specs and rules")
    return cases


def _benchmark(case: Case) -> str:
    kind, name, *_ = case.spec.split("/")
    return name.partition("_")[0] if kind in ("metrics", "tasks") else ""


def _metric(case: Case) -> str:
    kind, *_, name = case.spec.split("/")
    return name if kind == "metrics" else ""


def _answers(cases: list[Case], options: argparse.Namespace) -> Iterator[Answer]:
    if options.command is None and options.python is None:
        return own_answers(cases)
    return program_answers(cases, _command(options), options.timeout, options.give_up)


def _command(options: argparse.Namespace) -> list[str]:
    """Return the program to start; `ValueError` where none, or no sense, is given."""
    if not options.timeout > 0 or options.give_up < 1:
        raise ValueError("--timeout and --give-up are more than 0")
    if options.python is None:
        command = shlex.split(options.command)
        if not command:
            raise ValueError("--command names no program")
        return command
    module, colon, name = options.python.partition(":")
    if not (module and colon and name):
        raise ValueError(f"--python {options.python}: give module:function, as in my_eval:answer")
    return [sys.executable, "-m", f"{__package__}.serve", options.python]


def _report(verdicts: list[Verdict], options: argparse.Namespace) -> None:
    failures = failures_first_of_each(verdicts)
    for verdict in failures[: options.show]:
        print(failure_text(verdict), end="\n\n")
    if len(failures) > options.show:
        rest = len(failures) - options.show
        print(f".. and {rest} more: --show {len(failures)}, --spec or --json FILE shows them\n")
    print("\n".join(table(verdicts, options.by_rule)))
    print(summary(verdicts))
    implementation = options.command or options.python or OWN
    if options.json:
        write_whole(options.json, [json_report(implementation, verdicts)])
    if options.junit:
        write_whole(options.junit, [junit_report(implementation, verdicts)])
