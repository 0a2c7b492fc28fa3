"""What the catalogue says about knobs, and what kernels from 5.10 to 7.2 say: one boot a kernel."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.guests import ALL, host_program, newest_for_each_change, versions

from ktrial.errors import KtrialError
from ktrial.experiment.default_settings import INSTANCES, boot_of, knob_differences, knob_values
from ktrial.experiment.resources import default_resources
from ktrial.kernels import kernel_registry
from ktrial.kernels.config import config_of
from ktrial.knobs.apply import apply
from ktrial.knobs.catalogue import all_knobs
from ktrial.knobs.errors import KnobAbsent, KnobError, KnobRefused
from ktrial.knobs.lookup import System, find
from ktrial.knobs.values import form_of
from ktrial.machines.exact import ExactMachine
from ktrial.model.kernel import Kernel
from ktrial.model.knob import Knob, KnobKind, KnobLocation, Version, version_of
from ktrial.model.machine import Boot
from ktrial.model.references import filled
from ktrial.target import Failure, Read, Run, Step, StepResult, Write

pytestmark = pytest.mark.guest

GROUP = "trial"
HERE = {**INSTANCES, "group": (GROUP,)}
MAKE_GROUP = (
    "echo '+cpu +memory +io +cpuset +pids' > /sys/fs/cgroup/cgroup.subtree_control && "
    f"mkdir /sys/fs/cgroup/{GROUP}"
)

IN_THE_GUEST = ("a disk", "a network interface", "a group with", "memory of several kinds", "a boot:", "SMT")
"""What places need, and a guest has."""
DECIDED_BY_THE_MACHINE = {"kernel.randomize_va_space"}
"""The exact machine boots with norandmaps."""
TAILS = ("mitigations", "spectre_v2", "spec_store_bypass_disable", "pti", "zswap.enabled")
"""Boot parameters whose text is the tail of a longer one in some kernels (nospectre_v2, nopti…)."""
NOT_IN_VMLINUX = {"nokaslr"}
"""Read by the code that unpacks the kernel."""
OWN_ANSWER = {
    # The file's own function decides: it wants hardware that is not there, or brings a default back.
    "smt/control",
    "queue/write_cache",
    "queue/wbt_lat_usec",
    "kernel.nmi_watchdog",
}
UNTRIED_BOUNDS = {
    # The guest could not go on, or the bound depends on other knobs and on its memory.
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "kernel.threads-max",
    "kernel.pid_max",
    "fs.file-max",
    "pids.max",
    "vm.dirty_bytes",
    "vm.dirty_background_bytes",
    "kernel.sched_rt_runtime_us",
    "kernel.sched_rt_period_us",
    "kernel.sched_util_clamp_min",
    "kernel.sched_util_clamp_max",
}


@dataclass(frozen=True)
class Tried:
    """Everything that one kernel was asked."""

    kernel: Kernel
    options: dict[str, str]
    reads: dict[str, StepResult]
    writes: dict[tuple[str, str], StepResult] = field(default_factory=dict)

    @property
    def version(self) -> Version:
        return version_of(self.kernel.release)

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Answer reads with what the guest said: a target."""
        absent = StepResult(step=0, do="read", failure=Failure(errno=2, name="ENOENT", text="no such file"))
        return tuple(self.reads.get(step.path, absent) for step in steps if isinstance(step, Read))

    def has(self, place: KnobLocation) -> bool:
        """Whether the catalogue says that this kernel, in this guest, has a knob there."""
        needs_met = not place.needs or any(need in place.needs for need in IN_THE_GUEST)
        configured = not place.config or place.config in self.options
        return place.holds_in(self.version) and needs_met and configured


def paths(knob: Knob, place: KnobLocation) -> list[str]:
    if "{" not in place.path:
        return [place.path]
    fitting = [each for each in HERE[knob.instance] if each.count("/") == place.path.count("{") - 1]
    return [filled(place.path, instance) for instance in fitting]


def file_places() -> Iterator[tuple[Knob, KnobLocation, str]]:
    return (
        (knob, place, path)
        for knob in all_knobs()
        for place in knob.places
        if place.path
        for path in paths(knob, place)
    )


def bounds(knob: Knob, version: Version) -> list[tuple[str, bool]]:
    """Values at the edges of what the catalogue allows, and whether a kernel has to take them."""
    allowed = knob.allowed_in(version)
    if knob.name in UNTRIED_BOUNDS | OWN_ANSWER or knob.kind is not KnobKind.INTEGER:
        return []
    tried: list[tuple[str, bool]] = []
    if allowed.minimum is not None:
        tried += [(str(allowed.minimum - 1), False), (str(allowed.minimum), True)]
    if allowed.maximum is not None:
        tried += [(str(allowed.maximum + 1), False), (str(allowed.maximum), True)]
    return tried


def choices(knob: Knob, version: Version) -> list[tuple[str, bool]]:
    offered = knob.allowed_in(version).choices
    if knob.name in UNTRIED_BOUNDS | OWN_ANSWER or not offered or knob.safety != "safe":
        return []
    return [*((choice, True) for choice in offered), ("nonsense", False)]


@pytest.fixture(scope="module")
def machine(snapshots: Path) -> ExactMachine:
    return ExactMachine(cache=snapshots)


def guest(name: str) -> Boot:
    files = {file for program in ("sh", "mkdir") for file in host_program(program)[0]}
    boot = boot_of(kernel_registry.add(name), default_resources())
    files_by_name = tuple(sorted(files, key=lambda file: file.guest))
    return boot.model_copy(update={"files": files_by_name})


@pytest.fixture(scope="module", params=newest_for_each_change(*ALL))
def tried(request: pytest.FixtureRequest, machine: ExactMachine) -> Tried:
    boot = guest(request.param)
    make = Run(argv=(host_program("sh")[1], "-c", MAKE_GROUP), environment={"PATH": "/usr/bin:/bin"})
    read = [Read(path=path) for _, _, path in file_places()]
    read += [Read(path="/proc/sys/kernel/osrelease"), Read(path="/proc/mounts")]
    result = Tried(boot.kernel, config_of(boot.kernel), {})
    write = [
        Write(path=path, value=value)
        for knob, place, path in file_places()
        if result.has(place)
        for value, _ in (*bounds(knob, result.version), *choices(knob, result.version))
    ]
    with machine.start(boot) as target:
        made, *answers = target.perform((make, *read, *write))
    assert (made.exit, made.stderr) == (0, "")
    result.reads.update({step.path: answer for step, answer in zip(read, answers[: len(read)], strict=True)})
    tries = zip(write, answers[len(read) :], strict=True)
    result.writes.update({(step.path, step.value): answer for step, answer in tries})
    return result


def test_every_knob_is_where_the_catalogue_says_and_nowhere_else(tried: Tried) -> None:
    wrong = [
        (knob.name, path, "is there" if not tried.reads[path].failure else tried.reads[path].failure)
        for knob, place, path in file_places()
        if (tried.reads[path].failure is None) != tried.has(place)
    ]
    assert not wrong, "\n".join(map(str, wrong))


def test_defaults_are_what_the_kernel_has_after_boot(tried: Tried) -> None:
    wrong = []
    for knob, place, path in file_places():
        default = knob.default_in(tried.version, tried.options)
        if not tried.has(place) or knob.name in DECIDED_BY_THE_MACHINE:
            continue
        now = tried.reads[path].content
        if default is None:
            wrong += [] if not now.strip() else [(knob.name, "has no default", now)]
        elif default.value and not form_of(path).shows(default.value, now):
            wrong.append((knob.name, default.value, now))
    assert not wrong, "\n".join(map(str, wrong))


def test_ranges_and_choices_are_those_that_the_kernel_takes(tried: Tried) -> None:
    wrong = []
    for knob, place, path in file_places():
        if not tried.has(place):
            continue
        for value, taken in (*bounds(knob, tried.version), *choices(knob, tried.version)):
            answer = tried.writes[path, value]
            same = answer.failure is None and form_of(path).shows(value, answer.after)
            if same != taken:
                wrong.append((knob.name, value, "taken" if same else answer.failure or answer.after))
    assert not wrong, "\n".join(map(str, wrong))


def test_boot_parameters_are_in_the_kernel_that_has_them(tried: Tried) -> None:
    assert tried.kernel.vmlinux is not None
    image = tried.kernel.vmlinux.read_bytes()
    missing = []
    for knob in all_knobs():
        for place in knob.places:
            name = place.boot.encode()
            before = b"" if place.boot in TAILS else b"\0"
            inside = any(before + name + end + b"\0" in image for end in (b"", b"="))
            if place.boot and place.boot not in NOT_IN_VMLINUX and tried.has(place) and not inside:
                missing.append((knob.name, place.boot))
    assert not missing, "\n".join(map(str, missing))


def test_each_knob_is_found_or_said_to_be_absent(tried: Tried) -> None:
    system = System(tried)
    wrong = []
    for knob in all_knobs():
        instances = [each for each in HERE.get(knob.instance, ()) if paths(knob, knob.places[0])]
        name = f"{knob.name}@{instances[0]}" if instances else knob.name
        if knob.instance and not any("{" not in p for p in paths(knob, knob.places[0])):
            continue
        there = any(tried.has(place) for place in knob.places if place.path)
        try:
            find(system, _named(knob, name))
            said = True
        except (KnobAbsent, KnobError):
            said = False
        if said != there and not _depends_on_hardware(knob):
            wrong.append((knob.name, there))
    assert not wrong, "\n".join(map(str, wrong))


def _named(knob: Knob, name: str) -> str:
    if not knob.instance:
        return knob.name
    slashes = knob.places[0].path.count("{") - 1
    instance = next(each for each in HERE[knob.instance] if each.count("/") == slashes)
    return f"{knob.name}@{instance}"


def _depends_on_hardware(knob: Knob) -> bool:
    return all(place.needs and not any(n in place.needs for n in IN_THE_GUEST) for place in knob.places)


SAID: dict[str, dict[str, type[KtrialError]]] = {
    "debian:5.10": {
        "base_slice_ns": KnobAbsent,
        "lru_gen/enabled": KnobAbsent,
        "mitigations": KnobError,
    },
    "debian:6.1": {
        "/proc/sys/kernel/sched_latency_ns": KnobAbsent,
        "/proc/sys/kernel/sched_migration_cost_ns": KnobAbsent,
        "vm.percpu_pagelist_fraction": KnobAbsent,
    },
    "debian:6.12": {
        "/proc/sys/kernel/sched_latency_ns": KnobAbsent,
        "/sys/kernel/debug/sched/latency_ns": KnobAbsent,
        "sched_wakeup_granularity_ns": KnobAbsent,
        "sched_min_granularity_ns": KnobAbsent,
    },
}


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", versions(*SAID))
def test_what_moved_and_what_is_gone_are_told_apart(kernel: str, machine: ExactMachine) -> None:
    boot = guest(kernel)
    with machine.start(boot) as target:
        for name, kind in SAID[kernel].items():
            with pytest.raises(kind) as said:
                find(System(target), name)
            assert type(said.value) is kind, name


def test_a_rounded_value_is_told_apart_from_a_refused_one(machine: ExactMachine) -> None:
    with machine.start(guest("debian:6.12")) as target:
        with pytest.raises(KnobError, match="135 was asked for, the kernel made it 132"):
            apply(target, [("queue/read_ahead_kb@nullb0", "135")])
        (rounded,) = apply(target, [("queue/read_ahead_kb@nullb0", "135")], exactly=False)
        assert (rounded.rounded, rounded.now) == (True, "132")
        with pytest.raises(KnobRefused, match="EINVAL"):
            apply(target, [("kernel.sched_rt_period_us", "900000")])
        (taken,) = apply(target, [("preempt", "full")])
        assert (taken.rounded, taken.now.strip()) == (False, "none voluntary (full)")
        (word,) = apply(target, [("sched_features", "NO_RUN_TO_PARITY")])
        assert not word.rounded


@pytest.mark.nightly
def test_the_defaults_of_two_kernels_differ_as_is_known(machine: ExactMachine) -> None:
    before, after = (knob_values(name, machine=machine) for name in ("debian:6.1", "debian:6.12"))
    defaults = {one.knob.name: (one.before, one.after) for one in knob_differences(before, after)}
    assert defaults["sched_latency_ns"] == ("6000000", None)
    assert defaults["base_slice_ns"] == (None, "700000")
    assert defaults["net.core.optmem_max"] == ("20480", "131072")
    assert "vm.swappiness" not in defaults
