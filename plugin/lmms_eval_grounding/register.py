"""The plugin's side of lmms-eval: our models, and our task folder in every TaskManager.

The host reads the entry point group ``lmms_eval.models`` before it builds a TaskManager, but has
none for tasks. So the entry point of our models also arranges that `TaskManager.initialize_tasks`
adds our folder. At that moment the host is half imported; nothing of it is imported here, the
change is made when it finishes importing its tasks. Nothing in this module raises: the host loads
all plugins in one ``try``, and an exception of ours would take other plugins with it.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

HOST_TASKS = "lmms_eval.tasks"
MODELS = {"grounding_oracle": "GroundingOracle", "grounding_replay": "GroundingReplay"}

_logger = logging.getLogger(__name__)


def tasks_dir() -> str:
    """Return the folder of our task definitions, for ``--include_path``."""
    return str(files("lmms_eval_grounding.tasks"))


def models() -> list[Any]:
    """Return the manifests of our models, and arrange for our tasks to be indexed."""
    with _or_a_warning("the grounding tasks"):
        _index_our_tasks()
    with _or_a_warning(f"the models {' and '.join(MODELS)}"):
        from lmms_eval.models.registry_v2 import ModelManifest

        return [
            ModelManifest(name, simple_class_path=f"lmms_eval_grounding.models.{class_name}")
            for name, class_name in MODELS.items()
        ]
    return []


@contextmanager
def _or_a_warning(what: str) -> Iterator[None]:
    """Do something of ours; a fault is one warning, and the host goes on without it."""
    try:
        yield
    except Exception as fault:
        reason = " ".join(str(fault).split())
        _logger.warning("lmms-eval goes on without %s: %s: %s", what, type(fault).__name__, reason)


def _index_our_tasks() -> None:
    host = sys.modules.get(HOST_TASKS)
    if hasattr(host, "TaskManager"):
        _extend(host)
    elif not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())


def _extend(host: Any) -> None:
    """Make the host's TaskManager add our folder, once, unless the host reads our entry point."""
    original = host.TaskManager.initialize_tasks
    if hasattr(host, "get_plugin_task_paths") or hasattr(original, "adds_grounding"):
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def initialize_tasks(*args: Any, **kwargs: Any) -> Any:
        index = original(*args, **kwargs)
        asked = signature.bind(*args, **kwargs).arguments
        if asked.get("include_defaults", True):
            with _or_a_warning("the grounding tasks"):
                _add_ours(asked["self"], index)
        return index

    initialize_tasks.adds_grounding = True  # type: ignore[attr-defined]
    host.TaskManager.initialize_tasks = initialize_tasks
    if hasattr(host.TaskManager, "match_tasks"):
        host.TaskManager.match_tasks = _refusing_early(host.TaskManager.match_tasks)


def _refusing_early(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Return `match_tasks` that also looks for the data of ours among the tasks that are asked for.

    The host loads a model before its tasks; a missing release or a mistyped profile should not
    cost those minutes. Such a mistake is a `SystemExit`; anything else is left to the host.
    """

    @functools.wraps(original)
    def match_tasks(manager: Any, *args: Any, **kwargs: Any) -> list[str]:
        names = original(manager, *args, **kwargs)
        with _or_a_warning("looking for the data of the grounding tasks first"):
            for name in names:
                _load_ours(manager, name)
        return names

    return match_tasks


def _load_ours(manager: Any, name: Any) -> None:
    """Load a task or group of ours as the host will, which refuses what cannot run."""
    entry = manager.task_index.get(name) if isinstance(name, str) else None
    path = str(entry["yaml_path"]) if entry else ""
    if not path.startswith(tasks_dir()):
        return
    from lmms_eval.utils import load_yaml_config

    from .benchmarks.conventions import check_environment

    check_environment()
    config = load_yaml_config(path)
    for member in config["task"] if "group" in config else ():
        _load_ours(manager, member)


def _add_ours(manager: Any, index: dict[str, Any]) -> None:
    """Add our tasks to the host's index, read one folder at a time: a bad one costs no other."""
    ours: dict[str, Any] = {}
    for folder in sorted(path for path in Path(tasks_dir()).iterdir() if path.is_dir()):
        with _or_a_warning(f"the tasks in {folder}"):
            for name, entry in manager._get_task_and_group(str(folder)).items():
                _add(ours, name, entry)
    for name, entry in ours.items():
        _add(index, name, entry)


def _add(index: dict[str, Any], name: str, entry: dict[str, Any]) -> None:
    """Add one entry behind the others: a name that is taken stays taken, tags are joined."""
    present = index.setdefault(name, entry)
    if present is entry:
        return
    if present["type"] == entry["type"] == "tag":
        present["task"] += [task for task in entry["task"] if task not in present["task"]]
    elif _place(present) != _place(entry):
        kind, file = _place(present)
        _logger.warning("%s is the %s of %s, not that of this package", name, kind, file)


def _place(entry: dict[str, Any]) -> tuple[str, str]:
    """Return what an entry is and its file, which several ways may lead to."""
    return entry["type"], os.path.realpath(str(entry["yaml_path"]))


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds the host's task module as the other finders do, and extends it once it has run."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != HOST_TASKS:
            return None
        sys.meta_path.remove(self)  # so that the search below does not come back here
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                with _or_a_warning("the grounding tasks"):
                    _extend(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
