"""What every benchmark has to do for the host: images, replies, safe reading, metric entries."""

from __future__ import annotations

import inspect
import io
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from PIL import Image

from ..contract import check, finite
from ..metrics.samples import Record, status_rate
from ..parsing.parsed import STATUSES, ParsedBoxes, ParsedBoxes3d, ParsedMask

Aggregation = Callable[[Sequence[Record]], float]
Parsed = TypeVar("Parsed", ParsedBoxes, ParsedMask, ParsedBoxes3d)

PARSED_SCHEMAS = {
    ParsedBoxes: "records/parsed_boxes.json",
    ParsedMask: "records/parsed_mask.json",
    ParsedBoxes3d: "records/parsed_boxes3d.json",
}

_logger = logging.getLogger(__name__)


class Refusal(SystemExit):
    """A mistake of the user that ends the run at once; the message is one line with the remedy.

    A ``SystemExit``, because lmms-eval buries an ``Exception`` in a traceback, ends with code 0,
    and leaves the other processes of a distributed run waiting.
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"lmms-eval-grounding: {message}")


def doc_image(value: Any) -> Image.Image:
    """Return an image column's value as an RGB image.

    The value is a PIL image or ``{"bytes": .., "path": ..}``, which a parquet file without Hugging
    Face metadata gives.
    """
    if isinstance(value, Mapping):
        value = Image.open(io.BytesIO(value["bytes"]) if value.get("bytes") else value["path"])
    image: Image.Image = value.convert("RGB")
    return image


def first_reply(results: Sequence[Any]) -> str | None:
    """Return the first reply of a sample; None if there is none, or if it is no text."""
    reply = results[0] if results else None
    if isinstance(reply, (list, tuple)):
        reply = reply[0] if reply else None
    return reply if isinstance(reply, str) else None


def read_safely(result: type[Parsed], parse: Callable[..., Parsed], *args: Any) -> Parsed:
    """Return what a parser makes of a reply, checked against its schema in spec/records/.

    One exception while scoring would end the host's run and lose every result, so a defect of ours
    is logged and the sample counts as ``unparseable``, with the reason ``internal_error``.
    """
    try:
        parsed = parse(*args)
        check(vars(parsed), PARSED_SCHEMAS[result])
    except Exception:
        _logger.exception("a reply could not be read, please report this with the reply")
        return result("unparseable", reason="internal_error")
    return parsed


def status_rates() -> dict[str, Aggregation]:
    """Return the rate of each status by its reported name, ``parse_ok`` and so on."""
    return {f"parse_{status}": partial(status_rate, status=status) for status in STATUSES}


@dataclass(frozen=True)
class Reduced:
    """An aggregation that needs a part of each record only, so that no more is kept and logged.

    Attributes
    ----------
    item
        From a record to what is kept of it; has the sample's ``id``.
    function
        From these items to the number.
    """

    item: Callable[[Record], Record]
    function: Aggregation

    def __call__(self, items: Sequence[Record]) -> float:
        """Return the number."""
        return self.function(items)


def items_of(record: Record, metrics: Mapping[str, Aggregation]) -> dict[str, Record]:
    """Return what each metric is given of a sample: its record, or the part that it needs."""
    return {
        name: metric.item(record) if isinstance(metric, Reduced) else record
        for name, metric in metrics.items()
    }


def host_metric_list(metrics: Mapping[str, Aggregation]) -> list[dict[str, Any]]:
    """Return the ``metric_list`` of a task: reported name, aggregation, direction."""
    falls = {"skipped", *(f"parse_{status}" for status in STATUSES)} - {"parse_ok"}
    return [
        {"metric": name, "aggregation": _Reported(function), "higher_is_better": name not in falls}
        for name, function in metrics.items()
    ]


class _Reported:
    """An aggregation whose undefined value is None: results files are strict JSON."""

    def __init__(self, function: Aggregation) -> None:
        self._function = function

    def __call__(self, items: Sequence[Record]) -> float | None:
        return finite(self._function(items))

    def __repr__(self) -> str:
        return _described(self._function)


def _described(function: Any) -> str:
    """Return a function's name with the arguments that are bound, as results files show it."""
    if isinstance(function, Reduced):
        return f"{_described(function.function)} of {_described(function.item)}"
    if not callable(function):
        return repr(function)
    function = inspect.unwrap(function)
    options = getattr(function, "keywords", {})
    function = getattr(function, "func", function)
    named = ", ".join(f"{key}={_described(value)}" for key, value in options.items())
    return f"{function.__module__}.{function.__qualname__}({named})"
