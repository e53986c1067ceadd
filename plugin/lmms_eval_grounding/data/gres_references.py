"""The references of gRefCOCO: ``grefs(unc).json``, whose sentences are the samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import SourceError
from .gres_json import is_id, read_json
from .gres_layout import REFERENCES
from .manifest import LeftOutList

_NONE = -1  # the id of the object that a reference without a target names


@dataclass(frozen=True)
class Reference:
    """What some sentences say of one image.

    Attributes
    ----------
    ref_id
        As in the release.
    split
        As in the release.
    image_id
        The image.
    ann_ids
        The annotations it refers to; none when nothing in the image is meant.
    sentences
        The sentence and its text, by ``sent_id``.
    """

    ref_id: int
    split: str
    image_id: int
    ann_ids: tuple[int, ...]
    sentences: Mapping[int, str]

    def row_ids(self) -> list[str]:
        """Return the ids of the rows that its sentences make."""
        return [f"{self.ref_id}/{sent_id}" for sent_id in self.sentences]


@dataclass(frozen=True)
class References:
    """What the file holds.

    Attributes
    ----------
    chosen
        The references with sentences of the splits that were asked for, in the order of the file.
    sentences
        How many sentences each split has, asked for or not.
    without_target
        How many of them have no target.
    """

    chosen: list[Reference] = field(default_factory=list)
    sentences: Counter[str] = field(default_factory=Counter)
    without_target: Counter[str] = field(default_factory=Counter)


def read_references(path: Path, splits: Collection[str], left_out: LeftOutList) -> References:
    """Read the references of some splits; count those of all.

    A reference without sentences makes no sample.

    Parameters
    ----------
    path
        ``grefs(unc).json``.
    splits
        The splits to read.
    left_out
        Receives the sentences of references that are not as in the release.

    Raises
    ------
    SourceError
        When the file is no JSON list.
    """
    entries = read_json(path)
    if not isinstance(entries, list):
        raise SourceError(f"{path.name}: not a list of references")
    found = References()
    for number, entry in enumerate(entries):
        place = f"{path.name}, entry {number}"
        try:
            split, sentences, is_none = _extent(entry)
        except SourceError as fault:
            _leave_out(SourceError(f"{place}: {fault}"), "", [""], left_out)
            continue
        found.sentences[split] += len(sentences)
        found.without_target[split] += len(sentences) * is_none
        if split not in splits or not sentences:
            continue
        try:
            found.chosen.append(_reference(entry, split))
        except SourceError as fault:
            ref_id = entry.get("ref_id")
            placed = SourceError(f"{place} (ref_id {ref_id!r:.20}): {fault}")
            ids = [f"{ref_id!r:.20}/{position}" for position in range(len(sentences))]
            _leave_out(placed, split, ids, left_out)
    return found


def leave_out(fault: SourceError, reference: Reference, left_out: LeftOutList) -> None:
    """Note a fault for each sentence of a reference, or raise it."""
    _leave_out(fault, reference.split, reference.row_ids(), left_out)


def _leave_out(fault: SourceError, split: str, row_ids: list[str], left_out: LeftOutList) -> None:
    for row_id in row_ids:
        left_out.add(fault, split=split, row_id=row_id, file=REFERENCES)


def _extent(entry: Any) -> tuple[str, list[Any], bool]:
    """Return the split of an entry, its sentences, and whether it says that it has no target."""
    if not isinstance(entry, dict):
        raise SourceError(f"is {entry!r:.40}, not a JSON object")
    split, sentences = entry.get("split"), entry.get("sentences")
    if not isinstance(split, str):
        raise SourceError(f"split is {split!r:.40}, not a text")
    if not isinstance(sentences, list):
        raise SourceError(f"sentences is {sentences!r:.40}, not a list")
    return split, sentences, _as_list(entry.get("ann_id")) == [_NONE]


def _as_list(value: Any) -> list[Any]:
    """Return the ids of a field; in older files one id stands there without a list."""
    return value if isinstance(value, list) else [value]


def _reference(entry: Mapping[str, Any], split: str) -> Reference:
    for name in ("ref_id", "image_id"):
        if not is_id(entry.get(name)):
            raise SourceError(f"{name} is {entry.get(name)!r:.40}, not a whole number")
    return Reference(
        ref_id=entry["ref_id"],
        split=split,
        image_id=entry["image_id"],
        ann_ids=_ann_ids(entry),
        sentences=dict(_sentences(entry["sentences"])),
    )


def _ann_ids(entry: Mapping[str, Any]) -> tuple[int, ...]:
    ids = _as_list(entry.get("ann_id"))
    no_target = entry.get("no_target", ids == [_NONE])
    if type(no_target) is not bool:
        raise SourceError(f"no_target is {no_target!r:.40}, not true or false")
    if no_target != (ids == [_NONE]):
        raise SourceError(
            f"no_target is {str(no_target).lower()} while ann_id is {ids!r:.40}; a reference "
            "without a target has true and [-1], another one false and the ids of annotations"
        )
    if no_target:
        return ()
    if not ids or not all(map(is_id, ids)):
        raise SourceError(f"ann_id is {entry.get('ann_id')!r:.40}, not the ids of annotations")
    return tuple(ids)


def _sentences(entries: list[Any]) -> Iterator[tuple[int, str]]:
    seen = set()
    for entry in entries:
        sent_id, text = (
            (entry.get("sent_id"), entry.get("raw")) if isinstance(entry, dict) else (None, None)
        )
        if not is_id(sent_id) or not isinstance(text, str):
            raise SourceError(f"sentence {entry!r:.60} has no sent_id or no text raw")
        if not text.strip():
            raise SourceError(f"sentence {sent_id} is empty")
        if not _is_unicode(text):
            raise SourceError(f"sentence {sent_id} has half a surrogate pair, so it is no text")
        if sent_id in seen:
            raise SourceError(f"sentence {sent_id} is there twice")
        seen.add(sent_id)
        yield sent_id, text


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
