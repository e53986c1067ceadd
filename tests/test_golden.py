"""Every golden case, against this package."""

import pytest

from lmms_eval_grounding.conformance import own_answer
from lmms_eval_grounding.corpus import Case, is_met, load_cases


@pytest.mark.parametrize("case", load_cases(), ids=str)
def test_case(case: Case) -> None:
    got = own_answer(case)
    assert is_met(case, got), f"got {got}, expected {case.expected}; {case.comment}"
