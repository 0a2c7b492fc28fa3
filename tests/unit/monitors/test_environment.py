"""The audit of the environment: readings of a made-up machine, what changed, what is confounded."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.making import a_study, a_trial

from ktrial.analysis import data_quality
from ktrial.experiment.host_settings import quieting_plan
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import MachineSettings
from ktrial.model.trial import CounterDelta, Environment, Provenance, Reading, ReadingKind
from ktrial.model.warnings import WarningKind
from ktrial.monitors.environment import audit, changes, concerns, confounds, readers
from ktrial.target.local import LocalTarget

CPU = "sys/devices/system/cpu"
EPP = "energy_performance_preference"
THP = "sys/kernel/mm/transparent_hugepage"
QUIET = {
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "performance",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/smt/active": "0",
    f"{CPU}/smt/control": "off",
    f"{CPU}/online": "0-1",
    f"{CPU}/isolated": "",
    f"{CPU}/cpuidle/current_driver": "intel_idle",
    f"{CPU}/cpu0/cpuidle/state0/name": "C1",
    f"{CPU}/cpu0/cpuidle/state0/latency": "2",
    f"{CPU}/cpu0/cpuidle/state0/disable": "0",
    f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3",
    f"{CPU}/vulnerabilities/spectre_v1": "Mitigation: usercopy/swapgs barriers",
    f"{CPU}/vulnerabilities/mds": "Vulnerable",
    "sys/class/thermal/thermal_zone0/temp": "45000",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "sys/devices/system/node/node0/cpulist": "0-1",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/kernel/mm/transparent_hugepage/defrag": "always defer [madvise] never",
    "sys/kernel/mm/ksm/run": "0",
    "sys/kernel/security/lsm": "capability,apparmor",
    "proc/stat": "cpu  100 0 50 9000 0 0 0 7\n",
    "proc/cpuinfo": "flags : fpu tsc\n",
    "proc/cmdline": "quiet",
    "proc/meminfo": "MemAvailable: 8388608 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
    "proc/vmstat": "pswpin 0\npswpout 0\n",
    "proc/irq/default_smp_affinity": "3",
    "proc/1/comm": "init",
    "proc/sys/kernel/nmi_watchdog": "0",
    "proc/sys/kernel/numa_balancing": "0",
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/sys/kernel/osrelease": "6.12.1",
    "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC",
}
"""A machine without anything that disturbs."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, content in QUIET.items():
        write(tmp_path, path, content)
    return tmp_path


def write(root: Path, path: str, content: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{content}\n")


def read(root: Path, name: str) -> Reading:
    reading = audit(root, patient=False).reading(name)
    assert reading
    return reading


def test_a_quiet_machine_gives_no_concern(root: Path) -> None:
    readings = audit(root)
    assert concerns(readings) == ()
    assert [each.name for each in readings.readings if each.absent] == ["energy preference"]


@pytest.mark.parametrize(
    ("name", "path", "content", "concern"),
    [
        ("governor", f"{CPU}/cpu1/cpufreq/scaling_governor", "schedutil", "follows the load"),
        (
            "energy preference",
            f"{CPU}/cpu0/cpufreq/energy_performance_preference",
            "balance_power",
            "saves energy",
        ),
        ("boost", f"{CPU}/intel_pstate/no_turbo", "0", "depends on heat"),
        ("SMT", f"{CPU}/smt/active", "1", "share one core"),
        ("idle states", f"{CPU}/cpu0/cpuidle/state0/latency", "133", "up to 133 µs"),
        ("temperature", "sys/class/thermal/thermal_zone0/temp", "97000", "too hot"),
        (
            "clock source",
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet",
            "a system call",
        ),
        ("hypervisor", "proc/cpuinfo", "flags : fpu hypervisor tsc", "virtual machine"),
        ("swap", "proc/meminfo", "SwapTotal: 2097152 kB\nSwapFree: 1048576 kB", "1024 MiB of it are in use"),
        ("free memory", "proc/meminfo", "MemAvailable: 1024 kB", "reclaim"),
        (
            "transparent huge pages",
            "sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise",
            "fragmented",
        ),
        ("KSM", "sys/kernel/mm/ksm/run", "1", "merges pages"),
        ("NUMA", "sys/devices/system/node/node1/cpulist", "2-3", "another node"),
        ("NMI watchdog", "proc/sys/kernel/nmi_watchdog", "1", "interrupts every CPU"),
        ("irqbalance", "proc/77/comm", "irqbalance", "moves interrupts"),
        ("CPU quota", "sys/fs/cgroup/cpu.max", "50000 100000", "a container's quota"),
    ],
)
def test_what_disturbs_is_told_with_advice(
    root: Path, name: str, path: str, content: str, concern: str
) -> None:
    assert read(root, name).concern == ""
    write(root, path, content)
    told = read(root, name)
    assert concern in told.concern
    assert told.advice


def test_cpus_that_differ_are_told_apart(root: Path) -> None:
    write(root, f"{CPU}/cpu1/cpufreq/scaling_governor", "powersave")
    assert read(root, "governor").value == "performance (cpu 0), powersave (cpu 1)"


def test_security_is_told_without_judging_it(root: Path) -> None:
    assert read(root, "mitigations").value == "1 mitigated (spectre_v1), 1 vulnerable (mds)"
    assert read(root, "security modules").value == "capability, apparmor"
    assert read(root, "ASLR").value == "on"


@pytest.mark.parametrize("content", ["", "\0\xff nonsense", "cpu"])
def test_files_of_an_unknown_form_are_absent_and_no_error(root: Path, content: str) -> None:
    for path in QUIET:
        (root / path).write_text(content)
    audit(root)


def test_an_empty_machine_is_all_absent_but_for_the_disk(tmp_path: Path) -> None:
    known = [each.name for each in audit(tmp_path).readings if not each.absent]
    assert set(known) <= {"free disk", "CPU quota", "NUMA"}


def test_every_reader_says_what_it_is_and_why_it_matters() -> None:
    assert len({each.name for each in readers()}) == len(readers()) >= 25
    assert all(each.what and each.why.endswith(".") for each in readers())


def test_this_machine_can_be_read() -> None:
    audited = audit(patient=False)
    assert audited.reading("kernel")
    assert [each.name for each in audited.readings if not each.value and not each.absent] == []


def at(root: Path, seconds: float) -> Environment:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return audit(root, patient=False).model_copy(update={"taken": start + timedelta(seconds=seconds)})


def test_nothing_changed_is_no_warning(root: Path) -> None:
    assert changes(at(root, 0), at(root, 60)) == ()


def test_a_setting_that_changed_is_told_unless_the_study_changes_it(root: Path) -> None:
    before = at(root, 0)
    write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")
    after = at(root, 60)
    (warning,) = changes(before, after)
    assert warning.kind is WarningKind.ENVIRONMENT_CHANGED
    assert "madvise, defrag madvise became never, defrag madvise" in warning.text
    assert changes(before, after, {"/sys/kernel/mm/transparent_hugepage/enabled"}) == ()
    assert changes(before, after, {"/proc/sys/vm/swappiness"}) == (warning,)


@pytest.mark.parametrize(("stolen", "seconds", "told"), [(7, 60, False), (12, 60, False), (20, 60, True)])
def test_steal_time_counts_by_the_second(root: Path, stolen: int, seconds: float, told: bool) -> None:
    before = at(root, 0)
    write(root, "proc/stat", f"cpu  100 0 50 9000 0 0 0 {stolen}")
    assert bool(changes(before, at(root, seconds))) is told


def test_throttling_is_told_from_the_first_time(root: Path) -> None:
    before = at(root, 0)
    write(root, f"{CPU}/cpu0/thermal_throttle/core_throttle_count", "4")
    (warning,) = changes(before, at(root, 60))
    assert "throttling changed meanwhile: it rose by 1" in warning.text


def test_a_setting_that_two_treatments_never_share_is_a_confound(root: Path) -> None:
    one = [at(root, 0), at(root, 2)]
    write(root, f"{CPU}/smt/active", "1")
    other = [at(root, 1), at(root, 3)]
    (warning,) = confounds({"a": one, "b": other})
    assert warning.kind is WarningKind.CONFOUND
    assert "SMT differs between treatments: off (off) for a, on for b" in warning.text
    assert confounds({"a": [*one, other[0]], "b": other}) == ()
    assert confounds({"a": one, "b": other}, {f"/{CPU}/smt/control"}) == ()


@pytest.mark.parametrize(("count", "told"), [(5, False), (6, True)])
def test_levels_that_keep_apart_are_a_confound_from_six_readings_each(count: int, told: bool) -> None:
    def warm(degrees: float) -> Environment:
        reading = Reading(name="heat", kind=ReadingKind.LEVEL, value=f"{degrees}", number=degrees)
        return Environment(taken=datetime.now(UTC), readings=(reading,))

    cool, hot = [warm(40 + n) for n in range(count)], [warm(60 + n) for n in range(count)]
    assert bool(confounds({"a": cool, "b": hot})) is told
    assert confounds({"a": cool, "b": [*hot, warm(40)]}) == ()


def test_what_others_did_while_workloads_ran_follows_from_the_counters() -> None:
    deltas = {"stat.cpu.user": 80, "stat.cpu.idle": 120, "rusage.tree_cpu_ns": 5e8, "rusage.ktrial_ns": 1e5}
    counters = tuple(CounterDelta(workload="w", name=name, delta=delta) for name, delta in deltas.items())
    trial = a_trial(counters=counters, provenance=Provenance(machine="host"))
    load, steal = data_quality.while_running(trial)
    assert load.number == pytest.approx(0.15, rel=1e-3)
    assert load.concern
    assert steal.number == 0
    assert (
        data_quality.while_running(trial.model_copy(update={"provenance": Provenance(machine="kvm")})) == ()
    )


def test_a_study_tells_concerns_changes_and_confounds(root: Path) -> None:
    write(root, "proc/cpuinfo", "flags : hypervisor")
    one = a_trial(provenance=Provenance(machine="host", environment=at(root, 0)))
    write(root, f"{CPU}/smt/active", "1")
    other = a_trial(provenance=Provenance(machine="host", environment=at(root, 60)))
    warnings = data_quality.environment_warnings(a_study(), {"a": [one, one], "b": [other, other]})
    assert {warning.kind for warning in warnings} == {
        WarningKind.ENVIRONMENT,
        WarningKind.ENVIRONMENT_CHANGED,
        WarningKind.CONFOUND,
    }
    assert "confounded: SMT differs" in data_quality.confounds_beside(a_study(), [one, one])([other, other])
    assert data_quality.confounds_beside(a_study(), [one])([other]) == ""


def test_what_the_factor_itself_changes_is_no_confound(root: Path) -> None:
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    factor = Factor(
        name="thp", kind=FactorKind.SETTING, levels=("madvise", "never"), baseline="madvise", target=path
    )
    one = a_trial(provenance=Provenance(environment=at(root, 0)))
    write(root, path.lstrip("/"), "always madvise [never]")
    other = a_trial(provenance=Provenance(environment=at(root, 60)))
    study = a_study(factors=(factor,))
    assert data_quality.confounds_beside(study, [one, one])([other, other]) == ""
    assert "confounded" in data_quality.confounds_beside(a_study(), [one, one])([other, other])


def test_quiesce_wants_only_what_disturbs(root: Path) -> None:
    write(root, "proc/mounts", "")
    write(root, f"{CPU}/cpufreq/policy0/scaling_governor", "schedutil")
    write(root, "proc/sys/vm/stat_interval", "1")
    for state, latency in (("state1", "2"), ("state2", "133")):
        for name, content in (("name", "C"), ("latency", latency), ("disable", "0")):
            write(root, f"{CPU}/cpu0/cpuidle/{state}/{name}", content)
    steps = {step.name: step for step in quieting_plan(LocalTarget(root), root)}
    made = {name: step.value for name, step in steps.items() if not step.left_out}
    assert made == {
        "cpufreq/scaling_governor@policy0": "performance",
        "vm.stat_interval": "120",
        f"/{CPU}/cpu0/cpuidle/state2/disable": "1",
    }
    assert steps["/sys/kernel/mm/ksm/run"].left_out == "it is so already"
    assert "transparent_hugepage/enabled" not in steps


def test_that_a_machine_elsewhere_was_not_looked_at_is_told() -> None:
    trials = {"a": [a_trial(provenance=Provenance(machine="ssh"))]}
    elsewhere = a_study(machine=MachineSettings(kind="ssh", host="lab3"))
    (warning,) = data_quality.environment_warnings(elsewhere, trials)
    assert warning.kind is WarningKind.ENVIRONMENT
    assert "lab3 was not looked at" in warning.text
    assert data_quality.environment_warnings(elsewhere, {"a": []}) == ()
    assert data_quality.environment_warnings(a_study(), trials) == ()
