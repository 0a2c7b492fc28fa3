"""What differs around two profiles: levels, boot parameters, options, settings, counters; what is unknown."""

from pathlib import Path

import pytest
from tests.support.making import a_sample, a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.scripted import a_kernel

from ktrial.analysis.attribution.conditions_diff import ProfiledArm, differences, differing_values
from ktrial.analysis.attribution.decomposition import explain
from ktrial.errors import KtrialError
from ktrial.model.attribution import Differences, Explanation, KernelValues, LevelDifference
from ktrial.model.design import Factor, FactorKind, Treatment
from ktrial.model.kernel import KernelDifference, KernelSide, OptionCause, OptionChange
from ktrial.model.machine import Boot
from ktrial.model.study import Disk, DiskKind, MachineSettings, Study
from ktrial.model.trial import OPERATIONS, CounterDelta, Trial

OLD, NEW = "debian:6.1", "debian:6.12"
SLAB = explain(
    a_profile(
        {("kmem_cache_alloc", ""): 1000, ("tcp_ack", ""): 100, ("mutex_lock", ""): 100}, operations=100
    ),
    a_profile(
        {("kmem_cache_alloc", ""): 9000, ("tcp_ack", ""): 200, ("mutex_lock", ""): 400}, operations=200
    ),
)
"""Slab is the heaviest subsystem, locks come next, then the network."""


def a_boot(
    name: str, directory: Path | None = None, config: str = "", parameters: tuple[str, ...] = ()
) -> Boot:
    """With a configuration where there is one."""
    file = directory / f"config-{name.replace(':', '-')}" if directory else None
    if file:
        file.write_text(config)
    return Boot(kernel=a_kernel(name, config=file), parameters=parameters)


def counted(kernel: str, operations: int, **counts: float) -> Trial:
    counters = {OPERATIONS: operations, **{name.replace("__", "."): count for name, count in counts.items()}}
    return a_trial(
        planned(kernel),
        counters=tuple(
            CounterDelta(workload="fork", name=name, delta=counter) for name, counter in counters.items()
        ),
    )


def arm(kernel: str, boot: Boot | None = None, trial: Trial | None = None) -> ProfiledArm:
    return ProfiledArm(Treatment(levels={"kernel": kernel}), boot, trial)


def differing_conditions(
    before: ProfiledArm,
    after: ProfiledArm,
    values: dict[str, dict[str, str]] | None = None,
    *,
    study: Study | None = None,
    explanation: Explanation = SLAB,
    kernels: tuple[KernelDifference, ...] = (),
) -> Differences:
    def read(boot: Boot) -> KernelValues:
        return KernelValues(kernel=boot.kernel.name, values=(values or {}).get(boot.kernel.name, {}))

    return differences(study or a_study(), explanation, before, after, read, kernels)


def test_an_option_that_was_renamed_and_kept_its_value_cannot_matter(tmp_path: Path) -> None:
    old = "CONFIG_PAGE_TABLE_ISOLATION=y\nCONFIG_SLUB_TINY=y\n"
    new = "CONFIG_MITIGATION_PAGE_TABLE_ISOLATION=y\nCONFIG_SLUB=y\n"
    first, second = arm(OLD, a_boot(OLD, tmp_path, old)), arm(NEW, a_boot(NEW, tmp_path, new))
    named = {option.option for option in differing_conditions(first, second).options}
    assert named == {"CONFIG_SLUB_TINY", "CONFIG_SLUB"}


def test_levels_that_differ_are_told_and_a_boot_parameter_without_a_value_is_not_given() -> None:
    boot = Factor(name="mitigations", kind=FactorKind.BOOT, levels=("", "mitigations=off"), baseline="")
    sysctl = Factor(name="x", kind=FactorKind.SETTING, target="vm.swappiness", levels=("", "1"), baseline="")
    before, after = (
        ProfiledArm(Treatment(levels={"kernel": OLD, "mitigations": first, "x": second}), None, None)
        for first, second in (("", ""), ("mitigations=off", "1"))
    )
    assert differing_conditions(before, after, study=a_study(factors=(boot, sysctl))).levels == (
        LevelDifference(factor="mitigations", before="(not given)", after="mitigations=off"),
        LevelDifference(factor="x", before="", after="1"),
    )


def test_boot_parameters_that_only_one_has_are_told() -> None:
    seen = differing_conditions(
        arm(OLD, a_boot(OLD, parameters=("quiet", "nosmt"))),
        arm(NEW, a_boot(NEW, parameters=("debug", "quiet"))),
    )
    assert (seen.boot_before, seen.boot_after) == (("nosmt",), ("debug",))


def test_what_is_not_known_is_said_and_nothing_is_made_up() -> None:
    seen = differing_conditions(arm(OLD), arm(NEW))
    assert seen == Differences(
        levels=(LevelDifference(factor="kernel", before=OLD, after=NEW),),
        unknown=(
            f"options: the configuration of {OLD} is not known",
            "counters: a trial that was profiled is not in the store",
        ),
    )
    assert differing_conditions(arm(OLD, a_boot(OLD)), arm(NEW)).unknown == (
        f"options: the configuration of {OLD} is not known",
        f"settings: those of {NEW} were not read",
        "counters: a trial that was profiled is not in the store",
    )


def test_settings_that_cannot_be_read_are_said_with_the_reason() -> None:
    def fails(boot: Boot) -> KernelValues | None:
        if boot.kernel.name == OLD:
            return None
        raise KtrialError("the guest panicked")

    reported = {
        kernel: differences(a_study(), SLAB, arm(kernel, a_boot(kernel)), arm("x"), fails).unknown[1]
        for kernel in (OLD, NEW)
    }
    assert reported[OLD] == f"settings: those of {OLD} were not read"
    assert reported[NEW] == f"settings of {NEW}: the guest panicked"


def test_options_are_those_of_the_two_configurations_folded_by_what_the_study_has_kept(
    tmp_path: Path,
) -> None:
    first = arm(OLD, a_boot(OLD, tmp_path, "CONFIG_SLUB=y\nCONFIG_HZ=250\nCONFIG_SLUB_DEBUG=y\n"))
    second = arm(NEW, a_boot(NEW, tmp_path, "CONFIG_SLAB=y\nCONFIG_HZ=1000\n"))
    plain = differing_conditions(first, second).options
    assert [(difference.option, difference.before, difference.after) for difference in plain] == [
        ("CONFIG_SLAB", None, "y"),
        ("CONFIG_SLUB", "y", None),
        ("CONFIG_SLUB_DEBUG", "y", None),
        ("CONFIG_HZ", "250", "1000"),
    ]
    assert first.boot
    assert second.boot
    sides = [
        KernelSide(name=boot.kernel.name, digest=boot.kernel.digest) for boot in (first.boot, second.boot)
    ]
    changes = tuple(
        OptionChange(option=name, before="y", after=None, cause=OptionCause.OPTION, follows="CONFIG_SLAB")
        for name in ("CONFIG_SLUB", "CONFIG_SLUB_DEBUG")
    )
    elsewhere = KernelDifference(before=sides[0], after=KernelSide(name="x", digest="x"))
    # Which of the two is the first does not matter.
    of_pair = KernelDifference(before=sides[1], after=sides[0], options=changes)
    folded = differing_conditions(first, second, kernels=(elsewhere, of_pair)).options
    assert [(difference.option, difference.followers) for difference in folded] == [
        ("CONFIG_SLAB", ("CONFIG_SLUB", "CONFIG_SLUB_DEBUG")),
        ("CONFIG_HZ", ()),
    ]


def test_settings_of_heavy_subsystems_come_first_one_sided_ones_later_and_the_network_s_last() -> None:
    old = {
        "/proc/sys/net/core/rmem_max": "1",
        "/proc/sys/fs/file-max": "1",
        "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise",
        "/proc/sys/kernel/sched_gone": "1",
        "/proc/sys/vm/same": "Y",
    }
    new = {
        "/proc/sys/net/core/rmem_max": "2",
        "/proc/sys/fs/file-max": "2",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise]",
        "/proc/sys/vm/same": "1",
        "/proc/sys/net/new": "1",
    }
    pages = explain(a_profile({("pte_alloc", ""): 100}), a_profile({("pte_alloc", ""): 900}))
    seen = differing_conditions(
        arm(OLD, a_boot(OLD)), arm(NEW, a_boot(NEW)), {OLD: old, NEW: new}, explanation=pages
    )
    assert [(value.path, value.before, value.after, value.subsystem) for value in seen.values] == [
        (
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise",
            "always [madvise]",
            "page tables",
        ),
        ("/proc/sys/fs/file-max", "1", "2", "file systems"),
        ("/proc/sys/net/core/rmem_max", "1", "2", "network"),
        ("/proc/sys/kernel/sched_gone", "1", None, "scheduler"),
        ("/proc/sys/net/new", None, "1", "network"),
    ]


def test_settings_of_one_boot_are_not_read() -> None:
    def never(boot: Boot) -> KernelValues:
        raise AssertionError(boot)

    boot = a_boot(OLD)
    seen = differences(a_study(), SLAB, arm(OLD, boot), arm(OLD, boot), never)
    assert seen.values == ()


def test_what_could_not_be_read_in_one_of_the_two_is_no_difference() -> None:
    before = KernelValues(kernel=OLD, values={"/a": "1", "/b": "1", "/c": "1"}, left_out={"/d": "EIO"})
    after = KernelValues(kernel=NEW, values={"/b": "2", "/d": "1"}, left_out={"/a": "EACCES"})
    seen = differing_values(before, after)
    assert [(difference.path, difference.before, difference.after) for difference in seen] == [
        ("/b", "1", "2"),
        ("/c", "1", None),
    ]


READ_AHEAD = "/sys/block/vda/queue/read_ahead_kb"


def with_disk(kernel: str, read_ahead: str, size: float, workload: str = "fork") -> Trial:
    return a_trial(
        planned(kernel),
        settings={READ_AHEAD: read_ahead, "vm.swappiness": read_ahead, "/sys/block/vda/queue/same": "1"},
        samples=(a_sample(workload, size, metric="average read size"),),
    )


def test_settings_of_the_disk_are_those_of_the_trials_and_come_first_where_they_are_a_cause() -> None:
    before, after = (
        arm(kernel, a_boot(kernel), with_disk(kernel, value, size))
        for kernel, value, size in ((OLD, "128", 100.0), (NEW, "4096", 2000.0))
    )
    guest = {OLD: {"/proc/sys/fs/x": "1", READ_AHEAD: "1"}, NEW: {"/proc/sys/fs/x": "2", READ_AHEAD: "2"}}
    disk = a_study(machine=MachineSettings(disk=Disk(kind=DiskKind.PMEM)))
    seen = differing_conditions(before, after, guest, study=disk).values
    assert [
        (difference.path, difference.before, difference.after, difference.subsystem) for difference in seen
    ] == [
        (READ_AHEAD, "128", "4096", "block devices"),
        ("/proc/sys/fs/x", "1", "2", "file systems"),
    ]
    (caused,) = seen[0].governs
    assert (caused.metric, caused.before, caused.after) == ("average read size", 100.0, 2000.0)
    assert seen[1].governs == ()
    # Without a disk of the study's own, the guest's settings of its disks are told too.
    assert [value.before for value in differing_conditions(before, after, guest).values] == ["128", "1", "1"]


def test_what_another_workload_measured_is_no_effect() -> None:
    before, after = (
        arm(kernel, None, with_disk(kernel, value, size, "pipe"))
        for kernel, value, size in ((OLD, "128", 100.0), (NEW, "4096", 2000.0))
    )
    (seen,) = differing_conditions(before, after).values
    assert (seen.path, seen.governs) == (READ_AHEAD, ())


def test_counters_are_told_an_operation_the_largest_relative_difference_first() -> None:
    before = arm(
        OLD, None, counted(OLD, 100, vmstat__a=1000, vmstat__b=100, vmstat__gone=500, vmstat__same=700)
    )
    after = arm(
        NEW, None, counted(NEW, 200, vmstat__a=4000, vmstat__b=1000, vmstat__same=1400, vmstat__new=90)
    )
    seen = differing_conditions(before, after).counters
    assert [(difference.counter, difference.before, difference.after) for difference in seen] == [
        ("vmstat.gone", 5.0, 0.0),
        ("vmstat.new", 0.0, 0.45),
        ("vmstat.b", 1.0, 5.0),
        ("vmstat.a", 10.0, 20.0),
    ]


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        ("vmstat.pgfault", True),
        ("schedstat.run_delay", False),
        ("softirq.total_time", False),
        ("sched.wait_ns", False),
        ("stat.cpu.user", False),
        ("rusage.maxrss_kib", False),
    ],
)
def test_times_are_no_events(name: str, is_told: bool) -> None:
    before, after = (
        arm(kernel, None, counted(kernel, 100, **{name.replace(".", "__"): count}))
        for kernel, count in ((OLD, 100), (NEW, 1000))
    )
    assert [counter.counter for counter in differing_conditions(before, after).counters] == [name] * is_told


@pytest.mark.parametrize(
    ("old", "new", "is_told"),
    [(0, 10, True), (0, 9, False), (10, 0, True), (10_000, 10_090, False), (10_000, 10_200, True)],
)
def test_what_is_less_than_ten_events_or_one_percent_apart_is_no_finding(
    old: int, new: int, is_told: bool
) -> None:
    before, after = arm(OLD, None, counted(OLD, 100, x=old)), arm(NEW, None, counted(NEW, 100, x=new))
    assert bool(differing_conditions(before, after).counters) is is_told


def test_without_a_count_of_operations_the_profile_s_are_taken() -> None:
    """Of both, although one trial has one: SLAB's sides did 100 and 200."""
    counters = (
        CounterDelta(workload="fork", name="x", delta=1000),
        CounterDelta(workload="pipe", name="x", delta=7),
    )
    before = arm(OLD, None, a_trial(planned(OLD), counters=counters))
    after = arm(NEW, None, counted(NEW, 50, x=1000))
    (seen,) = differing_conditions(before, after).counters
    assert (seen.before, seen.after) == (10.0, 5.0)
