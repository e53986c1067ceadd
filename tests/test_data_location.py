"""Where the data lie: the folder, the override, the mini set, and one clear line otherwise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval_grounding import __version__
from lmms_eval_grounding.data import location, mini
from lmms_eval_grounding.data.errors import MissingData
from lmms_eval_grounding.data.manifest import Manifest, is_finished, split_file, write_manifest
from lmms_eval_grounding.data.rsvg import check


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the user an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / str(name))
    return tmp_path / "cache" / "lmms-eval-grounding"


def prepared(folder: Path, benchmark: str = "rsvg", **splits: int) -> Path:
    """Make what a finished conversion looks like from outside."""
    (folder / "data").mkdir(parents=True)
    for split in splits:
        split_file(folder, split).write_bytes(b"")
    write_manifest(folder, Manifest(benchmark, "unknown release", "DIOR_RSVG", splits))
    return folder


def test_data_lie_in_the_cache_of_the_user_or_where_the_variable_says(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert location.data_root() == cache
    monkeypatch.setenv("GROUNDING_DATA", "~/data")
    assert location.data_root() == Path.home() / "data"
    monkeypatch.setenv("GROUNDING_DATA", "data")
    assert location.data_root() == Path.cwd() / "data"
    monkeypatch.setenv("GROUNDING_DATA", "")
    assert location.data_root() == cache


def test_missing_data_is_one_line_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_DATA", str(tmp_path))
    with pytest.raises(MissingData) as caught:
        location.dataset_path("rsvg")
    assert str(caught.value) == (
        f"rsvg: no data in {tmp_path / 'rsvg'}; make it with: "
        "lmms-eval-grounding prepare rsvg --source DIOR_RSVG"
    )


def test_missing_data_ends_the_command_at_once_past_any_except_exception(tmp_path: Path) -> None:
    code = """
try:
    from lmms_eval_grounding.data.location import rsvg
except Exception as fault:
    raise ImportError("as the host does") from fault
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "GROUNDING_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"rsvg: no data in {tmp_path / 'rsvg'}; make it with: "
        "lmms-eval-grounding prepare rsvg --source DIOR_RSVG\n"
    )


def test_a_finished_conversion_is_found_when_the_name_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_DATA", str(tmp_path))
    folder = prepared(tmp_path / "rsvg", test=4)
    assert location.rsvg == str(folder)
    monkeypatch.setenv("GROUNDING_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(MissingData):
        _ = location.rsvg


def test_unfinished_foreign_and_incomplete_folders_are_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_DATA", str(tmp_path))
    prepared(tmp_path / "gres", benchmark="rsvg", val=1)
    with pytest.raises(MissingData, match="gres: no data in"):
        _ = location.gres
    folder = prepared(tmp_path / "rsvg", test=4)
    split_file(folder, "test").unlink()
    with pytest.raises(MissingData, match="rsvg: no data in"):
        _ = location.rsvg
    split_file(folder, "test").write_bytes(b"")
    (folder / "grounding.json").unlink()
    with pytest.raises(MissingData, match="rsvg: no data in"):
        _ = location.rsvg


def test_a_task_of_one_split_needs_that_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_DATA", str(tmp_path))
    folder = prepared(tmp_path / "rsvg", test=4)
    assert location.rsvg_test == str(folder)
    with pytest.raises(MissingData, match=r"rsvg: no split 'val' in .*prepare rsvg --source"):
        _ = location.rsvg_val


@pytest.mark.parametrize("hub_id", ["org/name", "My-Org/data.set_1"])
def test_a_hub_id_is_returned_as_it_is(monkeypatch: pytest.MonkeyPatch, hub_id: str) -> None:
    monkeypatch.setenv("GROUNDING_DATA_RSVG", hub_id)
    assert location.rsvg == hub_id
    assert location.rsvg_val == hub_id


def test_a_folder_of_the_users_own_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine" / "data").mkdir(parents=True)
    monkeypatch.setenv("GROUNDING_DATA_RSVG", str(tmp_path / "mine"))
    with pytest.raises(MissingData, match=r"no data/\*\.parquet in .*mine, the folder of GROUN"):
        _ = location.rsvg
    (tmp_path / "mine" / "data" / "test-0.parquet").write_bytes(b"")
    assert location.rsvg == str(tmp_path / "mine")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GROUNDING_DATA_RSVG", "~/mine")
    assert location.rsvg == str(tmp_path / "mine")


@pytest.mark.parametrize("path", ["/no/such", "./no", "../no/such", "~/no", "no", "a/b/c", "a\\b"])
def test_a_folder_that_does_not_exist_is_no_hub_id(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("GROUNDING_DATA_RSVG", path)
    with pytest.raises(MissingData) as caught:
        _ = location.rsvg
    assert str(caught.value) == (
        f"rsvg: GROUNDING_DATA_RSVG is {path!r}, which is no folder and no Hub id (org/name); make "
        "the folder with: lmms-eval-grounding prepare rsvg --source DIOR_RSVG "
        f"--output {Path(path).expanduser()}"
    )


@pytest.mark.parametrize("name", ["rvsg", "rsvgmini", "__wrapped__", "_mini"])
def test_other_names_are_no_attributes(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(location, name)


# The mini set


def test_the_mini_set_is_made_once_by_processes_that_start_together(cache: Path) -> None:
    code = "from lmms_eval_grounding.data.location import rsvg_mini; print(rsvg_mini)"
    environment = {**os.environ, "GROUNDING_DATA_RSVG": "/not/for/the/mini/set"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(3)
    ]
    paths = {process.communicate()[0].strip() for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    (path,) = paths
    assert Path(path).parent == cache / "mini"
    assert Path(path).name.startswith(f"rsvg-{__version__}-")
    assert check(path) == []
    assert [found.name for found in (cache / "mini").iterdir() if found.is_dir()] == [
        Path(path).name
    ]


def test_the_mini_set_is_taken_from_the_cache_and_mended_when_damaged() -> None:
    folder = Path(location.rsvg_mini)
    made = split_file(folder, "test").stat().st_mtime_ns
    assert location.rsvg_mini == str(folder)
    assert split_file(folder, "test").stat().st_mtime_ns == made
    split_file(folder, "test").unlink()
    assert location.rsvg_mini == str(folder)
    assert is_finished(folder, "rsvg")


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_folder(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.mkdir()
    cache.write_text("a file in the way")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = Path(location.rsvg_mini)
    assert folder.parent.parent == tmp_path
    assert is_finished(folder, "rsvg")


def test_other_contents_of_the_mini_set_lie_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(mini._HERE, tmp_path / "data", ignore=shutil.ignore_patterns("__pycache__"))
    before = mini._digest(mini._HERE / "mini" / "rsvg")
    monkeypatch.setattr(mini, "_HERE", tmp_path / "data")
    source = tmp_path / "data" / "mini" / "rsvg"
    assert mini._digest(source) == before
    annotation = source / "Annotations" / "00001.xml"
    annotation.write_text(annotation.read_text().replace("larger", "LARGER"))
    assert mini._digest(source) != before


def test_a_mini_set_that_this_version_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mini, "_HERE", Path("nowhere"))
    with pytest.raises(MissingData, match="gres_mini: this version ships no such mini set"):
        _ = location.gres_mini
