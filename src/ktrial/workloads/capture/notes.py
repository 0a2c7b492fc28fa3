"""What a captured command will miss in a guest, and why: said before anything boots."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ktrial.format import number_format
from ktrial.model.base import Model
from ktrial.workloads.capture.accesses import Accesses
from ktrial.workloads.capture.collect import Collected
from ktrial.workloads.capture.places import below, is_special_device

_DISPLAYS = ("/tmp/.X11-unix", "/run/user")
_LOOPBACK = ("127.", "::1", "0.0.0.0", "::ffff:127.")
_DNS = 53
_SLOW = 10.0
"""Seconds here, at which the guest's minutes are worth a word: QEMU interprets, and runs it several times."""


class Note(Model):
    """Something that is otherwise in a guest."""

    text: str
    advice: str = ""


def notes(accesses: Accesses, collected: Collected, seconds: float) -> tuple[Note, ...]:
    """All of them."""
    return (
        *_sockets(accesses),
        *_addresses(accesses),
        *_devices(accesses),
        *_rights(accesses),
        *_files(collected),
        *_writes(collected),
        *_time(seconds),
    )


def _sockets(accesses: Accesses) -> Iterator[Note]:
    for path in accesses.sockets:
        if path in accesses.bound:
            continue
        if below(path, *_DISPLAYS):
            yield Note(
                text=f"it talks to a display ({path}); a guest has none", advice="run it without its GUI"
            )
        else:
            yield Note(
                text=f"it talks to a daemon by the socket {path}; nobody listens there in a guest",
                advice="start the server in the command: sh -c 'server & …; client; stop the server'",
            )


def _addresses(accesses: Accesses) -> Iterator[Note]:
    outside = [(host, port) for host, port in accesses.addresses if not _is_loopback(host) or port == _DNS]
    if outside:
        where = _some(f"{host} port {port}" for host, port in outside)
        yield Note(
            text=f"it talks to other machines ({where}); a guest has no network but its own loopback",
            advice="have what it fetches in files here, or start the server in the command",
        )
    for host, port in accesses.addresses:
        if _is_loopback(host) and port not in {*accesses.bound, _DNS, 0}:
            yield Note(
                text=f"it talks to a server of this machine ({host} port {port}); a guest does not run it",
                advice="start the server in the command: sh -c 'server & …; client; stop the server'",
            )


def _is_loopback(host: str) -> bool:
    return not host or host.startswith(_LOOPBACK)


def _devices(accesses: Accesses) -> Iterator[Note]:
    devices = [path for path in accesses.found if is_special_device(path) and not Path(path).is_dir()]
    if devices:
        yield Note(text=f"it uses devices ({_some(devices)}) that a guest does not have, such as a GPU")


def _rights(accesses: Accesses) -> Iterator[Note]:
    raised = [path for path in accesses.executed if _is_setuid(path)]
    if raised:
        yield Note(
            text=f"it runs programs that change the user ({_some(raised)}); in a guest all runs as root",
            advice="leave sudo and su out of the command",
        )
    if accesses.special:
        yield Note(text=f"it changes its view of the file system ({_some(accesses.special)}), not as here")


def _is_setuid(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID))  # noqa: PTH116
    except OSError:
        return False


def _files(collected: Collected) -> Iterator[Note]:
    if collected.secrets:
        yield Note(
            text=f"it reads what usually are secrets, which are left out: {_some(collected.secrets)}",
            advice="--include PATH takes one along, into the caches of ktrial and the guest's memory",
        )
    if collected.own:
        yield Note(text=f"what ktrial itself is writing is left out: {_some(collected.own)}")
    if collected.unreadable:
        yield Note(text=f"it looks at files that cannot be read here: {_some(collected.unreadable)}")
    if collected.unnamed:
        yield Note(text=f"names that are not UTF-8 are left out: {_some(collected.unnamed)}")
    if collected.partial:
        yield Note(
            text=f"it reads the names in {_some(collected.partial)}: a guest has those that it opened",
            advice="add the directory to files where the others matter",
        )


def _writes(collected: Collected) -> Iterator[Note]:
    if collected.changed:
        yield Note(
            text=f"it changed files that were there: {_some(collected.changed)}; a guest gets them as they "
            "are now, after the run",
            advice="a command is run several times in a row: let it begin with what it needs",
        )
    if collected.made:
        yield Note(
            text=f"it made {number_format.counted(len(collected.made), 'file')} here "
            f"({_some(collected.made)}); in a guest each run finds what the run before it left",
            advice="where it is to do all its work each time, let it remove them first",
        )


def _time(seconds: float) -> Iterator[Note]:
    if seconds > _SLOW:
        yield Note(
            text=f"it took {number_format.duration(seconds)} here, under strace; a guest takes longer, some "
            "20 times, for each of its runs",
            advice="measure a smaller piece of work, or set repeats = 1",
        )


def _some(names: Iterable[str]) -> str:
    listed: Sequence[str] = list(names)
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return f"{', '.join(listed[:3])}{more}"
