"""Whether the bytes of a JPEG are a whole picture of the stated size."""

from __future__ import annotations

import io

from PIL import Image

from .errors import SourceError

# Below the size at which Pillow begins to warn of decompression bombs (89 million pixels).
MAX_PIXELS = 2**26

_ORIENTATION = 0x0112  # EXIF tag


def check_jpeg(data: bytes, *, width: int, height: int) -> None:
    """Decode a JPEG once and compare its size in pixels.

    Raises
    ------
    SourceError
        When the bytes are no JPEG, end too early, have another size, or carry an EXIF orientation
        by which readers (``datasets`` too) turn the picture, while its annotation stays as it is.
    """
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
            if image.size != (width, height):
                raise SourceError(
                    f"the picture has {image.width} x {image.height} pixels, "
                    f"the annotation says {width} x {height}"
                )
            if width * height > MAX_PIXELS:
                raise SourceError(f"{width} x {height} pixels; the limit is {MAX_PIXELS} pixels")
            orientation = image.getexif().get(_ORIENTATION, 1)
            if orientation != 1:
                raise SourceError(
                    f"the EXIF orientation is {orientation}: readers would turn the picture away "
                    "from its annotation"
                )
            image.load()
    except SourceError:
        raise
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as fault:
        raise SourceError(f"not a readable JPEG of {len(data)} bytes ({fault})") from fault
