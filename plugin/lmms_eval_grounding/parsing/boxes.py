"""2D boxes: from a reply to pixels of the image."""

from __future__ import annotations

from typing import NamedTuple

from ..geometry.boxes import Box, area, bounds_of_rotated, clip
from .answer import final_answer
from .convention import BoxConvention
from .none_answers import holds_nothing, says_none
from .parsed import ParsedBoxes
from .profile import Profile
from .syntaxes import SYNTAXES, Reading, Row, points, unkeyed_lists


def parse_boxes(reply: str | None, profile: Profile, width: int, height: int) -> ParsedBoxes:
    """Return the boxes of a reply in pixels of an image of ``width`` x ``height``.

    Never raises, whatever the reply holds; takes time linear in its length. The rules stand in
    spec/parsers/. Nothing but the reply, the declared profile and the image size is looked at.

    Raises
    ------
    ProfileError
        If the profile does not say how a box is written.
    """
    convention = profile.box_convention()
    answer = final_answer(reply)
    flags = {"truncated"} if answer.truncated else set()
    if answer.failure:
        return ParsedBoxes("unparseable", (), tuple(flags), answer.failure)
    if not answer.truncated and says_none(answer.text, profile.none):
        return ParsedBoxes("no_target")
    reading, syntax = _read(answer.text, convention, answer.truncated)
    flags |= reading.flags
    placed = [place(row, convention, width, height) for row in reading.rows]
    boxes = tuple(p.box for p in placed if p.box)
    if boxes:
        flags.update(flag for p in placed if p.box for flag in p.flags)
        flags |= {"multiple"} if len(boxes) > 1 else set()
        flags |= {"partial"} if len(boxes) < len(placed) else set()
        return ParsedBoxes("ok", boxes, tuple(sorted(flags)), None, syntax)
    noticed = tuple(sorted(flags))
    if placed:
        return ParsedBoxes("malformed", (), noticed, placed[0].fault, syntax)
    if "truncated" in flags:
        return ParsedBoxes("unparseable", (), noticed, "truncated")
    if holds_nothing(answer.text, convention.keys):
        return ParsedBoxes("no_target")
    return ParsedBoxes("unparseable", (), noticed, "no_box")


class Placed(NamedTuple):
    """A row of numbers placed in the image: a box, or the fault that keeps it from being one.

    ``whole`` is the box before it was clipped to the image.
    """

    box: Box | None
    flags: tuple[str, ...] = ()
    fault: str | None = None
    whole: Box | None = None


def _read(text: str, convention: BoxConvention, is_cut: bool) -> tuple[Reading, str | None]:
    """Return the reading of the first syntax that finds a sound row, else any row, else none."""
    faulty: tuple[Reading, str] | None = None
    flags: frozenset[str] = frozenset()
    for name in convention.syntaxes:
        reading = SYNTAXES[name](text, convention)
        if is_cut:
            reading = reading._replace(rows=[row for row in reading.rows if not row.is_open])
        flags |= reading.flags & {"truncated"}  # the text is cut, whichever syntax decides
        if any(row.fault is None for row in reading.rows):
            return Reading(reading.rows, reading.flags | flags), name
        if reading.rows:
            faulty = faulty or (reading, name)
    if faulty:
        reading, name = faulty
        return Reading(reading.rows, reading.flags | flags), name
    for name, read in (("bare", unkeyed_lists), ("points", points)):
        rows = read(text, convention).rows if convention.bare or name == "points" else []
        if rows:
            return Reading(rows, flags), name
    return Reading([], flags), None


def place(row: Row, convention: BoxConvention, width: int, height: int) -> Placed:
    """Return the box in pixels that a row means: order, space, sorted corners, angle, clipping."""
    if row.fault:
        return Placed(None, fault=row.fault)
    order, space = convention.order, convention.space
    x_axis, y_axis = space.axes(width, height)
    axes = (x_axis, y_axis, x_axis, y_axis)
    corners: tuple[float, ...] = order.corners(row.numbers)
    x1, y1, x2, y2 = (axis.pixel(n) for n, axis in zip(corners, axes, strict=True))
    upright = min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)
    box = bounds_of_rotated(upright, row.numbers[4]) if len(row.numbers) > 4 else upright
    if box != upright:  # what has to lie in the space is the turned box
        corners = tuple(axis.number(pixel) for pixel, axis in zip(box, axes, strict=True))
    if not all(space.contains(n, axis) for n, axis in zip(corners, axes, strict=True)):
        return Placed(None, fault="out_of_space")
    inside = clip(box, width, height)
    reversed_ = upright != (x1, y1, x2, y2)
    if area(upright) == 0 or area(inside) == 0 or (reversed_ and order.has_size):
        return Placed(None, fault="zero_area")
    flags = ["reordered"] if reversed_ else []
    if inside != box:
        flags.append("clipped")
    if min(x_axis.extent, y_axis.extent) >= 100 and all(abs(n) <= 1 for n in corners):
        flags.append("scale_mismatch")
    return Placed(inside, tuple(flags), whole=box)
