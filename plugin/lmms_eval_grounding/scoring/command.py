"""``lmms-eval-grounding score`` and ``merge``: predictions in, numbers out."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..json_files import check_writable, write_whole
from .kinds import KINDS

if TYPE_CHECKING:
    from .samples import Scored

RESAMPLES = 1000
SEED = 0

FORMS = {
    "boxes": '{"id": "7", "boxes": [[x1, y1, x2, y2], ...]}  in pixels of the image, best first',
    "mask": '{"id": "7", "mask": {"size": [h, w], "counts": ...}}  a COCO RLE; null: nothing there',
    "boxes3d": '{"id": "7", "boxes3d": [[x, y, z, dx, dy, dz, a, b, c], ...], "scores": [...]}\n'
    "    metres and ZXY radians in the scene's frame",
}


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: give a positive whole number")
    return number


def _seed(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text}: give 0 or a positive whole number")
    return number


# What one benchmark takes beside what all take.
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "rsvg": {
        "--strict": {"action": "store_true", "help": "IoU > t in place of IoU >= t, as LQVG counts"}
    },
    "gres": {
        "--min-pixels": {
            "type": _positive,
            "metavar": "N",
            "help": "a mask of fewer pixels is empty (default: as the log of a run says, else "
            "$GROUNDING_MIN_PIXELS, else 1)",
        }
    },
}


def add_score_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command of ``score`` for each benchmark."""
    benchmarks = parser.add_subparsers(
        title="benchmarks", required=True, dest="benchmark", metavar="BENCHMARK"
    )
    for name, kind in KINDS.items():
        added = benchmarks.add_parser(
            name,
            help=f"predictions are replies or {kind.form}",
            description=f"Score predictions for {name} without lmms-eval.",
            epilog=f"""\
A prediction is a line of JSON; of these forms the lines of a file may have any:
  {{"id": "7", "reply": "..."}}  as the model wrote it; read with --profile
  {FORMS[kind.form]}
    with "status": "malformed" or "unparseable" where an empty one means a failure
  a line of the samples file of an lmms-eval run (--log_samples)

A sample without a prediction counts as unparseable, one that fails scores 0.

Examples:
  lmms-eval-grounding score {name} --predictions predictions.jsonl --json scores.json
  lmms-eval-grounding score {name} --predictions results/model/20261129_samples_{name}.jsonl
  lmms-eval-grounding score {name} --predictions shard1.jsonl --partial shard1.records
""",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _add_inputs(added, name)
        added.add_argument(
            "--partial", type=Path, metavar="FILE", help="write records for `merge`, no numbers"
        )
        _add_report_arguments(added)


def add_merge_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``merge``."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="what score --partial wrote"
    )
    _add_report_arguments(parser)


def _add_inputs(parser: argparse.ArgumentParser, benchmark: str) -> None:
    kind = KINDS[benchmark]
    parser.add_argument("--predictions", type=Path, required=True, metavar="FILE", help="JSONL")
    targets = parser.add_mutually_exclusive_group()
    targets.add_argument(
        "--targets",
        type=Path,
        metavar="PATH",
        help=f"a JSONL with the columns of spec/{kind.document}, or a prepared folder "
        "(default: the data of the tasks)",
    )
    targets.add_argument("--mini", action="store_true", help="the mini set is the target")
    parser.add_argument(
        "--split", default=kind.split, help="of a prepared folder (default: %(default)s)"
    )
    parser.add_argument(
        "--profile", help="how replies are read (default: as the log of a run says, else prompt)"
    )
    parser.add_argument(
        "--only-predicted", action="store_true", help="leave out samples without a prediction"
    )
    for option, settings in OPTIONS.get(benchmark, {}).items():
        parser.add_argument(option, **settings)


def _add_report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers as JSON too")
    parser.add_argument(
        "--no-intervals", action="store_true", help="leave the bootstrap intervals out"
    )
    parser.add_argument(
        "--resamples",
        type=_positive,
        metavar="N",
        default=RESAMPLES,
        help="of the bootstrap (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=_seed, default=SEED, help="of the bootstrap (default: %(default)s)"
    )


def run_score(options: argparse.Namespace) -> None:
    """Score predictions; print the numbers, or write records."""
    from .records import write_records
    from .report import remarks

    for file in (options.json, options.partial):
        check_writable(file)
        if file and file.resolve() == options.predictions.resolve():
            raise ValueError(f"{file}: the predictions would be overwritten")
    if options.json and options.partial:
        raise ValueError("--partial writes no numbers: give --json to merge")
    scored = _scored(options)
    if not options.partial:
        return _tell(scored, options)
    write_records(scored, options.partial)
    print("\n".join([f"{len(scored.records):,} records: {options.partial}", *remarks(scored)]))
    return None


def run_merge(options: argparse.Namespace) -> None:
    """Print the numbers of the records in several files."""
    from .records import merge_records

    check_writable(options.json)
    _tell(merge_records(options.files), options)


def _scored(options: argparse.Namespace) -> Scored:
    from tqdm import tqdm

    from .predictions import Predictions
    from .samples import score_predictions
    from .targets import count_targets, read_targets

    kind = KINDS[options.benchmark]
    path = _targets(options)
    targets = tqdm(
        read_targets(path, options.split, kind.document),
        total=count_targets(path, options.split),
        desc="Scoring",
        unit=" samples",
        disable=None,
    )
    own = [option[2:].replace("-", "_") for option in OPTIONS.get(options.benchmark, {})]
    with Predictions(options.predictions, ("reply", kind.form)) as predictions:
        return score_predictions(
            options.benchmark,
            targets,
            predictions,
            profile=options.profile,
            only_predicted=options.only_predicted,
            **{name: getattr(options, name) for name in own},
        )


def _targets(options: argparse.Namespace) -> Path:
    from ..data.location import dataset_path
    from ..data.mini import mini_path

    data = KINDS[options.benchmark].data
    if options.targets:
        path: Path = options.targets
        if not path.exists() or path.is_fifo():
            raise ValueError(f"{path}: no file and no folder; targets are read twice")
        return path
    if options.mini:
        return Path(mini_path(data))
    path = Path(dataset_path(data, options.split))
    if not path.is_dir():
        raise ValueError(f"{path}: score reads no Hub data; name a folder or a file with --targets")
    return path


def _tell(scored: Scored, options: argparse.Namespace) -> None:
    from .report import Bootstrap, report_json, report_on, report_text

    bootstrap = None if options.no_intervals else Bootstrap(options.resamples, options.seed)
    report = report_on(scored, bootstrap, progress=True)
    print(report_text(report))
    if options.json:
        write_whole(options.json, [json.dumps(report_json(report), indent=2)])
