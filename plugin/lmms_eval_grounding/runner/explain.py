"""What a spec asks for, in words: for a reader who has no file of the corpus at hand."""

from __future__ import annotations

import textwrap
from typing import Any

from ..corpus import meaning, read_json

WIDTH = 112


def statement(spec: str) -> str:
    """Return a spec's description, names, unit, tolerance, inputs and rules as lines of text."""
    schema, stated = read_json("spec", f"{spec}.json"), meaning(spec)
    facts = {
        "reported": ", ".join(stated.get("reported_as", [])),
        "unit": stated.get("unit", ""),
        "tolerance": f"{stated['tolerance']:g}",
    }
    lines = [
        spec,
        textwrap.indent(textwrap.fill(schema["description"], WIDTH - 2), "  "),
        *(_filled(f"  {name:11}", text) for name, text in facts.items() if text),
        *(_filled(f"  {'input':11}", text) for text in _inputs(schema)),
        *(_filled(f"  {'rule':11}", f"{id}: {text}") for id, text in stated["rules"].items()),
    ]
    return "\n".join(lines)


def _inputs(schema: dict[str, Any]) -> list[str]:
    """Return each input with its default; kinds share theirs, which spec/README.md describes."""
    given = schema["properties"]["input"]
    return [
        " ".join(filter(None, [name, _default(about), about.get("description", "")]))
        for name, about in given.get("properties", {}).items()
    ]


def _default(about: dict[str, Any]) -> str:
    return f"(default {about['default']!r})" if "default" in about else ""


def _filled(lead: str, text: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=lead, subsequent_indent=" " * 13, break_on_hyphens=False
    )
