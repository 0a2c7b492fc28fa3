"""Ways into the kernel: system calls, exceptions, interrupts, told by the function that each begins with.

Source: arch/x86/entry/entry_64.S and arch/x86/include/asm/idtentry.h of Linux 5.8 and later. Each is the
root of a tree of calls of its own, so that its inclusive count is what it cost, whatever it interrupted.
"""

import re

from ktrial.model.base import Model
from ktrial.model.profile import FunctionCount, RegionCounts

_KINDS = (
    (re.compile(r"entry_SYSCALL_64$"), "system call"),
    (re.compile(r"(?:entry_(?:SYSCALL|SYSENTER|INT80)_compat|asm_int80_emulation)$"), "32-bit system call"),
    (re.compile(r"asm_exc_(.+)$"), "exception"),
    (re.compile(r"asm_sysvec_(.+)$"), "interrupt"),
    (re.compile(r"asm_(common|spurious)_interrupt$"), "interrupt"),
)
_SYSTEM_CALL = re.compile(r"__(?:x64|ia32)_(?:compat_)?sys_(.+)$")


class KernelEntry(Model):
    """One way into the kernel."""

    name: str
    """`system call`, `exception page_fault`, `interrupt apic_timer_interrupt`; `fork`: one system call."""
    function: str
    """The function that it begins with."""
    entered: int
    """How often, in the region."""
    inclusive: int | None
    """Instructions of it and all that it called; None where calls were not followed."""
    system_call: bool = False
    """One system call by name: a part of the entry `system call`."""


def kernel_entries(region: RegionCounts) -> tuple[KernelEntry, ...]:
    """The ways that were taken, the costliest first; system calls by name come after all others."""
    taken = [entry for each in region.functions if each.entered and (entry := _entry(each))]
    return tuple(
        sorted(taken, key=lambda one: (one.system_call, -(one.inclusive or 0), -one.entered, one.name))
    )


def _entry(function: FunctionCount) -> KernelEntry | None:
    if function.module:
        return None
    if call := _SYSTEM_CALL.match(function.symbol):
        return _made(call[1], function, system_call=True)
    for pattern, kind in _KINDS:
        if met := pattern.match(function.symbol):
            return _made(" ".join((kind, *met.groups())), function, system_call=False)
    return None


def _made(name: str, function: FunctionCount, *, system_call: bool) -> KernelEntry:
    return KernelEntry(
        name=name,
        function=function.symbol,
        entered=function.entered,
        inclusive=function.inclusive,
        system_call=system_call,
    )
