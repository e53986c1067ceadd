"""The parser cases have teeth, and spec, code, cases and public reports keep in step."""

import inspect
import pkgutil
import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from conftest import REPOSITORY

from lmms_eval_grounding import conformance, parsing
from lmms_eval_grounding.conformance import own_answer, passes
from lmms_eval_grounding.corpus import Case, load_cases, read_json, spec_names
from lmms_eval_grounding.parsing import answer, boxes, none_answers, syntaxes
from lmms_eval_grounding.parsing.boxes import parse_boxes
from lmms_eval_grounding.parsing.orders import ORDERS
from lmms_eval_grounding.parsing.parsed import ParsedBoxes
from lmms_eval_grounding.parsing.profile import Profile, load_profile
from lmms_eval_grounding.parsing.spaces import Space
from lmms_eval_grounding.parsing.syntaxes import SYNTAXES

ALL_CASES = load_cases("parsers")
CASES = [case for case in ALL_CASES if case.spec.count("/") == 1]  # boxes in an image
SHORT_FIRST = sorted(CASES, key=lambda case: isinstance(case.input["reply"], dict))
SHARED_RULES = {
    "final_answer",
    "none_answers",
    "tolerant_json",
    "coordinate_spaces",
    "box_orders",
}
Parser = Callable[[str | None, Profile, int, int], ParsedBoxes]


def with_boxes(parsed: ParsedBoxes, found: list[Any]) -> ParsedBoxes:
    return replace(parsed, boxes=tuple(found))


def x_and_y_swapped(reply: str | None, profile: Profile, width: int, height: int) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    return with_boxes(parsed, [(y1, x1, y2, x2) for x1, y1, x2, y2 in parsed.boxes])


def last_box_first(reply: str | None, profile: Profile, width: int, height: int) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    return with_boxes(parsed, list(parsed.boxes[::-1]))


def first_box_only(reply: str | None, profile: Profile, width: int, height: int) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    return with_boxes(parsed, list(parsed.boxes[:1]))


def reversed_corners_rejected(
    reply: str | None, profile: Profile, width: int, height: int
) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    if "reordered" in parsed.flags:
        return ParsedBoxes("malformed", reason="zero_area", syntax=parsed.syntax)
    return parsed


def reversed_corners_not_sorted(
    reply: str | None, profile: Profile, width: int, height: int
) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    if "reordered" not in parsed.flags:
        return parsed
    return with_boxes(parsed, [(x2, y2, x1, y1) for x1, y1, x2, y2 in parsed.boxes])


def failure_read_as_no_target(
    reply: str | None, profile: Profile, width: int, height: int
) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    return ParsedBoxes("no_target") if parsed.status == "unparseable" else parsed


def zeros_read_as_no_target(
    reply: str | None, profile: Profile, width: int, height: int
) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    zeros = re.sub(r"\s", "", reply or "") == "[0,0,0,0]"
    return ParsedBoxes("no_target") if zeros else parsed


def failure_read_as_a_box_of_zeros(
    reply: str | None, profile: Profile, width: int, height: int
) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    return parsed if parsed.boxes else ParsedBoxes("ok", ((0.0, 0.0, 0.0, 0.0),))


def any_four_numbers_are_a_box(
    reply: str | None, profile: Profile, width: int, height: int
) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    numbers = re.findall(r"\d+(?:\.\d+)?", reply or "")[:4]
    if parsed.reason != "no_box" or len(numbers) < 4:
        return parsed
    return parse_boxes(f"[{','.join(numbers)}]", load_profile("prompt"), width, height)


def out_of_space_rescued_as_pixels(
    reply: str | None, profile: Profile, width: int, height: int
) -> ParsedBoxes:
    parsed = parse_boxes(reply, profile, width, height)
    if parsed.reason != "out_of_space":
        return parsed
    return parse_boxes(reply, in_space(profile, Space("image")), width, height)


def magnitude_guessed(reply: str | None, profile: Profile, width: int, height: int) -> ParsedBoxes:
    largest = max((float(n) for n in re.findall(r"\d+(?:\.\d+)?", reply or "")), default=0)
    extent: Any = (1, 1) if largest <= 1.5 else (1000, 1000) if largest <= 1000 else "image"
    return parse_boxes(reply, in_space(profile, Space(extent)), width, height)


def in_space(profile: Profile, space: Space) -> Profile:
    return replace(profile, box=replace(profile.box, space=space))


def with_space(change: Callable[[Space], Space]) -> Parser:
    """Return a parser that reads every reply in a changed space."""

    def parser(reply: str | None, profile: Profile, width: int, height: int) -> ParsedBoxes:
        return parse_boxes(reply, in_space(profile, change(profile.box.space)), width, height)

    return parser


def extent_for(written: float, read: float) -> Callable[[Space], Space]:
    return lambda space: (
        replace(space, extent=(read, read)) if space.extent == (written, written) else space
    )


def native_limits(space: Space) -> Space:
    native = load_profile("qwen2_5_vl_native").box.space.resizes
    return replace(space, resizes=native) if space.resizes else space


def resized_as_original(space: Space) -> Space:
    return replace(space, extent="image") if space.extent == "resized" else space


def gemini_order_as_xyxy(
    reply: str | None, profile: Profile, width: int, height: int
) -> ParsedBoxes:
    if profile.box.order is ORDERS["yxyx"]:
        profile = replace(profile, box=replace(profile.box, order=ORDERS["xyxy"]))
    return parse_boxes(reply, profile, width, height)


PARSERS: dict[str, Parser] = {
    "x/y swapped": x_and_y_swapped,
    "Gemini order read as xyxy": gemini_order_as_xyxy,
    "/999 for /1000": with_space(extent_for(1000, 999)),
    "/1000 for /999": with_space(extent_for(999, 1000)),
    "/1024 for /1023": with_space(extent_for(1023, 1024)),
    "resized pixels read as original pixels": with_space(resized_as_original),
    "native limits instead of the wrapper's": with_space(native_limits),
    "one resize step of two": with_space(lambda space: replace(space, resizes=space.resizes[-1:])),
    "padded square ignored": with_space(lambda space: replace(space, padded=False)),
    "half a bin ignored": with_space(lambda space: replace(space, offset=0.0)),
    "no tolerance": with_space(lambda space: replace(space, tolerance=0.0)),
    "magnitude guessed": magnitude_guessed,
    "out of space rescued as pixels": out_of_space_rescued_as_pixels,
    "last box instead of first": last_box_first,
    "first box only": first_box_only,
    "reversed corners rejected": reversed_corners_rejected,
    "reversed corners not sorted": reversed_corners_not_sorted,
    "failure read as no_target": failure_read_as_no_target,
    "[0,0,0,0] read as no_target": zeros_read_as_no_target,
    "failure read as [0,0,0,0]": failure_read_as_a_box_of_zeros,
    "prose with digits read as a box": any_four_numbers_are_a_box,
}

Patch = tuple[Any, str, Any]

PATCHES: dict[str, Patch] = {
    "first box inside <think>": (answer, "_after_reasoning", lambda text: text),
    "unclosed reasoning read": (
        answer,
        "_after_reasoning",
        lambda text: re.sub(r"<think>.*?</think>", "", text),
    ),
    "answer block ignored": (answer, "_last_block", lambda text: (text, False)),
    "failure tags ignored": (answer, "_FAILURE_TAGS", ("\0",)),
    "no clipping": (boxes, "clip", lambda box, width, height: box),
    "angle dropped": (boxes, "bounds_of_rotated", lambda box, degrees: box),
    "rows left open tell of no cut": (syntaxes, "_CUT", frozenset()),
    "any mention of none is no_target": (
        boxes,
        "says_none",
        lambda text, phrases: "no " in text.lower() or text == "[]",
    ),
    "refusals are no_target": (
        none_answers,
        "PHRASES",
        (*none_answers.PHRASES, "i'm sorry, but i can't identify objects in this image"),
    ),
}


def refused(case: Case) -> bool:
    return not passes(case, own_answer)


def test_right_parser_is_refused_by_no_case() -> None:
    assert [str(case) for case in CASES if refused(case)] == []


@pytest.mark.parametrize("wrong", PARSERS)
def test_wrong_parser_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "parse_boxes", PARSERS[wrong])
    assert any(map(refused, SHORT_FIRST))


@pytest.mark.parametrize("wrong", PATCHES)
def test_wrong_step_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, value = PATCHES[wrong]
    monkeypatch.setattr(module, name, value)
    assert any(map(refused, SHORT_FIRST))


def test_syntaxes_specs_and_case_files_have_the_same_names() -> None:
    names = {spec.removeprefix("parsers/") for spec in spec_names() if spec.startswith("parsers/")}
    assert {name for name in names if "/" not in name} == set(SYNTAXES) | SHARED_RULES


@pytest.mark.parametrize("name", SYNTAXES)
def test_syntax_is_recognised_in_its_own_cases(name: str) -> None:
    named = {c.expected.get("syntax") for c in CASES if c.spec == f"parsers/{name}"}
    assert name in named


@pytest.mark.parametrize("kind", ["status", "reason", "flag"])
def test_every_status_reason_and_flag_occurs(kind: str) -> None:
    known = set(read_json("spec", "types.json")["$defs"][kind]["enum"])
    used = set()
    for case in ALL_CASES:
        if "error" not in case.expected:
            used |= set(case.expected["flags"]) if kind == "flag" else {case.expected[kind]}
    assert used - {None} == known - {"internal_error"}


def test_nothing_in_parsing_takes_a_target() -> None:
    assert list(inspect.signature(parse_boxes).parameters) == [
        "reply",
        "profile",
        "width",
        "height",
    ]
    forbidden = re.compile(r"target|truth|gt|doc|label_box|expected", re.IGNORECASE)
    for module in pkgutil.iter_modules(parsing.__path__):
        members = vars(import_module(f"lmms_eval_grounding.parsing.{module.name}"))
        for name, function in members.items():
            if inspect.isfunction(function) and function.__module__.startswith(parsing.__name__):
                taken = inspect.signature(function).parameters
                assert not [p for p in taken if forbidden.fullmatch(p)], (module.name, name)


def reports() -> dict[str, list[str]]:
    """Return the public parser and coordinate reports: heading -> "repository number"."""
    log = REPOSITORY.parent / "shared" / "research" / "bugs.md"
    if not log.is_file():
        pytest.skip("the log of public reports is not beside the repository")
    found = {}
    for heading in re.findall(r"^### (B\d+ .*?)$", log.read_text("utf-8"), re.MULTILINE):
        kind = heading.rpartition(" - ")[2].partition("[")[0]
        if "parser" in kind or "coordinate" in kind:
            cited = re.findall(r"([\w.-]+/[\w.-]+)\s?(?:#|PR#)(\d+)", heading)
            found[heading] = [f"{repository} {number}" for repository, number in cited]
    return found


def test_every_public_report_has_a_case_or_a_reason_why_not() -> None:
    listed = (REPOSITORY / "golden_cases" / "parsers" / "OUT_OF_SCOPE.md").read_text("utf-8")
    text = " ".join([case.comment for case in ALL_CASES] + [listed])
    known = {
        f"{repository} {number}"
        for repository, numbers in re.findall(
            r"([\w.-]+/[\w.-]+) (?:issues?|pull requests?) ((?:\d+, )*\d+)", text
        )
        for number in numbers.split(", ")
    }
    missing = [heading for heading, cited in reports().items() if not known & set(cited)]
    assert missing == []
