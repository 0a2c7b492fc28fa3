"""Files of the other machine, read and written by `/bin/sh` and `cat`: all that POSIX promises."""

import errno
import os
import posixpath
import re
import secrets
import shlex

from ktrial.machines.ssh.connection import Connection
from ktrial.target import Failure, Read, Step, StepResult, Write

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
        ((content, said),) = self._answers(f"show {shlex.quote(path)}\n")
        failure = _named(f"read {path}", said)
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


def _reason(status: bytes, said: bytes) -> str:
    return (said.decode(errors="replace").strip() or f"status {status.decode()}") if status != b"0" else ""


def _named(action: str, said: str) -> Failure | None:
    """With the errno that the message of the C locale stands for."""
    if not said:
        return None
    for text, number in _NUMBERS.items():
        if said.endswith(text):
            return Failure(errno=number, name=errno.errorcode[number], text=f"{action}: {text}")
    return Failure(text=f"{action}: {said}")


def _outside(path: str, action: str, allowed: tuple[str, ...]) -> Failure | None:
    if "\0" not in path and posixpath.normpath(path).startswith(allowed):
        return None
    return Failure(text=f"{action} {path!r}: it is not below {' or '.join(allowed)}")


def _value(content: bytes) -> str:
    return content.decode(errors="replace").removesuffix("\n")
