"""Measure the 3D box IoU side by side with two other exact methods, on a load like MMScan's.

Every sample has 100 predictions and 1 to 6 targets, and about one pair in ten overlaps. All
methods see the same pairs; the slower ones are timed on as many samples as fit --slow-seconds,
and the values of all of them are compared. Times are CPU times of one process.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection

from lmms_eval_grounding.geometry.boxes3d import iou_matrix, rotation_from_euler

try:
    import manifold3d
except ImportError:
    manifold3d = None

MMSCAN_VAL_SAMPLES = 217_002
Sample = tuple[np.ndarray, np.ndarray]


def random_boxes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return furniture-sized boxes in a room of 8 x 8 x 3 m, turned mostly about the vertical."""
    centres = rng.uniform([-4, -4, 0], [4, 4, 3], (n, 3))
    sizes = np.exp(rng.uniform(np.log(0.1), np.log(3), (n, 3)))
    return np.hstack([centres, sizes, rng.uniform(-np.pi, np.pi, (n, 3)) * [1, 0.1, 0.1]])


def random_sample(rng: np.random.Generator) -> Sample:
    """Return 100 predictions, two in five of them a disturbed target, and 1 to 6 targets."""
    targets = random_boxes(rng, int(rng.integers(1, 7)))
    preds = random_boxes(rng, 100)
    guesses = targets[rng.integers(0, len(targets), 100)]
    guesses = guesses + rng.normal(0, 1, (100, 9)) * [0.2, 0.2, 0.2, 0, 0, 0, 0.3, 0.05, 0.05]
    guesses[:, 3:6] *= np.exp(rng.normal(0, 0.2, (100, 3)))
    return np.where(rng.random((100, 1)) < 0.4, guesses, preds), targets


def iou_of_common_volume(common: float, pred: np.ndarray, target: np.ndarray) -> float:
    return common / (np.prod(pred[3:6]) + np.prod(target[3:6]) - common)


def halfspaces(box: np.ndarray) -> np.ndarray:
    normals = np.vstack([rotation_from_euler(box[6:], "ZXY").T] * 2) * np.repeat([[1], [-1]], 3, 0)
    return np.column_stack([normals, -normals @ box[:3] - np.tile(box[3:6] / 2, 2)])


def halfspace_matrix(preds: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return IoUs by scipy: a linear program for an inner point, then half-spaces and a hull."""
    result = np.zeros((len(preds), len(targets)))
    target_planes = [halfspaces(target) for target in targets]
    for i, pred in enumerate(preds):
        planes = halfspaces(pred)
        for j, target in enumerate(targets):
            if np.linalg.norm(pred[:3] - target[:3]) > np.linalg.norm([pred[3:6], target[3:6]]):
                continue
            both = np.vstack([planes, target_planes[j]])
            slack = np.column_stack([both[:, :3], np.ones(12)])
            inner = linprog([0, 0, 0, -1], slack, -both[:, 3], bounds=[(None, None)] * 3 + [(0, 9)])
            if inner.success and inner.x[3] > 1e-9:
                body = HalfspaceIntersection(both, inner.x[:3]).intersections
                result[i, j] = iou_of_common_volume(ConvexHull(body).volume, pred, target)
    return result


def manifold_matrix(preds: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return IoUs by manifold3d's mesh booleans."""

    def solid(box: np.ndarray) -> manifold3d.Manifold:
        affine = np.column_stack([rotation_from_euler(box[6:], "ZXY"), box[:3]])
        return manifold3d.Manifold.cube(box[3:6].tolist(), True).transform(affine)

    pred_solids, target_solids = map(solid, preds), [solid(target) for target in targets]
    return np.array(
        [
            [
                iou_of_common_volume((body ^ other).volume(), pred, target)
                for other, target in zip(target_solids, targets, strict=True)
            ]
            for body, pred in zip(pred_solids, preds, strict=True)
        ]
    )


def measure(
    method: Callable[[np.ndarray, np.ndarray], np.ndarray], samples: list[Sample], limit: float
) -> tuple[float, list[np.ndarray]]:
    """Return pairs per second of CPU time, and the matrices made before the limit was reached."""
    start, results = time.process_time(), []
    for preds, targets in samples:
        results.append(method(preds, targets))
        if time.process_time() - start > limit:
            break
    elapsed = time.process_time() - start
    return sum(result.size for result in results) / elapsed, results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python scripts/bench_boxes3d.py --samples 200 --slow-seconds 5",
    )
    parser.add_argument(
        "--samples", type=int, default=2000, help="samples of 100 predictions (default %(default)s)"
    )
    parser.add_argument(
        "--slow-seconds",
        type=float,
        default=20,
        help="stop each of the other methods after this much CPU time (default %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the load (default %(default)s)")
    arguments = parser.parse_args()

    rng = np.random.default_rng(arguments.seed)
    samples = [random_sample(rng) for _ in range(arguments.samples)]
    iou_matrix(*samples[0])
    rate, ours = measure(iou_matrix, samples, np.inf)
    pairs = sum(result.size for result in ours)
    overlapping = sum(int((result > 0).sum()) for result in ours) / pairs
    print(f"load: {len(samples)} samples, {pairs} pairs, {overlapping:.1%} of them overlap")
    print(f"{'method':<28}{'pairs/s':>10}{'ours is':>12}{'max |difference|':>20}")
    print(f"{'iou_matrix':<28}{rate:>10,.0f}")

    others = {"scipy half-spaces": halfspace_matrix}
    if manifold3d is None:
        print("manifold3d is not installed: not measured")
    else:
        others["manifold3d"] = manifold_matrix
    for name, method in others.items():
        other_rate, results = measure(method, samples, arguments.slow_seconds)
        worst = max(
            np.abs(theirs - mine).max() for theirs, mine in zip(results, ours, strict=False)
        )
        label = f"{name} ({len(results)} samples)"
        print(f"{label:<28}{other_rate:>10,.0f}{rate / other_rate:>10.0f} x{worst:>20.1e}")

    seconds = MMSCAN_VAL_SAMPLES * pairs / len(samples) / rate
    print(f"MMScan val, {MMSCAN_VAL_SAMPLES:,} samples on one core: {seconds / 60:.1f} minutes")

    every_target = np.vstack([targets for _, targets in samples])[:500]
    tracemalloc.start()
    size = iou_matrix(every_target, every_target).size
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(f"peak memory of one call on {size:,} pairs: {peak:.1f} MB, result {8e-6 * size:.1f} MB")


if __name__ == "__main__":
    main()
