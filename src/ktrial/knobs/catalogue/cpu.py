"""CPUs: frequency, idle states, SMT, clock source."""

from collections.abc import Sequence
from typing import Any

from ktrial.knobs.catalogue.declare import boot_parameter, file, sysctl
from ktrial.model.knob import Default, Knob, KnobKind, Safety

_FREQUENCY = "Documentation/admin-guide/pm/cpufreq.rst"
_IDLE = "Documentation/admin-guide/pm/cpuidle.rst"
_INTEL = "Documentation/admin-guide/pm/intel_pstate.rst"
_HARDWARE = (Default(computed="the hardware"),)


def _policy(name: str, summary: str, default: Sequence[Default] = _HARDWARE, **more: Any) -> Knob:
    more = {"documentation": _FREQUENCY, "needs": "a cpufreq driver", **more}
    return file(
        f"cpufreq/{name}", f"/sys/devices/system/cpu/cpufreq/{{policy}}/{name}", summary, default, **more
    )


KNOBS = (
    _policy(
        "scaling_governor",
        "what decides about the frequency: performance, powersave, schedutil…",
        (Default(computed="the driver and CONFIG_CPU_FREQ_DEFAULT_GOV_…"),),
        kind=KnobKind.TEXT,
        boot="cpufreq.default_governor",
    ),
    _policy("scaling_min_freq", "lowest frequency", unit="kHz", coupled=("cpufreq/scaling_max_freq",)),
    _policy("scaling_max_freq", "highest frequency", unit="kHz", coupled=("cpufreq/scaling_min_freq",)),
    _policy(
        "energy_performance_preference",
        "what the processor itself prefers between speed and energy",
        kind=KnobKind.TEXT,
        needs="intel_pstate with HWP, or amd_pstate in active mode",
        documentation=_INTEL,
    ),
    file(
        "cpufreq/boost",
        "/sys/devices/system/cpu/cpufreq/boost",
        "frequencies above the nominal one",
        "1",
        documentation=_FREQUENCY,
        needs="a cpufreq driver that can switch it",
        kind=KnobKind.SWITCH,
        choices=("0", "1"),
    ),
    file(
        "intel_pstate/no_turbo",
        "/sys/devices/system/cpu/intel_pstate/no_turbo",
        "1: no frequencies above the nominal one",
        "0",
        documentation=_INTEL,
        needs="intel_pstate",
        kind=KnobKind.SWITCH,
        choices=("0", "1"),
    ),
    file(
        "smt/control",
        "/sys/devices/system/cpu/smt/control",
        "several threads on one core",
        _HARDWARE,
        documentation="Documentation/ABI/testing/sysfs-devices-system-cpu",
        boot="nosmt",
        kind=KnobKind.CHOICE,
        choices=("on", "off", "forceoff"),
        config="CONFIG_HOTPLUG_SMT",
        needs="a processor with SMT, to be changed",
    ),
    file(
        "cpu/online",
        "/sys/devices/system/cpu/{cpu}/online",
        "whether the CPU is used; CPU 0 has no such file on x86 since 6.5",
        "1",
        documentation="Documentation/core-api/cpu_hotplug.rst",
        kind=KnobKind.SWITCH,
        choices=("0", "1"),
        needs="a second CPU",
    ),
    file(
        "cpuidle/disable",
        "/sys/devices/system/cpu/{cpu}/cpuidle/{state}/disable",
        "1: the CPU does not enter this idle state",
        "0",
        documentation=_IDLE,
        needs="a cpuidle driver",
        kind=KnobKind.SWITCH,
        choices=("0", "1"),
    ),
    file(
        "cpuidle/current_governor",
        "/sys/devices/system/cpu/cpuidle/current_governor",
        "what chooses the idle state: menu, teo, haltpoll, ladder",
        (Default(computed="the kernel's configuration and whether it is a guest"),),
        documentation=_IDLE,
        boot="cpuidle.governor",
        kind=KnobKind.TEXT,
        config="CONFIG_CPU_IDLE",
    ),
    file(
        "haltpoll.guest_halt_poll_ns",
        "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
        "time that an idle guest polls before it halts",
        "200000",
        documentation="Documentation/virt/guest-halt-polling.rst",
        config="CONFIG_CPU_IDLE_GOV_HALTPOLL",
        boot="haltpoll.guest_halt_poll_ns",
        unit="ns",
    ),
    file(
        "clocksource",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "clock that clock_gettime() reads",
        _HARDWARE,
        documentation="Documentation/timers/timekeeping.rst",
        boot="clocksource",
        kind=KnobKind.TEXT,
    ),
    file(
        "rcu_expedited",
        "/sys/kernel/rcu_expedited",
        "grace periods of RCU are short, at the price of interrupts on all CPUs",
        "0",
        documentation="Documentation/admin-guide/kernel-parameters.txt",
        boot="rcupdate.rcu_expedited",
        coupled=("rcu_normal",),
    ),
    file(
        "rcu_normal",
        "/sys/kernel/rcu_normal",
        "grace periods of RCU are never short, and interrupt nobody",
        "0",
        documentation="Documentation/admin-guide/kernel-parameters.txt",
        boot="rcupdate.rcu_normal",
        coupled=("rcu_expedited",),
    ),
    sysctl(
        "kernel.split_lock_mitigate",
        "programs that lock across cache lines are slowed down, for the others' sake",
        "1",
        choices=("0", "1"),
        kind=KnobKind.SWITCH,
        since="6.1",
        change="727209376f49 x86/split_lock: Add sysctl to control the misery mode, in 6.2 and stable 6.1",
        safety=Safety.SECURITY,
    ),
    boot_parameter(
        "intel_pstate", "driver for the frequencies of Intel's processors: active, passive, disable"
    ),
    boot_parameter(
        "amd_pstate",
        "driver for the frequencies of AMD's processors: active, passive, guided, disable",
        since="6.1",
    ),
    boot_parameter(
        "intel_idle.max_cstate",
        "deepest idle state of Intel's processors; 0: acpi_idle decides",
        config="CONFIG_INTEL_IDLE",
    ),
    boot_parameter("processor.max_cstate", "deepest idle state that acpi_idle enters"),
    boot_parameter("idle", "what an idle CPU does: poll, halt, nomwait"),
    boot_parameter("tsc", "trust in the time-stamp counter: reliable, unstable, nowatchdog"),
    boot_parameter("skew_tick", "ticks of the CPUs do not come at the same time", "0"),
)
"""Those of this subsystem."""
