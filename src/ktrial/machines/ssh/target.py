"""Another machine as a target: `launch` runs programs there, its shell reads and sets kernel files."""

import base64
import contextlib
import errno
import os
import posixpath
import re
import secrets
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn, Protocol

from ktrial.machines.errors import ConnectionLost, HostChangeForbidden, MachineError, MachineStopped
from ktrial.machines.guest_programs import TASKS_IN_GUEST, WORK_IN_GUEST
from ktrial.machines.launcher import Launchers, NumberedRuns, WorkingPlace, as_run_here, perform_in_rows
from ktrial.machines.ssh.connection import NAME, Connection
from ktrial.machines.ssh.power_commands import Console
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.target import Collect, Failure, Read, Run, Step, StepResult, Write

_COLLECT_LIMIT = 64 << 20


class SettingWriter(Protocol):
    """Makes settings on the other machine, which it puts back by itself."""

    def write(self, step: Write) -> StepResult:
        """Make one; its result is the step's."""
        ...


class SshTarget:
    """Another machine."""

    def __init__(
        self,
        boot: Boot,
        connection: Connection,
        launchers: Launchers,
        programs: dict[str, str],
        identity: MachineIdentity,
        writer: SettingWriter | None,
    ) -> None:
        """`programs`: path in a guest, or `launch` → path on that machine."""
        self.identity = identity
        self._boot = boot
        self._connection = connection
        self._launchers = launchers
        self._programs = programs
        self._files = RemoteFiles(connection)
        self._writer = writer

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in order; programs that follow each other are handed to one launcher.

        Raises HostChangeForbidden before the first step where one would change that system without leave,
        GuestEnded where a program passes the boot's limit, ConnectionLost, MachineError.
        """
        for step in steps:
            if isinstance(step, Write) and self._writer is None:
                raise HostChangeForbidden(machine=NAME, what=f"write {step.value!r} to {step.path}")
        return perform_in_rows(steps, self._boot, self._run, self._do)

    def _run(self, runs: NumberedRuns) -> tuple[StepResult, ...]:
        place = WorkingPlace(self._boot.pin)
        remote_runs = [(number, as_run_here(run, self._boot, self._argv(run))) for number, run in runs]
        try:
            return self._launchers.run(Path(self._programs["launch"]), remote_runs, place)
        except MachineError:
            if self._connection.answers():
                raise
            problem = "while programs ran"
            raise ConnectionLost(machine=NAME, host=self._connection.host, problem=problem) from None

    def _argv(self, run: Run) -> tuple[str, ...]:
        """ktrial's own programs lie in its directory there; a name is looked for in its PATH."""
        first = run.argv[0]
        if first in {WORK_IN_GUEST, TASKS_IN_GUEST}:
            return (self._programs[first], *run.argv[1:])
        return argv_there(self._connection, run)

    def _do(self, number: int, step: Step) -> StepResult:
        match step:
            case Write() if self._writer is not None:
                return self._writer.write(step).model_copy(update={"step": number})
            case Collect():
                return self._collect(number, step)
            case _:
                return self._files.step(number, step)

    def _collect(self, number: int, step: Collect) -> StepResult:
        result = StepResult(step=number, do=step.do)
        content = b""
        with contextlib.suppress(ConnectionLost):
            content = self._connection.script(f"cat <{shlex.quote(step.path)}\n")
            if len(content) <= _COLLECT_LIMIT:
                return result.model_copy(update={"content": base64.b64encode(content).decode()})
        problem = f"longer than {_COLLECT_LIMIT} bytes" if content else "it cannot be read"
        failure = Failure(text=f"collect {step.path}: {problem}")
        return result.model_copy(update={"failure": failure})


class BootedSshTarget(SshTarget):
    """Another machine in a kernel that it was booted into: when that goes down, the trial says so."""

    def __init__(self, target: SshTarget, explain: Callable[[], None], console: Console) -> None:
        """`explain`: told of a lost connection, raises GuestEnded where the kernel went with it."""
        vars(self).update(vars(target))
        self._explain = explain
        self._listened = console

    @property
    def console(self) -> str:
        """What the user's own console command has printed."""
        return self._listened.text

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """As any other. Raises GuestEnded, too, where the kernel goes down meanwhile."""
        try:
            return super().perform(steps)
        except ConnectionLost:
            self._explain()
            raise


class ShellPrograms:
    """The commands that run; `stop` ends them all, from whatever thread."""

    def __init__(self) -> None:
        self._alive: set[subprocess.Popen[bytes]] = set()
        # Re-entrant: a signal handler calls stop(), and may have interrupted the thread that holds it.
        self._lock = threading.RLock()
        self._stopped = False

    def run(self, connection: Connection, runs: Sequence[tuple[int, Run]]) -> tuple[StepResult, ...]:
        """Run them one after another, each with its number. Raises ConnectionLost, MachineStopped,
        MachineError.
        """
        return tuple(self._run_command(connection, number, run) for number, run in runs)

    def stop(self) -> None:
        """End all commands: what reads their life line there kills them."""
        with self._lock:
            self._stopped = True
            for child in self._alive:
                _hang_up(child)

    def _run_command(self, connection: Connection, number: int, run: Run) -> StepResult:
        home, words = connection.directory, [f"{key}={value}" for key, value in run.environment.items()]
        script = SCRIPT.format(
            own=shlex.quote(home),
            directory=shlex.quote(run.directory),
            words=shlex.join([*words, *run.argv]),
        )
        path = connection.send(script.encode(), "run")
        with self._child(connection.command(f"exec /bin/sh {path}")) as child:
            result = _watched(child, run.limit_ns / 1e9)
            if result is None:
                self._explain(connection, child, run)
            return result.model_copy(update={"step": number})

    def _explain(self, connection: Connection, child: "subprocess.Popen[bytes]", run: Run) -> NoReturn:
        """Raise what came in between."""
        if self._stopped:
            raise MachineStopped(machine=NAME)
        _hang_up(child)
        if child.wait() == _NO_DIRECTORY:
            raise MachineError(machine=NAME, problem=f"{connection.host} has no directory {run.directory}")
        if not connection.answers():
            raise ConnectionLost(machine=NAME, host=connection.host, problem="while programs ran")
        raise MachineError(machine=NAME, problem=f"the shell of {connection.host} did not end {run.argv[0]}")

    @contextmanager
    def _child(self, command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
        # A session of its own: a terminal's Ctrl-C reaches ktrial only, which calls stop().
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, start_new_session=True)
        with self._lock:
            self._alive.add(child)
            if self._stopped:
                _hang_up(child)
        try:
            yield child
        finally:
            with self._lock:
                self._alive.discard(child)
            _hang_up(child)
            if child.stdout is not None:
                child.stdout.close()
            child.wait()


# A system that is no Linux on x86_64 as a target: commands alone, and their wall time.


class ShellTarget:
    """What its shell does. Files of counters that a step watches are not there, and are left out."""

    def __init__(
        self,
        boot: Boot,
        connection: Connection,
        programs: ShellPrograms,
        identity: MachineIdentity,
        refuse: Callable[[str], None],
    ) -> None:
        """`refuse`: raises MachineUsageError, told what was wanted."""
        self.identity = identity
        self._boot = boot
        self._connection = connection
        self._programs = programs
        self._files = RemoteFiles(connection)
        self._refuse = refuse

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in order. Raises MachineUsageError before the first one where a step needs Linux,
        GuestEnded where a command passes the boot's limit, ConnectionLost, MachineError.
        """
        for step in steps:
            if isinstance(step, Write):
                self._refuse("settings")
            if isinstance(step, Run) and step.argv[0] in {WORK_IN_GUEST, TASKS_IN_GUEST}:
                self._refuse("workloads of its own")
        return perform_in_rows(steps, self._boot, self._run, self._files.step)

    def _run(self, runs: NumberedRuns) -> tuple[StepResult, ...]:
        remote_runs = [
            (number, as_run_here(run, self._boot, argv_there(self._connection, run))) for number, run in runs
        ]
        return self._programs.run(self._connection, remote_runs)


# Where programs lie on the other machine.

_LOOKED_FOR = """P={path}; N={name}; IFS=:
for d in $P; do [ -f "$d/$N" ] && [ -x "$d/$N" ] && {{ printf '%s\\n' "$d/$N"; break; }}; done; :
"""


def argv_there(connection: Connection, run: Run) -> tuple[str, ...]:
    """The words of a command; a name without a slash is looked for in its PATH. Raises MachineError."""
    first = run.argv[0]
    if "/" in first:
        return run.argv
    path = run.environment.get("PATH", "/usr/bin:/bin")
    answer = connection.script(_LOOKED_FOR.format(path=shlex.quote(path), name=shlex.quote(first)))
    name = answer.decode(errors="replace").strip()
    if not posixpath.isabs(name):
        raise MachineError(machine=NAME, problem=f"{connection.host} has no program {first} in {path}")
    return (name, *run.argv[1:])


# Files of the other machine, read and written by `/bin/sh` and `cat`: all that POSIX promises.

_READ_LIMIT = 1 << 20
_MAY_READ = ("/proc/", "/sys/")
_MAY_WRITE = ("/proc/sys/", "/sys/")
_NUMBERS = {os.strerror(number): number for number in errno.errorcode}
_FUNCTIONS = """LC_ALL=C; export LC_ALL; T={token}
D={directory}
show() {{ {{ e=$( {{ cat "$1" >&3; }} 2>&1 ); s=$?; }} 3>&1; end; }}
put() {{ e=$( {{ printf %s "$2" | cat >"$1"; }} 2>&1 ); s=$?; end; }}
end() {{ printf '\\n%s %s %s\\n' "$T" "$s" "$(printf %s "$e" | tr '\\n' ' ')"; }}
"""
_NOTED = """mkdir "$D/busy" || exit 9
n=$(cat "$D/n" 2>/dev/null || echo 0); n=$((n+1))
printf %s {path} >"$D/$n.path" && printf %s {old} >"$D/$n.old" && echo "$n" >"$D/n" || exit 9
rmdir "$D/busy"
"""
_SET = 'mkdir "$D/busy" || exit 9\nput {path} {value}\nrmdir "$D/busy"\n'


class RemoteFiles:
    """Reads and writes kernel files; a target that does nothing else."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in order; one that fails does not stop those after it. Raises ConnectionLost."""
        return tuple(self.step(number, step) for number, step in enumerate(steps))

    def step(self, number: int, step: Step) -> StepResult:
        """Do one step and return its result, numbered `number`. Raises ConnectionLost."""
        empty = StepResult(step=number, do=step.do)
        match step:
            case Read(path=path):
                return self._read(path, empty)
            case Write():
                return self._write(step, empty)
            case _:
                failure = Failure(text=f"{step.do}: the machine ssh does not do this")
                return empty.model_copy(update={"failure": failure})

    def note(self, path: str, old: str) -> None:
        """Have the keeper know what is to be put back, before it is changed. Raises ConnectionLost."""
        quoted = {"path": shlex.quote(path), "old": shlex.quote(old)}
        self._answers(_NOTED.format(**quoted))

    def _read(self, path: str, empty: StepResult) -> StepResult:
        if failure := _outside(path, "read", _MAY_READ):
            return empty.model_copy(update={"failure": failure})
        ((content, message),) = self._answers(f"show {shlex.quote(path)}\n")
        failure = _named(f"read {path}", message)
        if len(content) > _READ_LIMIT:
            failure = Failure(text=f"read {path}: longer than {_READ_LIMIT} bytes; the rest was left out")
        text = content[:_READ_LIMIT].decode(errors="replace")
        return empty.model_copy(update={"content": text, "failure": failure})

    def _write(self, step: Write, empty: StepResult) -> StepResult:
        if failure := _outside(step.path, "write", _MAY_WRITE):
            return empty.model_copy(update={"failure": failure})
        path = shlex.quote(step.path)
        show = f"show {path}\n"
        setting = _SET.format(path=path, value=shlex.quote(step.value))
        before, written, after = self._answers(f"{show}{setting}{show}")
        failure = _named(f"write {step.path}", written[1])
        return empty.model_copy(
            update={"before": _value(before[0]), "after": _value(after[0]), "failure": failure}
        )

    def _answers(self, script: str) -> tuple[tuple[bytes, str], ...]:
        """What each `show` and `put` printed, and why it failed; empty where it did not."""
        token = secrets.token_hex(16)
        head = _FUNCTIONS.format(token=token, directory=self._connection.directory)
        printed = self._connection.script(head + script)
        parts = re.split(rb"\n" + token.encode() + rb" (\d+) (.*)\n", printed)
        return tuple((parts[at], _reason(parts[at + 1], parts[at + 2])) for at in range(0, len(parts) - 1, 3))


def _reason(status: bytes, message: bytes) -> str:
    return (message.decode(errors="replace").strip() or f"status {status.decode()}") if status != b"0" else ""


def _named(action: str, message: str) -> Failure | None:
    """With the errno that the message of the C locale stands for."""
    if not message:
        return None
    for text, number in _NUMBERS.items():
        if message.endswith(text):
            return Failure(errno=number, name=errno.errorcode[number], text=f"{action}: {text}")
    return Failure(text=f"{action}: {message}")


def _outside(path: str, action: str, allowed: tuple[str, ...]) -> Failure | None:
    if "\0" not in path and posixpath.normpath(path).startswith(allowed):
        return None
    return Failure(text=f"{action} {path!r}: it is not below {' or '.join(allowed)}")


def _value(content: bytes) -> str:
    return content.decode(errors="replace").removesuffix("\n")


# A system on which ktrial's own programs do not run: its shell runs commands, one after another.
#
# The clock is this system's: the shell there says when a command begins and ends, and what is read here in
# between is its wall time, with what the two words' ways over the network differ by. All that is asked of
# that system is a POSIX shell, `env`, `cat`, `dd` and `wc`.

_BEGIN, _END = b"begin\n", b"end "
_NO_DIRECTORY = 9
_KILLED_BY = 128
"""What a shell adds to a signal's number."""
SCRIPT = """D={own}; exec 3<&0 </dev/null
down() {{
  for C in $(ps -A -o ppid= -o pid= 2>/dev/null | sed -n "s/^ *$1  *//p"); do down "$C"; done
  kill -s KILL "$1"
}}
rm -f "$D/pid"; S=$(command -v setsid)
( read -r X <&3; P=$(cat "$D/pid"); [ -n "$S" ] && kill -s KILL "-$P"; down "$P" ) >/dev/null 2>&1 & W=$!
cd {directory} || exit 9
echo begin
$S env -i {words} >"$D/out" 2>"$D/err" 3<&- & P=$!
echo "$P" >"$D/pid"
wait "$P"
echo "end $?"
{{ kill -s KILL "$W"; wait "$W"; }} 2>/dev/null
for F in out err; do
  dd if="$D/$F" of="$D/part" bs=65536 count=128 2>/dev/null; wc -c <"$D/part"; cat "$D/part"
done
"""
"""Runs one command; when its own input ends, that command and what it has started are killed."""


def _watched(child: "subprocess.Popen[bytes]", limit: float) -> StepResult | None:
    """What came of a command, which is ended after so many seconds (0: never); None where the shell there
    did not tell.
    """
    begun, late = _when(child, _BEGIN), threading.Event()

    def end() -> None:
        late.set()
        _hang_up(child)

    timer = threading.Timer(limit, end)
    timer.daemon = True
    if limit:
        timer.start()
    ended = _when(child, _END)
    timer.cancel()
    result = _result(child.stdout, ended[1]) if begun and ended else None
    if result is None or begun is None or ended is None:
        return None
    return result.model_copy(update={"wall_ns": ended[0] - begun[0], "timed_out": late.is_set()})


def _when(child: "subprocess.Popen[bytes]", word: bytes) -> tuple[int, bytes] | None:
    """When a line that begins so was read, in nanoseconds of this system's clock, and its rest."""
    line = child.stdout.readline() if child.stdout is not None else b""
    at = time.monotonic_ns()
    return (at, line.removeprefix(word)) if line.startswith(word) else None


def _result(printed: IO[bytes] | None, status: bytes) -> StepResult | None:
    """With what the command printed; None where that did not arrive."""
    stdout, stderr = _text(printed), _text(printed)
    if stdout is None or stderr is None:
        return None
    ended = int(status)
    signal = ended - _KILLED_BY if ended > _KILLED_BY else None
    plain = ended if signal is None else None
    return StepResult(step=0, do="run", exit=plain, signal=signal, stdout=stdout, stderr=stderr)


def _text(printed: IO[bytes] | None) -> str | None:
    size = printed.readline().strip() if printed is not None else b""
    if printed is None or not size.isdigit():
        return None
    content = printed.read(int(size))
    return content.decode(errors="replace") if len(content) == int(size) else None


def _hang_up(child: "subprocess.Popen[bytes]") -> None:
    if child.stdin is not None and not child.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
