"""Files that state where ours, the circulating recipe and official code differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ..contract import faults
from ..corpus import Case, exact_number, is_ratio
from .known_failures import listing_problems


def row_problems(
    stated: Any, cases: Iterable[Case], specs: Mapping[str, Collection[str]]
) -> list[str]:
    """Return what is wrong with a file's content: form, names, repetitions, rows without sense.

    Parameters
    ----------
    stated
        What the file holds.
    cases
        The golden cases.
    specs
        The specs that an evaluator is held against, by its name.
    """
    problems = list(faults(stated, "differences.json"))
    if problems:
        return problems
    by_id = {str(case): case for case in cases}
    listed = [row["case"] for row in stated["rows"]]
    return [
        *listing_problems(listed, by_id),
        *(
            fault
            for row in stated["rows"]
            if row["case"] in by_id
            for fault in _value_problems(row, by_id[row["case"]], specs)
        ),
    ]


def _value_problems(
    row: Mapping[str, Any], case: Case, specs: Mapping[str, Collection[str]]
) -> Iterator[str]:
    for evaluator in row["official"]:
        if case.spec not in specs.get(evaluator, ()):
            yield f"{str(case)!r}: there is no evaluator {evaluator!r} with such a value"
    theirs = [*row["official"].values(), *([row["recipe"]] if "recipe" in row else [])]
    if all(_plain(value) == _plain(case.expected) for value in theirs):
        yield f"{str(case)!r}: no value differs from ours"


def _plain(value: Any) -> Any:
    """Return a value so that equal numbers are equal, however they are written."""
    return exact_number(value) if isinstance(value, (int, float)) or is_ratio(value) else value
