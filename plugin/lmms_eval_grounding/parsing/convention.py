"""Conventions: how a profile writes boxes and masks, as data."""

from __future__ import annotations

from dataclasses import dataclass

from .orders import Order
from .spaces import Space


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
class MaskConvention:
    """How a profile writes masks; the fields are described in spec/profile.json.

    ``box`` is how it writes the boxes beside its masks, or in their place.
    """

    nothing: str
    box: BoxConvention | None
    from_box: bool = False
    with_boxes: bool = False
    with_scores: bool = False
    syntaxes: tuple[str, ...] = ()
    space: Space | None = None
    order: str = "xy"
    grid: int = 0
    write: str = ""
    example: str = ""
    keys: tuple[str, ...] = ()
    bare: bool = False
    decimals: int = 0
    score_threshold: float | None = None
