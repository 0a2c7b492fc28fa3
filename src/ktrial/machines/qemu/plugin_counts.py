"""What the QEMU plugin counted, put in order: regions of one run made one, and pages told by program.

A workload marks each of its passes, or each operation, as a region. They are merged as the plugin wrote them
(crates/insn/src/output.rs), before anything is made of the rows.

The plugin API shows no process. But a program's code is mapped from its file, page by page, unchanged: so
pages of code that the plugin saw are looked for in the programs' files.
"""

import base64
import itertools
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ktrial.machines.guest_programs import ksymbols
from ktrial.machines.qemu.snapshot import SHOWN
from ktrial.model.profile import GENERATED, UNKNOWN, PageCount, ProgramCount, StringCounts, without_numbers
from ktrial.target import Collect, Push, Run, Start, Step, StepResult

Line = dict[str, Any]
_SUMS = ("instructions", "marks", "strings", "passes", "bytes")
_NAMES_OF_FUNCTION = 2
_NAMES_OF_PAGE = 2


@dataclass(frozen=True)
class RunLines:
    """What the plugin wrote of one run of a program."""

    regions: list[Line] = field(default_factory=list)
    ended: Line = field(default_factory=dict)
    """How the program marked its regions; empty where its end was not reached."""


def split(lines: Iterable[Line]) -> list[RunLines]:
    """The runs, in order: each begins with `{"run": "begin"}`, and ends with a line on how it was marked.

    Raises ValueError where a region comes before the first of them.
    """
    runs: list[RunLines] = []
    for line in lines:
        if line.get("run") == "begin":
            runs.append(RunLines())
        elif not runs:
            raise ValueError("its first region belongs to no run")
        elif line.get("run") == "end":
            runs[-1].ended.update(line)
        else:
            runs[-1].regions.append(line)
    return runs


def merge(lines: Sequence[Line]) -> Line:
    """One region from one or more, or from none. Raises ValueError where operations cannot be merged.

    A region in which the program marks no operation is one operation.
    """
    regions = [
        line if line["operations"]["count"] else line | {"operations": _the_whole(line)} for line in lines
    ]
    copies = _without_addresses(regions)
    merged = regions[0] if len(regions) == 1 and not _has_twins(regions[0]) else _merged(regions)
    return merged | {"copies": copies} if copies else merged


def _has_twins(line: Line) -> bool:
    """Whether several rows have one name: functions that share it, or pieces of generated code."""
    rows = line["functions"]
    return len({(row[0], row[1]) for row in rows}) < len(rows)


def _merged(lines: Sequence[Line]) -> Line:
    functions = _Rows(_NAMES_OF_FUNCTION)
    pages = _Rows(_NAMES_OF_PAGE)
    tasks = _Rows(1)
    tree = _CallTree()
    for line in lines:
        places = [functions.add(row) for row in line["functions"]]
        for row in line["pages"]:
            pages.add(row)
        for row in line.get("tasks", ()):
            tasks.add(row)
        tree.add(line.get("tree", ()), places.__getitem__)
    merged: Line = {name: sum(line[name] for line in lines) for name in _SUMS}
    if lines and all("cycles" in line for line in lines):
        merged["cycles"] = sum(line["cycles"] for line in lines)
    merged |= {"whole": bool(lines) and all(line["whole"] for line in lines)}
    merged |= {"functions": functions.rows, "pages": pages.rows}
    merged |= {"operations": _operations([line["operations"] for line in lines])}
    if any("tree" in line for line in lines):
        unmatched = sum(line.get("unmatched", 0) for line in lines)
        merged |= {"tree": tree.rows, "tasks": tasks.rows, "unmatched": unmatched}
    return merged


class _Rows:
    """Rows that begin with a name of `names` columns; the other columns are summed."""

    def __init__(self, names: int) -> None:
        self.rows: list[list[Any]] = []
        self._names = names
        self._places: dict[Hashable, int] = {}

    def add(self, row: list[Any]) -> int:
        """Add a row; the place of its sum."""
        name = tuple(row[: self._names])
        place = self._places.setdefault(name, len(self.rows))
        if place == len(self.rows):
            self.rows.append(list(row))
        else:
            sums = self.rows[place]
            for column in range(self._names, len(row)):
                sums[column] += row[column]
        return place


class _CallTree:
    """Nodes `[parent, function, own, entered]`, merged by the way in which they are called."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self._places: dict[tuple[int, int], int] = {}

    def add(self, nodes: Iterable[list[int]], function_of: Callable[[int], int]) -> None:
        places: list[int] = []
        for index, (parent, function, instructions, entered) in enumerate(nodes):
            # The first two are the root and the program, and have no function.
            key = (places[parent], function_of(function)) if index > 1 else (-1, index)
            place = self._places.setdefault(key, len(self.rows))
            if place == len(self.rows):
                self.rows.append([max(key[0], 0), key[1] if index > 1 else -1, 0, 0])
            self.rows[place][2] += instructions
            self.rows[place][3] += entered
            places.append(place)


def _the_whole(line: Line) -> Line:
    """A region as one operation."""
    count, size = line["instructions"], line["bytes"]
    operation: Line = {"count": 1, "sum": count, "minimum": count, "maximum": count, "middle": [count, count]}
    if "bytes" in line["operations"]:
        operation["bytes"] = [size, size]
    if "cycles" in line:
        operation["cycles"] = [line["cycles"], line["cycles"]]
    if "vector" in line["operations"]:
        operation["vector"] = [count]
    return operation


def _operations(parts: Sequence[Line]) -> Line:
    vector = [count for part in parts for count in _vector(part)]
    merged: Line = {
        "count": len(vector),
        "sum": sum(vector),
        "minimum": min(vector, default=0),
        "maximum": max(vector, default=0),
        "middle": _middle(vector),
        "vector": vector,
    }
    if all("bytes" in part for part in parts):
        merged["bytes"] = _middle([count for part in parts for count in _bytes(part)])
    if parts and all("cycles" in part for part in parts):
        merged["cycles"] = _middle([count for part in parts for count in _cycles(part)])
    return merged


def _middle(counts: list[int]) -> list[int]:
    """The two middle ones."""
    ranked = sorted(counts) or [0]
    return [ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2]]


def _bytes(part: Line) -> list[int]:
    return _counts(part, "byte_vector", part["bytes"][0])


def _cycles(part: Line) -> list[int]:
    return _counts(part, "cycle_vector", part["cycles"][0])


def _vector(part: Line) -> list[int]:
    return _counts(part, "vector", part["sum"])


def _counts(part: Line, name: str, only: int) -> list[int]:
    if part["count"] <= 1:
        return [only] * part["count"]
    if name not in part:
        raise ValueError("operations of several regions can be merged with each one's count only (vector)")
    return list(part[name])


# Functions of the image that share a name: the plugin is told where each begins, as a part of its name.
#
# Debian's 6.12 has 647 such names. Their rows become one row of that name, beside which is kept what ran at
# which address: whether it was the function that a patch changes, its name does not tell.

_AT = "~"
"""Between a function's name and its address; no symbol's name has it."""
_IN_IMAGE = re.compile(r"^([0-9a-f]{16}) [tTwW] (\S+)$", re.MULTILINE)
_COLD = re.compile(r"(.+)(\.cold(?:\.\d+)?)")
_SECTION_MARK = re.compile(r"_[se]?text|_[se]inittext|__\w*text_(?:start|end)")
_FREES_MODULES = "free_module"
"""By its name the plugin knows when modules' symbols tell nothing any more (crates/insn/src/functions.rs)."""


@lru_cache(maxsize=4)
def told_apart(kallsyms: str) -> str:
    """The table of symbols with the addresses of functions that share a name, compilers' numbers apart.

    Modules lie elsewhere in each boot, so that their addresses tell nothing.
    """
    names_at: dict[str, list[str]] = defaultdict(list)
    places: dict[str, set[str]] = defaultdict(set)
    for address, name in _IN_IMAGE.findall(kallsyms):
        if not _SECTION_MARK.fullmatch(name):
            names_at[address].append(name)
            places[name].add(address)
    counts = Counter(key for names in names_at.values() for key in set(map(without_numbers, names)))
    # All names of one place are made longer alike, so that the plugin prefers the one that it did before.
    shared = {
        address
        for address, names in names_at.items()
        if any(counts[without_numbers(name)] > 1 for name in names)
    }

    def line(match: re.Match[str]) -> str:
        address, name = match.groups()
        if _SECTION_MARK.fullmatch(name) or name.startswith(_FREES_MODULES):
            return match[0]
        cold = _COLD.fullmatch(name)
        parents = places.get(cold[1], set()) if cold else set()
        if cold and len(parents) == 1 and parents <= shared:
            # The plugin puts it to the function whose name it begins with.
            return f"{match[0].removesuffix(cold[2])}{_AT}{min(parents)}{cold[2]}"
        return f"{match[0]}{_AT}{address}" if address in shared else match[0]

    return _IN_IMAGE.sub(line, kallsyms)


def _without_addresses(regions: Iterable[Line]) -> dict[str, dict[int, int]]:
    """Take the addresses out of the rows' names: name → address → instructions."""
    copies: dict[str, dict[int, int]] = {}
    for region in regions:
        for row in region["functions"]:
            name, at, address = row[0].partition(_AT)
            if at:
                row[0] = name
                counted = copies.setdefault(name, {})
                counted[int(address, 16)] = counted.get(int(address, 16), 0) + row[2]
    return copies


_PAGE = 4096


def by_program(pages: Iterable[PageCount], files: Mapping[str, Path]) -> tuple[ProgramCount, ...]:
    """Instructions by program, those with the most first; `files`: name → the file, as the guest has it.

    A page that several files share (padding) belongs to the first of them. Raises OSError where a file cannot
    be read.
    """
    owners: dict[int, str] = {}
    for name, path in files.items():
        status = path.stat()
        for checksum in _checksums(path, status.st_mtime_ns, status.st_size):
            owners.setdefault(checksum, name)
    pages_of: dict[str, list[PageCount]] = {}
    for page in pages:
        pages_of.setdefault(owners.get(page.checksum, ""), []).append(page)
    counts = (_count(name, its_pages) for name, its_pages in pages_of.items())
    return tuple(sorted(counts, key=lambda count: (-count.instructions, count.program)))


@lru_cache(maxsize=1024)
def _checksums(path: Path, _changed: int, _size: int) -> tuple[int, ...]:
    content = path.read_bytes()
    starts = range(0, len(content), _PAGE)
    # The kernel fills the last page with zeros.
    return tuple(zlib.crc32(content[start : start + _PAGE].ljust(_PAGE, b"\0")) for start in starts)


def _count(name: str, pages: list[PageCount]) -> ProgramCount:
    strings = StringCounts(
        instructions=sum(page.strings.instructions for page in pages),
        passes=sum(page.strings.passes for page in pages),
        bytes=sum(page.strings.bytes for page in pages),
    )
    return ProgramCount(program=name, instructions=sum(p.instructions for p in pages), strings=strings)


# Names for code that the kernel makes while it runs: programs of BPF, trampolines of ftrace and kprobes.
#
# What is there when /proc/kallsyms is read stands there beside modules: ftrace's and kprobes' trampolines
# have one name each, however many there are (`ftrace_trampoline` of `__builtin__ftrace`); a program of BPF
# is `bpf_prog_TAG_NAME` of `bpf`. All of them come and go. What came later the plugin tells by its address;
# the program `ksymbols` (crates/ksymbols) says what the kernel called it.
#
# For that, steps are done once more. A program's address is known only after it was loaded, and the program
# is gone when who loaded it has ended. So every program of the steps runs by `ksymbols`, which hears of
# each symbol as it comes. Nothing is counted then: from the same state the kernel lays the same code at the
# same place, though bpf(2) does a little more.

_BUILT_IN = re.compile(r"__builtin__(\w+)")
_PROGRAM = re.compile(r"bpf_prog_[0-9a-f]{16}_(.+)")
_BPF = "bpf"
_OUT_OF_LINE = "ool"
_AS_LISTED = {"kprobe": "kprobes"}
"""/proc/kallsyms has `__builtin__kprobes` for what else is called `kprobe_optinsn_page`."""
_UNIT = 64
"""Bytes of generated code that the plugin counts as one (crates/insn/src/functions.rs)."""
_GENERATED_CODE_PAGE = 4096
_LOWEST = 0xFFFF_FFFF_C000_0000
"""Below it a kernel that has moved itself (KASLR) may have its image: what has no name there is unknown."""
_LISTED = re.compile(r"^([0-9a-f]{16}) [tT] (\S+)\t\[(__builtin__\w+|bpf)\]$", re.MULTILINE)
_KSYMBOLS_LINE = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) (\w+) (\S+)$", re.MULTILINE)
_KSYMBOLS_END = "end\n"
_IN_GUEST = "/ktrial/ksymbols"
_SYMBOLS_TO = "/ktrial/symbols-"


def named(symbol: str, module: str) -> tuple[str, str]:
    """`[generated: ftrace]` or `[bpf: NAME]`, which have no module; else symbol and module as they are."""
    if kind := _BUILT_IN.fullmatch(module):
        return f"[generated: {kind[1]}]", ""
    if module == _BPF:
        program = _PROGRAM.fullmatch(symbol)
        return f"[bpf: {program[1] if program else symbol}]", ""
    return symbol, module


@dataclass(frozen=True)
class GeneratedCode:
    """One piece of it."""

    address: int
    length: int
    name: str
    """As profiles have it: `[bpf: NAME]`."""


def listed(kallsyms: str) -> tuple[GeneratedCode, ...]:
    """What /proc/kallsyms has of trampolines. They have no sizes there, and pages of their own."""
    return tuple(
        GeneratedCode(int(address, 16), _GENERATED_CODE_PAGE, named(symbol, module)[0])
        for address, symbol, module in _LISTED.findall(kallsyms)
        if module != _BPF
    )


def code_in(text: str) -> tuple[GeneratedCode, ...]:
    """What `ksymbols` wrote; nothing where a part of it may be missing."""
    if not text.endswith(_KSYMBOLS_END):
        return ()
    return tuple(
        GeneratedCode(int(address, 16), int(length, 16), _name(kind, symbol))
        for address, length, kind, symbol in _KSYMBOLS_LINE.findall(text)
    )


def _name(kind: str, symbol: str) -> str:
    """`ftrace_trampoline`, `kprobe_insn_page`: what is out of line is told by what needs it."""
    if kind == _OUT_OF_LINE:
        needs = symbol.partition("_")[0]
        return f"[generated: {_AS_LISTED.get(needs, needs)}]"
    return named(symbol, _BPF)[0]


def has_unnamed(runs: Iterable[RunLines]) -> bool:
    """Whether generated code ran, or was called, that has no name yet."""
    return any(row[0] == GENERATED for run in runs for region in run.regions for row in region["functions"])


def give_names(runs: Iterable[RunLines], pieces: Iterable[GeneratedCode]) -> None:
    """Put names in the place of addresses. What several pieces had in turn has the names of all."""
    names: dict[int, dict[str, None]] = {}
    for piece in pieces:
        first, last = piece.address // _UNIT, (piece.address + max(piece.length, 1) - 1) // _UNIT
        for unit in range(first, last + 1):
            names.setdefault(unit, {})[piece.name] = None
    for run in runs:
        for region in run.regions:
            _rename(region, names)


def _rename(region: Line, names: dict[int, dict[str, None]]) -> None:
    for row in region["functions"]:
        if row[0] == GENERATED:
            address = int(row[1], 16)
            unnamed = GENERATED if address >= _LOWEST else UNKNOWN
            row[:2] = [" or ".join(names.get(address // _UNIT, ())) or unnamed, ""]


def with_ksymbols(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps, each program watched, and then what came of that. Raises GuestProgramsMissing."""
    program = base64.b64encode(ksymbols().read_bytes()).decode()
    files = [f"{_SYMBOLS_TO}{number}" for number, step in enumerate(steps) if isinstance(step, Run | Start)]
    left = iter(files)
    watched = (_watched(step, next(left)) if isinstance(step, Run | Start) else step for step in steps)
    push = Push(path=_IN_GUEST, base64=program, mode=0o755)
    # The whole list is many megabytes: the guest picks what is asked for.
    listing = Run(argv=(_IN_GUEST, "--listed"))
    return (push, *watched, *(Collect(path=file) for file in files), SHOWN, listing)


def _watched(step: Run | Start, file: str) -> Step:
    return step.model_copy(update={"argv": (_IN_GUEST, file, *step.argv)})


def code_told(results: tuple[StepResult, ...]) -> tuple[GeneratedCode, ...]:
    """What the kernel made, as the results of `with_ksymbols` say. Of what failed nothing has a name."""
    *of_programs, listing = results
    texts = (base64.b64decode(result.content) for result in of_programs if result.do == "collect")
    pieces = (code_in(text.decode("utf-8", "replace")) for text in texts)
    return (*itertools.chain.from_iterable(pieces), *listed(listing.stdout))
