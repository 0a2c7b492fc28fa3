"""What a failed build wants that is not here: a compiler, a program, a header; by what make printed."""

import re

from ktrial.kernels.build.compiler import numbers
from ktrial.package_names import INSTALL

_WANTS = {
    re.compile(r"your (?:version of )?GCC is too old|\*\*\* (?:C )?[Cc]ompiler is too old"): (
        "a newer compiler",
        "install a newer gcc, and name it: --make CC=gcc-14",
    ),
    re.compile(r"\*\*\* Assembler is too old|\*\*\* Linker is too old"): (
        "newer binutils",
        "install newer binutils, or use LLVM's: --make LLVM=1",
    ),
    re.compile(
        r"cannot use keyword .(?:false|true|bool). as enumeration constant"
        r"|.bool. cannot be defined via .typedef"
    ): (
        "a gcc before 15, whose C has no keywords bool, true and false",
        "install an older gcc, and name it: --make CC=gcc-14 --make HOSTCC=gcc-14; later releases of a "
        "series build with gcc 15",
    ),
    re.compile(
        r"\[-Werror=(?P<warning>[\w-]+)=?\d*\]\n(?:.*\n)*?"
        r"make(?:\[\d+\])?: \*\*\* \[[^\]\n]*tools/(?:objtool|lib|build|bpf)/"
    ): (
        "an older compiler for its own tools: this one warns of {warning}",
        "install an older gcc, and name it: --make HOSTCC=gcc-11; later releases of a series build with "
        "newer ones",
    ),
    re.compile(
        r"FAILED: load BTF from|btf_encoder__encode: btf__dedup failed|pahole version \S+ is too old"
    ): (
        "another pahole, for CONFIG_DEBUG_INFO_BTF",
        "name one of the source's own time: --make PAHOLE=FILE, or --option DEBUG_INFO_BTF=n",
    ),
    re.compile(r"pahole.*(?:not available|not found)|BTF: .*pahole"): (
        "pahole, for CONFIG_DEBUG_INFO_BTF",
        f"{INSTALL} dwarves, or --option DEBUG_INFO_BTF=n",
    ),
    re.compile(r"rustc.*(?:not found|too old)|Rust compiler .* too old"): (
        "a Rust compiler that fits it",
        "--option RUST=n, or see Documentation/rust/quick-start.rst",
    ),
    re.compile(r"unrecognized command[- ]line option .(?P<option>-[^'’ ]+)"): (
        "a newer compiler, which knows {option}",
        "install a newer gcc, and name it: --make CC=gcc-14",
    ),
}


_NOT_FOUND = re.compile(
    r"(?:^|[\s:])(?P<program>[\w.+-]+): (?:command )?not found$"
    r"|^make(?:\[\d+\])?: (?P<made>[\w.+-]+): No such file or directory$"
    r"|fatal error: (?P<header>\S+): No such file or directory$",
    re.MULTILINE,
)
_PACKAGES = {
    **{name: name for name in ("bc", "bison", "cpio", "flex", "gawk", "lz4", "openssl", "perl", "python3")},
    **{"rsync": "rsync", "zstd": "zstd", "xz": "xz-utils", "depmod": "kmod", "pahole": "dwarves"},
    **{"ld": "binutils", "objcopy": "binutils", "strip": "binutils", "nm": "binutils", "rustc": "rustc"},
}
"""Programs that some configuration's build runs, and Debian's packages that have them."""
_HEADERS_IN = {
    "libelf.h": "libelf-dev",
    "gelf.h": "libelf-dev",
    "elfutils/": "libdw-dev",
    "dwarf.h": "libdw-dev",
    "openssl/": "libssl-dev",
    "zlib.h": "zlib1g-dev",
    "gmp.h": "libgmp-dev",
    "xxhash.h": "libxxhash-dev",
}
_GCC_BY_LINUX = {10: (5, 7), 11: (5, 12), 12: (5, 18), 13: (6, 3), 14: (6, 9), 15: (6, 15)}
"""gcc's versions → the Linux release that came out next to them (gcc.gnu.org/releases.html, kernel.org)."""


def wanted_tool(output: str) -> tuple[str, str] | None:
    """What a failed build wants that is not here, and what to do, as far as its output tells."""
    for pattern, (wanted, advice) in _WANTS.items():
        if match := pattern.search(output):
            return wanted.format(**match.groupdict()), advice
    return None


def missing_tool(output: str) -> tuple[str, str] | None:
    """A program or header that a failed build did not find, and its Debian package; None where it is another
    error.
    """
    for match in _NOT_FOUND.finditer(output):
        tool = match["program"] or match["made"] or match["header"]
        package = _PACKAGES.get(tool) or next(
            (package for start, package in _HEADERS_IN.items() if tool.startswith(start)), ""
        )
        if package:
            return tool, package
    return None


_KILLED = re.compile(
    r"^make(?:\[\d+\])?: \*\*\* .*\] (?:Terminated|Interrupt|Hangup|Killed|Error (?:129|130|137|143)$)"
    r"|Killed signal terminated program|internal compiler error: Killed|unable to execute command: Killed"
    r"|terminated with signal (?:1|2|9|15)\b",
    re.MULTILINE,
)
"""Somebody ended make, or what it ran, by a signal: a person, or a kernel without memory (128 + the signal's
number where a shell tells it)."""
_NO_MEMORY = re.compile(
    r"virtual memory exhausted|out of memory allocating|LLVM ERROR: out of memory|Cannot allocate memory"
    r"|memory exhausted$",
    re.MULTILINE,
)
"""What compilers and linkers say where this host has none left."""


def cut_short(output: str) -> bool:
    """Whether a failed build was ended from outside, or had no memory: another time it may succeed."""
    return bool(_KILLED.search(output) or _NO_MEMORY.search(output))


_NO_FILE = re.compile(r"fatal error: (?P<header>\S+): No such file or directory$|No rule to make target ")
"""What no other compiler would find either."""


def advice_on(problem: str, compiler: str, version: str) -> str:
    """What to try after an error that names neither a tool nor a known failure; empty where nothing is known.

    `problem`: the first error; `compiler`: what the compiler calls itself; `version`: the source's.
    """
    missing = _NO_FILE.search(problem)
    if missing is None:
        return older_compiler(compiler, version)
    if not missing["header"]:
        return ""
    return (
        f"neither the source nor this system has {missing['header']}: if it is no file of the source's own, "
        f"apt-file search {missing['header']} names the package"
    )


def older_compiler(compiler: str, version: str) -> str:
    """Advice where the compiler came out after the source: what it has learned since may be the error."""
    major, source = numbers(compiler.partition(",")[0])[:1], numbers(version)[:2]
    if "clang" in compiler or not major or not source:
        return ""
    newest = max((gcc for gcc, linux in _GCC_BY_LINUX.items() if linux <= source), default=min(_GCC_BY_LINUX))
    if major[0] <= newest:
        return ""
    name = ".".join(map(str, source))
    return (
        f"gcc {major[0]} came out after Linux {name}: if the error is none of yours, try an older one, "
        f"--make CC=gcc-{newest} --make HOSTCC=gcc-{newest}"
    )
