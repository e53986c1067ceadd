"""Who may import whom, and what stays unimported."""

import ast
import subprocess
import sys

import pytest
from conftest import REPOSITORY

PACKAGE = REPOSITORY / "plugin" / "lmms_eval_grounding"
OUTSIDE = {"benchmarks", "contract", "data", "register", "cli", "runner", "scoring", "models"}
FORBIDDEN = {
    "geometry": OUTSIDE | {"parsing", "writing", "metrics", "corpus"},
    "parsing": OUTSIDE | {"writing", "metrics", "corpus"},
    "writing": OUTSIDE | {"metrics", "corpus"},
    "metrics": OUTSIDE | {"parsing", "writing", "corpus"},
    "benchmarks": {"register", "cli", "models", "corpus", "runner", "scoring"},
    "scoring": {"register", "cli", "models", "conformance", "runner"},
}


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_imports_point_one_way(folder: str) -> None:
    for path in (PACKAGE / folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                first = (node.module or "").split(".")[0]
                assert first not in FORBIDDEN[folder], f"{path.name} imports {first}"


def test_package_metrics_and_command_need_neither_the_host_nor_torch_nor_datasets() -> None:
    code = (
        "import sys; from lmms_eval_grounding import cli, conformance, contract;"
        "from lmms_eval_grounding.benchmarks import rsvg;"
        "from lmms_eval_grounding.metrics import rsvg;"
        "sys.exit(str({'lmms_eval', 'torch', 'datasets'} & set(sys.modules) or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
