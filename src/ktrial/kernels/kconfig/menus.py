"""What a source says about its options: read with kconfiglib, in a process of its own, and kept."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrial.kernels.build.source_tree import Tree
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.model.kconfig import Menus

_SECONDS = 300


def menus_in(tree: Tree, make: Mapping[str, str], keep: Path | None = None) -> Menus:
    """All options of a source; none, and why, where kconfiglib cannot read it. `keep`: where it is kept."""
    if keep is not None and keep.exists():
        return Menus.model_validate_json(keep.read_bytes())
    options, problem = read(tree, make)
    menus = Menus(options=options or {}, problem=problem)
    if keep is not None and not problem:
        write_atomically(keep, menus.model_dump_json())
    return menus


def read(tree: Tree, make: Mapping[str, str], *arguments: str) -> tuple[dict[str, Any] | None, str]:
    """What menu_reader prints, and why it printed nothing (empty where it did)."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"{__package__}.menu_reader", tree.directory, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=_environment(tree, make),
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None, f"reading Kconfig took more than {_SECONDS} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return None, f"kconfiglib cannot read it: {lines[-1] if lines else 'it says nothing'}"
    options: dict[str, Any] | None = json.loads(done.stdout)
    return options, ""


def _environment(tree: Tree, make: Mapping[str, str]) -> dict[str, str]:
    """What the kernel's Makefile exports to its Kconfig."""
    llvm = bool(make.get("LLVM"))
    programs = {
        "CC": make.get("CC") or ("clang" if llvm else "gcc"),
        "LD": make.get("LD") or ("ld.lld" if llvm else "ld"),
        "NM": make.get("NM", "nm"),
        "AR": make.get("AR", "ar"),
        "OBJCOPY": make.get("OBJCOPY", "objcopy"),
        "HOSTCC": make.get("HOSTCC", "gcc"),
        "HOSTCXX": "g++",
        "RUSTC": "rustc",
        "BINDGEN": "bindgen",
        "PAHOLE": make.get("PAHOLE", "pahole"),
    }
    fixed = {
        "srctree": str(tree.directory),
        "ARCH": "x86",
        "SRCARCH": "x86",
        "KERNELVERSION": tree.version,
        "CONFIG_SHELL": "sh",
        "CLANG_FLAGS": "",
        "RUSTC_FLAGS": "",
    }
    # The child imports this very package, wherever its parent found it.
    return {**os.environ, **programs, **fixed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


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
    by_option: dict[str, Definition] = {}
    for path in _files(tree.directory):
        text = path.read_text(encoding="utf-8", errors="replace")
        file = str(path.relative_to(tree.directory))
        for match in _DEFINED.finditer(text):
            ends = _NEXT.search(text, match.end())
            block = text[match.end() : ends.start() if ends else len(text)]
            line = text.count("\n", 0, match.start()) + 1
            by_option.setdefault(f"CONFIG_{match[1]}", Definition(file, line, tuple(_DEPENDS.findall(block))))
    return by_option


def _files(source: Path) -> Iterator[Path]:
    """The Kconfig files that x86 may read: other architectures define options of the same names."""
    yield from sorted((source / "arch" / "x86").rglob("Kconfig*"))
    yield source / "arch" / "Kconfig"
    for directory in sorted(path for path in source.iterdir() if path.is_dir() and path.name != "arch"):
        if not directory.name.startswith("."):
            yield from sorted(directory.rglob("Kconfig*"))
