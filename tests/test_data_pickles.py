"""Pickles read as data: what comes out, what is refused by name, and what damage is reported."""

import collections
import os
import pickle
import random
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_grounding.data.errors import SourceError
from lmms_eval_grounding.data.pickles import load, read_pickle

PLAIN = {
    "metainfo": {"categories": {"chair": 1, "t\u00fcr": 2, "\ud800": 3}},
    "numbers": (0, 255, 256, 65_536, -1, 2**40, -(2**70), 1.5, float("inf"), True, False, None),
    "bytes": [b"", b"\x00\xff", b"x" * 300],
    "texts": ["", "x" * 300],
    "sets": [set(), {1, 2}, frozenset({"a"})],
    "ordered": collections.OrderedDict(b=1, a=2),
    "nested": [[[]], ((),), {"a": {"b": []}}],
    "many": list(range(2_500)),  # more than the 1,000 that a pickler hands over at once
}
ARRAYS = [
    np.eye(4),
    np.arange(6, dtype=">i2").reshape(2, 3),
    np.arange(6, dtype="<u4").reshape(2, 3).T,
    np.zeros((0, 9)),
    np.zeros(0, dtype=np.int64),
    np.array(3.5),
    np.array([True, False]),
    np.array(["one", "\u00e9"]),
    np.array([b"ab"]),
    np.array([1 + 2j]),
    np.eye(4)[1:, ::2],
]
SCALARS = [np.float64(0.1), np.float32(0.5), np.int64(-3), np.bool_(True), np.str_("ab")]


def same(found: Any, expected: Any) -> bool:
    if type(found) is not type(expected):
        return False
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(
            same(found[key], value) for key, value in expected.items()
        )
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_come_out_as_they_went_in(protocol: int) -> None:
    assert same(load(pickle.dumps(PLAIN, protocol)), PLAIN)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("numpy_1", [False, True])
def test_arrays_scalars_and_types_come_out_under_both_module_paths(
    protocol: int, numpy_1: bool
) -> None:
    # Each twice, so that the memo of the pickle is in play.
    data = pickle.dumps([ARRAYS, ARRAYS, SCALARS, np.dtype("<f4"), np.dtype("<f4")], protocol)
    if numpy_1:
        # The names are shorter there; the length of a text stands before it.
        for module in (b"multiarray", b"numeric"):
            new, old = b"numpy._core." + module, b"numpy.core." + module
            data = data.replace(bytes([len(new)]) + new, bytes([len(old)]) + old)
            data = data.replace(b"c" + new, b"c" + old)
        assert b"numpy.core." in data
        assert b"numpy._core." not in data
    arrays, again, scalars, *types = load(data)
    assert arrays == again or all(a is b for a, b in zip(arrays, again, strict=True))
    for found, expected in zip(arrays, ARRAYS, strict=True):
        assert type(found) is np.ndarray
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        assert not found.flags.writeable
    assert [(type(scalar), scalar) for scalar in scalars] == [(type(s), s) for s in SCALARS]
    assert types == [np.dtype("<f4")] * 2


def test_a_file_is_read_with_progress_and_without(tmp_path: Path) -> None:
    path = tmp_path / "some.pkl"
    path.write_bytes(pickle.dumps(PLAIN))
    assert same(read_pickle(path), PLAIN)
    assert same(read_pickle(path, progress=True), PLAIN)


# What is refused, by name, and does not happen


class _Runs:
    """An object whose unpickling calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._reduced = (function, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reduced


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_a_pickle_would_run_is_named_and_does_not_run(tmp_path: Path, protocol: int) -> None:
    folder = tmp_path / "made"
    data = pickle.dumps({"data_list": [_Runs(os.mkdir, str(folder))]}, protocol)
    with pytest.raises(SourceError, match=rf"refused: the pickle asks for {os.name}.mkdir"):
        load(data)
    assert not folder.exists()
    pickle.loads(data)
    assert folder.exists(), "this pickle does not run anything, so the test shows nothing"


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def stacked(module: str, name: str) -> bytes:
    return text(module) + text(name) + b"\x93"


ARRAY = b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR"


def dtype(
    code: str, order: str = "|", rest: bytes = b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00"
) -> bytes:
    name = b"cnumpy\ndtype\n" + text(code) + b"\x89\x88\x87R"
    return name + b"(K\x03" + text(order) + b"NNN" + rest + b"tb"


FLOATS = dtype("f8", "<")


def array(element: bytes, shape: bytes, raw: bytes) -> bytes:
    return ARRAY + b"(K\x01" + shape + element + b"\x89C" + bytes([len(raw)]) + raw + b"tb"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"cos\nsystem\n" + text("exit 1") + b"\x85R", "os.system"),
        (b"cbuiltins\neval\n" + text("1") + b"\x85R", "builtins.eval"),
        (stacked("builtins", "exec"), "builtins.exec"),
        (stacked("numpy", "load"), "numpy.load"),
        (stacked("numpy", "ndarray.tofile"), "numpy.ndarray.tofile"),
        (stacked("numpy._core.multiarray", "fromfile"), "numpy._core.multiarray.fromfile"),
        (b"(ios\nsystem\n", "os.system"),
        (b"ccopyreg\n_reconstructor\n", "copyreg._reconstructor"),
        (b"cbuiltins\nbytearray\n", "builtins.bytearray"),
        (stacked("a\nb\x1b[31m", "c"), "a?b?[31m.c"),
        (b"cnumpy\nndarray\n", "numpy.ndarray"),
        (b"cnumpy\nndarray\n)\x81", "the construction of an object"),
        (b"cnumpy\nndarray\n)}\x92", "the construction of an object"),
        (b"(cnumpy\nndarray\no", "the construction of an object"),
        (b"cnumpy\ndtype\n}b", "a change to a Named"),
        (b"}}b", "a change to a dict"),
        (b"Pid\n", "an object stored elsewhere"),
        (b"K\x01Q", "an object stored elsewhere"),
        (b"\x97", "a buffer stored elsewhere"),
        (b"\x82\xf0", "extension 240"),
        (b"\x84\x00\x01\x00\x00", "extension 256"),
        (b"c_codecs\nencode\n" + text("a") + text("zlib") + b"\x86R", "the encoding 'zlib'"),
        (array(dtype("O"), b"K\x01\x85", b"\x00" * 8), "an array of 'O'"),
        (array(dtype("O8"), b"K\x01\x85", b"\x00" * 8), "an array of 'O8'"),
        (array(dtype("f8,i4"), b"K\x01\x85", b"\x00" * 12), "an array of 'f8,i4'"),
        (array(dtype("V8"), b"K\x01\x85", b"\x00" * 8), "an array of 'V8'"),
        (array(dtype("M8[s]"), b"K\x01\x85", b"\x00" * 8), "an array of 'M8[s]'"),
        (array(dtype("(9,)f8"), b"K\x01\x85", b"\x00" * 72), "an array of '(9,)f8'"),
    ],
)
def test_other_names_and_other_ways_to_reach_out_are_refused(body: bytes, named: str) -> None:
    message = re.escape(f"refused: the pickle asks for {named} (at byte ")
    with pytest.raises(SourceError, match=f"^{message}"):
        load(b"\x80\x04" + body + b".")


def test_the_hand_written_array_is_one_that_is_read() -> None:
    raw = struct.pack("<2d", 1.5, -2.0)
    data = b"\x80\x04" + array(FLOATS, b"K\x02\x85", raw) + b"."
    np.testing.assert_array_equal(load(data), [1.5, -2.0])
    np.testing.assert_array_equal(pickle.loads(data), [1.5, -2.0])


def test_flags_of_an_element_type_have_no_effect() -> None:
    # numpy would now take the numbers for pointers to objects.
    element = dtype("f8", "<", rest=b"K\x08K\x08K\x3f")
    (found,) = load(b"\x80\x04" + array(element, b"K\x01\x85", struct.pack("<d", 7.0)) + b".")
    assert found == 7.0


# Damage


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (array(FLOATS, b"K\x03\x85", b"\x00" * 16), r"shape \(3,\) and type float64 has 16 bytes"),
        (array(FLOATS, b"J\xff\xff\xff\x7f\x85", b"\x00" * 8), "has 8 bytes"),
        (array(FLOATS, b"\x8a\x09" + b"\xff" * 8 + b"\x00\x85", b""), "has 0 bytes"),
        (array(FLOATS, b"J\xff\xff\xff\xff\x85", b""), r"has the shape \(-1,\)"),
        (array(FLOATS, b"G\x00\x00\x00\x00\x00\x00\x00\x00\x85", b""), r"has the shape \(0\.0,\)"),
        (ARRAY, "an array has no contents"),
        (ARRAY + b"\x85", "an array has no contents"),
        (b"]" + ARRAY + b"a", "an array has no contents"),
        (ARRAY + b"\x94h\x00", "an array is used before its contents are given"),
        (b"\x8e" + b"\xff" * 7 + b"\x7f", "bytes are to come, 1 are left"),
        (b"B\xff\xff\xff\xff", "4,294,967,295 bytes are to come, 1 are left"),
        (b"\x8b\xff\xff\xff\x7f", "2,147,483,647 bytes are to come, 1 are left"),
        (b"X\xff\xff\xff\xff", "4,294,967,295 bytes are to come"),
        (b"]r\xff\xff\xff\xff", "value 4,294,967,295 is noted where 0 is the next"),
        (b"j\xff\xff\xff\xff", "a damaged pickle"),
        (b"I1\n", "the instruction 0x49 is not one of plain data"),
        (b"a", "a damaged pickle"),
        (b"K\x01\x86", "a tuple has too few items"),
        (b"}(K\x01u", "a damaged pickle"),
        (b"}(]K\x01u", "a damaged pickle"),
        (b"](K\x01u", "something that is no dict"),
        (b"}K\x01a", "something that is no list"),
        (b"](K\x01\x90", "something that is no set"),
        (b"K\x01)R", "something that is no function"),
        (b"cbuiltins\nset\nK\x05\x85R", "a damaged pickle"),
        (b"cbuiltins\nbytes\nK\x05\x85R", "a damaged pickle"),
        (b"X\x01\x00\x00\x00\xff", "a damaged pickle"),
        (b"K\x01K\x02", "a damaged pickle"),
        (b"", "a damaged pickle"),
        (b"cnumpy", "a name has no end"),
        (b"N.N", "2 bytes follow its end"),
        (b"\x80\x07N", "a pickle of protocol 7"),
    ],
)
def test_damage_is_reported_with_its_place(body: bytes, reason: str) -> None:
    with pytest.raises(SourceError, match=rf"{reason}.*at byte \d"):
        load(b"\x80\x04" + body + b".")


@pytest.mark.parametrize("data", [b"\x80", b"\x80\x04", pickle.dumps([ARRAYS, PLAIN], 4)[:-1]])
def test_a_pickle_that_is_cut_off_is_reported(data: bytes) -> None:
    with pytest.raises(SourceError, match=r"ends too early|damaged pickle"):
        load(data)


def test_every_beginning_of_a_pickle_is_reported() -> None:
    for protocol in (2, 4, 5):
        data = pickle.dumps([np.eye(3), {"a": [1, 2.5, b"x", {3}]}, np.float32(1)], protocol)
        for end in range(len(data)):
            with pytest.raises(SourceError):
                load(data[:end])


def test_what_is_no_pickle_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "infos.pkl"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid")
    with pytest.raises(SourceError, match="begins with b'version https://git-lfs"):
        read_pickle(path)
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="empty"):
        read_pickle(path)
    with pytest.raises(SourceError, match="cannot be read"):
        read_pickle(tmp_path / "missing.pkl")


def test_depth_is_no_matter() -> None:
    depth = 200_000
    found = load(b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b".")
    for _ in range(depth - 1):
        (found,) = found
    assert found == []


def test_mutated_pickles_give_data_or_a_reported_error() -> None:
    chance = random.Random(0)
    value = [np.eye(4), np.float32(3), PLAIN["numbers"], {1, 2}, np.array(["ab", "c"]), {"a": b"x"}]
    outcomes: collections.Counter[str] = collections.Counter()
    for protocol in (2, 4, 5):
        data = pickle.dumps([value, value], protocol)
        for _ in range(3_000):
            mutated = bytearray(data)
            for _ in range(chance.choice((1, 1, 2, 5))):
                place = chance.randrange(2, len(mutated))
                match chance.randrange(3):
                    case 0:
                        mutated[place] = chance.randrange(256)
                    case 1:
                        del mutated[place : place + chance.randrange(1, 4)]
                    case 2:
                        mutated[place:place] = chance.randbytes(chance.randrange(1, 4))
            try:
                load(bytes(mutated))
                outcomes["read"] += 1
            except SourceError:
                outcomes["reported"] += 1
    assert outcomes["read"] > 300, outcomes
    assert outcomes["reported"] > 3_000, outcomes
