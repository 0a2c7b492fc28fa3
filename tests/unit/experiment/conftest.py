"""What the tests of running studies share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ktrial.store.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty one, in `trials.db`."""
    with open_store(tmp_path / "trials.db") as opened:
        yield opened
