"""Whether a prepared folder is what its manifest says: the part that all benchmarks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import DataError
from .manifest import MANIFEST, Manifest, read_manifest, split_file
from .parquet import Row, arrow_schema

if TYPE_CHECKING:
    import datasets

# Rows that are in memory at a time.
_BATCH_ROWS = 64


def problems_of_folder(
    folder: Path,
    benchmark: str,
    features: datasets.Features,
    problems_of_row: Callable[[Row], Iterable[str]],
    problems_of_manifest: Callable[[Manifest], Iterable[str]],
    *,
    nullable: Collection[str] = (),
) -> Iterator[str]:
    """Yield what is wrong with a prepared folder, one sentence each, with the file in question.

    Parameters
    ----------
    folder
        The prepared folder.
    benchmark
        The benchmark it is meant for.
    features
        The columns it must have.
    problems_of_row
        Gives the problems of one row; no column of it is null but those of ``nullable``.
    problems_of_manifest
        Gives the problems of the manifest that only the benchmark knows, such as official counts.
    nullable
        The columns in which null says something.
    """
    try:
        manifest = read_manifest(folder)
    except DataError as fault:
        yield str(fault)
        return
    if manifest.benchmark != benchmark:
        yield f"{folder / MANIFEST}: holds {manifest.benchmark}, not {benchmark}"
        return
    for problem in problems_of_manifest(manifest):
        yield f"{folder / MANIFEST}: {problem}"
    known = {split_file(folder, split) for split in manifest.splits}
    for path in sorted(set((folder / "data").glob("*.parquet")) - known):
        yield f"{path}: not in {MANIFEST}"
    owners: dict[str, str] = {}
    for split, rows in manifest.splits.items():
        path = split_file(folder, split)
        try:
            # Read ahead, pyarrow would hold many groups at once.
            with pq.ParquetFile(path, pre_buffer=False) as file:
                yield from _problems_of_file(path, file, rows, arrow_schema(features))
                if file.schema_arrow.equals(arrow_schema(features)):
                    yield from _problems_of_rows(path, file, owners, problems_of_row, nullable)
        except (OSError, pa.ArrowException) as fault:
            yield f"{path}: cannot be read ({fault})"


def problems_of_counts(
    manifest: Manifest,
    releases: Mapping[str, Mapping[str, int]],
    *,
    row_reasons: Collection[str] = (),
) -> Iterator[str]:
    """Yield which splits have other counts than the release that the manifest names.

    Parameters
    ----------
    manifest
        The manifest.
    releases
        By name of a release, how many rows its splits have.
    row_reasons
        The reasons in ``left_out_counts`` that count rows, not parts of them.
    """
    official = releases.get(manifest.release, {})
    listed = Counter(entry.split for entry in manifest.left_out)
    for split, rows in manifest.splits.items():
        counted = manifest.left_out_counts.get(split, {})
        left_out = listed[split] + sum(counted.get(reason, 0) for reason in row_reasons)
        expected = official.get(split)
        if expected is not None and rows + left_out != expected:
            yield (
                f"{split} has {rows:,} rows and {left_out:,} left out, the {manifest.release} has "
                f"{expected:,}"
            )


def _problems_of_file(
    path: Path, file: pq.ParquetFile, rows: int, expected: pa.Schema
) -> Iterator[str]:
    found = file.metadata.num_rows
    if found != rows:
        yield f"{path}: holds {found:,} rows, {MANIFEST} says {rows:,}"
    if not file.schema_arrow.equals(expected):
        types = ", ".join(f"{field.name}: {field.type}" for field in expected)
        yield f"{path}: its columns are not ({types})"
    elif (file.schema_arrow.metadata or {}).get(b"huggingface") != expected.metadata[
        b"huggingface"
    ]:
        yield f"{path}: lacks the metadata by which images are decoded"


def _problems_of_rows(
    path: Path,
    file: pq.ParquetFile,
    owners: dict[str, str],
    problems_of_row: Callable[[Row], Iterable[str]],
    nullable: Collection[str],
) -> Iterator[str]:
    number = 0
    for row in _rows(file):
        where = f"{path}, row {number} (id {row['id']})"
        number += 1
        empty = [name for name, value in row.items() if value is None and name not in nullable]
        if empty:
            yield f"{where}: no {', '.join(empty)}"
            continue
        if row["id"] in owners:
            yield f"{where}: the id is in {owners[row['id']]} too"
        owners[row["id"]] = path.name
        for problem in problems_of_row(row):
            yield f"{where}: {problem}"


def _rows(file: pq.ParquetFile) -> Iterator[Row]:
    for number in range(file.num_row_groups):
        group = file.read_row_group(number, use_threads=False)
        for batch in group.to_batches(max_chunksize=_BATCH_ROWS):
            yield from batch.to_pylist()
