"""JSON files of users: read strictly, a line at a time; written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Line(NamedTuple):
    """One line of a JSONL file: its number from 1, the byte it starts at, and what it holds."""

    number: int
    start: int
    value: Any


class LineError(ValueError):
    """A line that cannot be used; the message begins with the file and the line."""

    def __init__(self, path: Path, number: int, fault: object) -> None:
        super().__init__(f"{path}, line {number}: {fault}")


def json_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a JSONL file that are not blank.

    Raises
    ------
    LineError
        For a line that is not strict JSON; NaN and Infinity are not.
    """
    with path.open("rb") as lines:
        start = 0
        for number, text in enumerate(lines, start=1):
            if text.strip():
                try:
                    yield Line(number, start, strict_json(text))
                except (ValueError, RecursionError) as fault:
                    raise LineError(path, number, f"no JSON ({fault})") from None
            start += len(text)


def strict_json(text: bytes) -> Any:
    """Return what a JSON text holds; `ValueError` for NaN and Infinity too."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(token: str) -> Any:
    raise ValueError(f"{token} is not JSON")


def check_writable(path: Path | None) -> None:
    """Raise unless a file can be written there, before the work whose result it is for."""
    if path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise ValueError(f"{path}: {path.parent} is no folder that can be written to")
    if path is not None and path.exists() and not path.is_file():
        raise ValueError(f"{path}: no file, which could be replaced by the result")


def write_whole(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file that is there whole or not at all, in place of one that was there."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
