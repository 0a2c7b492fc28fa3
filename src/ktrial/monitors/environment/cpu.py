"""CPUs: frequency, idle states, threads of one core, heat."""

from pathlib import Path

from ktrial.model.trial import ReadingKind
from ktrial.monitors.environment import Absent, EnvironmentReader, Observation, of_cpus, text, together

_CPU = "/sys/devices/system/cpu"
_GOVERNOR = f"{_CPU}/cpu*/cpufreq/scaling_governor"
_EPP = f"{_CPU}/cpu*/cpufreq/energy_performance_preference"
_POLICY = f"{_CPU}/cpufreq/policy*"
"""The same files by another way: those of a CPU are links to them."""
_NO_TURBO = f"{_CPU}/intel_pstate/no_turbo"
_BOOST = f"{_CPU}/cpufreq/boost"
_SMT = f"{_CPU}/smt/active"
_IDLE = f"{_CPU}/cpuidle/current_driver"
_THROTTLED = f"{_CPU}/cpu*/thermal_throttle/core_throttle_count"
_QUIESCE = "ktrial host quiesce"
_SLOW_EXIT_US = 20
"""A CPU that needs longer than this to wake up adds it to what is measured after each wait."""
_HOT_MILLIDEGREES = 85_000


def _governor(root: Path) -> Observation:
    value = together(of_cpus(root, _GOVERNOR))
    if value == "performance":
        return Observation(value)
    return Observation(value, concern="the frequency follows the load", advice=_QUIESCE)


def _preference(root: Path) -> Observation:
    value = together(of_cpus(root, _EPP))
    fine = value == "performance"
    return Observation(value, concern="" if fine else "the CPU saves energy", advice="" if fine else _QUIESCE)


def _boost(root: Path) -> Observation:
    try:
        on = text(root, _NO_TURBO) == "0"
    except FileNotFoundError:
        on = text(root, _BOOST) == "1"
    if not on:
        return Observation("off")
    return Observation(
        "on", concern="the frequency depends on heat and on what other cores do", advice=_QUIESCE
    )


def _smt(root: Path) -> Observation:
    control = text(root, f"{_CPU}/smt/control")
    if text(root, _SMT) == "0":
        return Observation(f"off ({control})")
    return Observation(
        "on",
        concern="two CPUs share one core: what runs on one slows the other down",
        advice="pin to CPUs of different cores (lscpu -e), or boot with nosmt",
    )


def _idle_states(root: Path) -> Observation:
    driver = text(root, _IDLE)
    states = []
    for state in sorted((root / _CPU.lstrip("/")).glob("cpu0/cpuidle/state*")):
        if (state / "disable").read_text().strip() == "0":
            states.append(((state / "name").read_text().strip(), int((state / "latency").read_text())))
    if not states:
        raise Absent("no idle state is enabled")
    shown = ", ".join(f"{name} {latency} µs" for name, latency in states)
    deepest = max(latency for _, latency in states)
    deep = deepest > _SLOW_EXIT_US
    return Observation(
        f"{driver}: {shown}",
        concern=f"waking up takes up to {deepest} µs, and how long depends on how long it was idle"
        if deep
        else "",
        advice=_QUIESCE if deep else "",
    )


def _online(root: Path) -> Observation:
    online, isolated = text(root, f"{_CPU}/online"), text(root, f"{_CPU}/isolated")
    return Observation(f"{online}{f', isolated {isolated}' if isolated else ''}")


def _throttling(root: Path) -> Observation:
    counts = of_cpus(root, _THROTTLED)
    if not counts:
        raise Absent("this CPU, or this guest, does not tell")
    total = sum(int(count) for count in counts.values())
    return Observation(f"{total} times since boot", number=total)


def _temperature(root: Path) -> Observation:
    """The hottest sensor: thermal zones, and what hwmon drivers (coretemp, k10temp) tell."""
    patterns = ("sys/class/thermal/thermal_zone*/temp", "sys/class/hwmon/hwmon*/temp*_input")
    temperatures = []
    for file in (file for pattern in patterns for file in root.glob(pattern)):
        try:
            temperatures.append(int(file.read_text()))
        except (OSError, ValueError):  # a sensor that is switched off answers with an error
            continue
    if not temperatures:
        raise Absent("no sensor can be read here")
    hottest = max(temperatures)
    hot = hottest > _HOT_MILLIDEGREES
    return Observation(
        f"{hottest / 1000:.0f} °C",
        number=hottest / 1000,
        concern="CPUs slow down when they are too hot" if hot else "",
        advice="let it cool down; look at the fans" if hot else "",
    )


READERS = (
    EnvironmentReader(
        "governor",
        "what chooses the CPUs' frequency (cpufreq)",
        "A frequency that follows the load is another one in each run.",
        _governor,
        places=(_GOVERNOR, f"{_POLICY}/scaling_governor"),
    ),
    EnvironmentReader(
        "energy preference",
        "what the CPU itself is told about energy (EPP)",
        "Where hardware chooses the frequency (intel_pstate, amd_pstate), it weighs more than the governor.",
        _preference,
        places=(_EPP, f"{_POLICY}/energy_performance_preference"),
    ),
    EnvironmentReader(
        "boost",
        "frequencies above the nominal one (turbo)",
        "They last as long as heat and the load of the other cores allow.",
        _boost,
        places=(_NO_TURBO, _BOOST),
    ),
    EnvironmentReader(
        "SMT",
        "hardware threads that share a core",
        "Where a program shares its core, a run takes up to twice as long.",
        _smt,
        places=(_SMT, f"{_CPU}/smt/control"),
    ),
    EnvironmentReader(
        "idle states",
        "how deep an idle CPU sleeps (cpuidle)",
        "Waking up costs time, and more the deeper the sleep was.",
        _idle_states,
        places=(_IDLE, f"{_CPU}/cpu*/cpuidle/*"),
    ),
    EnvironmentReader(
        "CPUs",
        "which are online, and which are kept free of other work",
        "With fewer CPUs everything else moves too.",
        _online,
        places=(f"{_CPU}/online", f"{_CPU}/isolated", f"{_CPU}/cpu*/online"),
    ),
    EnvironmentReader(
        "throttling",
        "how often the CPU slowed down because it was too hot",
        "What ran then, ran slower.",
        _throttling,
        ReadingKind.COUNTER,
        places=(_THROTTLED,),
    ),
    EnvironmentReader(
        "temperature",
        "of the hottest sensor",
        "Heat takes boost away first, and then the nominal frequency.",
        _temperature,
        ReadingKind.LEVEL,
    ),
)
