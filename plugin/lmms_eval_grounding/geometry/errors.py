"""The error of the mask modules, and how it shows what was found."""

from __future__ import annotations

import reprlib


class MaskError(ValueError):
    """An invalid mask; the message says what was found and what is needed."""


def shown(value: object) -> str:
    """Return a short text for a value from outside, however long, deep or odd it is."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an int of more digits than Python agrees to print
        return f"a {type(value).__name__} too long to print"
