"""Golden guests, booted again: they say what is recorded of them, to the last digit."""

from functools import lru_cache
from pathlib import Path

import pytest
from tests.support.golden_guests import GOLDEN, NEW, OLD, RECORDINGS
from tests.support.record_guests import recorded
from tests.support.recorded_guests import Recording
from tests.support.runs_of_tests import skip_outdated

from ktrial.kernels import kernel_registry
from ktrial.machines import guest_programs

pytestmark = pytest.mark.guest
RECORD_ALL = "python -m tests.support.record_guests"


def test_golden_guests_are_of_the_kernels_that_are_here() -> None:
    """For each change, since it costs nothing: what the guests say is asked nightly."""
    here = {name: kernel_registry.add(name).digest for name in (OLD, NEW)}
    recorded_with = [Recording.load(path).made_with for path in RECORDINGS.iterdir()]
    if others := [
        name for name in here if any(made.get(name, here[name]) != here[name] for made in recorded_with)
    ]:
        skip_outdated(f"golden guests with another {' and '.join(others)}", record=RECORD_ALL)


@pytest.mark.nightly
def test_each_golden_guest_has_a_recording_and_each_recording_its_guest() -> None:
    assert {path.name.removesuffix(".json.xz") for path in RECORDINGS.iterdir()} == set(GOLDEN)


@lru_cache
def programs_of_another_compiler() -> tuple[str, ...]:
    """The guest programs here that are not those of crates/SHA256SUMS."""
    return guest_programs.unpublished(guest_programs.directory())


def programs_of(parts: list[str]) -> list[str]:
    """Those of the parts that are guest programs."""
    return [part for part in parts if part in guest_programs.published(guest_programs.directory())]


@pytest.mark.nightly
@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_guest_says_what_is_recorded_of_it(name: str, tmp_path: Path) -> None:
    """Outdated only where guest programs, QEMU or kernels are others here, and it says something else."""
    then, now = Recording.load(RECORDINGS / f"{name}.json.xz"), recorded(name, tmp_path)
    others = [part for part, made in now.made_with.items() if then.made_with.get(part) != made]
    if not programs_of_another_compiler():
        assert programs_of(others) == [], f"crates/ has changed: {RECORD_ALL}"
    runs = {run.asked: run for run in then.runs}
    differ = [
        f"guest {at}: {field}"
        for at, run in enumerate(now.runs)
        for field, said in run.model_dump(exclude={"identity"}).items()
        if run.asked not in runs or getattr(runs[run.asked], field) != said
    ]
    if differ and others:
        now.save(tmp_path / "now.json.xz")
        what = f"golden guest {name} with other {', '.join(others)}; different are: {', '.join(differ)}"
        skip_outdated(what, record=f"{RECORD_ALL} {name}")
    assert differ == []
    # As recorded: one that was just obtained also knows which of its fields were given.
    known, obtained = ([kernel.model_dump() for kernel in one.kernels] for one in (then, now))
    assert obtained == known or others
    assert [run.asked for run in now.runs] == [run.asked for run in then.runs]
