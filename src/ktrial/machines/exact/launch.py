"""QEMU started for a setup: from switched-off, or with a snapshot's state."""

import contextlib
import os
import signal
from collections.abc import Iterator

from ktrial.machines.errors import CannotLoadState, QemuGone
from ktrial.machines.exact.command_line import (
    kernel_parameters,
    machine_arguments,
    memory_arguments,
    snapshot_point_arguments,
)
from ktrial.machines.exact.setup import Setup
from ktrial.machines.exact.snapshot_cache import OpenSnapshot
from ktrial.machines.qemu import initramfs, kernel_image, migration
from ktrial.machines.qemu.process import Children, QemuProcess, inherited_path, memory_file
from ktrial.target.guest_plan import PLAN_FW_CFG_NAME

_MOMENT = 2.0
"""Seconds in which a QEMU whose monitor has closed is expected to be gone."""
_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
"""How a QEMU ends that somebody else has ended, such as the host's out-of-memory killer."""


class Unstarted(Exception):
    """QEMU ended before the guest's first instruction."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


class TooSmall(Exception):
    """The guest's memory cannot hold kernel and initial RAM disk: QEMU would lay one over the other."""

    def __init__(self, needed: int, memory: int) -> None:
        super().__init__(f"{needed} of {memory} bytes")
        self.needed = needed
        self.memory = memory


@contextlib.contextmanager
def switched_on(
    setup: Setup, children: Children, ram: int, plan: bytes | None = None, *, quiet: bool = True
) -> Iterator[QemuProcess]:
    """A guest at its first instruction, stopped. Its RAM is the file `ram`.

    With a plan it goes on to do that as soon as it is ready; without one it stops at the snapshot point.

    Raises Unstarted or TooSmall.
    """
    memory = setup.boot.memory_mib << 20
    with contextlib.ExitStack() as kept:
        initrd = kept.enter_context(memory_file("ktrial-initrd"))
        initramfs.write(setup.entries, initrd, setup.machine)
        needed = kernel_image.memory_end(setup.kernel) + os.fstat(initrd).st_size
        if needed > memory:
            raise TooSmall(needed, memory)
        os.ftruncate(ram, memory)
        arguments = [
            *_common(setup, quiet=quiet),
            *memory_arguments(setup.boot, inherited_path(ram), shared=True),
            *("-initrd", inherited_path(initrd)),
            *snapshot_point_arguments(stops=plan is None),
        ]
        inherited = [ram, initrd, *setup.inherited]
        _add_plan(arguments, inherited, plan, kept)
        process = kept.enter_context(QemuProcess(setup.qemu, tuple(arguments), tuple(inherited), children))
        _negotiate(process)
        yield process


@contextlib.contextmanager
def restored(setup: Setup, children: Children, snapshot: OpenSnapshot, plan: bytes) -> Iterator[QemuProcess]:
    """A guest at the snapshot point, stopped. It needs no initial RAM disk any more.

    Raises Unstarted or CannotLoadState.
    """
    with contextlib.ExitStack() as kept:
        stream = migration.Stream(snapshot.state)
        arguments = [
            *_common(setup, quiet=True),
            *memory_arguments(setup.boot, inherited_path(snapshot.ram), shared=False),
            *("-incoming", "defer"),
            *snapshot_point_arguments(stops=True),
        ]
        inherited = [snapshot.ram, stream.reading, *setup.inherited]
        _add_plan(arguments, inherited, plan, kept)
        try:
            process = kept.enter_context(
                QemuProcess(setup.qemu, tuple(arguments), tuple(inherited), children)
            )
        finally:
            stream.start()
        _negotiate(process)
        _load(process, stream.reading, setup.machine)
        yield process


def _common(setup: Setup, *, quiet: bool) -> list[str]:
    parameters = kernel_parameters(setup.boot, quiet=quiet)
    return [
        *machine_arguments(setup.boot, setup.cpu_model),
        *setup.plugin,
        *("-S", "-kernel", str(setup.kernel), "-append", parameters),
    ]


def _add_plan(
    arguments: list[str], inherited: list[int], plan: bytes | None, kept: contextlib.ExitStack
) -> None:
    if plan is not None:
        file = kept.enter_context(memory_file("ktrial-plan", plan))
        arguments += ["-fw_cfg", f"name={PLAN_FW_CFG_NAME},file={inherited_path(file)}"]
        inherited.append(file)


def _negotiate(process: QemuProcess) -> None:
    try:
        process.negotiate()
    except QemuGone:
        process.check_stopped()
        # The connection closes a little before the process ends: its own status tells more than our signal's.
        process.ended_within(_MOMENT)
        process.kill()
        raise Unstarted(process.wait(), process.said()) from None


def _load(process: QemuProcess, stream: int, machine: str) -> None:
    """Load a snapshot's state. One that QEMU cannot load is no reason to give up; being killed is."""
    try:
        migration.load(process, stream, machine)
    except CannotLoadState:
        status = process.ended_within(_MOMENT)
        if status in _FROM_OUTSIDE:
            raise Unstarted(status, process.said()) from None
        raise
