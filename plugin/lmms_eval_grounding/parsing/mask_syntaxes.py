"""The mask syntaxes by name; each has a spec in spec/parsers/masks/ and cases of the same name."""

from __future__ import annotations

from collections.abc import Callable

from .convention import MaskConvention
from .mask_maps import json_maps
from .mask_parts import MaskReading
from .mask_polygons import json_polygons
from .mask_rle import json_rle
from .mask_tokens import bin_polygons, decoder_tokens, grid_labels, location_polygons

MaskSyntax = Callable[[str, MaskConvention, int, int], MaskReading]

MASK_SYNTAXES: dict[str, MaskSyntax] = {
    syntax.__name__: syntax
    for syntax in (
        json_rle,
        json_polygons,
        json_maps,
        grid_labels,
        location_polygons,
        bin_polygons,
        decoder_tokens,
    )
}
