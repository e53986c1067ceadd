"""How the replies of a finished run were read, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .json_files import Line, LineError, json_lines
from .samples_log import logged_reply

COUNTED = ("profile", "status", "reason", "flag", "syntax")


def audit(path: Path) -> Iterator[str]:
    """Yield lines of text: how often each profile, status, reason, flag and syntax occurs.

    Parameters
    ----------
    path
        A ``*_samples_<task>.jsonl`` file that lmms-eval wrote with ``--log_samples``.

    Raises
    ------
    ValueError
        For a file without samples, and for a line that is no sample of a task of this package.
    """
    readings = [_reading(path, line) for line in json_lines(path)]
    if not readings:
        raise ValueError(f"{path}: no samples; give a *_samples_<task>.jsonl file of --log_samples")
    yield f"{path}: {len(readings)} samples"
    for name in COUNTED:
        counter = Counter(value for reading in readings for value in _values(reading, name))
        for value, count in counter.most_common():
            yield f"{name:8} {value:24} {count:7} {count / len(readings):8.2%}"


def _reading(path: Path, line: Line) -> Mapping[str, Any]:
    try:
        reading = logged_reply(line.value).reading
    except (ValueError, LookupError, TypeError) as fault:
        raise LineError(path, line.number, f"no sample of lmms-eval ({fault!r})") from None
    if not reading:
        raise LineError(path, line.number, "no sample of a task of this package")
    return reading


def _values(reading: Mapping[str, Any], name: str) -> list[str]:
    if name == "flag":
        return [str(flag) for flag in reading.get("flags") or ()]
    return [str(reading.get(name))]
