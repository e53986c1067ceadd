"""A stand-in for SAM 3: lmms-eval's own model `sam3` with known masks in the place of weights.

The network and its processor are replaced. What reads a document, catches errors and writes masks,
boxes and scores as JSON is the host's code.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from mask_documents import Pixels
from PIL import Image
from transformers import BatchFeature

Instances = Sequence[tuple[Pixels, float]]
"""The objects that an expression finds: their masks, at the size of the image, and scores."""

Segment = Callable[[Image.Image, str], Instances]


def put_in_place(segment: Segment, patch: pytest.MonkeyPatch) -> None:
    """Make `--model sam3` answer with what ``segment`` finds in an image; it may raise."""
    from lmms_eval.models.simple import sam3

    patch.setattr(sam3, "HAS_SAM3", True)
    patch.setattr(sam3, "Sam3Processor", _Processor(segment), raising=False)
    patch.setattr(sam3, "Sam3Model", _Network(), raising=False)


class _Processor:
    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._found: Instances = ()

    def from_pretrained(self, name: str) -> "_Processor":
        return self

    def __call__(self, images: Image.Image, text: str, return_tensors: str) -> BatchFeature:
        self._found = self._segment(images, text)
        return BatchFeature({"original_sizes": torch.tensor([[images.height, images.width]])})

    def post_process_instance_segmentation(
        self, outputs: Any, threshold: float, mask_threshold: float, target_sizes: list[list[int]]
    ) -> list[dict[str, Any]]:
        kept = [(mask, score) for mask, score in self._found if score > threshold]
        assert all(list(mask.shape) == target_sizes[0] for mask, _ in kept)
        return [
            {
                "masks": torch.tensor(np.array([mask for mask, _ in kept])),
                "boxes": torch.tensor([_bounds(mask) for mask, _ in kept]),
                "scores": torch.tensor([score for _, score in kept]),
            }
        ]


class _Network:
    def from_pretrained(self, name: str) -> "_Network":
        return self

    def to(self, device: Any) -> "_Network":
        return self

    def eval(self) -> "_Network":
        return self

    def __call__(self, **inputs: Any) -> None:
        return None


def _bounds(mask: Pixels) -> list[float]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return [float(n) for n in (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)]
