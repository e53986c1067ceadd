"""Every golden case, against this package."""

import pytest

from lmms_eval_grounding.conformance import own_answer
from lmms_eval_grounding.corpus import Case, agrees, load_cases, meaning


@pytest.mark.parametrize("case", load_cases(), ids=str)
def test_case(case: Case) -> None:
    got = own_answer(case)
    assert agrees(got, case.expected, meaning(case.spec)["tolerance"]), (
        f"got {got}, expected {case.expected}; {case.comment}"
    )
