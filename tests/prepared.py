"""Prepared folders as tests look at them: by pyarrow and hashes alone."""

import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
from conftest import REPOSITORY


def rows(output: Path, split: str) -> list[dict]:
    return pq.read_table(output / "data" / f"{split}-00000-of-00001.parquet").to_pylist()


def rewrite(output: Path, split: str, change: Callable[[list[dict]], object]) -> None:
    path = output / "data" / f"{split}-00000-of-00001.parquet"
    schema, table = pq.read_schema(path), rows(output, split)
    change(table)
    pq.write_table(pa.Table.from_pylist(table, schema=schema), path)


def put(number: int, **columns: object) -> Callable[[list[dict]], object]:
    return lambda table: table[number].update(columns)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def script(name: str) -> ModuleType:
    """Import a script, which imports its neighbours."""
    folder = REPOSITORY / "scripts"
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[name] = module
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module
