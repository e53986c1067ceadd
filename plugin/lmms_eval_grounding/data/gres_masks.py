"""The masks of COCO annotations, as the evaluator of GRES takes them.

henghuiding/ReLA@a389648:gres_model/data/datasets/grefcoco.py skips crowd annotations and polygons
with fewer than six numbers or an odd count, keeps what else a reference names, and unites it. So it
is done here, at the size of the image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..geometry.masks import MaskError, Rle, rle_from_coco, rle_from_polygons
from .errors import SourceError

CROWD = "crowd annotations"
NO_POLYGON = "annotations without a polygon"
SHORT = "polygons of fewer than 6 numbers or of an odd count"
NOT_FINITE = "polygons with a coordinate that is no finite number"


@dataclass(frozen=True)
class Part:
    """What one annotation gives to a target.

    Attributes
    ----------
    mask
        Its mask; None when nothing of it can be used.
    left_out
        The reason for each thing that is not used: the annotation, or a polygon of it.
    """

    mask: Rle | None
    left_out: tuple[str, ...] = ()


def part_of(annotation: Mapping[str, Any], height: int, width: int) -> Part:
    """Return what an annotation of ``instances.json`` gives to the targets that name it.

    Parameters
    ----------
    annotation
        With ``segmentation``, a list of polygons or an RLE, and ``iscrowd`` (0 if missing).
    height, width
        The size of its image.

    Raises
    ------
    SourceError
        When it is none of these: an RLE that is malformed or has another size, a list of
        something else, an outline that no image holds.
    """
    crowd = annotation.get("iscrowd", 0)
    if crowd not in (0, 1):
        raise SourceError(f"iscrowd is {crowd!r:.40}, not 0 or 1")
    if crowd:
        return Part(None, (CROWD,))
    shape = annotation.get("segmentation")
    try:
        if isinstance(shape, Mapping):
            return Part(rle_from_coco(shape, (height, width)))
        if not isinstance(shape, list) or not all(isinstance(each, list) for each in shape):
            raise SourceError(f"segmentation is {shape!r:.60}, not a list of polygons or an RLE")
        reasons = [_reason(polygon) for polygon in shape]
        left_out = tuple(filter(None, reasons))
        valid = [polygon for polygon, reason in zip(shape, reasons, strict=True) if not reason]
        if not valid:
            return Part(None, left_out or (NO_POLYGON,))
        return Part(rle_from_polygons(valid, height, width), left_out)
    except MaskError as fault:
        raise SourceError(f"segmentation: {fault}") from fault


def _reason(polygon: list[Any]) -> str:
    """Return why a polygon is left out, or an empty text."""
    if len(polygon) < 6 or len(polygon) % 2:
        return SHORT
    return "" if all(map(_is_finite, polygon)) else NOT_FINITE


def _is_finite(number: object) -> bool:
    return type(number) is int or (type(number) is float and math.isfinite(number))
