"""``lmms-eval-grounding prepare``: one sub-command a benchmark, its options as data."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .data.location import SOURCES, data_root


class Release(NamedTuple):
    """What one benchmark's converter takes beside what all take."""

    source: str
    splits: tuple[str, ...]
    all_splits: tuple[str, ...]
    options: Mapping[str, dict[str, Any]]
    check_options: Mapping[str, dict[str, Any]]


RELEASES: dict[str, Release] = {
    "rsvg": Release(
        "the folder with Annotations, JPEGImages, train.txt, val.txt and test.txt",
        ("train", "val", "test"),
        ("train", "val", "test"),
        {},
        {},
    ),
    "gres": Release(
        "the folder with grefs(unc).json, instances.json and images/train2014",
        ("val", "testA", "testB"),
        ("val", "testA", "testB", "train"),
        {
            "--images": {
                "type": Path,
                "metavar": "DIR",
                "help": "where train2014 is, if elsewhere",
            },
            "--embed-images": {
                "action": "store_true",
                "help": "carry the images' bytes; without it, only their paths",
            },
        },
        {},
    ),
    "refsegrs": Release(
        "RefSegRS.zip, or the folder unpacked from it",
        ("val", "test"),
        ("train", "val", "test"),
        {},
        {},
    ),
    "mmscan": Release(
        "the folder mmscan_data",
        ("val",),
        ("val", "train"),
        {
            "--ratio": {
                "type": float,
                "help": "take every int(1/RATIO)-th sample, as the devkit does (it uses 0.2)",
            },
            "--annotations": {
                "choices": ("v1", "v2"),
                "default": "v1",
                "help": "which EmbodiedScan annotations (default: v1)",
            },
            "--frames": {"type": Path, "metavar": "DIR", "help": "where the frames' paths start"},
            "--no-frames": {
                "action": "store_false",
                "dest": "look_for_frames",
                "help": "do not look for the frames; for prompts that show none",
            },
            "--copy-frames": {"action": "store_true", "help": "copy the frames into the result"},
            "--token-flatten": {
                "action": "store_true",
                "help": "drop targets as the devkit does by default; changes the samples",
            },
        },
        {"--all-frames": {"action": "store_true", "help": "decode every frame in --check"}},
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command for each benchmark."""
    benchmarks = parser.add_subparsers(
        title="benchmarks", required=True, dest="benchmark", metavar="BENCHMARK"
    )
    for name, release in RELEASES.items():
        added = benchmarks.add_parser(
            name,
            help=f"from {release.source}",
            description=f"Turn the official {name} release into the data that the tasks read, or "
            "check such data. Nothing half-written is left behind.",
            epilog=f"Example: lmms-eval-grounding prepare {name} --source {SOURCES[name]}",
        )
        added.add_argument("--source", type=Path, metavar="PATH", help=release.source)
        added.add_argument(
            "--output",
            type=Path,
            metavar="DIR",
            help=f"default: {name} in $GROUNDING_DATA, or in the user's cache folder",
        )
        added.add_argument(
            "--splits",
            nargs="+",
            choices=release.all_splits,
            default=release.splits,
            metavar="SPLIT",
            help=f"of {', '.join(release.all_splits)} (default: {', '.join(release.splits)})",
        )
        added.add_argument(
            "--skip-broken", action="store_true", help="leave broken samples out and list them"
        )
        added.add_argument(
            "--check", action="store_true", help="verify the prepared data; needs no --source"
        )
        for option, settings in (*release.options.items(), *release.check_options.items()):
            added.add_argument(option, **settings)


def run(options: argparse.Namespace) -> int:
    """Prepare if there is a source, then check if asked to; return 1 where problems are found."""
    release = RELEASES[options.benchmark]
    if not options.source and not options.check:
        raise ValueError(
            f"prepare {options.benchmark}: give --source "
            f"({release.source}), or --check to verify prepared data"
        )
    converter = importlib.import_module(f"{__package__}.data.{options.benchmark}")
    folder = options.output or data_root() / options.benchmark
    if options.source:
        manifest = converter.prepare(
            options.source,
            folder,
            options.skip_broken,
            tuple(options.splits),
            **_given(options, release.options),
        )
        print("\n".join([*manifest.sentences(), f"written to {folder}"]))
    if not options.check:
        return 0
    problems = converter.check(folder, **_given(options, release.check_options))
    print("\n".join(problems) or f"{folder}: no problem found")
    return 1 if problems else 0


def _given(options: argparse.Namespace, declared: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the declared options by the names that a converter has for them."""
    names = [
        settings.get("dest", option[2:].replace("-", "_")) for option, settings in declared.items()
    ]
    return {name: getattr(options, name) for name in names}
