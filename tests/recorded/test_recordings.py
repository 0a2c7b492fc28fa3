"""The recordings themselves: they are of the guest programs that are published, and of snapshots."""

import pytest
from tests.support.golden_guests import GOLDEN, RECORDINGS
from tests.support.places import ROOT
from tests.support.recorded_guests import Recording

READY, RESULT = "KTF1\x01", "KTF1\x02"
"""How frames begin."""


def test_guests_were_recorded_with_the_published_programs() -> None:
    """After a change in crates/: crates/record-digests, then python -m tests.support.record_guests."""
    lines = (ROOT / "crates" / "SHA256SUMS").read_text().splitlines()
    digests = {name: digest for digest, name in (line.split() for line in lines if not line.startswith("#"))}
    for name in GOLDEN:
        made_with = Recording.load(RECORDINGS / f"{name}.json.xz").made_with
        programs = {part: made for part, made in made_with.items() if part in digests}
        assert programs == {part: digests[part] for part in programs}, name
        assert {"agent", "work", "lockstep.so"} <= set(programs)


@pytest.mark.parametrize("name", GOLDEN)
def test_no_guest_was_booted_for_want_of_its_snapshot(name: str) -> None:
    """QEMU that cannot load a snapshot boots instead, and says so where nobody looks who records."""
    runs = Recording.load(RECORDINGS / f"{name}.json.xz").runs
    assert [run.asked for run in runs if READY in run.frames and RESULT in run.frames] == []
