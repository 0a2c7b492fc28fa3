"""Studies with kernels that are built: what is built when, and what comes of builds that fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN
from tests.support.fake_builds import FakeBuilder
from tests.support.scripted import ScriptedMachine, scripted_resources

from ktrial.errors import KtrialError
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Builder
from ktrial.experiment.session import run
from ktrial.kernels import Progress
from ktrial.kernels.errors import BuildFailed, BuildToolsMissing, KernelError, OptionNotTaken
from ktrial.model.kernel import Build
from ktrial.model.study import Study, StudyRecord
from ktrial.model.trial import Outcome
from ktrial.store.store import Store, open_store
from ktrial.studyfile.diagnostics import StudySource
from ktrial.studyfile.reader import study_from


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "trials.db") as opened:
        yield opened


class Told(Observer):
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.failed: list[str] = []

    def kernel_progress(self, name: str, step: str, finished: int, total: int) -> None:
        self.steps.append(step)

    def kernel_failed(self, name: str, error: KtrialError) -> None:
        self.failed.append(name)


def a_study(tmp_path: Path, **factors: dict[str, object]) -> Study:
    data = {
        "workloads": ["fork"],
        "perturbations": 2,
        "machine": {"kernel": "mine"},
        "kernels": {"mine": {"source": "debian:linux-source-6.1"}},
        "factors": factors,
    }
    return study_from(data, StudySource("study.toml"), "built", tmp_path, KNOWN)


def options(*levels: str) -> dict[str, object]:
    return {"kind": "kconfig", "levels": list(levels)}


def flags(*levels: str) -> dict[str, object]:
    return {"kind": "compiler-flags", "levels": list(levels)}


def ran(study: Study, store: Store, builds: FakeBuilder, observer: Observer | None = None) -> StudyRecord:
    own_value = scripted_resources(builder=builds.builder)
    return run(study, store=store, machine=ScriptedMachine(), resources=own_value, observer=observer)


def test_every_kernel_is_configured_before_the_first_is_built(tmp_path: Path, store: Store) -> None:
    builds, message = FakeBuilder(), Told()
    study = a_study(tmp_path, allocator=options("SLAB=y", "SLUB=y"), audit={"kind": "boot", "levels": [0, 1]})
    record = ran(study, store, builds, message)
    assert {trial.outcome for trial in record.trials} == {Outcome.COMPLETED}
    assert len(record.trials) == 8
    assert message.steps == ["configuring"] * 2 + ["build 1 of 2: building", "build 2 of 2: building"]
    assert [build.options for build in builds.built] == [{"CONFIG_SLAB": "y"}, {"CONFIG_SLUB": "y"}]
    names = {trial.provenance.kernel for trial in record.trials}
    assert names == {build.name for build in builds.built}
    assert {trial.provenance.kernel_compiler for trial in record.trials} == {"gcc 12.2"}


def test_what_is_stored_needs_no_kernel_what_is_cached_no_configuring(tmp_path: Path, store: Store) -> None:
    study = a_study(tmp_path, allocator=options("SLAB=y", "SLUB=y"))
    builds = FakeBuilder()
    first = ran(study, store, builds)
    again = ran(study, store, builds)
    assert again.trials == first.trials
    assert len(builds.built) == 2
    cached = FakeBuilder(cached=[build.name for build in builds.built])
    with open_store(tmp_path / "other.db") as second:
        ran(study, second, cached)
    assert cached.configured == []


def test_an_option_that_does_not_take_is_the_outcome_of_its_trials(tmp_path: Path, store: Store) -> None:
    builds, message = FakeBuilder(), Told()
    study = a_study(tmp_path, allocator=options("SLAB=y", "NO_SUCH=y", "SLUB=y"))
    record = ran(study, store, builds, message)
    by_level = {
        trial.planned.treatment.levels["allocator"]: (trial.outcome, trial.reason) for trial in record.trials
    }
    assert by_level["SLAB=y"] == by_level["SLUB=y"] == (Outcome.COMPLETED, "")
    outcome, reason = by_level["NO_SUCH=y"]
    assert outcome is Outcome.KERNEL_MISSING
    assert "CONFIG_NO_SUCH=y could not be set in linux: there is no such option" in reason
    assert len(message.failed) == 1
    assert len(builds.built) == 2


@pytest.mark.parametrize("levels", [("NO_SUCH=y", "SLUB=y", "SLAB=y"), ("SLAB=y", "NO_SUCH=y")])
def test_without_anything_to_compare_nothing_is_built(
    tmp_path: Path, store: Store, levels: tuple[str, ...]
) -> None:
    builds = FakeBuilder()
    with pytest.raises(OptionNotTaken):
        ran(a_study(tmp_path, allocator=options(*levels)), store, builds)
    assert builds.built == []


def test_where_no_kernel_with_the_patch_can_be_had_nothing_is_built(tmp_path: Path, store: Store) -> None:
    builds = FakeBuilder()
    study = a_study(tmp_path, allocator=options("SLUB=y", "SLAB=y"), broken=options("", "NO_SUCH=y"))
    with pytest.raises(KernelError, match="The factor broken cannot be measured") as caught:
        ran(study, store, builds)
    assert "CONFIG_NO_SUCH=y could not be set" in caught.value.message
    assert caught.value.advice == "leave out the factor broken, and the rest can be measured"
    assert builds.built == []


def test_when_the_last_kernel_with_a_flag_fails_no_more_are_built(tmp_path: Path, store: Store) -> None:
    builds = FakeBuilder()
    study = a_study(tmp_path, flags=flags("", "-broken"), allocator=options("SLUB=y", "SLAB=y", "SLOB=y"))
    with pytest.raises(KernelError, match="The factor flags cannot be measured"):
        ran(study, store, builds)
    failing = [build.make.get("KCFLAGS") == "-broken" for build in builds.built]
    assert (failing.count(True), failing[-1]) == (3, True)
    assert len(failing) < 6


def test_a_build_that_fails_is_an_outcome_and_is_tried_again(tmp_path: Path, store: Store) -> None:
    study = a_study(tmp_path, flags=flags("", "-broken", "-O3"))
    builds = FakeBuilder()
    record = ran(study, store, builds)
    failed = [trial for trial in record.trials if trial.outcome is Outcome.KERNEL_MISSING]
    assert {trial.planned.treatment.levels["flags"] for trial in failed} == {"-broken"}
    assert failed[0].reason == "linux does not build: gcc: error: -broken"
    ran(study, store, builds)
    assert [build.make.get("KCFLAGS", "") for build in builds.built].count("-broken") == 2


def test_what_ends_the_run_is_said_once_and_what_it_goes_on_without_is_told(
    tmp_path: Path, store: Store
) -> None:
    message = Told()
    with pytest.raises(BuildFailed):
        ran(a_study(tmp_path, flags=flags("-broken", "")), store, FakeBuilder(), message)
    assert message.failed == []
    ran(a_study(tmp_path, flags=flags("", "-broken", "-O3")), store, FakeBuilder(), message)
    assert len(message.failed) == 1


def test_where_the_baseline_does_not_build_nothing_else_is_built(tmp_path: Path, store: Store) -> None:
    builds = FakeBuilder()
    with pytest.raises(BuildFailed):
        ran(a_study(tmp_path, flags=flags("-broken", "", "-O3")), store, builds)
    assert len(builds.built) == 1


def test_a_host_without_a_compiler_ends_the_run(tmp_path: Path, store: Store) -> None:
    def missing(build: Build, progress: Progress) -> dict[str, str]:
        raise BuildToolsMissing(directory="linux", tools="gcc", packages="gcc")

    real = FakeBuilder().builder
    builder = Builder(build=real.build, configured=missing, cached=real.cached)
    study = a_study(tmp_path, allocator=options("SLAB=y", "SLUB=y"))
    with pytest.raises(BuildToolsMissing):
        run(study, store=store, machine=ScriptedMachine(), resources=scripted_resources(builder=builder))
