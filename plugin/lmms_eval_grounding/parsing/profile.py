"""Profiles: how one family of models writes its answers, declared as data in profiles.json.

A profile is chosen by name before a run and holds for the whole run. Nothing is guessed from a
reply, and nothing here can see a target.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from .orders import ORDERS, Order
from .spaces import Resize, Space


class ProfileError(ValueError):
    """A profile name or option that does not exist; the message says which do."""


@dataclass(frozen=True)
class BoxConvention:
    """How a profile writes 2D boxes; the fields are described in spec/profile.json."""

    syntaxes: tuple[str, ...]
    space: Space
    order: Order
    write: str
    example: str
    keys: tuple[str, ...] = ()
    corner_keys: tuple[tuple[str, ...], ...] = ()
    bare: bool = False
    decimals: int = 0


@dataclass(frozen=True)
class Profile:
    """A named, declared way of answering.

    ``name`` includes the options it was made with, so that it can be logged and given again.
    """

    name: str
    title: str
    none: tuple[str, ...]
    box: BoxConvention


def profile_names() -> list[str]:
    """Return the names of all profiles, in the order of profiles.json."""
    return list(_declared())


def load_profile(name: str) -> Profile:
    """Return the profile of a name such as ``qwen3_vl`` or ``qwen2_5_vl:max_pixels=1003520``.

    ``min_pixels`` and ``max_pixels`` set the limits of the last resize step, which is the one a
    wrapper's arguments of these names control; they are refused where the space is not resized.

    Raises
    ------
    ProfileError
        If the name is not in profiles.json or an option is unknown or not a positive integer.
    """
    base, _, options = name.strip().partition(":")
    if base not in _declared():
        raise ProfileError(
            f"unknown profile {base!r}; choose one of: {', '.join(profile_names())} "
            "(`lmms-eval-grounding profiles` describes them)"
        )
    data = _declared()[base]
    box = _box_convention(data["box"])
    if options:
        box = replace(box, space=_with_options(box.space, name, options))
    return Profile(name.strip(), data["title"], tuple(data.get("none", ())), box)


@cache
def _declared() -> dict[str, dict[str, Any]]:
    text = files("lmms_eval_grounding.parsing").joinpath("profiles.json").read_text("utf-8")
    declared: dict[str, dict[str, Any]] = json.loads(text)
    return declared


def _box_convention(data: dict[str, Any]) -> BoxConvention:
    space = data["space"]
    extent = space["extent"]
    return BoxConvention(
        syntaxes=tuple(data["syntaxes"]),
        space=Space(
            extent=extent if isinstance(extent, str) else (float(extent[0]), float(extent[1])),
            offset=float(space.get("offset", 0.0)),
            padded=bool(space.get("padded", False)),
            resizes=tuple(Resize(**step) for step in space.get("resizes", ())),
        ),
        order=ORDERS[data["order"]],
        write=data["write"],
        example=data["example"],
        keys=tuple(data.get("keys", ())),
        corner_keys=tuple(tuple(keys) for keys in data.get("corner_keys", ())),
        bare=bool(data.get("bare", False)),
        decimals=int(data.get("decimals", 0)),
    )


def _with_options(space: Space, name: str, options: str) -> Space:
    limits = dict(option.partition("=")[::2] for option in options.split(","))
    if not space.resizes or not set(limits) <= {"min_pixels", "max_pixels"}:
        raise ProfileError(
            f"profile {name!r}: only profiles in resized pixels take options, and these are "
            "min_pixels and max_pixels, as in qwen2_5_vl:min_pixels=3136,max_pixels=12845056"
        )
    if not all(value.isdecimal() and int(value) > 0 for value in limits.values()):
        raise ProfileError(f"profile {name!r}: min_pixels and max_pixels are positive integers")
    *first, last = space.resizes
    last = last._replace(**{key: int(value) for key, value in limits.items()})
    if last.min_pixels > last.max_pixels:
        raise ProfileError(f"profile {name!r}: min_pixels is larger than max_pixels")
    return replace(space, resizes=(*first, last))
