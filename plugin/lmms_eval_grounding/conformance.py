"""Running golden cases against an implementation: here, the package's own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

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


def _metric(case: Case) -> Any:
    _, benchmark, name = case.spec.split("/")
    module = importlib.import_module(f"lmms_eval_grounding.metrics.{benchmark}")
    return getattr(module, name)(**_with_masks(case.input, _input_schema(case.spec)))


def _with_masks(values: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a case as functions take it: masks, written as rows, become RLE."""
    return {
        name: rle_from_rows(value) if value and _is_mask(schema["properties"][name]) else value
        for name, value in values.items()
    }


def _is_mask(schema: dict[str, Any]) -> bool:
    """Return whether a value is a mask, or null, by the type that its schema refers to."""
    kinds = schema.get("anyOf", [schema])
    return any(kind.get("$ref", "").endswith("types.json#/$defs/mask") for kind in kinds)


@cache
def _input_schema(spec: str) -> dict[str, Any]:
    schema: dict[str, Any] = read_json("spec", f"{spec}.json")["properties"]["input"]
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
    schema = _input_schema(case.spec)["properties"]["docs"]["items"]
    options = dict(case.input)
    docs = [_with_masks(doc, schema) for doc in options.pop("docs")]
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


_ANSWERS: dict[str, Callable[[Case], Any]] = {
    "metrics": _metric,
    "parsers": _parser,
    "tasks": _task,
}
