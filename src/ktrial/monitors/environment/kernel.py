"""The kernel's own ways: its clock, what it does for security, address-space layouts."""

from pathlib import Path

from ktrial.monitors.environment import Absent, EnvironmentReader, Observation, text

_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_FAST_CLOCKS = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}
"""Those that programs read without a system call (vDSO)."""
_ASLR = "/proc/sys/kernel/randomize_va_space"
_VULNERABILITIES = "sys/devices/system/cpu/vulnerabilities"


def _kernel(root: Path) -> Observation:
    return Observation(
        text(root, "/proc/sys/kernel/osrelease") + " " + text(root, "/proc/sys/kernel/version")
    )


def _command_line(root: Path) -> Observation:
    return Observation(text(root, "/proc/cmdline"))


def _clock(root: Path) -> Observation:
    value = text(root, _CLOCK)
    if value in _FAST_CLOCKS:
        return Observation(value)
    concern = f"reading {value} is a system call and more: a microsecond or two each time"
    return Observation(
        value, concern=concern, advice="dmesg | grep -i tsc tells why the kernel does not trust the TSC"
    )


def _layouts(root: Path) -> Observation:
    names = {"0": "off", "1": "on, but for the heap", "2": "on"}
    value = text(root, _ASLR)
    return Observation(names.get(value, value))


def _modules(root: Path) -> Observation:
    """What decides beside the usual permissions (security/security.c)."""
    return Observation(text(root, "/sys/kernel/security/lsm").replace(",", ", "))


def _mitigations(root: Path) -> Observation:
    files = sorted((root / _VULNERABILITIES).glob("*"))
    if not files:
        raise Absent("this kernel does not tell")
    states = {file.name: file.read_text().strip() for file in files}
    open_ones = [name for name, state in states.items() if state.startswith("Vulnerable")]
    mitigated = [name for name, state in states.items() if "Mitigation" in state]
    return Observation(
        f"{len(mitigated)} mitigated ({', '.join(mitigated) or 'none'}), "
        f"{len(open_ones)} vulnerable ({', '.join(open_ones) or 'none'})"
    )


def _preemption(root: Path) -> Observation:
    """Where the kernel was built with PREEMPT_DYNAMIC."""
    for path in ("/sys/kernel/debug/sched/preempt", "/proc/sys/kernel/version"):
        try:
            content = text(root, path)
        except OSError:  # debugfs is not mounted, or for root only
            continue
        marked = content.partition("(")[2].partition(")")[0]
        models = [word for word in content.split() if word.startswith("PREEMPT")]
        if marked or models:
            return Observation(marked or models[0])
    raise Absent("this kernel does not tell")


READERS = (
    EnvironmentReader("kernel", "release and build", "Another kernel is another treatment.", _kernel),
    EnvironmentReader(
        "command line", "boot parameters", "They switch half of what is listed here.", _command_line
    ),
    EnvironmentReader(
        "clock source",
        "what the kernel reads the time from",
        "A slow clock is a part of every time that is measured.",
        _clock,
        places=(_CLOCK,),
    ),
    EnvironmentReader(
        "ASLR",
        "whether address-space layouts are random",
        "A layout alone moves a time by some percent: on, it averages out; off, all runs share one.",
        _layouts,
        places=(_ASLR,),
    ),
    EnvironmentReader(
        "security modules",
        "which check what programs do (LSM)",
        "Their checks are a part of system calls.",
        _modules,
        places=("/sys/kernel/security/lsm",),
    ),
    EnvironmentReader(
        "mitigations",
        "what is done against CPU vulnerabilities",
        "They cost between nothing and half of a system call.",
        _mitigations,
        places=(f"/{_VULNERABILITIES}/*",),
    ),
    EnvironmentReader(
        "preemption",
        "when the kernel lets go of a CPU",
        "It decides how long a woken program waits.",
        _preemption,
        places=("/sys/kernel/debug/sched/preempt",),
    ),
)
