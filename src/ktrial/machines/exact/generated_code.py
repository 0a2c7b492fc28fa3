"""Names for code that the kernel makes while it runs, as /proc/kallsyms lists it beside modules.

ftrace's and kprobes' trampolines have one name each, however many there are (`ftrace_trampoline` of
`__builtin__ftrace`); a program of BPF is `bpf_prog_TAG_NAME` of `bpf`. All of them come and go.
"""

import re

_BUILT_IN = re.compile(r"__builtin__(\w+)")
_PROGRAM = re.compile(r"bpf_prog_[0-9a-f]{16}_(.+)")
_BPF = "bpf"


def named(symbol: str, module: str) -> tuple[str, str]:
    """`[generated: ftrace]` or `[bpf: NAME]`, which have no module; else symbol and module as they are."""
    if kind := _BUILT_IN.fullmatch(module):
        return f"[generated: {kind[1]}]", ""
    if module == _BPF:
        program = _PROGRAM.fullmatch(symbol)
        return f"[bpf: {program[1] if program else symbol}]", ""
    return symbol, module
