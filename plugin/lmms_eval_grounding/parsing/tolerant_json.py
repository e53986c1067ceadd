"""JSON as models write it: one pass, linear in the text, never an exception.

Strict JSON is read by the standard library. What that refuses is read again by a tolerant scanner:
single or smart quotes, full-width punctuation, trailing commas, Python's ``None`` and tuples,
unquoted words, closers that do not match, and text that stops in the middle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAX_DEPTH = 64  # containers nested deeper are skipped, so that memory stays bounded


class Pairs(list[tuple[Any, Any]]):
    """A JSON object as its (key, value) pairs in order; a repeated key keeps every value."""


class CutPairs(Pairs):
    """An object that the text ends in: fields may be missing."""


class Unclosed(list[Any]):
    """A list whose closing bracket is missing: its last items may be, too."""


class Word(str):
    """An unquoted word, such as the ``<left>`` of an echoed placeholder."""


class _Cut(Word):
    """A value that the end of the text cut: like a word, it is no number, mask or id."""


CUT = _Cut()


class _Broken:
    """A value that was damaged; it stands where a value was given but is not usable."""

    def __repr__(self) -> str:
        return "BROKEN"


BROKEN = _Broken()


class Value(NamedTuple):
    """One JSON value found in a text.

    ``data`` is made of `Pairs`, `CutPairs`, ``list``, `Unclosed`, ``str``, `Word`, ``int``,
    ``float`` (also NaN and infinity), ``bool``, ``None``, `BROKEN` and `CUT`; ``text[start:end]``
    is what was read. ``flag`` is ``"truncated"`` if the text ends inside the value, else
    ``"repaired"`` if it is no strict JSON.
    """

    data: Any
    start: int
    end: int
    flag: str | None

    def is_all_of(self, text: str) -> bool:
        """Return whether the value is all of the text it was found in."""
        return (self.start, self.end) == (0, len(text))


def values(text: str) -> Iterator[Value]:
    """Yield the JSON objects and lists of a text in order, whatever stands around them."""
    strict = True
    opener = _OPENER.search(text)
    while opener:
        value = _strict(text, opener.start()) if strict else None
        # One refusal is enough: each costs the library a count of all lines before it.
        strict = value is not None
        value = value or _Scanner(text, opener.start()).read()
        yield value
        opener = _OPENER.search(text, value.end)


def is_json(text: str) -> bool:
    """Return whether a text is one strict JSON object or list and nothing else."""
    value = _strict(text, 0) if text[:1] in ("{", "[") else None
    return value is not None and value.end == len(text)


def end_of_value(text: str, start: int) -> int:
    """Return where the object or list that opens at ``start`` ends."""
    return _Scanner(text, start).read().end


def number(token: str) -> int | float | None:
    """Return the number a token writes ("12", "0.5", "12%", "1e2", "nan"), or None if it is none.

    Leading zeros are refused, as in JSON; a number too large for a float is infinite.
    """
    token = narrow(token)
    if _NUMBER.fullmatch(token):
        digits = token.rstrip("%")
        whole = len(digits) <= 15 and digits.lstrip("-").isdecimal()
        return int(digits) if whole else float(digits)
    return not_finite(token)


def not_finite(token: str) -> float | None:
    """Return what a word for a number that is not finite means ("nan", "-Infinity"), or None."""
    return float(token) if _NOT_FINITE.fullmatch(token) else None


def narrow(text: str) -> str:
    """Return a text with the full-width forms of ASCII characters as these, one for one."""
    return text if text.isascii() else text.translate(_FULL_WIDTH)


_FULL_WIDTH = {code + 0xFEE0: code for code in range(0x21, 0x7F)}
_OPENER = re.compile(r"[\[{［｛]")
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,9})?%?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_LITERALS = {"true": True, "false": False, "null": None, "none": None}
_DECODER = json.JSONDecoder(
    object_pairs_hook=Pairs,
    parse_int=lambda digits: int(digits) if len(digits) <= 15 else float(digits),  # as `number`
    parse_float=float,
    parse_constant=float,
    strict=False,
)


def _strict(text: str, start: int) -> Value | None:
    try:
        data, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return Value(data, start, end, flag=None)


_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<open>[\[{(［｛（])
    |(?P<close>[\]})］｝）])
    |(?P<colon>[:：])
    |(?P<comma>[,;，；、])
    |(?P<quote>["'“‘])
    |(?P<word>[^\s\[\]{}()［］｛｝（）:：,;，；、"“”‘’']
        [^\s\[\]{}()［］｛｝（）:：,;，；、"“”‘’]*)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {"]": "[", "］": "[", ")": "[", "）": "[", "}": "{", "｝": "{"}
# What ends a string, by its first quote, and escapes that do not. A single quote ends a string only
# where a value can end, and inside a word it is an apostrophe.
_STRING_STOPS = {
    '"': re.compile(r'\\.|"', re.DOTALL),
    "'": re.compile(r"\\.|'(?=\s*(?:[,:;\]})，：；、］｝）]|\Z))", re.DOTALL),
    "“": re.compile("”"),
    "‘": re.compile("’"),
}
_ABSENT = object()
_CUT_FIELD = (Word(), Word())  # an object that is cut inside its first value has a field, too


@dataclass
class _Frame:
    kind: str
    items: list[Any] = field(default_factory=list)
    key: Any = _ABSENT
    value: Any = _ABSENT
    is_number: bool = False  # whether the value is one, kept since telling it reads a word again

    def put(self, value: Any) -> None:
        """Take a value; a second one before the next comma is a slip of quoting, and is dropped.

        But a list is a value of its own, and a number that follows another is the next of a list.
        In a field, or with quotes around one of them, two numbers leave no value to be trusted.
        """
        is_number = _is_number(value)
        if self.value is not _ABSENT:
            follows_number = is_number and self.is_number
            quoted = isinstance(value, str) or isinstance(self.value, str)
            if follows_number and (quoted or self.kind == "{"):
                value, is_number = BROKEN, False
            elif follows_number or isinstance(value, (list, _Broken)):
                self.end_item()
            else:
                return
        self.value, self.is_number = value, is_number

    def colon(self) -> None:
        if self.kind == "{" and self.key is _ABSENT:
            if isinstance(self.value, list):
                self.end_item()  # a list is a value, wherever it stands
            else:
                self.key, self.value = self.value, _ABSENT

    def end_item(self) -> None:
        if self.kind == "{":
            if self.value is not _ABSENT and (
                self.key is not _ABSENT or isinstance(self.value, list)
            ):
                self.items.append((None if self.key is _ABSENT else self.key, self.value))
            self.key = _ABSENT
        elif self.value is not _ABSENT:
            self.items.append(self.value)
        self.value = _ABSENT

    def closed(self) -> Any:
        self.end_item()
        return Pairs(self.items) if self.kind == "{" else self.items

    def damaged(self) -> Any:
        """Return what is left when the closer is missing: whole items, but no row of numbers."""
        if self.kind == "{" and self.key is not _ABSENT and self.value is _ABSENT:
            self.items.append(_CUT_FIELD)
        if isinstance(self.value, (list, _Broken)) or self.kind == "{":
            self.end_item()
        if self.kind == "{":
            return Pairs(self.items)
        whole = (item for item in self.items if isinstance(item, (list, _Broken)))
        return Unclosed(whole) or BROKEN


class _Scanner:
    def __init__(self, text: str, start: int) -> None:
        self.text, self.start = text, start
        self.stack: list[_Frame] = []
        self.skipped_depth = 0

    def read(self) -> Value:
        position = self.start
        while position < len(self.text):
            token = _TOKEN.match(self.text, position)
            assert token is not None
            position = token.end()
            kind, text = str(token.lastgroup), token.group()
            if kind == "quote":
                end = _end_of_string(self.text, token.start())
                if end is None:
                    break
                kind, text, position = "string", self.text[token.start() : end], end
            done = self._take(kind, text)
            if done is not _ABSENT:
                sound = is_json(self.text[self.start : position])
                return Value(done, self.start, position, None if sound else "repaired")
        return Value(self._cut(), self.start, len(self.text), "truncated")

    def _take(self, kind: str, text: str) -> Any:
        if kind == "open":
            if len(self.stack) < MAX_DEPTH:
                self.stack.append(_Frame("{" if text in "{｛" else "["))
            else:
                self.skipped_depth += 1
        elif kind == "close":
            if self.skipped_depth:
                self.skipped_depth -= 1
            else:
                return self._close(_CLOSES[text])
        elif kind == "colon":
            self.stack[-1].colon()
        elif kind == "comma":
            self.stack[-1].end_item()
        elif kind == "string":
            self.stack[-1].put(_unescaped(text))
        elif kind == "word":
            self.stack[-1].put(_word(text))
        return _ABSENT

    def _close(self, kind: str) -> Any:
        if not any(frame.kind == kind for frame in self.stack):
            return _ABSENT
        while self.stack[-1].kind != kind:
            damaged = self.stack.pop().damaged()
            self.stack[-1].put(damaged)
        data = self.stack.pop().closed()
        if not self.stack:
            return data
        self.stack[-1].put(data)
        return _ABSENT

    def _cut(self) -> Any:
        last = self.stack[-1]
        if last.kind == "{" and isinstance(last.value, (int, float, Word)):
            last.value = CUT  # it may go on
        while True:
            data = self.stack.pop().damaged()
            if isinstance(data, Pairs):
                data = CutPairs(data)
            if not self.stack:
                return data
            if data is not BROKEN:
                self.stack[-1].put(data)


def _end_of_string(text: str, start: int) -> int | None:
    """Return where the string that opens at ``start`` ends, or None if it never does."""
    for stop in _STRING_STOPS[text[start]].finditer(text, start + 1):
        if not stop.group().startswith("\\"):
            return stop.end()
    return None


def _unescaped(quoted: str) -> str:
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        return body


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, also in quotes, or a word that begins as one."""
    if isinstance(value, str):
        return value[:1].isdecimal() or number(value.strip()) is not None
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _word(text: str) -> Any:
    value = number(text)
    if value is not None:
        return value
    return _LITERALS.get(text.lower(), Word(text))
