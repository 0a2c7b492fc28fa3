"""What each block was measured with: a number may differ because a kernel or QEMU is another one."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

import tomli_w
from docs.measured.pages import ROOT

from ktrial.machines import guest_programs as installed_programs
from ktrial.machines.qemu import plugin
from ktrial.machines.qemu import program as qemu

_FILE = ROOT / "docs" / "measured" / "made_with.toml"
_HEAD = "# Written by docs/write_numbers.py: what each block of numbers was measured with.\n"
_PROGRAMS = ("agent", "work", "lockstep.so")


def guest_programs() -> str:
    """The start of a digest over what ktrial executes in guests and loads into the QEMU that is here."""
    where = installed_programs.directory()
    installed_programs.programs(where)
    counting = plugin.find(qemu.find("exact").version)
    assert isinstance(counting, plugin.PluginBuild), "numbers are written where ktrial counts"
    files = [*(where / name for name in _PROGRAMS), counting.path]
    return sha256(b"".join(sha256(file.read_bytes()).digest() for file in files)).hexdigest()[:12]


@cache
def installed_qemu() -> str:
    """The version of QEMU that runs here."""
    return qemu.find("exact").text


@dataclass
class MadeWith:
    """Kernels by name with their releases, QEMU, and the guest's programs."""

    kernels: dict[str, str] = field(default_factory=dict)
    qemu: str = field(default_factory=installed_qemu)
    programs: str = field(default_factory=guest_programs)

    def add(self, kernel: str, release: str) -> None:
        """Note a kernel that was measured; one in a file has no name elsewhere."""
        if not kernel.startswith("path:"):
            self.kernels[kernel] = release

    def others(self, now: "MadeWith") -> list[str]:
        """What is another one now, in words."""
        pairs = [
            ("QEMU", self.qemu, now.qemu),
            ("guest programs", self.programs, now.programs),
            *((name, self.kernels.get(name, ""), release) for name, release in sorted(now.kernels.items())),
        ]
        return [f"{what}: {old or 'not noted'} then, {new} now" for what, old, new in pairs if old != new]


def noted(file: Path = _FILE) -> dict[str, MadeWith]:
    """Name of the block → what it was made with."""
    if not file.exists():
        return {}
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        name: MadeWith(table["kernels"], table["qemu"], table["programs"]) for name, table in tables.items()
    }


def note(name: str, made: MadeWith, file: Path = _FILE) -> None:
    """Note it for one block; the others stay as they are."""
    everything = noted(file) | {name: made}
    tables = {
        each: {"kernels": dict(sorted(with_.kernels.items())), "qemu": with_.qemu, "programs": with_.programs}
        for each, with_ in sorted(everything.items())
    }
    file.write_text(_HEAD + tomli_w.dumps(tables), encoding="utf-8")
