"""QEMU started for a setup: from switched-off, or with a snapshot's state."""

import contextlib
import os
import signal
from collections.abc import Iterator

from ktrial.machines.errors import CannotLoadState
from ktrial.machines.exact.command_line import kernel_parameters, memory_arguments
from ktrial.machines.exact.setup import Setup
from ktrial.machines.exact.snapshot_cache import OpenSnapshot
from ktrial.machines.qemu import initramfs, migration
from ktrial.machines.qemu.command_line import (
    initrd_arguments,
    kernel_arguments,
    plan_arguments,
    snapshot_point_arguments,
)
from ktrial.machines.qemu.launch import MOMENT, Unstarted, check_memory, negotiate
from ktrial.machines.qemu.process import Children, QemuProcess, inherited_path, memory_file

_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP)
"""How a QEMU ends that somebody else has ended, such as the host's out-of-memory killer."""


@contextlib.contextmanager
def switched_on(
    setup: Setup, children: Children, ram: int, plan: bytes | None = None, *, quiet: bool = True
) -> Iterator[QemuProcess]:
    """A guest at its first instruction, stopped. Its RAM is the file `ram`.

    With a plan it goes on to do that as soon as it is ready; without one it stops at the snapshot point.

    Raises Unstarted or TooSmall.
    """
    with contextlib.ExitStack() as kept:
        initrd = kept.enter_context(memory_file("ktrial-initrd"))
        initramfs.write(setup.files.entries, initrd, setup.machine)
        check_memory(setup.boot, initrd)
        os.ftruncate(ram, setup.boot.memory_mib << 20)
        arguments = [
            *_common(setup, quiet=quiet),
            *memory_arguments(setup.boot, inherited_path(ram), shared=True),
            *initrd_arguments(initrd),
            *snapshot_point_arguments(stops=plan is None),
        ]
        inherited = [ram, initrd, *setup.inherited]
        _add_plan(arguments, inherited, plan, kept)
        process = kept.enter_context(QemuProcess(setup.qemu, tuple(arguments), tuple(inherited), children))
        negotiate(process)
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
        negotiate(process)
        _load(process, stream.reading, setup.machine)
        yield process


def _common(setup: Setup, *, quiet: bool) -> list[str]:
    """The arguments that the setup has; a guest that is to say more boots with another command line."""
    parameters = setup.identity.command_line if quiet else kernel_parameters(setup.boot, quiet=False)
    return [
        *setup.identity.arguments,
        *setup.plugin,
        *kernel_arguments(setup.files.kernel, parameters),
    ]


def _add_plan(
    arguments: list[str], inherited: list[int], plan: bytes | None, kept: contextlib.ExitStack
) -> None:
    if plan is not None:
        file = kept.enter_context(memory_file("ktrial-plan", plan))
        arguments += plan_arguments(file)
        inherited.append(file)


def _load(process: QemuProcess, stream: int, machine: str) -> None:
    """Load a snapshot's state. One that QEMU cannot load is no reason to give up; being killed is."""
    try:
        migration.load(process, stream, machine)
    except CannotLoadState:
        status = process.ended_within(MOMENT)
        if status in _FROM_OUTSIDE:
            raise Unstarted(status, process.said()) from None
        raise
