"""The golden cases: loading them, and comparing a value with the expected one.

This module reads spec/ and golden_cases/ and knows no implementation and no test framework.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Traversable

_RATIO = re.compile(r"-?[0-9]+(\.[0-9]+)?/[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True)
class Case:
    """One golden case; ``spec`` is its spec's path without the ending, e.g. ``parsers/points``."""

    spec: str
    description: str
    rules: tuple[str, ...]
    input: dict[str, Any]
    expected: Any
    comment: str = ""

    def __str__(self) -> str:
        return f"{self.spec}: {self.description}"


def load_cases(kind: str = "") -> list[Case]:
    """Return all golden cases whose spec path begins with ``kind``, e.g. ``metrics/rsvg``."""
    return [
        Case(
            spec,
            case["description"],
            tuple(case["rules"]),
            case["input"],
            case["expected"],
            case.get("comment", ""),
        )
        for spec in spec_names()
        if spec.startswith(kind)
        for case in read_json("golden_cases", f"{spec}.json")["cases"]
    ]


def spec_names() -> list[str]:
    """Return the paths of all specs that have cases, without their ending, sorted."""
    return json_names("golden_cases")


def json_names(folder: str) -> list[str]:
    """Return the paths of all JSON files of ``spec`` or ``golden_cases``, without their ending."""
    return sorted(_names(files(f"lmms_eval_grounding.{folder}"), ""))


def read_json(folder: str, path: str) -> dict[str, Any]:
    """Return a JSON file of ``spec`` or ``golden_cases`` by its path there."""
    file = files(f"lmms_eval_grounding.{folder}")
    for part in path.split("/"):
        file = file.joinpath(part)
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return data


@cache
def meaning(spec: str) -> dict[str, Any]:
    """Return what a spec states under the key of its kind, such as ``x-metric``."""
    data = read_json("spec", f"{spec}.json")
    stated: dict[str, Any] = next(data[key] for key in data if key.startswith("x-"))
    return stated


def reply_text(reply: str | dict[str, Any] | None) -> str | None:
    """Return a reply in full: long ones are written as before + times x repeat + after."""
    if not isinstance(reply, dict):
        return reply
    return f"{reply.get('before', '')}{reply['repeat'] * reply['times']}{reply.get('after', '')}"


def is_met(case: Case, got: Any) -> bool:
    """Return whether an implementation's answer to a case is the expected value.

    A parser has more to say than some cases ask for: of its fields those are compared that the
    expected value has.
    """
    if case.spec.startswith("parsers/") and isinstance(got, dict):
        got = {key: value for key, value in got.items() if key in case.expected}
    return agrees(got, case.expected, meaning(case.spec)["tolerance"])


def agrees(got: Any, expected: Any, tolerance: float) -> bool:
    """Return whether a value is the expected one.

    Numbers may differ by ``tolerance``, relative to the expected number where that is larger
    than 1; a number is expected as a JSON number, as a ratio such as ``"1/3"``, or as ``"nan"``.
    Everything else must be equal, lists in length and order, objects in their keys.
    """
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(agrees(got[key], expected[key], tolerance) for key in expected)
        )
    if isinstance(expected, list):
        return (
            isinstance(got, (list, tuple))
            and len(got) == len(expected)
            and all(agrees(g, e, tolerance) for g, e in zip(got, expected, strict=True))
        )
    if isinstance(got, (int, float)) and not isinstance(got, bool):
        return _is_near(got, expected, tolerance)
    return type(got) is type(expected) and not is_ratio(expected) and bool(got == expected)


def _is_near(got: float, expected: Any, tolerance: float) -> bool:
    if isinstance(got, float) and not math.isfinite(got):
        return math.isnan(got) and expected == "nan"
    if isinstance(expected, bool) or not (isinstance(expected, (int, float)) or is_ratio(expected)):
        return False
    exact = exact_number(expected)
    return abs(Fraction(got) - exact) <= Fraction(tolerance) * max(Fraction(1), abs(exact))


def is_ratio(written: Any) -> bool:
    """Return whether a value is a text such as ``"1/3"``; ``"100"`` is a row of a mask or an id."""
    return isinstance(written, str) and _RATIO.fullmatch(written) is not None


def exact_number(written: float | str) -> Fraction:
    """Return the number that a JSON number or a ratio such as ``"1/3"`` or ``"0.5/3"`` writes."""
    if isinstance(written, str):
        numerator, _, denominator = written.partition("/")
        return Fraction(numerator) / Fraction(denominator)
    return Fraction(str(written))


def _names(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.name.startswith("__"):
            yield from _names(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json"):
            yield prefix + entry.name.removesuffix(".json")
