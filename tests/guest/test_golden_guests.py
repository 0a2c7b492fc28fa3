"""Golden guests, booted again: they say what is recorded of them, to the last digit."""

from pathlib import Path

import pytest
from tests.support.golden_guests import GOLDEN, RECORDINGS
from tests.support.record_guests import recorded
from tests.support.recorded_guests import Recording

pytestmark = [pytest.mark.guest, pytest.mark.nightly]


def test_each_golden_guest_has_a_recording_and_each_recording_its_guest() -> None:
    assert {path.name.removesuffix(".json.xz") for path in RECORDINGS.iterdir()} == set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_guest_says_what_is_recorded_of_it(name: str, tmp_path: Path) -> None:
    """Where it says something else and was recorded with other programs, QEMU or kernels, these are told."""
    then, now = Recording.load(RECORDINGS / f"{name}.json.xz"), recorded(name, tmp_path)
    others = [part for part, made in now.made_with.items() if then.made_with.get(part) != made]
    runs = {run.asked: run for run in then.runs}
    differ = [
        f"guest {at}: {field}"
        for at, run in enumerate(now.runs)
        for field, said in run.model_dump(exclude={"identity"}).items()
        if run.asked not in runs or getattr(runs[run.asked], field) != said
    ]
    if differ and others:
        now.save(tmp_path / "now.json.xz")
        pytest.skip(f"recorded with other {', '.join(others)}; different are: {', '.join(differ)}")
    assert differ == []
    # As recorded: one that was just obtained also knows which of its fields were given.
    known, obtained = ([kernel.model_dump() for kernel in one.kernels] for one in (then, now))
    assert obtained == known or others
    assert [run.asked for run in now.runs] == [run.asked for run in then.runs]
