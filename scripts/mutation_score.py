"""Mutate the metrics, the geometry and the parsers, and count what the golden cases alone refuse.

mutmut makes the mutants, one change each; a mutant is detected when a golden case fails on it or it
never ends. No other test is run, so the score says how much of the code the corpus pins. What
survives is listed with its reason in scripts/mutation_survivors.json, together with the score; this
script compares its findings with that file, and --update rewrites it. The exit code is 1 when

- a mutant survives that the file does not list, or lists without a reason,
- a mutant that the file lists does not survive any more, or does not exist,
- the score of metrics or geometry is below 95 %, or that of parsing below 85 %.

mutmut mutates the bodies of functions and methods, not module-level tables and patterns, and not
functions under a decorator such as @cache. Two kinds of line are left as they are, since the corpus
leaves open what they say: the text of an error, and which warnings of numpy are silenced. A
function that no golden case reaches counts as surviving with all its mutants. The few cases with
replies of 50,000 to 1,000,000 characters are left out, for time. The work is done in a copy of the
package, in a temporary folder unless --work names one; a named folder keeps its results, and a
second run there tries again only what survived or has changed since. It takes about half an hour
of CPU time.

    python scripts/mutation_score.py                             # compare with the list
    python scripts/mutation_score.py --only geometry/boxes.py    # one module
    python scripts/mutation_score.py --work mutation --update    # and rewrite the list
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.utils.format_utils import orig_function_and_class_names_from_key

REPOSITORY = Path(__file__).resolve().parents[1]
SURVIVORS = REPOSITORY / "scripts" / "mutation_survivors.json"
LEAST = {"metrics": 0.95, "geometry": 0.95, "parsing": 0.85}
PACKAGE = "src/lmms_eval_grounding"
IGNORED = shutil.ignore_patterns("__pycache__")
SURVIVED, NO_TESTS = 0, (5, 33)  # mutmut's exit codes
MEMORY = 6 << 30  # bytes a mutant may take: one that never stops appending ends here

# One test per spec: mutmut runs those that reach the mutated function, the quickest first.
TESTS = '''
from functools import _lru_cache_wrapper
import gc

import pytest

from lmms_eval_grounding.conformance import own_answer
from lmms_eval_grounding.corpus import is_met, load_cases, reply_text, spec_names


def is_long(case):
    """Return whether a reply is of the few that take longer than all other cases together."""
    return 50_000 < len(reply_text(case.input.get("reply")) or "") <= 1_000_000


CASES = {
    spec: [case for case in load_cases() if case.spec == spec and not is_long(case)]
    for spec in spec_names()
}
MUTATED = tuple(f"lmms_eval_grounding.{part}" for part in ("metrics", "geometry", "parsing"))


@pytest.fixture(scope="session", autouse=True)
def nothing_remembered():
    """A mutant is forked from a process in which results were cached before."""
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper) and each.__module__.startswith(MUTATED):
            each.cache_clear()


@pytest.mark.parametrize("spec", CASES)
def test_cases(spec):
    for case in CASES[spec]:
        assert is_met(case, own_answer(case)), str(case)
'''

CONFIGURATION = r"""
[tool.mutmut]
source_paths = ["src"]
only_mutate = {patterns}
do_not_mutate_patterns = ['\braise \w+\(', 'np\.errstate\(']
pytest_add_cli_args_test_selection = ["tests"]
pytest_add_cli_args = ["-p", "no:cacheprovider"]
track_dependencies = false
timeout_constant = 3.0
timeout_multiplier = 5.0
"""


class Mutant(NamedTuple):
    """One change: the module and function it is in, and the lines before and after."""

    place: str
    before: str
    after: str


def main() -> int:
    args = parse_args()
    listed = json.loads(SURVIVORS.read_text("utf-8")) if SURVIVORS.exists() else {"survivors": []}
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(args.work or temporary).resolve()
        prepare(work, ["*"] if args.work else args.only)
        run_mutmut(work, args.only, args.jobs)
        detected, survivors = findings(work, args.only)
    scores = scores_by_part(detected, survivors)
    for part, score in scores.items():
        counts = f"{score['detected']} of {score['mutants']} mutants"
        print(f"{part}: {counts} detected, {ratio(score):.1%}")
    if args.update:
        listed = updated(listed, scores, survivors, args.only)
        write(listed)
    problems = [*score_problems(scores), *list_problems(listed, survivors, args.only)]
    print("\n".join(problems))
    return bool(problems)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", metavar="MODULE", default=["*"], help="as geometry/boxes.py"
    )
    parser.add_argument("--work", metavar="FOLDER", help="where to work, and to keep the results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    parser.add_argument("--update", action="store_true", help="rewrite the list of survivors")
    return parser.parse_args()


def prepare(work: Path, only: list[str]) -> None:
    """Lay out a copy of the package as mutmut expects it, and let it try survivors again."""
    patterns = [f"*/{part}/*.py" for part in LEAST] if "*" in only else [f"*/{p}" for p in only]
    before = {file: (file.read_bytes(), file.stat().st_mtime) for file in sources(work)}
    shutil.rmtree(work / "src", ignore_errors=True)
    shutil.copytree(REPOSITORY / "plugin" / "lmms_eval_grounding", work / PACKAGE, ignore=IGNORED)
    for folder in ("tasks", "spec", "golden_cases"):
        shutil.copytree(REPOSITORY / folder, work / PACKAGE / folder, ignore=IGNORED)
    for file in sources(work):  # mutmut makes the mutants of a file anew when it is newer than they
        content, time = before.get(file, (b"", 0.0))
        os.utime(file, (time, time) if content == file.read_bytes() else None)
    (work / "tests").mkdir(exist_ok=True)
    (work / "tests" / "test_corpus_alone.py").write_text(TESTS, "utf-8")
    (work / "pyproject.toml").write_text(CONFIGURATION.format(patterns=patterns), "utf-8")
    mutants = work / "mutants"
    (mutants / "mutmut-stats.json").unlink(missing_ok=True)
    for file in [file for file in (mutants / PACKAGE).rglob("*") if file.is_file()]:
        if file.relative_to(mutants / PACKAGE).parts[0] not in LEAST:
            file.unlink()  # mutmut copies a file once, and this one may have changed
    for meta in mutants.rglob("*.meta"):
        data = json.loads(meta.read_text("utf-8"))
        data["exit_code_by_key"] = {
            name: code if is_detected(code) else None
            for name, code in data["exit_code_by_key"].items()
        }
        meta.write_text(json.dumps(data), "utf-8")


def sources(work: Path) -> list[Path]:
    return list((work / PACKAGE).rglob("*.py"))


def run_mutmut(work: Path, only: list[str], jobs: int) -> None:
    chosen = [f"lmms_eval_grounding.{module_name(path)}.*" for path in only if path != "*"]
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(jobs), *chosen]
    quiet = not sys.stdout.isatty()  # its progress is one long line
    done = subprocess.run(
        command, cwd=work, check=False, preexec_fn=bound_memory, capture_output=quiet, text=True
    )
    if done.returncode:
        print((done.stdout or "")[-3000:], done.stderr or "")
        sys.exit("mutmut could not run: see above; the golden cases have to pass without a mutant")


def bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def findings(work: Path, only: list[str]) -> tuple[Counter[str], Counter[Mutant]]:
    """Return how many mutants were detected in each part, and those that survived."""
    detected: Counter[str] = Counter()
    survivors: Counter[Mutant] = Counter()
    os.chdir(work)  # mutmut knows its files by their path from here
    for meta in sorted((work / "mutants" / PACKAGE).rglob("*.meta")):
        source = meta.relative_to(work / "mutants").with_suffix("")
        module = source.relative_to(PACKAGE)
        if not is_chosen(str(module), only):
            continue
        for name, code in json.loads(meta.read_text("utf-8"))["exit_code_by_key"].items():
            if code is None:
                sys.exit(f"{name} was not tried: mutmut ended early")
            if is_detected(code):
                detected[module.parts[0]] += 1
            else:
                survivors[mutant(module, name, get_diff_for_mutant(name, path=source))] += 1
    return detected, survivors


def is_chosen(place: str, only: list[str]) -> bool:
    return "*" in only or place.startswith(tuple(only))


def is_detected(exit_code: int | None) -> bool:
    """Return whether a test failed, or the mutant ran out of time or memory or crashed."""
    return exit_code not in (None, SURVIVED, *NO_TESTS)


def mutant(module: Path, name: str, diff: str) -> Mutant:
    function, of_class = orig_function_and_class_names_from_key(name)
    changed = [line for line in diff.splitlines()[2:] if line[:1] in "+-"]
    before, after = (
        " ".join(line[1:].strip() for line in changed if line[0] == sign) for sign in "-+"
    )
    return Mutant(f"{module}: {f'{of_class}.' * bool(of_class)}{function}", before, after)


def scores_by_part(detected: Counter[str], survivors: Counter[Mutant]) -> dict[str, dict[str, int]]:
    survived: Counter[str] = Counter()
    for each, times in survivors.items():
        survived[each.place.partition("/")[0]] += times
    return {
        part: {"mutants": detected[part] + survived[part], "detected": detected[part]}
        for part in LEAST
        if detected[part] + survived[part]
    }


def ratio(score: dict[str, int]) -> float:
    return score["detected"] / score["mutants"]


def score_problems(scores: dict[str, dict[str, int]]) -> list[str]:
    return [
        f"{part}: {ratio(score):.1%} detected, where {LEAST[part]:.0%} are asked for"
        for part, score in scores.items()
        if ratio(score) < LEAST[part]
    ]


def list_problems(
    listed: dict[str, Any], survivors: Counter[Mutant], only: list[str]
) -> Iterator[str]:
    """Yield where the list of survivors and what survived differ, and entries without a reason."""
    known = {each: entry for each, entry in entries(listed) if is_chosen(each.place, only)}
    times = Counter({each: entry.get("times", 1) for each, entry in known.items()})
    for each in survivors - times:
        yield f"survives, and is not listed: {each}"
    for each in times - survivors:
        yield f"is listed, and does not survive: {each}"
    for each, entry in known.items():
        if not entry["why"]:
            yield f"is listed without a reason: {each}"


def entries(listed: dict[str, Any]) -> Iterator[tuple[Mutant, dict[str, Any]]]:
    for entry in listed["survivors"]:
        yield Mutant(entry["in"], entry["before"], entry["after"]), entry


def updated(
    listed: dict[str, Any],
    scores: dict[str, dict[str, int]],
    survivors: Counter[Mutant],
    only: list[str],
) -> dict[str, Any]:
    """Return the list with what survived now; reasons that were given stay."""
    known = dict(entries(listed))
    outside = [entry for each, entry in known.items() if not is_chosen(each.place, only)]
    found = [
        {
            "in": each.place,
            "before": each.before,
            "after": each.after,
            **({"times": times} if times > 1 else {}),
            "why": known[each]["why"] if each in known else "",
        }
        for each, times in survivors.items()
    ]
    return {
        "mutmut": version("mutmut"),
        "score": scores if "*" in only else listed.get("score", {}),
        "survivors": sorted(
            [*outside, *found], key=lambda entry: (entry["in"], entry["before"], entry["after"])
        ),
    }


def write(listed: dict[str, Any]) -> None:
    part = SURVIVORS.with_suffix(".part")
    part.write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", "utf-8")
    part.replace(SURVIVORS)


def module_name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


if __name__ == "__main__":
    sys.exit(main())
