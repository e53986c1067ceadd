"""What all tests share: nothing of the user's settings, no network."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session", autouse=True)
def _caches_of_this_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HF_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name)))
        yield


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GROUNDING_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def reference_vectors() -> Path:
    """Return the folder of the official evaluators' outputs, kept beside the repository."""
    folder = REPOSITORY.parent / "shared" / "reference_vectors"
    if not folder.is_dir():
        pytest.skip("the official evaluators' outputs are not beside the repository")
    return folder
