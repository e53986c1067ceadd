"""Running golden cases against an implementation: here, the package's own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np

from .benchmarks.host import items_of
from .corpus import Case, is_met, read_json, reply_text
from .geometry.boxes3d import rotation_from_euler
from .geometry.masks import rle_from_rows, rows_from_rle
from .parsing.boxes import parse_boxes
from .parsing.boxes3d import parse_boxes3d
from .parsing.masks import parse_mask
from .parsing.profile import load_profile
from .parsing.scene import Frame, Scene


def passes(case: Case, answer: Callable[[Case], Any]) -> bool:
    """Return whether an implementation's answer to a case is the expected value."""
    return is_met(case, answer(case))


def own_answer(case: Case) -> Any:
    """Return what this package makes of a case's input, in the form of its expected value.

    A `ValueError` becomes ``{"error": "ValueError"}``, which is what a case expects of bad input.
    """
    kind = case.spec.partition("/")[0]
    try:
        return _ANSWERS[kind](case)
    except ValueError:
        return {"error": "ValueError"}


def _called(case: Case) -> Any:
    """Return what the function of a spec's name and path makes of a case's input."""
    kind, module, name = case.spec.split("/")
    function = getattr(importlib.import_module(f"{__package__}.{kind}.{module}"), name)
    result = function(**_converted(case.input, _schema(case.spec, "input"), _TAKEN))
    plain = result.tolist() if isinstance(result, np.ndarray) else result
    return _converted(plain, _schema(case.spec, "expected"), _RETURNED)


def _converted(
    value: Any, schema: dict[str, Any], conversions: dict[str, Callable[[Any], Any]]
) -> Any:
    """Return a value with its parts converted, each by the type that the schema refers to."""
    for kind in schema.get("anyOf", [schema]):
        of_type = conversions.get(kind.get("$ref", "").rpartition("/")[2])
        if of_type and value is not None:
            return of_type(value)
        if "items" in kind and isinstance(value, list):
            return [_converted(item, kind["items"], conversions) for item in value]
        if "properties" in kind and isinstance(value, dict):
            return {
                name: _converted(item, kind["properties"].get(name, {}), conversions)
                for name, item in value.items()
            }
    return value


@cache
def _schema(spec: str, part: str) -> dict[str, Any]:
    schema: dict[str, Any] = read_json("spec", f"{spec}.json")["properties"][part]
    return schema


def _parser(case: Case) -> Any:
    if case.spec.startswith("parsers/boxes3d/"):
        return _boxes3d(case)
    profile = load_profile(case.input["profile"])
    reply = reply_text(case.input["reply"])
    parse = parse_mask if case.spec.startswith("parsers/masks/") else parse_boxes
    parsed = asdict(parse(reply, profile, case.input["width"], case.input["height"]))
    if parsed.get("mask"):
        parsed["mask"] = rows_from_rle(parsed["mask"])
    return parsed


def _boxes3d(case: Case) -> Any:
    scene = _scene(case.input["scene"])
    profile = load_profile(case.input["profile"])
    parsed = asdict(parse_boxes3d(reply_text(case.input["reply"]), profile, scene))
    parsed["boxes"] = [_cuboid(box) for box in parsed["boxes"]]
    return parsed


def _scene(given: dict[str, Any]) -> Scene:
    candidates = given.get("candidates")
    return Scene(
        frames=[Frame(**frame) for frame in given.get("frames", ())],
        bounds=given.get("bounds"),
        candidates=candidates and {int(id): box for id, box in candidates.items()},
    )


def _cuboid(box: Sequence[float]) -> dict[str, Any]:
    """Return a box without Euler angles, of which several mean the same."""
    axes = rotation_from_euler(box[6:], "ZXY").T
    return {"centre": box[:3], "size": box[3:6], "axes": axes.tolist()}


def _task(case: Case) -> Any:
    """Return every number that a task reports for some documents and replies.

    Where a case has scenes, a document names its own by its ``scan_id``.
    """
    benchmark = importlib.import_module(f"lmms_eval_grounding.benchmarks.{case.spec[6:]}")
    options = _converted(case.input, _schema(case.spec, "input"), _TAKEN)
    docs = options.pop("docs")
    replies = map(reply_text, options.pop("replies"))
    profile = load_profile(options.pop("profile"))
    scenes = {scan_id: _scene(given) for scan_id, given in options.pop("scenes", {}).items()}
    items = []
    for doc, reply in zip(docs, replies, strict=True):
        own = {"scene": scenes[doc["scan_id"]]} if scenes else {}
        record, _ = benchmark.score(doc, reply, profile, **options, **own)
        items.append(items_of(record, benchmark.METRICS))
    return {
        name: metric([item[name] for item in items]) for name, metric in benchmark.METRICS.items()
    }


# How functions take a value that cases write in a type of spec/types.json, and how they return one.
_TAKEN: dict[str, Callable[[Any], Any]] = {"mask": rle_from_rows, "bytes": bytes.fromhex}
_RETURNED: dict[str, Callable[[Any], Any]] = {"mask": rows_from_rle, "exact_cuboid": _cuboid}

_ANSWERS: dict[str, Callable[[Case], Any]] = {
    "geometry": _called,
    "metrics": _called,
    "parsers": _parser,
    "tasks": _task,
}
