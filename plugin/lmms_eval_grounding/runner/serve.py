"""A Python function as a program that answers cases: what ``--python`` starts."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .answer import plain


def serve(function: Callable[[str, dict[str, Any]], Any]) -> None:
    """Answer every case on standard input with ``function(spec, input)``.

    A `ValueError` is a refusal, a `NotImplementedError` a skip; any other exception is an error of
    its own name. What the function prints goes to standard error.
    """
    answers = sys.stdout
    for line in sys.stdin:
        case = json.loads(line)
        with contextlib.redirect_stdout(sys.stderr):
            answer = {"id": case["id"], **_answer(function, case)}
        answers.write(json.dumps(answer, allow_nan=False) + "\n")
        answers.flush()


def _answer(function: Callable[[str, dict[str, Any]], Any], case: dict[str, Any]) -> Any:
    try:
        return {"result": plain(function(case["spec"], case["input"]))}
    except NotImplementedError as reason:
        return {"skip": str(reason) or "not implemented"}
    except Exception as fault:
        print(f"{type(fault).__name__}: {fault}", file=sys.stderr)
        return {"error": "ValueError" if isinstance(fault, ValueError) else type(fault).__name__}


def _named(place: str) -> Callable[[str, dict[str, Any]], Any]:
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    function: Callable[[str, dict[str, Any]], Any] = getattr(importlib.import_module(module), name)
    return function


if __name__ == "__main__":
    serve(_named(sys.argv[1]))
