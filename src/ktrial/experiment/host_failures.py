"""Errors that say something about this host and nothing about a treatment: they end a run at once."""

from ktrial.errors import KtrialError
from ktrial.experiment.errors import SystemNotReady
from ktrial.kernels.build.errors import BuildCutShort, BuildToolsMissing, SandboxFailed
from ktrial.kernels.errors import CacheFull, CacheUnusable, ToolMissing
from ktrial.machines.errors import (
    BadPin,
    BadSetting,
    BootChanged,
    CgroupUnusable,
    FileChanged,
    FileToCarry,
    HostChangeForbidden,
    HostHoldsUp,
    KvmUnusable,
    MachineToolMissing,
    NoSpaceForSnapshot,
    NoSuchUser,
    QemuTooOld,
    QemuUnusable,
    TooManyCpus,
    UserNotTaken,
)
from ktrial.machines.ssh.errors import BadOwnCommand, CannotBoot, MachineStuck, ReleaseTaken
from ktrial.store.errors import StoreError
from ktrial.target.errors import GuestProgramsMissing

HOST_PROBLEMS: tuple[type[KtrialError], ...] = (
    BadOwnCommand,
    BadPin,
    BadSetting,
    BootChanged,
    BuildCutShort,
    BuildToolsMissing,
    CacheFull,
    CacheUnusable,
    CannotBoot,
    CgroupUnusable,
    FileChanged,
    FileToCarry,
    GuestProgramsMissing,
    HostChangeForbidden,
    HostHoldsUp,
    KvmUnusable,
    MachineStuck,
    MachineToolMissing,
    NoSpaceForSnapshot,
    NoSuchUser,
    QemuTooOld,
    QemuUnusable,
    ReleaseTaken,
    SandboxFailed,
    StoreError,
    SystemNotReady,
    ToolMissing,
    TooManyCpus,
    UserNotTaken,
)
"""A trial that met one of them is not stored: it has not been tried."""


class TrialsNotMeasured(KtrialError):
    """{count} of {planned} trials were not measured, since the machine failed: the host's fault, not
    the kernel's. They are {trials}. The first said: {problem}.
    """

    hint = (
        "nothing is concluded from that. What was measured is stored ({stored} trials: ktrial show), and the "
        "same command runs the others again; ktrial doctor says what this host lacks"
    )
