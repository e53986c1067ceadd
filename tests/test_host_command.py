"""The real command in new processes, with the host's whole index: what a user types and sees."""

import sys
from pathlib import Path

import host
import pytest
from host import MINI_SIZE, RATES

from lmms_eval_grounding.register import tasks_dir

OURS = {"rsvg", "rsvg_val", "rsvg_mini", "rsvg_strict"}
WITHOUT_THE_PLUGIN = """
import runpy, sys
from lmms_eval_grounding import register
register.models = lambda: []
sys.argv[0] = "lmms-eval"
runpy.run_module("lmms_eval", run_name="__main__")
"""


@pytest.mark.parametrize("module", [False, True])
def test_the_list_of_tasks_names_ours(module: bool) -> None:
    arguments = ("--tasks", "list")
    if module:
        done = host.process(sys.executable, "-m", "lmms_eval", *arguments)
    else:
        done = host.command(*arguments)
    listed = {line.removeprefix(" - ") for line in done.stdout.splitlines()}
    assert listed >= {*OURS, "grounding_mini"}
    assert len(listed) > 1000  # the host's own are there, too
    assert "lmms-eval goes on without" not in done.stderr


def test_the_oracle_evaluates_the_mini_set_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = host.command(
        "--model", "grounding_oracle", "--tasks", "rsvg_mini",
        "--output_path", "results", "--log_samples",
    )  # fmt: skip
    run = host.found_run(tmp_path / "results")
    assert run.scores["Pr@0.5"] == 100
    assert len(run.samples) == MINI_SIZE
    assert "Pr@0.5" in done.stdout
    assert "|rsvg_mini|" in done.stdout


def _ends_with_one_sentence(*arguments: str, **environment: str) -> str:
    done = host.command("--model", "grounding_oracle", *arguments, **environment)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    *_, sentence = done.stderr.splitlines()
    return sentence


def test_missing_data_name_the_command_that_makes_them(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    sentence = _ends_with_one_sentence("--tasks", "rsvg", "--output_path", output)
    assert "lmms-eval-grounding prepare rsvg --source DIOR_RSVG" in sentence
    assert not list(tmp_path.rglob("*_results.json"))


def test_an_unknown_profile_names_those_that_exist() -> None:
    sentence = _ends_with_one_sentence("--tasks", "rsvg_mini", GROUNDING_PROFILE="qwen9")
    assert "GROUNDING_PROFILE" in sentence
    assert "unknown profile 'qwen9'" in sentence
    assert "qwen3_vl" in sentence


def test_include_path_finds_our_tasks_without_the_plugin(tmp_path: Path) -> None:
    printed = host.process(
        str(Path(sys.executable).with_name("lmms-eval-grounding")), "tasks-dir"
    ).stdout.strip()
    assert Path(printed).samefile(tasks_dir())
    arguments = ("--model", "dummy", "--tasks", "rsvg_mini", "--include_path", printed)
    output = ("--output_path", str(tmp_path), "--log_samples")
    done = host.process(sys.executable, "-c", WITHOUT_THE_PLUGIN, *arguments, *output)
    run = host.found_run(tmp_path)
    assert len(run.samples) == MINI_SIZE, done.stderr
    assert run.scores["parse_unparseable"] == 1


def test_two_processes_report_the_numbers_of_one(tmp_path: Path) -> None:
    arguments = ("--model", "grounding_oracle", "--model_args", "error=shifted,every=3")
    one = host.evaluate(tmp_path / "one", *arguments)
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    output = ("--output_path", str(tmp_path / "two"), "--log_samples")
    done = host.process(
        sys.executable, *launch, "-m", "lmms_eval", *arguments, "--tasks", "rsvg_mini", *output,
        ACCELERATE_USE_CPU="true", OMP_NUM_THREADS="1",
    )  # fmt: skip
    assert list((tmp_path / "two").rglob("*_results.json")), done.stderr
    two = host.found_run(tmp_path / "two")
    assert two.scores == one.scores
    assert 0 < one.scores["Pr@0.5"] < 100  # type: ignore[operator]
    assert [two.scores[rate] for rate in RATES] == [1, 0, 0, 0]
    order = [sample["doc_id"] for sample in two.samples]
    assert sorted(order) == list(range(MINI_SIZE))
    assert order != sorted(order)  # so there were two, each with its half
