"""A folder that is there whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from .errors import DataError, OutputError
from .manifest import MANIFEST, read_manifest


@contextmanager
def prepared_folder(output: str | Path, benchmark: str) -> Iterator[Path]:
    """Give a new folder to fill; it becomes ``output`` when the block ends without an error.

    Until then nothing of it is found under the name ``output``, and a finished conversion that
    is there already stays as it is. What a killed run has left beside ``output`` is removed
    first. A small lock file, ``.<name>.lock``, stays beside it.

    Parameters
    ----------
    output
        The folder to make. A finished conversion of the same benchmark is replaced; its parents
        are made where they are missing.
    benchmark
        Name of the benchmark.

    Raises
    ------
    OutputError
        When ``output`` holds anything else, or another process is writing it.
    """
    output = Path(output).resolve()  # a link stays, and what it points to is replaced
    _refuse_foreign(output, benchmark)
    output.parent.mkdir(parents=True, exist_ok=True)
    partial, old = _sibling(output, "partial"), _sibling(output, "old")
    with alone_in(output):
        _clear_leftovers(output, partial, old)
        partial.mkdir()
        try:
            yield partial
            _move_into_place(partial, output, old)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def alone_in(folder: Path, timeout: float = 0) -> Iterator[None]:
    """Hold the lock of a folder, which the system lets go of when the process dies.

    Raises
    ------
    OutputError
        When another process still holds it after ``timeout`` seconds.
    """
    lock = FileLock(str(_sibling(folder, "lock")), timeout=timeout)
    try:
        lock.acquire()
    except Timeout:
        raise OutputError(f"{folder}: another process is writing this folder") from None
    try:
        yield
    finally:
        lock.release()


def _sibling(folder: Path, suffix: str) -> Path:
    return folder.with_name(f".{folder.name}.{suffix}")


def _refuse_foreign(output: Path, benchmark: str) -> None:
    """Raise unless ``output`` is free, empty, or ours and nothing else: it will be deleted."""
    if not output.name:
        raise OutputError(f"{output}: cannot be replaced; name a folder in it")
    if not output.exists():
        return
    if not output.is_dir():
        raise OutputError(f"{output}: is a file; name a folder")
    names = {path.name for path in output.iterdir()}
    if not names:
        return
    try:
        ours = read_manifest(output).benchmark == benchmark and names <= {MANIFEST, "data"}
    except DataError:
        ours = False
    if not ours:
        raise OutputError(
            f"{output}: holds something other than prepared {benchmark} data, which would be "
            "lost; name another folder or empty this one"
        )


def _clear_leftovers(output: Path, partial: Path, old: Path) -> None:
    """Remove what a killed run has left; only called while its lock is free."""
    shutil.rmtree(partial, ignore_errors=True)
    if old.exists():
        if output.exists():
            shutil.rmtree(old)
        else:  # killed between the two renames: the former data are whole
            old.rename(output)


def _move_into_place(partial: Path, output: Path, old: Path) -> None:
    if output.exists():
        output.rename(old)
    partial.rename(output)
    shutil.rmtree(old, ignore_errors=True)
