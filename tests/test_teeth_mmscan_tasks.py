"""Wrong implementations of the MMScan tasks are refused by the tasks' golden cases."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lmms_eval_grounding.benchmarks import box3d_replies, mmscan, mmscan_candidates
from lmms_eval_grounding.benchmarks.host import Reduced
from lmms_eval_grounding.conformance import own_answer, passes
from lmms_eval_grounding.corpus import load_cases
from lmms_eval_grounding.metrics import mmscan as metrics
from lmms_eval_grounding.metrics import mmscan_record, samples
from lmms_eval_grounding.parsing import boxes3d as parsing
from lmms_eval_grounding.parsing import placement3d

TASKS = {"mmscan": mmscan, "mmscan_candidates": mmscan_candidates}
Patch = pytest.MonkeyPatch
Fault = Callable[[Patch, ModuleType], None]


def refusals(task: str) -> list[str]:
    cases = [case for case in load_cases("tasks/mmscan") if case.spec == f"tasks/{task}"]
    return [str(case) for case in cases if not passes(case, own_answer)]


@pytest.mark.parametrize("task", TASKS)
def test_the_right_implementation_is_not_refused(task: str) -> None:
    assert refusals(task) == []


# What is done with a parsed reply


def with_parsed(change: Callable[[Any], Any]) -> Fault:
    def fault(patch: Patch, task: ModuleType) -> None:
        right = box3d_replies.parse_boxes3d
        patch.setattr(box3d_replies, "parse_boxes3d", lambda *args: change(right(*args)))

    return fault


def with_record(change: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]) -> Fault:
    """Return a fault that changes a record, which is passed with its document."""

    def fault(patch: Patch, task: ModuleType) -> None:
        right = task.score

        def score(doc: Any, *args: Any, **options: Any) -> Any:
            record, reading = right(doc, *args, **options)
            return change(record, doc), reading

        patch.setattr(task, "score", score)

    return fault


def _reversed(parsed: Any) -> Any:
    scores = parsed.scores and parsed.scores[::-1]
    return replace(parsed, boxes=parsed.boxes[::-1], scores=scores)


def _first_only(parsed: Any) -> Any:
    return replace(parsed, boxes=parsed.boxes[:1], scores=parsed.scores and parsed.scores[:1])


def _skipped(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "n_targets": 0, "scores": [], "best_targets": [], "best_ious": []}


def _by_iou(record: dict[str, Any], doc: Any) -> dict[str, Any]:
    """Rank predictions with the targets in sight."""
    order = sorted(range(len(record["best_ious"])), key=lambda i: -record["best_ious"][i])
    columns = ("best_targets", "best_ious")
    return {**record, **{name: [record[name][i] for i in order] for name in columns}}


def _group_per_sub_class(record: dict[str, Any], doc: Any) -> dict[str, Any]:
    return {**record, "group": doc["sub_class"]}


FAULTS_OF_READING: dict[str, Fault] = {
    "the order of the answer is lost": with_parsed(_reversed),
    "the first answer only": with_parsed(_first_only),
    "scores are ignored": with_parsed(lambda parsed: replace(parsed, scores=None)),
    "scores rank ascending": with_parsed(
        lambda parsed: replace(parsed, scores=parsed.scores and tuple(-s for s in parsed.scores))
    ),
    "failed requests are skipped": with_record(
        lambda record, doc: _skipped(record) if record["status"] == "unparseable" else record
    ),
    "malformed replies are skipped": with_record(
        lambda record, doc: _skipped(record) if record["status"] == "malformed" else record
    ),
    "replies of no target are skipped": with_record(
        lambda record, doc: _skipped(record) if record["status"] == "no_target" else record
    ),
    "malformed is unparseable": with_record(
        lambda record, doc: {
            **record,
            "status": record["status"].replace("malformed", "unparseable"),
        }
    ),
    "samples without targets are perfect": with_record(
        lambda record, doc: record if record["n_targets"] else {**record, "n_targets": 1}
    ),
    "targets beyond those hit are dropped": with_record(
        lambda record, doc: {**record, "n_targets": len(set(record["best_targets"])) or 1}
    ),
    "the first target only": with_record(
        lambda record, doc: {**record, "n_targets": min(record["n_targets"], 1)}
    ),
    "predictions are ranked with the targets in sight": with_record(_by_iou),
    "a group for each sub-class": with_record(_group_per_sub_class),
    "one group for all": with_record(lambda record, doc: {**record, "group": "all"}),
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("fault", FAULTS_OF_READING)
def test_a_fault_of_reading_is_refused(task: str, fault: str, monkeypatch: Patch) -> None:
    FAULTS_OF_READING[fault](monkeypatch, TASKS[task])
    assert refusals(task)


# What is measured


def hits_of(ranks: Callable[[dict[str, Any], float], list[int]]) -> Fault:
    return lambda patch, task: patch.setattr(metrics, "_hit_ranks", ranks)


def _every_match(record: dict[str, Any], threshold: float) -> list[int]:
    """Count predictions that match, not targets."""
    found = [rank for rank, iou in enumerate(record["best_ious"], 1) if iou >= threshold]
    return found[: record["n_targets"]]


def _strict(record: dict[str, Any], threshold: float) -> list[int]:
    right = metrics.hit_ranks
    return right(record["best_targets"], record["best_ious"], float(np.nextafter(threshold, 1)))


def top_k_over_the_union(patch: Patch, task: ModuleType) -> None:
    """Give the share of targets in the top k, whatever i is."""
    for k in box3d_replies.RANKS:
        for t in box3d_replies.THRESHOLDS:

            def share(record: dict[str, Any], k: int = k, t: float = t) -> float:
                found = [rank for rank in metrics._hit_ranks(record, t) if rank <= k]
                return metrics.ratio(len(found), record["n_targets"])

            item = partial(samples.sample_value, value=share)
            patch.setitem(task.METRICS, f"gTop-{k}@{t}", Reduced(item, samples.mean_value))


def repeated_samples_count_again(patch: Patch, task: ModuleType) -> None:
    patch.setattr(samples, "unique_samples", list)
    patch.setattr(metrics, "unique_samples", list)


def empty_samples_leave_the_pool(patch: Patch, task: ModuleType) -> None:
    """AP_box as the devkit has it: the targets of a sample without predictions are not there."""
    for t in box3d_replies.THRESHOLDS:
        right = task.METRICS[f"AP_box@{t}"]
        patch.setitem(
            task.METRICS,
            f"AP_box@{t}",
            lambda records, right=right: right([r for r in records if r["scores"]]),
        )


def exchanged(first: str, second: str) -> Fault:
    """Return a fault that reports one metric under the name of another, and the other way round."""

    def fault(patch: Patch, task: ModuleType) -> None:
        one, other = task.METRICS[first], task.METRICS[second]
        patch.setitem(task.METRICS, first, other)
        patch.setitem(task.METRICS, second, one)

    return fault


def percent(patch: Patch, task: ModuleType) -> None:
    right = task.METRICS["AR_box@0.25"]
    patch.setitem(
        task.METRICS, "AR_box@0.25", Reduced(right.item, lambda items: 100 * right.function(items))
    )


def undefined_is_zero(patch: Patch, task: ModuleType) -> None:
    patch.setattr(samples, "ratio", lambda a, b: a / b if b else 0.0)
    patch.setattr(metrics, "ratio", lambda a, b: a / b if b else 0.0)


def optimal_matching(patch: Patch, task: ModuleType) -> None:
    """Let a prediction whose best target is taken turn to its next."""
    right = mmscan_record.ranked_record

    def ranked_record(*args: Any, ious: Any, **options: Any) -> dict[str, Any]:
        record = right(*args, ious=ious, **options)
        rows, taken = np.asarray(ious, dtype=float), set()
        if len(rows) != len(record["scores"]):
            return record
        for place, row in enumerate(rows):  # in the order of the answer: good for what has no score
            free = [t for t in np.argsort(-row) if t not in taken and row[t] >= 0.25]
            if free:
                taken.add(free[0])
                record["best_targets"][place] = int(free[0])
                record["best_ious"][place] = float(row[free[0]])
        return record

    patch.setattr(mmscan_record, "ranked_record", ranked_record)


METRIC_PAIRS = [
    *((f"gTop-{k}@0.25", f"AR@{t}") for k, t in ((1, 0.25), (3, 0.5))),
    ("gTop-1@0.25", "gTop-3@0.25"),
    ("gTop-1@0.5", "gTop-1@0.25"),
    ("AP_sample@0.25", "AR@0.25"),
    ("AP_box@0.5", "AP_box@0.25"),
    ("AR@0.5", "AR@0.25"),
    ("AR_box@0.5", "AR_box@0.25"),
    ("parse_malformed", "parse_unparseable"),
    ("parse_no_target", "parse_malformed"),
]
FAULTS_OF_MEASURING: dict[str, Fault] = {
    "predictions that match are counted": hits_of(_every_match),
    "thresholds are strict": hits_of(_strict),
    "top k over the union": top_k_over_the_union,
    "repeated samples count again": repeated_samples_count_again,
    "samples without predictions leave the pool": empty_samples_leave_the_pool,
    "optimal matching": optimal_matching,
    "percent for a fraction": percent,
    "undefined is zero": undefined_is_zero,
    **{
        f"{first} and {second} are exchanged": exchanged(first, second)
        for first, second in METRIC_PAIRS
    },
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("fault", FAULTS_OF_MEASURING)
def test_a_fault_of_measuring_is_refused(task: str, fault: str, monkeypatch: Patch) -> None:
    FAULTS_OF_MEASURING[fault](monkeypatch, TASKS[task])
    assert refusals(task)


# Boxes in frames, and candidates


def camera_box_as_scene_box(patch: Patch) -> None:
    patch.setattr(placement3d, "view_of", lambda *args: placement3d.SCENE_VIEW)


def _viewed(number: Callable[[int | None], int | None]) -> Callable[[Patch], None]:
    def fault(patch: Patch) -> None:
        right = placement3d.view_of
        patch.setattr(placement3d, "view_of", lambda given, *rest: right(number(given), *rest))

    return fault


def extrinsic_for_pose(patch: Patch) -> None:
    """Take the matrix from scene to camera for that from camera to scene."""
    right = placement3d.view_of

    def view_of(*args: Any) -> Any:
        view = right(*args)
        return view and view._replace(pose=np.linalg.inv(view.pose))

    patch.setattr(placement3d, "view_of", view_of)


def _convention(**fields: Any) -> Callable[[Patch], None]:
    """Return a fault that reads all profiles with some fields of another one."""

    def fault(patch: Patch) -> None:
        right = placement3d.scene_boxes
        patch.setattr(
            parsing,
            "scene_boxes",
            lambda rows, convention, scene: right(rows, replace(convention, **fields), scene),
        )

    return fault


def axis_aligned_iou(patch: Patch) -> None:
    right = mmscan_record.iou_matrix

    def unturned(boxes: Any) -> Any:
        rows = np.asarray(boxes, dtype=float).reshape(-1, 9).copy()
        rows[:, 6:] = 0
        return rows

    patch.setattr(mmscan_record, "iou_matrix", lambda a, b: right(unturned(a), unturned(b)))


def _resized(change: Callable[[Any], None]) -> Callable[[Patch], None]:
    """Return a fault that changes every predicted box."""

    def fault(patch: Patch) -> None:
        right = mmscan_record.iou_matrix

        def iou_matrix(preds: Any, targets: Any) -> Any:
            rows = np.asarray(preds, dtype=float).reshape(-1, 9).copy()
            change(rows)
            return right(rows, targets)

        patch.setattr(mmscan_record, "iou_matrix", iou_matrix)

    return fault


def _halved(rows: Any) -> None:
    rows[:, 3:6] *= 2


def _on_its_bottom(rows: Any) -> None:
    rows[:, 2] += rows[:, 5] / 2


FAULTS_OF_BOXES: dict[str, Callable[[Patch], None]] = {
    "a camera's box is scored as one of the scene": camera_box_as_scene_box,
    "the frame's number is ignored": _viewed(lambda number: 0),
    "frames are counted from 1": _viewed(lambda number: number and number - 1),
    "a frame that is not named is the first": _viewed(lambda number: number or 0),
    "scene to camera": extrinsic_for_pose,
    "radians in all profiles": _convention(angle="radian"),
    "degrees in all profiles": _convention(angle="degree"),
    "ZYX in all profiles": _convention(rotation="ZYX"),
    "the camera's axes in all profiles": _convention(axes=("x", "y", "z")),
    "no grid": _convention(grid=None),
    "axis-aligned IoU": axis_aligned_iou,
    "sizes are halves": _resized(_halved),
    "the centre is the bottom's": _resized(_on_its_bottom),
}


@pytest.mark.parametrize("fault", FAULTS_OF_BOXES)
def test_a_fault_of_boxes_is_refused(fault: str, monkeypatch: Patch) -> None:
    FAULTS_OF_BOXES[fault](monkeypatch)
    assert refusals("mmscan")


def _placed_by(box_of: Callable[[float, Any], Any]) -> Callable[[Patch], None]:
    def fault(patch: Patch) -> None:
        right = placement3d.candidate_boxes

        def candidate_boxes(rows: Any, scene: Any) -> Any:
            placed = []
            for row, place in zip(rows, right(rows, scene), strict=True):
                box = box_of(row.numbers[0], scene.candidates) if row.numbers else None
                placed.append(place if box is None else place._replace(box=tuple(box), fault=None))
            return placed

        patch.setattr(parsing, "candidate_boxes", candidate_boxes)

    return fault


def _at_rank(number: float, candidates: Any) -> Any:
    boxes = list(candidates.values())
    return boxes[int(number)] if number < len(boxes) else None


def _in_order_of_ids(number: float, candidates: Any) -> Any:
    ids = sorted(candidates)
    return candidates[ids[int(number)]] if number < len(ids) else None


def _any_object(number: float, candidates: Any) -> Any:
    return candidates.get(int(number), next(iter(candidates.values())))


FAULTS_OF_CANDIDATES: dict[str, Callable[[Patch], None]] = {
    "ids are places in the list": _placed_by(_at_rank),
    "ids are places among sorted ids": _placed_by(_in_order_of_ids),
    "an unknown id is the first object": _placed_by(_any_object),
}


@pytest.mark.parametrize("fault", FAULTS_OF_CANDIDATES)
def test_a_fault_of_candidates_is_refused(fault: str, monkeypatch: Patch) -> None:
    FAULTS_OF_CANDIDATES[fault](monkeypatch)
    assert refusals("mmscan_candidates")
