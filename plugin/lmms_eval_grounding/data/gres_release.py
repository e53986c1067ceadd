"""Which release of gRefCOCO a file is, by the number of its sentences."""

from __future__ import annotations

from collections.abc import Mapping

# Papers report the first three. The two JSON files and the images serve all four.
EVALUATED = ("val", "testA", "testB")
SPLITS = (*EVALUATED, "train")

# Sentences, and those without a target. The file was replaced on 2023-08-29, with other numbers of
# references and sentences (henghuiding/ReLA, README), and numbers from one file must not be
# compared with the other. Counts: FudanCVL/gRefCOCO@81eede59.
RELEASES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "August 2023 file": {"val": (14229, 8905), "testA": (19200, 4448), "testB": (16063, 4673)},
}


def release_of(sentences: Mapping[str, int], without_target: Mapping[str, int]) -> str:
    """Return a key of ``RELEASES``, or ``unknown release`` with the counts.

    Parameters
    ----------
    sentences
        How many each split has.
    without_target
        How many of them have no target.
    """
    there = {
        split: (sentences[split], without_target[split])
        for split in EVALUATED
        if sentences.get(split)
    }
    for name, counts in RELEASES.items():
        if there and there.items() <= counts.items():
            return name
    listed = [
        f"{split} {count:,}, {none:,} without target" for split, (count, none) in there.items()
    ]
    return f"unknown release ({'; '.join(listed) or 'none of ' + ', '.join(EVALUATED)})"
