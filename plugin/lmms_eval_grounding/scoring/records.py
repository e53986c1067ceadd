"""Records of scored samples as a file, so that shards are scored apart and their numbers together.

The first line says what they are (spec/records/score_partial.json); then one record a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from .. import __version__
from ..contract import ContractError, check
from ..json_files import Line, LineError, json_lines, write_whole
from ..metrics.samples import Record
from .kinds import KINDS
from .samples import Scored

HEADER = "records/score_partial.json"


def write_records(scored: Scored, path: Path) -> None:
    """Write the records of scored samples."""
    header = {
        "benchmark": scored.benchmark,
        "version": __version__,
        "options": scored.options,
        "records": len(scored.records),
        "repeated": scored.repeated,
        "profiles": scored.profiles,
        "missing": scored.missing,
        "unknown": scored.unknown,
    }
    check(header, HEADER)
    write_whole(path, map(json.dumps, chain([header], scored.records)))


class _Found(NamedTuple):
    """A record, and where it stands."""

    record: Record
    path: Path
    line: int


def merge_records(paths: Sequence[Path]) -> Scored:
    """Return the samples of several files as if they had been scored at once.

    A sample that one file has without a prediction and another with one has that one, and it is no
    longer a prediction of no sample where a third knows no such sample. Equal records count once.

    Raises
    ------
    ValueError
        For a file that is none of `write_records`, or is cut off; for files of different
        benchmarks or options; for a prediction apart from its target; for different records of
        one sample, by file and line.
    """
    predicted: dict[str, _Found] = {}
    missing: dict[str, _Found] = {}
    unknown: set[str] = set()
    repeated = 0
    headers = []
    for path in paths:
        lines = json_lines(path)
        header = _header(path, lines)
        headers.append(header)
        for name in ("benchmark", "options", "version"):
            if header[name] != headers[0][name]:
                raise ValueError(
                    f"{path}: {name} {header[name]}, but {headers[0][name]} in {paths[0]}"
                )
        without = set(header["missing"])
        for found in _records(path, header, lines):
            id = found.record["id"]
            first = (missing if id in without else predicted).setdefault(id, found)
            if first.record != found.record:
                what = f"another record of {id!r} than {first.path}, line {first.line}"
                raise LineError(path, found.line, what)
            repeated += first is not found and id not in without
        unknown |= set(header["unknown"])
        repeated += header["repeated"]
    left = {id: found for id, found in missing.items() if id not in predicted}
    apart = sorted(unknown & left.keys())
    if apart:
        raise ValueError(
            f"the predictions of {apart[:3]} were scored in one file and their targets in another: "
            "score each with its target"
        )
    return Scored(
        headers[0]["benchmark"],
        headers[0]["options"],
        [found.record for found in chain(predicted.values(), left.values())],
        sorted(left),
        sorted(unknown - predicted.keys()),
        repeated,
        sorted({name for header in headers for name in header["profiles"]}),
    )


def _header(path: Path, lines: Iterable[Line]) -> Record:
    first = next(iter(lines), Line(1, 0, None))
    try:
        check(first.value, HEADER)
    except ContractError as fault:
        raise LineError(path, first.number, f"no file of `score --partial` ({fault})") from None
    header: Record = first.value
    return header


def _records(path: Path, header: Record, lines: Iterable[Line]) -> Iterable[_Found]:
    count = 0
    for line in lines:
        try:
            check(line.value, KINDS[header["benchmark"]].record)
        except ContractError as fault:
            raise LineError(path, line.number, fault) from None
        count += 1
        yield _Found(line.value, path, line.number)
    if count != header["records"]:
        raise ValueError(f"{path}: {count} records where its first line tells {header['records']}")
