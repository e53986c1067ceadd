"""The columns that prepared documents with masks share; see spec/records/gres_document.json."""

from __future__ import annotations

from typing import Any


def mask_columns() -> dict[str, Any]:
    """Return the columns that a task of masks reads, as `datasets.Features` takes them."""
    import datasets  # noqa: PLC0415 - slow to import, and only a conversion or a check needs it

    return {
        "id": datasets.Value("string"),
        "image": datasets.Image(),
        "expression": datasets.Value("string"),
        "target": {
            "counts": datasets.Value("string"),
            "size": datasets.Sequence(datasets.Value("int32")),
        },
        "width": datasets.Value("int32"),
        "height": datasets.Value("int32"),
    }
