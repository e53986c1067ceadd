"""The pixels of a greyscale PNG from untrusted bytes."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import numpy.typing as npt

from .errors import MaskError

# Below the size at which Pillow begins to warn of decompression bombs (89 million pixels).
MAX_PIXELS = 2**26

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def size_of_png(data: bytes) -> tuple[int, int]:
    """Return height and width as the header states them, without decoding anything.

    Raises
    ------
    MaskError
        When the bytes are no PNG, or one that is not greyscale of 1 or 8 bits, not interlaced.
    """
    if not isinstance(data, bytes):
        raise MaskError(f"a PNG is given as bytes, not as {type(data).__name__}")
    if not data.startswith(_SIGNATURE):
        raise MaskError(f"not a PNG: the data begin with {data[:8]!r} ({len(data)} bytes)")
    if data[8:16] != b"\x00\x00\x00\rIHDR" or len(data) < 33:
        raise MaskError("a PNG without a complete header")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    if colour != 0 or depth not in (1, 8) or interlaced:
        raise MaskError(
            f"a PNG of colour type {colour}, {depth} bits, interlace method {interlaced}; "
            "a mask is greyscale (colour type 0) of 1 or 8 bits, not interlaced"
        )
    if not 0 < width * height <= MAX_PIXELS:
        raise MaskError(f"a PNG of {height} x {width} pixels; the limit is {MAX_PIXELS} pixels")
    return height, width


def pixels_of_png(data: bytes) -> npt.NDArray[np.uint8]:
    """Return the grey values, shape ``(height, width)``; 0 and 255 in a PNG of 1 bit.

    Raises
    ------
    MaskError
        As ``size_of_png``; for data that are cut off or damaged.
    """
    height, width = size_of_png(data)
    _check_complete(data, height, width)
    from PIL import Image  # noqa: PLC0415 - only this syntax needs it

    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            return np.asarray(image.convert("L"))
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as fault:
        raise MaskError(f"a damaged PNG: {fault}") from fault


def resized(pixels: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return grey values resampled by Pillow's bilinear filter, which averages when it shrinks."""
    from PIL import Image  # noqa: PLC0415

    image = Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(image)


def _check_complete(data: bytes, height: int, width: int) -> None:
    """Raise MaskError unless the compressed pixels end, and end where the header says.

    Pillow does not always notice: where ``ImageFile.LOAD_TRUNCATED_IMAGES`` is set, as lmms-eval
    0.7.3 does on import (``api/task.py``), it fills the missing pixels of a PNG that is cut off
    with zeros.
    """
    depth = data[24]
    needed = height * (1 + (width * depth + 7) // 8)  # one byte a row names the row's filter
    stream = zlib.decompressobj()
    position, found = 33, 0
    try:
        while found <= needed and not stream.eof:
            size, kind = struct.unpack(">I4s", data[position : position + 8])
            if kind == b"IDAT":
                chunk = data[position + 8 : position + 8 + size]
                found += len(stream.decompress(chunk, needed + 1 - found))
            position += 12 + size
    except (struct.error, zlib.error) as fault:
        raise MaskError(
            f"a PNG that is cut off or damaged after {found} bytes of pixels"
        ) from fault
    if found != needed:
        raise MaskError(f"a PNG with {found} bytes of pixels; its header announces {needed}")
