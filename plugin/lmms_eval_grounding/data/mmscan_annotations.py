"""The scans in the pickles of EmbodiedScan, ``embodiedscan_infos_<split>.pkl``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ..geometry.boxes3d import is_rigid, is_valid
from .errors import SourceError
from .mmscan_scan import Floats, Scan
from .pickles import read_pickle

# Pixels: below that, two image axes are at right angles for any purpose.
_SKEW = 1e-3

NO_POSE = "frames without a rigid pose"
NO_VOLUME = "objects whose box is not finite or has no volume"


@dataclass(frozen=True, eq=False)
class Objects:
    """The objects of a scan.

    Attributes
    ----------
    boxes
        By object id, nine numbers each, in the aligned frame.
    categories
        By object id, the class name.
    without_volume
        The ids of objects that are left out because their box is no box.
    """

    boxes: Mapping[int, Sequence[float]]
    categories: Mapping[int, str]
    without_volume: frozenset[int]


@dataclass(frozen=True, eq=False)
class Annotations:
    """What a pickle says.

    Attributes
    ----------
    objects
        By scan id. Of scans that are there twice, and of objects with the same id, the later one
        counts, as in the official devkit.
    scans
        By scan id: the entry of the pickle.
    """

    objects: dict[str, Objects]
    scans: dict[str, Mapping[str, Any]]


def read_annotations(path: Path, *, progress: bool) -> Annotations:
    """Read a pickle and the objects of its scans.

    Raises
    ------
    SourceError
        When it is no such pickle; the message names scan and object, but not the file.
    """
    contents = read_pickle(path, progress)
    categories, entries = _parts(contents)
    objects, scans = {}, {}
    for number, entry in enumerate(entries):
        scan_id = entry.get("sample_idx") if isinstance(entry, Mapping) else None
        if not isinstance(scan_id, str):
            raise SourceError(f"data_list[{number}] has no sample_idx")
        try:
            objects[scan_id] = _objects(entry, categories)
        except SourceError as fault:
            raise SourceError(f"scan {scan_id}: {fault}") from fault
        scans[scan_id] = entry
    return Annotations(objects, scans)


def read_scan(
    entry: Mapping[str, Any], objects: Objects, frames_root: Path, left_out: Counter[str]
) -> Scan:
    """Return a scan with its poses moved into the aligned frame, in which the boxes are.

    Parameters
    ----------
    entry
        The entry of the pickle. ``cam2global`` of a frame leads into the raw frame of the scan, and
        ``axis_align_matrix`` from there into the aligned one.
    objects
        Its objects.
    frames_root
        The folder that paths of frames start from.
    left_out
        Counts the frames that are left out because their pose is not rigid (a lost camera).

    Raises
    ------
    SourceError
        For an entry that is not as in the release; the message names the frame, not the scan.
    """
    align = _matrix(entry.get("axis_align_matrix"), "axis_align_matrix", (4, 4))
    if not is_rigid(align):
        raise SourceError(f"axis_align_matrix is not rigid: {align.tolist()}")
    images = entry.get("images")
    if not isinstance(images, Sequence):
        raise SourceError("has no list of images")
    # In Matterport3D every image has its own; elsewhere a scan has one.
    shared = _intrinsics(entry["cam2img"]) if entry.get("cam2img") is not None else None
    paths, poses, intrinsics = [], [], []
    for number, image in enumerate(images):
        try:
            if not isinstance(image, Mapping):
                raise SourceError("is no dict")
            paths.append(_path(image.get("img_path")))
            poses.append(_matrix(image.get("cam2global"), "cam2global", (4, 4)))
            intrinsics.append(shared or _intrinsics(image.get("cam2img")))
        except SourceError as fault:
            raise SourceError(f"images[{number}] {fault}") from fault
    with np.errstate(invalid="ignore", over="ignore"):  # poses of a lost camera are infinite
        aligned = align @ np.array(poses).reshape(-1, 4, 4)
    rigid = np.flatnonzero(is_rigid(aligned))
    left_out[NO_POSE] += len(paths) - len(rigid)
    return Scan(
        scan_id=entry["sample_idx"],
        frames_root=frames_root,
        frames=[paths[number] for number in rigid],
        poses=aligned[rigid],
        intrinsics=np.array(intrinsics).reshape(-1, 4)[rigid],
        object_ids=list(objects.boxes),
        categories=[objects.categories[object_id] for object_id in objects.boxes],
        boxes=np.array(list(objects.boxes.values())).reshape(-1, 9),
    )


def _parts(contents: Any) -> tuple[Mapping[int, str], Sequence[Any]]:
    """Return the class names by label, and the entries of scans."""
    try:
        names, entries = contents["metainfo"]["categories"], contents["data_list"]
        labels = {int(label): str(name) for name, label in names.items()}
    except (TypeError, KeyError, IndexError, AttributeError, ValueError):
        raise SourceError(
            'no EmbodiedScan annotations: they are {"metainfo": {"categories": {name: label}}, '
            '"data_list": [scan, ...]}'
        ) from None
    if not isinstance(entries, list):
        raise SourceError("its data_list is no list")
    return labels, entries


def _objects(entry: Mapping[str, Any], names: Mapping[int, str]) -> Objects:
    instances = entry.get("instances")
    if not isinstance(instances, Sequence):
        raise SourceError("has no list of instances")
    boxes, categories = {}, {}
    for number, instance in enumerate(instances):
        try:
            object_id, label = int(instance["bbox_id"]), int(instance["bbox_label_3d"])
            box = _matrix(instance["bbox_3d"], "bbox_3d", (9,))
            categories[object_id] = names[label]
        except SourceError as fault:
            raise SourceError(f"instances[{number}]: {fault}") from fault
        except (TypeError, KeyError, ValueError, IndexError) as fault:
            raise SourceError(
                f"instances[{number}] has no bbox_id, no bbox_3d or no bbox_label_3d of a known "
                f"category ({fault!r})"
            ) from fault
        boxes[object_id] = box
    rows = np.array(list(boxes.values())).reshape(-1, 9)
    sound = is_valid(rows)
    ids = list(boxes)
    return Objects(
        boxes={key: row for key, row, keep in zip(ids, rows.tolist(), sound, strict=True) if keep},
        categories=categories,
        without_volume=frozenset(key for key, keep in zip(ids, sound, strict=True) if not keep),
    )


def _matrix(value: Any, name: str, shape: tuple[int, ...]) -> Floats:
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape != shape:
        raise SourceError(f"{name} is not {' x '.join(map(str, shape))} numbers")
    return matrix


def _intrinsics(value: Any) -> list[float]:
    """Return fx, fy, cx, cy of a matrix of 3 x 3, 3 x 4 or 4 x 4 numbers."""
    try:
        matrix = np.asarray(value, dtype=np.float64)[:3, :3]
    except (TypeError, ValueError, IndexError):
        matrix = np.empty(0)
    if matrix.shape == (3, 3) and np.isfinite(matrix).all():
        (fx, skew, cx), (zero, fy, cy), last = matrix.tolist()
        if max(abs(skew), abs(zero)) < _SKEW and fx > 0 and fy > 0 and last == [0, 0, 1]:
            return [fx, fy, cx, cy]
    raise SourceError("cam2img is not fx 0 cx / 0 fy cy / 0 0 1")


def _path(value: Any) -> str:
    path = PurePosixPath(value) if isinstance(value, str) else PurePosixPath()
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in value:
        raise SourceError(f"img_path is {value!r:.80}, not a path below the folder of the frames")
    return path.as_posix()
