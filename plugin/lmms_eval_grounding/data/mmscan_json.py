"""The samples of ``MMScan_VG.json`` one by one: the file has near a gigabyte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

from .errors import SourceError

_CHUNK = 2**20  # characters read at a time
# A value that does not end within so many characters is damaged; the longest samples have some
# thousand.
_MAX_VALUE = 2**24
_SPACE = " \t\n\r"


def samples_of(path: Path, split: str) -> Iterator[Any]:
    """Yield the entries of one split, in the order of the file, each as JSON gives it.

    Parameters
    ----------
    path
        A JSON file ``{"train": [...], "val": [...]}``.
    split
        The key.

    Raises
    ------
    SourceError
        When the file cannot be read, is no such JSON, ends too early or lacks the split.
    """
    try:
        with path.open(encoding="utf-8") as file:
            yield from _Reader(file, path.name).entries(split)
    except UnicodeDecodeError as fault:
        raise SourceError(f"{path.name}: not UTF-8 ({fault.reason})") from fault
    except OSError as fault:
        raise SourceError(f"{path.name}: cannot be read ({fault.strerror})") from fault


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class _Reader:
    """Reads a JSON text value by value, of which only the present chunk is in memory."""

    def __init__(self, file: TextIO, name: str) -> None:
        self._file = file
        self._name = name
        self._decoder = json.JSONDecoder(parse_constant=_no_constant)
        self._text = ""
        self._at = 0
        self._before = 0  # characters of the file before the text in memory
        self._where = "the beginning"

    def entries(self, wanted: str) -> Iterator[Any]:
        found: list[str] = []
        self._expect("{")
        while self._next() != "}":
            if found:
                self._expect(",")
            key = self._value()
            if not isinstance(key, str) or key in found:
                self._fail(f"a new name of a split is due, not {key!r:.60}")
            found.append(key)
            self._expect(":")
            for entry in self._array(key):
                if key == wanted:
                    yield entry
        self._expect("}")
        self._where = "the end"
        if self._next():
            self._fail("something follows the end")
        if wanted not in found:
            there = ", ".join(found) or "none"
            raise SourceError(f"{self._name}: has no split {wanted!r}; it has {there}")

    def _array(self, key: str) -> Iterator[Any]:
        self._where = f"the beginning of {key}"
        self._expect("[")
        number = 0
        while self._next() != "]":
            if number:
                self._expect(",")
            self._where = f"{key} sample {number}"
            yield self._value()
            number += 1
        self._expect("]")

    def _next(self) -> str:
        """Return the next character that is no space, or an empty text at the end of the file."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def _expect(self, character: str) -> None:
        found = self._next()
        if found != character:
            self._fail(f"{character!r} is due, {'not ' + repr(found) if found else 'it ends'}")
        self._at += 1

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError as fault:
                ahead = fault.pos - self._at if isinstance(fault, json.JSONDecodeError) else 0
                # Perhaps the value only is not all in memory yet.
                if len(self._text) - self._at > _MAX_VALUE or not self._more():
                    self._at += ahead
                    self._fail(getattr(fault, "msg", str(fault)))
            except RecursionError:
                self._fail("it is nested too deeply")
            else:
                # A number at the end of the text in memory may go on.
                if end < len(self._text) or not self._more():
                    self._at = end
                    return value

    def _more(self) -> bool:
        """Read on; what is done with is let go of."""
        chunk = self._file.read(_CHUNK)
        self._before += self._at
        self._text = self._text[self._at :] + chunk
        self._at = 0
        return bool(chunk)

    def _fail(self, reason: str) -> NoReturn:
        place = f"character {self._before + self._at:,}, {self._where}"
        raise SourceError(f"{self._name}: not the JSON of the release ({place}: {reason})")
