"""Write the README's table of differences from spec/differences/ and the golden cases.

python scripts/differences_table.py            # rewrites the block between the two markers
python scripts/differences_table.py --check    # exits with 1 if the README has another one
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_grounding.corpus import Case, load_cases, meaning, read_json

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN = "<!-- differences: written by scripts/differences_table.py -->"
END = "<!-- end of differences -->"
HEAD = ("benchmark", "metric", "input", "ours", "circulating recipe", "official code", "why")
Record = dict[str, Any]


def reported_name(case: Case) -> str:
    """Return the name under which results have a case's value, such as ``Pr@0.5``."""
    given = case.input
    begin = f"gTop-{given['k']}@" if "k" in given else ""
    end = f"@{given['threshold']}" if "threshold" in given else ""
    names: list[str] = meaning(case.spec)["reported_as"]
    (name,) = (name for name in names if name.startswith(begin) and name.endswith(end))
    return name.replace("@", ">") if given.get("strict") else name


def iou_text(record: Record) -> str:
    return f"IoU {record['intersection']}/{record['union']}"


def gres_text(record: Record) -> str:
    if record["has_target"]:
        return iou_text(record) + (", rejected" if record["is_empty"] else "")
    answer = f"mask of {record['union']} px" if record["status"] == "ok" else record["status"]
    return f"no target, {'rejected' if record['is_empty'] else answer}"


def mmscan_text(record: Record) -> str:
    best = zip(record["best_targets"], record["best_ious"], strict=True)
    boxes = ", ".join(f"no. {target + 1} (IoU {iou})" for target, iou in best)
    n = record["n_targets"]
    return f"{n} target{'s' * (n != 1)}; " + (f"boxes best on {boxes}" if boxes else "no boxes")


# How a record of each benchmark reads, in the order of the table.
TEXTS: dict[str, Callable[[Record], str]] = {
    "rsvg": iou_text,
    "gres": gres_text,
    "mmscan": mmscan_text,
    "refsegrs": iou_text,
}


def input_text(case: Case) -> str:
    """Return a case's records, one after the other; `reported_name` has threshold and k."""
    text, records = TEXTS[case.spec.split("/")[1]], case.input["records"]
    again = [record["id"] in {r["id"] for r in records[:i]} for i, record in enumerate(records)]
    return "; ".join(text(r) + " again" * a for r, a in zip(records, again, strict=True))


def value_text(value: Any) -> str:
    return f"`{value['error']}`" if isinstance(value, dict) else str(value)


def rows() -> Iterator[Sequence[str]]:
    cases = {str(case): case for case in load_cases("metrics/")}
    for benchmark in TEXTS:
        stated = read_json("spec", f"differences/{benchmark}.json")
        for row in stated["rows"]:
            case = cases[row["case"]]
            yield (
                stated["benchmark"],
                reported_name(case),
                input_text(case),
                value_text(case.expected),
                value_text(row.get("recipe", "-")),
                ", ".join(f"{who} {value_text(value)}" for who, value in row["official"].items()),
                row["why"],
            )


def table() -> str:
    """Return the table as Markdown."""
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [HEAD, ("---",) * len(HEAD), *rows()])


def with_table(readme: str) -> str:
    """Return a text with the table between its two markers."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the text has no block from {BEGIN!r} to {END!r}")
    return f"{before}{BEGIN}\n\n{table()}\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    options = parser.parse_args()
    readme = README.read_text("utf-8")
    written = with_table(readme)
    if not options.check:
        README.write_text(written, "utf-8")
    elif written != readme:
        print("README.md has another table: run python scripts/differences_table.py")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
