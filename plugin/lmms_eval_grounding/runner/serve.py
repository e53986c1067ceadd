"""A Python function as a program that answers cases: what ``--python`` starts."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from .answer import plain


def serve(function: Callable[[str, dict[str, Any]], Any], cases: IO[str], answers: IO[str]) -> None:
    """Answer every case, one a line, with ``function(spec, input)``.

    A `ValueError` is a refusal, a `NotImplementedError` a skip; any other exception is an error of
    its own name. A result that JSON cannot hold is a `TypeError`.
    """
    for line in cases:
        case = json.loads(line)
        answers.write(json.dumps({"id": case["id"], **_answer(function, case)}) + "\n")
        answers.flush()


def own_pipes() -> tuple[IO[str], IO[str]]:
    """Return the pipes to the runner, and leave others in their place.

    Whatever the function and its modules, threads and programs print goes to standard error, and
    nothing but a case is read.
    """
    cases, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return cases, answers


def _answer(function: Callable[[str, dict[str, Any]], Any], case: dict[str, Any]) -> Any:
    try:
        result = function(case["spec"], case["input"])
    except NotImplementedError as reason:
        return {"skip": str(reason) or "not implemented"}
    except Exception as fault:
        return _error(
            "ValueError" if isinstance(fault, ValueError) else type(fault).__name__, fault
        )
    try:
        result = plain(result)
        json.dumps(result, allow_nan=False)
    except Exception as fault:  # also a ValueError, which would be a refusal
        return _error("TypeError", fault)
    return {"result": result}


def _error(name: str, fault: Exception) -> dict[str, str]:
    print(f"{type(fault).__name__}: {fault}", file=sys.stderr)
    return {"error": name}


def _named(place: str) -> Callable[[str, dict[str, Any]], Any]:
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    function: Callable[[str, dict[str, Any]], Any] = getattr(importlib.import_module(module), name)
    return function


if __name__ == "__main__":
    pipes = own_pipes()
    serve(_named(sys.argv[1]), *pipes)
