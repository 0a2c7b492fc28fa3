"""Files that a guest is given after its kernel has booted: an archive that QEMU hands over.

All workloads of a kernel that bring files start from one boot of it. Its first program is `unpack`
(crates/unpack), which stops as soon as the kernel runs: that is kept. For each set of files a guest goes on
from there: it unpacks the archive (cpio's `newc`, in a `fw_cfg` file), starts the agent, and stops at the
snapshot point as any guest does. Trials start from that.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import PurePosixPath
from typing import BinaryIO

from ktrial.machines.qemu.initramfs import InitramfsEntry
from ktrial.machines.qemu.jail import sealed_copy
from ktrial.machines.qemu.outcome import GuestFailure
from ktrial.machines.qemu.process import inherited_path
from ktrial.model.trial import Outcome

FW_CFG_NAME = "opt/ktrial/files"
_USUAL_MODE = stat.S_IFDIR | 0o755
_TRAILER = "TRAILER!!!"
_COPIED_WHOLE = 1 << 20
_REFUSED = re.compile(r"files (\d+) (.*)")


@contextmanager
def archive(entries: Sequence[InitramfsEntry]) -> Iterator[int]:
    """An archive of these entries in a file without a name, closed at the end of the block.

    Raises OSError.
    """
    descriptor = sealed_copy("ktrial-files", partial(_fill, tuple(entries)))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def arguments(descriptor: int) -> tuple[str, ...]:
    """QEMU's, which inherits the archive."""
    return ("-fw_cfg", f"name={FW_CFG_NAME},file={inherited_path(descriptor)}")


def added(before: Sequence[InitramfsEntry], after: Sequence[InitramfsEntry]) -> tuple[InitramfsEntry, ...]:
    """What makes a system with the entries `before` one with those `after`, in the order in which it is done.

    First what is in the way of a link is taken away (an entry without a kind), then directories are made from
    above, then all else; in the end directories get their own times, from below.
    """
    old, new = ({entry.guest: entry for entry in entries} for entries in (before, after))
    links = {entry.guest for entry in after if entry.is_link and old.get(entry.guest) != entry}
    made = [entry for entry in after if old.get(entry.guest) != entry]
    directories = {entry.guest: entry for entry in made if entry.is_directory}
    for entry in made:
        for parent in _parents(entry.guest):
            directories.setdefault(parent, new.get(parent) or InitramfsEntry(parent, _USUAL_MODE, b""))
    in_order = [directories[guest] for guest in sorted(directories)]
    return (
        *(InitramfsEntry(guest, 0, b"") for guest in _in_the_way(old, new, links)),
        *in_order,
        *(entry for entry in made if not entry.is_directory),
        *reversed(in_order),
    )


def _in_the_way(
    old: Mapping[str, InitramfsEntry], new: Mapping[str, InitramfsEntry], links: set[str]
) -> list[str]:
    """What stands where a link is to be, or below: files and directories, from below."""
    gone: set[str] = set()
    for guest in old.keys() - new.keys():
        below = [path for path in (guest, *_parents(guest)) if links & {path, *_parents(path)}]
        gone.update(below)
    return sorted(gone, reverse=True)


def _parents(guest: str) -> list[str]:
    return [str(parent) for parent in PurePosixPath(guest).parents if parent != PurePosixPath("/")]


def _fill(entries: Sequence[InitramfsEntry], output: int) -> None:
    with os.fdopen(os.dup(output), "wb", buffering=1 << 18) as file:
        for entry in entries:
            _write_entry(file, entry)
        _write_head(file, _TRAILER, 0, 0)


def _write_entry(file: BinaryIO, entry: InitramfsEntry) -> None:
    name, source = entry.guest.lstrip("/"), entry.source
    if isinstance(source, bytes):
        is_plain = entry.mode and not stat.S_IFMT(entry.mode)  # no mode at all: it is taken away
        _write_head(file, name, entry.mode | (stat.S_IFREG if is_plain else 0), len(source))
        file.write(source)
        file.write(_padding(len(source)))
        return
    with source.open("rb") as opened:
        size = left = os.fstat(opened.fileno()).st_size
        _write_head(file, name, stat.S_IFREG | stat.S_IMODE(entry.mode), size)
        if size <= _COPIED_WHOLE:
            file.write(opened.read())
        else:
            file.flush()
            while left and (sent := os.sendfile(file.fileno(), opened.fileno(), None, left)):
                left -= sent
        file.write(_padding(size))


def _write_head(file: BinaryIO, name: str, mode: int, size: int) -> None:
    encoded = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    file.write(head + _padding(len(head)))


def _padding(size: int) -> bytes:
    return bytes(-size % 4)


def refused(text: str) -> GuestFailure | None:
    """What became of a guest whose files did not come there, by what `unpack` said; None: it was not that.

    It says a number of the kernel's, and where that was met.
    """
    match = _REFUSED.fullmatch(text)
    if not match:
        return None
    code, place = int(match[1]), match[2]
    if code == errno.ENOSPC:
        return GuestFailure(
            Outcome.OUT_OF_MEMORY,
            "the workload's files do not fit into the guest's memory, of which they may have half: no room "
            f"for /{place}; give it more (--memory; memory in [machine])",
        )
    problem = f"/{place}: {os.strerror(code)} ({errno.errorcode.get(code, code)})" if code else place
    return GuestFailure(
        Outcome.WORKLOAD_FAILED, f"the workload's files did not come into the guest: {problem}"
    )
