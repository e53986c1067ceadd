"""Where answers come from: this package, or a program that is restarted when it breaks down."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence

from ..corpus import Case
from .answer import Answer
from .program import Program, ProgramError
from .request import request


def own_answers(cases: Iterable[Case]) -> Iterator[Answer]:
    """Yield what this package makes of each case."""
    own = importlib.import_module("..conformance", __package__)  # numpy is for our code only
    for case in cases:
        try:
            yield Answer(result=own.own_answer(case))
        except Exception as fault:
            yield Answer(fault=f"{type(fault).__name__}: {fault}")


def program_answers(
    cases: Iterable[Case], command: Sequence[str], timeout: float, give_up: int
) -> Iterator[Answer]:
    """Yield what a program answers to each case; one case is in flight at a time.

    After a breakdown (see `ProgramError`) the program is started anew for the next case. After
    ``give_up`` breakdowns in a row the remaining cases are not run.

    Raises
    ------
    OSError
        If the command cannot be started.
    """
    breakdowns = 0
    remaining = iter(cases)
    while breakdowns < give_up:
        try:
            with Program(command) as program:
                for case in remaining:
                    answer = program.answer(request(case), timeout)
                    breakdowns = 0
                    yield answer
            return
        except ProgramError as fault:
            breakdowns += 1
            answer = Answer(fault=f"the program {fault}")
        yield answer
    for _ in remaining:
        yield Answer(not_run=f"the program broke down {give_up} times in a row")
