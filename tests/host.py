"""Runs of lmms-eval's own command, in this process and in a new one.

In this process the index of the host's nearly 2,000 tasks, which costs seconds, is replaced by an
empty one; everything else is the command that a user types: its arguments, registry, task manager,
evaluator and files.
"""

import gc
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

RATES = ("parse_ok", "parse_no_target", "parse_malformed", "parse_unparseable")
MINI_SIZE = 32  # expressions in plugin/lmms_eval_grounding/data/mini/rsvg


@dataclass(frozen=True)
class Run:
    """What a run left of a task: its results file, its samples file and the numbers in them."""

    results_file: Path
    samples_file: Path

    @property
    def task(self) -> str:
        return self.samples_file.stem.partition("_samples_")[2]

    @property
    def results(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(
            self.results_file.read_text("utf-8"), parse_constant=_refuse
        )
        return loaded

    @property
    def samples(self) -> list[dict[str, Any]]:
        lines = self.samples_file.read_text("utf-8").splitlines()
        return [json.loads(line, parse_constant=_refuse) for line in lines]

    @property
    def scores(self) -> dict[str, float | None]:
        """Return the reported numbers of the task, by metric."""
        reported = self.results["results"][self.task]
        return {
            name.removesuffix(",none"): value
            for name, value in reported.items()
            if name.endswith(",none") and "_stderr" not in name
        }


def evaluate(folder: Path, *arguments: str, task: str = "rsvg_mini") -> Run:
    """Return what ``lmms-eval --tasks rsvg_mini ...`` leaves in a folder, run in this process."""
    (run,) = evaluate_tasks(folder, *arguments, tasks=task).values()
    return run


def evaluate_tasks(folder: Path, *arguments: str, tasks: str) -> dict[str, Run]:
    """Return the same for several tasks in one run, or a group, by the name of the task."""
    import lmms_eval.tasks
    from lmms_eval.__main__ import cli_evaluate
    from loguru import logger

    gc.freeze()  # the host collects garbage twice a run, among a million objects of its imports
    no_tasks = folder / "no_tasks"
    no_tasks.mkdir(parents=True)
    command = ["lmms-eval", *_arguments(folder, tasks), "--verbosity", "DEBUG", *arguments]
    try:
        with (
            mock.patch.object(sys, "argv", command),
            mock.patch.object(lmms_eval.tasks, "__file__", str(no_tasks / "__init__.py")),
        ):
            cli_evaluate()
    finally:
        logger.remove()  # it holds this test's captured output
    return found_runs(folder)


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return what the installed command ``lmms-eval`` prints, run in a new process."""
    program = str(Path(sys.executable).with_name("lmms-eval"))
    return process(program, *arguments, **environment)


def process(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,  # against a run that hangs
        env={**os.environ, **environment},
    )


def found_run(folder: Path) -> Run:
    """Return the one run of one task whose files lie below a folder."""
    (run,) = found_runs(folder).values()
    return run


def found_runs(folder: Path) -> dict[str, Run]:
    """Return the tasks of the one run whose files lie below a folder, by their names."""
    (results_file,) = folder.rglob("*_results.json")
    runs = (Run(results_file, samples) for samples in sorted(folder.rglob("*_samples_*.jsonl")))
    return {run.task: run for run in runs}


def _arguments(folder: Path, tasks: str) -> list[str]:
    return ["--tasks", tasks, "--output_path", str(folder), "--log_samples"]


def _refuse(token: str) -> Any:
    raise AssertionError(f"{token} is not JSON")
