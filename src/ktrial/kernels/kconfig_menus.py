"""What a source says about its options, and why one did not take: dependencies, choices, who selects it.

Read with kconfiglib in a process of its own, and kept.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial.kernels.build.sources import Tree
from ktrial.kernels.errors import OptionNotTaken
from ktrial.kernels.files import write_atomically
from ktrial.model.kernel import Menus
from ktrial.model.notation import nearest
from ktrial.text_lines import lines_of

if TYPE_CHECKING:
    from ktrial.kernels.build.make import Make


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
    """What kconfig_reader prints, and why it printed nothing (empty where it did)."""
    try:
        finished = subprocess.run(
            [sys.executable, "-m", f"{__package__}.kconfig_reader", tree.directory, *arguments],
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
    if finished.returncode:
        lines = lines_of(finished.stderr.strip())
        return None, f"kconfiglib cannot read it: {lines[-1] if lines else 'it says nothing'}"
    options: dict[str, Any] | None = json.loads(finished.stdout)
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


def options_defined(text: str) -> set[str]:
    """The options, `CONFIG_…`, that the text of one Kconfig file defines."""
    return {f"CONFIG_{name}" for name in _DEFINED.findall(text)}


def is_read_for_x86(path: str) -> bool:
    """Whether x86 may read this file, a path below the source, for its options; as `definitions` does."""
    top, _, below = path.partition("/")
    if not path.rpartition("/")[2].startswith("Kconfig") or top.startswith("."):
        return False
    return top != "arch" or below == "Kconfig" or below.startswith("x86/")


def _files(source: Path) -> Iterator[Path]:
    """The Kconfig files that x86 may read: other architectures define options of the same names."""
    yield from sorted((source / "arch" / "x86").rglob("Kconfig*"))
    yield source / "arch" / "Kconfig"
    for directory in sorted(path for path in source.iterdir() if path.is_dir() and path.name != "arch"):
        if not directory.name.startswith("."):
            yield from sorted(directory.rglob("Kconfig*"))


_AT_MOST = 6
_VALUES = {"bool": "y and n", "tristate": "y, m and n"}


def unmet_dependencies(
    make: "Make", name: str, requested: str, final: Mapping[str, str], defined: Mapping[str, Definition]
) -> OptionNotTaken:
    """The error for one option. `final`: the configuration; `defined`: what the source defines."""
    value = final.get(name, "n")
    place = defined.get(name)
    if place is None:
        near = nearest(name, defined)
        problem = f"Linux {make.tree.version} has no such option{near}"
        advice = "look for it: make menuconfig, then /"
    else:
        facts, _ = read(make.tree, make.variables, str(make.build / ".config"), name)
        problem = f"it became {value}"
        advice = _explained(requested, facts) if facts else _defined(place)
        if requested == "m" and final.get("CONFIG_MODULES", "n") == "n":
            advice += "; a module needs MODULES=y"
    called = make.called or make.tree.directory
    words = {"option": name, "wanted": requested, "problem": problem, "advice": advice}
    return OptionNotTaken(directory=called, **words)


def _defined(place: Definition) -> str:
    """Where kconfiglib cannot read the source, what the option's own lines say."""
    wants = f"on {' && '.join(place.depends)}, and on" if place.depends else "on"
    around = "what the menus and conditions around it ask for"
    return f"it is defined in {place.file}:{place.line}; it depends {wants} {around}"


def _explained(requested: str, facts: Mapping[str, Any]) -> str:
    reasons = [f"it is defined in {facts['place']}"]
    if facts["depends"] not in {"", "y"}:
        reasons.append(f"it depends on {facts['depends']}")
    if requested != "n" and facts["unmet"]:
        reasons.append(f"not met: {_some(facts['unmet'])}")
    if requested in {"n", "m"} and facts["selected_now"]:
        reasons.append(f"it is selected by {_some(facts['selected_now'])}: change that first")
    elif not facts["prompt"]:
        by = f"; it is selected by {_some(facts['selected_by'])}" if facts["selected_by"] else ""
        reasons.append(f"it has no prompt, so that only other options can set it{by}")
    if facts["choice"]:
        chosen = facts["chosen"] or "none"
        reasons.append(f"it is one of a choice ({', '.join(facts['choice'])}), of which {chosen} is taken")
    if facts["ranges"]:
        reasons.append(f"its range is {' or '.join(facts['ranges'])}")
    if requested == "m" and facts["kind"] != "tristate":
        reasons.append(f"it is a {facts['kind']}: it cannot be a module")
    if facts["kind"] in _VALUES and requested not in {"y", "n", "m"}:
        reasons.append(f"it is a {facts['kind']}: its values are {_VALUES[facts['kind']]}")
    return "; ".join(reasons)


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - _AT_MOST} more" if len(texts) > _AT_MOST else ""
    return ", ".join(texts[:_AT_MOST]) + more
