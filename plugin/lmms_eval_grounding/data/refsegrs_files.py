"""The files of RefSegRS, in the folder or in the zip as downloaded, which is not unpacked."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Protocol

from .errors import SourceError

SPLITS = ("train", "val", "test")
# By split, the file with its phrases.
PHRASES = {split: f"output_phrase_{split}.txt" for split in SPLITS}

# The released files have at most 0.8 MB; a zip may hold anything.
MAX_BYTES = 2**25

LAYOUT = (
    "RefSegRS.zip, and the folder unpacked from it, hold images/<id>.tif, masks/<id>.tif and "
    f"{', '.join(PHRASES.values())}"
)
_NO_PHRASES = (
    "no output_phrase_*.txt in it; the preview on the Hub and its parquet, which show images and "
    "masks as two classes, have no phrases and cannot be used"
)
# Others can make a lot of a little in one step.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class SourceFiles(Protocol):
    """The files of a release, by their names in it, such as ``images/12.tif``."""

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, or None when there is none of that name.

        Raises
        ------
        SourceError
            When it is damaged or larger than ``MAX_BYTES``; the message does not name it.
        """


class _Folder:
    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str) -> bytes | None:
        path = self._root / name
        try:
            _refuse_large(path.stat().st_size)
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise SourceError(f"cannot be read ({fault.strerror})") from fault


class _Zip:
    def __init__(self, archive: zipfile.ZipFile, root: PurePosixPath) -> None:
        self._archive = archive
        self._root = root

    def read(self, name: str) -> bytes | None:
        try:
            entry = self._archive.getinfo((self._root / name).as_posix())
        except KeyError:
            return None
        _refuse_large(entry.file_size)
        if entry.compress_type not in _METHODS:
            raise SourceError(f"compressed by method {entry.compress_type}; deflate is needed")
        try:
            with self._archive.open(entry) as file:
                # A number bounds what is inflated, also where the stated size is a lie; that ends
                # in a wrong checksum.
                return file.read(entry.file_size + 1)
        except (OSError, EOFError, ValueError, RuntimeError, zlib.error) as fault:
            raise SourceError(f"cannot be read from the zip file ({fault})") from fault
        except zipfile.BadZipFile as fault:
            raise SourceError(f"damaged in the zip file ({fault})") from fault


@contextmanager
def source_files(source: Path) -> Iterator[SourceFiles]:
    """Open a release; its files may lie in one folder below what is named.

    Parameters
    ----------
    source
        A zip file or a folder.

    Raises
    ------
    SourceError
        When it is neither, or holds no phrases; the message says what is expected.
    """
    if source.is_dir():
        found = [path for depth in ("", "*/") for path in source.glob(f"{depth}*.txt")]
        yield _Folder(source / _root(source, (path.relative_to(source) for path in found)))
        return
    if not source.exists():
        raise SourceError(f"{source}: no such file or folder; {LAYOUT}")
    try:
        archive = zipfile.ZipFile(source)
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as fault:
        reason = (
            _NO_PHRASES if source.suffix == ".parquet" else f"not a readable zip file ({fault})"
        )
        raise SourceError(f"{source}: {reason}; {LAYOUT}") from fault
    with archive:
        yield _Zip(archive, _root(source, map(PurePosixPath, archive.namelist())))


def _root(source: Path, names: Iterable[PurePosixPath | Path]) -> PurePosixPath:
    """Return the folder that holds the phrases; the one with the shortest path."""
    folders = [
        PurePosixPath(name.parent)
        for name in names
        if name.name in PHRASES.values() and name.parts[0] != "__MACOSX"
    ]
    if not folders:
        raise SourceError(f"{source}: {_NO_PHRASES}; {LAYOUT}")
    return min(folders, key=lambda folder: (len(folder.parts), folder))


def _refuse_large(size: int) -> None:
    if size > MAX_BYTES:
        raise SourceError(f"it has {size:,} bytes; the limit is {MAX_BYTES:,}")
