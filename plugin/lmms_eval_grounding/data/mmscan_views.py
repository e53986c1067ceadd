"""Which frames of a scan to show."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

SHOWN_FRAMES = 8


def spread_views(poses: ArrayLike, count: int = SHOWN_FRAMES) -> list[int]:
    """Return frames that see a scan from different places and in different directions.

    Two views are as far apart as the metres between their cameras plus the radians between their
    viewing directions. The first frame is taken, then again and again the one whose nearest taken
    view is farthest away; of equally far ones the first. Targets play no part.

    Parameters
    ----------
    poses : (F, 4, 4)
        Camera to scene, rigid, metres; the camera looks along its z axis.
    count
        How many to take.

    Returns
    -------
    list of int
        Numbers of frames, ascending; all of them where there are no more than ``count``.
    """
    poses = np.asarray(poses, dtype=np.float64).reshape(-1, 4, 4)
    places, directions = poses[:, :3, 3], poses[:, :3, 2]
    taken = list(range(min(count, len(poses), 1)))
    nearest = np.full(len(poses), np.inf)
    while len(taken) < min(count, len(poses)):
        last = taken[-1]
        # The angle from both the sine and the cosine is exact for small angles too.
        sines = np.linalg.norm(np.cross(directions, directions[last]), axis=1)
        angles = np.arctan2(sines, directions @ directions[last])
        distances = np.linalg.norm(places - places[last], axis=1) + angles
        nearest = np.minimum(nearest, distances)
        nearest[taken] = -1.0
        taken.append(int(np.argmax(nearest)))
    return sorted(taken)
