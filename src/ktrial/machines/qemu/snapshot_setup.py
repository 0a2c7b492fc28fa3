"""One boot with all that it needs found and hashed: command lines, files, and the key of its snapshot."""

from dataclasses import dataclass
from pathlib import Path

from ktrial.machines.qemu import migration, snapshot_cache
from ktrial.machines.qemu.boot import BootFiles
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.watchdog import Limits
from ktrial.model.machine import Boot, MachineIdentity


@dataclass(frozen=True)
class SnapshotSetup:
    """A boot, ready to be started; each machine that starts from snapshots has its own."""

    machine: str
    boot: Boot
    qemu: Qemu
    files: BootFiles
    facts: dict[str, str]
    """What the snapshot's key is made from."""
    identity: MachineIdentity
    """With QEMU's arguments and the kernel's command line: they are made once, for key, record and start."""
    preload: Path
    """The object that is preloaded into QEMU."""
    talkative: str = ""
    """The kernel's command line for a boot that is to tell more."""
    plugin: tuple[str, ...] = ()
    """QEMU's arguments that load the plugin. It changes nothing in the guest: no part of the key."""
    inherited: tuple[int, ...] = ()
    """Files without a name that those arguments mean (`inherited_path`)."""

    @property
    def key(self) -> str:
        """The snapshot's."""
        return snapshot_cache.key(self.facts)

    @property
    def limits(self) -> Limits:
        """For the boot, and for each trial."""
        return Limits(self.boot.limit_instructions, self.boot.limit_seconds)

    @property
    def arguments(self) -> tuple[str, ...]:
        """QEMU's, without those that name files."""
        return self.identity.arguments

    def loading(self, state: bytes | None) -> tuple[str, ...]:
        """QEMU's arguments for what counts, for a guest that starts from `state` or switched off."""
        return self.plugin

    def canonical(self, state: bytes, time_stamp: int) -> bytes:
        """The state with the guest's clock where `time_stamp` (ns) has it. Raises CannotSaveState."""
        return migration.canonical(state, time_stamp, self.machine)
