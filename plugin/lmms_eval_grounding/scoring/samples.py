"""From targets and predictions to records and numbers, without the host."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

from ..benchmarks.conventions import DEFAULT_PROFILE
from ..benchmarks.host import Aggregation, items_of
from ..metrics.samples import Record
from ..parsing.profile import Profile, load_profile
from .given import GIVEN
from .kinds import KINDS
from .predictions import Prediction, Predictions
from .targets import Target


@dataclass(frozen=True)
class Scored:
    """The records of a benchmark's samples, and what was not as it should be.

    Attributes
    ----------
    benchmark
        A key of `KINDS`.
    options
        What the numbers depend on beside predictions and targets.
    records
        One record a sample, those of `missing` included.
    missing
        The ids of samples without a prediction, which have the status ``unparseable``.
    unknown
        The ids of predictions of no sample, which have no record.
    repeated
        How many predictions were given again with the same content.
    profiles
        The names of the profiles that replies were read with.
    """

    benchmark: str
    options: Mapping[str, Any]
    records: Sequence[Record]
    missing: Sequence[str] = ()
    unknown: Sequence[str] = ()
    repeated: int = 0
    profiles: Sequence[str] = ()

    @property
    def metrics(self) -> Mapping[str, Aggregation]:
        """The metrics by reported name."""
        module = _module(self.benchmark)
        chosen = module.STRICT_METRICS if self.options.get("strict") else module.METRICS
        metrics: Mapping[str, Aggregation] = chosen
        return metrics


def metric_items(records: Iterable[Record], name: str, metric: Aggregation) -> list[Record]:
    """Return what a metric is given of each record, as in a run of the host."""
    return [items_of(record, {name: metric})[name] for record in records]


def score_predictions(
    benchmark: str,
    targets: Iterable[Target],
    predictions: Predictions,
    *,
    profile: str | None = None,
    only_predicted: bool = False,
    strict: bool = False,
    min_pixels: int | None = None,
) -> Scored:
    """Return the records of all samples; targets and predictions pass one by one.

    Parameters
    ----------
    benchmark
        A key of `KINDS`.
    targets, predictions
        See the modules of these names.
    profile
        How replies are read; None: as the log of a samples file says, else ``prompt``.
    only_predicted
        Leave samples without a prediction out; else they count as ``unparseable``.
    strict
        Of rsvg: IoU > t in place of IoU >= t.
    min_pixels
        Of gres: fewer are an empty mask; None: as the log says, else as in a run.

    Raises
    ------
    ValueError
        For a target or a prediction that cannot be used, by file and line; if none of the
        predictions is for any of the targets.
    """
    scorer = _Scorer(benchmark, profile, min_pixels)
    records, missing = [], []
    for position, target in enumerate(targets):
        id = target.doc["id"]
        prediction = predictions.find(id, position)
        if prediction is None:
            if only_predicted:
                continue
            missing.append(id)
        try:
            record = scorer.record(target.doc, prediction)
        except _PredictionError as fault:
            assert prediction is not None
            raise predictions.fault(prediction, fault) from None
        except (ValueError, OverflowError) as fault:  # a whole number may be too large a float
            raise ValueError(f"{target.place}: {fault}") from None
        records.append(record)
    unknown = predictions.unknown()
    if len(missing) == len(records):
        raise ValueError(
            f"{predictions.path}: none of the {len(predictions)} predictions is for a target; "
            f"the first ids are {unknown[:3]} and {missing[:3]}"
        )
    return Scored(
        benchmark,
        scorer.options(strict),
        records,
        sorted(missing),
        unknown,
        predictions.repeated,
        sorted(scorer.profiles),
    )


class _PredictionError(ValueError):
    """A prediction that cannot be used."""


@dataclass
class _Scorer:
    """Makes records, and notes how: with which profiles and, for gres, which ``min_pixels``."""

    benchmark: str
    profile: str | None
    min_pixels: int | None
    profiles: set[str] = field(default_factory=set)
    used_min_pixels: set[int] = field(default_factory=set)

    def record(self, doc: Mapping[str, Any], prediction: Prediction | None) -> Record:
        """Return the record of a sample; `_PredictionError` where its prediction is at fault."""
        kind, module = KINDS[self.benchmark], _module(self.benchmark)
        fields = prediction.fields if prediction else {}
        options = self._options(fields) if self.benchmark == "gres" else {}
        if prediction and prediction.form == "reply":
            with _blaming_the_prediction():
                named = self.profile or fields.get("profile") or DEFAULT_PROFILE
                profile = _usable_profile(named, self.benchmark)
            self.profiles.add(profile.name)
            record: Record = module.score(doc, fields["reply"], profile, **options)[0]
            return record
        parsed: Any = kind.parsed("unparseable")
        if prediction:
            with _blaming_the_prediction():
                parsed = GIVEN[kind.form](fields, doc)
        record = module.record_of(doc, parsed, **options)
        return record

    def _options(self, fields: Mapping[str, Any]) -> dict[str, int]:
        given = self.min_pixels or fields.get("min_pixels")
        least: int = given or _module(self.benchmark).declared_min_pixels()
        if fields:
            self.used_min_pixels.add(least)
        return {"min_pixels": least}

    def options(self, strict: bool) -> dict[str, Any]:
        """Return what the numbers depend on; `ValueError` if the records do not agree on it."""
        if self.benchmark == "rsvg":
            return {"strict": strict}
        if len(self.used_min_pixels) > 1:
            used = sorted(self.used_min_pixels)
            raise ValueError(f"the log was scored with min_pixels of {used}: choose one")
        return {"min_pixels": min(self.used_min_pixels)} if self.used_min_pixels else {}


@contextmanager
def _blaming_the_prediction() -> Iterator[None]:
    try:
        yield
    except (ValueError, OverflowError) as fault:
        raise _PredictionError(fault) from None


@cache
def _usable_profile(name: str, benchmark: str) -> Profile:
    profile = load_profile(name)
    KINDS[benchmark].convention(profile)
    return profile


def _module(benchmark: str) -> ModuleType:
    """Return the module of a benchmark, which is imported when it is asked for."""
    return importlib.import_module(f"lmms_eval_grounding.benchmarks.{benchmark}")
