"""The final answer: which part of a reply is read, and which replies hold none.

The rules stand in spec/parsers/final_answer.json. They apply in order, none looks at numbers, and
every step is linear in the length of the reply.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from . import tolerant_json

MAX_LENGTH = 4_000_000  # characters; a longer reply is refused, so that memory stays bounded


class Answer(NamedTuple):
    """The part of a reply that counts.

    ``failure`` names why there is none (then ``text`` is empty); ``truncated`` says that the reply
    ends inside its reasoning, its answer block, or the opening mark of a fence.
    """

    text: str
    failure: str | None = None
    truncated: bool = False


def final_answer(reply: str | None) -> Answer:
    """Return the final answer of a reply, or why there is none.

    ``failure`` is one of ``empty_response``, ``request_failed``, ``too_long``,
    ``truncated_reasoning`` and ``truncated``.
    """
    text = _without_end_tokens((reply or "").strip())
    if not text:
        return Answer("", failure="empty_response")
    if text.startswith(_FAILURE_TAGS):
        return Answer("", failure="request_failed")
    if len(text) > MAX_LENGTH:
        return Answer("", failure="too_long")
    unfenced = _without_outer_fence(text)
    if tolerant_json.is_json(unfenced):
        return Answer(unfenced)
    reasoned = _after_reasoning(text)
    if reasoned is None:
        return Answer("", failure="truncated_reasoning", truncated=True)
    block, cut = _last_block(reasoned)
    if cut:  # a number there may have lost its last digits
        block = block.rstrip(_OF_NUMBERS).rstrip()
    if not block:
        return Answer("", failure="truncated" if cut else "empty_response", truncated=cut)
    answer, cut_at_fence = _last_fence(block)
    return Answer(answer, truncated=cut or cut_at_fence)


_FAILURE_TAGS = ("[LMMS_EVAL_", "[SAFETY_BLOCKED", "Error:")
_REASONING = re.compile(
    r"<(?P<close>/?)(?:think|thinking|reasoning|analysis)>|◁(?P<kimi>/?)think▷", re.IGNORECASE
)
_BLOCKS = (
    (re.compile(r"<answer>", re.IGNORECASE), re.compile(r"</answer>", re.IGNORECASE)),
    (re.compile(r"<\|begin_of_box\|>"), re.compile(r"<\|end_of_box\|>")),
)
_END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<｜end▁of▁sentence｜>",
    "</s>",
    "<eos>",
    "<pad>",
)
_OF_NUMBERS = "0123456789.%０１２３４５６７８９．％"
_FENCE = re.compile(r"```[A-Za-z0-9_]*")
_NOT_BLANK = re.compile(r"\S")


def _without_end_tokens(text: str) -> str:
    end = len(text)
    while token := next((token for token in _END_TOKENS if text.endswith(token, 0, end)), None):
        end -= len(token)
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


def _after_reasoning(text: str) -> str | None:
    """Return the text with a blank for its reasoning, or None if that was never closed."""
    kept: list[str] = []
    position, depth = 0, 0
    for tag in _REASONING.finditer(text):
        closing = bool(tag["close"] or tag["kimi"])
        if depth == 0 and closing:
            kept = []
        elif depth == 0:
            kept.append(text[position : tag.start()])
        depth = 0 if closing else 1
        position = tag.end()
    return None if depth else " ".join([*kept, text[position:]])


def _last_block(text: str) -> tuple[str, bool]:
    """Return the content of the last answer block, or the text, and whether it is cut."""
    openers = [
        (last, close) for open_, close in _BLOCKS for last in deque(open_.finditer(text), maxlen=1)
    ]
    if not openers:
        return text.strip(), False
    opener, close = max(openers, key=lambda pair: pair[0].end())
    end = close.search(text, opener.end())
    return text[opener.end() : end.start() if end else None].strip(), end is None


def _without_outer_fence(text: str) -> str:
    opener = _FENCE.match(text)
    if opener and text.endswith("```") and opener.end() <= len(text) - 3:
        return text[opener.end() : -3].strip()
    return text


def _last_fence(text: str) -> tuple[str, bool]:
    """Return the content of the last fenced block that is not blank, or the text if there is none.

    Also return whether the text is cut, which is when it ends in a mark that opens a block.
    A fence that opens on JSON closes after it: fence marks inside its strings do not count.
    """
    content, cut = text, False
    opener = _FENCE.search(text)
    while opener:
        body = _NOT_BLANK.search(text, opener.end())
        if body is None:
            cut = opener.end() > opener.start() + len("```")  # a bare mark closes, it opens nothing
            break
        json_opens = body.group() in "{["
        end = tolerant_json.end_of_value(text, body.start()) if json_opens else opener.end()
        closer = text.find("```", end)
        content = text[opener.end() : closer if closer >= 0 else None].strip() or content
        opener = _FENCE.search(text, closer + 3) if closer >= 0 else None
    return content, cut
