"""Answers that say in words that nothing is there."""

from __future__ import annotations

import re
from functools import cache

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


def says_none(answer: str, phrases: tuple[str, ...] = ()) -> bool:
    """Return whether a whole final answer is a phrase for "nothing there".

    Case, blanks, quotes and a final full stop do not matter. ``phrases`` are those of the profile,
    beside the ones everybody uses.
    """
    if len(answer) > MAX_LENGTH:
        return False
    words = " ".join(answer.strip(" \t\r\n\"'`*.!").casefold().split())
    return any(_pattern(phrase).fullmatch(words) for phrase in (*PHRASES, *phrases))


@cache
def _pattern(phrase: str) -> re.Pattern[str]:
    # "There is no way to tell" and "there is no doubt that .." deny something else.
    word = r"(?!(?:doubt|question|problem|way|need|reason)\b)[^\s.,:;!?]+"
    some_words = rf"{word}(?: {word}){{0,7}}"
    phrase = phrase.strip(" \"'.!").casefold()
    return re.compile(re.escape(phrase).replace(r"\ ", " ").replace(r"\*", some_words))
