"""The pictures of RefSegRS, which are TIFF, and what their pixels must be."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from PIL import Image

from ..geometry.masks import Rle, rle_from_array
from .errors import SourceError
from .jpeg import MAX_PIXELS

_ORIENTATION = 274  # TIFF tag, which datasets obeys
_MODES = ("RGB", "RGBA", "L", "P", "1")  # those that turn into RGB without loss of range


def size_of_tiff(data: bytes) -> tuple[int, int]:
    """Decode a TIFF once; return its width and height in pixels.

    Raises
    ------
    SourceError
        When the bytes are no TIFF, end too early, hold several pictures or one that is not 8 bits
        a channel, or one that readers would turn.
    """
    with _tiff(data) as image:
        if image.mode not in _MODES:
            raise SourceError(f"its pixels are of Pillow's mode {image.mode}, not RGB")
        image.load()
        return image.size


def mask_of_tiff(data: bytes) -> tuple[Rle, int, int]:
    """Return the mask that a TIFF of 0 and 1, or of 0 and 255, stands for, its width and height.

    All channels of one with several must be equal.

    Raises
    ------
    SourceError
        When the bytes are no such TIFF; the message shows the values that were found.
    """
    with _tiff(data) as image:
        pixels = np.asarray(image)
    if pixels.ndim == 3 and (pixels == pixels[..., :1]).all():
        pixels = pixels[..., 0]
    if pixels.ndim != 2:
        raise SourceError(f"a mask has one channel; this one has {pixels.shape[2]} that differ")
    values = np.unique(pixels).tolist()
    if not (set(values) <= {0, 1} or set(values) <= {0, 255}):
        shown = ", ".join(map(str, values[:8])) + ", ..." * (len(values) > 8)
        raise SourceError(f"a mask holds 0 and 1, or 0 and 255; this one holds {shown}")
    height, width = pixels.shape
    return rle_from_array(pixels != 0), width, height


@contextmanager
def _tiff(data: bytes) -> Iterator[Image.Image]:
    try:
        with Image.open(io.BytesIO(data), formats=("TIFF",)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise SourceError(
                    f"{image.width} x {image.height} pixels; the limit is {MAX_PIXELS} pixels"
                )
            if getattr(image, "n_frames", 1) != 1:
                raise SourceError("it holds several pictures")
            orientation = image.getexif().get(_ORIENTATION, 1)
            if orientation != 1:
                raise SourceError(
                    f"its orientation is {orientation}: readers would turn image and mask apart"
                )
            yield image
    except SourceError:
        raise
    # What Pillow and libtiff raise for damaged files has no common base.
    except Exception as fault:
        raise SourceError(f"not a readable TIFF of {len(data)} bytes ({fault})") from fault
