"""gRefCOCO: from the official files to parquet, what stops it, and what ``check`` finds."""

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY
from PIL import Image
from prepared import digests, put, rewrite, rows, script

from lmms_eval_grounding.data import gres_instances, location
from lmms_eval_grounding.data.errors import MissingData, OutputError, SourceError
from lmms_eval_grounding.data.gres import check, prepare
from lmms_eval_grounding.data.gres_release import RELEASES, release_of
from lmms_eval_grounding.data.manifest import Manifest, read_manifest

MINI = REPOSITORY / "plugin/lmms_eval_grounding/data/mini/gres"


def jpeg(width: int = 12, height: int = 8, **options: object) -> bytes:
    stream = io.BytesIO()
    Image.effect_noise((width, height), 40).convert("RGB").save(stream, "JPEG", **options)
    return stream.getvalue()


def square(x1: float, y1: float, x2: float, y2: float) -> list[float]:
    return [x1, y1, x2, y1, x2, y2, x1, y2]


class Tree:
    """The official files in a temporary folder, written when they are converted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.references: list[dict] = []
        self.images: list[dict] = []
        self.annotations: list[dict] = []
        (root / "images" / "train2014").mkdir(parents=True)

    def jpg(self, image_id: int) -> Path:
        return self.root / "images" / "train2014" / f"COCO_train2014_{image_id:012}.jpg"

    def image(self, image_id: int) -> None:
        entry = {"id": image_id, "file_name": self.jpg(image_id).name, "width": 12, "height": 8}
        self.images.append(entry)
        self.jpg(image_id).write_bytes(jpeg())

    def annotate(self, ann_id: int, image_id: int, *polygons: object, **fields: object) -> None:
        entry = {"id": ann_id, "image_id": image_id, "iscrowd": 0, "segmentation": list(polygons)}
        self.annotations.append({**entry, **fields})

    def refer(
        self, image_id: int, ann_ids: object, *texts: str, split: str = "val", **fields: object
    ) -> dict:
        first = sum(len(each["sentences"]) for each in self.references)
        entry = {
            "ref_id": len(self.references),
            "image_id": image_id,
            "split": split,
            "ann_id": ann_ids,
            "category_id": [1],
            "no_target": ann_ids == [-1],
            "file_name": f"COCO_train2014_{image_id:012}_{ann_ids}.jpg",
            "sentences": [
                {"sent_id": first + number, "raw": text, "sent": text.lower().strip(), "tokens": []}
                for number, text in enumerate(texts)
            ],
        }
        self.references.append({**entry, **fields})
        return self.references[-1]

    def write(self) -> None:
        instances = {"images": self.images, "annotations": self.annotations, "categories": []}
        (self.root / "grefs(unc).json").write_text(json.dumps(self.references))
        (self.root / "instances.json").write_text(json.dumps(instances))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return two images of 12 x 8 pixels; refs 0 to 3 with the rows 0/0, 1/1, 1/2, 2/3, 3/4."""
    made = Tree(tmp_path / "grefcoco")
    made.image(1)
    made.image(2)
    made.annotate(11, 1, square(1, 1, 5, 4))
    made.annotate(12, 1, square(3, 2, 8, 6))
    made.annotate(21, 2, square(0, 0, 2, 2), square(4, 4, 6, 8))
    made.refer(1, [11], "one")
    made.refer(1, [11, 12], "two", "two again")
    made.refer(2, [-1], "none")
    made.refer(2, [21], "three")
    return made


def quietly(tree: Tree, output: Path, **options: object) -> Manifest:
    tree.write()
    return prepare(tree.root, output, progress=False, **options)


def pixels(target: dict) -> list[str]:
    """Return a mask row by row, by pycocotools alone."""
    from pycocotools import mask as coco_mask

    array = coco_mask.decode({**target, "counts": target["counts"].encode("ascii")})
    return ["".join(".#"[pixel] for pixel in row) for row in array.tolist()]


# What comes out


def test_a_row_is_a_sentence(tree: Tree, tmp_path: Path) -> None:
    text = "  Two  Spaces; a typo ;ike this, \u2018quotes\u2019\ta tab "
    tree.references[1]["sentences"][1]["raw"] = text
    quietly(tree, tmp_path / "out")
    table = rows(tmp_path / "out", "val")
    assert [row["id"] for row in table] == ["0/0", "1/1", "1/2", "2/3", "3/4"]
    assert table[2] == {
        "id": "1/2",
        "image": {"bytes": None, "path": str(tree.jpg(1))},
        "expression": text,
        "target": table[1]["target"],
        "width": 12,
        "height": 8,
        "ref_id": 1,
        "sent_id": 2,
        "ann_ids": [11, 12],
        "file": "COCO_train2014_000000000001.jpg",
    }
    assert (table[3]["target"], table[3]["ann_ids"]) == (None, [])


def test_targets_are_united_at_the_size_of_the_image(tree: Tree, tmp_path: Path) -> None:
    quietly(tree, tmp_path / "out")
    one, two, _, _, three = rows(tmp_path / "out", "val")
    assert pixels(one["target"]) == [
        "............",
        ".####.......",
        ".####.......",
        ".####.......",
        "............",
        "............",
        "............",
        "............",
    ]
    assert pixels(two["target"]) == [
        "............",
        ".####.......",
        ".#######....",
        ".#######....",
        "...#####....",
        "...#####....",
        "............",
        "............",
    ]
    assert pixels(three["target"]) == [
        "##..........",
        "##..........",
        "............",
        "............",
        "....##......",
        "....##......",
        "....##......",
        "....##......",
    ]
    assert two["target"]["size"] == [8, 12]


@pytest.mark.parametrize("counts", [[0, 1, 95], "01o2"])
def test_a_mask_that_is_no_crowd_is_taken(tree: Tree, tmp_path: Path, counts: object) -> None:
    tree.annotations[0]["segmentation"] = {"size": [8, 12], "counts": counts}
    quietly(tree, tmp_path / "out")
    assert pixels(rows(tmp_path / "out", "val")[0]["target"]) == ["#" + "." * 11, *["." * 12] * 7]


def test_ids_without_a_list_and_no_target_without_its_flag(tree: Tree, tmp_path: Path) -> None:
    tree.references[0] |= {"ann_id": 11, "category_id": 1}
    tree.references[2] |= {"ann_id": -1, "category_id": -1}
    del tree.references[0]["no_target"], tree.references[2]["no_target"]
    quietly(tree, tmp_path / "out")
    table = rows(tmp_path / "out", "val")
    assert [row["ann_ids"] for row in table] == [[11], [11, 12], [11, 12], [], [21]]
    assert [row["target"] is None for row in table] == [False, False, False, True, False]


def test_a_reference_without_sentences_makes_no_row(tree: Tree, tmp_path: Path) -> None:
    tree.refer(99, [99])
    assert quietly(tree, tmp_path / "out").splits == {"val": 5}


def test_rows_of_an_image_stand_together_in_the_order_of_the_file(
    tree: Tree, tmp_path: Path
) -> None:
    tree.references.reverse()
    quietly(tree, tmp_path / "out")
    found = [row["id"] for row in rows(tmp_path / "out", "val")]
    assert found == ["3/4", "2/3", "1/1", "1/2", "0/0"]
    tree.references.append(tree.references.pop(0))
    quietly(tree, tmp_path / "out")
    found = [row["id"] for row in rows(tmp_path / "out", "val")]
    assert found == ["2/3", "3/4", "1/1", "1/2", "0/0"]


def test_splits_are_chosen_and_those_without_a_sentence_are_said(
    tree: Tree, tmp_path: Path
) -> None:
    tree.refer(1, [12], "of train", split="train")
    tree.refer(1, [99], "of an annotation that is not there", split="testB")
    manifest = quietly(tree, tmp_path / "out", splits=["testA", "val", "train"])
    assert manifest.splits == {"val": 5, "train": 1}
    assert manifest.not_made == {"testA": "grefs(unc).json has no sentence of it"}
    assert rows(tmp_path / "out", "train")[0]["expression"] == "of train"
    assert check(tmp_path / "out") == []
    with pytest.raises(SourceError, match=r"grefs\(unc\)\.json: nothing to make, .* of testA"):
        quietly(tree, tmp_path / "out", splits=["testA"])
    for splits in (["test"], []):
        with pytest.raises(ValueError, match="gres has the splits val, testA, testB, train, not"):
            quietly(tree, tmp_path / "out", splits=splits)


def test_the_manifest_tells_what_was_made(tree: Tree, tmp_path: Path) -> None:
    tree.annotate(13, 1, square(20, 20, 30, 30))
    tree.refer(1, [13], "outside of the image")
    manifest = quietly(tree, tmp_path / "out", splits=["val"])
    assert manifest.sentences() == [
        "gres: unknown release (val 6, 1 without target), from grefcoco",
        "val: 6 rows",
    ]
    assert manifest.details == {
        "images": str(tree.root / "images" / "train2014"),
        "without_target": {"val": 1},
        "empty_targets": {"val": 1},
    }
    assert read_manifest(tmp_path / "out") == manifest


# What an evaluator leaves out


def test_crowds_and_invalid_polygons_are_left_out_and_counted(tree: Tree, tmp_path: Path) -> None:
    crowd = {"size": [8, 12], "counts": [0, 96]}
    tree.annotate(13, 1, segmentation=crowd, iscrowd=1)
    bad = ([1, 1, 9, 9], square(0, 0, 9, 9)[:-1], [*square(0, 0, 9, 9)[:-1], float("nan")], [])
    tree.annotations[0]["segmentation"] += bad
    tree.annotate(14, 1, [0, 0, 9, 9], [0, 0, float("inf"), 0, 9, 9])
    tree.annotate(15, 1)
    tree.refer(1, [13, 11], "with the crowd")
    tree.refer(1, [13, 11, 14, 15], "with the crowd and others", "again")
    manifest = quietly(tree, tmp_path / "out")
    table = {row["id"]: row for row in rows(tmp_path / "out", "val")}
    assert table["4/5"]["target"] == table["5/6"]["target"] == table["0/0"]["target"]
    assert pixels(table["0/0"]["target"])[1] == ".####......."
    assert table["4/5"]["ann_ids"] == [13, 11]
    # Once each, however many sentences and references name them.
    assert manifest.left_out_counts == {
        "val": {
            "annotations without a polygon": 1,
            "crowd annotations": 1,
            "polygons of fewer than 6 numbers or of an odd count": 4,
            "polygons with a coordinate that is no finite number": 2,
        }
    }
    assert manifest.left_out == []
    assert check(tmp_path / "out") == []


@pytest.mark.parametrize(
    "annotation",
    [
        {"segmentation": {"size": [8, 12], "counts": [0, 96]}, "iscrowd": 1},
        {"segmentation": [[1, 1, 9, 9]]},
        {"segmentation": []},
    ],
)
def test_sentences_of_which_no_mask_is_left_cannot_be_scored(
    tree: Tree, tmp_path: Path, annotation: dict
) -> None:
    tree.annotate(13, 1, **annotation)
    tree.refer(1, [13], "all that it means is left out", "so is this")
    manifest = quietly(tree, tmp_path / "out")
    assert manifest.splits == {"val": 5}
    reason = "sentences whose every annotation is a crowd or has no valid polygon"
    assert manifest.left_out_counts["val"][reason] == 2
    assert f"left out of val: 2 {reason}" in manifest.sentences()
    assert check(tmp_path / "out") == []
    tree.references = tree.references[-1:]
    with pytest.raises(SourceError, match=f"val: every sentence was left out; the first: {reason}"):
        quietly(tree, tmp_path / "out")


def test_an_annotation_is_rasterised_once(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part_of, done = gres_instances.part_of, []

    def noted(annotation: dict, height: int, width: int) -> object:
        done.append(annotation["id"])
        return part_of(annotation, height, width)

    monkeypatch.setattr(gres_instances, "part_of", noted)
    quietly(tree, tmp_path / "out")
    assert done == [11, 12, 21]


# Images


def load(folder: Path, cache: Path) -> object:
    import datasets

    return datasets.load_dataset(str(folder), cache_dir=str(cache))["val"]


@pytest.mark.parametrize("embed_images", [False, True])
def test_datasets_reads_the_folder_and_decodes_the_image(
    tree: Tree, tmp_path: Path, embed_images: bool
) -> None:
    manifest = quietly(tree, tmp_path / "out", embed_images=embed_images)
    loaded = load(tmp_path / "out", tmp_path / "cache")
    assert loaded.num_rows == 5
    assert isinstance(loaded[0]["image"], Image.Image)
    assert loaded[0]["image"].size == (12, 8)
    assert loaded[1]["target"]["size"] == [8, 12]
    assert loaded[3]["target"] is None
    stored = rows(tmp_path / "out", "val")[0]["image"]
    if embed_images:
        assert stored == {"bytes": tree.jpg(1).read_bytes(), "path": tree.jpg(1).name}
        assert manifest.details["images"] is None
        shutil.rmtree(tree.root)
        assert check(tmp_path / "out") == []


def test_images_that_were_moved_are_said_before_a_run_and_by_check(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDING_DATA", str(tmp_path))
    quietly(tree, tmp_path / "gres")
    assert location.gres_val == str(tmp_path / "gres")
    loaded = load(tmp_path / "gres", tmp_path / "cache")
    folder = tree.root / "images" / "train2014"
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(MissingData) as caught:
        _ = location.gres_val
    assert str(caught.value) == (
        f"gres: {tmp_path / 'gres'} needs the images in {folder}, which is no folder any more; put "
        "them back, or make it again with: lmms-eval-grounding prepare gres --source GREFCOCO"
    )
    with pytest.raises(FileNotFoundError, match=re.escape(str(tree.jpg(1)))):
        _ = loaded[0]
    problems = check(tmp_path / "gres")
    assert len(problems) == 2  # one an image
    assert re.search(r"row 0 \(id 0/0\): image .*1\.jpg: cannot be read \(\[Errno 2\]", problems[0])


def test_embedded_images_are_stored_once_per_group_of_rows(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "grefcoco")
    for image_id in (1, 2):
        tree.image(image_id)
        tree.jpg(image_id).write_bytes(jpeg(comment=bytes([image_id]) * 60_000))
    for number in range(40):
        tree.refer(1 + number % 2, [-1], f"number {number}")
    quietly(tree, tmp_path / "out", embed_images=True)
    group = pq.ParquetFile(tmp_path / "out/data/val-00000-of-00001.parquet").metadata.row_group(0)
    assert group.column(1).path_in_schema == "image.bytes"
    assert 120_000 < group.column(1).total_uncompressed_size < 180_000


@pytest.mark.parametrize(
    ("inside", "images", "named"),
    [
        (".", "images/train2014", "."),
        (".", "train2014", "."),
        ("grefcoco", "images/train2014", "."),
        ("grefcoco", "images/mscoco/images/train2014", "."),
        ("grefcoco", "images/coco_2014/train2014", "."),
        ("grefcoco", "images/train2014", "grefcoco"),
        ("grefcoco", "grefcoco/images/train2014", "grefcoco"),
    ],
)
def test_the_trees_of_the_usual_evaluators(
    tree: Tree, tmp_path: Path, inside: str, images: str, named: str
) -> None:
    tree.write()
    root = tmp_path / "refer_seg"
    (root / inside).mkdir(parents=True)
    for name in ("grefs(unc).json", "instances.json"):
        (tree.root / name).rename(root / inside / name)
    (root / images).parent.mkdir(parents=True, exist_ok=True)
    (tree.root / "images" / "train2014").rename(root / images)
    prepare(root / named, tmp_path / "out", progress=False)
    expected = root / images / "COCO_train2014_000000000001.jpg"
    assert rows(tmp_path / "out", "val")[0]["image"]["path"] == str(expected)


def test_images_that_lie_elsewhere_are_named(tree: Tree, tmp_path: Path) -> None:
    (tree.root / "images" / "train2014").rename(tmp_path / "coco")
    with pytest.raises(SourceError, match=r"images/train2014: no such folder; a gRefCOCO folder"):
        quietly(tree, tmp_path / "out")
    quietly(tree, tmp_path / "out", images=tmp_path / "coco")
    path = rows(tmp_path / "out", "val")[0]["image"]["path"]
    assert path == str(tmp_path / "coco" / "COCO_train2014_000000000001.jpg")
    with pytest.raises(SourceError, match="nowhere: no such folder"):
        quietly(tree, tmp_path / "out", images=tmp_path / "nowhere")


# Broken sources


def test_the_pickle_is_refused_with_the_reason(tree: Tree, tmp_path: Path) -> None:
    tree.write()
    (tree.root / "grefs(unc).json").rename(tree.root / "grefs(unc).p")
    with pytest.raises(SourceError, match=r"grefs\(unc\)\.p: not read, since unpickling .* runs"):
        prepare(tree.root, tmp_path / "out", progress=False)


@pytest.mark.parametrize("name", ["grefs(unc).json", "instances.json", "."])
def test_a_missing_file_is_named_with_the_layout(tree: Tree, tmp_path: Path, name: str) -> None:
    tree.write()
    path = tree.root / name
    path.unlink() if path.is_file() else shutil.rmtree(path)
    with pytest.raises(SourceError, match=r"no such f.*; a gRefCOCO folder holds grefs") as caught:
        prepare(tree.root, tmp_path / "out", progress=False)
    assert str(caught.value).startswith(str(path))


FILES = {
    "cut": ('[{"ref_id": 1,', r"not JSON \(line 1, column 15: Expecting"),
    "empty": ("", r"not JSON \(line 1, column 1: Expecting value\)"),
    "pointer": ("version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer.*git lfs pull"),
    "huge number": ("9" * 5000, "not JSON .*digits"),
    "deep": ("[" * 200_000, "not JSON .*recursion"),
    "other bytes": ("\udcff", "not JSON"),
    "other JSON": ("7", "not a list of references|not a JSON object"),
}


@pytest.mark.parametrize("name", ["grefs(unc).json", "instances.json"])
@pytest.mark.parametrize("fault", FILES)
def test_a_file_that_is_no_such_json(tree: Tree, tmp_path: Path, name: str, fault: str) -> None:
    text, message = FILES[fault]
    tree.write()
    (tree.root / name).write_text(text, errors="surrogateescape")
    for skip_broken in (False, True):
        with pytest.raises(SourceError, match=f"{re.escape(name)}: {message}"):
            prepare(tree.root, tmp_path / "out", skip_broken, progress=False)


INSTANCES = {
    "no images": (lambda tree: setattr(tree, "images", None), "has no list of images"),
    "an image without id": (lambda tree: tree.images.append({}), r"images\[2\] is {}, which has"),
    "an annotation of text": (
        lambda tree: tree.annotations.append("x"),
        r"annotations\[3\] is 'x'",
    ),
    "one id twice": (lambda tree: tree.annotate(11, 1), r"annotations\[3\] has the id 11 of anoth"),
}


@pytest.mark.parametrize("fault", INSTANCES)
def test_instances_that_cannot_be_told_apart(tree: Tree, tmp_path: Path, fault: str) -> None:
    change, message = INSTANCES[fault]
    change(tree)
    with pytest.raises(SourceError, match=r"instances\.json: " + message):
        quietly(tree, tmp_path / "out", skip_broken=True)


def test_an_entry_that_is_there_twice_alike_is_no_fault(tree: Tree, tmp_path: Path) -> None:
    tree.annotations.append(tree.annotations[0])
    assert quietly(tree, tmp_path / "out").splits == {"val": 5}


def reference(**fields: object) -> Callable[[Tree], object]:
    return lambda tree: tree.references[3].update(fields)


def sentence(**fields: object) -> Callable[[Tree], object]:
    return lambda tree: tree.references[3]["sentences"][0].update(fields)


def annotation(**fields: object) -> Callable[[Tree], object]:
    return lambda tree: tree.annotations[2].update(fields)


def image(**fields: object) -> Callable[[Tree], object]:
    def change(tree: Tree) -> None:
        tree.images[1].update(fields)
        del tree.references[2]  # it shares the image

    return change


def picture(data: Callable[[Tree], bytes]) -> Callable[[Tree], object]:
    def change(tree: Tree) -> None:
        tree.jpg(2).write_bytes(data(tree))
        del tree.references[2]

    return change


def turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return jpeg(exif=exif)


REF = r"grefs\(unc\)\.json, entry 3 \(ref_id 3\): "
ANN = r"instances\.json: annotation 21"
IMG = r"instances\.json: image 2 "
JPG = r"train2014/COCO_train2014_000000000002\.jpg: "
BOTH = "a reference without a target has true"
BROKEN = {
    "true and ids": (reference(no_target=True), REF + r"no_target is true while ann_id is \[21\]"),
    "false and -1": (reference(ann_id=[-1]), REF + r"no_target is false while ann_id is \[-1\]"),
    "true and nothing": (reference(ann_id=[], no_target=True), REF + f"no_target is true .*{BOTH}"),
    "nothing": (reference(ann_id=[]), REF + r"ann_id is \[\], not the ids"),
    "-1 and another": (reference(ann_id=[-1, 21]), REF + r"ann_id is \[-1, 21\], not the ids"),
    "ids of text": (reference(ann_id=["21"]), REF + r"ann_id is \['21'\], not the ids"),
    "ids null": (reference(ann_id=None), REF + "ann_id is None, not the ids"),
    "true as an id": (reference(ann_id=[True]), REF + r"ann_id is \[True\], not the ids"),
    "flag of text": (reference(no_target="no"), REF + "no_target is 'no', not true or false"),
    "image of text": (reference(image_id="2"), REF + "image_id is '2', not a whole number"),
    "number of text": (
        reference(ref_id="3"),
        r"grefs\(unc\)\.json, entry 3 \(ref_id '3'\): ref_id is '3', not a whole number",
    ),
    "too large": (reference(ref_id=2**63), r"entry 3 \(.*\): ref_id is 9223.*, not a whole number"),
    "no raw": (sentence(raw=None), REF + "sentence .* has no sent_id or no text raw"),
    "no sent_id": (sentence(sent_id=None), REF + "sentence .* has no sent_id or no text raw"),
    "blank": (sentence(raw=" \n"), REF + "sentence 4 is empty"),
    "half a character": (sentence(raw="a \ud83d"), REF + "sentence 4 has half a surrogate pair"),
    "id of another": (reference(ref_id=2, sentences=[{"sent_id": 3, "raw": "x"}]), None),
    "no annotation": (
        reference(ann_id=[22]),
        r"instances\.json: annotation 22 is missing \(of ref 3",
    ),
    "of another image": (annotation(image_id=1), ANN + r" is of image 1, not 2 \(of ref 3\)"),
    "crowd of text": (annotation(iscrowd="no"), ANN + ": iscrowd is 'no', not 0 or 1"),
    "no shape": (annotation(segmentation=None), ANN + ": segmentation is None, not a list"),
    "flat": (annotation(segmentation=square(0, 0, 2, 2)), ANN + ": segmentation is .*not a list"),
    "far outside": (annotation(segmentation=[square(0, 0, 1e9, 2)]), ANN + ": .*coordinate is 1"),
    "transposed": (
        annotation(segmentation={"size": [12, 8], "counts": [96]}),
        ANN + ": segmentation: a mask of 12 x 8 pixels .* where 8 x 12 are needed",
    ),
    "short runs": (
        annotation(segmentation={"size": [8, 12], "counts": [9, 2]}),
        ANN + ": segmentation: the runs add up to 11 pixels; the image has 96",
    ),
    "no image": (reference(image_id=3), r"instances\.json: image 3 is missing \(of ref 3\)"),
    "file elsewhere": (image(file_name="../x.jpg"), IMG + r"has the file_name '\.\./x\.jpg', not"),
    "no file name": (image(file_name=None), IMG + "has the file_name None"),
    "no size": (image(width=None), IMG + "has width None and height 8, not those of an image"),
    "size of zero": (image(height=0), IMG + "has width 12 and height 0"),
    "size too large": (image(width=60_000, height=60_000), IMG + "has width 60000 and"),
    "other size": (image(width=13), JPG + "the picture has 12 x 8 pixels, the annotation says 13"),
    "no file": (image(file_name="x.jpg"), r"train2014/x\.jpg: cannot be read \(No such file"),
    "strange name": (image(file_name="x\0"), r"train2014/x\x00: embedded null"),
    "cut": (picture(lambda tree: tree.jpg(1).read_bytes()[:-9]), JPG + "not a readable JPEG of"),
    "turned": (picture(lambda _: turned()), JPG + "the EXIF orientation is 6"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_source_stops_or_is_left_out(tree: Tree, tmp_path: Path, fault: str) -> None:
    change, message = BROKEN[fault]
    change(tree)
    with pytest.raises(SourceError, match=message or "the sentence 2/3 is there already") as caught:
        quietly(tree, tmp_path / "out")
    assert str(caught.value).endswith("; --skip-broken leaves it out and goes on")
    assert not (tmp_path / "out").exists()

    manifest = quietly(tree, tmp_path / "out", skip_broken=True)
    assert [row["expression"] for row in rows(tmp_path / "out", "val")][:3] == [
        "one",
        "two",
        "two again",
    ]
    (entry,) = manifest.left_out
    assert (entry.split, entry.file) == ("val", "grefs(unc).json")
    assert entry.reason in str(caught.value)
    assert f"left out of val: {entry.reason}" in manifest.sentences()
    assert check(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("x", "is 'x', not a JSON object"),
        ({"sentences": []}, "split is None, not a text"),
        ({"split": "val", "sentences": None}, "sentences is None, not a list"),
    ],
)
def test_an_entry_that_is_no_reference(
    tree: Tree, tmp_path: Path, entry: object, reason: str
) -> None:
    tree.references.append(entry)
    tree.write()
    with pytest.raises(SourceError, match=rf"grefs\(unc\)\.json, entry 4: {reason}; --skip-brok"):
        prepare(tree.root, tmp_path / "out", progress=False)
    manifest = prepare(tree.root, tmp_path / "out", skip_broken=True, progress=False)
    assert manifest.splits == {"val": 5}
    assert len(manifest.left_out) == 1


def test_every_sentence_of_a_broken_reference_is_listed(tree: Tree, tmp_path: Path) -> None:
    tree.references[1]["ann_id"] = [11, 99]
    manifest = quietly(tree, tmp_path / "out", skip_broken=True)
    assert [entry.id for entry in manifest.left_out] == ["1/1", "1/2"]
    tree.references[1]["ann_id"] = []
    manifest = quietly(tree, tmp_path / "out", skip_broken=True)
    assert [entry.id for entry in manifest.left_out] == ["1/0", "1/1"]


def test_a_sentence_that_is_there_twice_in_its_reference(tree: Tree, tmp_path: Path) -> None:
    tree.references[1]["sentences"][1]["sent_id"] = 1
    with pytest.raises(SourceError, match=r"entry 1 \(ref_id 1\): sentence 1 is there twice"):
        quietly(tree, tmp_path / "out")


# Whole or not at all


def test_equal_sources_give_equal_bytes_and_replace_what_is_there(
    tree: Tree, tmp_path: Path
) -> None:
    quietly(tree, tmp_path / "one")
    quietly(tree, tmp_path / "two")
    quietly(tree, tmp_path / "two")
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    assert set(digests(tmp_path / "one")) == {
        "grounding.json",
        "data/val-00000-of-00001.parquet",
    }
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    with pytest.raises(OutputError, match="holds something other than prepared gres data"):
        quietly(tree, tmp_path / "other")


KILLED = """
import os, signal, sys
from lmms_eval_grounding.data import gres, gres_rows, parquet
parquet.GROUP_ROWS = 20
decode, seen = gres_rows.check_jpeg, []
def kill_half_way(data, **options):
    seen.append(1)
    if len(seen) == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    decode(data, **options)
gres_rows.check_jpeg = kill_half_way
gres.prepare(sys.argv[1], sys.argv[2], progress=False)
"""


def test_a_synthetic_release_converts_and_a_killed_run_changes_nothing(tmp_path: Path) -> None:
    synthetic = script("convert_synthetic_masks")
    built = synthetic.build_gres(tmp_path / "source", share=0.01, seed=3)
    manifest = prepare(built.source, tmp_path / "out", progress=False)
    assert manifest.splits == {"val": 142, "testA": 192, "testB": 161}
    assert manifest.details["without_target"] == {"val": 89, "testA": 44, "testB": 47}
    assert manifest.left_out_counts == built.left_out
    assert synthetic.differences(built, tmp_path / "out", every=1) == []
    assert check(tmp_path / "out") == []

    again = tmp_path / "again"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(built.source), str(again)], check=False
    )
    assert killed.returncode == -9
    assert not again.exists()
    assert list((tmp_path / ".again.partial/data").iterdir()), "killed too early to mean anything"
    prepare(built.source, again, progress=False)
    assert digests(again) == digests(tmp_path / "out")
    assert not (tmp_path / ".again.partial").exists()


# Releases


OFFICIAL = {"val": 14_229, "testA": 19_200, "testB": 16_063}
NONE = {"val": 8_905, "testA": 4_448, "testB": 4_673}


@pytest.mark.parametrize(
    ("sentences", "without_target", "release"),
    [
        (OFFICIAL, NONE, "August 2023 file"),
        ({**OFFICIAL, "train": 209_344}, {**NONE, "train": 1}, "August 2023 file"),
        ({"val": 14_229}, {"val": 8_905}, "August 2023 file"),
        ({"val": 14_229}, {"val": 8_904}, "unknown release (val 14,229, 8,904 without target)"),
        (
            {**OFFICIAL, "testB": 14_933},
            NONE,
            "unknown release (val 14,229, 8,905 without target; testA 19,200, 4,448 without target;"
            " testB 14,933, 4,673 without target)",
        ),
        ({"train": 5}, {}, "unknown release (none of val, testA, testB)"),
    ],
)
def test_releases_are_named_by_their_counts(
    sentences: dict[str, int], without_target: dict[str, int], release: str
) -> None:
    assert release_of(sentences, without_target) == release


def test_check_compares_with_the_counts_of_the_named_release(tree: Tree, tmp_path: Path) -> None:
    quietly(tree, tmp_path / "out")
    manifest = tmp_path / "out" / "grounding.json"
    fields = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**fields, "release": "August 2023 file"}))
    assert check(tmp_path / "out") == [
        f"{manifest}: val has 5 rows and 0 left out, the August 2023 file has 14,229",
        f"{manifest}: val has 1 rows without a target, the August 2023 file has 8,905",
    ]
    fields["details"]["without_target"] = {"val": 2}
    manifest.write_text(json.dumps(fields))
    assert check(tmp_path / "out") == [
        f"{manifest}: val has 1 rows without a target, here are 2",
    ]


def test_check_counts_what_was_left_out_of_a_release(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RELEASES, "small file", {"val": (6, 1)})
    tree.annotate(13, 1, segmentation=[[1, 1, 9, 9]])
    tree.refer(1, [13], "cannot be scored")
    assert quietly(tree, tmp_path / "out").release == "small file"
    assert check(tmp_path / "out") == []
    tree.jpg(2).write_bytes(b"")
    manifest = quietly(tree, tmp_path / "out", skip_broken=True)
    assert (manifest.release, manifest.splits) == ("small file", {"val": 3})
    assert manifest.details["without_target"] == {"val": 0}
    assert check(tmp_path / "out") == []
    manifest_file = tmp_path / "out" / "grounding.json"
    fields = json.loads(manifest_file.read_text())
    manifest_file.write_text(json.dumps({**fields, "left_out_counts": {}}))
    assert check(tmp_path / "out") == [
        f"{manifest_file}: val has 3 rows and 2 left out, the small file has 6"
    ]


# What check finds


CUT = {"bytes": jpeg()[:-1], "path": "1.jpg"}
ROW = r"val-00000-of-00001\.parquet, row 1 \(id 1/1\): "
EMPTY = {"size": [8, 12], "counts": "PS"}
UNSOUND = {
    "same id": (put(1, id="0/0", ref_id=0, sent_id=0), r"row 1 \(id 0/0\): the id is in val-"),
    "other id": (put(1, ref_id=7), ROW + "the id is not ref_id/sent_id, 7/1"),
    "no text": (put(1, expression=" "), ROW + "the expression is empty"),
    "null": (put(1, expression=None), ROW + "no expression"),
    "none with ids": (put(3, ann_ids=[21]), r"row 3 \(id 2/3\): no target with 1 annotations"),
    "a target without": (put(1, ann_ids=[]), ROW + "a target with 0 annotations"),
    "cut runs": (put(1, target={"size": [8, 12], "counts": "PSP"}), ROW + "target: counts are cut"),
    "turned": (put(1, target={"size": [12, 8], "counts": "PS"}), ROW + "target: a mask of 12 x 8"),
    "no counts": (put(1, target={"size": [8, 12], "counts": None}), ROW + "target: counts are Non"),
    "other size": (put(1, width=13, target=None, ann_ids=[]), None),
    "cut image": (put(1, image=CUT), ROW + "image 1.jpg: not a readable JPEG"),
    "no path": (
        put(1, image={"bytes": None, "path": "/no/1.jpg"}),
        ROW + "image /no/1.jpg: cannot",
    ),
}


@pytest.mark.parametrize("fault", UNSOUND)
def test_check_names_each_problem_with_its_file(tree: Tree, tmp_path: Path, fault: str) -> None:
    change, message = UNSOUND[fault]
    quietly(tree, tmp_path / "out")
    rewrite(tmp_path / "out", "val", change)
    problems = check(tmp_path / "out")
    if message is None:  # a target less is another problem, of the manifest
        assert "val has 2 rows without a target, here are 1" in problems.pop(0)
        message = ROW + "image .*1.jpg: the picture has 12 x 8 pixels, the annotation says 13 x 8"
    assert len(problems) == 1
    assert re.search(message, problems[0]), problems


def test_check_of_a_folder_that_is_missing_or_damaged(tree: Tree, tmp_path: Path) -> None:
    assert "missing, so this folder holds no finished conversion" in check(tmp_path / "out")[0]
    quietly(tree, tmp_path / "out")
    path = tmp_path / "out" / "data" / "val-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:100])
    assert [problem.split(": ")[1][:14] for problem in check(tmp_path / "out")] == [
        "cannot be read"
    ]


# The mini set


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("mini") / "out"
    prepare(MINI, output, embed_images=True, progress=False)
    return output


def test_the_mini_set_is_sound_small_and_varied(mini: Path) -> None:
    from pycocotools import mask as coco_mask

    assert check(mini) == []
    table = rows(mini, "val")
    assert len(table) >= 12
    annotations = json.loads((MINI / "instances.json").read_text())["annotations"]
    by_id = {each["id"]: each for each in annotations}
    named = [[by_id[ann_id] for ann_id in row["ann_ids"]] for row in table]
    assert {0, 1, 2, 3} <= set(map(len, named))
    # A crowd beside others, an annotation of several polygons, and annotations that overlap.
    assert any({each["iscrowd"] for each in each_named} == {0, 1} for each_named in named)
    assert any(len(each["segmentation"]) > 1 for each in annotations)
    (suitcase,) = (row for row in table if row["expression"] == "the man and his suitcase")
    parts = [
        coco_mask.merge(coco_mask.frPyObjects(by_id[ann_id]["segmentation"], 480, 640))
        for ann_id in suitcase["ann_ids"]
    ]
    target = {**suitcase["target"], "counts": suitcase["target"]["counts"].encode("ascii")}
    assert coco_mask.area(target) == coco_mask.area(coco_mask.merge(parts))
    assert coco_mask.area(target) < sum(map(coco_mask.area, parts))
    sizes = {(row["width"], row["height"]) for row in table}
    assert sizes >= {(640, 480), (480, 640), (427, 640)}
    shipped = [path for path in MINI.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in shipped) < 400_000


def test_the_mini_set_is_found_and_needs_nothing_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / str(name))
    folder = Path(location.gres_mini)
    assert check(folder) == []
    assert read_manifest(folder).details["images"] is None


@pytest.mark.parametrize(
    ("expression", "colour"),
    [
        ("the blue bowl", (96, 140, 170)),
        ("car on the right", (52, 84, 190)),
        ("the red suitcase", (196, 44, 40)),
        ("the black sheep", (34, 34, 38)),
        ("the yellow bus behind the lamp post", (232, 196, 50)),
    ],
)
def test_mini_targets_are_where_the_colour_is(
    mini: Path, expression: str, colour: tuple[int, int, int]
) -> None:
    import numpy as np

    (row,) = (row for row in rows(mini, "val") if row["expression"] == expression)
    with Image.open(io.BytesIO(row["image"]["bytes"])) as image:
        near = np.abs(np.asarray(image.convert("RGB")).astype(int) - colour).max(axis=2) < 16
    target = np.array([[pixel == "#" for pixel in line] for line in pixels(row["target"])])
    # Far more often inside than its share of the picture: the same colour may be elsewhere too.
    assert near[target].mean() > 0.4
    assert near[target].mean() > 10 * near[~target].mean()


def test_the_drawing_script_makes_what_is_shipped(tmp_path: Path) -> None:
    path = REPOSITORY / "scripts" / "draw_gres_mini.py"
    subprocess.run([sys.executable, path, "--output", tmp_path / "drawn"], check=True)
    for name in ("grefs(unc).json", "instances.json"):
        assert (tmp_path / "drawn" / name).read_text() == (MINI / name).read_text()
