"""One exception tree: every message says what is wrong, where, what is allowed, and what to do next."""

from ktrial.errors.base import Interrupted, KtrialError
from ktrial.errors.guest import FrameError, GuestEnded, GuestError, GuestProgramsMissing
from ktrial.errors.kernels import KernelError, KernelNotFound
from ktrial.errors.machines import MachineError
from ktrial.errors.store import (
    NewerStore,
    NoSuchBackend,
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreLocked,
    StudyNotStored,
)
from ktrial.errors.study import StudyError
from ktrial.errors.workloads import WorkloadError

__all__ = [
    "FrameError",
    "GuestEnded",
    "GuestError",
    "GuestProgramsMissing",
    "Interrupted",
    "KernelError",
    "KernelNotFound",
    "KtrialError",
    "MachineError",
    "NewerStore",
    "NoSuchBackend",
    "NotAStore",
    "StoreDamaged",
    "StoreError",
    "StoreForbidden",
    "StoreFull",
    "StoreLocked",
    "StudyError",
    "StudyNotStored",
    "WorkloadError",
]
