"""Mask syntaxes of tags and tokens: grids of labels, polygons of bins, tokens for a decoder.

One function per syntax, named as its spec in spec/parsers/masks/ and its cases in
golden_cases/parsers/masks/. All patterns are linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..geometry.masks import MaskError, rle_from_grid
from .convention import MaskConvention
from .mask_parts import NOTHING, MaskReading, Part
from .mask_polygons import place_polygon, polygon_row

BACKGROUND = "others"

# What stands for a mask that only the model's own decoder can make.
DECODER_TOKEN = re.compile(r"\[SEG[0-9]{0,3}\]|<SEG>|<seg_?[0-9]{1,4}>|<MASK>|<start_of_mask>")
REJECT_TOKEN = "[REJ]"


def grid_labels(text: str, convention: MaskConvention, width: int, height: int) -> MaskReading:
    """Read ``<seg>``: rows of runs ``label *count| label *count``, one label a cell of a grid.

    A grid of nothing but the background label says that nothing is there.
    """
    parts: list[Part] = []
    flags: set[str] = set()
    for body, closer in _GRID.findall(text):
        part = _grid_part(body, convention.grid, width, height)
        if part.fault and not closer:
            flags.add("truncated")
        else:
            parts.append(part)
    return MaskReading(parts, frozenset(flags))


def location_polygons(
    text: str, convention: MaskConvention, width: int, height: int
) -> MaskReading:
    """Read runs of ``<loc_x><loc_y>``: each is a polygon, whatever stands between two runs."""
    runs = [([run.group()], _is_cut(text, run)) for run in _LOCATION_RUN.finditer(text)]
    if _CUT_TOKEN.search(text):  # behind a run, or all that there is of one
        runs.append(([], True))
    return _polygons(runs, convention, width, height)


def bin_polygons(text: str, convention: MaskConvention, width: int, height: int) -> MaskReading:
    """Read runs of ``<bin_x_y>``: two corners, then polygons with ``<separator>`` between them."""
    found = _BIN_RUN.finditer(text)
    runs = [(run["polygons"].split("<separator>"), _is_cut(text, run)) for run in found]
    return _polygons(runs, convention, width, height)


def decoder_tokens(text: str, convention: MaskConvention, width: int, height: int) -> MaskReading:
    """Read tokens that need the model's decoder, and ``[REJ]``, which says that nothing is there.

    Where the profile does not list this syntax, ``[REJ]`` has to be all of the text.
    """
    if DECODER_TOKEN.search(text):
        return MaskReading([Part(fault="needs_decoder")])
    listed = "decoder_tokens" in convention.syntaxes
    rejected = REJECT_TOKEN in text if listed else text.strip(" \t\r\n\"'`*.!") == REJECT_TOKEN
    return MaskReading([NOTHING] if rejected else [])


_GRID = re.compile(r"<seg>(.*?)(</seg>|\Z)", re.DOTALL)
_LOCATION_RUN = re.compile(r"(?:<loc_[0-9]{1,4}>\s*)+")
_BIN_RUN = re.compile(
    r"(?:<bin_[0-9]{1,4}_[0-9]{1,4}>\s*){1,2}"
    r"(?P<polygons>(?:<(?:bin_[0-9]{1,4}_[0-9]{1,4}|separator)>\s*)*)"
)
_CUT_TOKEN = re.compile(r"<[a-z_0-9]*\Z")
_DIGITS = re.compile(r"[0-9]+")
_COUNT = re.compile(r"\*[ \t]*([0-9]+)[ \t]*(?:\||\Z)")


def _grid_part(body: str, side: int, width: int, height: int) -> Part:
    """Return the mask of a square grid, whose cells are labelled row by row."""
    rows = [row for row in body.split("\n") if row.strip()]
    runs = [list(_runs(row)) for row in rows]
    if any(run is None for row in runs for run in row):
        return Part(fault="broken")
    sound = [[run for run in row if run] for row in runs]
    if len(rows) != side or any(sum(count for _, count in row) != side for row in sound):
        return Part(fault="wrong_count")
    labels = {label for row in sound for label, count in row if count} - {BACKGROUND}
    if not labels:
        return NOTHING
    if len(labels) > 1:
        return Part(fault="mixed_labels")
    cells = [[int(label != BACKGROUND) for label, n in row for _ in range(int(n))] for row in sound]
    try:
        return Part(rle=rle_from_grid(cells, height, width))
    except MaskError:  # the image is larger than a mask may be
        return Part(fault="bad_mask")


def _runs(row: str) -> Iterator[tuple[str, float] | None]:
    """Yield the runs of a row, each from its end: labels hold any character. None: no run."""
    position = 0
    for count in _COUNT.finditer(row.rstrip()):
        label = " ".join(row[position : count.start()].split()).casefold()
        yield (label, float(count[1])) if label else None  # of any number of digits
        position = count.end()
    if row[position:].strip():
        yield None


def _polygons(
    runs: list[tuple[list[str], bool]], convention: MaskConvention, width: int, height: int
) -> MaskReading:
    """Return the polygons of runs of tokens; the last one of a run that is cut is dropped."""
    parts: list[Part] = []
    for polygons, is_cut in runs:
        for tokens in polygons[:-1] if is_cut else polygons:
            numbers = [float(digits) for digits in _DIGITS.findall(tokens)]
            parts.append(place_polygon(polygon_row(numbers), convention, width, height))
    is_truncated = any(is_cut for _, is_cut in runs)
    return MaskReading(parts, frozenset({"truncated"} if is_truncated else ()))


def _is_cut(text: str, run: re.Match[str]) -> bool:
    """Return whether the text ends in a piece of a token right after a run."""
    return bool(_CUT_TOKEN.match(text, run.end()))
