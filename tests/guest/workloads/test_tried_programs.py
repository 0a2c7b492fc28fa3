"""Twenty-seven programs of others, each captured by one command: two trials give the same digits."""

from pathlib import Path

import pytest
from docs.measured.tried_commands import TRIED
from docs.measured.tried_programs import Attempt, kept, missing

pytestmark = [pytest.mark.guest, pytest.mark.nightly]


@pytest.mark.parametrize("name", list(TRIED))
def test_what_was_counted_is_counted_again_and_twice_alike(name: str, large_path: Path) -> None:
    if lacking := missing(TRIED[name]):
        pytest.skip(f"{name} was not tried: {', '.join(lacking)} is not installed")
    before, now = kept().get(name), Attempt(TRIED[name], large_path / "tried").result()
    if before is None or before.identical:
        assert (now.captured, now.counted, now.identical) == (True, True, True), now.reason
    else:
        assert not now.identical, f"{name} works now: docs/write_numbers.py tried-programs"
