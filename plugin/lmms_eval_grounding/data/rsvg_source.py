"""The official tree of DIOR-RSVG, object by object."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from tqdm import tqdm

from .annotation_xml import box_of, read_annotation, size_of, text_of
from .errors import SourceError
from .jpeg import check_jpeg
from .manifest import LeftOutList
from .parquet import Row

if TYPE_CHECKING:
    import datasets

LAYOUT = (
    "a DIOR-RSVG folder holds Annotations/*.xml, JPEGImages/*.jpg and train.txt, val.txt, test.txt"
)


@dataclass(frozen=True)
class SourceTree:
    """The annotation files of a release and where the objects of each begin.

    Attributes
    ----------
    root
        The folder of the release.
    files
        Names of the annotation files, sorted.
    first
        For each file, the index of its first object; ascending.
    objects
        How many objects there are.
    """

    root: Path
    files: list[str]
    first: list[int]
    objects: int

    def place_of(self, index: int) -> int:
        """Return the position in ``files`` of the file that holds an object."""
        # Files without objects share their first index with the next file: take the last.
        return bisect.bisect_right(self.first, index) - 1


def features() -> datasets.Features:
    """Return the columns of a prepared RSVG split.

    ``id`` is the index of the object; ``image`` the JPEG as released; ``expression`` the
    description; ``bbox`` ``[x1, y1, x2, y2]`` in pixels of the image; ``width`` and ``height``
    its size; ``category`` the class name; ``file`` the annotation file.
    """
    import datasets  # noqa: PLC0415 - slow to import, and only a conversion or a check needs it

    return datasets.Features(
        {
            "id": datasets.Value("string"),
            "image": datasets.Image(),
            "expression": datasets.Value("string"),
            "bbox": datasets.Sequence(datasets.Value("float64")),
            "width": datasets.Value("int32"),
            "height": datasets.Value("int32"),
            "category": datasets.Value("string"),
            "file": datasets.Value("string"),
        }
    )


def read_tree(root: Path, *, progress: bool) -> SourceTree:
    """Count the objects of all annotation files, in the order of their names.

    Raises
    ------
    SourceError
        When a folder is missing, or an annotation file cannot be read as XML: its objects cannot
        be counted, so no later object could be numbered.
    """
    for folder in (root, root / "Annotations", root / "JPEGImages"):
        if not folder.is_dir():
            raise SourceError(f"{folder}: no such folder; {LAYOUT}")
    # The order on disk is anything; the official loader sorts. Hidden files (the "._" twins that
    # some archivers add) are no annotations.
    files = sorted(
        path.name
        for path in (root / "Annotations").iterdir()
        if path.suffix == ".xml" and not path.name.startswith(".")
    )
    if not files:
        raise SourceError(f"{root / 'Annotations'}: no XML files; {LAYOUT}")
    first, total = [], 0
    for file in tqdm(files, desc="counting objects", unit="file", disable=not progress):
        first.append(total)
        try:
            total += len(read_annotation(root / "Annotations" / file).findall("object"))
        except SourceError as fault:
            raise SourceError(
                f"Annotations/{file}: {fault}; how many objects it holds is unknown, and with it "
                "the number of every object in the files after it, so it cannot be skipped: "
                "restore the file"
            ) from fault
    return SourceTree(root, files, first, total)


def rows_of(
    tree: SourceTree, split: str, indices: Iterable[int], left_out: LeftOutList
) -> Iterator[Row]:
    """Yield one row per object, in the order of the indices.

    Parameters
    ----------
    tree
        The annotation files.
    split
        The split, for the list of what is left out.
    indices
        Object indices, ascending.
    left_out
        Receives the objects whose annotation or image is broken.
    """
    for place, group in itertools.groupby(indices, key=tree.place_of):
        file = tree.files[place]
        annotation = read_annotation(tree.root / "Annotations" / file)
        items = annotation.findall("object")
        members = list(group)
        try:
            shared = _image_columns(tree.root, annotation, file)
        except SourceError as fault:
            for index in members:
                left_out.add(fault, split=split, row_id=str(index), file=file)
            continue
        for index in members:
            number = index - tree.first[place]
            try:
                row = {"id": str(index), **shared, **_object_columns(items[number], shared)}
            except SourceError as fault:
                # A reader counts the objects of a file from 1, a split file all of them from 0.
                where = f"Annotations/{file}, object {number + 1} of {len(items)} (index {index})"
                placed = SourceError(f"{where}: {fault}")
                left_out.add(placed, split=split, row_id=str(index), file=file)
            else:
                yield row


def _image_columns(root: Path, annotation: ElementTree.Element, file: str) -> dict[str, Any]:
    try:
        name = text_of(annotation, "filename").strip()
        if "/" in name or "\\" in name:
            raise SourceError(f"<filename> is {name[:80]!r}, not the name of a file in JPEGImages")
        width, height = size_of(annotation)
    except SourceError as fault:
        raise SourceError(f"Annotations/{file}: {fault}") from fault
    try:
        data = (root / "JPEGImages" / name).read_bytes()
        check_jpeg(data, width=width, height=height)
    except (OSError, ValueError) as fault:
        reason = f"cannot be read ({fault.strerror})" if isinstance(fault, OSError) else fault
        raise SourceError(f"JPEGImages/{name} (of Annotations/{file}): {reason}") from fault
    return {
        "image": {"bytes": data, "path": name},
        "width": width,
        "height": height,
        "file": file,
    }


def _object_columns(item: ElementTree.Element, image: Row) -> dict[str, Any]:
    return {
        "expression": text_of(item, "description"),
        "bbox": box_of(item, width=image["width"], height=image["height"]),
        "category": text_of(item, "name").strip(),
    }
