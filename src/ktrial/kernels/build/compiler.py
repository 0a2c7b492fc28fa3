"""The compiler: which one it is, for the key of a build, and whether this source can be built with it."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ktrial.kernels.build import sandbox
from ktrial.kernels.build.errors import BuildToolsMissing, CompilerUnsuitable
from ktrial.kernels.build.source_tree import Tree

_VERSION = re.compile(r"\b(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Compiler:
    """The programs that compile and link."""

    cc: str
    """The command: `gcc`, `clang-19`."""
    shown: str
    """What compiler and linker call themselves."""


def compiler_of(make: Mapping[str, str]) -> Compiler:
    """The compiler that these variables of make mean. Raises BuildToolsMissing."""
    llvm = make.get("LLVM", "")
    suffix = llvm if llvm.startswith("-") else ""
    prefix = llvm if llvm.endswith("/") else ""
    cc = make.get("CC") or (f"{prefix}clang{suffix}" if llvm else "gcc")
    linker = make.get("LD") or (f"{prefix}ld.lld{suffix}" if llvm else "ld")
    return Compiler(cc, f"{_first_line(cc)}, {_first_line(linker)}")


def check_compiler(tree: Tree, called: str, compiler: Compiler) -> None:
    """Raise CompilerUnsuitable where the source says that it wants a newer one."""
    script = tree.directory / "scripts" / "min-tool-version.sh"
    kind = "llvm" if "clang" in compiler.shown else "gcc"
    if not script.exists():
        return  # before 5.13 only the build itself tells
    words, environment = ["sh", str(script), kind], {"PATH": "/usr/bin:/bin"}
    if not sandbox.problem():
        confinement = sandbox.Sandbox((tree.directory,), (), {})
        words = confinement.command(["env", "SRCARCH=x86", *words], environment)
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**environment, "SRCARCH": "x86"},
        check=False,
    )
    wanted, here = numbers(done.stdout), numbers(compiler.shown.partition(",")[0])
    if done.returncode == 0 and wanted and here and here < wanted:
        name = {"llvm": "clang", "gcc": "gcc"}[kind]
        raise CompilerUnsuitable(
            name=called,
            directory=called,
            wanted=f"{name} {done.stdout.strip()} or newer",
            found=compiler.shown.partition(",")[0],
            advice=f"install one, and name it: --make CC={name}-{wanted[0]}",
        )


def numbers(text: str) -> tuple[int, ...]:
    """The first version in the text, up to three numbers; none where there is none."""
    # What stands in parentheses is the package's version.
    match = _VERSION.search(re.sub(r"\([^)]*\)", "", text))
    return tuple(int(part or 0) for part in match.groups()) if match else ()


@lru_cache
def _first_line(command: str) -> str:
    words = command.split()
    if not words or shutil.which(words[0]) is None:
        raise BuildToolsMissing(name=command, directory="kernels", tools=command, packages=command)
    done = subprocess.run(
        [*words, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    return done.stdout.partition("\n")[0].strip() or command
