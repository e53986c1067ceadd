"""GRES and RefSegRS documents for tests: those of the mini sets, of golden cases, and made ones.

Masks are bool arrays of rows and columns. They become run-length encodings, and come out of them,
by pycocotools: what is compared with this package does not come from it.
"""

import io
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet
from PIL import Image
from pycocotools import mask as coco_mask

from lmms_eval_grounding.corpus import Case, load_cases
from lmms_eval_grounding.data.mask_columns import mask_columns
from lmms_eval_grounding.data.mini import mini_path

Pixels = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Document:
    """One expression with its target, which is None where it refers to nothing."""

    id: str
    expression: str
    target: Pixels | None
    width: int
    height: int

    @property
    def row(self) -> dict[str, Any]:
        """Return the columns of the document without its image."""
        target = None if self.target is None else rle(self.target)
        return {**vars(self), "target": target}


def rle(pixels: Pixels) -> dict[str, Any]:
    """Return the run-length encoding of a mask, as JSON has it."""
    made = coco_mask.encode(np.asfortranarray(pixels, np.uint8))
    return {"size": [int(n) for n in made["size"]], "counts": made["counts"].decode("ascii")}


def pixels_of(rle: dict[str, Any]) -> Pixels:
    """Return the mask of a valid run-length encoding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of pycocotools with numpy 2
        decoded: Pixels = coco_mask.decode(rle).astype(bool)
    return decoded


def mini_rows(benchmark: str) -> list[dict[str, Any]]:
    """Return the rows of a prepared mini set, with the bytes of their images."""
    (file,) = Path(mini_path(benchmark)).glob("data/*.parquet")
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(file).to_pylist()
    return rows


def mini_documents(benchmark: str) -> list[Document]:
    """Return the documents of a mini set."""
    return [
        Document(
            row["id"],
            row["expression"],
            pixels_of(row["target"]) if row["target"] and row["target"]["counts"] else None,
            row["width"],
            row["height"],
        )
        for row in mini_rows(benchmark)
    ]


def golden_case(benchmark: str, description: str) -> Case:
    """Return a golden case of a task by its description."""
    found = [c for c in load_cases(f"tasks/{benchmark}") if c.description == description]
    assert found, f"golden_cases/tasks/{benchmark}.json has no case {description!r}"
    (case,) = found
    return case


def golden_documents(case: Case) -> list[Document]:
    """Return the documents of a golden case of a task."""
    return [
        Document(
            doc["id"],
            doc["expression"],
            None if doc["target"] is None else of_rows(doc["target"]),
            doc["width"],
            doc["height"],
        )
        for doc in case.input["docs"]
    ]


def of_rows(rows: Iterable[str]) -> Pixels:
    """Return the mask that is written as rows of 0 and 1."""
    return np.array([[pixel == "1" for pixel in row] for row in rows])


def write_documents(documents: Iterable[Document], folder: Path, split: str) -> Path:
    """Write documents with blank images as a split of a prepared folder; return the folder."""
    import datasets

    rows = [
        {**doc.row, "image": {"bytes": _blank(doc.width, doc.height), "path": None}}
        for doc in documents
    ]
    (folder / "data").mkdir(parents=True, exist_ok=True)
    table = datasets.Dataset.from_list(rows, datasets.Features(mask_columns()))
    table.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
    return folder


def iou(pred: Pixels, target: Pixels) -> Fraction:
    """Return the exact IoU of two masks of one size, of which one has pixels."""
    return Fraction(int((pred & target).sum()), int((pred | target).sum()))


def _blank(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, "PNG")
    return file.getvalue()
