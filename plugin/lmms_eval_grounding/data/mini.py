"""The mini sets: a few samples of our own that ship with the package.

They lie in the package in the layout of the official release and go through the converter of
their benchmark on first use, so that they take the path that real data take.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from .. import __version__
from .errors import MissingData, OutputError
from .folder import alone_in
from .manifest import is_finished

_HERE = Path(__file__).parent
# Images and frames stay where a release has them; those of a mini set are copied out of the
# package, which may be removed or replaced while the prepared set is in the cache.
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "gres": {"embed_images": True},
    "mmscan": {"copy_frames": True},
}
# A conversion takes a second or two; processes that start together wait for the first.
_WAIT_SECONDS = 120


def mini_path(benchmark: str) -> str:
    """Return the folder of the prepared mini set of a benchmark, which is made where missing.

    It lies in the cache folder of the user; where that cannot be written to, in a temporary
    folder that goes when the process ends.

    Parameters
    ----------
    benchmark
        ``rsvg``, ``gres``, ``mmscan`` or ``refsegrs``.

    Raises
    ------
    MissingData
        When this version has no mini set for the benchmark.
    """
    source = _HERE / "mini" / benchmark
    if not source.is_dir():
        raise MissingData(f"{benchmark}_mini: this version ships no such mini set")
    name = f"{benchmark}-{__version__}-{_digest(source)}"
    try:
        folder = platformdirs.user_cache_path("lmms-eval-grounding") / "mini" / name
        if is_finished(folder, benchmark):
            return str(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone_in(folder.parent, timeout=_WAIT_SECONDS):
            if not is_finished(folder, benchmark):
                _convert(benchmark, source, folder)
        return str(folder)
    except (OSError, OutputError):  # no home, a read-only or full disk, something in the way
        temporary = Path(tempfile.mkdtemp(prefix="lmms-eval-grounding-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        _convert(benchmark, source, temporary / name)
        return str(temporary / name)


def _convert(benchmark: str, source: Path, folder: Path) -> None:
    converter = importlib.import_module(f"{__package__}.{benchmark}")
    converter.prepare(source, folder, progress=False, **_OPTIONS.get(benchmark, {}))


def _digest(source: Path) -> str:
    """Name the contents of a mini set and of the code that converts it."""
    digest = hashlib.sha256()
    for path in [*sorted(source.rglob("*")), *sorted(_HERE.glob("*.py"))]:
        if path.is_file():
            data = path.read_bytes()
            digest.update(f"{path.relative_to(_HERE).as_posix()} {len(data)}\n".encode())
            digest.update(data)
    return digest.hexdigest()[:16]
