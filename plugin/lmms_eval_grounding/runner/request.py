"""What an implementation is given of a case: all that it needs, nothing of what is expected."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..corpus import Case, read_json, reply_text

_PARTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "min_pixels": lambda profile: profile["box"]["space"]["resizes"][-1],
    "max_pixels": lambda profile: profile["box"]["space"]["resizes"][-1],
    "score_threshold": lambda profile: profile["mask"],
    "mask_from": lambda profile: profile["mask"],
}
"""The part of a profile's data that an option of the profile's name sets."""


def request(case: Case) -> dict[str, Any]:
    """Return a case's id, its spec, and its input with long replies and the profile's data.

    The id is the spec and the case's description, as in ``metrics/rsvg/mean_iou: no samples``.
    """
    given = dict(case.input)
    if "reply" in given:
        given["reply"] = reply_text(given["reply"])
    if "replies" in given:
        given["replies"] = [reply_text(reply) for reply in given["replies"]]
    if "profile" in given:
        given["profile"] = declared_profile(given["profile"])
    return {"id": str(case), "spec": case.spec, "input": given}


def declared_profile(name: str) -> dict[str, Any]:
    """Return a profile's data in the form of spec/profile.json, and its name.

    Options in the name are set in the data: ``qwen2_5_vl:min_pixels=3136`` in the last resize.

    Raises
    ------
    KeyError
        If there is no such profile, or the option means nothing to it.
    """
    base, _, options = name.partition(":")
    profile: dict[str, Any] = {"name": name, **read_json("parsing", "profiles.json")[base]}
    for option in filter(None, options.split(",")):
        key, _, value = option.partition("=")
        _PARTS[key](profile)[key] = value if key == "mask_from" else json.loads(value)
    return profile
