"""A directory with Linux's source: is it one, which commit is it, can it be built beside itself?"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ktrial.kernels.build.errors import NotASource, SourceNotClean

EXPECTED = ("Makefile", "Kconfig", "arch/x86/Kconfig", "scripts/kconfig/merge_config.sh")
_VERSION = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)$", re.MULTILINE)
_PRODUCTS = (".config", "include/config", "arch/x86/include/generated")
"""What the top Makefile (rule outputmakefile) takes for a tree that is not clean."""


@dataclass(frozen=True)
class Tree:
    """Linux's source in a directory."""

    directory: Path
    """Absolute, without symbolic links: it is what a build directory is found by."""
    version: str
    """As the Makefile has it: `6.1.192`."""

    def commit(self) -> str:
        """What git calls it: `v6.1-14-g0123456789ab`, with `-dirty`; empty where this is no git tree."""
        # The directory may stand inside another project's git tree.
        top = self._git("rev-parse", "--show-toplevel")
        if not top or Path(top).resolve() != self.directory:
            return ""
        return self._git("describe", "--always", "--abbrev=12", "--dirty")

    def _git(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                ["git", "-C", self.directory, *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except FileNotFoundError:
            return ""  # without git nobody has a git tree
        return done.stdout.strip() if done.returncode == 0 else ""


def tree_in(directory: Path) -> Tree:
    """The source tree in `directory`. Raises NotASource."""
    absolute = directory.expanduser().absolute().resolve()
    if not absolute.is_dir():
        problem = "there is no such directory" if not absolute.exists() else "it is no directory"
        raise NotASource(name=directory, directory=absolute, problem=problem)
    if missing := [name for name in EXPECTED if not (absolute / name).exists()]:
        raise NotASource(name=directory, directory=absolute, problem=f"it lacks {missing[0]}")
    text = (absolute / "Makefile").read_text(encoding="utf-8", errors="replace")
    return Tree(absolute, version_in(text, absolute))


def version_in(makefile: str, called: object) -> str:
    """The version that a source's Makefile names: `6.1.192`. Raises NotASource."""
    variables: dict[str, str] = dict(_VERSION.findall(makefile))
    if "VERSION" not in variables:
        raise NotASource(name=called, directory=called, problem="its Makefile names no version")
    numbers = [variables[part] for part in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if variables.get(part)]
    return ".".join(numbers) + variables.get("EXTRAVERSION", "")


def check_clean(tree: Tree) -> None:
    """Raise SourceNotClean where the tree was built in place."""
    if products := [name for name in _PRODUCTS if (tree.directory / name).exists()]:
        raise SourceNotClean(name=tree.directory, directory=tree.directory, found=products[0])
