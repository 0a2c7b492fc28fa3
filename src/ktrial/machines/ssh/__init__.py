"""The machine `ssh`: another system, in real time, over the user's own OpenSSH client.

Nothing has to be there beforehand but a POSIX shell: ktrial brings its static programs into a directory of
its own, and takes them away. What is set there is put back by that machine itself (see `keeper`). With leave
it is booted into a study's kernels, and led back to its own (see `boots`). On a system that is no Linux on
x86_64 the shell itself runs commands, and nothing is set (see `shell_target`).
"""

import atexit
import contextlib
import gzip
import hashlib
import os
import shlex
import socket
import subprocess
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from ktrial.file_digests import digest_of_file
from ktrial.machines import ExclusiveUse, PreparationProgress, guest_programs
from ktrial.machines.errors import HostChangeForbidden, MachineError, MachineStopped, MachineUsageError
from ktrial.machines.guest_programs import TASKS, TASKS_IN_GUEST, WORK, WORK_IN_GUEST
from ktrial.machines.launcher import Launchers, launch_program
from ktrial.machines.ssh.boots import Boots
from ktrial.machines.ssh.connection import CONFIG, NAME, SSH, Connection, NoAnswer, Probe, probe
from ktrial.machines.ssh.power_commands import commands_of
from ktrial.machines.ssh.target import (
    SCRIPT,
    BootedSshTarget,
    SettingWriter,
    ShellPrograms,
    ShellTarget,
    SshTarget,
)
from ktrial.model.base import digest
from ktrial.model.kernel import Kernel, Origin
from ktrial.model.machine import NO_FILES, Boot, FileSet, MachineIdentity
from ktrial.model.workload import Mode
from ktrial.system_tools import Tool
from ktrial.target.errors import GuestEnded
from ktrial.text_lines import lines_of


class OtherSystem(NamedTuple):
    """What the other machine says that it is."""

    name: str
    architecture: str
    release: str
    version: str

    @property
    def runs_ktrials(self) -> bool:
        """Whether ktrial's own programs run there."""
        return (self.name, self.architecture) == _LIKE


class SshMachine:
    """Trials on another system. Connects when it is first asked; `close` takes everything away there."""

    name = NAME
    programs_elsewhere = True
    """Programs are looked for there, not on this system."""
    mode = Mode.TIMED

    def __init__(self, host: str = "", *, guest: Path | None = None, root: str = "") -> None:
        """`guest`: where ktrial's own programs are. `root`: see Boots."""
        self.host = host
        self._root = root
        self.leases: dict[str, ExclusiveUse] = {}
        self.writer: SettingWriter | None = None
        """Does the steps that write settings; None: none may be written."""
        self.say: Callable[[str], None] = lambda _text: None
        """Told what a person should know while the machine is led back."""
        self._guest = guest or guest_programs.directory()
        self._connection: Connection | None = None
        self._boots: Boots | None = None
        self._programs: dict[str, str] = {}
        self._stopped = False
        self._launchers = Launchers(NAME, self._launched)
        self._shell = ShellPrograms()
        self._system: OtherSystem | None = None
        atexit.register(_close, weakref.ref(self))

    @property
    def needed_tools(self) -> tuple[Tool, ...]:
        """Programs of this system."""
        return (SSH,)

    def reach(self, host: str) -> None:
        """Name the other system, before it is asked for anything."""
        self.host = host

    def lease_name(self) -> str:
        """Where the name leads, by the user's OpenSSH configuration."""
        return resolved(self.host)

    def check(self) -> None:
        """Connect. Raises MachineError."""
        launch_program(self._guest)
        guest_programs.programs(self._guest)
        self.connection()

    def check_boots(self) -> None:
        """See whether it may and can be booted. Raises HostChangeForbidden, CannotBoot, MachineError."""
        if self.writer is None:
            raise HostChangeForbidden(machine=NAME, what=f"boot {self.host} into other kernels")
        self.check_is_linux("boots into kernels")
        self._booting().look()

    def check_is_linux(self, use: str) -> None:
        """Raise MachineUsageError where it is no Linux on x86_64. `use`: what needs that, in words."""
        system = self._what_is_there()
        if not system.runs_ktrials:
            raise MachineUsageError(
                f"Machine {NAME}: {self.host} is {system.name} on {system.architecture}, where ktrial has no "
                f"{use}.",
                hint="commands, with their wall time, are what it measures on systems other than Linux on "
                "x86_64",
            )

    def connection(self) -> Connection:
        """The one that stands, or a new one in place of one that was lost. Raises MachineError."""
        if self._stopped:
            raise MachineStopped(machine=NAME)
        return self.connected()

    def connected(self) -> Connection:
        """As `connection`, of a machine that was stopped, too: it has to be led back."""
        if self._connection is not None and not self._connection.is_alive:
            self.hang_up()
        if self._connection is None:
            self._connection = Connection(self.host, sudo=self._booting().commands.sudo)
            try:
                self._booting().refuse_others()
            except BaseException:
                self.hang_up()
                raise
        return self._connection

    def probe(self, seconds: float) -> Probe | NoAnswer:
        """Which boot of it answers within so many seconds."""
        return probe(self.host, seconds)

    def kernel(self) -> Kernel:
        """Its own kernel: what a killed ktrial has left it in is left first. Raises MachineError."""
        connection, system = self.connection(), self._what_is_there()
        if system.runs_ktrials and self._booting().is_left_over():
            if self.writer is None:
                raise HostChangeForbidden(machine=NAME, what=f"lead {self.host} back to its own kernel")
            self._booting().home()
            connection = self.connection()
            system = system_of(connection)
        return running_kernel(connection, system)

    def prepare(self, boot: Boot, progress: PreparationProgress) -> None:
        """Bring the programs there. Raises MachineError."""
        if boot.boots:
            self.check_boots()
            self._booting().place(boot, progress)
            return
        if self._what_is_there().runs_ktrials:
            progress("sending programs")
            self._brought(self.connection())

    @contextmanager
    def start(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[SshTarget | ShellTarget]:
        """Yield the other system, booted where the study says so; what was set is put back at the end.

        Raises GuestEnded where what it is booted into does not come up, MachineError.
        """
        if boot.cgroup is not None:
            raise MachineError(machine=NAME, problem="it makes no control groups")
        if not boot.boots and not self._what_is_there().runs_ktrials:
            yield self._shell_target(boot)
            return
        if not boot.boots:
            with self._as_it_runs(boot, {}) as target:
                yield target
            return
        self.check_boots()
        boots = self._booting()
        label = " ".join((boot.kernel.name, *boot.parameters))
        with boots.listening() as console:
            try:
                booted = boots.boot(boot)
            except GuestEnded as ended:
                raise GuestEnded(ended.outcome, ended.reason, console.text, ended.results) from None
            with self._as_it_runs(boot, booted.in_force) as target:
                yield BootedSshTarget(target, lambda: boots.ended(booted, label), console)

    def _shell_target(self, boot: Boot) -> ShellTarget:
        if boot.pin:
            self.check_is_linux("pinning to CPUs")
        connection = self.connection()
        identity = self._identity(boot, connection, digest(SCRIPT))
        return ShellTarget(boot, connection, self._shell, identity, self.check_is_linux)

    def _what_is_there(self) -> OtherSystem:
        if self._system is None:
            self._system = system_of(self.connection())
        return self._system

    @contextmanager
    def _as_it_runs(self, boot: Boot, in_force: dict[str, str]) -> Iterator[SshTarget]:
        connection = self.connection()
        programs = self._brought(connection)
        launch = digest_of_file(launch_program(self._guest))
        identity = self._identity(boot, connection, launch).model_copy(update={"in_force": in_force})
        try:
            yield SshTarget(boot, connection, self._launchers, programs, identity, self.writer)
        except BaseException:
            with contextlib.suppress(MachineError):  # what ended it is told; the keeper acts alone
                self._put_back(connection)
            raise
        self._put_back(connection)

    def stop(self) -> None:
        """End all programs at once; this machine is of no more use."""
        self._stopped = True
        self._launchers.stop()
        self._shell.stop()

    def close(self) -> None:
        """Put back and take away all that is there, lead it back to its own kernel, and hang up."""
        try:
            if self._boots is not None:
                self._boots.end()
            self._boots = None
            self.hang_up()
        finally:
            while self.leases:
                self.leases.popitem()[1].end()

    def hang_up(self) -> None:
        """End the connection: the keeper puts back, and takes away."""
        connection, self._connection, self._programs = self._connection, None, {}
        if connection is not None:
            connection.close()

    def _booting(self) -> Boots:
        if self._boots is None:
            commands = commands_of(self.host)
            self._boots = Boots(
                self.host, self, commands, self.say, self._root, stopped=lambda: self._stopped
            )
        return self._boots

    def _put_back(self, connection: Connection) -> None:
        if self.writer is not None:
            connection.undo()

    def _brought(self, connection: Connection) -> dict[str, str]:
        if not self._programs:
            names = {"launch": "launch", WORK_IN_GUEST: WORK, TASKS_IN_GUEST: TASKS}
            contents = {key: (self._guest / name).read_bytes() for key, name in names.items()}
            self._programs = {key: connection.send(contents[key], name) for key, name in names.items()}
        return self._programs

    def _identity(self, boot: Boot, connection: Connection, agent: str) -> MachineIdentity:
        """`agent`: the digest of what runs programs there."""
        read = connection.script(_BOOT_AND_COMMAND_LINE).decode(errors="replace")
        boot_id, _, command_line = read.partition("\n")
        pin = (f"pin={','.join(map(str, boot.pin))}",) if boot.pin else ()
        return MachineIdentity(
            machine=NAME,
            mode=Mode.TIMED,
            cpu_model=cpu_model(connection),
            arguments=(
                f"host={connection.host}",
                *pin,
                *((f"boot_by={self._booting().by.name}",) if boot.boots else ()),
            ),
            command_line=command_line.strip(),
            agent_digest=agent,
            boot=boot_id.strip(),
        )

    def _launched(self, program: str) -> list[str]:
        return self.connection().command(f"exec {program}")


def _close(machine: "weakref.ref[SshMachine]") -> None:
    if (instance := machine()) is not None:
        instance.close()


MACHINE = SshMachine


# What the other machine is: its kernel, its processor.

_BOOT_AND_COMMAND_LINE = (
    "cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo; cat /proc/cmdline 2>/dev/null; :\n"
)
_LIKE = ("Linux", "x86_64")
_UNAME = "uname -s; uname -m; uname -r; uname -v\n"
_MODEL = 'cat /proc/cpuinfo 2>/dev/null || echo "model name: $(sysctl -n hw.model 2>/dev/null)"; :\n'
"""Linux has the file, and BSD the variable."""


def system_of(connection: Connection) -> OtherSystem:
    """What it is. Raises ConnectionLost."""
    output = connection.script(_UNAME).decode(errors="replace")
    return OtherSystem(*(lines_of(output) + [""] * 4)[:4])


def running_kernel(connection: Connection, system: OtherSystem) -> Kernel:
    """The kernel that runs there. Raises ConnectionLost."""
    config = _config(connection, system.release) if system.name == _LIKE[0] else ""
    config_digest = digest(config) if config else ""
    release = system.release if system.name == _LIKE[0] else f"{system.name} {system.release}"
    return Kernel(
        name="running",
        release=release,
        architecture=system.architecture,
        origin=Origin(provider="running", source=connection.host, version=system.version),
        digest=digest([release, system.version, config_digest]),
        config_digest=config_digest,
        image=Path(),
        vmlinux_reason="it runs already, on another machine",
    )


def cpu_model(connection: Connection) -> str:
    """As /proc/cpuinfo there has it, or a BSD's hw.model."""
    output = connection.script(_MODEL).decode(errors="replace")
    facts: dict[str, str] = {}
    for line in lines_of(output):
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    details = [f"{key} {facts[key]}" for key in ("stepping", "microcode") if facts.get(key)]
    name = facts.get("model name") or "unknown"
    return f"{name} ({', '.join(details)})" if details else name


def _config(connection: Connection, release: str) -> str:
    boot = shlex.quote(f"/boot/config-{release}")
    content = connection.script(f"cat /proc/config.gz 2>/dev/null || cat {boot} 2>/dev/null; :\n")
    if content.startswith(b"\x1f\x8b"):
        with contextlib.suppress(OSError, EOFError):
            return gzip.decompress(content).decode(errors="replace")
        return ""
    return content.decode(errors="replace")


# What a host's name leads to, by the user's OpenSSH configuration: users may call a machine differently.

_SECONDS = 20.0
_NONE = {"", "none"}


def resolved(host: str) -> str:
    """`lab1.example.org:22`, with the way there where there is one; the name itself where ssh cannot say.

    `ssh -G` reads the configuration and connects to nothing. What a user's alias is, and who logs in, is not
    part of it. A command that makes the connection (ProxyCommand) is told apart, and not repeated.
    """
    config = os.environ.get(CONFIG)
    chosen = ["-F", config] if config else []
    try:
        output = subprocess.run(
            ["ssh", *chosen, "-G", "--", host],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            start_new_session=True,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        return host.rpartition("@")[2]
    options = dict(line.split(" ", 1) for line in lines_of(output) if " " in line)
    name = options.get("hostname", host)
    return f"{name}:{options.get('port', '22')}{_way(name, options)}"


def _way(name: str, options: dict[str, str]) -> str:
    jump, command = options.get("proxyjump", ""), options.get("proxycommand", "")
    if jump not in _NONE:
        return f" by {jump}"
    if command not in _NONE:
        return f" by a command ({hashlib.sha256(command.encode()).hexdigest()[:8]})"
    return f" of {socket.gethostname()}" if _is_here(name) else ""


def _is_here(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
