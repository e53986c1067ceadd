"""A program under test may do what it likes: it is reported case by case, and never waited for."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lmms_eval_grounding.corpus import load_cases
from lmms_eval_grounding.runner import program
from lmms_eval_grounding.runner.answer import Answer
from lmms_eval_grounding.runner.answers import program_answers
from lmms_eval_grounding.runner.request import request

Answers = Callable[..., list[Answer]]
CASES = load_cases("metrics/rsvg/mean_iou")
RIGHT = """
import json, os, sys, time
def say(case, **answer):
    print(json.dumps({"id": case["id"], **answer}), flush=True)
for number, line in enumerate(sys.stdin):
    case = json.loads(line)
    ODD
    say(case, result=number)
"""
FIRST = 'if case["id"].endswith("the mean of two ratios"):'


@pytest.fixture
def answers_of(tmp_path: Path) -> Answers:
    def run(text: str, timeout: float = 20, give_up: int = 3) -> list[Answer]:
        script = tmp_path / "program.py"
        script.write_text(text)
        answers = program_answers(CASES, [sys.executable, str(script)], timeout, give_up)
        return list(answers)

    return run


def odd(deed: str) -> str:
    """Return a program that does something odd at its first case, and nothing else wrong."""
    return RIGHT.replace("ODD", f"{FIRST} {deed}")


def test_a_program_that_behaves_is_started_once(answers_of: Answers) -> None:
    answers = answers_of(RIGHT.replace("ODD", ""))
    assert answers == [Answer(result=number) for number in range(len(CASES))]


BREAKDOWNS = {
    "hangs": ("time.sleep(600)", "gave no answer within 1 s"),
    "writes without end": ("\n        while True: print('x' * 99, end='')", "more than 5000 bytes"),
    "dies": ("sys.exit('no GPU')", "ended with exit code 1: no GPU"),
    "is killed": ("os.kill(os.getpid(), 9)", "ended with exit code -9"),
    "ends in silence": ("sys.exit()", "ended with exit code 0"),
    "closes its output": ("os.close(1); time.sleep(600)", "closed its output"),
    "chatters": ("print('Loading ..')", "wrote a line that is no JSON"),
    "writes nan": ('print(\'{"id": 1, "result": NaN}\')', "NaN is not JSON"),
    "writes bytes": ("sys.stdout.buffer.write(b'\\xff\\n')", "wrote a line that is no JSON"),
    "writes deep JSON": ("print('[' * 4000)", "wrote a line that is no JSON"),
    "writes a deep result": (
        "print(json.dumps({'id': case['id'], 'result': 0})[:-2] + '[' * 300 + ']' * 300 + '}')",
        "nested in more than 100 levels",
    ),
    "writes a list": ("print('[1]')", "wrote a line that is no answer: [1]"),
    "names no case": ("print('{\"result\": 1}')", "wrote a line that is no answer"),
    "answers another case": ("case['id'] = CASE", "answered another case than the one asked"),
    "leaves a child": (
        "os.fork() or time.sleep(600); time.sleep(600)",
        "gave no answer within 1 s",
    ),
}


@pytest.mark.parametrize("what", BREAKDOWNS)
def test_a_breakdown_costs_one_case(
    what: str,
    answers_of: Answers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deed, message = BREAKDOWNS[what]
    monkeypatch.setattr(program, "MAX_LINE", 5000)
    first, *others = answers_of(odd(deed.replace("CASE", repr(str(CASES[1])))), timeout=1)
    assert first.fault.startswith("the program ")
    assert message in first.fault
    assert others == [Answer(result=number) for number in range(len(CASES) - 1)]


def test_an_answer_too_many_is_noticed_at_the_next_case(answers_of: Answers) -> None:
    first, second, *others = answers_of(odd("say(case, result=7)"))
    assert first == Answer(result=7)
    assert "answered another case than the one asked" in second.fault
    assert others == [Answer(result=number) for number in range(len(CASES) - 2)]


def test_a_program_that_breaks_down_again_and_again_is_given_up(answers_of: Answers) -> None:
    answers = answers_of("raise SystemExit('no such module')", give_up=2)
    assert [bool(answer.fault) for answer in answers] == [True, True] + [False] * (len(CASES) - 2)
    assert {answer.not_run for answer in answers[2:]} == {"the program broke down 2 times in a row"}


def test_breakdowns_apart_are_not_in_a_row(answers_of: Answers) -> None:
    answers = answers_of(RIGHT.replace("ODD", "if number == 1: sys.exit()"), give_up=2)
    assert [bool(answer.fault) for answer in answers] == [bool(n % 2) for n in range(len(CASES))]
    assert not any(answer.not_run for answer in answers)


def test_a_program_that_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    (long,) = (
        case
        for case in load_cases("parsers/final_answer")
        if case.description == "a reply of 4,000,000 characters is read"
    )
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    (answer,) = program_answers([long], command, 1, 3)
    assert answer.fault == "the program did not read the case within 1 s"


def test_complaints_are_drained_and_the_last_is_told(answers_of: Answers) -> None:
    flood = "sys.stderr.write('w' * 300000 + chr(10))"
    assert answers_of(odd(flood)) == [Answer(result=number) for number in range(len(CASES))]
    first, *_ = answers_of(odd(f"{flood}; sys.exit('the end')"))
    assert first.fault == "the program ended with exit code 1: the end"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("result='nan'", Answer(result="nan")),
        ("error='ValueError'", Answer(result={"error": "ValueError"})),
        ("skip='masks only'", Answer(skipped="masks only")),
        ("skip=''", Answer(skipped="no reason given")),
        ("result=1, skip='x'", None),
        ("error=1", None),
        ("value=1", None),
    ],
)
def test_an_answer_has_one_of_three_forms(
    said: str, answer: Answer | None, answers_of: Answers
) -> None:
    first, *others = answers_of(odd(f"say(case, {said}); continue"))
    if answer:
        assert first == answer
    else:
        assert first.fault.startswith("an answer holds one of result, error, skip")
    assert others == [Answer(result=number) for number in range(1, len(CASES))]


def test_a_program_that_cannot_be_started_is_an_error_of_the_user() -> None:
    with pytest.raises(OSError, match="no_such_program"):
        next(program_answers(CASES, ["no_such_program"], 1, 3))


def test_a_line_is_ascii_and_holds_the_case_but_not_what_is_expected() -> None:
    for case in load_cases():
        line = request(case)
        assert json.dumps(line).isascii()
        assert line.keys() == {"id", "spec", "input"}
        assert line["input"].keys() == case.input.keys()
        assert isinstance(line["input"].get("reply", ""), str | None)
        assert all(isinstance(reply, str | None) for reply in line["input"].get("replies", ()))


def test_options_of_a_profile_are_set_in_the_data_that_a_program_gets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lmms_eval_grounding.conformance import own_answer, passes
    from lmms_eval_grounding.parsing import profile

    with_options = [case for case in load_cases("parsers") if ":" in case.input["profile"]]
    assert len(with_options) > 10
    for case in with_options:
        data = request(case)["input"]["profile"]
        assert data.pop("name") == case.input["profile"]
        with monkeypatch.context() as patch:
            patch.setattr(profile, "_declared", lambda data=data: {"declared": data})
            case.input["profile"] = "declared"
            assert passes(case, own_answer), case
