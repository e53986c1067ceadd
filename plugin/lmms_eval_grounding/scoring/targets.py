"""Targets to score against: prepared data, or a JSONL of documents; images are never read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from ..contract import ContractError, check
from ..corpus import read_json
from ..json_files import json_lines

# Rows in memory at a time.
_BATCH = 256


class Target(NamedTuple):
    """The document of a sample, and where it stands, for messages."""

    place: str
    doc: dict[str, Any]


def count_targets(path: Path, split: str) -> int:
    """Return how many targets there are; arguments as for `read_targets`."""
    if path.is_dir():
        return sum(pq.ParquetFile(file).metadata.num_rows for file in _files(path, split))
    with path.open("rb") as lines:
        return sum(not line.isspace() for line in lines)


def read_targets(path: Path, split: str, schema: str) -> Iterator[Target]:
    """Yield the documents of a split, in its order.

    Parameters
    ----------
    path
        A prepared folder, whose parquet files of the split are read, or a JSONL file.
    split
        The split's name; a JSONL file is one split.
    schema
        The schema of a document in spec/.

    Raises
    ------
    ValueError
        For a document that does not meet the schema, and for an id that was there before; the
        message names file and line, or row.
    """
    seen: dict[str, str] = {}
    for target in _rows(path, split, schema) if path.is_dir() else _lines(path):
        try:
            check(target.doc, schema)
        except ContractError as fault:
            raise ValueError(f"{target.place}: {fault}") from None
        id = target.doc["id"]
        first = seen.setdefault(id, target.place)
        if first is not target.place:
            raise ValueError(f"{target.place}: the id {id!r} again, which is that of {first}")
        yield target


def _lines(path: Path) -> Iterator[Target]:
    for line in json_lines(path):
        yield Target(f"{path}, line {line.number}", line.value)


def _rows(path: Path, split: str, schema: str) -> Iterator[Target]:
    known = read_json("spec", schema)["properties"]
    for file in _files(path, split):
        table = pq.ParquetFile(file)
        columns = [name for name in table.schema_arrow.names if name in known]
        number = 0
        for batch in table.iter_batches(_BATCH, columns=columns):
            for doc in batch.to_pylist():
                number += 1
                yield Target(f"{file}, row {number}", doc)


def _files(path: Path, split: str) -> list[Path]:
    files = sorted(path.glob(f"data/{split}-*.parquet"))
    if not files:
        raise ValueError(f"{path}: no data/{split}-*.parquet; name another --split")
    return files
