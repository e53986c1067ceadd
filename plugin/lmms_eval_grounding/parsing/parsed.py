"""The result of reading a reply: a status, what was given, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..geometry.rle import Rle

Status = Literal["ok", "no_target", "malformed", "unparseable"]
STATUSES: tuple[Status, ...] = ("ok", "no_target", "malformed", "unparseable")


@dataclass(frozen=True)
class ParsedBoxes:
    """What a reply says, in pixels of the image.

    Attributes
    ----------
    status
        ``ok``: at least one valid box. ``no_target``: an explicit "nothing there".
        ``malformed``: something was given, none of it valid. ``unparseable``: nothing usable.
    boxes
        The valid boxes in the order of the answer, ``(x1, y1, x2, y2)``, clipped to the image, each
        with positive area. Empty unless the status is ``ok``.
    flags
        Sorted names of what was noticed or repaired; see spec/types.json.
    reason
        Why the status is ``malformed`` or ``unparseable``, else None.
    syntax
        The syntax that was recognised, or None.
    """

    status: Status
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    flags: tuple[str, ...] = ()
    reason: str | None = None
    syntax: str | None = None


@dataclass(frozen=True)
class ParsedMask:
    """What a reply says, as one mask of the image's size.

    Attributes
    ----------
    status
        ``ok``: at least one valid part; the mask may have no pixels. ``no_target``: an explicit
        "nothing there". ``malformed``: something was given, none of it valid. ``unparseable``:
        nothing usable, or nothing without a decoder that only the model has.
    mask
        The union of the valid parts; None unless the status is ``ok``.
    flags
        Sorted names of what was noticed or repaired; see spec/types.json.
    reason
        Why the status is ``malformed`` or ``unparseable``, else None.
    syntax
        The syntax that was recognised, or None.
    parts
        How many valid parts were united: run-length encodings, polygons, maps, grids or boxes.
    """

    status: Status
    mask: Rle | None = None
    flags: tuple[str, ...] = ()
    reason: str | None = None
    syntax: str | None = None
    parts: int = 0


@dataclass(frozen=True)
class ParsedBoxes3d:
    """What a reply says, as cuboids in the scene's frame.

    Attributes
    ----------
    status
        ``ok``: at least one valid box. ``no_target``: an explicit "nothing there".
        ``malformed``: something was given, none of it valid. ``unparseable``: nothing usable.
    boxes
        The valid boxes in the order of the answer: centre and full sizes in metres, intrinsic ZXY
        Euler angles in radians, as geometry.boxes3d has them. Empty unless the status is ``ok``.
    scores
        None where no box has a score; else one entry a box, None where it has none.
    flags
        Sorted names of what was noticed or repaired; see spec/types.json.
    reason
        Why the status is ``malformed`` or ``unparseable``, else None.
    syntax
        The syntax that was recognised, or None.
    """

    status: Status
    boxes: tuple[tuple[float, ...], ...] = ()
    scores: tuple[float | None, ...] | None = None
    flags: tuple[str, ...] = ()
    reason: str | None = None
    syntax: str | None = None
