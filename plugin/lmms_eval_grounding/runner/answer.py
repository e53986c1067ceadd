"""What an implementation made of a case."""

from __future__ import annotations

import math
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


def plain(value: Any) -> Any:
    """Return a result as strict JSON holds it: no arrays; nan and the infinities as text."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
