"""Whether KVM can be used here. Only looking does not tell: it can be there and yet be of no use, so try it.

The probe boots a boot sector under KVM, which counts to fifty million and leaves. It needs no kernel. QEMU's
firmware runs before it, and where a restricted KVM hangs, it hangs there. Where a KVM without hardware behind
it interprets the guest's instructions one by one, counting takes a minute instead of a tenth of a second.
"""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ktrial.machines.errors import MachineError
from ktrial.machines.qemu import program as qemu

DEVICE = Path("/dev/kvm")
SECONDS = 5.0
"""How long the probe guest may take; where KVM works it takes less than one."""

_VIRTUALIZATION = {"vmx", "svm"}
_EXIT = 0x2A
_LOOPS = 50_000_000
_BOOT_SECTOR = bytes(
    (
        *(0x66, 0xB9, *_LOOPS.to_bytes(4, "little")),  # mov ecx, _LOOPS
        *(0x66, 0x49),  # dec ecx
        *(0x75, 0xFC),  # jnz to the dec
        *(0xBA, 0xF4, 0x00),  # mov dx, 0xf4   (isa-debug-exit)
        *(0xB0, _EXIT),  # mov al, 0x2a
        0xEE,  # out dx, al
        0xF4,  # hlt
        *(0xEB, 0xFD),  # jmp to the hlt
    )
)


@dataclass(frozen=True)
class KvmProbe:
    """What the probe found."""

    usable: bool
    reason: str
    """One sentence: why not, or how it was found out."""


def probe(seconds: float = SECONDS) -> KvmProbe:
    """Try KVM, for at most `seconds`. Raises nothing: what is wrong is the reason."""
    reason = _missing()
    if reason:
        return KvmProbe(False, reason)
    try:
        program = qemu.find("kvm").program
    except MachineError as error:
        return KvmProbe(False, f"{DEVICE} is there, but could not be tried: {error.message}")
    return run_boot_sector(program, "kvm", seconds)


def _missing() -> str:
    if not DEVICE.exists():
        has = _VIRTUALIZATION & _cpu_flags()
        why = "is the module kvm_intel or kvm_amd loaded?" if has else "this CPU shows neither VMX nor SVM"
        return f"there is no {DEVICE}: {why}"
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        group = " (is the user in the group kvm?)" if isinstance(error, PermissionError) else ""
        return f"{DEVICE} cannot be opened: {error.strerror}{group}"
    return ""


def _cpu_flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def run_boot_sector(program: Path, accelerator: str, seconds: float) -> KvmProbe:
    """Boot the probe's boot sector with QEMU's accelerator `kvm` (or `tcg`, which works everywhere)."""
    with tempfile.NamedTemporaryFile(prefix="ktrial-kvm-probe-") as disk:
        disk.write(_BOOT_SECTOR.ljust(510, b"\0") + b"\x55\xaa")
        disk.flush()
        try:
            done = subprocess.run(
                _command(program, accelerator, disk.name),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"did not get through a hundred million instructions within {seconds:g} s"
            return KvmProbe(False, f"{DEVICE} exists but a probe guest {problem}")
    if done.returncode == _EXIT << 1 | 1:
        return KvmProbe(True, "a probe guest ran")
    said = done.stderr.strip().splitlines()
    return KvmProbe(False, f"QEMU cannot use {DEVICE}: {said[-1] if said else f'status {done.returncode}'}")


def _command(program: Path, accelerator: str, disk: str) -> tuple[str, ...]:
    return (
        *(str(program), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "pc", "-accel", accelerator, "-m", "32M"),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
        *("-drive", f"file={disk},format=raw,if=ide,snapshot=on"),
    )
