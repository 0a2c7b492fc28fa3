"""Which module of a Rust crate uses which: read from its `use` declarations and paths, without the tests."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ktrial.machines.exact_parallel import region_of
from ktrial.model.parallel import ParallelCounts
from ktrial.model.profile import Profile

# Which module of a Rust crate uses which: read from its `use` declarations and paths, without the tests.

ROOT = "crate"
"""What the module in main.rs or lib.rs is called."""


_COMMENT = re.compile(r"//[^\n]*")


_STRING = re.compile(r'"(?:\\.|[^"\\])*"')


_INLINE_TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod tests \{.*", re.DOTALL)


_TAKEN = re.compile(r'#\[path = "([^"]+)"\]\s*mod (\w+);')


_USE = re.compile(r"\buse\s+([^;]+);")


_PATH = re.compile(r"\b[a-z_]\w*(?:::\w+)+")


_INCLUDED = {"work": ("catalogue", "ops")}
"""Crate → the module into which its build script includes all modules of a directory."""


def module_graph(crate: Path) -> dict[str, set[str]]:
    """Module → the modules that it uses; each is named by its path from the crate's root."""
    source = crate / "src"
    files = {_module_name(file.relative_to(source)): file for file in sorted(source.rglob("*.rs"))}
    files = {name: file for name, file in files.items() if not name.endswith("::tests")}
    files |= dict(_modules_by_path(files.get(ROOT)))
    graph = {name: set(_used_modules(name, file, set(files))) - {name} for name, file in files.items()}
    if crate.name in _INCLUDED:
        module, directory = _INCLUDED[crate.name]
        graph[module] |= {name for name in files if name.startswith(f"{directory}::")}
    return graph


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The groups of modules each of which needs all others of its group, directly or by way of others."""
    reached = {module: _reachable(graph, module) for module in graph}
    groups = (frozenset(other for other in reached[module] if module in reached[other]) for module in graph)
    return {group for group in groups if group}


def _module_name(file: Path) -> str:
    parts = file.with_suffix("").parts
    if parts in (("main",), ("lib",)):
        return ROOT
    return "::".join(parts[:-1] if parts[-1] == "mod" else parts)


def _modules_by_path(root: Path | None) -> Iterator[tuple[str, Path]]:
    """The modules that the root takes from files in other directories."""
    text = root.read_text(encoding="utf-8") if root else ""
    for path, name in _TAKEN.findall(text):
        assert root
        yield name, root.parent / path


def _used_modules(name: str, file: Path, modules: set[str]) -> Iterator[str]:
    text = _STRING.sub('""', _COMMENT.sub("", file.read_text(encoding="utf-8")))
    text = _INLINE_TESTS.sub("", text)
    trees = [path for tree in _USE.findall(text) for path in _use_paths(tree)]
    for path in [*trees, *_PATH.findall(text)]:
        absolute = _absolute(path.split("::"), [] if name == ROOT else name.split("::"))
        module = _module_of(absolute, modules)
        if module or path.startswith(("crate::", "super::")):
            yield module or ROOT


def _use_paths(tree: str) -> list[str]:
    """The paths of a use declaration: `a::{b, c::{d, e}}` is three."""
    tree = re.sub(r"\s+as\s+\w+|\s", "", tree)
    match = re.fullmatch(r"([^{]*)\{(.*)\}", tree)
    if match is None:
        return [tree]
    return [match[1] + path for branch in _branches(match[2]) for path in _use_paths(branch)]


def _branches(text: str) -> list[str]:
    """What the commas outside of braces separate."""
    branches, depth = [""], 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            branches.append("")
        else:
            branches[-1] += character
    return [branch for branch in branches if branch]


def _absolute(path: list[str], module: list[str]) -> list[str]:
    if path[0] == "crate":
        return path[1:]
    while path and path[0] == "super":
        path, module = path[1:], module[:-1]
    return module + path[1:] if path and path[0] == "self" else module + path


def _module_of(path: list[str], modules: set[str]) -> str | None:
    prefixes = ("::".join(path[:length]) for length in range(len(path), 0, -1))
    return next((prefix for prefix in prefixes if prefix in modules), None)


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting.extend(graph[module])
    return reached


# What the plugin of several CPUs counts by function: one run of a program on two CPUs, as it writes it.

SPIN = "native_queued_spin_lock_slowpath"


LINE: dict[str, Any] = {
    "regions": 2,
    "instructions": 1010,
    "operations": 4,
    "sum": 1000,
    "middle": [240, 260],
    "extremes": [200, 300],
    "cpus": [5000, 6000],
    "idle": [0, 0],
    "clock": 9,
    "rounds": 10,
    "fingerprint": "00ff",
    "counted": {
        "time": 2000,
        "functions": [
            ["do_mmap", "", [[600, 2, 0, 0, 0], [0, 0, 0, 0, 0]]],
            [SPIN, "", [[0, 0, 0, 0, 0], [100, 1, 80, 10, 0]]],
            ["__switch_to_asm", "", [[10, 4, 0, 0, 0], [0, 0, 0, 0, 0]]],
            ["asm_sysvec_reschedule_ipi", "", [[0, 0, 0, 0, 0], [8, 2, 0, 0, 60]]],
            ["ext4_write", "ext4", [[2, 1, 0, 0, 0], [0, 0, 0, 0, 0]]],
        ],
        "pages": [
            [4096, 7, [[200, 0, 0, 0, 0], [0, 0, 0, 0, 0]]],
            [8192, 8, [[0, 0, 0, 0, 0], [90, 0, 10, 1, 0]]],
        ],
        "waits": [
            [SPIN, "", "ext4_write", "ext4", 80, 10],
            ["[program]", "", "", "", 10, 1],
        ],
        "idle": [["schedule_timeout", "", "kthread", "", 0, 1188], ["", "", "", "", 1, 1192]],
    },
}


def counts(line: dict[str, Any] = LINE) -> ParallelCounts:
    return ParallelCounts.model_validate_json(json.dumps(line))


def profile(line: dict[str, Any] = LINE) -> Profile:
    region = region_of(counts(line))
    assert region
    return Profile(kernel="k", workload="w", operations=4, region=region)
