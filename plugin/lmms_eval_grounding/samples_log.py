"""The samples files that lmms-eval writes with ``--log_samples``: replies, and how they were read.

Known here is the form of their lines; nothing of the host is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class LoggedReply(NamedTuple):
    """A reply of a finished run.

    Attributes
    ----------
    key
        The sample's id; its position in the split where the log does not tell the id.
    reply
        The first reply, ``""`` where there was none.
    reading
        What this package logged of how it was read: profile, status, reason, ...; empty where it
        logged nothing.
    """

    key: str | int
    reply: str
    reading: Mapping[str, Any]


def is_logged_sample(line: Any) -> bool:
    """Return whether a line of a JSONL file is one of a samples file, by its keys."""
    return isinstance(line, dict) and ("resps" in line or "filtered_resps" in line)


def logged_reply(sample: Any) -> LoggedReply:
    """Return the reply of one line.

    Raises
    ------
    ValueError, LookupError, TypeError
        If the line is none of a samples file.
    """
    reply = sample["resps"] if "resps" in sample else sample["filtered_resps"]
    while isinstance(reply, list):
        reply = reply[0]
    if not isinstance(reply, str | None):
        raise TypeError("the reply is no text")
    reading = sample.get("grounding")
    if reading is None:
        return LoggedReply(sample["doc_id"], reply or "", {})
    # The host logs a reply of null, which was read as an empty one, as the text None.
    was_null = reply == "None" and reading["reason"] == "empty_response"
    return LoggedReply(reading["id"], "" if was_null else reply or "", reading)
