"""Errors about running a study."""

from ktrial.errors import KtrialError
from ktrial.kernels.errors import (
    BuildCutShort,
    BuildToolsMissing,
    CacheFull,
    CacheUnusable,
    KernelError,
    SandboxFailed,
    ToolMissing,
)
from ktrial.machines.errors import (
    BadOwnCommand,
    BadPin,
    BadSetting,
    BootChanged,
    CannotBoot,
    CgroupUnusable,
    FileChanged,
    FileToCarry,
    HostChangeForbidden,
    HostHoldsUp,
    KvmUnusable,
    MachineError,
    MachineStuck,
    MachineToolMissing,
    NoSpaceForSnapshot,
    NoSuchUser,
    QemuTooOld,
    QemuUnusable,
    ReleaseTaken,
    TooManyCpus,
    UserNotTaken,
)
from ktrial.store.errors import StoreError
from ktrial.target.errors import GuestProgramsMissing


class FactorLost(KernelError):
    """The factor {factor} is lost: no kernel with another level than the baseline's can be had. {problem}"""

    hint = "{advice}leave out the factor {factor}, and the rest can be measured"


class MachineHeld(MachineError):
    """Machine {machine} is held by {who} since {since}, for study {study}{place} (last heard at {heard}): one
    trial at a time runs on a machine.
    """

    hint = (
        "run the same command again when that has ended (ktrial fleet machines shows who holds which, in a "
        "fleet ktrial fleet status), or with --wait 2h; a holder of whom nothing is heard for {seconds:g} s "
        "is taken for gone"
    )


class LeaseLost(MachineError):
    """Machine {machine} is held by somebody else by now: nothing was heard of this ktrial for {seconds:g} s.

    The trial that was under way is not stored.
    """

    hint = (
        "what was stored before is safe: run the same command again; ktrial fleet machines shows who holds it"
    )


class SystemNotReady(KtrialError):
    """This system is not ready for that: {problems}."""

    hint = "{advice}"


class NothingCanAct(KtrialError):
    """No factor of the study {study} can act: {problem}."""

    hint = "{advice}"
    exit_code = 2


class SettingNowhere(KtrialError):
    """The setting {name} can be made in no kernel of the study ({kernels}){similar}, so no trial was run:
    {problem}.
    """

    hint = "{advice}"
    exit_code = 2


# Errors that say something about this host and nothing about a treatment: they end a run at once.

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
