"""Models of our own for lmms-eval: an oracle, and the replay of a finished run.

Both need no weights and no accelerator. They answer the tasks of this package only. A wrong model
argument is a `Refusal`.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from datasets import Dataset, Image, List
from lmms_eval.api.instance import Instance
from lmms_eval.api.model import lmms
from tqdm import tqdm

from .benchmarks.conventions import VARIABLE, declared_profile, named_profile
from .benchmarks.host import Refusal
from .parsing.profile import ProfileError
from .samples_log import LoggedReply, logged_reply

BENCHMARKS = ("rsvg", "gres", "refsegrs", "mmscan_candidates", "mmscan")


class _Answering(lmms):  # type: ignore[misc]  # the host is not typed
    """What both models share: requests in order, documents without images, several processes."""

    def __init__(self, **host_arguments: Any) -> None:
        super().__init__()
        unknown = set(host_arguments) - {"batch_size", "max_batch_size", "device"}
        if unknown:
            raise Refusal(f"model_args: {type(self).__name__} has none named {sorted(unknown)}")
        self.accelerator = Accelerator()
        self.device = self.accelerator.device
        self._rank = self.accelerator.process_index
        self._world_size = self.accelerator.num_processes
        self._documents: dict[tuple[str, str], Dataset] = {}

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """Return one reply per request."""
        bar = tqdm(requests, desc="Answering", disable=self.rank != 0)
        return [self._reply(request.args[-2], *self._document(request)) for request in bar]

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        """Refuse: the tasks of this package have one round."""
        raise NotImplementedError(f"{type(self).__name__} answers single-round tasks only")

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Refuse: the tasks of this package generate text."""
        raise NotImplementedError(f"{type(self).__name__} generates text only")

    def _document(self, request: Instance) -> tuple[int, dict[str, Any]]:
        """Return a request's document id and its document without the images."""
        *_, doc_id, task, split = request.args
        if (task, split) not in self._documents:
            documents = self.task_dict[task][split]
            pictures = [name for name, kind in documents.features.items() if _is_image(kind)]
            self._documents[task, split] = documents.remove_columns(pictures)
        return doc_id, self._documents[task, split][doc_id]

    def _reply(self, task: str, doc_id: int, doc: dict[str, Any]) -> str:
        raise NotImplementedError


class GroundingOracle(_Answering):
    """A model that knows the target: every metric of a task is then at its best.

    Model arguments: ``profile`` writes in that profile's syntax (default: the one that the replies
    are read with, so that a different one shows what a wrong convention costs); ``error`` makes
    every reply wrong in one way: ``empty``, ``prose``, ``truncated``, ``failed-request``,
    ``wrong-space`` or ``shifted``; ``every=N`` makes only every N-th reply wrong, from the first.
    """

    ERRORS = ("empty", "prose", "truncated", "failed-request", "wrong-space", "shifted")

    def __init__(
        self, profile: str | None = None, error: str | None = None, every: int = 1, **host: Any
    ) -> None:
        super().__init__(**host)
        if error is not None and error not in self.ERRORS:
            raise Refusal(f"error={error}: choose one of: {', '.join(self.ERRORS)}")
        if not isinstance(every, int) or every < 1:
            raise Refusal(f"every={every}: give a positive integer")
        self._profile = named_profile(profile, "model_args") if profile else None
        self._error, self._every = error, every

    def _reply(self, task: str, doc_id: int, doc: dict[str, Any]) -> str:
        name = _benchmark_of(task)
        benchmark = importlib.import_module(f"lmms_eval_grounding.benchmarks.{name}")
        profile = self._profile or declared_profile(name)
        error = self._error if doc_id % self._every == 0 else None
        if error == "empty":
            return ""
        if error == "prose":
            return "I can see the scene clearly, and what you describe is somewhere in the middle."
        try:
            reply: str = benchmark.oracle_reply(doc, profile, error)
        except ProfileError as fault:  # it writes other answers than this task asks for
            raise Refusal(f"model_args: {fault}") from None
        if error == "failed-request":
            return f"[LMMS_EVAL_REQUEST_FAILED after 2 retries] Error code: 500 - {reply}"
        return reply


class GroundingReplay(_Answering):
    """A model that answers from the samples file of a finished run, so that it can be scored again.

    Model arguments: ``samples`` is a ``*_samples_<task>.jsonl`` file that the host wrote with
    ``--log_samples``, or a folder that holds such files at any depth (the newest of the task
    counts). Replies are found by the sample's id, else by its position.
    ``missing=empty`` answers nothing where the file has no reply; without it that is an error.
    The replies are read with the profile of this run, which must be the logged one unless
    ``$GROUNDING_PROFILE`` names another on purpose.
    """

    def __init__(self, samples: str = "", missing: str = "error", **host: Any) -> None:
        super().__init__(**host)
        if missing not in ("error", "empty"):
            raise Refusal(f"missing={missing}: choose error or empty")
        self._samples, self._missing = Path(samples).expanduser(), missing
        if not samples or not self._samples.exists():
            raise Refusal(
                f"samples={samples}: give a *_samples_<task>.jsonl file, or a folder of them"
            )
        self._replies: dict[str, dict[str | int, str]] = {}

    def _reply(self, task: str, doc_id: int, doc: dict[str, Any]) -> str:
        if task not in self._replies:
            logged = list(_logged_replies(_samples_file(self._samples, task)))
            profiles = {entry.reading.get("profile") for entry in logged} - {None}
            self._check_profile(task, profiles)
            self._replies[task] = {entry.key: entry.reply for entry in logged}
        replies = self._replies[task]
        reply = replies.get(str(doc.get("id")), replies.get(doc_id))
        if reply is None and self._missing == "error":
            raise Refusal(
                f"{self._samples}: no reply to sample {doc.get('id')} of {task} (document {doc_id})"
                "; run as many samples as that run did (--limit), or pass missing=empty"
            )
        return reply or ""

    def _check_profile(self, task: str, logged: set[Any]) -> None:
        """Refuse to read replies with another profile than they were written for, unasked."""
        used = declared_profile(_benchmark_of(task)).name
        if logged - {used} and not os.environ.get(VARIABLE):
            raise Refusal(
                f"{self._samples}: the replies to {task} were read with profile "
                f"{' and '.join(sorted(logged))}, this run would read them with {used}; set "
                f"{VARIABLE} to the profile that you want"
            )


def _is_image(kind: Any) -> bool:
    return isinstance(kind, Image) or (isinstance(kind, List) and isinstance(kind.feature, Image))


def _benchmark_of(task: str) -> str:
    for name in BENCHMARKS:
        if task == name or task.startswith(f"{name}_"):
            return name
    raise Refusal(f"task {task}: the oracle answers {', '.join(BENCHMARKS)} and their splits only")


def _samples_file(path: Path, task: str) -> Path:
    if path.is_file():
        return path
    found = sorted(path.rglob(f"*_samples_{task}.jsonl"), key=lambda file: file.name)
    if not found:
        raise Refusal(f"{path}: no file *_samples_{task}.jsonl below it")
    return found[-1]


def _logged_replies(file: Path) -> Iterator[LoggedReply]:
    """Yield the replies of a samples file, line by line."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield logged_reply(json.loads(line))
            except (ValueError, LookupError, TypeError) as fault:
                what = f"{type(fault).__name__}: {fault}"
                raise Refusal(f"{file}, line {number}: no sample of lmms-eval ({what})") from None
