"""Where the data of a benchmark lie; nothing here imports more than paths need.

A task YAML says ``dataset_path: !function lmms_eval_grounding.data.location.rsvg``. lmms-eval
resolves that with ``getattr(module, "rsvg")`` while it loads the task, and only the tasks that
were asked for; ``__getattr__`` below looks the folder up at that moment. The names are

- ``rsvg``, ``gres``, ``mmscan``, ``refsegrs``: ``dataset_path`` of the benchmark,
- ``rsvg_val``, ``gres_testA``, ...: the same, and the split must be there,
- ``rsvg_mini``, ``gres_mini``, ...: the mini set that ships with the package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from .errors import DataError, MissingData
from .manifest import is_finished, read_manifest

# What to give ``prepare --source``: the name of the folder in the official release.
SOURCES: Mapping[str, str] = {
    "rsvg": "DIOR_RSVG",
    "gres": "GREFCOCO",
    "mmscan": "mmscan_data",
    "refsegrs": "REFSEGRS",
}

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def data_root() -> Path:
    """Return the folder of all prepared data: ``$GROUNDING_DATA``, or the user's cache folder."""
    named = os.environ.get("GROUNDING_DATA")
    if named:
        return Path(named).expanduser().absolute()
    return platformdirs.user_cache_path("lmms-eval-grounding")


def dataset_path(benchmark: str, split: str | None = None) -> str:
    """Return what ``datasets.load_dataset`` takes for a benchmark.

    Parameters
    ----------
    benchmark
        A key of ``SOURCES``.
    split
        A split that must be there; not looked at for a Hub id.

    Returns
    -------
    str
        ``$GROUNDING_DATA_<BENCHMARK>``, a folder or a Hub id ``org/name``, if set; else the folder
        of the benchmark in ``data_root()``.

    Raises
    ------
    MissingData
        When there are no such data; the message names the command that makes them.
    """
    variable = f"GROUNDING_DATA_{benchmark.upper()}"
    named = os.environ.get(variable)
    command = f"lmms-eval-grounding prepare {benchmark} --source {SOURCES[benchmark]}"
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            if _HUB_ID.fullmatch(named):
                return named
            raise MissingData(
                f"{benchmark}: {variable} is {named!r}, which is no folder and no Hub id "
                f"(org/name); make the folder with: {command} --output {folder}"
            )
        if not any(folder.glob("data/*.parquet")):
            raise MissingData(
                f"{benchmark}: no data/*.parquet in {folder}, the folder of {variable}; make it "
                f"with: {command} --output {folder}"
            )
    else:
        folder = data_root() / benchmark
        if not is_finished(folder, benchmark):
            raise MissingData(f"{benchmark}: no data in {folder}; make it with: {command}")
    _refuse_lost_images(folder, benchmark, command)
    if split is not None and not any(folder.glob(f"data/{split}-*.parquet")):
        raise MissingData(
            f"{benchmark}: no split {split!r} in {folder}; make it from a source that has it, "
            f"with: {command}"
        )
    return str(folder)


def _refuse_lost_images(folder: Path, benchmark: str, command: str) -> None:
    """Raise where the images of a folder that holds their paths only are gone.

    Some models of the host take an image that cannot be opened for one in which nothing was found.
    """
    try:
        images = read_manifest(folder).details.get("images")
    except DataError:
        return  # data of the user's own
    if isinstance(images, str) and not Path(images).is_dir():
        raise MissingData(
            f"{benchmark}: {folder} needs the images in {images}, which is no folder any more; put "
            f"them back, or make it again with: {command}"
        )


def __getattr__(name: str) -> str:
    benchmark, _, split = name.partition("_")
    if benchmark not in SOURCES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if split == "mini":
        from .mini import mini_path  # noqa: PLC0415 - converts, so it imports much

        return mini_path(benchmark)
    return dataset_path(benchmark, split or None)
