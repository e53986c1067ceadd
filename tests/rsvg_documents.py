"""RSVG documents for tests: those of the mini set, read from its annotations, and made ones."""

import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

from conftest import REPOSITORY

Box = tuple[float, float, float, float]

ANNOTATIONS = REPOSITORY / "plugin/lmms_eval_grounding/data/mini/rsvg/Annotations"


@dataclass(frozen=True)
class Document:
    """One expression with its target in pixels."""

    id: str
    expression: str
    bbox: Box
    width: int
    height: int


def mini_documents() -> list[Document]:
    """Return the mini set: object k of the sorted annotation files is document k."""
    documents: list[Document] = []
    for file in sorted(ANNOTATIONS.glob("*.xml")):
        root = ElementTree.parse(file).getroot()
        width, height = (int(root.findtext(f"size/{side}", "")) for side in ("width", "height"))
        for item in root.iter("object"):
            x1, y1, x2, y2 = (
                int(item.findtext(f"bndbox/{name}", ""))
                for name in ("xmin", "ymin", "xmax", "ymax")
            )
            expression = item.findtext("description", "")
            number = str(len(documents))
            documents.append(Document(number, expression, (x1, y1, x2, y2), width, height))
    return documents


def write_documents(documents: Iterable[Document], folder: Path, split: str = "test") -> Path:
    """Write documents with blank images as a prepared folder, and return that folder."""
    from datasets import Dataset, Features, Image, List, Value

    features = Features(
        {
            "id": Value("string"),
            "image": Image(),
            "expression": Value("string"),
            "bbox": List(Value("float64")),
            "width": Value("int32"),
            "height": Value("int32"),
        }
    )
    rows = [
        {**asdict(doc), "image": {"bytes": _blank(doc.width, doc.height), "path": None}}
        for doc in documents
    ]
    (folder / "data").mkdir(parents=True)
    Dataset.from_list(rows, features).to_parquet(folder / "data" / f"{split}-00000.parquet")
    return folder


def iou(a: Box, b: Box) -> Fraction:
    """Return the exact IoU of two boxes with positive area."""
    (ax1, ay1, ax2, ay2), (bx1, by1, bx2, by2) = (map(Fraction, box) for box in (a, b))
    width = max(min(ax2, bx2) - max(ax1, bx1), Fraction(0))
    height = max(min(ay2, by2) - max(ay1, by1), Fraction(0))
    common = width * height
    return common / ((ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - common)


def _blank(width: int, height: int) -> bytes:
    import PIL.Image

    file = io.BytesIO()
    PIL.Image.new("RGB", (width, height)).save(file, "PNG")
    return file.getvalue()
