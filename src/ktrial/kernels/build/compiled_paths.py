"""Which patches change nothing that is compiled: told from their paths, and from what a kept build has read.

Only where it is certain. A path that make, Kconfig or a script may read counts as compiled; so does a new
file, which may be found in place of another one.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ktrial.kernels.build.build_trees import BuildTree

_DOCUMENTATION = re.compile(
    r"Documentation/(?!Kconfig|Makefile).*|LICENSES/.*|(?:.*/)?(?:README|TODO)(?:\.\w+)?|[^/]*\.rst|MAINTAINERS|CREDITS"
    r"|COPYING|\.mailmap|\.gitignore|(?:.*/)?\.gitignore|\.get_maintainer\.ignore|\.clang-format|\.editorconfig"
)
_ARCHITECTURE = re.compile(r"arch/(?P<name>[a-z0-9]+)/.*")
_SAMPLES = re.compile(r"(?:tools/testing|tools/perf|samples)/(?!.*\b(?:Kconfig|Makefile|Build)).*")
_OURS = frozenset({"x86", "um"})
_CODE = re.compile(r"(?!scripts/|tools/|usr/|certs/|samples/).*\.[chS]")
"""Files that only compilers read, who note them in the `.cmd` files."""
_HEADERS_WHOLE = re.compile(r"^CONFIG_(?:IKHEADERS|HEADERS_INSTALL|UAPI_HEADER_TEST)=[ym]$", re.MULTILINE)
"""With these all headers are read, whether anything includes them or not."""
_DEPENDENCIES = ".*.cmd"
_BELOW_SOURCE = re.compile(rb"(?:^|[\s(])\.\./([^\s()\\]+\.[chS])\b")


def not_for_x86(paths: Iterable[str]) -> str:
    """Why no build for x86 reads any of these: `documentation`, `another architecture (arm64)`; empty: it
    may.
    """
    named = tuple(paths)
    if not named:
        return ""
    others = {match["name"] for path in named if (match := _ARCHITECTURE.fullmatch(path))} - _OURS
    rest = [path for path in named if not _is_foreign(path)]
    if rest and not all(_DOCUMENTATION.fullmatch(path) or _SAMPLES.fullmatch(path) for path in rest):
        return ""
    said = []
    if any(_DOCUMENTATION.fullmatch(path) for path in rest):
        said.append("documentation")
    if any(_SAMPLES.fullmatch(path) for path in rest):
        said.append("tests and samples")
    if others:
        counted = "another architecture" if len(others) == 1 else "other architectures"
        said.append(f"{counted} ({', '.join(sorted(others))})")
    return " and ".join(said)


def _is_foreign(path: str) -> bool:
    match = _ARCHITECTURE.fullmatch(path)
    return match is not None and match["name"] not in _OURS


def are_compiled(tree: BuildTree, changed: Mapping[str, bool]) -> bool:
    """Whether any of these files may be in what was built in the tree.

    `changed`: path → whether the file was there before and is still there.
    """
    wanted = set()
    for path, stays in changed.items():
        if not_for_x86([path]):
            continue
        if not stays or not _CODE.fullmatch(path):
            return True
        wanted.add(path.encode())
    if not wanted:
        return False
    if _HEADERS_WHOLE.search(tree.config()):
        return True
    return any(not wanted.isdisjoint(_read_by(file)) for file in tree.build.rglob(_DEPENDENCIES))


def _read_by(file: Path) -> set[bytes]:
    """What the command noted in the file has read of the source, below its top."""
    return set(_BELOW_SOURCE.findall(file.read_bytes()))
