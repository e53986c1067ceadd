"""The command: what it prints, and one clear sentence for every mistake."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lmms_eval_grounding
from lmms_eval_grounding.cli import main
from lmms_eval_grounding.parsing.profile import profile_names

READING = {
    "id": "7",
    "profile": "prompt",
    "status": "ok",
    "reason": None,
    "flags": ["clipped", "multiple"],
    "syntax": "json_boxes",
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    return code, *capsys.readouterr()


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line that a mistake is answered with."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("lmms-eval-grounding: ")
    assert err.count("\n") == 1
    return err


def samples(folder: Path, *lines: object) -> str:
    file = folder / "x_samples_rsvg.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return str(file)


def test_profiles_lists_each_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "profiles")
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == (
        profile_names()
    )
    code, out, _ = run(capsys, "profiles", "gemini", "--answer", "box")
    assert code == 0
    assert '"box_2d": [300, 200, 700, 750]' in out


def test_parse_prints_what_the_parser_makes_of_a_reply(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "parse", "--size", "800x400", '{"bbox_2d": [100, 200, 300, 400]}')
    assert json.loads(out) == {
        "status": "ok",
        "boxes": [[80, 80, 240, 160]],
        "flags": [],
        "reason": None,
        "syntax": "json_boxes",
    }


@pytest.mark.parametrize("size", ["800", "0x800", "800x0", "-5x5", "8.5x5", "8x8x8", "８x８", "x"])
def test_parse_refuses_what_is_no_size(capsys: pytest.CaptureFixture[str], size: str) -> None:
    assert "as in 800x800" in complaint(capsys, "parse", f"--size={size}", "[1, 2, 3, 4]")


def test_parse_names_the_profiles_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ("parse", "--size", "8x8", "--profile", "qwen9", "[]")
    assert "unknown profile 'qwen9'; choose one of: prompt, " in complaint(capsys, *wrong)


def test_audit_counts_what_was_logged(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = {"doc_id": 0, "filtered_resps": ["[1, 2, 3, 4]"], "grounding": READING}
    failed = {**READING, "status": "malformed", "reason": "wrong_count", "flags": []}
    file = samples(tmp_path, line, line, {**line, "grounding": failed})
    code, out, _ = run(capsys, "audit", file, file)
    words = [text.split() for text in out.splitlines()]
    assert code == 0
    assert words.count([f"{file}:", "3", "samples"]) == 2
    assert ["status", "ok", "2", "66.67%"] in words
    assert ["reason", "wrong_count", "1", "33.33%"] in words
    assert ["flag", "clipped", "2", "66.67%"] in words


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({}, "no sample of lmms-eval"),
        ([1], "no sample of lmms-eval"),
        ({"doc_id": 0, "filtered_resps": [5]}, "no sample of lmms-eval"),
        ({"doc_id": 0, "filtered_resps": ["x"]}, "no sample of a task of this package"),
        ({"doc_id": 0, "filtered_resps": ["x"], "grounding": None}, "no sample of a task of this"),
        ({"doc_id": 0, "filtered_resps": ["x"], "grounding": 7}, "no sample of lmms-eval"),
    ],
)
def test_audit_names_the_line_that_it_cannot_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: object, reason: str
) -> None:
    assert f"line 1: {reason}" in complaint(capsys, "audit", samples(tmp_path, line))


def test_audit_of_nothing_says_what_to_give(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "--log_samples" in complaint(capsys, "audit", samples(tmp_path))
    assert "No such file" in complaint(capsys, "audit", str(tmp_path / "none.jsonl"))


def test_a_complaint_during_a_conversion_has_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mini = Path(lmms_eval_grounding.__file__).parent / "data" / "mini" / "rsvg"
    source = tmp_path / "DIOR_RSVG"
    shutil.copytree(mini, source)
    (source / "JPEGImages" / "00003.jpg").unlink()
    code, _, err = run(
        capsys, "prepare", "rsvg", "--source", str(source), "--output", str(tmp_path / "rsvg")
    )
    assert code == 1
    last = err.splitlines()[-1]
    assert last.startswith("lmms-eval-grounding: JPEGImages/00003.jpg (of Annotations/00003.xml)")


def test_examples_in_the_help_stay_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("tasks-dir", "profiles", "parse", "prepare", "audit"):
        with pytest.raises(SystemExit):
            main([name, "--help"])
        *_, example = capsys.readouterr().out.splitlines()
        assert example.startswith("Example: lmms-eval-grounding "), name


def test_a_reader_that_has_seen_enough_is_no_fault() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from lmms_eval_grounding.cli import main; main(['profiles'])"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
