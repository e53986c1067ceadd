"""The numbers of scored samples, as a table for a person and as JSON for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..contract import check, finite
from ..metrics.samples import unique_samples
from .intervals import LEVEL, Interval, bootstrap_intervals
from .samples import Scored, metric_items
from .weighted import weighted_metric

# How many ids are named of those that are only counted.
NAMED = 5


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are found; see `bootstrap_intervals`."""

    resamples: int
    seed: int


@dataclass(frozen=True)
class Report:
    """Numbers of scored samples; ``intervals`` is empty where no ``bootstrap`` was asked for."""

    scored: Scored
    numbers: Mapping[str, float]
    intervals: Mapping[str, Interval]
    bootstrap: Bootstrap | None


def report_on(scored: Scored, bootstrap: Bootstrap | None = None, progress: bool = False) -> Report:
    """Return the numbers, and with a ``bootstrap`` their intervals.

    The numbers are those of a run of lmms-eval with the same replies; neither they nor the
    intervals depend on the order of the samples.
    """
    records = unique_samples(scored.records)
    numbers, weighted = {}, {}
    for name, metric in scored.metrics.items():
        items = metric_items(records, name, metric)
        numbers[name] = metric(items)
        if bootstrap:
            weighted[name] = weighted_metric(name, metric, items, records)
    intervals = (
        bootstrap_intervals(weighted, len(records), bootstrap.resamples, bootstrap.seed, progress)
        if bootstrap
        else {}
    )
    return Report(scored, numbers, intervals, bootstrap)


def report_text(report: Report) -> str:
    """Return what was scored, what was not as it should be, and the table of numbers."""
    scored = report.scored
    head = [f"{len(report.scored.records):,} samples of {scored.benchmark}"]
    head[0] += "".join(f", {name} {value}" for name, value in scored.options.items())
    head[0] += f", replies read with {', '.join(scored.profiles)}" if scored.profiles else ""
    head += remarks(scored)
    cells = [[name, _number(value)] for name, value in report.numbers.items()]
    if report.bootstrap:
        for row in cells:
            low, high = report.intervals[row[0]]
            row.append(f"[{_number(low)}, {_number(high)}]")
        cells.insert(0, ["", "value", f"{LEVEL:.0%} interval"])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in cells]
    return "\n".join([*head, "", *map("  ".join, rows)])


def remarks(scored: Scored) -> list[str]:
    """Return a sentence for each thing that was not as it should be."""
    told = (
        (scored.missing, "samples without a prediction count as unparseable"),
        (scored.unknown, "predictions of no sample do not count"),
    )
    lines = [f"{len(ids):,} {what}: {_first(ids)}" for ids, what in told if ids]
    if scored.repeated:
        lines.append(
            f"{scored.repeated:,} predictions given again with the same content count once"
        )
    return lines


def report_json(report: Report) -> dict[str, Any]:
    """Return the report as spec/records/score_report.json has it."""
    scored = report.scored
    method = {"method": "percentile bootstrap over samples", "level": LEVEL}
    data = {
        "benchmark": scored.benchmark,
        "version": __version__,
        "options": dict(scored.options),
        "samples": len(scored.records),
        "repeated": scored.repeated,
        "profiles": list(scored.profiles),
        "missing": {"count": len(scored.missing), "first": list(scored.missing[:NAMED])},
        "unknown": {"count": len(scored.unknown), "first": list(scored.unknown[:NAMED])},
        "metrics": {
            name: {"value": finite(value), "interval": _bounds(report.intervals.get(name))}
            for name, value in report.numbers.items()
        },
        "intervals": report.bootstrap and {**method, **vars(report.bootstrap)},
    }
    check(data, "records/score_report.json")
    return data


def _bounds(interval: Interval | None) -> list[float] | None:
    if interval is None or finite(interval.low) is None:
        return None
    return list(interval)


def _number(value: float) -> str:
    return "undefined" if finite(value) is None else f"{value:.4f}"


def _first(ids: Sequence[str]) -> str:
    return ", ".join([*map(repr, ids[:NAMED]), *(["..."] if len(ids) > NAMED else [])])
