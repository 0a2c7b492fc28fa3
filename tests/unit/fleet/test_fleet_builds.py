"""Kernels are built by a fleet's workers: several at once, each once; errors are told as they are here."""

import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN
from tests.support.fake_builds import FakeBuilder
from tests.support.fault_points import declared
from tests.support.fleet_processes import Workers
from tests.support.fleets import FleetBuilder, a_build, behave, logged, run_on, with_all_there
from tests.support.scripted import scripted_resources

from ktrial.fleet.fleet import Fleet
from ktrial.fleet.settings import fleet as fleet_named
from ktrial.kernels.errors import BuildFailed
from ktrial.model.kernel import Build
from ktrial.store.store import Store
from ktrial.studyfile.diagnostics import StudySource
from ktrial.studyfile.reader import study_from


def builds(place: Path, count: int) -> list[Build]:
    return [a_build(place / "source", option=str(number)) for number in range(count)]


@pytest.mark.nightly
def test_several_are_built_at_once_and_each_once(fleet: Fleet, logs: Path, place: Path) -> None:
    behave(logs, "all", together=2)
    wanted = builds(place, 4)
    asked = FleetBuilder(fleet)
    had = asked.built(*wanted)
    assert had == {one.name: FakeBuilder.kernel(one) for one in wanted}
    assert {who for who, _ in logged(logs, "compiled")} == {"0", "1"}
    assert len({content for _, content in logged(logs, "building")}) == len(logged(logs, "building")) == 4
    assert asked.here.built == []
    assert "build 4 of 4: looking at the source" in asked.steps
    assert {"building on local-0", "building on local-1"} <= set(asked.steps)


@pytest.mark.nightly
def test_a_study_on_the_fleet_has_its_kernels_built_there(
    fleet: Fleet, logs: Path, place: Path, store: Store
) -> None:
    (place / "source").write_text("source")
    data = {
        "workloads": ["fork"],
        "perturbations": 1,
        "machine": {"kernel": "mine"},
        "kernels": {"mine": {"source": "source"}},
        "factors": {"allocator": {"kind": "kconfig", "levels": ["SLAB=y", "SLUB=y"]}},
    }
    study = study_from(data, StudySource("study.toml"), "built", place, KNOWN)
    asked = FleetBuilder(fleet)
    record = run_on(fleet, study, store, resources=scripted_resources(builder=asked.builder))
    assert len(logged(logs, "compiled")) == len(record.trials) == 2
    assert asked.here.built == []
    assert {one.provenance.kernel_compiler for one in record.trials} == {"gcc 12.2"}


def test_what_is_asked_for_in_two_ways_is_built_once(fleet: Fleet, logs: Path, place: Path) -> None:
    first, second = (a_build(place / "source", flag=flag) for flag in ("-O3", "-Ofast"))
    asked = FleetBuilder(fleet)
    assert set(asked.built(first, second)) == {first.name, second.name}
    assert len(logged(logs, "building")) == 1
    assert asked.here.built == [second], "from this system's cache, under its other name"


def test_what_is_here_is_not_asked_for(fleet: Fleet, logs: Path, place: Path) -> None:
    (wanted,) = builds(place, 1)
    asked = FleetBuilder(fleet, FakeBuilder(cached=[wanted.name]))
    assert asked.built(wanted) == {wanted.name: FakeBuilder.kernel(wanted)}
    assert logged(logs, "building") == []


def test_a_build_that_fails_is_told_as_it_is_here_with_its_log(fleet: Fleet, logs: Path, place: Path) -> None:
    good, bad = a_build(place / "source"), a_build(place / "source", flag="-broken")
    had = FleetBuilder(fleet).built(good, bad)
    error = had[bad.name]
    assert had[good.name] == FakeBuilder.kernel(good)
    assert isinstance(error, BuildFailed)
    assert error.message == FakeBuilder.failed().message
    log = Path(str(error.facts["log"]))
    assert log.is_relative_to(place / "cache")
    assert log.read_text() == "gcc: error: -broken\n"
    assert error.advice == f"the whole log: {log}"


def test_a_worker_that_cannot_build_is_given_no_builds(fleet: Fleet, logs: Path, place: Path) -> None:
    """The other one builds nothing until that is told: it could be done with all of them before."""
    behave(logs, 0, cannot="it lacks gcc")
    behave(logs, 1, until="told")
    asked = FleetBuilder(fleet, on_notice=lambda _what: (logs / "told").touch())
    asked.built(*builds(place, 3))
    assert {who for who, _ in logged(logs, "building")} == {"1"}
    assert asked.notices == ["worker local-0 of the fleet gets no builds: it lacks gcc"]


def test_what_no_worker_can_build_is_built_here(fleet: Fleet, logs: Path, place: Path) -> None:
    behave(logs, "all", cannot="it lacks gcc")
    wanted = builds(place, 2)
    asked = FleetBuilder(fleet)
    assert set(asked.built(*wanted)) == {one.name for one in wanted}
    assert asked.here.built == wanted


def test_a_worker_that_fails_is_given_no_more_and_another_builds(
    fleet: Fleet, logs: Path, place: Path
) -> None:
    behave(logs, 0, loses="ld")
    behave(logs, 1, together=2)
    wanted = builds(place, 2)
    asked = FleetBuilder(fleet)
    assert asked.built(*wanted) == {one.name: FakeBuilder.kernel(one) for one in wanted}
    assert {who for who, _ in logged(logs, "compiled")} == {"1"}
    (told,) = asked.notices
    assert told.startswith("worker local-0 of the fleet gets no more builds: Building linux needs ld")


def test_what_a_worker_made_otherwise_is_not_taken(fleet: Fleet, logs: Path, place: Path) -> None:
    behave(logs, 0, wrong="kernel of its own")
    behave(logs, 1, together=2)
    wanted = builds(place, 2)
    asked = FleetBuilder(fleet)
    assert asked.built(*wanted) == {one.name: FakeBuilder.kernel(one) for one in wanted}
    (told,) = asked.notices
    assert "worker local-0 of the fleet gets no more builds: Another system was to build" in told


def test_kernels_come_by_the_fleets_store_of_files(address: str, place: Path) -> None:
    files = place / "files"
    with Fleet(replace(fleet_named(address), files=str(files))) as fleet:
        asked = FleetBuilder(with_all_there(fleet, 2))
        wanted = builds(place, 2)
        assert asked.built(*wanted) == {one.name: FakeBuilder.kernel(one) for one in wanted}
    kept = [one.read_bytes() for one in files.glob("ktrial-files/*/*")]
    assert [one for one in kept if one.startswith(b"kernel ")]
    assert asked.notices == []


BUILD_POINTS = [name for name in declared("fleet/worker_side.py") if name.startswith("fleet build: ")]
POINTS = [
    pytest.param(name, marks=pytest.mark.nightly if number else ())
    for number, name in enumerate(BUILD_POINTS)
]


@pytest.mark.parametrize("point", POINTS)
def test_a_kernel_whose_worker_is_killed_is_built_by_another(
    point: str, fleet: Fleet, address: str, logs: Path, place: Path
) -> None:
    killed = Workers(address, logs, wanted=1, fault_point=point)
    killed.fill()
    behave(logs, "all", until="killed")
    with_all_there(fleet, 3)
    wanted = builds(place, 3)
    ((_, process),) = killed.running.items()

    def mark_its_end() -> None:
        process.join()
        (logs / "killed").touch()

    threading.Thread(target=mark_its_end, daemon=True).start()
    asked = FleetBuilder(fleet)
    assert asked.built(*wanted) == {one.name: FakeBuilder.kernel(one) for one in wanted}
    assert process.exitcode == -signal.SIGKILL
    assert asked.here.built == []
    assert "worker worker-0 of the fleet is gone: others take over its work" in asked.notices


def test_ctrl_c_ends_all_builds_at_once(fleet: Fleet, logs: Path, place: Path) -> None:
    behave(logs, "all", build=6)

    def ctrl_c(_what: str) -> None:
        if len(logged(logs, "building")) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FleetBuilder(fleet, on_step=ctrl_c).built(*builds(place, 2))
    behave(logs, "all")
    other = [a_build(place / "source", option=f"other {number}") for number in range(2)]
    assert FleetBuilder(fleet).built(*other) == {one.name: FakeBuilder.kernel(one) for one in other}
    assert len(logged(logs, "compiled")) == 2, "what was begun before was not built"
