"""DIOR-RSVG: from the official tree to parquet, what stops it, and what ``check`` finds."""

import hashlib
import importlib.util
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import REPOSITORY
from PIL import Image

from lmms_eval_grounding import __version__
from lmms_eval_grounding.data import parquet, rsvg_splits
from lmms_eval_grounding.data.errors import OutputError, SourceError
from lmms_eval_grounding.data.folder import alone_in, prepared_folder
from lmms_eval_grounding.data.manifest import LeftOutList, read_manifest
from lmms_eval_grounding.data.rsvg import check, features, prepare

MINI = REPOSITORY / "plugin/lmms_eval_grounding/data/mini/rsvg"


def jpeg(width: int = 40, height: int = 30, **options: object) -> bytes:
    stream = io.BytesIO()
    Image.effect_noise((width, height), 40).convert("RGB").save(stream, "JPEG", **options)
    return stream.getvalue()


def item(
    description: str = "a ship", box: tuple[object, ...] = (1, 2, 11, 12), name: str = "ship"
) -> str:
    sides = "".join(
        f"<{tag}>{side}</{tag}>"
        for tag, side in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
    )
    return (
        f"<object><name>{name}</name><pose>Unspecified</pose><bndbox>{sides}</bndbox>"
        f"<description>{description}</description></object>"
    )


def annotation(stem: str, *items: str, width: object = 40, height: object = 30) -> str:
    return (
        f"<annotation>\n<filename>{stem}.jpg</filename>\n<size><width>{width}</width>"
        f"<height>{height}</height></size>\n{''.join(items)}\n</annotation>"
    )


class Tree:
    """An official tree in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("Annotations", "JPEGImages"):
            (root / folder).mkdir(parents=True)

    def add(self, stem: str, *items: str) -> None:
        self.xml(stem).write_text(annotation(stem, *items), encoding="utf-8")
        self.jpg(stem).write_bytes(jpeg())

    def xml(self, stem: str) -> Path:
        return self.root / "Annotations" / f"{stem}.xml"

    def jpg(self, stem: str) -> Path:
        return self.root / "JPEGImages" / f"{stem}.jpg"

    def split(self, name: str, text: str) -> None:
        (self.root / f"{name}.txt").write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return three files with 1, 2 and 2 objects: 0 | 1 2 | 3 4, of which test is 0, 1, 3, 4."""
    made = Tree(tmp_path / "DIOR_RSVG")
    made.add("00001", item("zero"))
    made.add("00002", item("one"), item("two", (0, 0, 40, 30)))
    made.add("00003", item("three"), item("four"))
    made.split("train", "2\n")
    made.split("test", "0\n1\n3\n4\n")
    return made


def quietly(tree: Tree, output: Path, **options: object) -> object:
    return prepare(tree.root, output, progress=False, **options)


def rows(output: Path, split: str = "test") -> list[dict]:
    return pq.read_table(output / "data" / f"{split}-00000-of-00001.parquet").to_pylist()


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


# What comes out


@pytest.mark.parametrize("stems", [["00001", "00002"], ["00002", "00001"]])
@pytest.mark.parametrize("backwards", [False, True])
def test_objects_are_numbered_over_the_sorted_files_whatever_the_order_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stems: list[str], backwards: bool
) -> None:
    tree = Tree(tmp_path / "tree")
    items = {"00001": [item("only")], "00002": [item("first"), item("second")]}
    for stem in stems:
        tree.add(stem, *items[stem])
    tree.split("test", "0\n1\n2\n")
    iterdir = Path.iterdir

    def listing(folder: Path) -> Iterator[Path]:
        return iter(sorted(iterdir(folder), reverse=backwards))

    monkeypatch.setattr(Path, "iterdir", listing)
    quietly(tree, tmp_path / "out")
    assert [(row["id"], row["file"], row["expression"]) for row in rows(tmp_path / "out")] == [
        ("0", "00001.xml", "only"),
        ("1", "00002.xml", "first"),
        ("2", "00002.xml", "second"),
    ]


def test_bytes_and_texts_are_kept(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    tree.add("00007", item("  Two  spaces, \u2018quotes\u2019 &amp; a\ttab ", (0, 0.5, 40, 30)))
    tree.jpg("00007").write_bytes(jpeg(comment=b"kept"))
    tree.split("test", "0")
    quietly(tree, tmp_path / "out")
    assert rows(tmp_path / "out") == [
        {
            "id": "0",
            "image": {"bytes": tree.jpg("00007").read_bytes(), "path": "00007.jpg"},
            "expression": "  Two  spaces, \u2018quotes\u2019 & a\ttab ",
            "bbox": [0.0, 0.5, 40.0, 30.0],
            "width": 40,
            "height": 30,
            "category": "ship",
            "file": "00007.xml",
        }
    ]


def test_children_are_found_by_their_tags(tree: Tree, tmp_path: Path) -> None:
    text = (
        "<object><description>any order</description><bndbox><ymax>4</ymax><xmax>3</xmax>"
        "<ymin>2</ymin><xmin>1</xmin></bndbox><name>dam</name></object>"
    )
    tree.xml("00001").write_text(annotation("00001", text))
    quietly(tree, tmp_path / "out")
    row = rows(tmp_path / "out")[0]
    assert (row["expression"], row["bbox"], row["category"]) == ("any order", [1, 2, 3, 4], "dam")


def test_datasets_reads_the_folder_and_decodes_the_image(tree: Tree, tmp_path: Path) -> None:
    import datasets

    quietly(tree, tmp_path / "out")
    loaded = datasets.load_dataset(
        str(tmp_path / "out"),
        data_files={"test": "data/test-*.parquet"},
        cache_dir=str(tmp_path / "cache"),
    )["test"]
    assert loaded.num_rows == 4
    assert isinstance(loaded[0]["image"], Image.Image)
    assert loaded[0]["image"].size == (40, 30)
    assert loaded[0]["bbox"] == [1.0, 2.0, 11.0, 12.0]


def test_releases_of_datasets_before_4_know_every_feature_name() -> None:
    metadata = json.loads(parquet.arrow_schema(features()).metadata[b"huggingface"])
    kinds = {feature["_type"] for feature in metadata["info"]["features"].values()}
    assert kinds == {"Value", "Image", "Sequence"}


def test_a_split_without_its_file_or_with_an_empty_one_is_not_made_and_said(
    tree: Tree, tmp_path: Path
) -> None:
    tree.split("train", "\n \n")
    manifest = quietly(tree, tmp_path / "out")
    assert manifest.not_made == {"train": "train.txt is empty", "val": "there is no val.txt"}
    assert manifest.splits == {"test": 4}
    assert manifest.sentences() == [
        "rsvg: unknown release (0/0/4), from DIOR_RSVG",
        "test: 4 rows",
        "train: not made, train.txt is empty",
        "val: not made, there is no val.txt",
    ]
    assert check(tmp_path / "out") == []


def test_the_manifest_names_the_source_without_its_path(tree: Tree, tmp_path: Path) -> None:
    manifest = quietly(tree, tmp_path / "out")
    text = (tmp_path / "out" / "grounding.json").read_text("utf-8")
    assert str(tmp_path) not in text
    assert json.loads(text)["version"] == __version__
    assert read_manifest(tmp_path / "out") == manifest


def test_only_what_the_chosen_splits_use_must_be_sound(tree: Tree, tmp_path: Path) -> None:
    tree.xml("00002").write_text(annotation("00002", item("", ("x", 0, 0, 0)), item("two")))
    manifest = quietly(tree, tmp_path / "out", splits=["train"])
    assert manifest.splits == {"train": 1}
    assert rows(tmp_path / "out", "train")[0]["expression"] == "two"
    tree.jpg("00002").unlink()
    tree.split("test", "0\n3\n4\n")
    assert quietly(tree, tmp_path / "out", splits=["test"]).splits == {"test": 3}


def test_what_is_left_out_is_listed_for_the_splits_that_are_made(
    tree: Tree, tmp_path: Path
) -> None:
    tree.split("train", "2\nx\n")
    assert quietly(tree, tmp_path / "out", skip_broken=True, splits=["test"]).left_out == []
    assert len(quietly(tree, tmp_path / "out", skip_broken=True).left_out) == 1


def test_files_without_objects_and_hidden_files_shift_nothing(tree: Tree, tmp_path: Path) -> None:
    tree.xml("00000").write_text(annotation("00000"))
    tree.xml("00002a").write_text(annotation("00002a"))
    tree.xml("._00001").write_bytes(b"\x00\x05\x16\x07")
    quietly(tree, tmp_path / "out")
    assert [row["expression"] for row in rows(tmp_path / "out")] == ["zero", "one", "three", "four"]


def test_an_image_is_stored_once_per_group_of_rows(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    tree.add("00001", *[item(f"ship {number}") for number in range(50)])
    tree.jpg("00001").write_bytes(jpeg(40, 30, comment=bytes(60_000)))
    padded = tree.jpg("00001").stat().st_size
    tree.split("test", "\n".join(map(str, range(50))))
    quietly(tree, tmp_path / "out")
    file = pq.ParquetFile(tmp_path / "out/data/test-00000-of-00001.parquet")
    image = file.metadata.row_group(0).column(1)
    assert image.path_in_schema == "image.bytes"
    assert padded < image.total_uncompressed_size < 2 * padded


def test_groups_of_rows_are_bounded_in_bytes(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 2 * tree.jpg("00001").stat().st_size - 100)
    quietly(tree, tmp_path / "out")
    file = pq.ParquetFile(tmp_path / "out/data/test-00000-of-00001.parquet")
    groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert groups == [2, 2]
    assert [row["id"] for row in rows(tmp_path / "out")] == ["0", "1", "3", "4"]


def test_the_real_image_and_annotation(tmp_path: Path) -> None:
    samples = REPOSITORY.parent / "shared" / "samples" / "dior_rsvg"
    if not samples.is_dir():
        pytest.skip("the real image and annotation are not beside the repository")
    tree = Tree(tmp_path / "DIOR_RSVG")
    tree.xml("00001").write_bytes((samples / "00001.xml").read_bytes())
    tree.jpg("00001").write_bytes((samples / "00001.jpg").read_bytes())
    tree.split("test", "0\n")
    quietly(tree, tmp_path / "out")
    (row,) = rows(tmp_path / "out")
    assert row["image"]["bytes"] == (samples / "00001.jpg").read_bytes()
    assert (row["bbox"], row["expression"], row["category"]) == (
        [133, 237, 684, 672],
        "A green and brown golf field",
        "golffield",
    )
    assert check(tmp_path / "out") == []


# Splits and releases


def official(root: Path, counts: dict[str, int], objects: int = 38_320) -> rsvg_splits.SplitFiles:
    root.mkdir(exist_ok=True)
    first = 0
    for split, count in counts.items():
        lines = "".join(f"{index}\n" for index in range(first, first + count))
        (root / f"{split}.txt").write_text(lines)
        first += count
    return rsvg_splits.read_splits(root, objects, LeftOutList(allowed=True))


@pytest.mark.parametrize(
    ("counts", "release"),
    [
        ({"train": 26_991, "val": 3_829, "test": 7_500}, "2023 split"),
        ({"train": 15_328, "val": 3_832, "test": 19_160}, "first release"),
        ({"test": 7_500}, "2023 split"),
        ({"val": 3_832}, "first release"),
        ({"train": 15_328, "val": 3_829, "test": 19_160}, "unknown release (15,328/3,829/19,160)"),
        ({"train": 15_328, "val": 2_311, "test": 10_234}, "unknown release (15,328/2,311/10,234)"),
    ],
)
def test_releases_are_named_by_their_counts(
    tmp_path: Path, counts: dict[str, int], release: str
) -> None:
    files = official(tmp_path / "tree", counts)
    assert files.release == release
    assert {split: len(indices) for split, indices in files.indices.items()} == counts


def test_a_known_release_with_another_number_of_objects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"2023 split.*38,320 objects.*holds 38,319.*missing"):
        official(tmp_path / "tree", {"test": 7_500}, objects=38_319)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("seven", "test.txt line 2: 'seven' is not the number of an object"),
        ("1.0", "test.txt line 2: '1.0' is not the number of an object"),
        ("-1", "test.txt line 2: '-1' is not the number of an object"),
        ("", "test.txt line 2: '' is not the number of an object"),
        ("9" * 5000, "test.txt line 2: '9999999999"),
        ("\u0661", "test.txt line 2: "),
        ("5", "test.txt line 2: there is no object 5; Annotations holds 5 objects"),
        ("0", "test.txt line 2: object 0 is named a second time"),
    ],
)
def test_lines_that_name_no_object(tree: Tree, tmp_path: Path, line: str, reason: str) -> None:
    (tree.root / "test.txt").write_text(f"0\n{line}\n3\n", encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        quietly(tree, tmp_path / "out")
    assert str(caught.value).startswith(reason)
    assert "--skip-broken" in str(caught.value)
    manifest = quietly(tree, tmp_path / "out", skip_broken=True)
    assert [row["id"] for row in rows(tmp_path / "out")] == ["0", "3"]
    (entry,) = manifest.left_out
    assert (entry.split, entry.file) == ("test", "test.txt")
    assert entry.reason.startswith(reason)


@pytest.mark.parametrize("skip_broken", [False, True])
def test_splits_that_share_an_object_are_refused(
    tree: Tree, tmp_path: Path, skip_broken: bool
) -> None:
    tree.split("train", "2\n3\n")
    with pytest.raises(SourceError, match=r"test.txt line 3: object 3 is in train.txt line 2 too"):
        quietly(tree, tmp_path / "out", skip_broken=skip_broken)


def test_crlf_spaces_and_blank_lines_at_the_end_are_no_fault(tree: Tree, tmp_path: Path) -> None:
    (tree.root / "test.txt").write_bytes(b"0\r\n 3 \r\n\r\n")
    assert quietly(tree, tmp_path / "out").splits == {"train": 1, "test": 2}


def test_a_split_that_rsvg_does_not_have(tree: Tree, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="train, val, test, not testA"):
        quietly(tree, tmp_path / "out", splits=["testA"])


# Broken sources: what is changed in object 1 (file 00002) and what is said


def bad_item(*arguments: object, **options: object) -> Callable[[Tree], object]:
    def change(tree: Tree) -> None:
        tree.xml("00002").write_text(annotation("00002", item(*arguments, **options), item("two")))

    return change


def without(tag: str) -> Callable[[Tree], object]:
    def change(tree: Tree) -> None:
        root = ElementTree.fromstring(annotation("00002", item("one"), item("two")))
        for parent in [root, *root.iter("size"), *list(root.iter("object"))[:1], *root.iter()]:
            children = parent.findall(tag)
            if children:
                parent.remove(children[0])
                break
        tree.xml("00002").write_bytes(ElementTree.tostring(root))

    return change


def bad_image(change: Callable[[bytes], bytes]) -> Callable[[Tree], object]:
    return lambda tree: tree.jpg("00002").write_bytes(change(tree.jpg("00002").read_bytes()))


def bad_xml(text: str) -> Callable[[Tree], object]:
    return lambda tree: tree.xml("00002").write_text(text)


def png(_: bytes) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (40, 30)).save(stream, "PNG")
    return stream.getvalue()


def turned(_: bytes) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return jpeg(exif=exif)


OBJECT = r"Annotations/00002\.xml, object 1 of 2 \(index 1\): "
PICTURE = r"JPEGImages/00002\.jpg \(of Annotations/00002\.xml\): "
BROKEN = {
    "no description": (without("description"), OBJECT + "<object> has no <description>"),
    "no box": (without("bndbox"), OBJECT + "<object> has no <bndbox>"),
    "no corner": (without("ymax"), OBJECT + "<bndbox> has no <ymax>"),
    "no class": (without("name"), OBJECT + "<object> has no <name>"),
    "blank description": (bad_item(" \n "), OBJECT + "<description> of <object> is empty"),
    "two descriptions": (
        bad_item("a</description><description>b"),
        OBJECT + "<object> has 2 <description>",
    ),
    "word": (bad_item("s", ("one", 2, 3, 4)), OBJECT + "<xmin> is 'one', not a finite number"),
    "nan": (bad_item("s", (1, "nan", 3, 4)), OBJECT + "<ymin> is 'nan', not a finite number"),
    "infinity": (bad_item("s", (1, 2, "1e999", 4)), OBJECT + "<xmax> is '1e999', not a finite"),
    "underscore": (bad_item("s", (1, 2, "1_0", 4)), OBJECT + "<xmax> is '1_0', not a finite"),
    "inverted in x": (bad_item("s", (9, 2, 3, 4)), OBJECT + "the box 9, 2, 3, 4 has no area"),
    "inverted in y": (bad_item("s", (1, 4, 3, 2)), OBJECT + "the box 1, 4, 3, 2 has no area"),
    "line": (bad_item("s", (1, 2, 1, 4)), OBJECT + "the box 1, 2, 1, 4 has no area"),
    "left of it": (bad_item("s", (-1, 2, 3, 4)), OBJECT + r"the box -1, .* outside the image"),
    "above it": (bad_item("s", (1, -0.5, 3, 4)), OBJECT + r"the box .* outside the image"),
    "right of it": (bad_item("s", (1, 2, 41, 4)), OBJECT + r"the box .* outside .* 40 x 30"),
    "below it": (bad_item("s", (1, 2, 3, 31)), OBJECT + r"the box .* outside the image"),
    "no size": (without("size"), r"Annotations/00002\.xml: <annotation> has no <size>"),
    "no width": (without("width"), r"Annotations/00002\.xml: <size> has no <width>"),
    "size of words": (
        bad_xml(annotation("00002", item(), item(), width="wide")),
        r"Annotations/00002\.xml: <size> says 'wide' x '30'",
    ),
    "size of zero": (
        bad_xml(annotation("00002", item(), item(), height=0)),
        r"Annotations/00002\.xml: <size> says '40' x '0'",
    ),
    "no file name": (without("filename"), r"Annotations/00002\.xml: .* has no <filename>"),
    "file elsewhere": (
        bad_xml(annotation("../Annotations/00002", item(), item())),
        r"Annotations/00002\.xml: <filename> is '\.\./Annotations/00002\.jpg', not the name",
    ),
    "other size": (
        bad_image(lambda _: jpeg(30, 40)),
        PICTURE + "the picture has 30 x 40 pixels, the annotation says 40 x 30",
    ),
    "no image": (lambda tree: tree.jpg("00002").unlink(), PICTURE + "cannot be read"),
    "empty image": (bad_image(lambda _: b""), PICTURE + "not a readable JPEG of 0 bytes"),
    "half an image": (
        bad_image(lambda data: data[: len(data) // 2]),
        PICTURE + "not a readable JPEG of",
    ),
    "all but the last byte": (
        bad_image(lambda data: data[:-1]),
        PICTURE + "not a readable JPEG of .*truncated",
    ),
    "PNG": (bad_image(png), PICTURE + "not a readable JPEG"),
    "turned by EXIF": (bad_image(turned), PICTURE + "the EXIF orientation is 6"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_source_stops_or_is_left_out(tree: Tree, tmp_path: Path, fault: str) -> None:
    change, message = BROKEN[fault]
    change(tree)
    with pytest.raises(SourceError, match=message) as caught:
        quietly(tree, tmp_path / "out")
    assert str(caught.value).endswith("; --skip-broken leaves it out and goes on")
    assert not (tmp_path / "out").exists()

    if fault.startswith("no ") or message.startswith((r"Annotations/00002\.xml: ", PICTURE)):
        tree.split("train", "")  # object 2 shares the file, hence the fault
    manifest = quietly(tree, tmp_path / "out", skip_broken=True)
    assert [(row["id"], row["expression"]) for row in rows(tmp_path / "out")] == [
        ("0", "zero"),
        ("3", "three"),
        ("4", "four"),
    ]
    (entry,) = manifest.left_out
    assert (entry.split, entry.id, entry.file) == ("test", "1", "00002.xml")
    assert f"left out of test: {entry.reason}" in manifest.sentences()
    assert check(tmp_path / "out") == []


UNCOUNTABLE = {
    "cut": ("<annotation>\n<object>\n", r"line 3: not well-formed XML"),
    "empty": ("", "line 1: not well-formed XML"),
    "unknown entity": ("<annotation>\n&lol;</annotation>", "line 2: not well-formed XML"),
    "other root": ("<annotations/>", "its root element is <annotations>, not <annotation>"),
    "doctype": ("<!DOCTYPE annotation><annotation/>", "it has a DOCTYPE"),
    "entity": (
        '<!DOCTYPE a [<!ENTITY x "y">]><annotation>&x;</annotation>',
        "it has a DOCTYPE, which may declare entities; none is accepted",
    ),
    "file entity": (
        '<!DOCTYPE a [<!ENTITY x SYSTEM "test.txt">]><annotation>&x;</annotation>',
        "it has a DOCTYPE",
    ),
    "encoding": ('<?xml version="1.0" encoding="none"?><annotation/>', "not readable XML"),
}


@pytest.mark.parametrize("skip_broken", [False, True])
@pytest.mark.parametrize("fault", UNCOUNTABLE)
def test_an_annotation_whose_objects_cannot_be_counted_always_stops(
    tree: Tree, tmp_path: Path, fault: str, skip_broken: bool
) -> None:
    text, message = UNCOUNTABLE[fault]
    tree.xml("00002").write_text(text)
    with pytest.raises(SourceError, match=rf"Annotations/00002\.xml: {message}") as caught:
        quietly(tree, tmp_path / "out", skip_broken=skip_broken)
    assert "cannot be skipped" in str(caught.value)


def test_entities_in_another_encoding_are_seen_too(tree: Tree, tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a [<!ENTITY x "y">]><annotation/>'
    tree.xml("00002").write_bytes(text.encode("utf-16"))
    with pytest.raises(SourceError, match=r"00002\.xml: it has a DOCTYPE"):
        quietly(tree, tmp_path / "out")


@pytest.mark.parametrize("missing", ["Annotations", "JPEGImages", "."])
def test_a_missing_folder_is_named_with_the_layout(tmp_path: Path, missing: str) -> None:
    root = tmp_path / "DIOR_RSVG"
    for folder in {"Annotations", "JPEGImages"} - {missing} if missing != "." else ():
        (root / folder).mkdir(parents=True)
    with pytest.raises(SourceError, match=r"no such folder; .*Annotations/\*\.xml") as caught:
        prepare(root, tmp_path / "out", progress=False)
    assert str(root / missing) in str(caught.value)


def test_a_tree_with_nothing_in_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "DIOR_RSVG")
    with pytest.raises(SourceError, match=r"Annotations: no XML files; "):
        quietly(tree, tmp_path / "out")
    tree.add("00001", item())
    with pytest.raises(SourceError, match=r"nothing to make, there is no train\.txt, there is no"):
        quietly(tree, tmp_path / "out")


def test_a_split_of_which_nothing_is_left_is_not_made(tree: Tree, tmp_path: Path) -> None:
    tree.split("test", "0\n")
    tree.jpg("00001").unlink()
    with pytest.raises(SourceError, match=r"test: every object was left out; the first: JPEGIm"):
        quietly(tree, tmp_path / "out", skip_broken=True)
    assert not (tmp_path / "out").exists()


# Whole or not at all


def test_equal_sources_give_equal_bytes(tree: Tree, tmp_path: Path) -> None:
    quietly(tree, tmp_path / "one")
    quietly(tree, tmp_path / "two")
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    assert set(digests(tmp_path / "one")) == {
        "grounding.json",
        "data/train-00000-of-00001.parquet",
        "data/test-00000-of-00001.parquet",
    }


def test_the_finished_folder_is_moved_not_copied(tmp_path: Path) -> None:
    with prepared_folder(tmp_path / "out", "rsvg") as folder:
        assert not (tmp_path / "out").exists()
        made = folder.stat().st_ino
    assert (tmp_path / "out").stat().st_ino == made


def test_a_finished_folder_is_replaced_and_kept_when_the_new_one_fails(
    tree: Tree, tmp_path: Path
) -> None:
    quietly(tree, tmp_path / "out")
    before = digests(tmp_path / "out")
    tree.jpg("00003").write_bytes(b"")
    with pytest.raises(SourceError):
        quietly(tree, tmp_path / "out")
    assert digests(tmp_path / "out") == before
    quietly(tree, tmp_path / "out", skip_broken=True)
    assert [row["id"] for row in rows(tmp_path / "out")] == ["0", "1"]
    assert {path.name for path in tmp_path.iterdir()} == {"DIOR_RSVG", "out", ".out.lock"}


@pytest.mark.parametrize("content", ["thesis.tex", "grounding.json"])
def test_a_folder_with_anything_else_in_it_is_not_replaced(
    tree: Tree, tmp_path: Path, content: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / content).write_text("{}")
    with pytest.raises(OutputError, match=r"out: holds something other than prepared rsvg data"):
        quietly(tree, tmp_path / "out")
    assert (tmp_path / "out" / content).read_text() == "{}"


def test_prepared_data_with_a_file_of_the_user_are_not_replaced(tree: Tree, tmp_path: Path) -> None:
    quietly(tree, tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds something other"):
        quietly(tree, tmp_path / "out")
    with pytest.raises(OutputError, match="is a file; name a folder"):
        quietly(tree, tmp_path / "out" / "notes.txt")


def test_an_empty_folder_and_missing_parents_are_no_fault(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    quietly(tree, tmp_path / "empty")
    quietly(tree, tmp_path / "a" / "b")
    assert digests(tmp_path / "empty") == digests(tmp_path / "a" / "b")


def test_a_linked_folder_stays_a_link(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "disk" / "there").mkdir(parents=True)
    (tmp_path / "out").symlink_to(tmp_path / "disk" / "there")
    quietly(tree, tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert check(tmp_path / "disk" / "there") == []


def test_two_conversions_into_one_folder_do_not_mix(tree: Tree, tmp_path: Path) -> None:
    with (
        alone_in(tmp_path / "out"),
        pytest.raises(OutputError, match="another process is writing this folder"),
    ):
        quietly(tree, tmp_path / "out")
    quietly(tree, tmp_path / "out")


def test_a_run_killed_between_the_two_renames_loses_nothing(tree: Tree, tmp_path: Path) -> None:
    quietly(tree, tmp_path / "out")
    before = digests(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / ".out.old")
    tree.jpg("00003").write_bytes(b"")
    with pytest.raises(SourceError):
        quietly(tree, tmp_path / "out")
    assert digests(tmp_path / "out") == before
    assert not (tmp_path / ".out.old").exists()


KILLED = """
import os, signal, sys
from lmms_eval_grounding.data import parquet, rsvg, rsvg_source
parquet.GROUP_ROWS = 20
decode, seen = rsvg_source.check_jpeg, []
def kill_half_way(data, **options):
    seen.append(1)
    if len(seen) == 100:
        os.kill(os.getpid(), signal.SIGKILL)
    decode(data, **options)
rsvg_source.check_jpeg = kill_half_way
rsvg.prepare(sys.argv[1], sys.argv[2], progress=False)
"""


def synthetic() -> object:
    path = REPOSITORY / "scripts" / "convert_synthetic_rsvg.py"
    spec = importlib.util.spec_from_file_location("convert_synthetic_rsvg", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_synthetic_tree_converts_and_a_killed_run_changes_nothing(tmp_path: Path) -> None:
    script = synthetic()
    splits = script.build(tmp_path / "DIOR_RSVG", objects=400, kilobytes=0, seed=3)
    manifest = prepare(tmp_path / "DIOR_RSVG", tmp_path / "out", progress=False)
    assert manifest.splits == {"train": 283, "val": 39, "test": 78}
    assert script.differences(tmp_path / "out", splits) == []
    assert check(tmp_path / "out") == []

    again = tmp_path / "again"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "DIOR_RSVG"), str(again)], check=False
    )
    assert killed.returncode == -9
    assert not again.exists()
    assert list((tmp_path / ".again.partial/data").iterdir()), "killed too early to mean anything"
    prepare(tmp_path / "DIOR_RSVG", again, progress=False)
    assert digests(again) == digests(tmp_path / "out")
    assert not (tmp_path / ".again.partial").exists()


# What check finds


def rewrite(output: Path, change: Callable[[list[dict]], object], split: str = "test") -> None:
    path = output / "data" / f"{split}-00000-of-00001.parquet"
    schema, table = pq.read_schema(path), rows(output, split)
    change(table)
    pq.write_table(pa.Table.from_pylist(table, schema=schema), path)


def put(number: int, **columns: object) -> Callable[[list[dict]], object]:
    return lambda table: table[number].update(columns)


CUT = {"bytes": jpeg()[:-1], "path": "00001.jpg"}
ROW = r"test-00000-of-00001\.parquet, row 2 \(id 3\): "
UNSOUND = {
    "row lost": (lambda table: table.pop(), r"test-.*\.parquet: holds 3 rows, .* says 4"),
    "same id": (put(2, id="0"), r"row 2 \(id 0\): the id is in test-00000-of-00001\.parquet too"),
    "id of train": (put(2, id="2"), r"row 2 \(id 2\): the id is in train-00000-of-00001\.parq"),
    "id of words": (put(2, id="x"), r"row 2 \(id x\): the id is no object index"),
    "no text": (put(2, expression=" "), ROW + "the expression is empty"),
    "null": (put(2, expression=None), ROW + "no expression"),
    "three corners": (put(2, bbox=[1.0, 2.0, 3.0]), ROW + "the box .* is not four finite"),
    "nan": (put(2, bbox=[1.0, float("nan"), 3.0, 4.0]), ROW + "the box .* is not four finite"),
    "null corner": (put(2, bbox=[1.0, None, 3.0, 4.0]), ROW + "the box .* is not four finite"),
    "empty box": (put(2, bbox=[1.0, 2.0, 1.0, 4.0]), ROW + "the box .* has no area"),
    "box outside": (put(2, bbox=[1.0, 2.0, 41.0, 4.0]), ROW + "the box .* outside the image"),
    "other size": (put(2, width=41), ROW + "image 00003.jpg: the picture has 40 x 30 pixels"),
    "cut image": (put(2, image=CUT), ROW + "image 00001.jpg: not a readable JPEG"),
    "no bytes": (
        put(2, image={"bytes": None, "path": "x"}),
        ROW + "image x: not a readable JPEG of 0 bytes",
    ),
}


@pytest.mark.parametrize("fault", UNSOUND)
def test_check_names_each_problem_with_its_file(tree: Tree, tmp_path: Path, fault: str) -> None:
    import re

    change, message = UNSOUND[fault]
    quietly(tree, tmp_path / "out")
    assert check(tmp_path / "out") == []
    rewrite(tmp_path / "out", change)
    problems = check(tmp_path / "out")
    assert len(problems) == 1
    assert re.search(message, problems[0]), problems


def test_check_of_files_that_are_missing_strange_or_damaged(tree: Tree, tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert check(output) == [
        f"{output / 'grounding.json'}: missing, so this folder holds no finished conversion"
    ]
    quietly(tree, output)
    path = output / "data" / "test-00000-of-00001.parquet"
    whole = path.read_bytes()

    path.unlink()
    assert [problem.split(": ")[1][:14] for problem in check(output)] == ["cannot be read"]
    path.write_bytes(whole[: len(whole) // 2])
    assert [problem.split(": ")[1][:14] for problem in check(output)] == ["cannot be read"]
    path.write_bytes(whole[:100] + bytes(400) + whole[500:])
    assert any(
        "cannot be read" in problem or "not a readable" in problem for problem in check(output)
    )

    table = pq.read_table(io.BytesIO(whole))
    pq.write_table(table.drop_columns(["bbox"]), path)
    assert [problem.split(": ")[1][:15] for problem in check(output)] == ["its columns are"]
    pq.write_table(table.replace_schema_metadata({}), path)
    assert check(output) == [f"{path}: lacks the metadata by which images are decoded"]

    path.write_bytes(whole)
    extra = path.with_name("val-00000-of-00001.parquet")
    extra.write_bytes(whole)
    assert check(output) == [f"{extra}: not in grounding.json"]
    extra.unlink()

    manifest = output / "grounding.json"
    fields = json.loads(manifest.read_text())
    for wrong in ("[]", "{}", "{", "[" * 100_000, json.dumps({**fields, "splits": {"test": "4"}})):
        manifest.write_text(wrong)
        (problem,) = check(output)
        assert "grounding.json: not a manifest of this package" in problem
    manifest.write_text(json.dumps({**fields, "benchmark": "gres"}))
    assert check(output) == [f"{manifest}: holds gres, not rsvg"]


def test_check_compares_with_the_counts_of_the_named_release(tree: Tree, tmp_path: Path) -> None:
    quietly(tree, tmp_path / "out")
    manifest = tmp_path / "out" / "grounding.json"
    fields = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**fields, "release": "2023 split"}))
    assert check(tmp_path / "out") == [
        f"{manifest}: train has 1 rows and 0 left out, the 2023 split has 26,991",
        f"{manifest}: test has 4 rows and 0 left out, the 2023 split has 7,500",
    ]


# The mini set


def test_the_mini_set_is_sound_small_and_varied(tmp_path: Path) -> None:
    manifest = prepare(MINI, tmp_path / "out", progress=False)
    assert check(tmp_path / "out") == []
    table = rows(tmp_path / "out")
    assert len(table) == manifest.splits["test"] >= 12
    assert len({row["file"] for row in table}) >= 6
    sizes = {(row["width"], row["height"]) for row in table}
    assert sizes >= {(800, 800), (640, 480), (1024, 683), (512, 800), (300, 200)}
    sides = [min(row["bbox"][2] - row["bbox"][0], row["bbox"][3] - row["bbox"][1]) for row in table]
    assert min(sides) <= 10
    assert max(sides) >= 200
    for file in {row["file"] for row in table}:
        expressions = [row["expression"] for row in table if row["file"] == file]
        assert len(set(expressions)) == len(expressions)
    shipped = [path for path in MINI.parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in shipped) < 1_000_000


@pytest.mark.parametrize(
    ("file", "expression", "channel"),
    [
        ("00002.xml", "the blue plane", 2),
        ("00003.xml", "the red ship", 0),
        ("00004.xml", "the building with the red roof", 0),
        ("00005.xml", "the car on the left", 0),
    ],
)
def test_mini_boxes_are_where_the_colour_is(file: str, expression: str, channel: int) -> None:
    import numpy as np

    root = ElementTree.parse(MINI / "Annotations" / file).getroot()
    (box,) = (
        [int(side.text or "") for side in found.find("bndbox") or ()]
        for found in root.findall("object")
        if found.findtext("description") == expression
    )
    with Image.open(MINI / "JPEGImages" / (root.findtext("filename") or "")) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    others = np.delete(pixels, channel, axis=2).max(axis=2)
    ys, xs = np.nonzero(pixels[..., channel] - others > 75)
    colour = [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]
    assert np.abs(np.subtract(colour, box)).max() <= 3  # JPEG blurs edges and tips


def test_the_drawing_script_makes_what_is_shipped(tmp_path: Path) -> None:
    script = REPOSITORY / "scripts" / "draw_rsvg_mini.py"
    subprocess.run([sys.executable, script, "--output", tmp_path / "drawn"], check=True)
    drawn = sorted((tmp_path / "drawn" / "Annotations").iterdir())
    shipped = sorted((MINI / "Annotations").iterdir())
    assert [path.read_text() for path in drawn] == [path.read_text() for path in shipped]
    assert (tmp_path / "drawn/test.txt").read_text() == (MINI / "test.txt").read_text()
