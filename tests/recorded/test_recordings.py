"""The recordings themselves: they are of the guest programs that are published."""

from tests.support.golden_guests import GOLDEN, RECORDINGS
from tests.support.places import ROOT
from tests.support.recorded_guests import Recording


def test_guests_were_recorded_with_the_published_programs() -> None:
    """After a change in crates/: crates/record-digests, then python -m tests.support.record_guests."""
    lines = (ROOT / "crates" / "SHA256SUMS").read_text().splitlines()
    digests = {name: digest for digest, name in (line.split() for line in lines if not line.startswith("#"))}
    for name in GOLDEN:
        made_with = Recording.load(RECORDINGS / f"{name}.json.xz").made_with
        programs = {part: made for part, made in made_with.items() if part in digests}
        assert programs == {part: digests[part] for part in programs}, name
        assert {"agent", "work", "lockstep.so"} <= set(programs)
