"""The parquet files of a prepared folder, as ``datasets`` reads them.

Equal rows give equal bytes. Rows are written in small groups, so that memory stays bounded
whatever the size of the release, and repeated values (the image that several expressions share)
are stored once per group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .manifest import split_file

if TYPE_CHECKING:
    import datasets

Row = Mapping[str, Any]

GROUP_ROWS = 1000
GROUP_BYTES = 2**25
# Above GROUP_BYTES, so that a group never falls back to storing a repeated image again.
DICTIONARY_BYTES = 2**27


def write_split(folder: Path, split: str, features: datasets.Features, rows: Iterable[Row]) -> int:
    """Write all rows of one split to ``data/<split>-00000-of-00001.parquet``.

    Parameters
    ----------
    folder
        The folder that is being prepared.
    split
        Name of the split.
    features
        The columns. An image is ``{"bytes": encoded file, "path": file name}``.
    rows
        One mapping of column to value per row; taken one by one.

    Returns
    -------
    int
        The number of rows written.
    """
    path = split_file(folder, split)
    path.parent.mkdir(exist_ok=True)
    schema = arrow_schema(features)
    written = 0
    with pq.ParquetWriter(path, schema, dictionary_pagesize_limit=DICTIONARY_BYTES) as writer:
        for group in _groups(rows):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            written += len(group)
    return written


def arrow_schema(features: datasets.Features) -> pa.Schema:
    """Return the Arrow schema with the metadata that tell ``datasets`` what is an image."""
    schema = features.arrow_schema
    metadata = json.loads(schema.metadata[b"huggingface"])
    text = json.dumps(_with_older_names(metadata), sort_keys=True)
    return schema.with_metadata({b"huggingface": text.encode()})


def _with_older_names(value: Any) -> Any:
    """Say ``Sequence`` for ``List``: releases of ``datasets`` before 4 know only that name."""
    if isinstance(value, dict):
        return {
            key: "Sequence" if (key, entry) == ("_type", "List") else _with_older_names(entry)
            for key, entry in value.items()
        }
    return value


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for row in rows:
        group.append(row)
        size += _bytes_of(row)
        if len(group) == GROUP_ROWS or size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _bytes_of(value: Any) -> int:
    """Return about how many bytes a value takes in Arrow."""
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_bytes_of, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes_of, value))
    return 8
