"""What a pickle may name: how numpy and Python write arrays, scalars, sets and bytes.

Each name stands for a function of this module. numpy's own would trust what they are given: a
``dtype`` may be told that its bytes are object pointers, an array that it is larger than its bytes.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

import numpy as np

from .errors import SourceError

# Codes of array elements: bool, whole, real and complex numbers, bytes, texts, and their width.
_ELEMENT = re.compile(r"b1|[iufcSU][1-9][0-9]{0,5}")
_SHOWN = 60  # characters of a foreign name in a message


class Unfilled:
    """An array or type whose contents the next instruction gives; never seen from outside."""

    __slots__ = ("fill", "memo_places")

    def __init__(self, fill: Callable[[Any], Any]) -> None:
        self.fill = fill
        self.memo_places: list[int] = []


class Named:
    """What stands for an admitted name: it can be called and passed on, not looked into."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any] | None) -> None:
        self.name = name
        self.call = call


def refuse(what: str) -> NoReturn:
    """Raise the error that names what a pickle asks for."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in what[:_SHOWN])
    raise SourceError(f"refused: the pickle asks for {shown}")


def _bytes_of_text(text: str, encoding: str) -> bytes:
    """Undo how protocol 2 writes bytes."""
    if encoding not in ("latin1", "latin-1"):
        refuse(f"the encoding {encoding!r}")
    return text.encode("latin-1")


def _no_bytes() -> bytes:
    return b""


def _unfilled_dtype(code: str, _align: bool = False, _copy: bool = True) -> Unfilled:
    return Unfilled(partial(_filled_dtype, code))


def _filled_dtype(code: str, state: tuple[Any, ...]) -> np.dtype[Any]:
    """Return the element type by its code and byte order; nothing else of the state is used."""
    order = state[1]
    if order not in ("<", ">", "|", "="):
        raise SourceError(f"an element type has the byte order {order!r:.{_SHOWN}}")
    if type(code) is not str or not _ELEMENT.fullmatch(code):
        refuse(f"an array of {code!r}")
    dtype: np.dtype[Any] = np.dtype(code).newbyteorder(order)
    return dtype


def _unfilled_array(subtype: Any, shape: Any, _code: Any) -> Unfilled:
    if getattr(subtype, "name", "") != "numpy.ndarray" or shape != (0,):
        raise SourceError("an array does not begin as numpy writes it")
    return Unfilled(_filled_array)


def _filled_array(state: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    _version, shape, dtype, column_major, raw = state
    return _array(raw, dtype, shape, "F" if column_major else "C")


def _array(raw: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray[Any, Any]:
    """Return the array whose elements are these bytes; it cannot be written to."""
    if not isinstance(dtype, np.dtype) or type(raw) not in (bytes, bytearray):
        raise SourceError("an array is not given as bytes with an element type")
    if type(shape) is not tuple or not all(type(side) is int and side >= 0 for side in shape):
        raise SourceError(f"an array has the shape {shape!r:.{_SHOWN}}")
    if math.prod(shape) * dtype.itemsize != len(raw):
        raise SourceError(
            f"an array of shape {shape!r:.{_SHOWN}} and type {dtype} has {len(raw)} bytes"
        )
    if order not in ("C", "F"):
        raise SourceError(f"an array has the order {order!r:.{_SHOWN}}")
    array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, bytes(raw), order=order)
    return array


def _scalar(dtype: Any, raw: Any) -> Any:
    return _array(raw, dtype, (), "C")[()]


def _admitted() -> Mapping[tuple[str, str], Named]:
    calls: dict[tuple[str, str], Callable[..., Any] | None] = {
        ("numpy", "ndarray"): None,
        ("numpy", "dtype"): _unfilled_dtype,
        ("_codecs", "encode"): _bytes_of_text,
        ("collections", "OrderedDict"): OrderedDict,
    }
    for core in ("numpy.core", "numpy._core"):  # numpy 1 and numpy 2
        calls[f"{core}.multiarray", "_reconstruct"] = _unfilled_array
        calls[f"{core}.multiarray", "scalar"] = _scalar
        calls[f"{core}.numeric", "_frombuffer"] = _array
    for builtins in ("builtins", "__builtin__"):
        calls[builtins, "set"] = set
        calls[builtins, "frozenset"] = frozenset
        calls[builtins, "bytes"] = _no_bytes  # protocol 2 writes b"" as a call without arguments
    return {place: Named(".".join(place), call) for place, call in calls.items()}


ADMITTED = _admitted()
