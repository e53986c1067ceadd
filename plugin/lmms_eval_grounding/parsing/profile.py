"""Profiles: how one family of models writes its answers, declared as data in profiles.json.

A profile is chosen by name before a run and holds for the whole run. Nothing is guessed from a
reply, and nothing here can see a target.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from .convention import BoxConvention, MaskConvention
from .convention3d import (
    Box3dConvention,
    CandidateConvention,
    box3d_convention,
    candidate_convention,
)
from .orders import ORDERS
from .spaces import Resize, Space

Answer = Literal["box", "mask", "box3d", "candidates"]

_ANSWERS: dict[Answer, str] = {
    "box": "a box is written",
    "mask": "a mask is written",
    "box3d": "a 3D box is written",
    "candidates": "objects to choose from are named",
}


class ProfileError(ValueError):
    """A profile or option that does not exist, or that a task has no use for; says which do."""


@dataclass(frozen=True)
class Profile:
    """A named, declared way of answering.

    ``name`` includes the options it was made with, so that it can be logged and given again.
    A kind of answer is None where the profile does not say how it is written.
    """

    name: str
    title: str
    none: tuple[str, ...]
    box: BoxConvention | None = None
    mask: MaskConvention | None = None
    box3d: Box3dConvention | None = None
    candidates: CandidateConvention | None = None

    def box_convention(self) -> BoxConvention:
        """Return how boxes are written.

        Raises
        ------
        ProfileError
            If the profile does not say.
        """
        if self.box is None:
            raise ProfileError(self._refusal("box"))
        return self.box

    def mask_convention(self) -> MaskConvention:
        """Return how masks are written.

        Raises
        ------
        ProfileError
            If the profile does not say.
        """
        if self.mask is None:
            raise ProfileError(self._refusal("mask"))
        return self.mask

    def box3d_convention(self) -> Box3dConvention:
        """Return how 3D boxes are written.

        Raises
        ------
        ProfileError
            If the profile does not say.
        """
        if self.box3d is None:
            raise ProfileError(self._refusal("box3d"))
        return self.box3d

    def candidate_convention(self) -> CandidateConvention:
        """Return how objects to choose from are named.

        Raises
        ------
        ProfileError
            If the profile does not say.
        """
        if self.candidates is None:
            raise ProfileError(self._refusal("candidates"))
        return self.candidates

    def _refusal(self, answer: Answer) -> str:
        return (
            f"profile {self.name!r} does not say how {_ANSWERS[answer]}; "
            f"choose one of: {', '.join(profile_names(answer))}"
        )


def profile_names(answer: Answer | None = None) -> list[str]:
    """Return the names of all profiles, or of those that say how a kind of answer is written.

    They have the order of profiles.json.
    """
    return [name for name, data in _declared().items() if answer is None or answer in data]


def load_profile(name: str) -> Profile:
    """Return the profile of a name such as ``qwen3_vl`` or ``qwen2_5_vl:max_pixels=1003520``.

    ``min_pixels`` and ``max_pixels`` set the limits of the last resize step, which is the one a
    wrapper's arguments of these names control; they are refused where the space is not resized.
    ``score_threshold`` drops masks with a lower score, where masks come with scores;
    ``mask_from=box`` fills the boxes that come with masks, in place of the masks.

    Raises
    ------
    ProfileError
        If the name is not in profiles.json, or an option means nothing to the profile.
    """
    base, colon, options = name.strip().partition(":")
    if base not in _declared():
        raise ProfileError(
            f"unknown profile {base!r}; choose one of: {', '.join(profile_names())} "
            "(`lmms-eval-grounding profiles` describes them)"
        )
    data = _declared()[base]
    box = _box_convention(data["box"]) if "box" in data else None
    mask = _mask_convention(data["mask"], box) if "mask" in data else None
    profile = Profile(
        name=name.strip(),
        title=data["title"],
        none=tuple(data.get("none", ())),
        box=box,
        mask=mask,
        box3d=box3d_convention(data["box3d"]) if "box3d" in data else None,
        candidates=candidate_convention(data["candidates"]) if "candidates" in data else None,
    )
    return _with_options(profile, options) if colon else profile


@cache
def _declared() -> dict[str, dict[str, Any]]:
    text = files("lmms_eval_grounding.parsing").joinpath("profiles.json").read_text("utf-8")
    return {name: _tuples(data) for name, data in json.loads(text).items()}


def _tuples(data: Any) -> Any:
    """Return JSON data with tuples for lists, so that no convention can be changed."""
    if isinstance(data, dict):
        return {key: _tuples(item) for key, item in data.items()}
    return tuple(map(_tuples, data)) if isinstance(data, list) else data


def _box_convention(data: dict[str, Any]) -> BoxConvention:
    read = {"space": _space(data["space"]), "order": ORDERS[data["order"]]}
    return BoxConvention(**{**data, **read})


def _mask_convention(data: dict[str, Any], box: BoxConvention | None) -> MaskConvention:
    given = dict(data)
    from_box = given.pop("mask_from", None) == "box"
    if from_box and box:
        given["example"] = box.example
    if "space" in data:
        given["space"] = _space(data["space"])
    return MaskConvention(
        **given, box=box, from_box=from_box, with_scores="score_threshold" in data
    )


def _space(data: dict[str, Any]) -> Space:
    steps = tuple(Resize(**step) for step in data.get("resizes", ()))
    return Space(**{**data, "resizes": steps})


def _with_options(profile: Profile, options: str) -> Profile:
    given: dict[str, str] = {}
    for option, _, value in (part.partition("=") for part in options.split(",")):
        if option in given:
            raise ProfileError(f"profile {profile.name!r}: {option} is given twice")
        given[option] = value
    box, mask = profile.box, profile.mask
    if mask and "score_threshold" in given:
        mask = _with_threshold(mask, profile.name, given.pop("score_threshold"))
    if mask and "mask_from" in given:
        mask = _with_filled_boxes(mask, profile.name, given.pop("mask_from"))
    if box and given:
        box = replace(box, space=_with_limits(box.space, profile.name, given))
    elif given:
        raise ProfileError(f"profile {profile.name!r}: unknown options: {', '.join(given)}")
    return replace(profile, box=box, mask=mask and replace(mask, box=box))


def _with_threshold(mask: MaskConvention, name: str, value: str) -> MaskConvention:
    if not mask.with_scores or not re.fullmatch(r"0(\.[0-9]{1,9})?|1(\.0{1,9})?", value):
        raise ProfileError(
            f"profile {name!r}: only profiles whose masks come with scores take score_threshold, "
            "a number from 0 to 1 as in sam3:score_threshold=0.5"
        )
    return replace(mask, score_threshold=float(value))


def _with_filled_boxes(mask: MaskConvention, name: str, value: str) -> MaskConvention:
    if not mask.with_boxes or value != "box":
        raise ProfileError(
            f"profile {name!r}: only profiles whose masks come with boxes take mask_from, "
            "and only as in gemini:mask_from=box"
        )
    return replace(mask, from_box=True)


def _with_limits(space: Space, name: str, limits: dict[str, str]) -> Space:
    if not space.resizes or not set(limits) <= {"min_pixels", "max_pixels"}:
        raise ProfileError(
            f"profile {name!r}: only profiles in resized pixels take options, and these are "
            "min_pixels and max_pixels, as in qwen2_5_vl:min_pixels=3136,max_pixels=12845056"
        )
    if not all(re.fullmatch(r"[1-9][0-9]{0,11}", value) for value in limits.values()):
        raise ProfileError(f"profile {name!r}: min_pixels and max_pixels are positive integers")
    *first, last = space.resizes
    last = last._replace(**{key: int(value) for key, value in limits.items()})
    if last.min_pixels > last.max_pixels:
        raise ProfileError(f"profile {name!r}: min_pixels is larger than max_pixels")
    return replace(space, resizes=(*first, last))
