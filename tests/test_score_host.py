"""`score` on the samples file of a run of lmms-eval gives the numbers of its results file."""

from pathlib import Path

import pytest
from host import Run, evaluate, evaluate_tasks
from scored import Command, fixture_of_command  # noqa: F401 - pytest looks for it here

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

MINI_TASKS = ("rsvg_mini", "gres_mini", "refsegrs_mini", "mmscan_mini", "mmscan_candidates_mini")
SHIFTED = ("--model", "grounding_oracle", "--model_args", "error=shifted,every=3")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return evaluate_tasks(tmp_path_factory.mktemp("run"), *SHIFTED, tasks=",".join(MINI_TASKS))


def numbers_of(run: Run) -> dict[str, float | None]:
    """Return all numbers of a results file; the host counts the logged readings among them."""
    return {name: value for name, value in run.scores.items() if name != "grounding"}


@pytest.mark.parametrize("task", MINI_TASKS)
def test_every_number_of_a_run_is_reproduced(
    command: Command, runs: dict[str, Run], task: str
) -> None:
    log = runs[task].samples_file
    told = command.reported("score", task.removesuffix("_mini"), "--mini", "--predictions", log)
    assert told.values == numbers_of(runs[task])
    assert told.report["missing"]["count"] == told.report["unknown"]["count"] == 0
    assert len(set(told.values.values())) > 2  # neither all right nor all wrong


def test_a_run_with_settings_of_its_own_is_reproduced_without_them(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_PROFILE", "sam3:score_threshold=0.5")
    monkeypatch.setenv("GROUNDING_MIN_PIXELS", "5000")
    run = evaluate(tmp_path / "run", *SHIFTED, task="gres_mini")
    monkeypatch.delenv("GROUNDING_PROFILE")
    monkeypatch.delenv("GROUNDING_MIN_PIXELS")
    log = run.samples_file
    told = command.reported("score", "gres", "--mini", "--predictions", log)
    assert told.report["options"] == {"min_pixels": 5000}
    assert told.values == numbers_of(run)
    otherwise = command.reported("score", "gres", "--mini", "--predictions", log, "--min-pixels", 1)
    assert otherwise.values != numbers_of(run)
