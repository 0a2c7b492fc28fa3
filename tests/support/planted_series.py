"""Series of patches of ours to a real source, as quilt keeps them, and the command that measures them.

What costs instructions is `nop`s.
"""

import difflib
import re
import subprocess
import sys
from pathlib import Path

from tests.support.long_commands import run_shown

from ktrial.kernels.build.debian_sources import debian_source

SOURCE = "linux-source-6.1"
KTRIAL = Path(sys.executable).with_name("ktrial")
NOPS = 'asm volatile(".rept {count}; nop; .endr");'


class Planted:
    """Patches, each a change of some files on top of those before it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._tree = debian_source(SOURCE)
        self._files: dict[str, str] = {}
        self.names: list[str] = []

    def patch(self, name: str, path: str, old: str, new: str, *, stays: bool = True) -> None:
        """Change `old` in the file, which has it once. `stays`: whether later ones build upon it."""
        before = self._files.get(path) or (self._tree / path).read_text()
        assert before.count(old) == 1, (name, path, before.count(old))
        after = before.replace(old, new)
        one, other = (each.splitlines(keepends=True) for each in (before, after))
        text = "".join(difflib.unified_diff(one, other, f"a/{path}", f"b/{path}"))
        self.names.append(f"{len(self.names) + 1:02}-{re.sub('[ ,]+', '-', name)}.patch")
        (self.place / self.names[-1]).write_text(f"Subject: planted: {name}\n\n---\n{text}")
        if stays:
            self._files[path] = after

    def write(self) -> Path:
        (self.place / "series").write_text("".join(f"{name}\n" for name in self.names))
        return self.place

    def slower(self, path: str, function: str, instructions: int) -> None:
        """A patch after which this function begins with so many instructions that do nothing."""
        text = self._files.get(path) or (self._tree / path).read_text()
        begins = re.findall(rf"^\w[^\n;{{}}]*\b{function}\([^;{{}}]*\)\n{{\n", text, re.MULTILINE)
        assert len(begins) == 1, (path, function, begins)
        self.patch(function, path, begins[0], f"{begins[0]}\t{NOPS.format(count=instructions)}\n")


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [
        KTRIAL,
        "series",
        "--onto",
        f"debian:{SOURCE}",
        "--store",
        place / "x.db",
        *words,
    ]
    return run_shown(command, place)
