"""What the mask benchmarks share: the task, reading a reply as a mask, the oracle's replies.

A document has the columns ``id`` (str), ``image``, ``expression`` (str), ``width``, ``height`` and
``target``: a COCO RLE ``{"size": [h, w], "counts": str}``, or null where nothing is referred to.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..geometry.masks import Rle, array_from_rle, bounding_box, rle_from_array, rle_from_coco
from ..parsing.masks import parse_mask
from ..parsing.parsed import ParsedMask
from ..parsing.profile import Profile
from ..parsing.spaces import Space
from ..writing.masks import write_mask
from .conventions import declared_profile
from .host import read_safely
from .task import Doc, GroundingTask

_announced: dict[str, str] = {}
_logger = logging.getLogger(__name__)


class MaskTask(GroundingTask):
    """A task that is answered with masks; the log of a run says where these are filled boxes."""

    def doc_to_text(
        self, doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
    ) -> str:
        """Return the prompt; warn once if boxes stand for masks in the profile of the run."""
        prompt = super().doc_to_text(doc, lmms_eval_specific_kwargs)
        profile = declared_profile(self.benchmark)
        before, _announced[self.benchmark] = _announced.get(self.benchmark), profile.name
        if before != profile.name and profile.mask_convention().from_box:
            _logger.warning(
                "%s: profile %s answers with boxes, so that filled boxes are scored; every sample "
                "has the flag mask_from_box. Do not compare the numbers with those of masks",
                self.benchmark,
                profile.name,
            )
        return prompt


def doc_to_target(doc: Doc) -> str:
    """Return the target mask as JSON text, for the log; ``null`` where there is none."""
    return json.dumps(target_mask(doc))


def target_mask(doc: Doc) -> Rle | None:
    """Return the target of a document, at the size of its image."""
    target = doc["target"]
    if target is None or target["counts"] is None:
        return None
    return rle_from_coco(
        {"size": list(target["size"]), "counts": target["counts"]},
        (int(doc["height"]), int(doc["width"])),
    )


def read_mask(doc: Doc, reply: str | None, profile: Profile) -> ParsedMask:
    """Return what the parser makes of a reply, safely."""
    width, height = int(doc["width"]), int(doc["height"])
    return read_safely(ParsedMask, parse_mask, reply, profile, width, height)


def reading_of(doc: Doc, profile: Profile, parsed: ParsedMask) -> dict[str, Any]:
    """Return how a reply was read, for the log; the mask itself is in the reply."""
    return {
        "id": str(doc["id"]),
        "expression": doc["expression"],
        "profile": profile.name,
        "status": parsed.status,
        "reason": parsed.reason,
        "flags": list(parsed.flags),
        "syntax": parsed.syntax,
        "parts": parsed.parts,
        "width": int(doc["width"]),
        "height": int(doc["height"]),
    }


def oracle_reply(doc: Doc, profile: Profile, error: str | None = None) -> str:
    """Return the reply of a model that knows the target and writes as the profile does.

    ``error`` makes it wrong: ``shifted`` moves the mask to the right by half the width of its
    bounding box, or to the left if it would leave the image there; ``wrong-space`` writes
    coordinates in pixels of the image (in 0-1000 where the profile's space is these pixels), and a
    mask with height and width exchanged where the syntax has no coordinates; ``truncated`` breaks
    the reply off half-way, which keeps the first of several polygons.

    Raises
    ------
    ProfileError
        If the profile does not say how a mask is written, or none can be written as text.
    """
    width, height, label = int(doc["width"]), int(doc["height"]), str(doc["expression"])
    target = target_mask(doc)
    if error == "shifted" and target is not None:
        target = _shifted(target)
    if error == "wrong-space":
        convention = profile.mask_convention()
        if convention.from_box or convention.space:
            profile = _in_wrong_space(profile)
        elif target is not None:
            target, width, height = rle_from_array(array_from_rle(target).T), height, width
    if error == "truncated":
        reply = write_mask(target, profile, width, height)
        return reply[: len(reply) // 2]
    return write_mask(target, profile, width, height, label)


def _shifted(mask: Rle) -> Rle:
    bounds = bounding_box(mask)
    if bounds is None:
        return mask
    pixels = array_from_rle(mask)
    step = max((bounds[2] - bounds[0]) // 2, 1)
    if bounds[2] + step > pixels.shape[1]:
        step = -step
    moved = pixels * 0
    source = slice(max(-step, 0), pixels.shape[1] - max(step, 0))
    moved[:, max(step, 0) : pixels.shape[1] - max(-step, 0)] = pixels[:, source]
    return rle_from_array(moved)


def _in_wrong_space(profile: Profile) -> Profile:
    mask = profile.mask_convention()
    space = profile.box_convention().space if mask.from_box else mask.space
    assert space is not None
    other = Space((1000.0, 1000.0)) if space.extent == "image" else Space("image")
    box = profile.box and replace(profile.box, space=other)
    return replace(profile, box=box, mask=replace(mask, space=mask.space and other, box=box))
