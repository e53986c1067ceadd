"""Schemas as plain functions: whether a value meets one, for the keywords that records need.

jsonschema says what is wrong with a value, and takes a millisecond for every fifty numbers. These
functions only say whether something is wrong, fifty times as fast. A keyword that is not known
here makes a schema one of which they say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Test = Callable[[Any], bool]
Resolve = Callable[[str, Any], tuple[Any, Any]]
"""From a reference, and where it stands, to the schema that it names and where that stands."""


class UnknownKeywordError(Exception):
    """A schema says something that is not known here."""


def compiled(schema: Any, place: Any, resolve: Resolve) -> Test:
    """Return whether a value, as json.loads gives it, meets a schema.

    Parameters
    ----------
    schema
        A JSON Schema 2020-12 without recursion.
    place
        Where it stands, handed to ``resolve``.
    resolve
        Follows a ``$ref``.

    Raises
    ------
    UnknownKeywordError
        If the schema, or one that it refers to, has a keyword that is not known.
    """
    if isinstance(schema, bool):
        return lambda value: schema
    tests = []
    for keyword, said in schema.items():
        if keyword in _SILENT:
            continue
        if keyword == "$ref":
            tests.append(compiled(*resolve(said, place), resolve))
        elif keyword in _PARTS:
            parts = [compiled(part, place, resolve) for part in said]
            tests.append(_PARTS[keyword](parts))
        elif keyword in _SIMPLE:
            tests.append(_SIMPLE[keyword](said))
        elif keyword == "items" and "prefixItems" not in schema:
            tests.append(_numbers if _is_numbers(said) else _items(compiled(said, place, resolve)))
        elif keyword == "properties":
            tests.append(_properties({k: compiled(v, place, resolve) for k, v in said.items()}))
        elif keyword == "additionalProperties" and said is False:
            tests.append(_only(frozenset(schema.get("properties", ()))))
        elif keyword == "if":
            branches = [schema.get(name, True) for name in ("if", "then", "else")]
            tests.append(_if(*(compiled(branch, place, resolve) for branch in branches)))
        else:
            raise UnknownKeywordError(keyword)
    return tests[0] if len(tests) == 1 else _all(tests)


_SILENT = {"$schema", "$id", "$defs", "title", "description", "then", "else"}


def _all(tests: list[Test]) -> Test:
    return lambda value: all(test(value) for test in tests)


def _any(tests: list[Test]) -> Test:
    return lambda value: any(test(value) for test in tests)


_PARTS = {"allOf": _all, "anyOf": _any}


def _if(condition: Test, then: Test, otherwise: Test) -> Test:
    return lambda value: then(value) if condition(value) else otherwise(value)


def _items(test: Test) -> Test:
    return lambda value: not isinstance(value, list) or all(map(test, value))


def _is_numbers(said: Any) -> bool:
    return isinstance(said, dict) and {k: said[k] for k in said if k not in _SILENT} == {
        "type": "number"
    }


def _numbers(value: Any) -> bool:
    """Return whether a list holds numbers only; most of what is checked are long lists of them."""
    return not isinstance(value, list) or {*map(type, value)} <= {int, float}


def _properties(tests: dict[str, Test]) -> Test:
    def meets(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        return all(test(value[name]) for name, test in tests.items() if name in value)

    return meets


def _only(names: frozenset[str]) -> Test:
    return lambda value: not isinstance(value, dict) or value.keys() <= names


def _is_integer(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: dict[str, Test] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _type(said: str | list[str]) -> Test:
    return _TYPES[said] if isinstance(said, str) else _any([_TYPES[name] for name in said])


def _same(value: Any, other: Any) -> bool:
    """Return whether two scalars are the same in JSON, where true is not 1."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _enum(said: list[Any]) -> Test:
    if not all(isinstance(item, (str, int, float, type(None))) for item in said):
        raise UnknownKeywordError("enum of lists or objects")
    return lambda value: any(_same(value, item) for item in said)


def _unique(said: bool) -> Test:
    def meets(value: Any) -> bool:
        if not said or not isinstance(value, list):
            return True
        # Of anything but texts nothing is known, so that the slow check decides.
        return all(isinstance(item, str) for item in value) and len(set(value)) == len(value)

    return meets


def _pattern(said: re.Pattern[str]) -> Test:
    return lambda value: not isinstance(value, str) or said.search(value) is not None


_is_number = _TYPES["number"]

_SIMPLE: dict[str, Callable[[Any], Test]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda said: _enum([said]),
    "required": lambda said: lambda v: not isinstance(v, dict) or all(name in v for name in said),
    "uniqueItems": _unique,
    "minItems": lambda said: lambda v: not isinstance(v, list) or len(v) >= said,
    "maxItems": lambda said: lambda v: not isinstance(v, list) or len(v) <= said,
    "minLength": lambda said: lambda v: not isinstance(v, str) or len(v) >= said,
    "maxLength": lambda said: lambda v: not isinstance(v, str) or len(v) <= said,
    "pattern": lambda said: _pattern(re.compile(said)),
    "minimum": lambda said: lambda v: not _is_number(v) or v >= said,
    "maximum": lambda said: lambda v: not _is_number(v) or v <= said,
    "exclusiveMinimum": lambda said: lambda v: not _is_number(v) or v > said,
    "exclusiveMaximum": lambda said: lambda v: not _is_number(v) or v < said,
}
