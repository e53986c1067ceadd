"""One benchmark as the host wants it: prompts out, replies in, one record per sample and metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..contract import check
from ..parsing.profile import Profile
from .conventions import declare_profile, declared_profile, prompt_text
from .host import Aggregation, Refusal, doc_image, first_reply, host_metric_list, items_of

Doc = Mapping[str, Any]
Score = Callable[[Doc, str | None, Profile], tuple[dict[str, Any], dict[str, Any]]]


@dataclass(frozen=True)
class GroundingTask:
    """The functions that a task YAML points to, for one benchmark and one set of metrics.

    Attributes
    ----------
    benchmark
        The benchmark's name: of its folder in tasks/, of its schemas in spec/records/.
    score
        From a document, a reply and a profile to the sample's record and to how it was read.
    metrics
        Reported name to aggregation over records.
    read_target
        Raises `ValueError` for a document whose target cannot be used.
    visuals
        From a document to the images that are shown; by default its column ``image``.
    fields
        From a document to what fills the marks of a prompt; by default its expression.
    document
        The schema of a document; by default that of the benchmark.
    """

    benchmark: str
    score: Score
    metrics: Mapping[str, Aggregation]
    read_target: Callable[[Doc], Any] = len
    visuals: Callable[[Doc], list[Any]] = lambda doc: [doc_image(doc["image"])]
    fields: Callable[[Doc], Mapping[str, str]] = lambda doc: {"expression": doc["expression"]}
    document: str = ""

    def doc_to_visual(self, doc: Doc) -> list[Any]:
        """Return what is shown with the prompt, as RGB PIL images."""
        return self.visuals(doc)

    def doc_to_text(
        self, doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
    ) -> str:
        """Return the prompt, in the profile of the run.

        The host asks for every prompt before it asks a model for anything, so this is where a
        broken document ends the run, not after hours of answers.
        """
        self._check_document(doc)
        profile = declare_profile(self.benchmark, lmms_eval_specific_kwargs)
        return prompt_text(self.benchmark, profile, **self.fields(doc))

    def process_results(self, doc: Doc, results: Sequence[str | None]) -> dict[str, Any]:
        """Return what one sample gives to each metric, and under ``grounding`` how it was read.

        Never raises for a reply: a defect on our side is logged and scores 0. Every metric gets the
        record, or the part that it needs, so that each can be recomputed from the sample log alone.
        """
        profile = declared_profile(self.benchmark)
        record, reading = self.score(doc, first_reply(results), profile)
        return {**items_of(record, self.metrics), "grounding": reading}

    @property
    def metric_list(self) -> list[dict[str, Any]]:
        """The ``metric_list`` of the task."""
        return host_metric_list(self.metrics)

    def _check_document(self, doc: Doc) -> None:
        columns = {name: value for name, value in doc.items() if name != "image"}
        try:
            check(columns, self.document or f"records/{self.benchmark}_document.json")
            self.read_target(doc)
        except ValueError as fault:
            raise Refusal(
                f"document {doc.get('id')!r} of {self.benchmark} is broken ({fault}); prepare the "
                f"data again, or see `lmms-eval-grounding prepare {self.benchmark} --check`"
            ) from None
