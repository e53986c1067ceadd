"""One annotation file of the PASCAL VOC kind, read without trusting it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

from .errors import SourceError

# The annotations of the releases have a few kilobytes.
MAX_BYTES = 2**24

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,9}")


class _NoDoctype(ElementTree.TreeBuilder):
    """A tree without DOCTYPE, hence without entities that could grow or reach other files."""

    def doctype(self, *_: object) -> NoReturn:
        raise SourceError("it has a DOCTYPE, which may declare entities; none is accepted")


def read_annotation(path: Path) -> ElementTree.Element:
    """Return the ``annotation`` element of a file.

    Raises
    ------
    SourceError
        When the file cannot be read, is not well-formed XML, has a DOCTYPE or another root.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise SourceError(f"{size} bytes; the limit is {MAX_BYTES}")
        parser = ElementTree.XMLParser(target=_NoDoctype())
        parser.feed(path.read_bytes())
        root: ElementTree.Element = parser.close()
    except SourceError:
        raise
    except ElementTree.ParseError as fault:
        raise SourceError(f"line {fault.position[0]}: not well-formed XML ({fault})") from fault
    except (ValueError, LookupError) as fault:  # an encoding that is wrong or unknown
        raise SourceError(f"not readable XML ({fault})") from fault
    except OSError as fault:
        raise SourceError(f"cannot be read ({fault.strerror})") from fault
    if root.tag != "annotation":
        raise SourceError(f"its root element is <{root.tag[:40]}>, not <annotation>")
    return root


def only_child(element: ElementTree.Element, tag: str) -> ElementTree.Element:
    """Return the child with this tag.

    Raises
    ------
    SourceError
        When there is none, or more than one.
    """
    children = element.findall(tag)
    if len(children) != 1:
        found = f"{len(children)} <{tag}>" if children else f"no <{tag}>"
        raise SourceError(f"<{element.tag}> has {found}")
    return children[0]


def text_of(element: ElementTree.Element, tag: str) -> str:
    """Return the text of the child with this tag, as the XML parser gives it.

    Raises
    ------
    SourceError
        When the child is missing, double or blank.
    """
    text = only_child(element, tag).text or ""
    if not text.strip():
        raise SourceError(f"<{tag}> of <{element.tag}> is empty")
    return text


def size_of(annotation: ElementTree.Element) -> tuple[int, int]:
    """Return width and height in pixels, as ``<size>`` states them.

    Raises
    ------
    SourceError
        When either is missing or not a positive whole number.
    """
    size = only_child(annotation, "size")
    sides = [text_of(size, tag).strip() for tag in ("width", "height")]
    if not all(_COUNT.fullmatch(side) and int(side) for side in sides):
        raise SourceError(f"<size> says {sides[0]!r} x {sides[1]!r}: not whole pixels")
    return int(sides[0]), int(sides[1])


def box_of(item: ElementTree.Element, *, width: int, height: int) -> list[float]:
    """Return the box of an ``object`` as ``[x1, y1, x2, y2]`` in pixels.

    Raises
    ------
    SourceError
        When a corner is missing or no finite number, the box is empty or inverted, or it reaches
        outside the image.
    """
    box = only_child(item, "bndbox")
    x1, y1, x2, y2 = (_number(box, tag) for tag in ("xmin", "ymin", "xmax", "ymax"))
    shown = f"the box {x1:g}, {y1:g}, {x2:g}, {y2:g}"
    if x2 <= x1 or y2 <= y1:
        raise SourceError(f"{shown} has no area: xmax and ymax must exceed xmin and ymin")
    if x1 < 0 or y1 < 0 or x2 > width or y2 > height:
        raise SourceError(f"{shown} reaches outside the image of {width} x {height} pixels")
    return [x1, y1, x2, y2]


def _number(box: ElementTree.Element, tag: str) -> float:
    text = text_of(box, tag).strip()
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise SourceError(f"<{tag}> is {text[:40]!r}, not a finite number")
    return number
