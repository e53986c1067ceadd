"""3D boxes: from a reply to cuboids in the scene's frame."""

from __future__ import annotations

from .answer import final_answer
from .convention3d import Box3dConvention, CandidateConvention
from .none_answers import holds_nothing, says_none
from .parsed import ParsedBoxes3d
from .placement3d import Placed, candidate_boxes, scene_boxes
from .profile import Profile
from .scene import Scene
from .syntaxes3d import BOX_SYNTAXES, ID_SYNTAXES, Row

MAX_BOXES = 1000  # rows that are read of one reply


def parse_boxes3d(reply: str | None, profile: Profile, scene: Scene) -> ParsedBoxes3d:
    """Return the 3D boxes of a reply in the scene's frame, in the order of the answer.

    Never raises because of a reply; takes time linear in its length, and reads at most `MAX_BOXES`
    boxes. Where the scene has candidates, the reply names ids, and the boxes are theirs. The rules
    stand in spec/parsers/boxes3d/. Nothing but the reply, the declared profile and the geometry of
    the scene is looked at.

    Raises
    ------
    ProfileError
        If the profile does not say how 3D boxes are written, or how candidates are named.
    """
    convention: Box3dConvention | CandidateConvention
    if scene.candidates is None:
        convention = profile.box3d_convention()
    else:
        convention = profile.candidate_convention()
    answer = final_answer(reply)
    flags = {"truncated"} if answer.truncated else set()
    if answer.failure:
        return ParsedBoxes3d("unparseable", flags=tuple(flags), reason=answer.failure)
    if not answer.truncated and says_none(answer.text, profile.none):
        return ParsedBoxes3d("no_target")
    rows, noticed = _read(answer.text, convention)
    flags |= noticed
    if isinstance(convention, Box3dConvention):
        placed = scene_boxes(rows, convention, scene)
    else:
        placed = candidate_boxes(rows, scene)
    valid = [place for place in placed if place.box is not None]
    if valid:
        flags |= {"partial"} if len(valid) < len(placed) else set()
        return _ranked(valid, flags, convention.syntax)
    seen = tuple(sorted(flags))
    if placed:
        return ParsedBoxes3d(
            "malformed", flags=seen, reason=placed[0].fault, syntax=convention.syntax
        )
    if "truncated" in flags:
        return ParsedBoxes3d("unparseable", flags=seen, reason="truncated")
    if holds_nothing(answer.text, convention.keys):
        return ParsedBoxes3d("no_target")
    return ParsedBoxes3d("unparseable", reason="no_box")


def _read(
    text: str, convention: Box3dConvention | CandidateConvention
) -> tuple[list[Row], set[str]]:
    """Return the first rows of a text, and what was noticed on the way."""
    rows: list[Row] = []
    flags: set[str] = set()
    for row, flag in {**BOX_SYNTAXES, **ID_SYNTAXES}[convention.syntax](text, convention):
        if row and len(rows) == MAX_BOXES:
            return rows, flags | {"too_many"}
        rows += [row] if row else []
        flags |= {flag} if flag else set()
    return rows, flags


def _ranked(valid: list[Placed], flags: set[str], syntax: str) -> ParsedBoxes3d:
    """Return the valid boxes of a reply with their scores."""
    scored = [place.score is not None for place in valid]
    if any(scored) and not all(scored):
        flags = flags | {"partial_scores"}
    return ParsedBoxes3d(
        status="ok",
        boxes=tuple(place.box for place in valid if place.box is not None),
        scores=tuple(place.score for place in valid) if any(scored) else None,
        flags=tuple(sorted(flags.union(*(place.flags for place in valid)))),
        syntax=syntax,
    )
