"""Boots another machine into a study's kernels, once each, and always leads it back to its own.

A boot is told by its token on the kernel's command line. What comes back without it is the machine's own
kernel: the other one panicked, or was reset. What does not come back has hung.
"""

import secrets
import shlex
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, NoReturn, Protocol

from ktrial.errors import KtrialError
from ktrial.file_digests import digest_of_file
from ktrial.machines import PreparationProgress
from ktrial.machines.errors import (
    CannotBoot,
    ConnectionLost,
    HostProblem,
    HostUsageProblem,
    MachineError,
    MachineInUse,
    MachineStopped,
    NotReached,
)
from ktrial.machines.ssh import boot_ways
from ktrial.machines.ssh.boot_ways import KEXEC, RUNNING, WAYS, BootWay, Looked, way_of
from ktrial.machines.ssh.connection import NAME, NoAnswer, OwnLease, Probe, ShellResult, held
from ktrial.machines.ssh.power_commands import Console, OwnCommands
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome
from ktrial.target.errors import GuestEnded

_SLOW_SECONDS = 180.0
_FIRST_PROBE_SECONDS = 20.0
"""A machine that takes longer to shake hands, as it is busy, is given twice as long the next time."""


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


class Way(Protocol):
    """How the machine is reached."""

    def connected(self) -> Reached:
        """The connection that stands, or a new one. Raises NotReached, MachineInUse."""
        ...

    def hang_up(self) -> None:
        """End it, as fast as the keeper puts back."""
        ...

    def probe(self, seconds: float) -> Probe | NoAnswer:
        """Which boot answers within so many seconds."""
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
        result = self.attempt(text, limit)
        if result.status:
            problem = result.message or f"status {result.status}"
            raise ConnectionLost(machine=NAME, host=self.connection.host, problem=problem)
        return result.printed

    def _head(self) -> str:
        return boot_ways.HEAD.format(root=shlex.quote(self.root), directory=self.connection.directory)


class Place:
    """One kernel on the machine."""

    def __init__(self, kernel: Kernel, machine: Looked, host: str) -> None:
        """`machine`: what the machine's own kernel said of itself."""
        self.kernel = kernel
        self._machine = machine
        self._host = host
        self._name = kernel.digest[:16]

    @property
    def _is_own(self) -> bool:
        return self.kernel.name == RUNNING

    def is_there(self, shell: Shell) -> bool:
        """Whether it is complete. The machine's own always is."""
        return self._is_own or bool(shell.text(boot_ways.HAS.format(name=self._name)))

    def bring(self, shell: Shell, progress: PreparationProgress) -> None:
        """Have it there. Raises MachineError."""
        if self.is_there(shell):
            return
        progress("sending the kernel")
        self._check(shell.attempt(boot_ways.RECEIVE.format(name=self._name)), "no directory can be made")
        self._send(shell)
        image = {"name": self._name, "digest": digest_of_file(self.kernel.image)}
        self._check(shell.attempt(boot_ways.IMAGE.format(**image)), "its image arrived damaged")
        progress("making its initial RAM disk")
        result = shell.attempt(self._initrd(), _INITRD_SECONDS)
        self._check(result, f"{self._machine.facts['initrd_tool']} made no initial RAM disk")

    def boot(self, way: BootWay, command_line: str) -> str:
        """The script that boots it at once. Raises MachineError."""
        place = f'"$B/kernels/{self._name}/'
        image, initrd = f'{place}vmlinuz"', f'{place}initrd"'
        if self._is_own:
            image, initrd = (shlex.quote(self._machine.facts.get(name, "")) for name in ("image", "initrd"))
        link = "" if self._is_own else f"{self._link()}\n"
        try:
            return link + way.script(self._machine, image, initrd, command_line)
        except ValueError as error:
            self._refuse(str(error))

    def raise_why(self, result: ShellResult, action: str) -> NoReturn:
        """What a script's status says."""
        if result.status == _TAKEN:
            raise HostUsageProblem(
                f"Machine {NAME}: {self._host} has a kernel {self.kernel.release} of its own, whose "
                f"modules lie where those of {self.kernel.name} have to be.",
                hint='ktrial does not overwrite it: to measure that kernel, use the level "running"',
            )
        self._refuse(f"{action}: {result.message or f'status {result.status}'}")

    def _refuse(self, problem: str) -> NoReturn:
        raise MachineError(
            f"Machine {NAME}: {self.kernel.name} cannot be prepared on {self._host}: {problem}."
        )

    def _check(self, result: ShellResult, action: str) -> None:
        if result.status:
            self.raise_why(result, action)

    def _send(self, shell: Shell) -> None:
        place = f"{shlex.quote(shell.root)}/var/lib/ktrial/kernels/{self._name}"
        modules = self.kernel.modules
        for name, file in {"vmlinuz": self.kernel.image, "config": self.kernel.config}.items():
            if file is not None:
                sent = shell.connection.stream(f"cat >{place}/{name}", partial(_copy, file))
                self._check(sent, f"{name} cannot be sent")
        if modules is not None:
            untar = f"tar -x -f - -C {place}/modules"
            self._check(
                shell.connection.stream(untar, lambda pipe: _pack(modules, pipe)), "modules cannot be sent"
            )

    def _link(self) -> str:
        release = shlex.quote(self.kernel.release)
        return f'K="$B/kernels/{self._name}"; L="$R/lib/modules/"{release}\n{boot_ways.LINK}'

    def _initrd(self) -> str:
        release = shlex.quote(self.kernel.release)
        make = boot_ways.MAKERS[self._machine.facts["initrd_tool"]].format(release=release)
        return boot_ways.INITRD.format(name=self._name, release=release, link=boot_ways.LINK, make=make)


@dataclass
class Boots:
    """One machine's boots."""

    host: str
    way: Way
    commands: OwnCommands = field(default_factory=OwnCommands)
    say: Callable[[str], None] = lambda _text: None
    root: str = ""
    """Where the machine's files are: a directory in tests."""
    stopped: Callable[[], bool] = lambda: False
    machine: Looked | None = None
    """What its own kernel said of itself."""
    by: BootWay = WAYS[KEXEC]
    """How it is booted: known once it was looked at."""
    lease: OwnLease = field(default_factory=OwnLease)
    glance_seconds: float = 1.0
    """Between two looks whether it answers."""
    clock: Callable[[], float] = time.monotonic
    _leased: bool = False
    _limit: float = 300.0
    _placed: dict[str, Place] = field(default_factory=dict)
    _console: Console | None = None
    _waited: str = ""
    """How it was waited in vain for the last time, in words."""

    @contextmanager
    def listening(self) -> Iterator[Console]:
        """The console is listened to as long as the block lasts: a machine that prints is waited for."""
        if self._console is not None:
            yield self._console
            return
        with self.commands.listening() as console:
            self._console = console
            try:
                yield console
            finally:
                self._console = None

    def look(self) -> Looked:
        """See whether it can be booted, and what its own kernel is. Raises CannotBoot, MachineInUse."""
        if self.machine is None:
            self.refuse_others()
            machine = self._looked()
            if machine.token:  # somebody's who was killed, and is over
                self.home()
                machine = self._looked()
            self.by, lacks = way_of(machine, self.commands.boot)
            if lacks := machine.lacks() + lacks:
                raise CannotBoot(machine=NAME, host=self.host, problem="; ".join(lacks))
            self.machine = machine
        return self.machine

    def is_left_over(self) -> bool:
        """Whether it runs what was booted by a ktrial that is over."""
        return self.machine is None and bool(self._looked().token)

    def refuse_others(self) -> None:
        """Raise MachineInUse where somebody else has the machine, though it may be booting."""
        holder = held(lambda text: self._shell().text(text))
        if holder and holder.key != self.lease.key and not holder.is_over:
            raise MachineInUse(machine=NAME, host=self.host, who=f" ({holder.who})")

    def place(self, boot: Boot, progress: PreparationProgress) -> Place:
        """Have the kernel there, with its modules and an initial RAM disk. Raises MachineError."""
        self._limit = boot.boot_seconds
        machine = self.look()
        self._take()
        name = boot.kernel.digest[:16]
        if name not in self._placed or not self._placed[name].is_there(self._shell()):
            place = Place(boot.kernel, machine, self.host)
            place.bring(self._shell(), progress)
            self._placed[name] = place
        return self._placed[name]

    def boot(self, boot: Boot) -> "Booted":
        """Boot it, see what came up, and let it settle. Raises GuestEnded, MachineError."""
        self._limit = boot.boot_seconds
        self._reach()
        place = self.place(boot, lambda _action: None)
        self._into_one_that_can()
        token = secrets.token_hex(8)
        before = self._looked().boot_id
        self._go(place, boot_ways.command_line(self.look().command_line, boot.parameters, token))
        label = " ".join((boot.kernel.name, *boot.parameters))
        seen = self._next_boot(before)
        if seen is None:
            self._hung(label, before)
        return self._judged(seen, token, boot.kernel, label, boot.settle_ns / 1e9)

    def ended(self, booted: "Booted", label: str) -> None:
        """A connection was lost: raise GuestEnded where the kernel went with it; else it still runs."""
        seen = self._answer(lambda probe: True)
        if seen is None:
            self._hung(f"{label}, while programs ran,", booted.boot_id)
        if seen.boot_id != booted.boot_id:
            reason = f"{label} went down while programs ran: it panicked, was reset, or lost its power"
            _raise(Outcome.PANICKED, reason)

    def end(self) -> None:
        """Lead it back, take everything away; what does not succeed is said, and done by the machine."""
        if not self._leased:
            return
        self._leased = False
        try:
            with self.listening():
                self._go_home()
        except KtrialError as error:
            self.say(
                f"{error.message.rstrip('.')}. {self.host} goes back by itself, {boot_ways.LEASE_SECONDS}"
                " s after it was last heard of, and removes what ktrial put there"
            )

    def _go_home(self) -> None:
        self._reach()
        if self._looked().token:
            self.say(f"{self.host} is being led back to its own kernel")
            self._shell().text(boot_ways.RELEASE)
            self.home()
        self._shell().text(boot_ways.CLEAN)

    def home(self) -> None:
        """Into its own kernel, by its firmware. Raises MachineError."""
        before = self._looked().boot_id
        with self.listening():
            self._ask(boot_ways.reboot(self.root))
            seen = self._next_boot(before) or self._by_power(before)
        if seen is None:
            raise self._stuck()
        if boot_ways.token_of(seen.command_line):
            problem = f"{self.host} was led back to its own kernel, and came up in ktrial's again"
            raise MachineError(machine=NAME, problem=problem)

    def _take(self) -> None:
        shell = self._shell()
        holder = held(shell.text)
        if holder is None or holder.key != self.lease.key:
            self.refuse_others()
            result = shell.attempt(self.lease.script() + boot_ways.service(self.root))
            if result.status:
                problem = f"/var/lib/ktrial or its service cannot be made: {result.message}"
                raise CannotBoot(machine=NAME, host=self.host, problem=problem)
        else:
            shell.text(boot_ways.BEAT)
        self._leased = True

    def _into_one_that_can(self) -> None:
        """A kernel that takes no other by kexec is left by the firmware first."""
        machine = self._looked()
        if self.by.name == KEXEC and machine.token and "kexec_kernel" not in machine.facts:
            self.home()
            self._take()

    def _go(self, place: Place, command_line: str) -> None:
        if len(command_line) > boot_ways.LONGEST:
            problem = f"its command line is longer than {boot_ways.LONGEST} bytes"
            raise MachineError(
                f"Machine {NAME}: {place.kernel.name} cannot be prepared on {self.host}: {problem}."
            )
        result = self._ask(place.boot(self.by, command_line))
        if result.status:
            place.raise_why(result, "it was not taken")

    def _ask(self, text: str) -> ShellResult:
        """Have it boot; a connection that is lost by that has done its work."""
        try:
            result = self._shell().attempt(text, _SLOW_SECONDS)
        except ConnectionLost:
            result = ShellResult(0, b"", "")
        if result.status == 0:
            self.way.hang_up()
        return result

    def _judged(self, seen: Probe, token: str, kernel: Kernel, label: str, settle_seconds: float) -> "Booted":
        came = boot_ways.token_of(seen.command_line)
        self._check_loader(came=bool(came))
        if not came:
            end = "panicked, was reset, or lost its power before it answered"
            _raise(Outcome.PANICKED, f"{label} {end}: its own kernel came back")
        machine = self._looked()
        self._take()
        read = boot_ways.looked(self._shell().text(boot_ways.READ_BACK)).facts
        if "vmcore" in read:  # kexec's crash kernel (kdump) has the command line of the one that crashed
            _raise(Outcome.PANICKED, f"{label} panicked: the kernel that saves its memory came up")
        if problem := self._difference(came == token, machine, read, kernel):
            _raise(Outcome.REFUSED, f"{label} was asked for, and {problem}")
        self._shell().text(boot_ways.SETTLE.format(seconds=f"{settle_seconds:g}"), settle_seconds + 180)
        return Booted(machine.boot_id, machine.release, _in_force(machine, read))

    def _check_loader(self, *, came: bool) -> None:
        """Raise CannotBoot where the boot loader does not boot what it is told, or not for once."""
        if self.by.name == KEXEC:
            return
        facts = boot_ways.looked(self._shell().text(boot_ways.WAITING)).facts
        if facts.get("waiting") == "yes":
            self._shell().text(boot_ways.CLEAN_BOOT_LOADERS.format(root=self.root))
            behaviour = (
                "boots it, and does not forget it after one boot" if came else "does not boot what it is told"
            )
            raise CannotBoot(
                machine=NAME, host=self.host, problem=f"its boot loader ({self.by.name}) {behaviour}"
            )

    def _difference(self, is_this: bool, machine: Looked, read: dict[str, str], kernel: Kernel) -> str:
        """What is not as it was asked for; empty where all is."""
        if not is_this:
            return f"another boot of ktrial's came up ({machine.release})"
        if machine.release != kernel.release:
            return f"{machine.release} runs"
        before = self.look()
        if kernel.name == boot_ways.RUNNING and machine.facts.get("version") != before.facts.get("version"):
            return f"another build of {machine.release} runs: {machine.facts.get('version')}"
        config = boot_ways.config_digest(kernel)
        if config and read.get("config", config) != config:
            return "the kernel that runs has another configuration (/proc/config.gz)"
        return ""

    def _next_boot(self, before: str) -> Probe | None:
        """The first that answers and is not `before`; None where nothing answers. Raises MachineError."""
        seen = self._answer(lambda probe: probe.boot_id != before)
        if seen is not None and seen.boot_id == before:
            problem = f"{self.host} was told to boot, and has not gone down within {self._limit:g} s"
            raise MachineError(machine=NAME, problem=problem)
        return seen

    def _answer(self, accepts: Callable[[Probe], bool]) -> Probe | None:
        """The first wanted answer, else the last one, within the limit."""
        limit = BootLimit(self._limit, self._printed, self.clock)
        seconds = _FIRST_PROBE_SECONDS
        while True:
            if self.stopped() and self._leased:
                raise MachineStopped(machine=NAME)
            last = self.way.probe(seconds)
            if isinstance(last, NoAnswer) and last.is_slow:
                seconds = min(2 * seconds, max(self._limit, _FIRST_PROBE_SECONDS))
            answer = None if isinstance(last, NoAnswer) else last
            if (answer and accepts(answer)) or limit.is_over():
                message = f" (ssh: {last.message})" if isinstance(last, NoAnswer) and last.message else ""
                self._waited = f"{limit.message}{message}"
                return answer
            time.sleep(self.glance_seconds)

    def _printed(self) -> int:
        return self._console.size if self._console else 0

    def _hung(self, label: str, before: str) -> NoReturn:
        reason = f"{label} {self._waited}"
        if not self.commands.power:
            _raise(Outcome.HUNG, f"{reason}; somebody has to press the button of {self.host}")
        back = self._by_power(before)
        then = "its own kernel came back" if back else "nothing came back"
        _raise(Outcome.HUNG, f"{reason}; its power was cycled, and {then}")

    def _by_power(self, before: str) -> Probe | None:
        """What comes up once its power was cycled; None: nothing, or there is no command for it."""
        if not self.commands.power:
            return None
        if problem := self.commands.cycle():
            self.say(f"the power of {self.host} cannot be cycled: {problem}")
        return self._next_boot(before)

    def _reach(self) -> None:
        """Wait for it, and take its power, where it does not answer. Raises HostProblem."""
        try:
            self.way.connected()
        except NotReached:
            if self.machine is None:
                raise
            if self._answer(lambda probe: True) is None and self._by_power("") is None:
                raise self._stuck() from None

    def _stuck(self) -> HostProblem:
        return HostProblem(
            f"Machine {NAME}: {self.host} has not answered for {self._limit:g} s: somebody has to press its "
            "button.",
            hint="whatever starts it, its own kernel comes up; then the same command goes on. With a command "
            'for its power ktrial does that itself: [machines.NAME] power = "…" in '
            "~/.config/ktrial/config.toml",
        )

    def _looked(self) -> Looked:
        return boot_ways.looked(self._shell().text(boot_ways.LOOK + boot_ways.LOOK_AT_BOOT_LOADERS))

    def _shell(self) -> Shell:
        return Shell(self.way.connected(), self.root)


@dataclass(frozen=True)
class Booted:
    """What came up, as it was asked for."""

    boot_id: str
    release: str
    in_force: dict[str, str]
    """What it says of itself, by name."""


def _in_force(machine: Looked, read: dict[str, str]) -> dict[str, str]:
    facts = {name: value for name, value in read.items() if name != "config"}
    named = {"modules": "modules loaded"}
    return {"kernel release": machine.release} | {
        named.get(name, name): value for name, value in facts.items()
    }


def _raise(outcome: Outcome, reason: str) -> NoReturn:
    raise GuestEnded(outcome.value, reason)


# How long a machine may take to come up: a limit that begins anew whenever its console prints.
#
# What prints is no kernel that hangs, however slowly it boots. What prints for ever has hung as well.

MOST_LIMITS = 4
"""So many limits at most, whatever the console prints."""


class BootLimit:
    """From now on."""

    def __init__(self, seconds: float, printed: Callable[[], int], clock: Callable[[], float]) -> None:
        """`printed`: how many bytes the console has printed so far. `clock`: in seconds."""
        self._seconds, self._printed, self._clock = seconds, printed, clock
        self._size = printed()
        moment = clock()
        self._until, self._last = moment + seconds, moment + MOST_LIMITS * seconds
        self._heard = False

    def is_over(self) -> bool:
        """Whether nothing was printed for as long as the limit, or only that for the most limits."""
        moment, size = self._clock(), self._printed()
        if size != self._size:
            self._size, self._heard = size, True
            self._until = min(moment + self._seconds, self._last)
        return moment > self._until

    @property
    def message(self) -> str:
        """Once it is over: `did not answer within 300 s`."""
        if not self._heard:
            return f"did not answer within {self._seconds:g} s"
        if self._until == self._last:
            return f"printed on its console for {MOST_LIMITS * self._seconds:g} s, and did not answer"
        return f"neither answered nor printed on its console for {self._seconds:g} s"


# A kernel on another machine: image and modules brought there, the initial RAM disk made there.

_TAKEN = 5
"""The status of a script that found modules of the machine's own."""
_INITRD_SECONDS = 1800.0


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
