"""Compressed COCO counts and the runs they stand for; no pixel array, no pycocotools.

Pixels are numbered column by column: pixel ``(row, column)`` of an image of height ``h`` has the
number ``column * h + row``. A mask is a sequence of runs, background and foreground in turn,
background first (that run may be empty). Two forms of it are used here:

ends
    int64, one number a run: the first pixel after it. The last one is the number of pixels.
boundaries
    int64, even in number, ascending: the foreground is ``[b[0], b[1])``, ``[b[2], b[3])``, ...

In the text a number is written in groups of five bits, least significant first, one character a
group (code 48 to 111): bit 0x20 says that another group follows, bit 0x10 of the last group is the
sign. From the fourth run on the number is the difference to the run two before. Reference:
``rleToString`` and ``rleFrString`` of cocodataset/cocoapi@8c9bcc3:common/maskApi.c, which reads
any text at all: runs that do not fill the image, negative runs, numbers without a last group.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from .errors import MaskError, shown

Positions = npt.NDArray[np.int64]

# 30 bits hold any difference of two runs of the largest image that masks.py admits (2**28 pixels).
LONGEST_NUMBER = 6

# A text in which every interior run is positive and every number as short as possible has at most
# one character a pixel and one more; the rest is room for empty runs in tiny images.
SPARE_CHARACTERS = 64

_LIMITS = 2 ** (5 * np.arange(1, LONGEST_NUMBER) - 1)

_CODES = range(256)
_INVALID = 127
# What a character's group counts: a last group has a sign, a continued one has not.
_GROUP_VALUES = bytes(
    _INVALID if not 48 <= code < 112 else (code - 48 if code < 64 else code - 80) % 256
    for code in _CODES
)
# What the groups that follow count as multiples of: nothing follows a last group.
_GROUP_BASES = bytes(0 if code < 80 else 32 for code in _CODES)
# Marks that make a superfluous last group visible as "az" or "bm": zeros after a top bit 0, ones
# after a top bit 1.
_GROUP_MARKS = bytes(
    {48: ord("z"), 79: ord("m")}.get(code, ord("." if code < 80 else "a" if code < 96 else "b"))
    for code in _CODES
)


def ends_from_texts(texts: Sequence[bytes], total: int) -> list[Positions]:
    """Return the run ends of several compressed counts of images with ``total`` pixels each.

    All texts are decoded in one pass, since the price of a call exceeds that of a kilobyte.

    Raises
    ------
    MaskError
        For an empty or overlong text, a character outside ``0``..``o``, a number that is cut off
        or longer than ``LONGEST_NUMBER`` characters, a negative run, runs that do not add up to
        ``total``.
    """
    if not texts:
        return []
    for text in texts:
        _check_extent(text, total)
    numbers, stops = _numbers(texts)
    result: list[Positions] = []
    for start, stop in pairwise((0, *stops)):
        runs = numbers[start:stop]
        for lane in (runs[1::2], runs[2::2]):
            np.add.accumulate(lane, out=lane)
        result.append(_ends(runs, total))
    return result


def _check_extent(text: bytes, total: int) -> None:
    """Raise MaskError for a text whose length or last character rules it out."""
    if not text:
        raise MaskError(f"counts are empty; the runs must add up to {total} pixels")
    if len(text) > total + SPARE_CHARACTERS:
        raise MaskError(
            f"counts have {len(text)} characters, more than any mask of {total} pixels needs"
        )
    if 80 <= text[-1] < 112:
        raise MaskError(
            f"counts are cut off: their last character {chr(text[-1])!r} announces another one"
        )


def _numbers(texts: Sequence[bytes]) -> tuple[Positions, list[int]]:
    """Return the numbers written in complete texts, one after the other, and where each text ends.

    The second value counts the numbers in the first text, in the first two, and so on.
    """
    # The leading "0" makes every number, the first one too, begin after the end of another one.
    joined = b"0" + b"".join(texts)
    values = joined.translate(_GROUP_VALUES)
    if _INVALID in values:
        code = joined[values.index(_INVALID)]
        raise MaskError(
            f"counts hold the character {chr(code)!r} (code {code}); compressed counts are written "
            "in '0' to 'o' (codes 48 to 111), as bytes.decode() gives them, and str() does not"
        )
    bases = np.frombuffer(joined.translate(_GROUP_BASES), np.int8)
    last = (bases == 0).nonzero()[0]
    longest = int((last[1:] - last[:-1]).max())
    if longest > LONGEST_NUMBER:
        raise MaskError(
            f"counts hold a number of {longest} characters; no run needs more than {LONGEST_NUMBER}"
        )
    # After step k a position holds what it and the k groups after it count, as far as they belong
    # to the same number; int32 holds LONGEST_NUMBER groups.
    counted = np.frombuffer(values, np.int8).astype(np.int32)
    here, after = counted[:-1], counted[1:]
    own, base = here.copy(), bases[:-1].astype(np.int32)
    for _ in range(longest - 1):
        np.add(own, base * after, out=here)
    numbers = after.take(last[:-1]).astype(np.int64)
    return numbers, last.searchsorted(list(accumulate(map(len, texts)))).tolist()


def _ends(runs: Positions, total: int) -> Positions:
    """Return the run ends of run lengths, after checking them."""
    # As unsigned numbers the negative ones are huge, so one comparison finds both faults; what
    # passes cannot overflow a sum.
    if runs.view(np.uint64).max() > total:
        raise MaskError(
            f"counts hold a run of {runs[(runs < 0) | (runs > total)][0]} pixels; "
            f"a run has 0 to {total} pixels in this image"
        )
    ends: Positions = np.add.accumulate(runs)
    if ends[-1] != total:
        raise MaskError(f"the runs add up to {ends[-1]} pixels; the image has {total}")
    return ends


def ends_from_list(runs: Sequence[object], total: int) -> Positions:
    """Return the run ends of uncompressed counts: a list of run lengths, background first.

    Raises
    ------
    MaskError
        For an empty or overlong list, an entry that is no whole number, a negative run, runs that
        do not add up to ``total``.
    """
    if not runs:
        raise MaskError(f"counts are empty; the runs must add up to {total} pixels")
    if len(runs) > total + SPARE_CHARACTERS:
        raise MaskError(f"counts have {len(runs)} runs, more than a mask of {total} pixels needs")
    for run in runs:
        if not (is_whole(run) and 0 <= run <= total):
            raise MaskError(
                f"counts hold a run of {shown(run)}; a run has 0 to {total} pixels, a whole number"
            )
    return _ends(np.array(runs, np.int64), total)


def is_whole(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a whole number: an int, or a float such as 9.0, but no bool.

    JSON does not tell 9 from 9.0, and not every language can write both.
    """
    return type(value) is int or (type(value) is float and value.is_integer())


def is_canonical(text: bytes, ends: Positions) -> bool:
    """Say whether a text, with the run ends it decodes to, is what ``text_from_boundaries`` writes.

    It is when no run but the first is empty and no number has a superfluous group.
    """
    marks = text.translate(_GROUP_MARKS)
    return b"az" not in marks and b"bm" not in marks and not np.count_nonzero(ends[1:] == ends[:-1])


def boundaries_from_ends(ends: Positions) -> Positions:
    """Return the boundaries of the foreground, without a last run of background."""
    return ends[: ends.size - ends.size % 2]


def boundaries_from_intervals(starts: Positions, stops: Positions) -> Positions:
    """Return the boundaries of the union of intervals ``[start, stop)`` in any order.

    Intervals may overlap, touch or be empty.
    """
    positions = np.concatenate((starts, stops))
    # Stable, so that at one position intervals open before others close: touching ones merge.
    order = positions.argsort(kind="stable")
    opens = order < starts.size
    depth = np.add.accumulate(np.where(opens, 1, -1))
    outer = np.where(opens, depth == 1, depth == 0)
    boundaries: Positions = positions[order[outer]]
    return boundaries


def length(boundaries: Positions) -> int:
    """Return the number of foreground pixels."""
    return int((boundaries[1::2] - boundaries[::2]).sum())


def text_from_boundaries(boundaries: Positions, total: int) -> str:
    """Return the compressed counts; equal masks have equal texts.

    Boundaries that occur twice (an empty run) are dropped; ``total`` as the last one is optional.
    """
    positions, times = np.unique(boundaries, return_counts=True)
    positions = positions[(times % 2 == 1) & (positions < total)]
    numbers = np.diff(positions, prepend=0, append=total)
    numbers[3:] -= numbers[1:-2]
    # A number of k groups lies in -2**(5k - 1) .. 2**(5k - 1) - 1.
    magnitudes = np.maximum(numbers, ~numbers)
    lengths = 1 + _LIMITS.searchsorted(magnitudes, side="right")
    places = np.arange(int(lengths.max()))
    groups = numbers[:, None] >> (5 * places) & 31
    groups[places < lengths[:, None] - 1] += 32
    written = (groups + 48).astype(np.uint8)[places < lengths[:, None]]
    return bytes(written).decode()
