"""What an implementation made of a case."""

from __future__ import annotations

from typing import Any, NamedTuple


class Answer(NamedTuple):
    """A result, or one of three reasons why there is none.

    Parameters
    ----------
    result
        In the form of a case's expected value; a refusal is ``{"error": "ValueError"}``.
    skipped
        Why the implementation does not do such cases.
    fault
        What went wrong instead of an answer.
    not_run
        Why it was not asked.
    """

    result: Any = None
    skipped: str = ""
    fault: str = ""
    not_run: str = ""
