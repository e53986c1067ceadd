"""The documents of `mmscan_mini`, and prepared folders of other documents over its scans."""

import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

GROUP_OF = {
    "VG_Single_Attribute_Unique": "ST-attr",
    "VG_Single_Attribute_Common": "ST-attr",
    "VG_Single_EQ": "ST-attr",
    "VG_Single_Space": "ST-space",
    "VG_Inter_Attribute_OO": "OO-attr",
    "VG_Inter_Space_OO": "OO-space",
    "VG_Inter_OR": "OR",
}


@cache
def mini_folder() -> Path:
    from lmms_eval_grounding.data.mini import mini_path

    return Path(mini_path("mmscan"))


@cache
def mini_documents() -> tuple[dict[str, Any], ...]:
    import pyarrow.parquet

    (file,) = (mini_folder() / "data").glob("val-*.parquet")
    return tuple(pyarrow.parquet.read_table(file).to_pylist())


def write_documents(documents: Iterable[dict[str, Any]], folder: Path) -> Path:
    """Write documents over the scans of the mini set as a prepared folder, and return it."""
    from datasets import Dataset

    from lmms_eval_grounding.data.mmscan_sample import features

    shutil.copytree(mini_folder(), folder)
    for file in (folder / "data").glob("val-*.parquet"):
        file.unlink()
    rows = Dataset.from_list(list(documents), features())
    rows.to_parquet(folder / "data" / "val-00000-of-00001.parquet")
    return folder
