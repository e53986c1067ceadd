"""What a run of the golden cases leaves behind: a table, the first failures, JSON, JUnit."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from ..corpus import Case, agrees, meaning
from .answer import plain
from .request import request
from .verdict import OUTCOMES, Outcome, Verdict

Counts = Counter[Outcome]


def counts_by_spec(verdicts: Iterable[Verdict]) -> dict[str, Counts]:
    """Return how many cases of every spec had which outcome."""
    counts: dict[str, Counts] = {}
    for verdict in verdicts:
        counts.setdefault(verdict.case.spec, Counter())[verdict.outcome] += 1
    return counts


def counts_by_rule(verdicts: Iterable[Verdict], spec: str) -> dict[str, Counts]:
    """Return how many cases that cite a rule of a spec had which outcome; in the spec's order."""
    counts: dict[str, Counts] = {rule: Counter() for rule in meaning(spec)["rules"]}
    for verdict in verdicts:
        if verdict.case.spec == spec:
            for rule in verdict.case.rules:
                counts[rule][verdict.outcome] += 1
    return {rule: count for rule, count in counts.items() if count}


def table(verdicts: Sequence[Verdict], with_rules: bool = False) -> Iterator[str]:
    """Yield a line per spec, and below it one per rule where a case failed, or everywhere.

    Specs of which every case was skipped are named at the end: a misspelt one shows there.
    """
    shown = [name for name in OUTCOMES if name in {v.outcome for v in verdicts} | {"passed"}]
    yield " ".join(["spec / rule".ljust(48), *(name.rjust(15) for name in shown)])
    skipped = []
    for spec, counts in counts_by_spec(verdicts).items():
        if set(counts) == {"skipped"}:
            skipped.append(spec)
            continue
        yield _row(spec, counts, shown)
        if with_rules or any(v.is_failure for v in verdicts if v.case.spec == spec):
            for rule, of_rule in counts_by_rule(verdicts, spec).items():
                yield _row(f"  {rule}", of_rule, shown)
    yield _row("all cases", Counter(v.outcome for v in verdicts), shown)
    if skipped:
        names = f"skipped wholly: {', '.join(skipped)}"
        yield textwrap.fill(names, 112, subsequent_indent="  ", break_on_hyphens=False)


def _row(name: str, counts: Counts, shown: Sequence[Outcome]) -> str:
    cells = (str(counts[outcome] or "-").rjust(15) for outcome in shown)
    return " ".join([name.ljust(48), *cells])


def failures_first_of_each(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the failures so that those differ which come first: one of every spec, of every rule.

    One mistake often fails all the cases of a spec, which would hide every other one.
    """
    of_spec: Counter[str] = Counter()
    of_rules: Counter[tuple[str, ...]] = Counter()
    ranked: list[tuple[bool, int, int, Verdict]] = []
    for verdict in verdicts:
        if verdict.is_failure:
            cited = (verdict.case.spec, *verdict.case.rules)
            repeats = of_spec[verdict.case.spec] > 0, of_rules[cited]
            ranked.append((*repeats, len(ranked), verdict))
            of_spec[verdict.case.spec] += 1
            of_rules[cited] += 1
    return [verdict for *_, verdict in sorted(ranked)]


def failure_text(verdict: Verdict) -> str:
    """Return a failure as input, expected, got, and why this value."""
    case, stated = verdict.case, meaning(verdict.case.spec)
    got = verdict.detail if _has_no_result(verdict) else _short(plain(verdict.got))
    title = f"{verdict.outcome.upper().replace('_', ' ')}  {case}"
    if verdict.outcome == "not_run":  # nothing was asked, so no rule is broken
        return f"{title}\n  {'got':10}{got}"
    rows = [
        ("input", _short(case.input)),
        ("profile", _profile_text(case)),
        ("expected", f"{_short(case.expected)}  (tolerance {stated['tolerance']:g})"),
        ("got", got),
        *(("differs", difference) for difference in _differences(verdict)),
        *(("because", f"{rule}: {stated['rules'][rule]}") for rule in case.rules),
        ("", case.comment),
    ]
    return "\n".join([title, *(f"  {name:10}{value}" for name, value in rows if value)])


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return a run in one line: how many cases failed, and how many were not answered at all."""
    if nothing_answered(verdicts):
        return "no case was answered"
    skipped = sum(verdict.outcome == "skipped" for verdict in verdicts)
    failed = sum(verdict.is_failure for verdict in verdicts)
    specs = len({verdict.case.spec for verdict in verdicts if verdict.outcome == "skipped"})
    unanswered = f"; {skipped} more were skipped, of {specs} specs" if skipped else ""
    return f"{failed or 'none'} of {len(verdicts) - skipped} cases failed{unanswered}"


def nothing_answered(verdicts: Iterable[Verdict]) -> bool:
    """Return whether every case was skipped, which is no success."""
    return all(verdict.outcome == "skipped" for verdict in verdicts)


def json_report(implementation: str, verdicts: Sequence[Verdict]) -> str:
    """Return a run as JSON: counts for every spec and rule, and every case."""
    specs = {
        spec: {
            "version": meaning(spec)["version"],
            **counts,
            "rules": {rule: dict(of) for rule, of in counts_by_rule(verdicts, spec).items()},
        }
        for spec, counts in counts_by_spec(verdicts).items()
    }
    cases = [
        {
            "id": str(verdict.case),
            "rules": verdict.case.rules,
            "outcome": verdict.outcome,
            "input": verdict.case.input,
            "expected": verdict.case.expected,
            "got": plain(verdict.got),
            "detail": verdict.detail,
            "comment": verdict.case.comment,
        }
        for verdict in verdicts
    ]
    totals = Counter(verdict.outcome for verdict in verdicts)
    report = {"implementation": implementation, "totals": totals, "specs": specs, "cases": cases}
    return json.dumps(report, indent=1, allow_nan=False)


def junit_report(implementation: str, verdicts: Sequence[Verdict]) -> str:
    """Return a run as JUnit XML: a suite per spec, a test per case."""
    suites = ElementTree.Element("testsuites", name=_xml_text(implementation))
    for spec, counts in counts_by_spec(verdicts).items():
        of_spec = [verdict for verdict in verdicts if verdict.case.spec == spec]
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=spec,
            tests=str(len(of_spec)),
            failures=str(sum(verdict.is_failure for verdict in of_spec)),
            errors="0",
            skipped=str(counts["skipped"]),
        )
        for verdict in of_spec:
            test = ElementTree.SubElement(
                suite, "testcase", classname=spec, name=verdict.case.description
            )
            if verdict.is_failure:
                failure = ElementTree.SubElement(test, "failure", message=verdict.outcome)
                failure.text = _xml_text(failure_text(verdict))
            elif verdict.outcome == "skipped":
                ElementTree.SubElement(test, "skipped", message=_xml_text(verdict.detail))
    # As "unicode" the declaration would name the encoding of the locale; files are UTF-8.
    xml: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return xml.decode("utf-8")


def _has_no_result(verdict: Verdict) -> bool:
    return verdict.outcome != "unexpected_pass" and bool(verdict.detail)


def _profile_text(case: Case) -> str:
    """Return the data of a case's profile that decide what its reply means; "" without one."""
    if "profile" not in case.input:
        return ""
    declared = request(case)["input"]["profile"]
    kinds = {
        kind: {key: value for key, value in data.items() if key not in ("write", "example")}
        for kind, data in declared.items()
        if isinstance(data, dict)
    }
    return json.dumps({"name": declared["name"], **kinds})


def _differences(verdict: Verdict) -> Iterator[str]:
    """Yield the entries of an object that are not the expected ones."""
    got, expected = plain(verdict.got), verdict.case.expected
    if isinstance(got, str) and isinstance(expected, (int, float, str)) and got != "nan":
        yield "a text, where a number is due"
    if not (isinstance(got, dict) and isinstance(expected, dict)) or "error" in (got | expected):
        return
    tolerance = meaning(verdict.case.spec)["tolerance"]
    for key in expected:
        if key not in got:
            yield f"{key} is missing"
        elif not agrees(got[key], expected[key], tolerance):
            yield f"{key}: expected {_short(expected[key])}, got {_short(got[key])}"
    if not verdict.case.spec.startswith("parsers/"):
        yield from (f"{key} is not expected" for key in got if key not in expected)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 600 else f"{text[:400]} .. {text[-180:]}"


def _xml_text(text: str) -> str:
    return re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd]", "?", text)
