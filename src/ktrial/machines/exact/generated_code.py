"""Names for code that the kernel makes while it runs: programs of BPF, trampolines of ftrace and kprobes.

What is there when /proc/kallsyms is read stands there beside modules: ftrace's and kprobes' trampolines have
one name each, however many there are (`ftrace_trampoline` of `__builtin__ftrace`); a program of BPF is
`bpf_prog_TAG_NAME` of `bpf`. All of them come and go. What came later the plugin tells by its address; the
program `ksymbols` (crates/ksymbols) says what the kernel called it.

For that, steps are done once more. A program's address is known only after it was loaded, and the program is
gone when who loaded it has ended. So every program of the steps runs by `ksymbols`, which hears of each
symbol as it comes. Nothing is counted then: from the same state the kernel lays the same code at the same
place, though bpf(2) does a little more.
"""

import base64
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ktrial.machines.exact.plugin_counts import Line, RunLines
from ktrial.machines.guest_programs import ksymbols
from ktrial.machines.qemu.guest_symbols import SHOWN
from ktrial.model.profile import GENERATED, UNKNOWN
from ktrial.target import Collect, Push, Run, Start, Step, StepResult

_BUILT_IN = re.compile(r"__builtin__(\w+)")
_PROGRAM = re.compile(r"bpf_prog_[0-9a-f]{16}_(.+)")
_BPF = "bpf"
_OUT_OF_LINE = "ool"
_AS_LISTED = {"kprobe": "kprobes"}
"""/proc/kallsyms has `__builtin__kprobes` for what else is called `kprobe_optinsn_page`."""
_UNIT = 64
"""Bytes of generated code that the plugin counts as one (crates/insn/src/functions.rs)."""
_PAGE = 4096
_LOWEST = 0xFFFF_FFFF_C000_0000
"""Below it a kernel that has moved itself (KASLR) may have its image: what has no name there is unknown."""
_LISTED = re.compile(r"^([0-9a-f]{16}) [tT] (\S+)\t\[(__builtin__\w+|bpf)\]$", re.MULTILINE)
_TOLD = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) (\w+) (\S+)$", re.MULTILINE)
_WHOLE = "end\n"
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
        GeneratedCode(int(address, 16), _PAGE, named(symbol, module)[0])
        for address, symbol, module in _LISTED.findall(kallsyms)
        if module != _BPF
    )


def told(text: str) -> tuple[GeneratedCode, ...]:
    """What `ksymbols` wrote; nothing where a part of it may be missing."""
    if not text.endswith(_WHOLE):
        return ()
    return tuple(
        GeneratedCode(int(address, 16), int(length, 16), _name(kind, symbol))
        for address, length, kind, symbol in _TOLD.findall(text)
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
    pieces = (told(text.decode("utf-8", "replace")) for text in texts)
    return (*itertools.chain.from_iterable(pieces), *listed(listing.stdout))
