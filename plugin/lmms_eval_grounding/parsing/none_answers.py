"""Answers that say explicitly that nothing is there, in words or in JSON.

The rules stand in spec/parsers/none_answers.json.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from . import tolerant_json

# A `*` stands for one to eight words without punctuation. Only a whole answer counts.
PHRASES = (
    "none",
    "null",
    "nothing",
    "no target",
    "no object",
    "no objects",
    "no such object",
    "no such object in the image",
    "no object found",
    "no objects found",
    "not found",
    "not present",
    "not visible",
    "there is none",
    "there are none",
    "there is no *",
    "there are no *",
    "no * found",
    "no * in the image",
    "no * in this image",
    "the * is not present",
    "the * is not present in the image",
    "the * is not in the image",
    "the * is not visible in the image",
)

MAX_LENGTH = 200  # characters; a longer answer is prose

# "There is no way to tell" and "No such file found" deny something else, or report a failure.
SOMETHING_ELSE = (
    "access|answer|connection|doubt|error|file|image|information|input|internet|module|need|other"
    "|output|permission|photo|picture|problem|question|reason|response|way"
)

ERROR_KEYS = ("error", "errors")


def says_none(answer: str, phrases: tuple[str, ...] = ()) -> bool:
    """Return whether a whole final answer is a phrase for "nothing there".

    Case, blanks, quotes and a final full stop do not matter. ``phrases`` are those of the profile,
    beside the ones everybody uses.
    """
    if len(answer) > MAX_LENGTH:
        return False
    words = " ".join(answer.strip(" \t\r\n\"'`*.!").casefold().split())
    return any(_pattern(phrase).fullmatch(words) for phrase in (*PHRASES, *phrases))


def holds_nothing(answer: str, keys: tuple[str, ...]) -> bool:
    """Return whether a whole final answer is JSON that holds nothing: ``[]``, ``{"bbox": null}``.

    Of an object only the values under ``keys`` count where it has one of them; an object that
    reports an error holds something.
    """
    value = next(tolerant_json.values(answer), None)
    if value is None or value.flag == "truncated" or not value.is_all_of(answer):
        return False
    return _is_nothing(value.data, keys)


def _is_nothing(data: Any, keys: tuple[str, ...]) -> bool:
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, tolerant_json.Pairs):
            errors = [item for key, item in value if key in ERROR_KEYS]
            given = [item for key, item in value if key in keys]
            given = given or [item for key, item in value if key not in ERROR_KEYS]
            if not given:
                return False
            pending += given + errors
        elif isinstance(value, list):
            pending += value
        elif value is not None:
            return False
    return True


@cache
def _pattern(phrase: str) -> re.Pattern[str]:
    word = r"[^\s.,:;!?()\[\]{}<>]+"
    some_words = rf"(?!(?:such )?(?:{SOMETHING_ELSE})s?\b){word}(?: {word}){{0,7}}"
    phrase = phrase.strip(" \"'.!").casefold()
    return re.compile(re.escape(phrase).replace(r"\ ", " ").replace(r"\*", some_words))
