"""The images and annotations of ``instances.json``, in the format of COCO."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from ..geometry.masks import MAX_PIXELS, MAX_SIDE
from .errors import SourceError
from .gres_json import is_id, read_json
from .gres_masks import Part, part_of


@dataclass(frozen=True)
class Picture:
    """An image of the release.

    Attributes
    ----------
    file_name
        Its name in the folder of the images.
    width, height
        Its size in pixels.
    """

    file_name: str
    width: int
    height: int


class Instances:
    """The images and annotations that some references name.

    Parameters
    ----------
    file
        Name of the file they come from.
    images, annotations
        The entries of the file, by id.
    """

    def __init__(
        self,
        file: str,
        images: Mapping[int, Mapping[str, Any]],
        annotations: Mapping[int, Mapping[str, Any]],
    ) -> None:
        self._file = file
        self._images = images
        self._annotations = annotations
        self._parts: dict[int, Part] = {}

    def picture(self, image_id: int) -> Picture:
        """Return an image.

        Raises
        ------
        SourceError
            When it is missing or has no file name or size; the message names file and image.
        """
        place = f"{self._file}: image {image_id}"
        entry = self._images.get(image_id)
        if entry is None:
            raise SourceError(f"{place} is missing")
        name, width, height = (entry.get(key) for key in ("file_name", "width", "height"))
        if not isinstance(name, str) or not name.strip() or "/" in name or "\\" in name:
            raise SourceError(f"{place} has the file_name {name!r:.80}, not the name of a file")
        if not (_is_side(width) and _is_side(height)) or width * height > MAX_PIXELS:
            raise SourceError(
                f"{place} has width {width!r:.20} and height {height!r:.20}, not those of an image"
            )
        return Picture(name, width, height)

    def part(self, ann_id: int, image_id: int, picture: Picture) -> Part:
        """Return what an annotation gives to a target; it is rasterised once.

        Parameters
        ----------
        ann_id
            The annotation.
        image_id, picture
            The image in which it is referred to.

        Raises
        ------
        SourceError
            When it is missing, of another image or broken; the message names file and annotation.
        """
        place = f"{self._file}: annotation {ann_id}"
        entry = self._annotations.get(ann_id)
        if entry is None:
            raise SourceError(f"{place} is missing")
        if entry.get("image_id") != image_id:
            raise SourceError(f"{place} is of image {entry.get('image_id')!r:.20}, not {image_id}")
        if ann_id not in self._parts:
            try:
                self._parts[ann_id] = part_of(entry, picture.height, picture.width)
            except SourceError as fault:
                raise SourceError(f"{place}: {fault}") from fault
        return self._parts[ann_id]


def read_instances(path: Path, image_ids: Collection[int], ann_ids: Collection[int]) -> Instances:
    """Read some images and annotations.

    Raises
    ------
    SourceError
        When the file is no JSON of that form, or has two entries with the same id that differ.
    """
    contents = read_json(path)
    if not isinstance(contents, dict):
        raise SourceError(f"{path.name}: not a JSON object")
    return Instances(
        path.name,
        _by_id(contents, "images", image_ids, path.name),
        _by_id(contents, "annotations", ann_ids, path.name),
    )


def _by_id(
    contents: Mapping[str, Any], key: str, wanted: Collection[int], file: str
) -> dict[int, Mapping[str, Any]]:
    entries = contents.get(key)
    if not isinstance(entries, list):
        raise SourceError(f"{file}: has no list of {key}")
    found: dict[int, Mapping[str, Any]] = {}
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not is_id(entry.get("id")):
            raise SourceError(f"{file}: {key}[{number}] is {entry!r:.60}, which has no id")
        if entry["id"] in wanted and found.setdefault(entry["id"], entry) != entry:
            raise SourceError(f"{file}: {key}[{number}] has the id {entry['id']} of another entry")
    return found


def _is_side(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value <= MAX_SIDE
