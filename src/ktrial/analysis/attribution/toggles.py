"""What can be switched in a kernel that is built already: the boot parameters of options and of files.

Names and defaults are those of Documentation/admin-guide/kernel-parameters.txt and of the options' help.
"""

import re
from typing import NamedTuple


class BootSwitch(NamedTuple):
    """A boot parameter that decides what an option only sets the default of."""

    parameter: str
    on: str
    """The value that stands for `y`."""
    off: str
    """The value that stands for an option that is not set."""


OF_OPTIONS = {
    "INIT_ON_ALLOC_DEFAULT_ON": BootSwitch("init_on_alloc", "1", "0"),
    "INIT_ON_FREE_DEFAULT_ON": BootSwitch("init_on_free", "1", "0"),
    "RANDOMIZE_KSTACK_OFFSET_DEFAULT": BootSwitch("randomize_kstack_offset", "on", "off"),
    "HARDENED_USERCOPY_DEFAULT_ON": BootSwitch("hardened_usercopy", "on", "off"),
    "HARDENED_USERCOPY": BootSwitch("hardened_usercopy", "on", "off"),
    "PAGE_TABLE_ISOLATION": BootSwitch("pti", "on", "off"),
    "MITIGATION_PAGE_TABLE_ISOLATION": BootSwitch("pti", "on", "off"),
    "CPU_MITIGATIONS": BootSwitch("mitigations", "auto", "off"),
    "SPECULATION_MITIGATIONS": BootSwitch("mitigations", "auto", "off"),
    "X86_KERNEL_IBT": BootSwitch("ibt", "warn", "off"),
    "X86_FRED": BootSwitch("fred", "on", "off"),
    "AUDIT": BootSwitch("audit", "1", "0"),
    "SECURITY_APPARMOR": BootSwitch("apparmor", "1", "0"),
    "SECURITY_SELINUX": BootSwitch("selinux", "1", "0"),
    "PSI": BootSwitch("psi", "1", "0"),
    "MEMCG": BootSwitch("cgroup_disable", "", "memory"),
    "CGROUP_FAVOR_DYNMODS": BootSwitch("cgroup_favordynmods", "1", "0"),
    "NUMA_BALANCING_DEFAULT_ENABLED": BootSwitch("numa_balancing", "enable", "disable"),
    "SHUFFLE_PAGE_ALLOCATOR": BootSwitch("page_alloc.shuffle", "1", "0"),
    "WQ_POWER_EFFICIENT_DEFAULT": BootSwitch("workqueue.power_efficient", "1", "0"),
    "X86_USER_SHADOW_STACK": BootSwitch("nousershstk", "", "nousershstk"),
    "X86_5LEVEL": BootSwitch("no5lvl", "", "no5lvl"),
}
"""Option, without CONFIG_ → its boot parameter."""

LISTS_OF_OPTIONS = {"LSM": "lsm"}
"""Option that is a text → the boot parameter that takes the same text."""

_MITIGATIONS = {
    "gather_data_sampling": "gather_data_sampling=off",
    "indirect_target_selection": "indirect_target_selection=off",
    "l1tf": "l1tf=off",
    "mds": "mds=off",
    "meltdown": "pti=off",
    "mmio_stale_data": "mmio_stale_data=off",
    "reg_file_data_sampling": "reg_file_data_sampling=off",
    "retbleed": "retbleed=off",
    "spec_rstack_overflow": "spec_rstack_overflow=off",
    "spec_store_bypass": "spec_store_bypass_disable=off",
    "spectre_v1": "nospectre_v1",
    "spectre_v2": "spectre_v2=off",
    "srbds": "srbds=off",
    "tsa": "tsa=off",
    "tsx_async_abort": "tsx_async_abort=off",
    "vmscape": "vmscape=off",
}
"""File below /sys/devices/system/cpu/vulnerabilities → what switches its mitigation off at boot."""
VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities/"

_SWITCH = re.compile(r"(?:.*_)?enabled?")
_ON = re.compile(r"1|[yY]|on|true|0x0*[1-9a-fA-F][0-9a-fA-F]*")
_CHOICES = re.compile(r".*\[(\w+)\].*")
_NEVER = "never"


def mitigation_off(path: str, before: str | None, after: str | None) -> tuple[str, bool, bool] | None:
    """Parameter, and whether it makes the second (the first) as the other is; None where none does.

    A mitigation can only be switched off: that is as the other kernel is where that one has none.
    """
    parameter = _MITIGATIONS.get(path.removeprefix(VULNERABILITIES))
    old, new = _mitigated(before), _mitigated(after)
    return (parameter, new and not old, old and not new) if parameter and old != new else None


def _mitigated(text: str | None) -> bool:
    return bool(text and text.startswith("Mitigation"))


def off(path: str, value: str) -> str | None:
    """What switches off a file that only one kernel has; None where it is no switch, or off already."""
    if not _SWITCH.fullmatch(path.rpartition("/")[2]):
        return None
    if choice := _CHOICES.fullmatch(value):
        return _NEVER if _NEVER in value and choice[1] != _NEVER else None
    if not _ON.fullmatch(value):
        return None
    return "N" if value in {"Y", "y"} else "0"
