"""Which profile a run uses, and what it asks.

The host passes a task's ``lmms_eval_specific_kwargs`` to ``doc_to_text`` and to nothing else, so
the profile that a prompt was written for is remembered here until the replies are scored. The host
calls ``doc_to_text`` in every process, on the first document already when it builds the task.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from ..parsing.profile import Profile, ProfileError, load_profile
from .host import Refusal

DEFAULT_PROFILE = "prompt"
VARIABLE = "GROUNDING_PROFILE"

_in_force: dict[str, Profile] = {}
_logger = logging.getLogger(__name__)


def declare_profile(benchmark: str, kwargs: Mapping[str, Any] | None) -> Profile:
    """Return the profile of this run and remember it for scoring.

    ``$GROUNDING_PROFILE`` decides; else ``kwargs["profile"]``, which the task's YAML gives for the
    ``--model`` name; else ``prompt``.

    Raises
    ------
    Refusal
        If there is no such profile, or it does not say how this benchmark's answers are written;
        says where the name comes from, and which names there are.
    """
    named, origin = os.environ.get(VARIABLE), VARIABLE
    if not named:
        named = (kwargs or {}).get("profile") or DEFAULT_PROFILE
        origin = f"the task's lmms_eval_specific_kwargs of {benchmark}"
    profile = named_profile(named, origin)
    if _base_name(profile) not in _prompts(benchmark):
        raise Refusal(
            f"{origin}: profile {named!r} has no prompt for {benchmark}; choose one of: "
            f"{', '.join(_prompts(benchmark))}"
        )
    before = _in_force.get(benchmark)
    if before is not None and before != profile:
        _logger.warning(
            "replies to %s are now read with profile %s, no longer %s; if both belong to one run, "
            "evaluate the tasks one at a time",
            benchmark,
            profile.name,
            before.name,
        )
    _in_force[benchmark] = profile
    return profile


def check_environment() -> None:
    """Refuse to run with a ``$GROUNDING_PROFILE`` that does not exist."""
    named = os.environ.get(VARIABLE)
    if named:
        named_profile(named, VARIABLE)


def declared_profile(benchmark: str) -> Profile:
    """Return the profile in force for a benchmark: the one declared last, else the default's."""
    return _in_force.get(benchmark) or declare_profile(benchmark, None)


def named_profile(name: str, origin: str) -> Profile:
    """Return a profile by the name that ``origin`` gives, or refuse to run."""
    try:
        return load_profile(str(name))
    except ProfileError as fault:
        raise Refusal(f"{origin}: {fault}") from None


def prompt_text(benchmark: str, profile: Profile, **fields: str) -> str:
    """Return the prompt of a benchmark for a profile, with ``{field}`` marks filled in.

    Marks are replaced by name only, so that a prompt may hold braces of JSON.
    """
    text = _prompts(benchmark)[_base_name(profile)]
    for name, value in fields.items():
        text = text.replace("{" + name + "}", value)
    return text


def _base_name(profile: Profile) -> str:
    """Return a profile's name without its options."""
    return profile.name.partition(":")[0]


@cache
def _prompts(benchmark: str) -> dict[str, str]:
    path = files("lmms_eval_grounding.tasks").joinpath(benchmark).joinpath("prompts.yaml")
    prompts: dict[str, str] = yaml.safe_load(path.read_text("utf-8"))["prompts"]
    return prompts
