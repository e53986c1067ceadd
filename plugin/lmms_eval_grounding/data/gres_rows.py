"""The rows of a prepared split of gRefCOCO: one per sentence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from ..geometry.masks import Rle, area, union
from .errors import SourceError
from .gres_instances import Instances, Picture
from .gres_references import Reference, leave_out
from .jpeg import check_jpeg
from .manifest import LeftOutList
from .mask_columns import mask_columns
from .parquet import Row

if TYPE_CHECKING:
    import datasets

UNSCORABLE = "sentences whose every annotation is a crowd or has no valid polygon"


@dataclass
class Tally:
    """What is counted while the rows of a split are made.

    Attributes
    ----------
    without_target
        Rows without a target.
    empty_targets
        Rows with a target that covers no pixel.
    left_out
        By reason, how many annotations, polygons and sentences are left out.
    """

    without_target: int = 0
    empty_targets: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    _seen: set[int] = field(default_factory=set)

    def add_left_out(self, ann_id: int, reasons: Sequence[str]) -> None:
        """Count what is left out of an annotation, once however many references name it."""
        if ann_id not in self._seen:
            self._seen.add(ann_id)
            self.left_out.update(reasons)


def features() -> datasets.Features:
    """Return the columns of a prepared split.

    ``id`` is ``ref_id/sent_id``; ``image`` the path of the JPEG, or its bytes; ``expression`` the
    sentence; ``target`` the mask of all that it refers to, or null; ``width`` and ``height`` the
    size of image and mask; ``ann_ids`` the annotations that the reference names, also those that
    give nothing to the mask, and none without a target; ``file`` the name of the image.
    """
    import datasets  # noqa: PLC0415 - slow to import, and only a conversion or a check needs it

    return datasets.Features(
        {
            **mask_columns(),
            "ref_id": datasets.Value("int64"),
            "sent_id": datasets.Value("int64"),
            "ann_ids": datasets.Sequence(datasets.Value("int64")),
            "file": datasets.Value("string"),
        }
    )


class RowMaker:
    """Makes the rows of all splits.

    Parameters
    ----------
    instances
        The images and annotations.
    images
        The folder of the images.
    embed_images
        Whether a row carries the bytes of its image, instead of the path.
    left_out
        Receives the sentences whose reference or image is broken.
    """

    def __init__(
        self, instances: Instances, images: Path, embed_images: bool, left_out: LeftOutList
    ) -> None:
        self._instances = instances
        self._images = images
        self._embed_images = embed_images
        self._left_out = left_out
        self._seen: set[str] = set()

    def rows(
        self, split: str, references: Sequence[Reference], tally: Tally, progress: bool
    ) -> Iterator[Row]:
        """Yield the rows of one split, image by image, in the order in which images first occur.

        So each image is read once, and stored once where it is stored.
        """
        by_image: dict[int, list[Reference]] = defaultdict(list)
        for reference in references:
            if reference.split == split:
                by_image[reference.image_id].append(reference)
        bar = tqdm(by_image.items(), desc=split, unit="image", disable=not progress)
        for image_id, members in bar:
            try:
                picture = self._instances.picture(image_id)
                shared = self._image_columns(picture)
            except SourceError as fault:
                for reference in members:
                    leave_out(_placed(fault, reference), reference, self._left_out)
                continue
            for reference in members:
                try:
                    yield from self._reference_rows(reference, picture, shared, tally)
                except SourceError as fault:
                    leave_out(_placed(fault, reference), reference, self._left_out)

    def _image_columns(self, picture: Picture) -> dict[str, Any]:
        path = self._images / picture.file_name
        try:
            data = path.read_bytes()
            check_jpeg(data, width=picture.width, height=picture.height)
        except (OSError, ValueError) as fault:
            reason = f"cannot be read ({fault.strerror})" if isinstance(fault, OSError) else fault
            raise SourceError(f"{self._images.name}/{picture.file_name}: {reason}") from fault
        image = (
            {"bytes": data, "path": picture.file_name}
            if self._embed_images
            else {"bytes": None, "path": str(path)}
        )
        return {
            "image": image,
            "width": picture.width,
            "height": picture.height,
            "file": picture.file_name,
        }

    def _reference_rows(
        self, reference: Reference, picture: Picture, shared: Row, tally: Tally
    ) -> list[Row]:
        clash = self._seen.intersection(reference.row_ids())
        if clash:
            raise SourceError(f"the sentence {min(clash)} is there already")
        parts = {
            ann_id: self._instances.part(ann_id, reference.image_id, picture)
            for ann_id in reference.ann_ids
        }
        for ann_id, part in parts.items():
            tally.add_left_out(ann_id, part.left_out)
        masks = [part.mask for part in parts.values() if part.mask]
        if parts and not masks:
            tally.left_out[UNSCORABLE] += len(reference.sentences)
            return []
        target = union(masks, (picture.height, picture.width)) if masks else None
        self._count(reference, target, tally)
        return [
            {
                "id": row_id,
                **shared,
                "expression": text,
                "target": target,
                "ref_id": reference.ref_id,
                "sent_id": sent_id,
                "ann_ids": reference.ann_ids,
            }
            for row_id, (sent_id, text) in zip(
                reference.row_ids(), reference.sentences.items(), strict=True
            )
        ]

    def _count(self, reference: Reference, target: Rle | None, tally: Tally) -> None:
        self._seen.update(reference.row_ids())
        if target is None:
            tally.without_target += len(reference.sentences)
        elif not area(target):
            tally.empty_targets += len(reference.sentences)


def _placed(fault: SourceError, reference: Reference) -> SourceError:
    return SourceError(f"{fault} (of ref {reference.ref_id})")
