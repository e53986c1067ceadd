"""What scoring has to know of each benchmark, as data; nothing here is slow to import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..parsing.parsed import ParsedBoxes, ParsedBoxes3d, ParsedMask
from ..parsing.profile import Profile


class Kind(NamedTuple):
    """One benchmark.

    Attributes
    ----------
    data
        The name of its prepared data, and of the schema of its documents.
    split
        The split that its task reads.
    form
        How a prediction that was read already is given; see `given`.
    parsed
        What reading gives.
    convention
        Raises `ProfileError` for a profile that does not say how answers are written.
    """

    data: str
    split: str
    form: str
    parsed: type[ParsedBoxes | ParsedMask | ParsedBoxes3d]
    convention: Callable[[Profile], Any]

    @property
    def document(self) -> str:
        """The schema of a document."""
        return f"records/{self.data}_document.json"

    @property
    def record(self) -> str:
        """The schema of a record."""
        return f"records/{self.data}.json"


KINDS: dict[str, Kind] = {
    "rsvg": Kind("rsvg", "test", "boxes", ParsedBoxes, Profile.box_convention),
    "gres": Kind("gres", "val", "mask", ParsedMask, Profile.mask_convention),
    "refsegrs": Kind("refsegrs", "test", "mask", ParsedMask, Profile.mask_convention),
    "mmscan": Kind("mmscan", "val", "boxes3d", ParsedBoxes3d, Profile.box3d_convention),
    "mmscan_candidates": Kind(
        "mmscan", "val", "boxes3d", ParsedBoxes3d, Profile.candidate_convention
    ),
}
