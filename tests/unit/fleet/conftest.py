"""Where workers are told how to behave, and stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fleets import BEHAVIOUR

from ktrial.installation import CACHE
from ktrial.store import Store, open_store


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where workers are told how to behave, and log what they do."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    monkeypatch.setenv(BEHAVIOUR, str(tmp_path))
    return tmp_path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "ktrial.db") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "other.db") as opened:
        yield opened
