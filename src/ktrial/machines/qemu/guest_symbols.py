"""What a guest says in /proc/kallsyms: asked for once, and then kept beside the snapshot."""

import base64
import threading

from ktrial.machines.qemu.snapshot_cache import SnapshotCache
from ktrial.machines.qemu.snapshot_setup import SnapshotSetup
from ktrial.target import Collect, Target, Write
from ktrial.target.errors import NoSymbolsInGuest

SHOWN = Write(path="/proc/sys/kernel/kptr_restrict", value="0")
"""Where the kernel hides the addresses in /proc/kallsyms from all, even root is told zeros."""
_KALLSYMS = "/proc/kallsyms"
_ASKING = threading.Lock()


def kallsyms(target: Target, snapshots: SnapshotCache, setup: SnapshotSetup) -> str:
    """The text, with the modules that the system has loaded.

    Raises NoSymbolsInGuest, GuestEnded, MachineError.
    """
    with _ASKING:
        kept = snapshots.note(setup.key)
        if kept is None:
            kept = _told(target, setup)
            snapshots.keep_note(setup.key, kept)
    return kept.decode("ascii", errors="replace")


def _told(target: Target, setup: SnapshotSetup) -> bytes:
    # Every `perform` starts anew: the workload does not see the change.
    *_, told = target.perform((SHOWN, Collect(path=_KALLSYMS)))
    if told.failure:
        name, problem = setup.boot.kernel.name, f"{_KALLSYMS}: {told.failure.text}"
        raise NoSymbolsInGuest(name=name, problem=problem)
    return base64.b64decode(told.content)
