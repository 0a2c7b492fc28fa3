"""A system on which ktrial's own programs do not run: its shell runs commands, one after another.

The clock is this system's: the shell there says when a command begins and ends, and what is read here in
between is its wall time, with what the two words' ways over the network differ by. All that is asked of that
system is a POSIX shell, `env`, `cat`, `dd` and `wc`.
"""

import contextlib
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NoReturn

from ktrial.machines.errors import MachineError, MachineStopped
from ktrial.machines.ssh.connection import NAME, Connection
from ktrial.machines.ssh.errors import ConnectionLost
from ktrial.target import Run, StepResult

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
        return tuple(self._one(connection, number, run) for number, run in runs)

    def stop(self) -> None:
        """End all commands: what reads their life line there kills them."""
        with self._lock:
            self._stopped = True
            for child in self._alive:
                _hang_up(child)

    def _one(self, connection: Connection, number: int, run: Run) -> StepResult:
        own, words = connection.directory, [f"{key}={value}" for key, value in run.environment.items()]
        script = SCRIPT.format(
            own=shlex.quote(own),
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
