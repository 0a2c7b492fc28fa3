"""What a machine boots stays what it was while the machine is in use: else a study mixes two systems."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from ktrial.machines.errors import BootChanged
from ktrial.machines.qemu.initramfs import InitramfsEntry
from ktrial.machines.qemu.snapshot_setup import SnapshotSetup

_RAM_DISK = "initial RAM disk"
_NAMED = 3
"""Files that a message names; of more it says how many."""


@dataclass(frozen=True)
class _First:
    """What a boot was made of when it was prepared for the first time."""

    facts: dict[str, str]
    contents: dict[str, str]
    """Of the initial RAM disk: path in the guest → mode and digest."""


@dataclass
class BootsInUse:
    """The boots that one machine has prepared, each with what it was made of."""

    machine: str
    _first: dict[Hashable, _First] = field(default_factory=dict)

    def check(self, setup: SnapshotSetup, *also: Hashable) -> None:
        """Compare with the first time. `also`: what one boot is prepared for. Raises BootChanged."""
        place = (setup.boot, *also)
        if place not in self._first:
            self._first[place] = _First(setup.facts, _contents(setup.files.entries))
            return
        first = self._first[place]
        changed = [name for name, fact in first.facts.items() if setup.facts[name] != fact]
        if changed:
            files = list(_differing(first.contents, setup.files.entries)) if _RAM_DISK in changed else []
            what = [f"{name} ({_some(files)})" if name == _RAM_DISK and files else name for name in changed]
            raise BootChanged(machine=self.machine, what=", ".join(what))


def _contents(entries: tuple[InitramfsEntry, ...]) -> dict[str, str]:
    return {entry.guest: f"{entry.mode} {entry.digest}" for entry in entries}


def _differing(before: dict[str, str], entries: tuple[InitramfsEntry, ...]) -> Iterator[str]:
    now = _contents(entries)
    sources = {entry.guest: entry.source for entry in entries}
    for guest in sorted(before.keys() | now.keys()):
        if before.get(guest) != now.get(guest):
            source = sources.get(guest, b"")
            yield guest if isinstance(source, bytes) else str(source)


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
