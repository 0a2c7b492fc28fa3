"""One multiplexed connection of the user's own OpenSSH client, and the keeper at its other end.

Every command is an ssh that uses the connection's socket alone: it reads no configuration, and cannot connect
by itself. What a study says never reaches a login shell or ssh's arguments: scripts go to `/bin/sh` by
standard input, and the host's name has been checked.
"""

import contextlib
import os
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

from ktrial import process_identity
from ktrial.machines.errors import (
    ConnectionLost,
    MachineError,
    MachineInUse,
    MachineToolMissing,
    MachineUsageError,
    NotReached,
)
from ktrial.machines.ssh import boot_ways
from ktrial.machines.ssh.boot_ways import LEASE_SECONDS
from ktrial.model import machine
from ktrial.system_tools import Tool
from ktrial.text_lines import lines_of

NAME = "ssh"
SSH = Tool("ssh", "openssh-client", "reaches the other machine")
CONFIG = "KTRIAL_SSH_CONFIG"
"""The environment variable that names another file than ~/.ssh/config."""
_PATIENCE = 60.0
_DIRECTORY = re.compile(r"/[A-Za-z0-9._/-]+")
_NO_MORE = (
    *(
        "BatchMode=yes",
        "ClearAllForwardings=yes",
        "ForwardAgent=no",
        "ForwardX11=no",
        "PermitLocalCommand=no",
    ),
    *("RemoteCommand=none", "RequestTTY=no", "ControlPersist=no", "ControlMaster=yes"),
    *("ServerAliveInterval=15", "ServerAliveCountMax=3", "ConnectTimeout=20"),
)
"""Options of the connection: it asks nothing, and brings nothing of this system there."""
_BY_SOCKET_ONLY = ("ControlMaster=no", "ProxyCommand=false", "BatchMode=yes", "LogLevel=ERROR")
_SH = "exec /bin/sh"
_SSH_FAILED = 255
"""The status of ssh itself; no script of ktrial's ends with it."""
_PROBE = "exec cat /proc/sys/kernel/random/boot_id /proc/cmdline"
_PROBE_MARGIN_SECONDS = 10.0
"""Beyond its connection: until it has printed."""


class ShellResult(NamedTuple):
    """How a script ended there."""

    status: int
    printed: bytes
    message: str
    """The last line of its standard error."""


class Probe(NamedTuple):
    """Which boot of a machine answers."""

    boot_id: str
    command_line: str


class NoAnswer(NamedTuple):
    """No boot of a machine answers: ssh's last line. `is_slow`: it was not refused, time was up."""

    message: str
    is_slow: bool = False


def probe(host: str, seconds: float) -> Probe | NoAnswer:
    """Which boot of it answers within so many seconds, by a connection for this question alone."""
    config = os.environ.get(CONFIG)
    chosen = ["-F", config] if config else []
    alone = ("ControlPath=none", "ControlMaster=no", "LogLevel=ERROR", f"ConnectTimeout={seconds:.0f}")
    slow = NoAnswer(f"no answer within {seconds:.0f} s", is_slow=True)
    began = time.monotonic()
    options = [word for option in (*alone, *_NO_MORE) for word in ("-o", option)]
    try:
        finished = subprocess.run(
            ["ssh", *chosen, *options, "-T", "--", host, _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds + _PROBE_MARGIN_SECONDS,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return slow
    boot_id, _, command_line = finished.stdout.decode(errors="replace").partition("\n")
    if finished.returncode == 0 and boot_id:
        return Probe(boot_id.strip(), command_line.strip())
    message = _last_line(finished.stderr)
    return (
        slow._replace(message=message or slow.message)
        if time.monotonic() - began >= seconds
        else NoAnswer(message)
    )


class Connection:
    """A connection that stands. `close` takes away what is on the other machine."""

    def __init__(self, host: str, *, sudo: bool = False) -> None:
        """Connect, and start the keeper. `sudo`: be root there by a sudo that asks nothing. Raises
        BadHostName, MachineToolMissing, NotReached, SudoAsks, MachineInUse.
        """
        if not machine.is_host_name(host):
            raise MachineUsageError(
                f"Machine {NAME}: {host!r} is not a name of a machine; allowed: {machine.ALLOWED}.",
                hint=(
                    'in the study file: [machine] kind = "ssh", host = "lab1"; ports and keys belong '
                    "into ~/.ssh/config"
                ),
            )
        if shutil.which(SSH.name) is None:
            raise MachineToolMissing(machine=NAME, program=SSH.name, where="in PATH", package=SSH.package)
        self.host = host
        self._sudo = sudo
        self._ended = threading.Event()
        self._keeper: subprocess.Popen[bytes] | None = None
        self._keeper_lock = threading.Lock()
        self._own = tempfile.TemporaryDirectory(prefix="ktrial-ssh-")
        self._socket = Path(self._own.name) / "socket"
        self._master = self._connected()
        try:
            self.directory = self._start_keeper()
            self._tell(f"who {who()}\n".encode())
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._beat, daemon=True).start()

    def command(self, remote: str) -> list[str]:
        """What runs `remote`, ktrial's own text, on the other machine; standard input and output are its."""
        options = [word for option in _BY_SOCKET_ONLY for word in ("-o", option)]
        if self._sudo:
            remote = f"exec sudo -n -- /bin/sh -c {shlex.quote(remote)}"
        return ["ssh", "-F", "none", "-S", str(self._socket), *options, "-T", "--", self.host, remote]

    def script(self, text: str, limit: float = _PATIENCE) -> bytes:
        """What a script of `/bin/sh` prints there. Raises ConnectionLost where it does not end well."""
        return self._output(_SH, text.encode(), limit)

    def attempt(self, text: str, limit: float = _PATIENCE) -> ShellResult:
        """How a script of `/bin/sh` ends there. Raises ConnectionLost where it cannot be known."""
        return self._attempted(_SH, text.encode(), limit)

    def stream(self, remote: str, write: Callable[[IO[bytes]], None]) -> ShellResult:
        """Run `remote`, ktrial's own text, there; `write` writes its input. Raises ConnectionLost."""
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                self.command(remote),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
            if child.stdin is not None:
                with contextlib.suppress(BrokenPipeError), child.stdin as pipe:
                    write(pipe)
            status = child.wait()
            errors.seek(0)
            last = _last_line(errors.read())
        if status == _SSH_FAILED:
            self._lost(last or f"status {status}")
        return ShellResult(status, b"", last)

    def send(self, content: bytes, name: str, mode: int = 0o700) -> str:
        """Put a program into the directory there, under a name of ktrial's own; return its path."""
        path = f"{self.directory}/{name}"
        self._output(f"cat >{path} && chmod {mode:o} {path}", content, _PATIENCE)
        return path

    def undo(self) -> None:
        """Have the keeper put back all that was set. Raises ConnectionLost."""
        with self._keeper_lock:
            if not self._tell(b"undo\n") or self._keeper is None or self._keeper.stdout is None:
                self._lost("its keeper has ended")
            if self._keeper.stdout.readline().strip() != b"undone":
                self._lost("its keeper has ended")

    @property
    def is_alive(self) -> bool:
        """Whether neither it nor the keeper has ended."""
        keeper_runs = self._keeper is not None and self._keeper.poll() is None
        return not self._ended.is_set() and keeper_runs and self._master.poll() is None

    def answers(self) -> bool:
        """Whether the other machine still does; if not, the connection has ended.

        It is asked: when a connection breaks, its processes here end one after another.
        """
        try:
            self.script(":")
        except ConnectionLost:
            self._ended.set()
        return self.is_alive

    def close(self) -> None:
        """End the keeper, which puts back and takes away, and the connection."""
        self._ended.set()
        if self._keeper is not None:
            with contextlib.suppress(OSError):
                if self._keeper.stdin is not None:
                    self._keeper.stdin.close()
            _ended(self._keeper, 20.0)
        self._master.terminate()
        _ended(self._master, 10.0)
        self._own.cleanup()

    def _connected(self) -> "subprocess.Popen[bytes]":
        config = os.environ.get(CONFIG)
        chosen = ["-F", config] if config else []
        options = [word for option in _NO_MORE for word in ("-o", option)]
        errors_file = Path(self._own.name) / "said"
        with errors_file.open("wb") as file:
            # A session of its own: a terminal's Ctrl-C reaches ktrial only.
            master = subprocess.Popen(
                ["ssh", *chosen, "-M", "-N", "-T", "-S", str(self._socket), *options, "--", self.host],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )
        until = time.monotonic() + _PATIENCE
        while not self._socket.exists():
            if master.poll() is not None or time.monotonic() > until:
                master.kill()
                master.wait()
                problem = _last_line(errors_file.read_bytes()) or f"no answer within {_PATIENCE:g} s"
                self._own.cleanup()
                raise NotReached(machine=NAME, host=self.host, problem=problem)
            time.sleep(0.02)
        return master

    def _start_keeper(self) -> str:
        """The keeper's directory, once it has one."""
        self._keeper = subprocess.Popen(
            self.command(command()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        stdout, stderr = self._keeper.stdout, self._keeper.stderr
        line = stdout.readline().decode(errors="replace").rstrip("\n") if stdout else ""
        if line == IN_USE:
            raise MachineInUse(machine=NAME, host=self.host, who=_holders(stdout.read() if stdout else b""))
        directory = line.removeprefix(READY)
        if directory == line or not _DIRECTORY.fullmatch(directory):
            problem = (_last_line(stderr.read()) if stderr and not line else "") or f"it answered {line!r}"
            if self._sudo and "sudo" in problem:
                raise MachineError(
                    f"Machine {NAME}: sudo does not make you root on {self.host}: {problem}",
                    hint=(
                        "a line for visudo there: NAME ALL=(root) NOPASSWD: /bin/sh; or log in as root, and "
                        "take sudo = true out of ktrial's configuration"
                    ),
                )
            raise NotReached(machine=NAME, host=self.host, problem=f"no POSIX shell answers: {problem}")
        return directory

    def _output(self, remote: str, content: bytes, limit: float) -> bytes:
        result = self._attempted(remote, content, limit)
        if result.status:
            self._lost(result.message or f"status {result.status}")
        return result.printed

    def _attempted(self, remote: str, content: bytes, limit: float) -> ShellResult:
        try:
            finished = subprocess.run(
                self.command(remote),
                input=content,
                capture_output=True,
                timeout=limit,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            self._lost(f"no answer within {limit:g} s")
        message = _last_line(finished.stderr)
        if finished.returncode == _SSH_FAILED:
            self._lost(message or f"status {finished.returncode}")
        return ShellResult(finished.returncode, finished.stdout, message)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            with self._keeper_lock:
                if not self._tell(b"beat\n"):
                    return

    def _tell(self, line: bytes) -> bool:
        if self._keeper is None or self._keeper.stdin is None:
            return False
        try:
            self._keeper.stdin.write(line)
            self._keeper.stdin.flush()
        except (OSError, ValueError):  # it has ended, or is being closed
            return False
        return True

    def _lost(self, problem: str) -> NoReturn:
        raise ConnectionLost(machine=NAME, host=self.host, problem=problem) from None


def _ended(process: "subprocess.Popen[bytes]", patience: float) -> None:
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _holders(printed: bytes) -> str:
    """What the keepers there say of whose they are."""
    lines = (line.removeprefix("who ").strip() for line in lines_of(printed.decode(errors="replace")))
    named = ", ".join(dict.fromkeys(line for line in lines if line))
    return f" ({named})" if named else ""


def _last_line(output: bytes) -> str:
    lines = lines_of(output.decode(errors="replace").strip())
    return lines[-1].strip() if lines else ""


# The keeper: a POSIX shell on the other machine that owns ktrial's directory there, and takes it away.
#
# It lives as long as its standard input: when the connection ends, ktrial is killed, or nothing is heard
# for a minute, it puts back what was set, latest first, and removes the directory. A second process watches
# the first. Each setting is two files, `N.path` and `N.old`, written before the kernel's file is; a
# directory `busy` is made around that, so that nothing is set any more once the keeper has begun to put
# back. Settings do not outlive the system: after a reboot there is nothing to put back. The lock is
# flock(2) on `/`: it ends with the keeper. Whose it is says a file that all may read; of a machine that is
# booted the keeper also touches the lease (see `lease`), each time that it hears of ktrial.

READY = "ktrial-directory "
IN_USE = "ktrial-in-use"
BEAT_SECONDS = 10.0
"""How often something is written to its standard input."""
NUMBER = "n"
"""The file with the number of the last setting."""


# No quote ', no backslash, no newline and no !: every login shell, csh too, hands it on as it is.
_UNDO = """
undo() {
  i=0; until mkdir "$D/busy" 2>/dev/null || [ "$i" -ge 5 ]; do sleep 1; i=$((i+1)); done;
  n=$(cat "$D/n" 2>/dev/null || echo 0);
  while [ "$n" -gt 0 ]; do
    if [ -f "$D/$n.old" ]; then
      P=$(cat "$D/$n.path"); cat "$D/$n.old" 2>/dev/null >"$P"; rm -f "$D/$n.old";
    fi;
    n=$((n-1));
  done;
  rm -f "$D/n"; rmdir "$D/busy" 2>/dev/null;
};
"""
_SWEEP = """
for D in /tmp/ktrial.* /var/tmp/ktrial.* "$HOME"/ktrial.*; do
  [ -d "$D" ] || continue;
  [ -n "$(find "$D" -prune -type d -user "$(id -u)" 2>/dev/null)" ] || continue;
  read -r K <"$D/keeper" || continue;
  kill -0 "$K" 2>/dev/null && continue;
  undo; rm -rf "$D";
done 2>/dev/null;
"""


# The try begins as scripts do: not every shell runs a file that does not. awk knows the letter of number 33.
_PLACE = """
M=$(awk -v f=%c "BEGIN{printf f,33}" 2>/dev/null);
for B in /tmp /var/tmp "$HOME"; do
  D=$(mktemp -d "$B/ktrial.XXXXXXXX" 2>/dev/null) || { D=; continue; };
  echo "#$M/bin/sh" >"$D/try"; echo "exit 0" >>"$D/try"; chmod 700 "$D/try"; "$D/try" 2>/dev/null && break;
  rm -rf "$D"; D=;
done;
[ -n "$D" ] || { echo "no directory may hold programs: /tmp, /var/tmp, $HOME" >&2; exit 4; };
echo $$ >"$D/keeper";
"""
_KEEP = """
(
  exec 9<&- </dev/null >/dev/null 2>&1; k=0;
  while [ -d "$D" ]; do
    sleep 5;
    if kill -0 $$ 2>/dev/null; then :; else undo; rm -rf "$D"; exit; fi;
    if [ -f "$D/beat" ]; then rm -f "$D/beat"; k=0; else k=$((k+1)); fi;
    if [ "$k" -ge 12 ]; then undo; rm -rf "$D"; kill -9 $$; exit; fi;
  done
) &
echo "ktrial-directory $D";
while read -r L; do
  : >"$D/beat";
  if [ -f "$D/lease" ]; then : >/var/lib/ktrial/beat; touch /var/lib/ktrial/lease; fi 2>/dev/null;
  case "$L" in
    undo) undo; echo undone;;
    who*) echo "$L" >"$D/who"; chmod 644 "$D/who"; chmod 711 "$D";;
  esac;
done;
undo 2>/dev/null; rm -rf "$D";
"""
_WHO = """
for W in /tmp/ktrial.*/who /var/tmp/ktrial.*/who; do
  [ -f "$W" ] && head -c 200 "$W" | tr -cd "[:alnum:]@._: -" && echo;
done 2>/dev/null;
"""
_SCRIPT = f"""
umask 077; LC_ALL=C; export LC_ALL; trap "" HUP INT TERM PIPE; exec 9</;
if command -v flock >/dev/null 2>&1; then flock -n 9 || {{ echo {IN_USE}; {_WHO} exit 3; }}; fi;
{_UNDO} {_SWEEP} {_PLACE} {_KEEP}
"""


def command() -> str:
    """What the login shell of the other machine is given: one line, the same for every study."""
    return f"exec /bin/sh -c '{' '.join(_SCRIPT.split())}'"


# Whose a machine is that is booted: a file there with a heartbeat, which holds while it boots, too.
#
# As long as a connection stands, the keeper's lock on `/` holds the machine; a boot ends it. The file
# outlives that: it is whoever's wrote it until nobody has been heard of for `LEASE_SECONDS`, or until the
# process that took it has ended, where that was on this very system.

_LINES = 5
"""Key, who, process, when it was born, and the age."""


def who() -> str:
    """`alice@desk since 2026-11-24T11:30Z`: of letters that no shell takes for more."""
    named = f"{process_identity.user()}@{socket.gethostname()}"
    return f"{re.sub(r'[^A-Za-z0-9@._-]', '_', named)[:80]} since {datetime.now(UTC):%Y-%m-%dT%H:%MZ}"


@dataclass(frozen=True)
class Lease:
    """One that is held, or was."""

    key: str
    who: str
    process: int
    born: str
    """See process_identity: its first word is the boot of the system that the process ran on."""
    age: float
    """Seconds since its holder was last heard of."""

    @property
    def is_over(self) -> bool:
        """Whether nobody holds it any more."""
        if self.age > LEASE_SECONDS:
            return True
        same_system = process_identity.same_boot(self.born, process_identity.born(os.getpid()))
        return same_system and process_identity.born(self.process) != self.born


@dataclass(frozen=True)
class OwnLease:
    """What this process takes."""

    key: str = field(default_factory=lambda: secrets.token_hex(8))
    who: str = field(default_factory=who)

    def script(self) -> str:
        """Takes the machine, whoever had it."""
        process = os.getpid()
        lines = (self.key, self.who, str(process), process_identity.born(process))
        return boot_ways.lease(" ".join(map(shlex.quote, lines)))


def held(run: Callable[[str], bytes]) -> Lease | None:
    """The lease that is there; `run` has a script run there."""
    lines = lines_of(run(boot_ways.HELD).decode(errors="replace"))
    if len(lines) < _LINES:
        return None
    key, named, process, born, age = lines[0], lines[1], lines[2], lines[3], lines[-1]
    shown = re.sub(r"[^A-Za-z0-9@._: -]", "_", named)[:120]
    return Lease(key, shown, int(process) if process.isdecimal() else 0, born, float(age))
