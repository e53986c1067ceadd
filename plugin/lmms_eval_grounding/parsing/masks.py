"""Masks: from a reply to one mask of the image's size."""

from __future__ import annotations

from ..geometry.masks import MaskError, Rle, area, rle_from_boxes, rle_from_polygons, union
from .answer import final_answer
from .boxes import parse_boxes
from .convention import MaskConvention
from .mask_parts import MaskReading, Part, limited
from .mask_syntaxes import MASK_SYNTAXES
from .none_answers import holds_nothing, says_none
from .parsed import ParsedMask, Status
from .profile import Profile


def parse_mask(reply: str | None, profile: Profile, width: int, height: int) -> ParsedMask:
    """Return the mask of a reply, for an image of ``width`` x ``height`` pixels.

    Several valid parts are united. Never raises, whatever the reply holds; takes time linear in
    its length. The rules stand in spec/parsers/masks/. Nothing but the reply, the declared profile
    and the image size is looked at.

    Raises
    ------
    ProfileError
        If the profile does not say how a mask is written.
    """
    convention = profile.mask_convention()
    if convention.from_box:
        return _filled_boxes(reply, profile, width, height)
    answer = final_answer(reply)
    flags = {"truncated"} if answer.truncated else set()
    if answer.failure:
        return ParsedMask("unparseable", None, tuple(flags), answer.failure)
    if not answer.truncated and says_none(answer.text, profile.none):
        return ParsedMask("no_target")
    reading, syntax = _read(answer.text, convention, width, height)
    flags |= reading.flags
    valid = [part for part in reading.parts if part.is_valid]
    faults = [part.fault for part in reading.parts if part.fault]
    noticed_in_parts = {flag for part in valid for flag in part.flags}
    flags |= {"needs_decoder"} if "needs_decoder" in faults else set()
    mask, fault = _united(valid, width, height)
    if mask:
        flags |= noticed_in_parts
        flags |= {"multiple"} if len(valid) > 1 else set()
        flags |= {"partial"} if faults else set()
        return ParsedMask("ok", mask, tuple(sorted(flags)), None, syntax, len(valid))
    flags |= noticed_in_parts & {"scale_mismatch"}  # which may be why they hold nothing together
    noticed = tuple(sorted(flags))
    reason = fault or next(iter(faults), None)
    if reason:
        status: Status = "unparseable" if reason == "needs_decoder" else "malformed"
        return ParsedMask(status, None, noticed, reason, syntax)
    if "truncated" in flags:
        return ParsedMask("unparseable", None, noticed, "truncated")
    if reading.parts or holds_nothing(answer.text, convention.keys):
        return ParsedMask("no_target", syntax=syntax)
    return ParsedMask("unparseable", None, noticed, "no_mask")


def _read(
    text: str, convention: MaskConvention, width: int, height: int
) -> tuple[MaskReading, str | None]:
    """Return the reading of the first syntax that finds most: a valid part, a fault, a nothing."""
    best, best_name = MaskReading([]), None
    flags: frozenset[str] = frozenset()
    for name in dict.fromkeys((*convention.syntaxes, "decoder_tokens")):
        reading = limited(MASK_SYNTAXES[name](text, convention, width, height))
        if reading.rank > best.rank:
            best, best_name = reading, name
        flags |= reading.flags & {"truncated"}  # the text is cut, whichever syntax decides
        if best.rank == 3:
            break
    return MaskReading(best.parts, best.flags | flags), best_name


def _united(parts: list[Part], width: int, height: int) -> tuple[Rle | None, str | None]:
    """Return the union of valid parts, or the fault that they have together; without any, neither.

    Polygons say that something is there: without any pixel they are no mask, not an empty one.
    """
    outlines = [list(part.polygon) for part in parts if part.polygon]
    rles = [part.rle for part in parts if part.rle]
    if outlines:
        try:
            filled = rle_from_polygons(outlines, height, width)
        except MaskError:  # they measure more around than a mask may
            return None, "bad_mask"
        if not rles and not area(filled):
            return None, "zero_area"
        rles.append(filled)
    return union(rles, (height, width)) if rles else None, None


def _filled_boxes(reply: str | None, profile: Profile, width: int, height: int) -> ParsedMask:
    """Return the union of a reply's boxes, filled."""
    boxes = parse_boxes(reply, profile, width, height)
    flags = tuple(sorted({*boxes.flags, "mask_from_box"}))
    if boxes.status != "ok":
        return ParsedMask(boxes.status, None, flags, boxes.reason, boxes.syntax)
    try:
        mask = rle_from_boxes(boxes.boxes, height, width)
    except MaskError:  # they are more, or measure more around, than those of a mask may
        return ParsedMask("malformed", None, flags, "bad_mask", boxes.syntax)
    if not area(mask):
        return ParsedMask("malformed", None, flags, "zero_area", boxes.syntax)
    return ParsedMask("ok", mask, flags, None, boxes.syntax, len(boxes.boxes))
