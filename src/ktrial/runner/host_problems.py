"""Errors that say something about this host and nothing about a treatment: they end a run at once."""

from ktrial import errors

HOST_PROBLEMS: tuple[type[errors.KtrialError], ...] = (
    errors.BadPin,
    errors.BadSetting,
    errors.BuildToolsMissing,
    errors.CacheFull,
    errors.CacheUnusable,
    errors.CgroupUnusable,
    errors.FileToCarry,
    errors.GuestProgramsMissing,
    errors.HostChangeForbidden,
    errors.KvmUnusable,
    errors.MachineToolMissing,
    errors.NoSpaceForSnapshot,
    errors.QemuTooOld,
    errors.QemuUnusable,
    errors.StoreError,
    errors.ToolMissing,
    errors.TooManyCpus,
)
"""A trial that met one of them is not stored: it has not been tried."""
