"""The plugin in the host: our tasks are found, and nothing of ours stands in anybody's way.

The host's own index is replaced by a small folder (its nearly 2,000 files take seconds to read);
its TaskManager, its registry and its import machinery are the real ones.
"""

import importlib
import logging
import os
import shutil
import sys
import textwrap
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host
import pytest

from lmms_eval_grounding import register

OURS = {"rsvg", "rsvg_mini", "rsvg_strict", "rsvg_val"}


@pytest.fixture
def host_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that the host takes for its own tasks."""
    import lmms_eval.tasks

    folder = tmp_path / "host_tasks"
    folder.mkdir()
    _task(folder / "theirs.yaml", "theirs")
    monkeypatch.setattr(lmms_eval.tasks, "__file__", str(folder / "__init__.py"))
    return folder


@pytest.fixture
def our_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of our task folder that the plugin takes for the original."""
    folder = tmp_path / "our_tasks"
    shutil.copytree(register.tasks_dir(), folder)
    monkeypatch.setattr(register, "tasks_dir", lambda: str(folder))
    return folder


def _task(file: Path, name: str, **more: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    fields = {"task": name, "dataset_path": "json", "test_split": "test", **more}
    file.write_text("".join(f"{key}: {value}\n" for key, value in fields.items()), "utf-8")


def _index(**options: Any) -> dict[str, Any]:
    import lmms_eval.models  # noqa: F401 - reads the entry points
    from lmms_eval.tasks import TaskManager

    index: dict[str, Any] = TaskManager(**options).task_index
    return index


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_installed_package_declares_both_entry_points() -> None:
    (models,) = entry_points(group="lmms_eval.models", name="lmms_eval_grounding")
    assert models.load() is register.models
    (tasks,) = entry_points(group="lmms_eval.tasks", name="lmms_eval_grounding")
    assert tasks.load() is register.tasks_dir


def test_our_tasks_are_indexed_behind_the_hosts_own(
    host_tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = _index()
    assert OURS | {"theirs", "grounding_mini"} <= index.keys()
    assert index["rsvg"]["type"] == "task"
    assert index["grounding_mini"]["type"] == "tag"
    assert "rsvg_mini" in index["grounding_mini"]["task"]
    assert _warnings(caplog) == []


def test_without_defaults_only_the_given_folder_is_indexed(host_tasks: Path) -> None:
    assert _index(include_defaults=False) == {}
    only = _index(include_defaults=False, include_path=str(host_tasks))
    assert set(only) == {"theirs"}
    from lmms_eval.tasks import TaskManager

    manager = TaskManager(include_defaults=False)
    assert manager.initialize_tasks(None, False) == {}  # by position, too
    assert manager.initialize_tasks().keys() >= OURS


def test_our_folder_as_include_path_changes_nothing(
    host_tasks: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(Path(register.tasks_dir()).parent)
    relative = os.path.relpath(register.tasks_dir())
    index = _index(include_path=relative)
    assert index.keys() == _index().keys()
    assert len(index["grounding_mini"]["task"]) == len(set(index["grounding_mini"]["task"]))
    assert _warnings(caplog) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("unparsable.yaml", "task: [rsvg"),
        ("empty.yaml", ""),
        ("include.yaml", "include: nowhere_yaml\ntask: rsvg_extra\n"),
        ("number.yaml", "5\n"),
    ],
)
def test_a_bad_file_of_ours_is_one_warning_and_costs_that_folder_only(
    name: str, text: str, host_tasks: Path, our_tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _task(our_tasks / "good" / "good.yaml", "good")
    (our_tasks / "rsvg" / name).write_text(text, "utf-8")
    index = _index()
    assert {"theirs", "good"} <= index.keys()
    assert not OURS & index.keys()
    (warning,) = _warnings(caplog)
    assert str(our_tasks / "rsvg") in warning
    assert "\n" not in warning


def test_a_lost_task_folder_is_one_warning(
    host_tasks: Path, our_tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(our_tasks)
    assert set(_index()) == {"theirs"}
    (warning,) = _warnings(caplog)
    assert "grounding tasks" in warning


def test_a_name_that_the_host_has_stays_the_hosts(
    host_tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _task(host_tasks / "rsvg.yaml", "rsvg")
    index = _index()
    assert index["rsvg"]["yaml_path"] == str(host_tasks / "rsvg.yaml")
    assert index.keys() >= OURS
    (warning,) = _warnings(caplog)
    assert "rsvg" in warning
    assert str(host_tasks / "rsvg.yaml") in warning


def test_a_tag_that_the_host_has_holds_the_tasks_of_both(
    host_tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _task(host_tasks / "theirs.yaml", "theirs", tag="grounding_mini")
    tagged = _index()["grounding_mini"]["task"]
    assert tagged[0] == "theirs"
    minis = {task for task in _index() if task.endswith("_mini")} - {"grounding_mini"}
    assert set(tagged[1:]) == minis >= {"rsvg_mini"}
    assert len(tagged) == len(set(tagged))
    assert _warnings(caplog) == []


def test_a_group_of_the_host_with_the_name_of_our_tag_stays_a_group(
    host_tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (host_tasks / "group.yaml").write_text("group: grounding_mini\ntask: [theirs]\n", "utf-8")
    index = _index()
    assert index["grounding_mini"]["type"] == "group"
    assert index.keys() >= OURS
    (warning,) = _warnings(caplog)
    assert "grounding_mini" in warning


def test_the_host_is_extended_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import lmms_eval.tasks

    _index(include_defaults=False)
    extended = lmms_eval.tasks.TaskManager.initialize_tasks
    finders = list(sys.meta_path)
    for _ in range(3):
        assert register.models()
    assert lmms_eval.tasks.TaskManager.initialize_tasks is extended
    assert sys.meta_path == finders
    monkeypatch.delitem(sys.modules, register.HOST_TASKS)
    for _ in range(3):
        register.models()
    ours = [finder for finder in sys.meta_path if type(finder).__module__ == register.__name__]
    assert len(ours) == 1


def test_a_host_that_reads_task_entry_points_is_left_alone() -> None:
    class TaskManager:
        def initialize_tasks(self) -> dict[str, Any]:
            return {}

    untouched = TaskManager.initialize_tasks
    newer = SimpleNamespace(TaskManager=TaskManager, get_plugin_task_paths=lambda: [])
    register._extend(newer)
    assert TaskManager.initialize_tasks is untouched
    del newer.get_plugin_task_paths
    register._extend(newer)
    assert TaskManager.initialize_tasks is not untouched


@pytest.fixture
def toy_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module that has a TaskManager and takes the place of the host's."""
    (tmp_path / "toy_host.py").write_text(
        textwrap.dedent(
            """
            class TaskManager:
                def initialize_tasks(self, include_path=None, include_defaults=True):
                    return {}
                def _get_task_and_group(self, folder):
                    return {folder: {"type": "task", "yaml_path": folder}}
            """
        ),
        "utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(register, "HOST_TASKS", "toy_host")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "toy_host", raising=False)
    return "toy_host"


def _is_extended(name: str) -> bool:
    return bool(importlib.import_module(name).TaskManager().initialize_tasks())


def test_a_host_that_was_only_looked_for_is_extended_when_it_is_imported(toy_host: str) -> None:
    register._index_our_tasks()
    assert importlib.util.find_spec(toy_host) is not None
    assert _is_extended(toy_host)


def test_two_plugins_that_wait_for_the_same_module_do_not_wait_for_each_other(
    toy_host: str,
) -> None:
    class Other:
        """Searches with everybody else, as ours does, and without taking itself out."""

        def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
            if name != toy_host:
                return None
            others = [finder for finder in sys.meta_path if finder is not self]
            specs = (finder.find_spec(name, path, target) for finder in others)
            return next((spec for spec in specs if spec is not None), None)

    register._index_our_tasks()
    sys.meta_path.insert(0, Other())
    assert _is_extended(toy_host)


def test_the_host_is_extended_again_when_it_is_imported_anew(toy_host: str) -> None:
    register._index_our_tasks()
    assert _is_extended(toy_host)
    del sys.modules[toy_host]
    assert _is_extended(toy_host)
    importlib.reload(sys.modules[toy_host])
    assert _is_extended(toy_host)


def test_a_host_without_a_task_manager_can_still_be_imported(
    toy_host: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "toy_host.py").write_text("", "utf-8")
    register._index_our_tasks()
    assert importlib.import_module(toy_host)
    (warning,) = _warnings(caplog)
    assert "grounding tasks" in warning


def test_an_index_of_another_form_costs_our_tasks_only(
    toy_host: str, caplog: pytest.LogCaptureFixture
) -> None:
    register._index_our_tasks()
    manager = importlib.import_module(toy_host).TaskManager
    manager._get_task_and_group = lambda self, folder: {"rsvg": None}
    index = manager().initialize_tasks(include_path=None)
    assert set(index) <= {"rsvg"}
    manager._get_task_and_group = lambda self, folder: None
    assert manager().initialize_tasks() == {}
    assert _warnings(caplog)


def _broken(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("simulated")


def test_models_never_raises(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from lmms_eval.models import registry_v2

    with monkeypatch.context() as patch:
        patch.setattr(register, "_index_our_tasks", _broken)
        assert [manifest.model_id for manifest in register.models()] == list(register.MODELS)
    assert len(_warnings(caplog)) == 1
    with monkeypatch.context() as patch:
        patch.delattr(registry_v2, "ModelManifest")
        assert register.models() == []
    with monkeypatch.context() as patch:
        patch.setattr(registry_v2, "ModelManifest", _broken)
        assert register.models() == []
    assert len(_warnings(caplog)) == 3


def test_other_plugins_are_read_whatever_happens_to_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.models import registry_v2

    theirs = registry_v2.ModelManifest("their_model", simple_class_path="them.Model")
    (ours,) = entry_points(group="lmms_eval.models", name="lmms_eval_grounding")
    points = SimpleNamespace(
        select=lambda group: [ours, SimpleNamespace(load=lambda: lambda: [theirs])]
    )
    monkeypatch.setattr(registry_v2, "entry_points", lambda: points)
    registry = registry_v2.ModelRegistryV2()
    registry.load_entrypoint_manifests(overwrite=True)
    assert registry.list_canonical_model_ids() == sorted([*register.MODELS, "their_model"])
    registry.clear()
    monkeypatch.setattr(register, "_index_our_tasks", _broken)
    monkeypatch.setitem(sys.modules, registry_v2.__name__, None)  # ours imports it, and fails
    registry.load_entrypoint_manifests(overwrite=True)
    assert registry.list_canonical_model_ids() == ["their_model"]


@pytest.mark.parametrize("name", register.MODELS)
def test_our_models_are_models_of_the_host(name: str) -> None:
    from lmms_eval.models import get_model, list_available_models

    assert name in list_available_models()
    assert get_model(name).__name__ == register.MODELS[name]


def test_reading_the_entry_points_imports_neither_tasks_nor_evaluator_nor_torch() -> None:
    code = (
        "import sys, lmms_eval.models as m; assert 'grounding_oracle' in m.list_available_models();"
        "print({'lmms_eval.tasks', 'lmms_eval.evaluator', 'torch', 'datasets'} & set(sys.modules))"
    )
    done = host.process(sys.executable, "-c", code)
    assert done.stdout.strip().splitlines()[-1] == "set()", done.stderr


FRESH = """
import sys, {first}
import lmms_eval.tasks
from lmms_eval.evaluator import simple_evaluate
lmms_eval.tasks.__file__ = sys.argv[1] + "/__init__.py"
results = simple_evaluate(model="grounding_oracle", tasks=["rsvg_mini"])
print("Pr@0.5 =", results["results"]["rsvg_mini"]["Pr@0.5,none"])
"""


@pytest.mark.parametrize("first", ["lmms_eval.tasks", "lmms_eval.evaluator"])
def test_a_new_process_evaluates_our_tasks_whatever_it_imports_first(
    first: str, tmp_path: Path
) -> None:
    done = host.process(sys.executable, "-c", FRESH.format(first=first), str(tmp_path))
    assert "Pr@0.5 = 100.0" in done.stdout, done.stderr


def test_missing_data_are_refused_before_the_host_loads_a_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from lmms_eval.tasks import TaskManager

    register.models()
    monkeypatch.setenv("GROUNDING_DATA", str(tmp_path))
    manager = TaskManager(include_path=register.tasks_dir(), include_defaults=False)
    for task in ("rsvg", "gres"):
        with pytest.raises(SystemExit, match=f"prepare {task} --source"):
            manager.match_tasks([task])


def test_an_unknown_profile_is_refused_before_the_host_loads_a_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lmms_eval.tasks import TaskManager

    register.models()
    manager = TaskManager(include_path=register.tasks_dir(), include_defaults=False)
    assert manager.match_tasks(["rsvg_mini"]) == ["rsvg_mini"]
    monkeypatch.setenv("GROUNDING_PROFILE", "qwen9")
    with pytest.raises(SystemExit, match="unknown profile 'qwen9'"):
        manager.match_tasks(["rsvg_mini"])
