"""The commands score and merge in this process, on files written for a test."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lmms_eval_grounding import cli


class Told(NamedTuple):
    """What a command left behind: its exit code, what it printed, and its JSON if it wrote any."""

    code: int
    out: str
    err: str
    report: dict[str, Any]

    @property
    def values(self) -> dict[str, float | None]:
        return {name: number["value"] for name, number in self.report["metrics"].items()}


class Command:
    """Runs commands in a folder."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capture = folder, capture

    def write(self, name: str, lines: Iterable[Any]) -> Path:
        """Write lines as JSON; a text is written as it is."""
        path = self.folder / name
        texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
        return path

    def __call__(self, *arguments: object) -> Told:
        self._capture.readouterr()
        code = cli.main([str(argument) for argument in arguments])
        out, err = self._capture.readouterr()
        return Told(code, out, err, {})

    def score(
        self, benchmark: str, targets: Iterable[Any], predictions: Iterable[Any], *options: object
    ) -> Told:
        return self.reported(
            "score", benchmark,
            "--targets", self.write("targets.jsonl", targets),
            "--predictions", self.write("predictions.jsonl", predictions),
            *options,
        )  # fmt: skip

    def reported(self, *arguments: object) -> Told:
        """Run a command that reports numbers, few resamples unless more are asked for."""
        few = () if "--resamples" in arguments else ("--resamples", 20)
        written = self.folder / "report.json"
        written.unlink(missing_ok=True)
        told = self(*arguments, *few, "--json", written)
        report = json.loads(written.read_text("utf-8")) if written.exists() else {}
        return told._replace(report=report)


@pytest.fixture(name="command")
def fixture_of_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)
