"""Whether an answer is the expected value, and whether a failure was known."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from ..corpus import Case, is_met
from .answer import Answer

Outcome = Literal[
    "passed", "failed", "skipped", "not_run", "known_failure", "unexpected_pass", "undetermined"
]
OUTCOMES: tuple[Outcome, ...] = (
    "passed",
    "failed",
    "skipped",
    "not_run",
    "known_failure",
    "unexpected_pass",
    "undetermined",
)
FAILURES: frozenset[Outcome] = frozenset({"failed", "not_run", "unexpected_pass"})


class Verdict(NamedTuple):
    """The outcome of a case, and what the implementation said.

    ``got`` is the result, where there is one; ``detail`` says in words what happened otherwise.
    """

    case: Case
    outcome: Outcome
    got: Any = None
    detail: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether the run must not be called a success."""
        return self.outcome in FAILURES


def judged(
    case: Case,
    answer: Answer,
    known: Collection[str] = (),
    undetermined: Collection[str] = (),
) -> Verdict:
    """Return the verdict on an answer.

    Parameters
    ----------
    case, answer
        What was asked and what came back.
    known
        Ids of cases that must fail; one that is met is an ``unexpected_pass``.
    undetermined
        Ids of cases that may end either way.
    """
    if answer.not_run:
        return Verdict(case, "not_run", detail=answer.not_run)
    if answer.skipped:
        return Verdict(case, "skipped", detail=answer.skipped)
    met = not answer.fault and is_met(case, answer.result)
    outcome: Outcome = "passed" if met else "failed"
    detail = answer.fault
    if str(case) in known:
        outcome = "unexpected_pass" if met else "known_failure"
        detail = "the case is listed as a known failure, and passes" if met else detail
    elif str(case) in undetermined:
        outcome = "undetermined"
    return Verdict(case, outcome, answer.result, detail)
