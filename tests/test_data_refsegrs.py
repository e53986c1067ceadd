"""RefSegRS: from the zip or the folder to parquet, what stops it, and what ``check`` finds."""

import io
import json
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import REPOSITORY
from PIL import Image, TiffImagePlugin
from prepared import digests, put, rewrite, rows, script

from lmms_eval_grounding.data import location, refsegrs_files
from lmms_eval_grounding.data.errors import OutputError, SourceError
from lmms_eval_grounding.data.manifest import Manifest, read_manifest
from lmms_eval_grounding.data.refsegrs import check, prepare

MINI = REPOSITORY / "plugin/lmms_eval_grounding/data/mini/refsegrs"

# 3 rows of 4 pixels, different when read column by column or turned.
MASK = np.array([[0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]], np.uint8)
# The same by hand, down the columns: 3 of 0, 2 of 1, 1 of 0, 1 of 1, 5 of 0; each run from the
# fourth on is written as the difference to the run two before (-1, 4).
COUNTS = "321O4"


def tiff(picture: np.ndarray | Image.Image, **options: object) -> bytes:
    if isinstance(picture, np.ndarray):
        picture = Image.fromarray(picture)
    stream = io.BytesIO()
    picture.save(stream, "TIFF", **options)
    return stream.getvalue()


def photo(width: int = 4, height: int = 3, **options: object) -> bytes:
    return tiff(Image.effect_noise((width, height), 40).convert("RGB"), **options)


class Release:
    """The files of a release by name; written as a folder or as a zip."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, bytes] = {}

    def add(self, triplet: str) -> None:
        self.files[f"images/{triplet}.tif"] = photo()
        self.files[f"masks/{triplet}.tif"] = tiff(MASK * 255)

    def phrases(self, split: str, text: str) -> None:
        self.files[f"output_phrase_{split}.txt"] = text.encode()

    def as_folder(self) -> Path:
        root = self.folder / "RefSegRS"
        shutil.rmtree(root, ignore_errors=True)
        for name, data in self.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        return root

    def as_zip(self, inside: str = "", **options: int) -> Path:
        path = self.folder / "RefSegRS.zip"
        with zipfile.ZipFile(path, "w", **options) as archive:
            for name, data in self.files.items():
                archive.writestr(inside + name, data)
        return path


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """Return the triplets 1, 2 and 30 of test, 4 of val and 5 of train."""
    made = Release(tmp_path / "source")
    made.folder.mkdir()
    for triplet in ("1", "2", "30", "4", "5"):
        made.add(triplet)
    made.phrases("test", "2 paved road\n1 vehicle\n30 building\n")
    made.phrases("val", "4 tree\n")
    made.phrases("train", "5 car\n")
    return made


def quietly(release: Release, output: Path, **options: object) -> Manifest:
    return prepare(release.as_folder(), output, progress=False, **options)


# What comes out


def test_a_row_is_a_triplet_in_the_order_of_the_phrases(release: Release, tmp_path: Path) -> None:
    manifest = quietly(release, tmp_path / "out")
    assert manifest.splits == {"val": 1, "test": 3}
    table = rows(tmp_path / "out", "test")
    assert [(row["id"], row["expression"]) for row in table] == [
        ("2", "paved road"),
        ("1", "vehicle"),
        ("30", "building"),
    ]
    assert table[2] == {
        "id": "30",
        "image": {"bytes": release.files["images/30.tif"], "path": "30.tif"},
        "expression": "building",
        "target": {"counts": COUNTS, "size": [3, 4]},
        "width": 4,
        "height": 3,
        "file": "30.tif",
    }
    assert check(tmp_path / "out") == []


def test_train_is_made_when_asked_for(release: Release, tmp_path: Path) -> None:
    manifest = quietly(release, tmp_path / "out", splits=["test", "train"])
    assert manifest.splits == {"train": 1, "test": 3}
    for splits in (["testA"], []):
        with pytest.raises(ValueError, match="refsegrs has the splits train, val, test, not"):
            quietly(release, tmp_path / "out", splits=splits)


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ("1361 paved road", "paved road"),
        ("1361   paved  road ", "paved  road "),
        ("1361\t paved\troad", "paved\troad"),
        ("1361 paved road\r", "paved road"),
        ("1361 la route pav\u00e9e \u2019", "la route pav\u00e9e \u2019"),
        ("1361 \u00a0road", "\u00a0road"),
        ("1361 12 vehicles", "12 vehicles"),
        ("\ufeff1361 road", "road"),
    ],
)
def test_phrases_are_split_at_the_first_run_of_blanks_and_kept(
    release: Release, tmp_path: Path, line: str, phrase: str
) -> None:
    release.add("1361")
    release.phrases("val", f"{line}\n\n")
    quietly(release, tmp_path / "out")
    (row,) = rows(tmp_path / "out", "val")
    assert (row["id"], row["expression"]) == ("1361", phrase)


MASKS = {
    "0 and 1": tiff(MASK),
    "0 and 255": tiff(MASK * 255),
    "one bit": tiff(Image.fromarray(MASK * 255).convert("1")),
    "one bit, compressed": tiff(Image.fromarray(MASK * 255).convert("1"), compression="group4"),
    "16 bits": tiff(MASK.astype(np.uint16) * 255),
    "three equal channels": tiff(np.stack([MASK * 255] * 3, axis=2)),
    "compressed": tiff(MASK * 255, compression="tiff_adobe_deflate"),
    "with a palette": tiff(Image.fromarray(MASK).convert("P")),
}


@pytest.mark.parametrize("kind", MASKS)
def test_masks_are_read_however_they_are_written(
    release: Release, tmp_path: Path, kind: str
) -> None:
    release.files["masks/4.tif"] = MASKS[kind]
    quietly(release, tmp_path / "out")
    assert rows(tmp_path / "out", "val")[0]["target"] == {"counts": COUNTS, "size": [3, 4]}


def test_a_mask_without_foreground_is_kept_and_counted(release: Release, tmp_path: Path) -> None:
    release.files["masks/1.tif"] = tiff(MASK * 0)
    release.files["masks/2.tif"] = tiff(MASK * 0 + 255)
    manifest = quietly(release, tmp_path / "out")
    assert manifest.details == {"empty_targets": {"val": 0, "test": 1}}
    full, empty, _ = rows(tmp_path / "out", "test")
    assert (full["target"]["counts"], empty["target"]["counts"]) == ("0<", "<")
    assert check(tmp_path / "out") == []


@pytest.mark.parametrize("inside", ["", "RefSegRS/", "data/RefSegRS/"])
def test_a_zip_gives_what_its_folder_gives(release: Release, tmp_path: Path, inside: str) -> None:
    quietly(release, tmp_path / "folder")
    path = release.as_zip(inside, compression=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/output_phrase_test.txt", b"\x00\x05\x16\x07")
        archive.writestr("A/B/C/output_phrase_test.txt", b"1 another phrase\n")
    before = {each.name for each in path.parent.iterdir()}
    manifest = prepare(path, tmp_path / "zip", progress=False)
    assert {each.name for each in path.parent.iterdir()} == before
    assert manifest.source == "RefSegRS.zip"
    one, other = digests(tmp_path / "folder"), digests(tmp_path / "zip")
    assert one.pop("grounding.json") != other.pop("grounding.json")
    assert one == other


def test_the_folder_above_is_taken_too(release: Release, tmp_path: Path) -> None:
    release.as_folder()
    manifest = prepare(release.folder, tmp_path / "out", progress=False)
    assert manifest.splits == {"val": 1, "test": 3}


@pytest.mark.parametrize("compression", [None, "tiff_adobe_deflate", "tiff_lzw", "jpeg"])
def test_datasets_reads_the_folder_and_decodes_the_tiff(
    release: Release, tmp_path: Path, compression: str | None
) -> None:
    import datasets

    release.files["images/4.tif"] = photo(compression=compression)
    quietly(release, tmp_path / "out")
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    row = loaded["val"][0]
    assert (row["image"].format, row["image"].mode, row["image"].size) == ("TIFF", "RGB", (4, 3))
    assert row["target"] == {"counts": COUNTS, "size": [3, 4]}


# What cannot be used


@pytest.mark.parametrize("make", [Release.as_folder, Release.as_zip])
def test_the_preview_without_phrases_is_refused_with_the_reason(
    release: Release, tmp_path: Path, make: Callable[[Release], Path]
) -> None:
    for split in ("train", "val", "test"):
        del release.files[f"output_phrase_{split}.txt"]
    release.files["data/train-00000-of-00001.parquet"] = b"PAR1"
    with pytest.raises(SourceError) as caught:
        prepare(make(release), tmp_path / "out", progress=False)
    assert "no output_phrase_*.txt in it; the preview on the Hub" in str(caught.value)
    assert "RefSegRS.zip, and the folder unpacked from it, hold images/<id>.tif" in str(
        caught.value
    )


def test_parquet_and_other_files_are_no_release(tmp_path: Path) -> None:
    for name, message in (
        ("0000.parquet", "the preview on the Hub and its parquet"),
        ("RefSegRS.zip", "not a readable zip file"),
    ):
        (tmp_path / name).write_bytes(b"PAR1")
        with pytest.raises(SourceError, match=rf"{name}: .*{message}.*; RefSegRS\.zip, and"):
            prepare(tmp_path / name, tmp_path / "out", progress=False)
    with pytest.raises(SourceError, match=r"nothing: no such file or folder; RefSegRS\.zip"):
        prepare(tmp_path / "nothing", tmp_path / "out", progress=False)


def test_splits_without_phrases_are_said(release: Release, tmp_path: Path) -> None:
    del release.files["output_phrase_val.txt"]
    manifest = quietly(release, tmp_path / "out")
    assert manifest.not_made == {"val": "output_phrase_val.txt is missing"}
    release.phrases("test", " \n\n")
    with pytest.raises(SourceError) as caught:
        quietly(release, tmp_path / "out")
    assert str(caught.value).startswith(
        "RefSegRS: nothing to make, output_phrase_val.txt is missing, output_phrase_test.txt is "
        "empty; RefSegRS.zip, and"
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("road", "line 2: 'road' is not an id, a blank and a phrase"),
        ("1", "line 2: '1' is not an id, a blank and a phrase"),
        ("1 ", "line 2: '1 ' is not an id, a blank and a phrase"),
        ("1: road", "line 2: '1: road' is not"),
        (" 1 road", "line 2: ' 1 road' is not"),
        ("../1 road", "line 2: '../1 road' is not"),
        ("\u0661 road", "line 2: "),
        ("1\u00a0road", "line 2: "),
        ("", "line 2: '' is not"),
        ("2 road", "line 2: 2 is there a second time"),
    ],
)
def test_lines_that_are_no_phrase(release: Release, tmp_path: Path, line: str, reason: str) -> None:
    release.phrases("test", f"2 road\n{line}\n30 road\n")
    with pytest.raises(SourceError) as caught:
        quietly(release, tmp_path / "out")
    assert str(caught.value).startswith(f"output_phrase_test.txt {reason}")
    assert str(caught.value).endswith("; --skip-broken leaves it out and goes on")
    manifest = quietly(release, tmp_path / "out", skip_broken=True)
    assert [row["id"] for row in rows(tmp_path / "out", "test")] == ["2", "30"]
    (entry,) = manifest.left_out
    assert (entry.split, entry.file) == ("test", "output_phrase_test.txt")
    # What is left out of a split that is not made does not belong there.
    assert quietly(release, tmp_path / "out", skip_broken=True, splits=["val"]).left_out == []


@pytest.mark.parametrize("skip_broken", [False, True])
def test_phrases_that_tell_of_no_release(
    release: Release, tmp_path: Path, skip_broken: bool
) -> None:
    release.files["output_phrase_test.txt"] = b"1 road\n2 pav\xe9\n"
    with pytest.raises(SourceError, match=r"output_phrase_test\.txt line 2: not UTF-8 text"):
        quietly(release, tmp_path / "out", skip_broken=skip_broken)
    release.phrases("test", "1 road\n5 car\n")
    with pytest.raises(
        SourceError, match=r"test\.txt line 2: 5 is in output_phrase_train\.txt line 1 too"
    ):
        quietly(release, tmp_path / "out", skip_broken=skip_broken)


def pages(first: np.ndarray) -> bytes:
    return tiff(first, save_all=True, append_images=[Image.fromarray(first)])


def turned(picture: np.ndarray) -> bytes:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[274] = 6
    return tiff(picture, tiffinfo=tags)


def jpeg() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 3)).save(stream, "JPEG")
    return stream.getvalue()


def huge() -> bytes:
    """Return a TIFF of 1 kB that says it has 9,000 x 9,000 pixels."""
    data = bytearray(tiff(MASK))
    for tag in (256, 257):  # width, height: tag, type 4, count 1, value
        at = next(
            at for at in range(8, len(data), 2) if struct.unpack_from("<HH", data, at)[0] == tag
        )
        struct.pack_into("<HHIHH", data, at, tag, 3, 1, 9000, 0)
    return bytes(data)


GRADED = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
COLOURED = np.stack([MASK * 255, MASK, MASK], axis=2)
IMAGE, TARGET = r"images/1\.tif: ", r"masks/1\.tif: "
BROKEN = {
    "no image": ("images", None, IMAGE + "is missing"),
    "no mask": ("masks", None, TARGET + "is missing"),
    "other size": (
        "masks",
        tiff(np.zeros((4, 3), np.uint8)),
        TARGET + "the mask has 3 x 4 pixels, the image 4 x 3",
    ),
    "values": (
        "masks",
        tiff(GRADED),
        TARGET + r"a mask holds 0 and 1, or 0 and 255; this one holds 0, 20, 40, .*140, \.\.\.;",
    ),
    "1 and 255": ("masks", tiff(MASK * 254 + 1), TARGET + ".*this one holds 1, 255;"),
    "0, 1 and 255": ("masks", tiff(MASK * np.uint8([1, 1, 255, 1])), TARGET + ".*holds 0, 1, 255;"),
    "2": ("masks", tiff(MASK * 2), TARGET + ".*this one holds 0, 2;"),
    "colours": ("masks", tiff(COLOURED), TARGET + "a mask has one channel; this one has 3"),
    "empty": ("images", b"", IMAGE + "not a readable TIFF of 0 bytes"),
    "cut image": ("images", photo()[:-1], IMAGE + r"not a readable TIFF of \d+ bytes"),
    "cut mask": ("masks", tiff(MASK, compression="tiff_lzw")[:-30], TARGET + "not a readable TIFF"),
    "JPEG": ("images", jpeg(), IMAGE + "not a readable TIFF"),
    "two pages": ("images", pages(COLOURED), IMAGE + "it holds several pictures"),
    "two masks": ("masks", pages(MASK), TARGET + "it holds several pictures"),
    "turned image": ("images", turned(COLOURED), IMAGE + "its orientation is 6"),
    "turned mask": ("masks", turned(MASK), TARGET + "its orientation is 6"),
    "16 bits": ("images", tiff(MASK.astype(np.uint16)), IMAGE + "its pixels are of .* mode I;16"),
    "huge": ("masks", huge(), TARGET + "9000 x 9000 pixels; the limit is 67108864 pixels"),
    "large": ("images", bytes(2**25 + 1), IMAGE + "it has 33,554,433 bytes; the limit is 33,55"),
}


@pytest.mark.parametrize("make", [Release.as_folder, Release.as_zip])
@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_source_stops_or_is_left_out(
    release: Release, tmp_path: Path, fault: str, make: Callable[[Release], Path]
) -> None:
    folder, data, message = BROKEN[fault]
    del release.files[f"{folder}/1.tif"]
    if data is not None:
        release.files[f"{folder}/1.tif"] = data
    source = make(release)
    with pytest.raises(SourceError, match=message) as caught:
        prepare(source, tmp_path / "out", progress=False)
    assert str(caught.value).endswith("; --skip-broken leaves it out and goes on")
    assert not (tmp_path / "out").exists()

    manifest = prepare(source, tmp_path / "out", skip_broken=True, progress=False)
    assert [row["id"] for row in rows(tmp_path / "out", "test")] == ["2", "30"]
    (entry,) = manifest.left_out
    assert (entry.split, entry.id, entry.file) == ("test", "1", "1.tif")
    assert f"left out of test: {entry.reason}" in manifest.sentences()
    assert check(tmp_path / "out") == []


def test_a_split_of_which_nothing_is_left_is_not_made(release: Release, tmp_path: Path) -> None:
    del release.files["masks/4.tif"]
    with pytest.raises(SourceError, match=r"val: every triplet was left out; the first: masks/4"):
        quietly(release, tmp_path / "out", skip_broken=True)
    assert not (tmp_path / "out").exists()


# Zip files that are not what they say


def patched(path: Path, name: str, offset: int, value: bytes) -> None:
    """Change the central directory's record of a file, and its local header alike."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        local = archive.getinfo(name).header_offset
    central = data.rfind(name.encode()) - 46
    assert data[central : central + 4] == b"PK\x01\x02"
    for start in (local + offset - 2, central + offset):
        data[start : start + len(value)] = value
    path.write_bytes(data)


def skip_one(path: Path, output: Path) -> str:
    """Convert without triplet 1; return why it was left out."""
    manifest = prepare(path, output, skip_broken=True, progress=False)
    assert manifest.splits == {"val": 1, "test": 2}
    (entry,) = manifest.left_out
    return entry.reason


def test_a_bomb_that_declares_its_size_is_not_inflated(release: Release, tmp_path: Path) -> None:
    release.files["masks/1.tif"] = bytes(2**25 + 1)
    path = release.as_zip(compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    assert skip_one(path, tmp_path / "out").startswith("masks/1.tif: it has 33,554,433 bytes")


def test_a_bomb_that_hides_its_size_is_inflated_no_further_than_it_says(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tracemalloc

    release.files["masks/1.tif"] = bytes(2**26)
    path = release.as_zip(compression=zipfile.ZIP_DEFLATED)
    patched(path, "masks/1.tif", 24, struct.pack("<I", 1000))
    quietly(release, tmp_path / "warm", splits=["val"])  # what is imported on first use
    tracemalloc.start()
    reason = skip_one(path, tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reason.startswith("masks/1.tif: damaged in the zip file (Bad CRC-32")
    assert peak < 2**24


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_cannot_be_bounded_are_not_read(
    release: Release, tmp_path: Path, method: int
) -> None:
    path = release.as_zip(compression=zipfile.ZIP_DEFLATED)
    patched(path, "masks/1.tif", 10, struct.pack("<H", method))
    assert skip_one(path, tmp_path / "out") == (
        f"masks/1.tif: compressed by method {method}; deflate is needed"
    )


def test_encrypted_and_damaged_files_in_a_zip(release: Release, tmp_path: Path) -> None:
    path = release.as_zip(compression=zipfile.ZIP_DEFLATED)
    patched(path, "masks/1.tif", 8, struct.pack("<H", 1))
    assert "encrypted" in skip_one(path, tmp_path / "out")

    path = release.as_zip()
    mask = release.files["masks/1.tif"]
    path.write_bytes(path.read_bytes().replace(mask, mask[:-1] + b"\x07", 1))
    assert "masks/1.tif: damaged in the zip file (Bad CRC-32" in skip_one(path, tmp_path / "out")


def test_a_zip_that_is_cut_is_no_zip(release: Release, tmp_path: Path) -> None:
    path = release.as_zip()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(SourceError, match=r"RefSegRS\.zip: not a readable zip file"):
        prepare(path, tmp_path / "out", progress=False)


# Releases


@pytest.mark.parametrize(
    ("counts", "release_name"),
    [
        ({"train": 2_172, "val": 431, "test": 1_817}, "official release"),
        ({"test": 1_817}, "official release"),
        ({"train": 2_172, "val": 413, "test": 1_817}, "unknown release (2,172/413/1,817)"),
        ({"test": 5}, "unknown release (0/0/5)"),
    ],
)
def test_releases_are_named_by_their_counts(
    tmp_path: Path, counts: dict[str, int], release_name: str
) -> None:
    from lmms_eval_grounding.data.manifest import LeftOutList
    from lmms_eval_grounding.data.refsegrs_phrases import read_phrases

    release, first = Release(tmp_path), 0
    for split, count in counts.items():
        lines = (f"{number} road\n" for number in range(first, first + count))
        release.phrases(split, "".join(lines))
        first += count
    with refsegrs_files.source_files(release.as_folder()) as files:
        phrases = read_phrases(files, LeftOutList(allowed=False))
    assert phrases.release == release_name
    assert {split: len(texts) for split, texts in phrases.texts.items()} == counts


def test_check_compares_with_the_counts_of_the_named_release(
    release: Release, tmp_path: Path
) -> None:
    quietly(release, tmp_path / "out")
    manifest = tmp_path / "out" / "grounding.json"
    fields = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**fields, "release": "official release"}))
    assert check(tmp_path / "out") == [
        f"{manifest}: val has 1 rows and 0 left out, the official release has 431",
        f"{manifest}: test has 3 rows and 0 left out, the official release has 1,817",
    ]


# Whole or not at all


def test_equal_sources_give_equal_bytes_and_replace_what_is_there(
    release: Release, tmp_path: Path
) -> None:
    quietly(release, tmp_path / "one")
    quietly(release, tmp_path / "two")
    quietly(release, tmp_path / "two")
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    assert read_manifest(tmp_path / "one").source == "RefSegRS"
    (tmp_path / "one" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds something other than prepared refsegrs data"):
        quietly(release, tmp_path / "one")


KILLED = """
import os, signal, sys
from lmms_eval_grounding.data import parquet, refsegrs, refsegrs_rows
parquet.GROUP_ROWS = 5
read, seen = refsegrs_rows.size_of_tiff, []
def kill_half_way(data):
    seen.append(1)
    if len(seen) == 15:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(data)
refsegrs_rows.size_of_tiff = kill_half_way
refsegrs.prepare(sys.argv[1], sys.argv[2], splits=("train", "val", "test"), progress=False)
"""


def test_a_synthetic_release_converts_and_a_killed_run_changes_nothing(tmp_path: Path) -> None:
    synthetic = script("convert_synthetic_masks")
    built = synthetic.build_refsegrs(tmp_path / "source", share=0.006, seed=3)
    options = {"splits": ("train", "val", "test"), "progress": False}
    manifest = prepare(built.source, tmp_path / "out", **options)
    assert manifest.splits == {"train": 13, "val": 4, "test": 11}
    assert synthetic.differences(built, tmp_path / "out", every=1) == []
    assert check(tmp_path / "out") == []

    again = tmp_path / "again"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(built.source), str(again)], check=False
    )
    assert killed.returncode == -9
    assert not again.exists()
    assert list((tmp_path / ".again.partial/data").iterdir()), "killed too early to mean anything"
    prepare(built.source, again, **options)
    assert digests(again) == digests(tmp_path / "out")
    assert not (tmp_path / ".again.partial").exists()


# What check finds


CUT = {"bytes": photo()[:-1], "path": "1.tif"}
ROW = r"test-00000-of-00001\.parquet, row 1 \(id 1\): "
UNSOUND = {
    "row lost": (lambda table: table.pop(), r"test-.*\.parquet: holds 2 rows, .* says 3"),
    "same id": (put(1, id="2"), r"row 1 \(id 2\): the id is in test-00000-of-00001\.parquet too"),
    "id of val": (put(1, id="4"), r"row 1 \(id 4\): the id is in val-00000-of-00001\.parquet too"),
    "id of words": (put(1, id="x"), r"row 1 \(id x\): the id is no number of a triplet"),
    "no text": (put(1, expression=" "), ROW + "the expression is empty"),
    "no target": (put(1, target=None), ROW + "no target"),
    "cut runs": (put(1, target={"size": [3, 4], "counts": "3"}), ROW + "target: the runs add up"),
    "turned": (put(1, target={"size": [4, 3], "counts": COUNTS}), ROW + "target: a mask of 4 x 3"),
    "other size": (
        put(1, width=3, height=4, target={"size": [4, 3], "counts": COUNTS}),
        ROW + "image 1.tif: has 4 x 3 pixels, the row says 3 x 4",
    ),
    "cut image": (put(1, image=CUT), ROW + "image 1.tif: not a readable TIFF"),
    "no bytes": (
        put(1, image={"bytes": None, "path": "x"}),
        ROW + "image x: not a readable TIFF of",
    ),
}


@pytest.mark.parametrize("fault", UNSOUND)
def test_check_names_each_problem_with_its_file(
    release: Release, tmp_path: Path, fault: str
) -> None:
    change, message = UNSOUND[fault]
    quietly(release, tmp_path / "out")
    rewrite(tmp_path / "out", "test", change)
    problems = check(tmp_path / "out")
    assert len(problems) == 1
    assert re.search(message, problems[0]), problems


# The mini set


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("mini") / "out"
    prepare(MINI, output, progress=False)
    return output


def mini_mask(row: dict) -> np.ndarray:
    """Return a mask by pycocotools alone."""
    from pycocotools import mask as coco_mask

    target = {**row["target"], "counts": row["target"]["counts"].encode("ascii")}
    return coco_mask.decode(target).astype(bool)


def test_the_mini_set_is_sound_small_and_varied(mini: Path) -> None:
    from scipy import ndimage

    assert check(mini) == []
    table = rows(mini, "test")
    assert len(table) >= 12
    assert {(row["width"], row["height"]) for row in table} == {(512, 512)}
    values = set()
    for path in (MINI / "masks").iterdir():
        with Image.open(path) as image:
            values.add(tuple(np.unique(np.asarray(image)).tolist()))
    assert values == {(0, 1), (0, 255)}
    tiny, thin = set(), set()
    for row in table:
        mask = mini_mask(row)
        labels, _ = ndimage.label(mask)
        if max(np.bincount(labels.ravel())[1:]) < 100:
            tiny.add(row["expression"])
        if not ndimage.binary_erosion(mask, iterations=7).any() and mask.any(axis=0).mean() > 0.9:
            thin.add(row["expression"])
    assert {"vehicle", "yellow car on the road"} <= tiny
    assert {"unpaved path", "bikeway", "sidewalk along the road"} <= thin
    assert sum(path.stat().st_size for path in MINI.rglob("*") if path.is_file()) < 400_000


def test_the_mini_set_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / str(name))
    assert check(location.refsegrs_mini) == []


@pytest.mark.parametrize(
    ("expression", "colour"),
    [
        ("bus", (226, 190, 50)),
        ("bikeway", (172, 92, 82)),
        ("unpaved path", (196, 180, 144)),
        ("low vegetation", (132, 166, 92)),
    ],
)
def test_mini_masks_are_where_the_colour_is(
    mini: Path, expression: str, colour: tuple[int, int, int]
) -> None:
    (row,) = (row for row in rows(mini, "test") if row["expression"] == expression)
    with Image.open(io.BytesIO(row["image"]["bytes"])) as image:
        same = (np.asarray(image) == colour).all(axis=2)
    assert np.array_equal(same, mini_mask(row))


def test_the_drawing_script_makes_what_is_shipped(tmp_path: Path) -> None:
    path = REPOSITORY / "scripts" / "draw_refsegrs_mini.py"
    subprocess.run([sys.executable, path, "--output", tmp_path / "drawn"], check=True)
    drawn = sorted((tmp_path / "drawn").rglob("*.*"))
    assert [each.relative_to(tmp_path / "drawn") for each in drawn] == [
        each.relative_to(MINI) for each in sorted(MINI.rglob("*.*"))
    ]
    for each in drawn:
        shipped = MINI / each.relative_to(tmp_path / "drawn")
        if each.suffix == ".txt":
            assert each.read_text() == shipped.read_text()
        else:
            with Image.open(each) as one, Image.open(shipped) as other:
                assert one.tobytes() == other.tobytes()
