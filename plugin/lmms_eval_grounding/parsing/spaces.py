"""Coordinate spaces: what the numbers of a reply mean in pixels of the image.

A space is declared by the profile, never guessed from the numbers. Along each axis

    pixel = (number + offset) * size / extent - margin

where ``size`` is the image side, or the side of the square it was padded to, and ``margin`` is the
padding on the left or top.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple


class Resize(NamedTuple):
    """One step of the Qwen2-VL image processor: sides become multiples of ``factor``."""

    factor: int
    min_pixels: int
    max_pixels: int

    def __call__(self, width: int, height: int) -> tuple[int, int]:
        """Return the (width, height) that an image of ``width`` x ``height`` is resized to.

        Sides are rounded to the nearest multiple (ties to even), at least one; an area above
        ``max_pixels`` or below ``min_pixels`` is then scaled by the square root of the excess and
        rounded down or up. Source: QwenLM/Qwen2.5-VL, ``smart_resize`` of qwen_vl_utils.
        """
        factor = self.factor
        new_w = max(factor, round(width / factor) * factor)
        new_h = max(factor, round(height / factor) * factor)
        if new_w * new_h > self.max_pixels:
            shrink = math.sqrt(width * height / self.max_pixels)
            new_w = max(factor, math.floor(width / shrink / factor) * factor)
            new_h = max(factor, math.floor(height / shrink / factor) * factor)
        elif new_w * new_h < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (width * height))
            new_w = math.ceil(width * grow / factor) * factor
            new_h = math.ceil(height * grow / factor) * factor
        return new_w, new_h


class Axis(NamedTuple):
    """The affine map of one axis, see the module's formula."""

    extent: float
    offset: float
    size: float
    margin: float

    def pixel(self, number: float) -> float:
        """Return the pixel coordinate that a number means."""
        return (number + self.offset) * self.size / self.extent - self.margin

    def number(self, pixel: float) -> float:
        """Return the number that means a pixel coordinate; the inverse of `pixel`."""
        return (pixel + self.margin) * self.extent / self.size - self.offset


@dataclass(frozen=True)
class Space:
    """A declared coordinate space.

    Parameters
    ----------
    extent
        The number that means the far edge: a pair for (x, y), ``"image"`` for pixels of the image,
        or ``"resized"`` for pixels of the image that ``resizes`` produce.
    offset
        Added to a number before scaling; 0.5 for the centres of bins.
    padded
        Whether numbers refer to the image padded to a square, with equal margins on both
        sides (an odd pixel goes to the right or the bottom).
    resizes
        The resize steps of the model's own processor, in order.
    tolerance
        The share of the extent by which a number may lie outside before it is out of space.
    """

    extent: str | tuple[float, float]
    offset: float = 0.0
    padded: bool = False
    resizes: tuple[Resize, ...] = ()
    tolerance: float = 0.05

    def axes(self, width: int, height: int) -> tuple[Axis, Axis]:
        """Return the maps of the x and the y axis for an image of ``width`` x ``height`` pixels."""
        extent_x, extent_y = self._extents(width, height)
        size_x, size_y = (max(width, height),) * 2 if self.padded else (width, height)
        return (
            Axis(extent_x, self.offset, size_x, (size_x - width) // 2),
            Axis(extent_y, self.offset, size_y, (size_y - height) // 2),
        )

    def contains(self, number: float, axis: Axis) -> bool:
        """Return whether a number lies in the space, give or take the tolerance."""
        slack = self.tolerance * axis.extent
        return -slack <= number <= axis.extent + slack

    def _extents(self, width: int, height: int) -> tuple[float, float]:
        if self.extent == "image":
            return width, height
        if self.extent == "resized":
            for resize in self.resizes:
                width, height = resize(width, height)
            return width, height
        assert not isinstance(self.extent, str)
        return self.extent
