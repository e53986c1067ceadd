"""Predictions that were read already, as parsing would hand them on.

A box of pixels is taken as one that a reply writes in pixels of the image: corners sorted, clipped
to the image, malformed without area there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from ..geometry.boxes3d import is_valid
from ..geometry.masks import rle_from_coco
from ..parsing.boxes import place
from ..parsing.convention import BoxConvention
from ..parsing.orders import ORDERS
from ..parsing.parsed import ParsedBoxes, ParsedBoxes3d, ParsedMask, Status
from ..parsing.spaces import Space
from ..parsing.syntaxes import Row

Fields = Mapping[str, Any]

# However far a box reaches out of the image, it is clipped.
_PIXELS = BoxConvention(
    syntaxes=(),
    space=Space("image", tolerance=math.inf),
    order=ORDERS["xyxy"],
    write="",
    example="",
)


def given_boxes(fields: Fields, doc: Fields) -> ParsedBoxes:
    """Return given boxes; those that are not valid are left out."""
    rows = [Row(tuple(map(float, box))) for box in fields["boxes"]]
    placed = [place(row, _PIXELS, int(doc["width"]), int(doc["height"])) for row in rows]
    boxes = tuple(each.box for each in placed if each.box)
    return ParsedBoxes(_status(fields, bool(placed), bool(boxes)), boxes)


def given_mask(fields: Fields, doc: Fields) -> ParsedMask:
    """Return a given mask.

    Raises
    ------
    ValueError
        If its run lengths are none, or it has not the image's size.
    """
    mask = fields["mask"]
    if mask is not None:
        mask = rle_from_coco(mask, (int(doc["height"]), int(doc["width"])))
    return ParsedMask(_status(fields, mask is not None, mask is not None), mask)


def given_boxes3d(fields: Fields, _doc: Fields) -> ParsedBoxes3d:
    """Return given 3D boxes; those that are not valid are left out, with their scores.

    Raises
    ------
    ValueError
        If there is not one score per box.
    """
    boxes, scores = fields["boxes3d"], fields.get("scores")
    if scores is not None and len(scores) != len(boxes):
        raise ValueError(f"scores: {len(scores)} for {len(boxes)} boxes; give one a box, or none")
    kept = is_valid(boxes).tolist() if boxes else []
    status = _status(fields, bool(boxes), any(kept))
    if status != "ok":
        return ParsedBoxes3d(status)
    valid = [number for number, keep in enumerate(kept) if keep]
    return ParsedBoxes3d(
        status,
        tuple(tuple(boxes[number]) for number in valid),
        None if scores is None else tuple(scores[number] for number in valid),
    )


def _status(fields: Fields, something: bool, valid: bool) -> Status:
    if something:
        return "ok" if valid else "malformed"
    return cast(Status, fields.get("status", "no_target"))


GIVEN: dict[str, Callable[[Fields, Fields], ParsedBoxes | ParsedMask | ParsedBoxes3d]] = {
    "boxes": given_boxes,
    "mask": given_mask,
    "boxes3d": given_boxes3d,
}
"""By the form of a prediction: from its fields and the sample's document to what was read."""
