"""MMScan as an lmms-eval task: posed frames of a room in, a ranked list of 3D boxes out.

The columns of a document are described in `box3d_replies`.
"""

from __future__ import annotations

from typing import Any

from ..parsing.profile import Profile
from ..parsing.scene import Scene
from .box3d_replies import (
    METRICS,
    check_targets,
    doc_to_target,
    record_of,
    reply_in,
    reported,
    score_in,
)
from .scans import bounds_text, camera_text, images, scene_with_boxes
from .task import Doc, GroundingTask

__all__ = ["METRICS", "doc_to_target", "record_of"]

BENCHMARK = "mmscan"


def score(
    doc: Doc, reply: str | None, profile: Profile, scene: Scene | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of one sample (see metrics.mmscan) and how its reply was read.

    ``scene`` is that of the document's scan unless given.
    """
    return score_in(scene or scene_with_boxes(doc), doc, reply, profile)


def oracle_reply(doc: Doc, profile: Profile, error: str | None = None) -> str:
    """Return the reply of a model that knows the targets; see `reply_in`."""
    return reply_in(scene_with_boxes(doc), doc, profile, error)


def _fields(doc: Doc) -> dict[str, str]:
    return {
        "cameras": camera_text(doc),
        "bounds": bounds_text(doc),
        "expression": doc["expression"],  # last: marks in it stay as they are
    }


def _read_settings(doc: Doc) -> None:
    """Raise for a target, a scan or a setting that could not be used after the answers."""
    check_targets(doc)
    scene_with_boxes(doc)


_task = GroundingTask(
    BENCHMARK,
    score,
    reported(BENCHMARK),
    read_target=_read_settings,
    visuals=images,
    fields=_fields,
    document="records/mmscan_document.json",
)
doc_to_visual = _task.doc_to_visual
doc_to_text = _task.doc_to_text
process_results = _task.process_results
metric_list = _task.metric_list
