"""`score` and `merge`: numbers derived by hand, from every form of prediction; every mistake."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from mask_documents import golden_documents
from scored import Command, fixture_of_command  # noqa: F401 - pytest looks for it here

from lmms_eval_grounding.contract import check, validator
from lmms_eval_grounding.corpus import Case, agrees, load_cases, meaning, reply_text
from lmms_eval_grounding.data.mini import mini_path

Line = dict[str, Any]


def run(size: int, start: int, length: int) -> Line:
    """Return the mask of a column of pixels in which a run is foreground."""
    return {"size": [size, 1], "counts": [start, length, size - start - length]}


def gres(id: str, target: Line | None, size: int = 200) -> Line:
    doc = {"id": id, "expression": "it", "width": 1, "height": size, "target": None}
    if target:
        from pycocotools import mask as coco_mask

        rle = coco_mask.frPyObjects(target, *target["size"])
        doc["target"] = {"size": target["size"], "counts": rle["counts"].decode("ascii")}
    return doc


def rsvg(id: str, bbox: list[float]) -> Line:
    return {"id": id, "expression": "it", "bbox": bbox, "width": 100, "height": 100}


# 50 of 100 pixels, none of 100, a rejection, a false alarm of 40: the example of the definitions.
GRES = [
    gres("hit", run(200, 0, 100)),
    gres("miss", run(200, 0, 100)),
    gres("rejected", None),
    gres("alarm", None),
]
GRES_MASKS: list[Line] = [
    {"id": "hit", "mask": run(200, 0, 50)},
    {"id": "miss", "mask": None},
    {"id": "rejected", "mask": None},
    {"id": "alarm", "mask": run(200, 100, 40)},
]
GRES_NUMBERS = {"gIoU": 3 / 8, "cIoU": 50 / 240, "T-acc": 50, "N-acc": 50, "Pr@0.5": 1 / 2}

RSVG = [rsvg(id, [10, 10, 30, 30]) for id in "abcdefg"]
RSVG_BOXES: list[Line] = [
    {"id": "a", "boxes": [[10, 10, 30, 30]]},  # 1
    {"id": "b", "boxes": [[30, 20, 10, 10], [10, 10, 30, 30]]},  # half, corners exchanged
    {"id": "c", "boxes": [[10, 10, 30, 10], [10, 10, 30, 30]]},  # the first has no area: 1
    {"id": "d", "boxes": [[200, 200, 300, 300]]},  # outside
    {"id": "e", "boxes": []},
    {"id": "f", "boxes": [], "status": "unparseable"},
    {"id": "g", "boxes": [[10, 10, 10000, 30]]},  # 20 x 20 of 90 x 20 in the image
]


def numbers(got: dict[str, float | None], expected: dict[str, float]) -> bool:
    return {name: got[name] for name in expected} == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_masks(command: Command) -> None:
    told = command.score("gres", GRES, GRES_MASKS)
    assert numbers(told.values, GRES_NUMBERS)
    assert numbers(told.values, {"parse_ok": 1 / 2, "parse_no_target": 1 / 2})
    assert told.report["samples"] == 4
    assert "4 samples of gres" in told.out


def test_masks_with_compressed_counts(command: Command) -> None:
    compressed = gres("", run(200, 0, 50))["target"]
    told = command.score("gres", GRES, [{"id": "hit", "mask": compressed}, *GRES_MASKS[1:]])
    assert numbers(told.values, GRES_NUMBERS)


def test_masks_of_refsegrs(command: Command) -> None:
    predictions = [{"id": "hit", "mask": run(200, 50, 100)}, {"id": "miss", "mask": None}]
    told = command.score("refsegrs", GRES[:2], predictions)
    assert numbers(told.values, {"mIoU": 1 / 6, "oIoU": 50 / 250, "Pr@0.5": 0})


def test_a_failed_mask_is_no_rejection(command: Command) -> None:
    failed = {"id": "rejected", "mask": None, "status": "malformed"}
    told = command.score("gres", GRES, [*GRES_MASKS[:2], failed, GRES_MASKS[3]])
    assert numbers(told.values, {"N-acc": 0, "gIoU": 1 / 8, "parse_malformed": 1 / 4})


def test_boxes(command: Command) -> None:
    told = command.score("rsvg", RSVG, RSVG_BOXES)
    # 400, 200, 400, 0, 0, 0, 400 of 400, 400, 400, 400, 400, 400, 1800
    assert numbers(told.values, {"cumIoU": 1400 / 4200, "meanIoU": (1 + 1 / 2 + 1 + 2 / 9) / 7})
    assert numbers(told.values, {"Pr@0.5": 300 / 7, "Pr@0.6": 200 / 7})
    rates = {"parse_ok": 4 / 7, "parse_no_target": 1 / 7, "parse_malformed": 1 / 7}
    assert numbers(told.values, rates)


def test_boxes_at_the_threshold_are_strictly_missed(command: Command) -> None:
    told = command.score("rsvg", RSVG, RSVG_BOXES, "--strict")
    assert told.values["Pr>0.5"] == pytest.approx(200 / 7, rel=1e-12)
    assert "Pr@0.5" not in told.values
    assert told.report["options"] == {"strict": True}


def cuboid(x: float, size: float = 2) -> list[float]:
    return [x, 0, 0, 2, 2, size, 0, 0, 0]


MMSCAN = [
    {
        "id": "two",
        "expression": "them",
        "sub_class": "VG_Inter_OR",
        "scan_id": "room",
        "scans": "none",
        "targets": [cuboid(0), cuboid(10)],
    }
]


@pytest.mark.parametrize("benchmark", ["mmscan", "mmscan_candidates"])
def test_boxes3d(command: Command, benchmark: str) -> None:
    # By score: one without a volume, one that shares 1/3 with the first target, that target.
    boxes = [cuboid(0), cuboid(1), cuboid(10, size=0)]
    told = command.score(
        benchmark, MMSCAN, [{"id": "two", "boxes3d": boxes, "scores": [0.2, 0.9, 0.95]}]
    )
    for name in ("gTop-1", "AP_sample", "AP_box", "AR", "AR_box"):
        assert told.values[f"{name}@0.25"] == pytest.approx(1 / 2, rel=1e-12)
    at_half = {"gTop-1": 0, "gTop-3": 1 / 2, "AP_sample": 1 / 4, "AP_box": 1 / 4, "AR": 1 / 2}
    assert numbers(told.values, {f"{name}@0.5": value for name, value in at_half.items()})


def test_boxes3d_without_scores_are_ranked_by_their_order(command: Command) -> None:
    told = command.score("mmscan", MMSCAN, [{"id": "two", "boxes3d": [cuboid(0), cuboid(1)]}])
    assert numbers(told.values, {"gTop-1@0.5": 1 / 2, "AP_sample@0.5": 1 / 2})


@pytest.mark.parametrize(
    ("boxes", "rate"), [([cuboid(0, size=-1)], "parse_malformed"), ([], "parse_no_target")]
)
def test_boxes3d_of_which_none_is_valid(command: Command, boxes: list[Any], rate: str) -> None:
    told = command.score("mmscan", MMSCAN, [{"id": "two", "boxes3d": boxes, "scores": None}])
    assert numbers(told.values, {rate: 1, "AR@0.25": 0, "AP_box@0.25": 0})


def _document(doc: Any) -> Line:
    return doc if isinstance(doc, dict) else doc.row


def _documents(case: Case) -> list[Line]:
    docs = case.input["docs"] if case.spec == "tasks/rsvg" else golden_documents(case)
    return [_document(doc) for doc in docs]


CASES = [
    case
    for name in ("rsvg", "gres", "refsegrs")
    for case in load_cases(f"tasks/{name}")
    if len({doc["id"] for doc in case.input["docs"]}) == len(case.input["docs"]) > 0
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_replies_of_the_golden_cases(command: Command, case: Case) -> None:
    docs, replies = _documents(case), map(reply_text, case.input["replies"])
    predictions = [{"id": d["id"], "reply": r} for d, r in zip(docs, replies, strict=True)]
    options = ["--profile", case.input["profile"]]
    if "min_pixels" in case.input:
        options += ["--min-pixels", case.input["min_pixels"]]
    told = command.score(case.spec[6:], docs, predictions, "--no-intervals", *options)
    got = {name: "nan" if value is None else value for name, value in told.values.items()}
    assert got.keys() == case.expected.keys()
    for name, value in case.expected.items():
        tolerance = meaning(case.spec)["tolerance"]
        assert got[name] == value or agrees(got[name], value, tolerance), name
    assert told.report["intervals"] is None


# Ids


def test_a_sample_without_a_prediction_counts_as_unparseable_and_is_named(command: Command) -> None:
    told = command.score("gres", GRES, GRES_MASKS[:2])
    assert told.report["missing"] == {"count": 2, "first": ["alarm", "rejected"]}
    assert "2 samples without a prediction count as unparseable: 'alarm', 'rejected'" in told.out
    assert numbers(told.values, {"gIoU": 1 / 8, "N-acc": 0, "parse_unparseable": 1 / 2})


def test_only_predicted_samples(command: Command) -> None:
    told = command.score("gres", GRES, GRES_MASKS[:2], "--only-predicted")
    assert (told.report["samples"], told.report["missing"]["count"]) == (2, 0)
    assert numbers(told.values, {"gIoU": 1 / 4, "parse_unparseable": 0})
    assert told.values["N-acc"] is None
    assert told.report["metrics"]["N-acc"]["interval"] is None
    assert "undefined" in told.out


def test_predictions_of_no_sample_are_counted_and_named(command: Command) -> None:
    others = [{"id": f"x{number}", "mask": None} for number in range(7)]
    told = command.score("gres", GRES, [*others, *GRES_MASKS])
    assert told.report["unknown"] == {"count": 7, "first": ["x0", "x1", "x2", "x3", "x4"]}
    assert "7 predictions of no sample do not count: 'x0', 'x1', 'x2', 'x3', 'x4', ..." in told.out
    assert numbers(told.values, GRES_NUMBERS)


def test_predictions_of_another_benchmark_are_no_score_of_0(command: Command) -> None:
    told = command.score("gres", GRES, [{"id": "elsewhere", "mask": None}])
    assert (told.code, told.report) == (1, {})
    assert "none of the 1 predictions is for a target" in told.err
    assert "elsewhere" in told.err


def test_the_same_prediction_again_counts_once(command: Command) -> None:
    told = command.score("gres", GRES, [*GRES_MASKS, GRES_MASKS[0]])
    assert told.report["repeated"] == 1
    assert numbers(told.values, GRES_NUMBERS)


def test_another_prediction_of_the_same_sample_is_refused(command: Command) -> None:
    told = command.score("gres", GRES, [*GRES_MASKS, {"id": "hit", "mask": None}])
    assert told.code == 1
    assert "predictions.jsonl, line 5: predicts 'hit', as line 1 does, but not the same" in told.err


# Mistakes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "no JSON"),
        ("[1]", "has an 'id', a text, and 'reply' or 'boxes'"),
        ('{"id": "b"}', "has an 'id', a text, and 'reply' or 'boxes'"),
        ('{"id": 2, "boxes": []}', "has an 'id', a text"),
        ('{"id": "", "boxes": []}', "$.id"),
        ('{"id": "b", "mask": null}', "'reply' or 'boxes'"),
        ('{"id": "b", "reply": 7}', "$.reply"),
        ('{"id": "b", "boxes": [[1, 2, 3]]}', "$.boxes[0]"),
        ('{"id": "b", "boxes": [[1, 2, 3, "4"]]}', "$.boxes[0][3]"),
        ('{"id": "b", "boxes": [[1, 2, 3, NaN]]}', "NaN is not JSON"),
        ('{"id": "b", "boxes": [[1, 2, 3, 1e999]]}', "not finite"),
        (f'{{"id": "b", "boxes": [[1, 2, 3, {10**400}]]}}', "too large"),
        ('{"id": "b", "boxes": [], "\\ud800": 1}', "no JSON"),
        ('{"id": "b", "boxes": [], "stauts": "ok"}', "'stauts' was unexpected"),
        ('{"id": "b", "boxes": [], "status": "missing"}', "$.status"),
        ('{"id": "b", "boxes": [], "status": "ok"}', "$.boxes"),
        ('{"id": "b", "boxes": [[1, 2, 3, 4]], "status": "unparseable"}', "$.boxes"),
        ('{"doc_id": 1, "resps": [[7]], "grounding": {"id": "b"}}', "no sample of lmms-eval"),
    ],
)
def test_a_wrong_line_is_named(command: Command, line: str, message: str) -> None:
    told = command.score("rsvg", RSVG, [RSVG_BOXES[0], line, *RSVG_BOXES[2:]])
    assert (told.code, told.report) == (1, {})
    assert "predictions.jsonl, line 2: " in told.err
    assert message in told.err


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (run(100, 0, 50), "100 x 1"),
        ({"size": [200, 1], "counts": [0, 50]}, "50"),
        ({"size": [200, 1], "counts": "x"}, ""),
        ({"size": [200, 1]}, "'counts' is a required property"),
        ([[0, 0, 5, 5, 9, 9]], "$.mask"),
    ],
)
def test_a_wrong_mask_is_named(command: Command, mask: Any, message: str) -> None:
    told = command.score("gres", GRES, [GRES_MASKS[0], {"id": "alarm", "mask": mask}])
    assert told.code == 1
    assert "predictions.jsonl, line 2: " in told.err
    assert message in told.err


def test_there_is_one_score_a_box_or_none(command: Command) -> None:
    told = command.score("mmscan", MMSCAN, [{"id": "two", "boxes3d": [cuboid(0)], "scores": []}])
    assert told.code == 1
    assert "predictions.jsonl, line 1: scores: 0 for 1 boxes" in told.err


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"width": 0}, "$.width"),
        ({"target": {"size": [3, 3], "counts": "09"}}, "3 x 3"),
        ({"id": "hit"}, "the id 'hit' again"),
    ],
)
def test_a_wrong_target_is_named(command: Command, changed: Line, message: str) -> None:
    told = command.score("gres", [GRES[0], {**GRES[1], **changed}], GRES_MASKS)
    assert told.code == 1
    assert "targets.jsonl, line 2: " in told.err
    assert message in told.err


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("nobody", "unknown profile 'nobody'"),
        ("text4seg_16", "does not say how a box is written"),
    ],
)
def test_a_profile_that_reads_no_boxes_is_refused(
    command: Command, profile: str, message: str
) -> None:
    told = command.score("rsvg", RSVG, [{"id": "a", "reply": "x"}], "--profile", profile)
    assert told.code == 1
    assert "predictions.jsonl, line 1: " in told.err
    assert message in told.err


def test_numbers_that_cannot_be_written_are_refused_before_the_work(command: Command) -> None:
    told = command("score", "rsvg", "--predictions", "none", "--json", "nowhere/report.json")
    assert told.code == 1
    assert "nowhere is no folder" in told.err


def test_predictions_that_are_no_file_are_refused(command: Command) -> None:
    targets = command.write("targets.jsonl", RSVG)
    told = command("score", "rsvg", "--targets", targets, "--predictions", command.folder)
    assert told.code == 1
    assert "no file; predictions are read twice" in told.err


def test_a_missing_split_is_named(command: Command) -> None:
    predictions = command.write("predictions.jsonl", RSVG_BOXES)
    told = command("score", "rsvg", "--mini", "--split", "val", "--predictions", predictions)
    assert told.code == 1
    assert "no data/val-*.parquet; name another --split" in told.err


def test_a_number_too_large_for_a_target_is_named(command: Command) -> None:
    told = command.score("rsvg", [RSVG[0], rsvg("b", [0, 0, 10**400, 10])], RSVG_BOXES[:1])
    assert told.code == 1
    assert "targets.jsonl, line 2: " in told.err


def test_predictions_are_not_overwritten(command: Command) -> None:
    predictions = command.write("predictions.jsonl", RSVG_BOXES)
    before = predictions.read_text()
    for option in ("--json", "--partial"):
        told = command("score", "rsvg", "--mini", "--predictions", predictions, option, predictions)
        assert told.code == 1
        assert "the predictions would be overwritten" in told.err
    assert predictions.read_text() == before


def test_targets_that_can_be_read_once_only_are_refused(command: Command) -> None:
    pipe = command.folder / "pipe"
    os.mkfifo(pipe)
    predictions = command.write("predictions.jsonl", RSVG_BOXES)
    told = command("score", "rsvg", "--targets", pipe, "--predictions", predictions)
    assert told.code == 1
    assert "targets are read twice" in told.err


def test_a_negative_seed_is_refused_before_the_work(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command("merge", "none", "--seed", "-1")
    assert "give 0 or a positive whole number" in capsys.readouterr().err


# What is written


def test_what_a_parser_read_is_scored_like_the_reply(command: Command) -> None:
    from lmms_eval_grounding.parsing.boxes import parse_boxes
    from lmms_eval_grounding.parsing.profile import load_profile

    replies = {
        "a": "[[100, 100, 300, 300], [0, 0, 9, 9]]",
        "b": "[333, 300, 100, 200]",
        "c": "[900, 900, 1020, 1001]",
        "d": "[5, 5, 5, 5]",
        "e": "none",
        "f": "",
    }
    given = []
    for id, reply in replies.items():
        read = parse_boxes(reply, load_profile("prompt"), 100, 100)
        given.append({"id": id, "boxes": list(read.boxes), "status": read.status})
    assert {line["status"] for line in given} == {"ok", "malformed", "no_target", "unparseable"}
    as_replies = [{"id": id, "reply": reply} for id, reply in replies.items()]
    first, again = (command.score("rsvg", RSVG, lines) for lines in (as_replies, given))
    assert first.report.pop("profiles") == ["prompt"]
    assert again.report.pop("profiles") == []
    assert first.report == again.report


def test_the_report_meets_its_schema_and_takes_the_place_of_another(command: Command) -> None:
    told = command.score("gres", GRES, GRES_MASKS)
    check(told.report, "records/score_report.json")
    again = command.score("gres", GRES, [*GRES_MASKS, '{"id"'])
    assert again.report == {}
    written = command.folder / "report.json"
    written.write_text("before")
    command(
        "score", "gres", "--targets", command.folder / "targets.jsonl", "--resamples", 2,
        "--predictions", command.write("good.jsonl", GRES_MASKS), "--json", written,
    )  # fmt: skip
    assert json.loads(written.read_text())["samples"] == 4
    assert not [path.name for path in command.folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("form", ["reply", "boxes", "mask", "boxes3d"])
def test_schemas_of_predictions_are_schemas(form: str) -> None:
    schema = validator(f"records/predicted_{form}.json")
    assert list(schema.iter_errors({"id": "1"}))
    assert not list(
        schema.iter_errors({"id": "1", form: None if form in ("reply", "mask") else []})
    )


# Shards


def shards(lines: list[Line], count: int) -> list[list[Line]]:
    random.Random(0).shuffle(lines)
    return [lines[number::count] for number in range(count)]


@pytest.mark.parametrize("whole_targets", [False, True])
def test_merged_shards_are_bit_identical_to_scoring_at_once(
    command: Command, whole_targets: bool
) -> None:
    generator = random.Random(1)
    docs, predictions = [], []
    for number in range(60):
        target = run(200, generator.randrange(100), generator.randrange(1, 100))
        docs.append(gres(str(number), target if number % 3 else None))
        mask = run(200, generator.randrange(100), generator.randrange(100))
        if number % 10:
            predictions.append({"id": str(number), "mask": mask if number % 4 else None})
    predictions.append({"id": "stranger", "mask": None})
    at_once = command.score("gres", docs, predictions)
    parts = []
    for number, shard in enumerate(shards(predictions, 3)):
        lines = shard if predictions[5] in shard else [*shard, predictions[5]]
        targets = docs
        if not whole_targets:  # sample 0, which has no prediction, in all; the others in one
            ids = {line["id"] for line in lines} | {"0"}
            others = [doc["id"] for doc in docs if not int(doc["id"]) % 10] if number == 0 else []
            targets = [doc for doc in docs if doc["id"] in ids.union(others)]
        parts.append(command.folder / f"part{number}.records")
        told = command(
            "score", "gres", "--targets", command.write(f"targets{number}.jsonl", targets),
            "--predictions", command.write(f"shard{number}.jsonl", lines), "--partial", parts[-1],
        )  # fmt: skip
        assert told.code == 0, told.err
        assert "records: " in told.out
    merged = command.reported("merge", *reversed(parts))
    assert merged.report.pop("repeated") == 2
    assert at_once.report.pop("repeated") == 0
    assert merged.report == at_once.report
    assert merged.report["missing"]["count"] == 6
    assert merged.report["unknown"] == {"count": 1, "first": ["stranger"]}


@pytest.fixture
def part(command: Command) -> list[str]:
    """Return the lines of a file of records."""
    path = command.folder / "one.records"
    command(
        "score", "gres", "--targets", command.write("targets.jsonl", GRES),
        "--predictions", command.write("predictions.jsonl", GRES_MASKS), "--partial", path,
    )  # fmt: skip
    return path.read_text("utf-8").splitlines()


def test_a_file_of_records_holds_records(part: list[str]) -> None:
    header, *records = map(json.loads, part)
    check(header, "records/score_partial.json")
    assert [record["id"] for record in records] == [doc["id"] for doc in GRES]
    assert header["options"] == {"min_pixels": 1}


def test_records_that_contradict_each_other_are_refused(command: Command, part: list[str]) -> None:
    other = [line.replace('"union": 100', '"union": 101') for line in part]
    assert other != part
    told = command("merge", command.write("one.records", part), command.write("two.records", other))
    assert told.code == 1
    assert "two.records, line 2: another record of 'hit' than " in told.err
    assert "one.records, line 2" in told.err


def test_predictions_apart_from_their_targets_are_refused(command: Command) -> None:
    """At once all four are predicted; apart, two targets would count as failures."""
    parts = []
    for name, docs, masks in (("a", GRES[:2], GRES_MASKS[::2]), ("b", GRES[2:], GRES_MASKS[1::2])):
        parts.append(command.folder / f"{name}.records")
        command(
            "score", "gres", "--targets", command.write(f"{name}.jsonl", docs),
            "--predictions", command.write(f"{name}_masks.jsonl", masks), "--partial", parts[-1],
        )  # fmt: skip
    told = command("merge", *parts)
    assert told.code == 1
    assert "the predictions of ['miss', 'rejected'] were scored in one file" in told.err


def test_records_of_another_benchmark_are_refused(command: Command, part: list[str]) -> None:
    header = part[0].replace('"gres"', '"refsegrs"').replace('{"min_pixels": 1}', "{}")
    other = [header, *part[1:]]
    told = command("merge", command.write("one.records", part), command.write("two.records", other))
    assert told.code == 1
    assert "two.records: benchmark refsegrs, but gres in " in told.err


def test_records_of_other_options_are_refused(command: Command, part: list[str]) -> None:
    other = [part[0].replace('"min_pixels": 1', '"min_pixels": 9'), *part[1:]]
    told = command("merge", command.write("one.records", part), command.write("two.records", other))
    assert told.code == 1
    assert "options {'min_pixels': 9}, but {'min_pixels': 1} in " in told.err


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: no file of `score --partial`"),
        (['{"id": "a"}'], "line 1: no file of `score --partial`"),
        (None, "3 records where its first line tells 4"),
    ],
)
def test_what_is_no_file_of_records_is_refused(
    command: Command, part: list[str], lines: list[str] | None, message: str
) -> None:
    told = command("merge", command.write("two.records", part[:-1] if lines is None else lines))
    assert told.code == 1
    assert message in told.err


def test_a_partial_has_no_numbers(command: Command) -> None:
    told = command(
        "score", "gres", "--predictions", "none", "--partial", command.folder / "a",
        "--json", command.folder / "b",
    )  # fmt: skip
    assert told.code == 1
    assert "give --json to merge" in told.err


# Prepared data, the log of a run, and what is not imported


def test_min_pixels_of_the_log_of_a_run_hold_unless_others_are_given(command: Command) -> None:
    nine = '{"segmentation": {"size": [200, 1], "counts": [0, 9, 191]}}'
    log = [
        {
            "doc_id": 3,
            "resps": [[nine]],
            "grounding": {"id": "alarm", "reason": None, "profile": "sam3", "min_pixels": 10},
        }
    ]
    read_as = command.score("gres", GRES, log, "--only-predicted")
    assert read_as.report["options"] == {"min_pixels": 10}
    changed = command.score("gres", GRES, log, "--only-predicted", "--min-pixels", "2")
    assert changed.report["options"] == {"min_pixels": 2}
    mixed = [*log, {**log[0], "grounding": {**log[0]["grounding"], "id": "hit", "min_pixels": 1}}]
    told = command.score("gres", GRES, mixed)
    assert told.code == 1
    assert "min_pixels of [1, 10]" in told.err


def test_replies_are_read_with_the_profile_of_the_log_unless_another_is_given(
    command: Command,
) -> None:
    def logged(profile: str) -> Line:
        reading = {"id": "a", "reason": None, "profile": profile}
        return {"doc_id": 0, "resps": [['{"bbox_2d": [10, 10, 30, 30]}']], "grounding": reading}

    def share(profile: str, *options: str) -> float | None:
        told = command.score("rsvg", RSVG, [logged(profile)], "--only-predicted", *options)
        return told.values["Pr@0.9"]

    assert share("qwen3_vl") == 0  # in thousandths of an image of 100 x 100
    pixels = "qwen2_5_vl:min_pixels=784,max_pixels=784"  # the model saw 28 x 28
    assert share(pixels) == 0
    assert share("qwen3_vl", "--profile", "pixel") == 100
    told = command.score("rsvg", RSVG, [logged(pixels), {"id": "b", "reply": "What?"}])
    assert told.report["profiles"] == ["prompt", pixels]


def test_a_log_without_readings_is_found_by_the_position(command: Command) -> None:
    replies = ["no", '{"bbox_2d": [100, 100, 300, 300]}']
    log = [{"doc_id": 1 - n, "filtered_resps": [replies[1 - n]]} for n in range(2)]
    told = command.score("rsvg", RSVG[:2], log)
    assert numbers(told.values, {"Pr@0.9": 50, "parse_unparseable": 1 / 2})


FORM = {"rsvg": "boxes", "gres": "mask", "refsegrs": "mask", "mmscan": "boxes3d"}
NEITHER_HOST_NOR_TORCH = """
import json, sys
from lmms_eval_grounding import cli
for arguments in json.loads(sys.argv[1]):
    print("RUN")
    assert cli.main(arguments) == 0
sys.exit(str({'lmms_eval', 'torch', 'datasets'} & set(sys.modules) or ''))
"""


def test_prepared_data_are_scored_without_the_host_torch_or_datasets(command: Command) -> None:
    runs, sizes = [], []
    for benchmark, form in {**FORM, "mmscan_candidates": "reply"}.items():
        folder = mini_path(benchmark.removesuffix("_candidates"))
        (file,) = Path(folder).glob("data/*.parquet")
        ids = pq.read_table(file, columns=["id"])["id"].to_pylist()
        sizes.append(len(ids))
        nothing = None if form in ("mask", "reply") else []
        lines = [{"id": id, form: nothing} for id in ids[1:]] + [{"id": ids[0], "reply": "What?"}]
        predictions = str(command.write(f"{benchmark}.jsonl", lines))
        arguments = ["score", benchmark, "--predictions", predictions, "--resamples", "10"]
        runs += [[*arguments, "--mini"], [*arguments, "--targets", folder]]
    done = subprocess.run(
        [sys.executable, "-c", NEITHER_HOST_NOR_TORCH, json.dumps(runs)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr.strip() == ""
    _, *told = done.stdout.split("RUN\n")
    assert told[::2] == told[1::2]
    assert [int(text.split(maxsplit=1)[0]) for text in told[::2]] == sizes


@pytest.mark.parametrize("words", [["score"], ["score", "gres"], ["merge"]])
def test_help_shows_an_example(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from lmms_eval_grounding import cli

    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    assert "lmms-eval-grounding " + words[0] in capsys.readouterr().out
