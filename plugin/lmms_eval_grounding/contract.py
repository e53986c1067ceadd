"""The contract between parsing, metrics and logs: what passes is checked against spec/.

The schemas of spec/records/ are compiled once. A record that breaks its schema is a defect of this
package, never of a reply; callers turn it into a sample that scores 0 and says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

if TYPE_CHECKING:
    from importlib.abc import Traversable

BASE = "https://lmms-eval-grounding.invalid/spec/"
DATA_FOLDERS = ("differences", "known_failures")  # of spec/: they hold no schemas


class ContractError(ValueError):
    """A record that does not meet its schema; the message names the field and the rule."""


def check(record: Mapping[str, Any], schema: str) -> None:
    """Raise `ContractError` unless a record meets a schema, e.g. ``records/rsvg.json``.

    Beside the schema, every number must be finite: a log line must be strict JSON.
    """
    try:
        plain = json.loads(json.dumps(record, allow_nan=False))
        if _is_met(schema)(plain):
            return
    except (TypeError, ValueError) as error:
        raise ContractError(f"{schema}: a number is not finite, or a value is no JSON") from error
    fault = next(faults(plain, schema), None)
    if fault is not None:
        raise ContractError(f"{schema}: {fault}")


def faults(instance: Any, schema: str) -> Iterator[str]:
    """Yield where JSON data do not meet a schema in spec/, and why."""
    for error in validator(schema).iter_errors(instance):
        yield f"{error.json_path}: {error.message[:200]}"


@cache
def validator(schema: str) -> Draft202012Validator:
    """Return the compiled validator of a schema in spec/, by its path there."""
    return Draft202012Validator({"$ref": BASE + schema}, registry=_registry())


def finite(value: float) -> float | None:
    """Return a number, or None for NaN and infinity, which strict JSON cannot hold."""
    return value if math.isfinite(value) else None


@cache
def _is_met(schema: str) -> Callable[[Any], bool]:
    """Return a compiled test of a schema, a hundred times as fast as the validator with reasons."""
    import jsonschema_rs  # noqa: PLC0415 - the lint of the corpus works without it

    registry = jsonschema_rs.Registry(list(_contents().items()))
    compiled = jsonschema_rs.Draft202012Validator({"$ref": BASE + schema}, registry=registry)
    is_valid: Callable[[Any], bool] = compiled.is_valid
    return is_valid


@cache
def _registry() -> Registry[Any]:
    resources = [(uri, Resource.from_contents(schema)) for uri, schema in _contents().items()]
    return Registry().with_resources(resources).crawl()


@cache
def _contents() -> dict[str, Any]:
    """Return all schemas of spec/; none is read a second time."""
    folder = files("lmms_eval_grounding.spec")
    return {BASE + path: json.loads(file.read_text("utf-8")) for path, file in _schemas(folder, "")}


def _schemas(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name not in DATA_FOLDERS:
            yield from _schemas(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json"):
            yield prefix + entry.name, entry
