"""Where the source defines its options: for messages only. What an option becomes is kconfig's own to say."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ktrial.kernels.build.source_tree import Tree

_DEFINED = re.compile(r"^[ \t]*(?:menu)?config[ \t]+(\w+)[ \t]*$", re.MULTILINE)
_DEPENDS = re.compile(r"^[ \t]+depends on (.+?)$", re.MULTILINE)
_NEXT = re.compile(
    r"^(?:[ \t]*(?:menu)?config[ \t]|choice|endchoice|menu|endmenu|if|endif|source)", re.MULTILINE
)


@dataclass(frozen=True)
class Definition:
    """The first place that defines an option."""

    file: str
    """Relative to the source."""
    line: int
    depends: tuple[str, ...]
    """What its own `depends on` lines say; menus around it may ask for more."""


def definitions(tree: Tree) -> dict[str, Definition]:
    """Every option that x86 knows, `CONFIG_…`, with where it is defined."""
    found: dict[str, Definition] = {}
    for path in _files(tree.directory):
        text = path.read_text(encoding="utf-8", errors="replace")
        file = str(path.relative_to(tree.directory))
        for match in _DEFINED.finditer(text):
            ends = _NEXT.search(text, match.end())
            block = text[match.end() : ends.start() if ends else len(text)]
            line = text.count("\n", 0, match.start()) + 1
            found.setdefault(f"CONFIG_{match[1]}", Definition(file, line, tuple(_DEPENDS.findall(block))))
    return found


def _files(source: Path) -> Iterator[Path]:
    """The Kconfig files that x86 may read: other architectures define options of the same names."""
    yield from sorted((source / "arch" / "x86").rglob("Kconfig*"))
    yield source / "arch" / "Kconfig"
    for directory in sorted(path for path in source.iterdir() if path.is_dir() and path.name != "arch"):
        if not directory.name.startswith("."):
            yield from sorted(directory.rglob("Kconfig*"))
