"""MMScan: from the official tree to parquet, what is left out, what stops it, what check finds."""

import copy
import hashlib
import importlib.util
import io
import json
import math
import os
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY
from PIL import Image

from lmms_eval_grounding.data import mmscan_json, mmscan_table
from lmms_eval_grounding.data.errors import DataError, MissingData, OutputError, SourceError
from lmms_eval_grounding.data.manifest import read_manifest
from lmms_eval_grounding.data.mini import mini_path
from lmms_eval_grounding.data.mmscan import check, features, prepare
from lmms_eval_grounding.data.mmscan_scans import frame_image, image_size, open_tables, scan_of
from lmms_eval_grounding.data.mmscan_views import spread_views

MINI = REPOSITORY / "plugin/lmms_eval_grounding/data/mini/mmscan"
MINI_PICKLE = MINI / "embodiedscan_split/embodiedscan-v1/embodiedscan_infos_val.pkl"
SUB_CLASSES = {
    "VG_Single_Attribute_Unique",
    "VG_Single_Attribute_Common",
    "VG_Single_EQ",
    "VG_Single_Space",
    "VG_Inter_Attribute_OO",
    "VG_Inter_Space_OO",
    "VG_Inter_OR",
}

# A quarter turn about z, then a shift by (1, 2, 3).
ALIGN = np.array([[0.0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]])
CAMERA = np.array([[500.0, 0, 320, 0], [0, 510, 240, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
BOXES = {
    7: [0.5, 1.0, 1.5, 2.0, 1.0, 0.5, 0.1, 0.2, 0.3],
    4: [2.0, 1.0, 0.5, 0.4, 0.4, 1.0, -1.5, 0.0, 0.0],
    12: [3.0, 3.0, 0.4, 0.5, 0.5, 0.8, 0.0, -1.57, 2.0],
    5: [3.0, 0.0, 0.4, 0.5, 0.0, 0.8, 0.0, 0.0, 0.0],  # without volume
}


def shifted(*shift: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = shift
    return pose


def scan(name: str, frames: int = 3, **changes: Any) -> dict[str, Any]:
    """Return a scan as the pickle has it."""
    return {
        "sample_idx": name,
        "axis_align_matrix": ALIGN,
        "cam2img": CAMERA,
        "depth_cam2img": CAMERA,
        "images": [
            {
                "img_path": f"{name}/{number}.jpg",
                "depth_path": f"{name}/{number}.png",
                "cam2global": shifted(4 + number, 5, 6),
                "visible_instance_ids": np.array([0, 2]),
            }
            for number in range(frames)
        ],
        "instances": [
            {"bbox_3d": box, "bbox_label_3d": 1 + place % 2, "bbox_id": object_id}
            for place, (object_id, box) in enumerate(BOXES.items())
        ],
        **changes,
    }


def sample(number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a sample as the release has it."""
    return {
        "sub_class": "VG_Inter_Space_OO",
        "scan_id": "scannet/one",
        "target_id": [12, 7],
        "distractor_ids": [4],
        "text": f"Text {number}, with an end. ",
        "target": ["chair", "table"],
        "anchors": ["chair"],
        "anchor_ids": [4],
        "tokens_positive": {"12": [[0, 4]], "7": [[0, 4], [5, 6]]},
        "ID": f"VG_Inter_Space_OO__scannet/one__{number}",
        **changes,
    }


class Tree:
    """An official tree in a temporary folder."""

    def __init__(self, root: Path, scans_name: str = "embodiedscan_split") -> None:
        self.root = root
        self.json = root / "MMScan-beta-release" / "MMScan_samples" / "MMScan_VG.json"
        self.pickle = root / scans_name / "embodiedscan-v1" / "embodiedscan_infos_val.pkl"
        self.frames = root / scans_name / "data"
        for folder in (self.json.parent, self.pickle.parent, self.frames):
            folder.mkdir(parents=True)
        self.scans = [scan("scannet/one"), scan("scannet/two")]
        self.samples: list[Any] = [sample(0), sample(1, scan_id="scannet/two")]

    def write(self) -> None:
        contents = {
            "metainfo": {"categories": {"chair": 1, "table": 2}},
            "data_list": self.scans,
        }
        self.pickle.write_bytes(pickle.dumps(contents))
        self.json.write_text(json.dumps({"train": [sample(99)], "val": self.samples}))
        for entry in self.scans:
            for image in entry["images"]:
                path = self.frames / image["img_path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(jpeg())


def jpeg(colour: tuple[int, int, int] = (10, 200, 30)) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(stream, "JPEG")
    return stream.getvalue()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "mmscan_data")


def converted(tree: Tree, output: Path, **options: Any) -> Any:
    tree.write()
    return prepare(tree.root, output, progress=False, **options)


def rows(output: Path, split: str = "val") -> list[dict[str, Any]]:
    return pq.read_table(output / "data" / f"{split}-00000-of-00001.parquet").to_pylist()


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def script(name: str) -> ModuleType:
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


# What comes out


@pytest.mark.parametrize("name", ["embodiedscan_split", "embodiedscan-split"])
def test_both_releases_give_small_rows_and_their_scans(tmp_path: Path, name: str) -> None:
    tree = Tree(tmp_path / "mmscan_data", name)
    manifest = converted(tree, tmp_path / "out")
    assert manifest.splits == {"val": 2}
    assert rows(tmp_path / "out")[1] == {
        "id": "VG_Inter_Space_OO__scannet/one__1",
        "index": 1,
        "sub_class": "VG_Inter_Space_OO",
        "scan_id": "scannet/two",
        "scans": manifest.details["scans"]["val"]["digest"],
        "expression": "Text 1, with an end. ",
        "target_id": [12, 7],
        "target": ["chair", "table"],
        "targets": [BOXES[12], BOXES[7]],
        "anchor_ids": [4],
        "anchors": ["chair"],
        "distractor_ids": [4],
    }
    found = open_tables(tmp_path / "out")["val"].scan("scannet/one")
    assert found.frames_root == tree.frames
    assert found.frames == [f"scannet/one/{number}.jpg" for number in range(3)]
    assert found.intrinsics.tolist() == [[500, 510, 320, 240]] * 3
    # The object without volume is no candidate.
    assert found.object_ids == [7, 4, 12]
    assert found.categories == ["chair", "table", "chair"]
    assert found.boxes.tolist() == [BOXES[7], BOXES[4], BOXES[12]]
    assert not found.boxes.flags.writeable
    assert check(tmp_path / "out", all_frames=True) == []


def test_poses_are_moved_into_the_aligned_frame(tree: Tree, tmp_path: Path) -> None:
    converted(tree, tmp_path / "out")
    found = open_tables(tmp_path / "out")["val"].scan("scannet/one")
    # The camera at (4, 5, 6): a quarter turn makes that (-5, 4, 6), the shift (-4, 6, 9). Its axes,
    # those of the raw frame, are turned too. In the other order of the product it is (5, 7, 9).
    expected = ALIGN.copy()
    expected[:3, 3] = [-4, 6, 9]
    np.testing.assert_array_equal(found.poses[0], expected)
    assert found.poses[1][:3, 3].tolist() == [-4, 7, 9]


def test_a_scan_of_matterport3d_has_a_camera_for_each_image(tree: Tree, tmp_path: Path) -> None:
    entry = scan("matterport3d/house/region0")
    del entry["cam2img"], entry["depth_cam2img"]
    for number, image in enumerate(entry["images"]):
        image["cam2img"] = CAMERA + np.diag([number, 0, 0, 0])
    tree.scans.append(entry)
    tree.samples.append(sample(2, scan_id="matterport3d/house/region0"))
    converted(tree, tmp_path / "out")
    found = open_tables(tmp_path / "out")["val"].scan("matterport3d/house/region0")
    assert found.intrinsics[:, 0].tolist() == [500, 501, 502]


def test_only_the_scans_of_the_samples_are_kept(tree: Tree, tmp_path: Path) -> None:
    tree.samples.pop()
    manifest = converted(tree, tmp_path / "out")
    assert manifest.details["scans"]["val"]["scans"] == 1
    assert [found.scan_id for found in open_tables(tmp_path / "out")["val"]] == ["scannet/one"]


def test_train_and_val_are_made_apart(tree: Tree, tmp_path: Path) -> None:
    tree.write()
    train = tree.pickle.with_name("embodiedscan_infos_train.pkl")
    train.write_bytes(tree.pickle.read_bytes())
    manifest = prepare(tree.root, tmp_path / "out", splits=("train", "val"), progress=False)
    assert manifest.splits == {"val": 2, "train": 1}
    assert [row["index"] for row in rows(tmp_path / "out", "train")] == [0]
    assert check(tmp_path / "out") == []


def test_the_second_annotations_are_taken_when_asked_for(tree: Tree, tmp_path: Path) -> None:
    tree.write()
    second = tree.pickle.parents[1] / "embodiedscan-v2" / tree.pickle.name
    second.parent.mkdir()
    tree.pickle.rename(second)
    with pytest.raises(SourceError, match=r"only the annotations v2 are there; --annotations"):
        prepare(tree.root, tmp_path / "out", progress=False)
    manifest = prepare(tree.root, tmp_path / "out", progress=False, annotations="v2")
    assert manifest.release == "MMScan beta release, boxes of embodiedscan-v2"


def test_datasets_reads_it(tree: Tree, tmp_path: Path) -> None:
    import datasets

    converted(tree, tmp_path / "out")
    loaded = datasets.load_dataset(
        str(tmp_path / "out"),
        data_files={"val": "data/val-*.parquet"},
        cache_dir=str(tmp_path / "cache"),
    )["val"]
    assert loaded.features == features()
    assert loaded[0]["targets"] == [BOXES[12], BOXES[7]]


def test_equal_sources_give_equal_bytes(tree: Tree, tmp_path: Path) -> None:
    converted(tree, tmp_path / "once")
    converted(tree, tmp_path / "again")
    assert digests(tmp_path / "once") == digests(tmp_path / "again")


def test_ids_that_come_again_are_told_apart(tree: Tree, tmp_path: Path) -> None:
    tree.samples = [sample(0), sample(0, text="Other."), sample(0)]
    converted(tree, tmp_path / "out")
    name = "VG_Inter_Space_OO__scannet/one__0"
    assert [row["id"] for row in rows(tmp_path / "out")] == [name, f"{name}#2", f"{name}#3"]


# What is left out, and counted


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"target_id": [], "target": []}, "samples without a target"),
        (
            {"target": ["chair"]},
            "samples with another number of target names than of target ids",
        ),
        ({"scan_id": "1mp3d_0000_region2"}, "samples of a scan that the annotations lack"),
        ({"target_id": [12, 8]}, "samples with a target that is not in the scan"),
        ({"anchor_ids": [8]}, "samples with an anchor that is not in the scan"),
        ({"distractor_ids": [4, 8]}, "samples with a distractor that is not in the scan"),
        (
            {"target_id": [12, 5]},
            "samples with a target whose box is not finite or has no volume",
        ),
    ],
)
def test_samples_that_the_official_loader_leaves_out_are_counted(
    tree: Tree, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    tree.samples.insert(1, sample(7, **changes))
    manifest = converted(tree, tmp_path / "out")
    assert [row["index"] for row in rows(tmp_path / "out")] == [0, 2]
    assert manifest.left_out_counts["val"][reason] == 1
    assert f"left out of val: 1 {reason}" in manifest.sentences()
    lines = (tmp_path / "out" / "data" / "left_out.jsonl").read_text().splitlines()
    assert list(map(json.loads, lines)) == [
        {"split": "val", "index": 1, "id": sample(7)["ID"], "reason": reason}
    ]


def test_a_sample_without_the_key_of_its_targets_has_none(tree: Tree, tmp_path: Path) -> None:
    bare = sample(2)
    del bare["target_id"], bare["target"]
    tree.samples.append(bare)
    manifest = converted(tree, tmp_path / "out")
    assert manifest.left_out_counts["val"]["samples without a target"] == 1


def test_an_anchor_without_volume_is_in_the_scan(tree: Tree, tmp_path: Path) -> None:
    tree.samples = [sample(0, anchor_ids=[5], distractor_ids=[5])]
    assert converted(tree, tmp_path / "out").splits == {"val": 1}
    assert check(tmp_path / "out") == []


def test_nothing_left_is_an_error_that_shows_how_scans_are_named(
    tree: Tree, tmp_path: Path
) -> None:
    tree.samples = [sample(0, scan_id="scene0000_00")]
    with pytest.raises(SourceError, match=r"no sample is left \(1 samples of a scan that .* named"):
        converted(tree, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("ratio", "kept"),
    [
        (None, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (1, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (0.6, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),  # int(1 / 0.6) is 1
        (0.5, [0, 2, 4, 6, 8, 10]),
        (0.26, [0, 3, 6, 9]),  # int(1 / 0.26) is 3
        (0.2, [0, 5, 10]),
    ],
)
def test_a_ratio_takes_every_nth_sample_before_any_is_left_out(
    tree: Tree, tmp_path: Path, ratio: float | None, kept: list[int]
) -> None:
    tree.samples = [sample(number) for number in range(11)]
    tree.samples[0] = sample(0, target_id=[], target=[])
    converted(tree, tmp_path / "out", ratio=ratio)
    assert [row["index"] for row in rows(tmp_path / "out")] == kept[1:]


@pytest.mark.parametrize(
    "options",
    [{"ratio": 0}, {"ratio": 1.5}, {"splits": ["test"]}, {"splits": []}, {"annotations": "v3"}],
)
def test_choices_that_there_are_not(tree: Tree, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"ratio|splits|annotations"):
        converted(tree, tmp_path / "out", **options)


def test_token_flattening_keeps_marked_targets_and_deletes_as_the_devkit_does(
    tree: Tree, tmp_path: Path
) -> None:
    """The devkit, by hand: samples 1 and 2 have no marked target and should be deleted.

    But noted are the places of their last targets, 0 and 1, so samples 0 and 1 are deleted, and
    sample 2 stays without a target. Of sample 3 one target of two is marked.
    """
    unmarked: dict[str, Any] = {"tokens_positive": {"99": [[0, 1]], "12": []}}
    tree.samples = [
        sample(0),
        sample(1, target_id=[7], target=["table"], **unmarked),
        sample(2, **unmarked),
        sample(3, tokens_positive={"7": [[0, 4]]}),
        sample(4),
    ]
    assert converted(tree, tmp_path / "plain").splits == {"val": 5}
    manifest = converted(tree, tmp_path / "flat", token_flatten=True)
    found = [(row["index"], row["target_id"], row["target"]) for row in rows(tmp_path / "flat")]
    assert found == [(3, [7], ["table"]), (4, [12, 7], ["chair", "table"])]
    assert manifest.left_out_counts["val"] == {
        "objects whose box is not finite or has no volume": 1,
        "samples that the devkit's token flattening deletes": 2,
        "samples without a target": 1,
    }
    lines = (tmp_path / "flat" / "data" / "left_out.jsonl").read_text().splitlines()
    deleted = "samples that the devkit's token flattening deletes"
    assert [(line["index"], line["reason"]) for line in map(json.loads, lines)] == [
        (0, deleted),
        (1, deleted),
        (2, "samples without a target"),
    ]
    # A ratio comes first, so that positions are those in what it leaves: samples 0, 2 and 4. Of
    # these sample 2 notes the place 1, which now is its own.
    converted(tree, tmp_path / "half", token_flatten=True, ratio=0.5)
    assert [row["index"] for row in rows(tmp_path / "half")] == [0, 4]


def test_token_flattening_that_the_devkit_does_not_survive(tree: Tree, tmp_path: Path) -> None:
    tree.samples = [sample(0, tokens_positive={})]
    with pytest.raises(SourceError, match="IndexError; prepare without --token-flatten"):
        converted(tree, tmp_path / "out", token_flatten=True)


def test_lost_cameras_are_left_out_and_counted(tree: Tree, tmp_path: Path) -> None:
    lost = tree.scans[0]["images"]
    lost[0]["cam2global"] = np.full((4, 4), -np.inf)
    lost[2]["cam2global"] = 2 * np.eye(4)
    manifest = converted(tree, tmp_path / "out")
    assert manifest.left_out_counts["val"]["frames without a rigid pose"] == 2
    found = open_tables(tmp_path / "out")["val"].scan("scannet/one")
    assert found.frames == ["scannet/one/1.jpg"]
    assert found.poses[0, :3, 3].tolist() == [-4, 7, 9]


def test_of_objects_with_the_same_id_the_later_counts(tree: Tree, tmp_path: Path) -> None:
    other = [9.0, 9, 9, 1, 1, 1, 0, 0, 0]
    tree.scans[0]["instances"].append({"bbox_3d": other, "bbox_label_3d": 2, "bbox_id": 12})
    converted(tree, tmp_path / "out")
    assert rows(tmp_path / "out")[0]["targets"] == [other, BOXES[7]]
    assert check(tmp_path / "out") == []


# What stops it, or is left out on request


def without(key: str) -> dict[str, Any]:
    entry = sample(1)
    del entry[key]
    return entry


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (7, "is no JSON object"),
        (sample(1, sub_class="VG_Other"), "sub_class is 'VG_Other'; known are VG_Single_Attr"),
        (sample(1, text="  "), "text is '  ', not a text"),
        (without("ID"), "ID is None, not a text"),
        (sample(1, target_id=["12", "7"]), r"target_id is \['12', '7'\], not a list of whole num"),
        (sample(1, target_id=[True, 7]), r"target_id is \[True, 7\], not a list of whole numbers"),
        (sample(1, target="chair"), "target is 'chair', not a list of texts"),
        (without("anchor_ids"), "anchor_ids is None, not a list"),
        (without("distractor_ids"), "distractor_ids is None, not a list"),
        (sample(1, tokens_positive=[[0, 4]]), "tokens_positive is no JSON object"),
    ],
)
def test_a_broken_sample_stops_it_or_is_left_out(
    tree: Tree, tmp_path: Path, entry: Any, reason: str
) -> None:
    tree.samples[1] = entry
    with pytest.raises(SourceError, match=rf"^MMScan_VG.json, val sample 1.*: {reason}") as stop:
        converted(tree, tmp_path / "out")
    assert str(stop.value).endswith("; --skip-broken leaves it out and goes on")
    manifest = converted(tree, tmp_path / "out", skip_broken=True)
    assert manifest.splits == {"val": 1}
    (left,) = manifest.left_out
    assert left.reason.startswith("MMScan_VG.json, val sample 1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'{' is due, it ends"),
        ("[]", r"'\{' is due, not '\['"),
        ('{"val": {}}', r"the beginning of val: '\[' is due"),
        ('{"val": [1 2]}', "val sample 0: ',' is due, not '2'"),
        ('{"val": [{"a": 1}, {"b" 2}]}', r"character 24, val sample 1: Expecting ':' delimiter"),
        ('{"val": [{"a": NaN}]}', "NaN is not JSON"),
        ('{"val": [{"a": 1}', "it ends"),
        ('{"val": [{"a": "b', "Unterminated string"),
        ('{"val": []} x', "something follows the end"),
        ('{"val": [], "val": []}', "a new name of a split is due, not 'val'"),
        ('{"val": [' + "[" * 100_000 + "]}", "nested too deeply|Expecting"),
        ('{"train": [], "test": []}', "has no split 'val'; it has train, test"),
        ('{"val": ["\udcff"]}', "not UTF-8"),
    ],
)
def test_a_file_of_samples_that_is_broken(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "samples.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(SourceError, match=rf"^samples.json: .*({reason})"):
        list(mmscan_json.samples_of(path, "val"))


def test_a_file_of_samples_that_ends_early_stops_it(tree: Tree, tmp_path: Path) -> None:
    tree.write()
    tree.json.write_text(tree.json.read_text()[:-20])
    with pytest.raises(
        SourceError, match=r"^MMScan_VG\.json: not the JSON .* val sample 1: Unterm"
    ):
        prepare(tree.root, tmp_path / "out", progress=False, skip_broken=True)
    assert not (tmp_path / "out").exists()
    tree.json.unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        list(mmscan_json.samples_of(tree.json, "val"))


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_samples_are_read_whole_whatever_is_in_memory_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    path = tmp_path / "samples.json"
    entries = [{"text": 'a "quoted" \u00fc \\ ]}', "n": 12.5e3}, [], "}", -120, None, {"a": [{}]}]
    path.write_text(json.dumps({"train": [1, 23], "val": entries, "more": []}, indent=1))
    monkeypatch.setattr(mmscan_json, "_CHUNK", size)
    assert list(mmscan_json.samples_of(path, "val")) == entries
    assert list(mmscan_json.samples_of(path, "train")) == [1, 23]
    assert list(mmscan_json.samples_of(path, "more")) == []


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda tree: tree.json.unlink(), r"no MMScan-beta-release/MMScan_samples/MMScan_VG\.json"),
        (lambda tree: tree.pickle.unlink(), r"no .*embodiedscan-v1/embodiedscan_infos_val\.pkl"),
        (
            lambda tree: (tree.root / "embodiedscan-split").mkdir(),
            "holds embodiedscan_split and embodiedscan-split, one is needed",
        ),
        (
            lambda tree: tree.frames.parent.rename(tree.root / "other"),
            "holds neither embodiedscan_split nor embodiedscan-split",
        ),
        (lambda tree: tree.root.rename(tree.root.parent / "moved"), "no such folder"),
    ],
)
def test_an_unexpected_layout_says_what_is_expected(
    tree: Tree, tmp_path: Path, break_it: Callable[[Tree], object], reason: str
) -> None:
    tree.write()
    break_it(tree)
    with pytest.raises(SourceError, match=rf"{reason}.*; an mmscan_data folder holds MMScan-beta"):
        prepare(tree.root, tmp_path / "out", progress=False)


class _Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("exit 3",)


def test_a_pickle_that_would_run_something_is_refused_by_name(tree: Tree, tmp_path: Path) -> None:
    tree.scans.append({"sample_idx": "scannet/three", "instances": _Runs()})
    tree.samples = []
    for entry in tree.scans:
        entry["images"] = []
    with pytest.raises(
        SourceError,
        match=r"^embodiedscan_split/embodiedscan-v1/embodiedscan_infos_val\.pkl: refused: the "
        r"pickle asks for \w+\.system",
    ):
        converted(tree, tmp_path / "out")


def first_scan(**changes: Any) -> Callable[[Tree], object]:
    return lambda tree: tree.scans[0].update(changes)


def first_image(**changes: Any) -> Callable[[Tree], object]:
    return lambda tree: tree.scans[0]["images"][1].update(changes)


def first_object(**changes: Any) -> Callable[[Tree], object]:
    return lambda tree: tree.scans[0]["instances"][1].update(changes)


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (first_scan(sample_idx=None), r"data_list\[0\] has no sample_idx"),
        (first_scan(instances=None), "has no list of instances"),
        (first_object(bbox_3d=[1, 2, 3]), r"instances\[1\]: bbox_3d is not 9 numbers"),
        (first_object(bbox_3d=["a"] * 9), r"instances\[1\]: bbox_3d is not 9 numbers"),
        (first_object(bbox_id="x"), r"instances\[1\] has no bbox_id"),
        (first_object(bbox_label_3d=77), r"instances\[1\] .* known category \(KeyError\(77\)\)"),
    ],
)
def test_objects_that_are_not_as_released_stop_it(
    tree: Tree, tmp_path: Path, break_it: Callable[[Tree], object], reason: str
) -> None:
    tree.write()
    break_it(tree)
    contents = pickle.loads(tree.pickle.read_bytes())
    tree.pickle.write_bytes(pickle.dumps({**contents, "data_list": tree.scans}))
    for options in ({}, {"skip_broken": True}):
        with pytest.raises(SourceError, match=rf"^embodiedscan_split/.*\.pkl: .*{reason}"):
            prepare(tree.root, tmp_path / "out", progress=False, **options)


@pytest.mark.parametrize("contents", [[], {"data_list": []}, {"metainfo": {"categories": 3}}])
def test_a_pickle_of_something_else(tree: Tree, tmp_path: Path, contents: Any) -> None:
    tree.write()
    tree.pickle.write_bytes(pickle.dumps(contents))
    with pytest.raises(SourceError, match="no EmbodiedScan annotations: they are"):
        prepare(tree.root, tmp_path / "out", progress=False)


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (first_scan(images=None), "has no list of images"),
        (first_scan(images=[]), "has no frame with a rigid pose"),
        (first_scan(axis_align_matrix=None), "axis_align_matrix is not 4 x 4 numbers"),
        (first_scan(axis_align_matrix=np.diag([1, 1, -1, 1])), "axis_align_matrix is not rigid"),
        (first_scan(cam2img=CAMERA.T), "cam2img is not fx 0 cx"),
        (first_scan(cam2img=None), r"images\[0\] cam2img is not fx 0 cx"),
        (first_scan(cam2img=np.eye(2)), "cam2img is not fx 0 cx"),
        (first_image(cam2global=np.eye(3)), r"images\[1\] cam2global is not 4 x 4 numbers"),
        (first_image(img_path=None), r"images\[1\] img_path is None, not a path below"),
        (first_image(img_path="/etc/passwd"), r"images\[1\] img_path is '/etc/passwd'"),
        (first_image(img_path="a/../../b.jpg"), r"images\[1\] img_path is 'a/\.\./\.\./b\.jpg'"),
    ],
)
def test_a_broken_scan_stops_it_or_is_left_out_with_its_samples(
    tree: Tree, tmp_path: Path, break_it: Callable[[Tree], object], reason: str
) -> None:
    tree.write()
    break_it(tree)
    contents = pickle.loads(tree.pickle.read_bytes())
    tree.pickle.write_bytes(pickle.dumps({**contents, "data_list": tree.scans}))
    with pytest.raises(SourceError, match=rf"\.pkl, scan scannet/one: {reason}.*; --skip-broken"):
        prepare(tree.root, tmp_path / "out", progress=False)
    manifest = prepare(tree.root, tmp_path / "out", progress=False, skip_broken=True)
    assert [row["scan_id"] for row in rows(tmp_path / "out")] == ["scannet/two"]
    assert manifest.left_out_counts["val"]["samples of a scan that was left out"] == 1
    assert [left.id for left in manifest.left_out] == ["scannet/one"]
    assert check(tmp_path / "out") == []


# Frames


def test_missing_frames_stop_it_or_are_left_out(tree: Tree, tmp_path: Path) -> None:
    tree.write()
    (tree.frames / "scannet/one/1.jpg").unlink()
    with pytest.raises(
        SourceError,
        match=r"scan scannet/one: 1 of 3 frames are not below .*, the first scannet/one/1\.jpg; "
        r"--frames names their folder, --no-frames .*; --skip-broken leaves it out and goes on$",
    ):
        prepare(tree.root, tmp_path / "out", progress=False)
    manifest = prepare(tree.root, tmp_path / "out", progress=False, skip_broken=True)
    found = open_tables(tmp_path / "out")["val"].scan("scannet/one")
    assert found.frames == ["scannet/one/0.jpg", "scannet/one/2.jpg"]
    assert found.poses[:, 1, 3].tolist() == [6, 8]
    assert manifest.splits == {"val": 2}
    assert len(manifest.left_out) == 1


def test_a_scan_without_frames_is_left_out_with_its_samples(tree: Tree, tmp_path: Path) -> None:
    tree.write()
    for path in (tree.frames / "scannet/one").iterdir():
        path.unlink()
    manifest = prepare(tree.root, tmp_path / "out", progress=False, skip_broken=True)
    assert [row["scan_id"] for row in rows(tmp_path / "out")] == ["scannet/two"]
    assert len(manifest.left_out) == 1


def test_frames_may_lie_elsewhere_or_be_copied_or_not_be_looked_for(
    tree: Tree, tmp_path: Path
) -> None:
    tree.write()
    tree.frames.rename(tmp_path / "frames")
    with pytest.raises(SourceError, match="3 of 3 frames are not below"):
        prepare(tree.root, tmp_path / "out", progress=False)

    prepare(tree.root, tmp_path / "elsewhere", progress=False, frames=tmp_path / "frames")
    found = open_tables(tmp_path / "elsewhere")["val"].scan("scannet/two")
    assert found.frame_file(2) == tmp_path / "frames/scannet/two/2.jpg"
    assert frame_image(found, 2).mode == "RGB"
    assert image_size(found.frame_file(2)) == (40, 30)

    prepare(
        tree.root, tmp_path / "copied", progress=False, frames=tmp_path / "frames", copy_frames=True
    )
    (tmp_path / "copied").rename(tmp_path / "moved")
    found = open_tables(tmp_path / "moved")["val"].scan("scannet/two")
    assert found.frame_file(0).read_bytes() == jpeg()
    assert found.frame_file(0).is_relative_to(tmp_path / "moved")
    assert check(tmp_path / "moved", all_frames=True) == []

    prepare(tree.root, tmp_path / "none", progress=False, look_for_frames=False)
    assert check(tmp_path / "none", all_frames=True) == []
    found = open_tables(tmp_path / "none")["val"].scan("scannet/two")
    assert len(found.poses) == 3
    with pytest.raises(MissingData, match=r"the frame .*scannet/two/0\.jpg cannot be read"):
        frame_image(found, 0)
    with pytest.raises(MissingData, match=r"prepare again with --frames$"):
        image_size(found.frame_file(0))


# Whole or not at all


KILLED = """
import os, signal, sys
from lmms_eval_grounding.data import mmscan, mmscan_split
count, seen = mmscan_split.row_of, []
def kill_half_way(*arguments, **options):
    seen.append(1)
    if len(seen) == 400:
        os.kill(os.getpid(), signal.SIGKILL)
    return count(*arguments, **options)
mmscan_split.row_of = kill_half_way
mmscan.prepare(sys.argv[1], sys.argv[2], progress=False)
"""


def test_a_synthetic_release_converts_and_a_killed_run_changes_nothing(tmp_path: Path) -> None:
    synthetic = script("convert_synthetic_mmscan")
    options = synthetic.parse(
        ["--samples", "1000", "--scans", "30", "--train-samples", "50", "--frames-per-scan", "5"]
    )
    root, output, again = tmp_path / "mmscan_data", tmp_path / "out", tmp_path / "again"
    synthetic.build(root, options)
    manifest = prepare(root, output, progress=False)
    figures = {"rows": manifest.splits["val"], "left_out": manifest.left_out_counts["val"]}
    assert synthetic.differences(output, figures, options) == []
    assert check(output) == []

    killed = subprocess.run([sys.executable, "-c", KILLED, str(root), str(again)], check=False)
    assert killed.returncode == -9
    assert not again.exists()
    assert (tmp_path / ".again.partial/data/scans/val.parquet").exists(), "killed too early"
    prepare(root, again, progress=False)
    assert digests(again) == digests(output)
    assert not (tmp_path / ".again.partial").exists()


def test_what_lies_there_is_replaced_only_if_it_is_ours(tree: Tree, tmp_path: Path) -> None:
    converted(tree, tmp_path / "out")
    tree.samples.pop()
    converted(tree, tmp_path / "out")
    assert len(rows(tmp_path / "out")) == 1
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="something other than prepared mmscan data"):
        converted(tree, tmp_path / "out")


# What check finds


def rewrite(path: Path, change: Callable[[dict[str, Any]], object], place: int = 0) -> None:
    """Change one row of a parquet file, which keeps its row groups."""
    file = pq.ParquetFile(path)
    groups = [file.read_row_group(number) for number in range(file.num_row_groups)]
    schema = file.schema_arrow
    with pq.ParquetWriter(path, schema, write_statistics=True) as writer:
        for group in groups:
            table = group.to_pylist()
            if place < len(table):
                change(table[place])
            place -= len(table)
            writer.write_table(type(group).from_pylist(table, schema=schema))


def change_scan(**changes: Any) -> Callable[[Path], None]:
    return lambda output: rewrite(
        output / "data/scans/val.parquet", lambda row: row.update(changes)
    )


def change_row(**changes: Any) -> Callable[[Path], None]:
    return lambda output: rewrite(
        output / "data/val-00000-of-00001.parquet", lambda row: row.update(changes), place=1
    )


FLAT_POSES = np.tile(ALIGN.ravel(), 3)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda output: (output / "grounding.json").unlink(), r"grounding\.json: missing"),
        (
            lambda output: (output / "data/scans/val.parquet").unlink(),
            r"scans/val\.parquet: cannot be read",
        ),
        (
            lambda output: (output / "data/scans/val.parquet").write_bytes(b"PAR1"),
            r"scans/val\.parquet: cannot be read",
        ),
        (change_scan(), r"scans/val\.parquet: its contents are not those that grounding\.json"),
        (change_scan(object_ids=[7, 7, 12]), "scan scannet/one: has two objects with the same id"),
        (change_scan(object_ids=[7, 4]), "has not one category and one box for each object"),
        (change_scan(boxes=[*BOXES[7], *BOXES[5], *BOXES[12]]), "the box of object 4 is not fin"),
        (
            change_scan(poses=[*FLAT_POSES[:-16], *(2 * ALIGN).ravel()]),
            r"scan scannet/one: the pose of frame scannet/one/2\.jpg is not rigid",
        ),
        (change_scan(poses=FLAT_POSES[:16]), "has no frames, or not one pose and one camera"),
        (change_scan(frames=[], poses=[], intrinsics=[]), "has no frames, or not one pose"),
        (
            change_scan(intrinsics=[500.0, 510, 320, 240] * 2 + [-1.0, 510, 320, 240]),
            r"the camera of frame scannet/one/2\.jpg has the intrinsics \[-1\.0",
        ),
        (
            change_scan(frames=["a.jpg", "b.jpg", "scannet/one/2.jpg"]),
            "the frame a.jpg has no file below",
        ),
        (change_row(scan_id="scannet/three"), r"row 1 .*: the scan 'scannet/three' is not in the"),
        (change_row(scans="0123"), "it names the scans '0123', which are not those of the folder"),
        (change_row(target_id=[12, 4]), "row 1 .*: the box of target 4 is not that of the scan"),
        (change_row(target_id=[12, 99]), "the target 99 is not in the scan"),
        (change_row(target_id=[12]), "are not of one length above 0"),
        (change_row(target_id=[], target=[], targets=[]), "are not of one length above 0"),
        (change_row(targets=[BOXES[12], BOXES[4]]), "the box of target 7 is not that of the scan"),
        (change_row(sub_class="VG_Other"), "the sub_class 'VG_Other' is not known"),
        (change_row(expression=" "), "the expression is empty"),
        (change_row(id=sample(0)["ID"]), "the id is in .* too"),
        (change_row(anchor_ids=None), "no anchor_ids"),
    ],
)
def test_check_names_each_problem(
    tree: Tree, tmp_path: Path, damage: Callable[[Path], object], problem: str
) -> None:
    converted(tree, tmp_path / "out")
    assert check(tmp_path / "out") == []
    damage(tmp_path / "out")
    found = "\n".join(check(tmp_path / "out"))
    assert re.search(problem, found), found


def test_check_compares_the_numbers_of_scans_frames_and_objects(tree: Tree, tmp_path: Path) -> None:
    converted(tree, tmp_path / "out")
    path = tmp_path / "out/grounding.json"
    manifest = json.loads(path.read_text())
    for name in ("scans", "frames", "objects"):
        changed = copy.deepcopy(manifest)
        changed["details"]["scans"]["val"][name] += 1
        path.write_text(json.dumps(changed))
        count = manifest["details"]["scans"]["val"][name]
        (problem,) = check(tmp_path / "out")
        assert problem.endswith(f"val.parquet: holds {count} {name}, not {count + 1}")
    del manifest["details"]["scans"]
    path.write_text(json.dumps(manifest))
    assert "its details are not those of mmscan" in check(tmp_path / "out")[0]


def test_check_decodes_the_first_frame_or_all(tree: Tree, tmp_path: Path) -> None:
    converted(tree, tmp_path / "out")
    (tree.frames / "scannet/two/2.jpg").write_bytes(jpeg()[:300])
    assert check(tmp_path / "out") == []
    (problem,) = check(tmp_path / "out", all_frames=True)
    assert "scan scannet/two: the frame" in problem
    assert "2.jpg cannot be decoded" in problem
    (tree.frames / "scannet/two/0.jpg").write_bytes(b"no picture")
    (problem,) = check(tmp_path / "out")
    assert "0.jpg cannot be decoded" in problem


# The scan of a document


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the user an empty cache folder."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / str(name))
    return tmp_path / "cache" / "lmms-eval-grounding"


def test_documents_of_two_sets_find_their_scans_in_one_process(
    tree: Tree, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted(tree, cache / "mmscan")
    own, mini = rows(cache / "mmscan")[0], rows(Path(mini_path("mmscan")))[0]
    assert own["scans"] != mini["scans"]
    assert scan_of(own).scan_id == "scannet/one"
    assert scan_of(mini).scan_id == "generated/office"
    assert scan_of(mini) is scan_of(mini), "a scan is read once"
    with pytest.raises(DataError, match="has no scan scannet/one"):
        scan_of({**mini, "scan_id": "scannet/one"})

    tree.samples.pop()
    converted(tree, tmp_path / "fewer")
    fewer = rows(tmp_path / "fewer")[0]
    with pytest.raises(MissingData, match=r"no scans \w+, .* set GROUNDING_DATA_MMSCAN to their"):
        scan_of(fewer)
    monkeypatch.setenv("GROUNDING_DATA_MMSCAN", str(tmp_path / "fewer"))
    assert scan_of(fewer).frames_root == tree.frames
    with pytest.raises(MissingData):
        scan_of(own)


def test_scans_are_read_by_several_threads(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mmscan_table, "_CACHED_SCANS", 2)  # so that most calls read
    docs = rows(Path(mini_path("mmscan"))) * 30
    random.Random(0).shuffle(docs)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(scan_of, docs))
    for doc, there in zip(docs, found, strict=True):
        boxes = dict(zip(there.object_ids, there.boxes.tolist(), strict=True))
        assert there.scan_id == doc["scan_id"]
        assert [boxes[object_id] for object_id in doc["target_id"]] == doc["targets"]


# Views


def looking(x: float, degrees: float = 0.0) -> np.ndarray:
    """Return a camera at (x, 0, 0) that looks along y, turned about z."""
    angle = math.radians(degrees)
    pose = np.eye(4)
    pose[:3, 2] = [-math.sin(angle), math.cos(angle), 0]
    pose[:3, 0] = [math.cos(angle), math.sin(angle), 0]
    pose[:3, 1] = [0, 0, -1]
    pose[0, 3] = x
    return pose


@pytest.mark.parametrize(
    ("poses", "count", "expected"),
    [
        # From 0 the farthest is 10; then 3 has 3 to its nearest, 2 has 2.
        ([looking(0), looking(1), looking(2), looking(3), looking(10)], 3, [0, 3, 4]),
        # At one place: after 0 and 180 degrees 85 is nearer to both than 95 and 90 are.
        ([looking(0, d) for d in (0, 85, 90, 180)], 3, [0, 2, 3]),
        # One radian, 57.3 degrees, is as far as a metre.
        ([looking(0), looking(1), looking(0, 57)], 2, [0, 1]),
        ([looking(0), looking(1), looking(0, 58)], 2, [0, 2]),
        # Equally far: the first.
        ([looking(0), looking(1), looking(-1)], 2, [0, 1]),
        ([looking(0)] * 4, 3, [0, 1, 2]),
        ([looking(5), looking(1)], 8, [0, 1]),
        ([looking(5), looking(1)], 1, [0]),
        ([], 8, []),
    ],
)
def test_views_are_spread_over_places_and_directions(
    poses: list[np.ndarray], count: int, expected: list[int]
) -> None:
    assert spread_views(poses, count) == expected


# The mini set


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("mini") / "mmscan"
    prepare(MINI, output, progress=False, copy_frames=True)
    return output


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    return script("draw_mmscan_mini")


def test_the_mini_set_is_small_and_asks_in_all_ways(mini: Path) -> None:
    assert check(mini, all_frames=True) == []
    manifest = read_manifest(mini)
    assert manifest.left_out_counts == {"val": {}}
    assert manifest.left_out == []
    table = rows(mini)
    assert len(table) >= 12
    assert {row["sub_class"] for row in table} == SUB_CLASSES
    assert len({row["scan_id"] for row in table}) >= 3
    assert {len(row["targets"]) for row in table} >= {1, 2, 3}
    angles = np.array([box[6:] for row in table for box in row["targets"]])
    assert (np.abs(angles[:, 0]) > 0.01).any()
    assert (np.abs(angles) > 0.01).all(axis=1).any(), "no target is turned about all axes"
    for scans in open_tables(mini).values():
        for found in scans:
            assert len(found.frames) >= 8
    size = sum(path.stat().st_size for path in MINI.rglob("*") if path.is_file())
    assert size < 600_000


def test_the_mini_set_is_that_of_the_script(drawing: ModuleType) -> None:
    contents = pickle.loads(MINI_PICKLE.read_bytes())
    samples = json.loads((MINI / "MMScan-beta-release/MMScan_samples/MMScan_VG.json").read_text())
    labels = {label: name for name, label in contents["metainfo"]["categories"].items()}
    texts = []
    for make, entry in zip(drawing.ROOMS, contents["data_list"], strict=True):
        room = make()
        drawing.check_room(room)
        np.testing.assert_array_equal(entry["axis_align_matrix"], room.align)
        assert [
            (labels[instance["bbox_label_3d"]], instance["bbox_3d"])
            for instance in entry["instances"]
        ] == [(thing.category, thing.box) for thing in room.things]
        texts += [(prompt.sub_class, prompt.text) for prompt in room.prompts]
    assert [(entry["sub_class"], entry["text"]) for entry in samples["val"]] == texts
    for entry in samples["val"]:
        for (span,) in entry["tokens_positive"].values():
            assert entry["text"][span[0] : span[1]].strip()


def test_relations_in_the_prompts_are_true(drawing: ModuleType) -> None:
    office, _, kitchen = (make() for make in drawing.ROOMS)

    def middle(room: Any, name: str) -> np.ndarray:
        return np.array(room.thing(name).box[:3])

    def top(room: Any, name: str) -> float:
        box = room.thing(name).box
        return box[2] + box[5] / 2  # of things that stand upright

    cold = middle(kitchen, "refrigerator")
    assert np.linalg.norm(middle(kitchen, "red chair 1") - cold) < np.linalg.norm(
        middle(kitchen, "red chair 2") - cold
    )
    standing = [
        thing.name
        for thing in kitchen.things
        if abs(thing.box[2] - thing.box[5] / 2 - top(kitchen, "table")) < 1e-6
    ]
    assert standing == ["bowl", "green bottle", "black bottle"]
    small, large = office.thing("small box").box, office.thing("large box").box
    assert small[2] - small[5] / 2 == pytest.approx(large[2] + large[5] / 2)
    window = middle(office, "window")
    chairs = ["red chair", "blue chair 1", "blue chair 2"]
    assert min(chairs, key=lambda name: np.linalg.norm(middle(office, name) - window)) == chairs[0]


def hits(scan: Any, things: dict[str, Any], poses: np.ndarray) -> tuple[int, int]:
    """Return in how many pictures the middle of a thing lies, and how often in its colour there.

    The middle is projected by hand, and a colour is recognised in any light.
    """
    inside = coloured = 0
    for frame, pose in enumerate(poses):
        picture = np.asarray(frame_image(scan, frame), dtype=float)
        fx, fy, cx, cy = scan.intrinsics[frame]
        for thing in things.values():
            x, y, z = np.linalg.inv(pose)[:3] @ [*thing.box[:3], 1.0]
            if z < 0.3:
                continue
            column, line = int(fx * x / z + cx), int(fy * y / z + cy)
            if not (2 <= column < picture.shape[1] - 2 and 2 <= line < picture.shape[0] - 2):
                continue
            inside += 1
            pixel, colour = picture[line, column], np.array(thing.colour, dtype=float)
            cosine = pixel @ colour / np.linalg.norm(pixel) / np.linalg.norm(colour)
            coloured += cosine > 0.995
    return inside, coloured


# Things that fill their boxes and have a colour of their own in their room.
SOLID_THINGS = {
    "office": ["small box", "window", "monitor", "door"],
    "bedroom": ["picture", "rug", "wardrobe"],
    "kitchen": ["bowl", "green bottle", "cabinet", "door"],
}


def test_poses_and_cameras_lead_to_where_things_are_in_the_pictures(
    mini: Path, drawing: ModuleType
) -> None:
    entries = {
        entry["sample_idx"]: entry for entry in pickle.loads(MINI_PICKLE.read_bytes())["data_list"]
    }
    table = open_tables(mini)["val"]
    for make in drawing.ROOMS:
        room = make()
        things = {name: room.thing(name) for name in SOLID_THINGS[room.name]}
        found = table.scan(f"generated/{room.name}")
        inside, coloured = hits(found, things, found.poses)
        assert inside >= 10
        assert coloured >= 0.75 * inside, (room.name, inside, coloured)
        # With the poses of the raw frame, or their inverses, things are elsewhere.
        raw = np.array([image["cam2global"] for image in entries[found.scan_id]["images"]])
        for wrong in (raw, np.linalg.inv(found.poses)):
            inside, coloured = hits(found, things, wrong)
            assert coloured <= 0.34 * max(inside, 1), (room.name, inside, coloured)
