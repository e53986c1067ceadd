"""Files that state which cases an evaluator is known to fail, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..corpus import Case, load_cases
from ..json_files import strict_json


class KnownFailures(NamedTuple):
    """Ids of cases that an evaluator fails, and of those where its value is not settled."""

    known: frozenset[str] = frozenset()
    undetermined: frozenset[str] = frozenset()


def load_known_failures(path: Path) -> KnownFailures:
    """Return what a file states.

    Raises
    ------
    ValueError
        If it is not of the form of spec/known_failures.json, or names a case that does not exist.
    """
    try:
        stated = strict_json(path.read_bytes())
    except (ValueError, RecursionError) as fault:
        raise ValueError(f"{path}: no JSON ({fault})") from None
    problems = form_problems(stated, load_cases())
    if problems:
        raise ValueError(f"{path}: {problems[0]}")
    return KnownFailures(
        frozenset(_ids(stated["failures"])), frozenset(_ids(stated.get("undetermined", [])))
    )


def form_problems(stated: Any, cases: Iterable[Case]) -> list[str]:
    """Return what is wrong with a file's content: form, names of cases, repetitions."""
    from ..contract import faults  # jsonschema is for files only

    problems = list(faults(stated, "known_failures.json"))
    if problems:
        return problems
    listed = [*_ids(stated["failures"]), *_ids(stated.get("undetermined", []))]
    return listing_problems(listed, {str(case) for case in cases})


def listing_problems(listed: Sequence[str], exist: Collection[str]) -> list[str]:
    """Return which ids of a list of cases belong to no case, and which are listed twice."""
    return [
        *(f"there is no case {id!r}" for id in listed if id not in exist),
        *(f"{id!r} is listed twice" for id in sorted(set(listed)) if listed.count(id) > 1),
    ]


def _ids(reasons: list[dict[str, Any]]) -> list[str]:
    return [id for reason in reasons for id in reason["cases"]]
