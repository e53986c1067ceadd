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
import logging
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

HOST_TASKS = "lmms_eval.tasks"

_logger = logging.getLogger(__name__)


def tasks_dir() -> str:
    """Return the folder of our task definitions, for ``--include_path``."""
    return str(files("lmms_eval_grounding.tasks"))


def models() -> list[Any]:
    """Return the manifests of our models, and arrange for our tasks to be indexed."""
    try:
        _index_our_tasks()
        from lmms_eval.models.registry_v2 import ModelManifest

        return [
            ModelManifest(
                model_id=name, simple_class_path=f"lmms_eval_grounding.models.{class_name}"
            )
            for name, class_name in (
                ("grounding_oracle", "GroundingOracle"),
                ("grounding_replay", "GroundingReplay"),
            )
        ]
    except Exception:
        _logger.exception(
            "the grounding tasks could not be registered; `lmms-eval --include_path "
            '"$(lmms-eval-grounding tasks-dir)"` finds them all the same'
        )
        return []


def _index_our_tasks() -> None:
    if HOST_TASKS in sys.modules and hasattr(sys.modules[HOST_TASKS], "TaskManager"):
        _extend(sys.modules[HOST_TASKS])
    elif not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())


def _extend(module: ModuleType) -> None:
    """Make the host's TaskManager add our folder, once, unless the host reads our entry point."""
    manager = module.TaskManager
    original = manager.initialize_tasks
    if getattr(original, "adds_grounding", False) or hasattr(module, "get_plugin_task_paths"):
        return

    @functools.wraps(original)
    def initialize_tasks(
        self: Any, include_path: Any = None, include_defaults: bool = True
    ) -> dict[str, Any]:
        index: dict[str, Any] = original(
            self, include_path=include_path, include_defaults=include_defaults
        )
        return _with_ours(self, index) if include_defaults else index

    initialize_tasks.adds_grounding = True  # type: ignore[attr-defined]
    manager.initialize_tasks = initialize_tasks


def _with_ours(manager: Any, index: dict[str, Any]) -> dict[str, Any]:
    """Return the host's index with our tasks added behind it: a name that is taken stays taken."""
    for folder in sorted(entry for entry in Path(tasks_dir()).iterdir() if entry.is_dir()):
        try:
            ours = manager._get_task_and_group(str(folder))
        except Exception as fault:
            _logger.warning("the tasks of %s are left out, they cannot be read: %s", folder, fault)
            continue
        for name, entry in ours.items():
            present = index.setdefault(name, entry)
            if entry["type"] == "tag" and present is not entry:
                present["task"] = [*present["task"], *entry["task"]]
            elif present["yaml_path"] != entry["yaml_path"]:
                _logger.warning("task %s: the host uses %s", name, present["yaml_path"])
    return index


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds the host's task module like everybody, and extends it when it has been executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != HOST_TASKS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                try:
                    _extend(module)
                except Exception as fault:
                    _logger.warning("the grounding tasks are left out: %s", fault)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
