"""The two JSON files of gRefCOCO, each read whole: 59 and 120 MB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeGuard

from .errors import SourceError

# What is left of a large file when a repository is cloned without Git LFS.
_POINTER = b"version https://git-lfs"

# What a 64-bit column holds; ids of COCO are positive.
_MAX_ID = 2**63 - 1


def read_json(path: Path) -> Any:
    """Return the contents of a JSON file.

    Raises
    ------
    SourceError
        When the file cannot be read or is no JSON; the message names file and place.
    """
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise SourceError(f"{path.name}: cannot be read ({fault.strerror})") from fault
    if data.startswith(_POINTER):
        raise SourceError(
            f"{path.name}: a Git LFS pointer, not the file itself; fetch it with `git lfs pull`"
        )
    try:
        return json.loads(data)
    except json.JSONDecodeError as fault:
        place = f"line {fault.lineno}, column {fault.colno}"
        raise SourceError(f"{path.name}: not JSON ({place}: {fault.msg})") from fault
    except (ValueError, RecursionError) as fault:  # no text, a huge number, or too deep
        raise SourceError(f"{path.name}: not JSON ({fault})") from fault


def is_id(value: object) -> TypeGuard[int]:
    """Say whether a value is the id of something."""
    return type(value) is int and 0 <= value <= _MAX_ID
