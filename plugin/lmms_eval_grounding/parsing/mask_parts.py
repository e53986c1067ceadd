"""The parts that a mask is given in: what a mask syntax finds in a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..geometry.rle import Rle
from . import tolerant_json
from .tolerant_json import Value, Word

MAX_PARTS = 10_000  # an answer of more parts is refused, so that its time stays bounded


class Part(NamedTuple):
    """One part of a mask: valid at the image's size, or with the fault that keeps it from being.

    A valid part is a mask, or the polygon ``(x1, y1, x2, y2, ...)`` in pixels. Without either and
    without a fault, the part says explicitly that nothing is there.
    """

    rle: Rle | None = None
    polygon: tuple[float, ...] = ()
    fault: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether the part is a mask or a polygon."""
        return self.rle is not None or bool(self.polygon)


NOTHING = Part()


class MaskReading(NamedTuple):
    """What a syntax found: parts in the order of the text, and flags."""

    parts: list[Part]
    flags: frozenset[str] = frozenset()

    @property
    def rank(self) -> int:
        """How much was found: 3 with a valid part, 2 with a fault, 1 with an explicit nothing."""
        if any(part.is_valid for part in self.parts):
            return 3
        return 2 if any(part.fault for part in self.parts) else len(self.parts[:1])


def json_reading(text: str, parts_of: Callable[[Value], Iterator[Part]]) -> MaskReading:
    """Return the parts of all JSON values in a text, as far as one more than there may be.

    Flags tell of the values that gave parts, and of a cut anywhere.
    """
    parts: list[Part] = []
    flags: set[str] = set()
    for value in tolerant_json.values(text):
        found = list(islice(parts_of(value), MAX_PARTS + 1 - len(parts)))
        parts += found
        if value.flag and (found or value.flag == "truncated"):
            flags.add(value.flag)
    return MaskReading(parts, frozenset(flags))


def limited(reading: MaskReading) -> MaskReading:
    """Return a reading, or one with a single fault in the place of too many parts."""
    if len(reading.parts) > MAX_PARTS:
        return reading._replace(parts=[Part(fault="bad_mask")])
    return reading


def is_given(value: Any) -> bool:
    """Return whether a value is more than null or an unquoted word, as in an echoed placeholder."""
    return value is not None and not isinstance(value, Word)
