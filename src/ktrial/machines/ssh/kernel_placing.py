"""A kernel on another machine: image and modules brought there, the initial RAM disk made there."""

import shlex
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, NoReturn, Protocol

from ktrial.file_digests import digest_of_file
from ktrial.machines.protocol import Progress
from ktrial.machines.ssh import boot_scripts
from ktrial.machines.ssh.boot_ways import BootWay
from ktrial.machines.ssh.connection import NAME, ShellResult
from ktrial.machines.ssh.errors import ConnectionLost, KernelNotPlaced, ReleaseTaken
from ktrial.machines.ssh.own_kernel import RUNNING, Looked
from ktrial.model.kernel import Kernel

_TAKEN = 5
"""The status of a script that found modules of the machine's own."""
_INITRD_SECONDS = 1800.0


class Reached(Protocol):
    """A connection to the machine."""

    host: str

    @property
    def directory(self) -> str:
        """Where the keeper's files are."""
        ...

    def attempt(self, text: str, limit: float = ...) -> ShellResult:
        """How a script ends there. Raises ConnectionLost."""
        ...

    def stream(self, remote: str, write: Callable[[IO[bytes]], None]) -> ShellResult:
        """Run a command there whose input is written here. Raises ConnectionLost."""
        ...


class Shell:
    """Runs scripts, with what all of them begin with."""

    def __init__(self, connection: Reached, root: str) -> None:
        self.connection = connection
        self.root = root

    def attempt(self, text: str, limit: float = 60.0) -> ShellResult:
        """How it ends. Raises ConnectionLost."""
        return self.connection.attempt(self._head() + text, limit)

    def text(self, text: str, limit: float = 60.0) -> bytes:
        """What it prints. Raises ConnectionLost where it fails."""
        done = self.attempt(text, limit)
        if done.status:
            problem = done.said or f"status {done.status}"
            raise ConnectionLost(machine=NAME, host=self.connection.host, problem=problem)
        return done.printed

    def _head(self) -> str:
        return boot_scripts.HEAD.format(root=shlex.quote(self.root), directory=self.connection.directory)


class Place:
    """One kernel on the machine."""

    def __init__(self, kernel: Kernel, own: Looked, host: str) -> None:
        """`own`: what the machine's own kernel said of itself."""
        self.kernel = kernel
        self._own = own
        self._host = host
        self._name = kernel.digest[:16]

    @property
    def _is_own(self) -> bool:
        return self.kernel.name == RUNNING

    def is_there(self, shell: Shell) -> bool:
        """Whether it is complete. The machine's own always is."""
        return self._is_own or bool(shell.text(boot_scripts.HAS.format(name=self._name)))

    def bring(self, shell: Shell, progress: Progress) -> None:
        """Have it there. Raises ReleaseTaken, KernelNotPlaced, ConnectionLost."""
        if self.is_there(shell):
            return
        progress("sending the kernel")
        self._done(shell.attempt(boot_scripts.RECEIVE.format(name=self._name)), "no directory can be made")
        self._send(shell)
        image = {"name": self._name, "digest": digest_of_file(self.kernel.image)}
        self._done(shell.attempt(boot_scripts.IMAGE.format(**image)), "its image arrived damaged")
        progress("making its initial RAM disk")
        made = shell.attempt(self._initrd(), _INITRD_SECONDS)
        self._done(made, f"{self._own.said['initrd_tool']} made no initial RAM disk")

    def boot(self, way: BootWay, command_line: str) -> str:
        """The script that boots it at once. Raises KernelNotPlaced."""
        place = f'"$B/kernels/{self._name}/'
        image, initrd = f'{place}vmlinuz"', f'{place}initrd"'
        if self._is_own:
            image, initrd = (shlex.quote(self._own.said.get(name, "")) for name in ("image", "initrd"))
        link = "" if self._is_own else f"{self._link()}\n"
        try:
            return link + way.script(self._own, image, initrd, command_line)
        except ValueError as error:
            self._refuse(str(error))

    def raise_why(self, done: ShellResult, what: str) -> NoReturn:
        """What a script's status says."""
        if done.status == _TAKEN:
            kernel = self.kernel
            raise ReleaseTaken(machine=NAME, host=self._host, release=kernel.release, kernel=kernel.name)
        self._refuse(f"{what}: {done.said or f'status {done.status}'}")

    def _refuse(self, problem: str) -> NoReturn:
        raise KernelNotPlaced(machine=NAME, host=self._host, kernel=self.kernel.name, problem=problem)

    def _done(self, done: ShellResult, what: str) -> None:
        if done.status:
            self.raise_why(done, what)

    def _send(self, shell: Shell) -> None:
        place = f"{shlex.quote(shell.root)}/var/lib/ktrial/kernels/{self._name}"
        modules = self.kernel.modules
        for name, file in {"vmlinuz": self.kernel.image, "config": self.kernel.config}.items():
            if file is not None:
                sent = shell.connection.stream(f"cat >{place}/{name}", partial(_copy, file))
                self._done(sent, f"{name} cannot be sent")
        if modules is not None:
            untar = f"tar -x -f - -C {place}/modules"
            self._done(
                shell.connection.stream(untar, lambda pipe: _pack(modules, pipe)), "modules cannot be sent"
            )

    def _link(self) -> str:
        release = shlex.quote(self.kernel.release)
        return f'K="$B/kernels/{self._name}"; L="$R/lib/modules/"{release}\n{boot_scripts.LINK}'

    def _initrd(self) -> str:
        release = shlex.quote(self.kernel.release)
        make = boot_scripts.MAKERS[self._own.said["initrd_tool"]].format(release=release)
        return boot_scripts.INITRD.format(name=self._name, release=release, link=boot_scripts.LINK, make=make)


def _copy(file: Path, pipe: IO[bytes]) -> None:
    pipe.write(file.read_bytes())


def _pack(modules: Path, pipe: IO[bytes]) -> None:
    """Without the links to the tree that it was built in."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name in {"./build", "./source"}:
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(fileobj=pipe, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        archive.add(modules, arcname=".", filter=plain)
