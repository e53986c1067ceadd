"""The phrases of RefSegRS: ``output_phrase_<split>.txt``, one triplet a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import SourceError
from .manifest import LeftOutList
from .refsegrs_files import PHRASES, SPLITS, SourceFiles

# The card of the data set; they add up to the 4,420 triplets of the paper.
RELEASES: Mapping[str, Mapping[str, int]] = {
    "official release": {"train": 2172, "val": 431, "test": 1817}
}

# An id, a run of blanks, and the phrase with whatever blanks it has itself.
_LINE = re.compile(r"([0-9]{1,18})[ \t]+(.*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class Phrases:
    """What the phrase files say.

    Attributes
    ----------
    texts
        The phrase by triplet id, for each split that has a file with lines; ids as written.
    absent
        The splits without, each with the reason.
    release
        A key of ``RELEASES``, or ``unknown release`` with the three counts.
    """

    texts: dict[str, dict[str, str]]
    absent: dict[str, str]
    release: str


def read_phrases(files: SourceFiles, left_out: LeftOutList) -> Phrases:
    """Read the phrase files, as far as they exist.

    Parameters
    ----------
    files
        The release.
    left_out
        Receives the lines that hold no id and phrase, or an id that is there before.

    Raises
    ------
    SourceError
        When a file is no UTF-8 text, or two splits share an id, which no release does.
    """
    lines, absent = {}, {}
    for split in SPLITS:
        found = _lines(files, PHRASES[split])
        if found:
            lines[split] = found
        else:
            reason = "is empty" if found is not None else "is missing"
            absent[split] = f"{PHRASES[split]} {reason}"
    listed = {split: len(found) for split, found in lines.items()}
    owners: dict[str, str] = {}
    texts = {split: _texts(split, found, owners, left_out) for split, found in lines.items()}
    return Phrases(texts, absent, _release(listed))


def _lines(files: SourceFiles, name: str) -> list[str] | None:
    try:
        data = files.read(name)
        # Some editors begin a text with a mark, which is no part of it.
        text = None if data is None else data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = fault.object[: fault.start].count(b"\n") + 1
        raise SourceError(f"{name} line {line}: not UTF-8 text ({fault.reason})") from fault
    except SourceError as fault:
        raise SourceError(f"{name}: {fault}") from fault
    if text is None or not text.strip():
        return None if text is None else []
    lines = text.split("\n")
    while not lines[-1].strip():
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _release(listed: Mapping[str, int]) -> str:
    """Name the release by the counts of the files that are there."""
    for name, counts in RELEASES.items():
        if listed and listed.items() <= counts.items():
            return name
    return f"unknown release ({'/'.join(f'{listed.get(split, 0):,}' for split in SPLITS)})"


def _texts(
    split: str, lines: list[str], owners: dict[str, str], left_out: LeftOutList
) -> dict[str, str]:
    found: dict[str, str] = {}
    file = PHRASES[split]
    for number, line in enumerate(lines, start=1):
        place = f"{file} line {number}"
        match = _LINE.fullmatch(line)
        if match is None or not match[2].strip():
            fault = SourceError(f"{place}: {line[:60]!r} is not an id, a blank and a phrase")
            left_out.add(fault, split=split, row_id="", file=file)
            continue
        triplet, text = match.groups()
        if triplet in found:
            fault = SourceError(f"{place}: {triplet} is there a second time")
            left_out.add(fault, split=split, row_id=triplet, file=file)
        elif triplet in owners:
            raise SourceError(
                f"{place}: {triplet} is in {owners[triplet]} too; splits share no triplet, so "
                "these files are not of one release"
            )
        else:
            found[triplet] = text
            owners[triplet] = place
    return found
