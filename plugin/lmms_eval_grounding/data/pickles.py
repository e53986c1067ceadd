"""Pickles read as data: containers, numbers, texts and numpy arrays, and nothing that runs.

A pickle is a program for a small stack machine. Python's own machine calls what the program names;
even with a list of admitted names, numpy's part of it trusts the program with memory (a ``dtype``
may be told that its bytes are object pointers), and its memo grows to any index the program says.
This machine knows the instructions that plain data need, builds arrays itself from bytes whose
number it has compared with shape and type, and names what else was asked for.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from .errors import SourceError
from .pickled_names import ADMITTED, Named, Unfilled, refuse

# Larger than any release needs (the largest known has some hundred megabytes).
MAX_BYTES = 2**34


def read_pickle(path: Path, progress: bool = False) -> Any:
    """Return the contents of a pickle file.

    Parameters
    ----------
    path
        A pickle of protocol 2 to 5 whose contents are dicts, lists, tuples, sets, numbers, texts,
        bytes, None, and numpy arrays, scalars and types of numbers and texts. Arrays are read-only.
    progress
        Whether to show a progress bar on stderr.

    Raises
    ------
    SourceError
        When it asks for anything else (which is named and does not happen), or is cut off,
        damaged or no pickle at all. The message does not name the file.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if not size:
                raise SourceError("it is empty")
            if size > MAX_BYTES:
                raise SourceError(f"{size:,} bytes; the limit is {MAX_BYTES:,}")
            with (
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
                tqdm(
                    desc=path.name,
                    total=size,
                    unit="B",
                    unit_scale=True,
                    leave=False,
                    disable=not progress,
                ) as bar,
            ):
                return load(data, lambda done: bar.update(done - bar.n))
    except OSError as fault:
        raise SourceError(f"cannot be read ({fault.strerror})") from fault


def load(data: bytes | mmap.mmap, report: Callable[[int], object] = lambda _: None) -> Any:
    """Return the contents of a pickle; see `read_pickle`.

    ``report`` is told now and then how many bytes are done.
    """
    if data[:1] != b"\x80":
        raise SourceError(f"no pickle of protocol 2 to 5; it begins with {data[:40]!r}")
    machine = _Machine(data)
    try:
        return machine.run(report)
    except SourceError as fault:
        raise SourceError(f"{fault} (at byte {machine.at:,})") from fault
    except (
        AttributeError,
        IndexError,
        KeyError,
        OverflowError,
        TypeError,
        ValueError,
    ) as fault:
        # Instructions that do not fit each other or the stack, as in a damaged file.
        raise SourceError(f"a damaged pickle (at byte {machine.at:,}: {fault})") from fault
    except MemoryError as fault:
        raise SourceError(f"the memory does not suffice (at byte {machine.at:,})") from fault


class _Machine:
    """Runs one pickle.

    Attributes
    ----------
    at
        Where the instruction in work begins.
    """

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.data = data
        self.size = len(data)
        self.at = 0
        self.next = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self.unfilled = 0

    def run(self, report: Callable[[int], object]) -> Any:
        data, size = self.data, self.size
        while True:
            for _ in range(_PER_REPORT):
                self.at = self.next
                if self.at == size:
                    raise SourceError("it ends too early")
                self.next += 1
                code = data[self.at]
                if code == _STOP:
                    return self._result()
                instruction = _INSTRUCTIONS.get(code)
                if instruction is None:
                    raise SourceError(f"the instruction {code:#04x} is not one of plain data")
                instruction(self)
            report(self.next)

    def _result(self) -> Any:
        if self.next != self.size:
            raise SourceError(f"{self.size - self.next:,} bytes follow its end")
        (result,) = self.stack
        if isinstance(result, Named):
            refuse(result.name)
        if self.unfilled:
            raise SourceError("an array has no contents")
        return result

    # Reading

    def take(self, count: int) -> bytes:
        """Return the next so many bytes."""
        end = self.next + count
        if count < 0 or end > self.size:
            left = self.size - self.next
            raise SourceError(f"it ends too early: {count:,} bytes are to come, {left:,} are left")
        taken: bytes = self.data[self.next : end]
        self.next = end
        return taken

    def byte(self) -> int:
        """Return the next byte as a number."""
        value = self.data[self.next]  # behind the end, load() reports the IndexError
        self.next += 1
        return value

    def count(self, width: int) -> int:
        """Return the unsigned number in the next so many bytes."""
        return int.from_bytes(self.take(width), "little")

    def line(self) -> str:
        """Return the text up to the next line feed."""
        end = self.data.find(b"\n", self.next)
        if end < 0:
            raise SourceError("it ends too early: a name has no end")
        text = self.take(end - self.next).decode("utf-8")
        self.next = end + 1
        return text

    def marked(self) -> list[Any]:
        """Return what lies above the last mark, and take it and the mark away."""
        mark = self.marks.pop()
        items = self.stack[mark:]
        del self.stack[mark:]
        return items

    def protocol(self) -> None:
        number = self.byte()
        if not 2 <= number <= 5:
            raise SourceError(f"a pickle of protocol {number}; 2 to 5 are known")

    def frame(self) -> None:
        self.take(8)  # a hint for buffered reading: how far the frame reaches

    # Names and calls

    def name(self, module: Any, name: Any) -> None:
        stand_in = ADMITTED.get((module, name))
        if stand_in is None:
            refuse(f"{module}.{name}")
        self.stack.append(stand_in)

    def global_name(self) -> None:
        module = self.line()
        self.name(module, self.line())

    def stack_global(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.name(module, name)

    def old_instance(self) -> None:
        module = self.line()
        refuse(f"{module}.{self.line()}")

    def reduce(self) -> None:
        arguments, function = self.stack.pop(), self.stack[-1]
        if type(function) is not Named or function.call is None or type(arguments) is not tuple:
            raise SourceError("refused: the pickle calls something that is no function")
        made = function.call(*arguments)
        self.unfilled += type(made) is Unfilled
        self.stack[-1] = made

    def build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if type(target) is not Unfilled or type(state) is not tuple:
            refuse(f"a change to a {type(target).__name__}")
        self.unfilled -= 1
        self.stack[-1] = filled = target.fill(state)
        for place in target.memo_places:
            self.memo[place] = filled

    # The memo: values that occur more than once

    def memoize(self) -> None:
        self.put(len(self.memo))

    def put(self, place: int) -> None:
        value = self.stack[-1]
        if type(value) is Unfilled:
            value.memo_places.append(place)
        if place == len(self.memo):
            self.memo.append(value)
        elif place < len(self.memo):
            self.memo[place] = value
        else:
            raise SourceError(f"value {place:,} is noted where {len(self.memo):,} is the next")

    def get(self, place: int) -> None:
        value = self.memo[place]
        if type(value) is Unfilled:
            raise SourceError("an array is used before its contents are given")
        self.stack.append(value)

    # Values

    def text(self, size: int) -> None:
        self.stack.append(self.take(size).decode("utf-8", "surrogatepass"))

    def raw(self, size: int) -> None:
        self.stack.append(self.take(size))

    def raw_array(self) -> None:
        self.stack.append(bytearray(self.take(self.count(8))))

    def whole(self, size: int) -> None:
        self.stack.append(int.from_bytes(self.take(size), "little", signed=True))

    def real(self) -> None:
        self.stack.append(_REAL.unpack(self.take(8))[0])

    # Containers

    def tuple_of(self, count: int) -> None:
        if count > len(self.stack):
            raise SourceError("a tuple has too few items")
        start = len(self.stack) - count
        self.stack[start:] = [tuple(self.stack[start:])]

    def marked_dict(self) -> None:
        items = self.marked()
        self.stack.append(dict(zip(items[::2], items[1::2], strict=True)))

    def frozen_set(self) -> None:
        self.stack.append(frozenset(self.marked()))

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.fill_dict([key, value])

    def fill_dict(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise SourceError("items are put into something that is no dict")
        target.update(zip(items[::2], items[1::2], strict=True))

    def fill_list(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise SourceError("items are put into something that is no list")
        target.extend(items)

    def fill_set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not set:
            raise SourceError("items are put into something that is no set")
        target.update(items)


_REAL = struct.Struct(">d")
_STOP = ord(".")
_PER_REPORT = 2**17  # instructions, about a tenth of a second

# By the names of pickletools. What pickles of protocol 0 and 1 alone use, what refers to anything
# outside (PERSID, BINPERSID, EXT1, EXT2, EXT4, NEXT_BUFFER) and what constructs objects is not
# there, or refuses.
_INSTRUCTIONS: Mapping[int, Callable[[_Machine], None]] = {
    code[0]: instruction
    for code, instruction in (
        (b"\x80", _Machine.protocol),  # PROTO
        (b"\x95", _Machine.frame),  # FRAME
        (b"(", lambda m: m.marks.append(len(m.stack))),  # MARK
        (b"N", lambda m: m.stack.append(None)),  # NONE
        (b"\x88", lambda m: m.stack.append(True)),  # NEWTRUE
        (b"\x89", lambda m: m.stack.append(False)),  # NEWFALSE
        (b"K", lambda m: m.stack.append(m.byte())),  # BININT1
        (b"M", lambda m: m.stack.append(m.count(2))),  # BININT2
        (b"J", lambda m: m.whole(4)),  # BININT
        (b"\x8a", lambda m: m.whole(m.byte())),  # LONG1
        (b"\x8b", lambda m: m.whole(m.count(4))),  # LONG4
        (b"G", _Machine.real),  # BINFLOAT
        (b"\x8c", lambda m: m.text(m.byte())),  # SHORT_BINUNICODE
        (b"X", lambda m: m.text(m.count(4))),  # BINUNICODE
        (b"\x8d", lambda m: m.text(m.count(8))),  # BINUNICODE8
        (b"C", lambda m: m.raw(m.byte())),  # SHORT_BINBYTES
        (b"B", lambda m: m.raw(m.count(4))),  # BINBYTES
        (b"\x8e", lambda m: m.raw(m.count(8))),  # BINBYTES8
        (b"\x96", _Machine.raw_array),  # BYTEARRAY8
        (b")", lambda m: m.stack.append(())),  # EMPTY_TUPLE
        (b"\x85", lambda m: m.tuple_of(1)),  # TUPLE1
        (b"\x86", lambda m: m.tuple_of(2)),  # TUPLE2
        (b"\x87", lambda m: m.tuple_of(3)),  # TUPLE3
        (b"t", lambda m: m.stack.append(tuple(m.marked()))),  # TUPLE
        (b"]", lambda m: m.stack.append([])),  # EMPTY_LIST
        (b"l", lambda m: m.stack.append(m.marked())),  # LIST
        (b"a", lambda m: m.fill_list([m.stack.pop()])),  # APPEND
        (b"e", lambda m: m.fill_list(m.marked())),  # APPENDS
        (b"}", lambda m: m.stack.append({})),  # EMPTY_DICT
        (b"d", _Machine.marked_dict),  # DICT
        (b"s", _Machine.set_item),  # SETITEM
        (b"u", lambda m: m.fill_dict(m.marked())),  # SETITEMS
        (b"\x8f", lambda m: m.stack.append(set())),  # EMPTY_SET
        (b"\x90", lambda m: m.fill_set(m.marked())),  # ADDITEMS
        (b"\x91", _Machine.frozen_set),  # FROZENSET
        (b"q", lambda m: m.put(m.byte())),  # BINPUT
        (b"r", lambda m: m.put(m.count(4))),  # LONG_BINPUT
        (b"\x94", _Machine.memoize),  # MEMOIZE
        (b"h", lambda m: m.get(m.byte())),  # BINGET
        (b"j", lambda m: m.get(m.count(4))),  # LONG_BINGET
        (b"c", _Machine.global_name),  # GLOBAL
        (b"\x93", _Machine.stack_global),  # STACK_GLOBAL
        (b"R", _Machine.reduce),  # REDUCE
        (b"b", _Machine.build),  # BUILD
        (b"i", _Machine.old_instance),  # INST
        (b"o", lambda _: refuse("the construction of an object")),  # OBJ
        (b"\x81", lambda _: refuse("the construction of an object")),  # NEWOBJ
        (b"\x92", lambda _: refuse("the construction of an object")),  # NEWOBJ_EX
        (b"P", lambda _: refuse("an object stored elsewhere")),  # PERSID
        (b"Q", lambda _: refuse("an object stored elsewhere")),  # BINPERSID
        (b"\x97", lambda _: refuse("a buffer stored elsewhere")),  # NEXT_BUFFER
        (b"\x82", lambda m: refuse(f"extension {m.byte()}")),  # EXT1
        (b"\x83", lambda m: refuse(f"extension {m.count(2)}")),  # EXT2
        (b"\x84", lambda m: refuse(f"extension {m.count(4)}")),  # EXT4
    )
}
