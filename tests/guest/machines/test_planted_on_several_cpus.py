"""On several CPUs: a lock of all is named as what they wait for; a data race is found, and shown again."""

import json
import shutil
from pathlib import Path

import pytest
from tests.support.guests import Headers, headers
from tests.support.parallel_qemus import needs_a_known_qemu
from tests.support.places import SUPPORT
from typer.testing import CliRunner

from ktrial.analysis.guest_time import TimePart, places
from ktrial.cli.app import app
from ktrial.experiment.profile import profile
from ktrial.kernels import kernel_registry
from ktrial.model.kernel import Kernel
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse
from ktrial.store.store import open_store

pytestmark = [pytest.mark.guest, pytest.mark.nightly, needs_a_known_qemu]  # fetches headers, builds modules

HOOKED = "__x64_sys_getppid"
CPUS = 4
LOCK, LOCK_LOOPS = "ktrial_global_lock", 500
"""Held for half of an operation, more or less: a system call with a probe on it."""

RACE, RACE_LOOPS = "ktrial_race", 40
LOST = "planted race: an update is lost"
SEEDS = 6


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return kernel_registry.add("debian:6.1")


@pytest.fixture(scope="module")
def built_against(kernel: Kernel, request: pytest.FixtureRequest) -> Headers:
    assert request.config.cache, "pytest's own cache keeps the headers"
    return headers(kernel, request.config.cache.mkdir("kernel-headers"))


def with_module(kernel: Kernel, built_against: Headers, place: Path, module: str, loops: int) -> str:
    """The name of the kernel with the module, added as users add one."""
    source = Path(shutil.copy(SUPPORT / f"{module}.c", place))
    modules = place / "lib" / "modules" / kernel.release
    modules.mkdir(parents=True)
    shutil.copy(built_against.build(source, PLANTED_LOOPS=loops, PLANTED_AT=HOOKED), modules)
    return kernel_registry.add(f"path:{kernel.image}", modules=place / "lib").name


def counted(kernel: str, cpus: int, *modules: str) -> Profile:
    settings = MachineSettings(kind="exact-parallel", kernel=kernel, cpus=cpus, modules=modules)
    return profile(settings, WorkloadUse(name="getppid1", parameters={"operations": 1000, "passes": 1}))


def speed_up(one: Profile, several: Profile) -> float:
    first, second = one.region.cpus, several.region.cpus
    assert first is not None
    assert second is not None
    return (several.operations / second.time_ns) / (one.operations / first.time_ns)


def test_a_lock_of_all_cpus_halves_the_speed_up_and_is_named(
    kernel: Kernel, built_against: Headers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    name = with_module(kernel, built_against, tmp_path, LOCK, LOCK_LOOPS)
    locked = counted(name, CPUS, LOCK)
    assert speed_up(counted(name, 1, LOCK), locked) < 0.55 * CPUS
    first, nanoseconds = next(iter(places(locked, TimePart.WAITING).items()))
    assert first.name == f"native_queued_spin_lock_slowpath ← planted_global_lock [{LOCK}]"
    assert nanoseconds > 0.9 * sum(places(locked, TimePart.WAITING).values())

    free = counted(name, CPUS)
    assert speed_up(counted(name, 1), free) > 0.95 * CPUS
    assert not any(place.caller.startswith("planted") for place in places(free, TimePart.WAITING))


def study_of_a_race(kernel: str, place: Path) -> Path:
    path = place / "race.toml"
    path.write_text(
        'workloads = [{ name = "getppid1", operations = 2, passes = 1 }]\n'
        f'[machine]\nkind = "exact-parallel"\nkernel = "{kernel}"\n'
        f'modules = ["{RACE}"]\nboot = ["loglevel=5"]\n'
        f"[factors.cpus]\nlevels = [2, {CPUS}]\n"
    )
    return path


def test_a_data_race_shows_under_some_seeds_and_again_under_the_same(
    kernel: Kernel, built_against: Headers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    study = study_of_a_race(with_module(kernel, built_against, tmp_path, RACE, RACE_LOOPS), tmp_path)
    where = ("--store", str(tmp_path / "trials.db"))
    done = CliRunner().invoke(app, ["run", str(study), "--seeds", str(SEEDS), "--no-html", *where])
    assert done.exit_code == 0, done.output
    with open_store(tmp_path / "trials.db") as store:
        trials = store.trials(1)
    told = {
        trial.planned.key: [each for each in trial.warnings if f"{RACE}.c" in each.text] for trial in trials
    }
    racing = [key for key, warnings in told.items() if warnings]
    assert 0 < len(racing) < len(trials) == 2 * SEEDS
    assert all(f"ktrial replicate STUDY --trial {key}" in told[key][0].advice for key in racing)

    again = CliRunner().invoke(app, ["replicate", "race", "--trial", racing[0], "--json", *where])
    assert again.exit_code == 0, again.output
    replayed = json.loads(again.stdout)
    assert replayed["same"]
    assert LOST in replayed["console"]
