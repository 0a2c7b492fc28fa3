"""One QEMU process: started, watched through descriptors, and never left behind.

Nothing that it reads or writes has a name in the file system. The frames, the console log and what QEMU
itself says go to memory files, which cannot block the guest, cannot be full, and vanish with ktrial. The
monitor is a socket that QEMU inherits. QEMU has a process group of its own, so that Ctrl-C in a terminal
reaches ktrial only, and `setpriv --pdeathsig` has the kernel kill it as soon as ktrial dies. What else it may
do is little (`jail`). `lockstep.so`
(crates/lockstep) keeps QEMU's main loop from running beside the guest's CPU, which would change its clock;
`coalesce.so` (crates/coalesce) writes in pieces what the guest writes byte by byte.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ktrial.machines.errors import MachineError, MachineStopped, MachineToolMissing, QemuGone, QemuRefused
from ktrial.machines.guest_programs import coalesce, rewind
from ktrial.machines.qemu import jail
from ktrial.machines.qemu.frame_log import FrameLog
from ktrial.machines.qemu.program import Qemu

_START_PATIENCE = 60.0
"""Seconds for QEMU to begin to talk, on a machine busy with other work."""
OUTPUT_LIMIT = 512 << 20
"""Bytes that a guest may write to its frames and its console, and QEMU to any file: they are in memory."""
_KEPT_OF_START, _KEPT_OF_END = 1 << 20, 3 << 20
"""Bytes of a longer text that are looked at."""


class Children:
    """The QEMU processes that are alive; `stop` ends them all, from whatever thread."""

    def __init__(self, machine: str) -> None:
        self.machine = machine
        self._alive: set[subprocess.Popen[bytes]] = set()
        # Re-entrant: a signal handler calls stop(), and may have interrupted the very thread that holds it.
        self._lock = threading.RLock()
        self._stopped = False

    def check(self) -> None:
        """Raise MachineStopped once stop() was called."""
        if self._stopped:
            raise MachineStopped(machine=self.machine)

    def add(self, child: subprocess.Popen[bytes]) -> None:
        """Count a process in; one that comes after stop() is ended at once."""
        with self._lock:
            self._alive.add(child)
            if self._stopped:
                child.kill()

    def remove(self, child: subprocess.Popen[bytes]) -> None:
        """Count out a process that has ended."""
        with self._lock:
            self._alive.discard(child)

    def stop(self) -> None:
        """End all processes; their watchers raise MachineStopped."""
        with self._lock:
            self._stopped = True
            for child in self._alive:
                child.kill()


class QemuProcess:
    """A running QEMU, as a context manager: at its end the process is killed and waited for."""

    def __init__(
        self,
        qemu: Qemu,
        arguments: tuple[str, ...],
        inherited: tuple[int, ...],
        children: Children,
        *,
        memory: int,
        files: Iterable[Path] = (),
        preload: Path | None = None,
        cpus: tuple[int, ...] = (),
        kvm: bool = False,
        rewound_by: int | None = None,
    ) -> None:
        """`memory`: the guest's, in bytes. `files`: those that the arguments name and that are not inherited.

        `preload`: an object loaded before QEMU. `cpus`: those that it may use; all where it is empty. `kvm`:
        whether it opens /dev/kvm. `rewound_by`: an inherited file by which it serves many trials (`kept`).
        """
        children.check()
        self._children = children
        self._cpus = cpus
        self._machine = children.machine
        self._jail = jail.jail_of(qemu.program, kvm=kvm)
        self._memory = memory
        preloaded = (preload, coalesce()) if preload else ()
        if rewound_by is not None:
            preloaded = (*preloaded, rewind())
        with contextlib.ExitStack() as resources:
            self._frame_log = FrameLog()
            self._console_start = 0
            self.frames, self.console, self._said = (resources.enter_context(_memory(n)) for n in _OUTPUTS)
            ours, theirs = socket.socketpair()
            resources.enter_context(ours)
            with theirs, self._handed((*files, *preloaded)) as handed:
                command = self._command(qemu, handed.arguments(arguments), theirs.fileno())
                passed = (theirs.fileno(), self.frames, self.console, *inherited, *handed.descriptors)
                environment = jail.environment(map(handed.name, preloaded))
                if rewound_by is not None:
                    environment["KTRIAL_REWIND"] = inherited_path(rewound_by)
                self._child = self._spawn(command, passed, environment)
            children.add(self._child)
            self._pidfd = resources.enter_context(_open(os.pidfd_open(self._child.pid)))
            self.qmp = Qmp(ours, self._machine)
            self._kept = resources.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._children.remove(self._child)
        self._kept.close()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._child.pid

    @property
    def pidfd(self) -> int:
        """Readable once the process has ended."""
        return self._pidfd

    def negotiate(self) -> None:
        """Make the monitor ready. Raises QemuGone where QEMU ended instead."""
        self.qmp.negotiate(_START_PATIENCE)

    def wait(self) -> int:
        """Wait for the end; the exit status, or minus the signal's number."""
        return self._child.wait()

    def ended_within(self, seconds: float) -> int | None:
        """The exit status, as `wait`; None where it is still alive after so many seconds."""
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End it, if it has not ended yet, and wait for that."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGKILL)
            self._child.wait()

    def check_stopped(self) -> None:
        """Raise MachineStopped where the end was our own doing."""
        self._children.check()

    def frame_bytes(self) -> bytes:
        """All that the guest wrote to its frame port so far."""
        return _content(self.frames)

    def reported(self) -> FrameLog:
        """What the guest reported so far, to the first damaged frame. QEMU is asked nothing for that."""
        self._frame_log.read(self.frames)
        return self._frame_log

    def begin_anew(self) -> None:
        """What is written from here on is another guest's."""
        self._frame_log = FrameLog(os.fstat(self.frames).st_size)
        self._console_start = os.fstat(self.console).st_size

    def console_text(self) -> str:
        """What the guest wrote to its console so far; of more than some MiB the start and the end."""
        return _text(self.console, self._console_start)

    def has_written_too_much(self) -> bool:
        """Whether the guest, or QEMU because of it, wrote more than may be kept."""
        return are_full(self.frames, self.console, self._said)

    def messages(self) -> str:
        """What QEMU itself wrote to its standard output and error."""
        return _text(self._said).strip()

    @contextlib.contextmanager
    def _handed(self, files: Iterable[Path]) -> Iterator[jail.Handed]:
        with contextlib.ExitStack() as resources:
            try:
                handed = resources.enter_context(jail.handed(self._jail, files))
            except OSError as error:
                raise MachineError(
                    machine=self._machine, problem=f"{error.filename} cannot be read: {error.strerror}"
                ) from None
            yield handed

    def _command(self, qemu: Qemu, arguments: Iterable[str], monitor: int) -> list[str]:
        pinned = ("taskset", "--cpu-list", ",".join(map(str, self._cpus))) if self._cpus else ()
        return [
            *(*self._jail.start(OUTPUT_LIMIT, self._memory), *pinned, str(qemu.program.absolute())),
            *(*self._jail.arguments, *arguments),
            *("-chardev", f"socket,id=monitor,fd={monitor}", "-mon", "chardev=monitor,mode=control"),
            *("-chardev", f"file,id=frames,path={inherited_path(self.frames)}"),
            *("-device", "isa-debugcon,iobase=0xe9,chardev=frames"),
            *("-chardev", f"file,id=console,path={inherited_path(self.console)}"),
            *("-serial", "chardev:console"),
        ]

    def _spawn(
        self, command: list[str], passed: tuple[int, ...], environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        if not shutil.which(command[0]):
            raise MachineToolMissing(
                machine=self._machine, program=command[0], where="in PATH", package="util-linux"
            )
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                env=environment,
                pass_fds=passed,
                process_group=0,
            )
        except OSError as error:
            raise MachineError(
                machine=self._machine, problem=f"QEMU cannot be started: {error.strerror}"
            ) from None


_OUTPUTS = ("ktrial-frames", "ktrial-console", "ktrial-qemu")


def inherited_path(descriptor: int) -> str:
    """A path by which a child that inherits the descriptor opens the same file, even one without a name."""
    return f"/proc/self/fd/{descriptor}"


def are_full(*files: int) -> bool:
    """Whether these files together hold as much as may be written.

    The kernel lets none of them grow beyond that. It tells the thread that writes, which does not listen.
    """
    return sum(os.fstat(file).st_size for file in files) >= OUTPUT_LIMIT


def memory_file(name: str, content: bytes = b"") -> contextlib.AbstractContextManager[int]:
    """A file in memory with this content, closed at the end of the block."""
    return _memory(name, content)


@contextlib.contextmanager
def _memory(name: str, content: bytes = b"") -> Iterator[int]:
    with _open(os.memfd_create(name)) as descriptor:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        yield descriptor


@contextlib.contextmanager
def _open(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _content(descriptor: int, start: int = 0, end: int | None = None) -> bytes:
    parts = []
    at = start
    while part := os.pread(descriptor, 1 << 24 if end is None else min(end - at, 1 << 24), at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _text(descriptor: int, start: int = 0) -> str:
    """What is searched for reasons and shown: a guest may have written hundreds of MiB."""
    size = os.fstat(descriptor).st_size
    left_out = size - start - _KEPT_OF_START - _KEPT_OF_END
    if left_out <= 0:
        return _content(descriptor, start).decode(errors="replace")
    first, end = (
        _content(descriptor, start, start + _KEPT_OF_START),
        _content(descriptor, size - _KEPT_OF_END, size),
    )
    return f"{first.decode(errors='replace')}\n[{left_out} bytes left out]\n{end.decode(errors='replace')}"


# QEMU's monitor protocol (QMP), over a socket that QEMU inherits.
#
# Not the `qemu.qmp` package: that one is asyncio only, and could not be used from a program (a notebook)
# whose event loop runs already. What is needed here is little: commands, their answers, and events in
# between. Protocol: https://www.qemu.org/docs/master/interop/qmp-spec.html

_CHUNK = 65536


class Qmp:
    """One side of a monitor connection."""

    def __init__(self, connection: socket.socket, machine: str) -> None:
        self.events: deque[dict[str, Any]] = deque()
        """Events that came and were not taken yet, oldest first."""
        self._socket = connection
        self._machine = machine
        self._buffer = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._greeted = False

    def fileno(self) -> int:
        """For select."""
        return self._socket.fileno()

    def negotiate(self, seconds: float) -> None:
        """Wait for the greeting, and leave the negotiation mode. Nothing waits longer than `seconds` then."""
        self._socket.settimeout(seconds)
        while not self._greeted:
            self.receive("its greeting")
        self.execute("qmp_capabilities")

    def execute(self, command: str, descriptors: tuple[int, ...] = (), **arguments: object) -> Any:
        """Ask, and return the answer. Raises QemuRefused (it is an error) or QemuGone (there is none)."""
        number = self.send(command, descriptors, **arguments)
        while number not in self._answers:
            self.receive(command)
        return self.answer(number, command)

    def send(self, command: str, descriptors: tuple[int, ...] = (), **arguments: object) -> int:
        """Ask without waiting; the number is for `answer`. Raises QemuGone.

        An argument `announce_rounds` is sent as `announce-rounds`: QMP's names have hyphens.
        """
        self._number += 1
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        message = {"execute": command, "arguments": named, "id": self._number}
        data = json.dumps(message).encode() + b"\n"
        try:
            if descriptors:
                socket.send_fds(self._socket, [data], list(descriptors))
            else:
                self._socket.sendall(data)
        except OSError:
            raise QemuGone(machine=self._machine, command=command) from None
        return self._number

    def answered(self, number: int) -> bool:
        """Whether the answer to `number` has come."""
        return number in self._answers

    def answer(self, number: int, command: str) -> Any:
        """Take the answer that has come. Raises QemuRefused where it is an error."""
        message = self._answers.pop(number)
        if "error" in message:
            problem = message["error"].get("desc", "it does not say why")
            raise QemuRefused(machine=self._machine, command=command, problem=problem)
        return message["return"]

    def receive(self, waiting_for: str = "anything") -> None:
        """Take in what has arrived; wait where nothing has. Raises QemuGone at the end of the connection."""
        try:
            data = self._socket.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            raise QemuGone(machine=self._machine, command=waiting_for)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            if line.strip():
                self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if "QMP" in message:
            self._greeted = True
        elif "event" in message:
            self.events.append(message)
        elif "id" in message:
            self._answers[message["id"]] = message
