"""Run the kernel's make for a build directory beside the source: bounded, logged, and told as it goes."""

import fcntl
import json
import os
import re
import selectors
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TypedDict

from ktrial.format.number_format import duration
from ktrial.installation import cache_directory
from ktrial.kernels import Progress
from ktrial.kernels.build import sandbox
from ktrial.kernels.build.control_group import Spent, control_group, most_memory
from ktrial.kernels.build.sources import Tree
from ktrial.kernels.errors import (
    BuildCutShort,
    BuildError,
    BuildFailed,
    BuildToolsMissing,
    CompilerUnsuitable,
    SandboxFailed,
)
from ktrial.kernels.files import check_output, write_atomically
from ktrial.kernels.kernel_cache import WORD_SECONDS, held_if_free
from ktrial.package_names import INSTALL

_MEMORY_A_JOB = 600 << 20
"""The largest compilations of a small kernel take about this much, the link somewhat more."""
_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "ktrial",
    "KBUILD_BUILD_HOST": "ktrial",
    "KBUILD_BUILD_VERSION": "1",
    # Empty, but set: no `+` for commits without a tag.
    "LOCALVERSION": "",
    "LC_ALL": "C",
    # With relative paths, and without the directory's name, what one tree compiled serves the others.
    "CCACHE_NOHASHDIR": "1",
}
_CHANGING = frozenset(
    {
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "ARCH",
        "CROSS_COMPILE",
        "KCFLAGS",
        "KAFLAGS",
        "O",
        "V",
        "W",
        "C",
        "M",
    }
)
"""Variables that make and the kernel's Makefile listen to."""
_ERRORS = (
    re.compile(r"^\S+:\d+(?::\d+)?: (?:fatal )?error: .*$", re.MULTILINE),
    re.compile(r"^.*(?:undefined reference to|multiple definition of|undefined symbol:).*$", re.MULTILINE),
    re.compile(r"^(?!make).*\b[Ee]rror[: ].*$", re.MULTILINE),
    re.compile(r"^make(?:\[\d+\])?: \*\*\* .*$", re.MULTILINE),
)
"""What a failure looks like, the most telling first: make's own lines only say that something went wrong."""
_STOPS = re.compile(r"^make(?:\[\d+\])?: \*\*\* (?!.*\(ignored\)$)")
"""What make prints where it gives up; a failure that a Makefile ignores has no stars, or says so."""
_LONGEST_ERROR = 400
_SILENCE_SECONDS = 5.0
"""After that, who watches is told that make goes on: one link or one large file can take minutes."""
_GRACE_SECONDS = 30.0
"""For make to delete what is half written."""
_BLOCK = 1 << 16
_LONGEST_LINE = 1 << 20
"""Bytes; the remainder of a longer line is dropped."""
MOST_OUTPUT = 256 << 20
"""Bytes that one call of make may print: a build of everything with V=1 prints some 60 MB."""
LEAST_ROOM = 256 << 20
"""Bytes of disk that a build leaves to others."""
LEAST_MEMORY = 96 << 20
"""Bytes of memory, as well: with less, the kernel soon ends programs, and which ones nobody knows."""


def free_memory() -> int:
    """Bytes that programs may have without swapping, as the kernel estimates them."""
    match = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(match[1]) << 10 if match else _MEMORY_A_JOB


def jobs() -> int:
    """How many compilations at once: one a core that is ours, as far as the free memory goes."""
    return max(1, min(_cores(), free_memory() // _MEMORY_A_JOB))


@dataclass(frozen=True)
class Make:
    """make, for one source and one build directory."""

    tree: Tree
    home: Path
    """The directory that holds all of the build: `build/`, the log, what was asked for."""
    progress: Progress
    products: Path | None = None
    """Where the products go; None: `build` in `home`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the user sets: `KCFLAGS`, `CC` and the like."""
    called: str = ""
    """What errors call the source; empty: its directory."""
    jobs: int = 0
    """How many compilations at once; 0: as many as cores and memory allow."""
    also_writable: tuple[Path, ...] = ()
    """Directories beside the build directory that make writes to."""
    ccache: Path = field(default_factory=sandbox.ccache_directory)
    """ccache's directory, where the build is confined."""
    seen_at: Path | None = None
    """Where a confined build sees `home`; None: where it is. Some of its files name that place."""
    spent: Spent = field(default_factory=Spent)
    """What all its commands together took."""

    @property
    def build(self) -> Path:
        """Where the products go."""
        return self.products or self.home / "build"

    @property
    def log(self) -> Path:
        """Everything that make printed since the build began."""
        return self.home / "build.log"

    @property
    def environment(self) -> dict[str, str]:
        """The caller's, without what would change the build, and with what makes it reproducible."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KBUILD_", "KCONFIG_")) and name not in _CHANGING
        }
        return inherited | _REPRODUCIBLE

    @property
    def most_jobs(self) -> int:
        """How many compilations at once."""
        return self.jobs or jobs()

    def write_file(self, name: str, content: str) -> Path:
        """Write a file beside the build directory."""
        path = self.home / name
        path.write_text(content, encoding="utf-8")
        return path

    def run(self, action: str, *arguments: str, expected: int = 0) -> int:
        """Run make with the arguments to its end, and return how many files it compiled.

        `expected`: how many that may be; 0 where nobody knows.
        Raises BuildFailed, BuildToolsMissing, CompilerUnsuitable, NoSpace.
        """
        with self._alone() as descriptor:
            start = self.log.stat().st_size if self.log.exists() else 0
            with self.log.open("a", buffering=1, encoding="utf-8", errors="replace") as log:
                teller = Teller(self.progress, action, expected, self.most_jobs)
                command = self._command(*arguments)
                try:
                    status = self._watched(command, descriptor, log.write, teller, self._room_left())
                except _BeyondLimit as error:
                    raise BuildFailed(directory=self._name, problem=str(error), log=self.log) from None
                except _HostFull as error:
                    raise BuildCutShort(
                        directory=self._name,
                        problem=str(error),
                        log=self.log,
                        hint="make room, or find out whether the build takes all of it; "
                        "the same command goes on where it was",
                    ) from None
        if status:
            output = self.log.read_bytes()[start:].decode("utf-8", errors="replace")
            check_output(output, self.build)
            tree, build = (self.seen(path) for path in (self.tree.directory, self.build))
            raise self._failure(paths_in_source(output, tree, build), status)
        return teller.done

    def seen(self, path: Path) -> Path:
        """Where make sees a path."""
        if self.seen_at is None or sandbox.problem() or not path.is_relative_to(self.home):
            return path
        return self.seen_at / path.relative_to(self.home)

    def confinement(self, *writable: Path) -> sandbox.Sandbox | None:
        """What the source's own programs may reach; None where there is no sandbox, which is told once."""
        if why := sandbox.problem():
            if why not in _TOLD_WITHOUT:
                _TOLD_WITHOUT.add(why)
                self.progress(f"building without a sandbox: {why}")
            return None
        if (lack := sandbox.weakness()) and lack not in _TOLD_WITHOUT:
            _TOLD_WITHOUT.add(lack)
            self.progress(f"building in an incomplete sandbox: {lack}")
        seen_as = (self.home, self.seen_at) if self.seen_at else None
        readable = (self.tree.directory, self.home)
        return sandbox.Sandbox(readable, writable, self.variables, self.ccache, seen_as)

    def _watched(self, command: list[str], inherited: int, *readers: Callable[[str], object]) -> int:
        """Run the command, in the sandbox where there is one, and return its status."""
        self.build.mkdir(parents=True, exist_ok=True)
        environment = self.environment | {"PATH": self._path(os.environ.get("PATH", os.defpath))}
        confinement = self.confinement(self.build, *self.also_writable)
        if confinement is None:
            if setpriv := shutil.which("setpriv"):
                # If ktrial is killed, make must not go on in a directory that the next ktrial uses.
                command = [setpriv, "--pdeathsig", "TERM", *command]
            self.spent.add(None)
            return _watched(command, environment, inherited, None, *readers)
        confined = confinement.command(sandbox.until_closed(command), environment)
        with control_group() as group, sandbox.ending_pipe() as ends:
            try:
                status = _watched(group.command(confined), environment, inherited, ends, *readers)
            finally:
                self.spent.add(group.cpu_seconds)
            if status and group.ran_out_of_memory:
                raise _HostFull(f"it took more than {most_memory() >> 20} MiB of memory")
            return status

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Hold a lock that make and all that it starts inherit: it is free when the last of them has ended.

        After a SIGKILL of ktrial, compilers that make had started may go on for a while.
        """
        descriptor = os.open(self.home / "make.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.progress("waiting for what is left of an interrupted build")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    @property
    def _name(self) -> str:
        return self.called or str(self.tree.directory)

    def _room_left(self) -> Callable[[str], None]:
        """Of make's lines: raises _HostFull once disk or memory are nearly full, whoever fills them."""
        looked = 0.0

        def look(_line: str) -> None:
            nonlocal looked
            if time.monotonic() - looked > _SILENCE_SECONDS:
                looked = time.monotonic()
                if shutil.disk_usage(self.home).free < LEAST_ROOM:
                    raise _HostFull(f"less than {LEAST_ROOM >> 20} MiB of disk are left")
                if free_memory() < LEAST_MEMORY:
                    raise _HostFull(f"less than {LEAST_MEMORY >> 20} MiB of memory are left")

        return look

    def _failure(self, output: str, status: int) -> BuildError:
        name = self._name
        error = first_error(output)
        problem = error or f"make ended with status {status}"
        if _NO_PROCESS.search(output):
            problem = "no more processes could be started"
        if why := sandbox.refusal_in(output):
            return SandboxFailed(directory=name, problem=why)
        if tool := wanted_tool(output):
            compiler = f"{compiler_of(self.variables).shown.partition(',')[0]} ({problem})"
            advice = f"{tool[1]}; the whole log: {self.log}"
            return CompilerUnsuitable(directory=name, wanted=tool[0], found=compiler, advice=advice)
        if missing := missing_tool(output):
            return BuildToolsMissing(directory=name, tools=missing[0], packages=missing[1])
        facts = {"name": name, "directory": name, "problem": problem, "log": self.log}
        hint = f"the whole log: {self.log}"
        # A second signal ends make before it has said a word of the first.
        by_signal = status < 0 or status in _STATUSES_OF_SIGNALS
        if cut_short(output) or (by_signal and not error):
            advice = f"dmesg tells whether memory ran out; the same command goes on where it was; {hint}"
            return BuildCutShort(**facts, hint=advice)
        more = advice_on(problem, compiler_of(self.variables).shown, self.tree.version)
        return BuildFailed(**facts, hint="; ".join(filter(None, (hint, more))))

    @property
    def _compilers(self) -> dict[str, str]:
        host = self.variables.get("HOSTCC") or ("clang" if self.variables.get("LLVM") == "1" else "gcc")
        return {"CC": compiler_of(self.variables).cc, "HOSTCC": host}

    def _path(self, path: str) -> str:
        """PATH, after a directory in which the compilers' names lead to ccache, where that is installed.

        kbuild compiles a file anew when its command is another one. So the command names the compiler alone:
        what was compiled without ccache need not be again once it is installed, nor on a host without it.
        """
        ccache = shutil.which("ccache")
        if ccache is None:
            return path
        programs = self.home / "through-ccache"
        programs.mkdir(parents=True, exist_ok=True)
        for name in set(self._compilers.values()):
            if _IN_PATH.fullmatch(name) and not (programs / name).is_symlink():
                (programs / name).symlink_to(ccache)
        return os.pathsep.join((str(self.seen(programs)), path))

    def _command(self, *arguments: str) -> list[str]:
        through = "ccache " if shutil.which("ccache") else ""
        compilers = {
            name: command if _IN_PATH.fullmatch(command) else f"{through}{command}"
            for name, command in self._compilers.items()
        }
        fixed = [f"{name}={value}" for name, value in {**self.variables, **compilers}.items()]
        fixed += ["ARCH=x86_64", f"O={self.seen(self.build)}"]
        tree = self.seen(self.tree.directory)
        return ["make", "-C", str(tree), f"-j{self.most_jobs}", *fixed, *arguments]


_TOLD_WITHOUT: set[str] = set()
_IN_PATH = re.compile(r"[\w.+-]+")
"""A compiler that is looked for in PATH: without its place, and without options."""


class _BeyondLimit(Exception):
    """A build took more than it may."""


class _HostFull(Exception):
    """There is not enough left for a build and everybody else."""


def _watched(
    command: list[str],
    environment: dict[str, str],
    inherited: int,
    ending: tuple[int, int] | None,
    *readers: Callable[[str], object],
) -> int:
    """Run the command, hand each line of its output to the readers, and return its status.

    A reader gets an empty line where none has come for a while. `ending`: a pipe's ends, to read and to
    write: to close the latter ends it; None: a signal does. Raises _BeyondLimit, after it was ended.
    """
    process = subprocess.Popen(
        command,
        env=environment,
        pass_fds=(inherited,),
        stdin=ending[0] if ending else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )

    def end() -> None:
        if ending is None:
            process.terminate()
        else:
            os.close(ending[1])

    assert process.stdout is not None, "it was asked for"
    ended, printed = False, 0
    try:
        for line in lines_and_silences(process.stdout, _SILENCE_SECONDS):
            printed += len(line)
            if printed > MOST_OUTPUT:
                raise _BeyondLimit(f"its build was ended: it printed more than {MOST_OUTPUT >> 20} MiB")
            for reader in readers:
                reader(line)
            if _STOPS.match(line):
                # Told now: what else make had begun, whole directories of it, could go on for an hour.
                ended = True
                end()
                break
    finally:
        # Whoever prints further fails; what does not end although it is asked to is killed.
        process.stdout.close()
        if process.poll() is None and not ended:
            ended = True
            end()
        try:
            process.wait(_GRACE_SECONDS if ended else None)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def lines_and_silences(stream: IO[bytes], seconds: float) -> Iterator[str]:
    """The lines that come, to the stream's end, and an empty one whenever none has come for so long."""
    begun = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(seconds):
                yield ""
                continue
            block = os.read(stream.fileno(), _BLOCK)
            if not block:
                break
            *lines, begun = (begun + block).split(b"\n")
            for line in lines:
                yield line[:_LONGEST_LINE].decode("utf-8", errors="replace") + "\n"
            if len(begun) > 2 * _LONGEST_LINE:
                # Of a line without end what is over goes, and is counted: nothing waits for its newline.
                yield begun[:_LONGEST_LINE].decode("utf-8", errors="replace") + "\n"
                begun = b""
    if begun:
        yield begun.decode("utf-8", errors="replace")


def products(make: Make, into: Path) -> list[Path]:
    """Copies of vmlinux, .config and System.map in the directory `into`.

    Raises BuildFailed where one is a link: a build may name no file of the host's for its own.
    """
    names = ("vmlinux", ".config", "System.map")
    for name in names:
        if (make.build / name).is_symlink():
            source = make.called or str(make.tree.directory)
            problem = f"its build made {name} a symbolic link"
            raise BuildFailed(directory=source, problem=problem, log=make.log)
    return [Path(shutil.copy(make.build / name, into / name)) for name in names]


_ABOVE = re.compile(r"(?<![\w./-])(?<!error: )\.\./(?P<path>[\w+@-][\w.+@/-]*)")
"""A path that starts in the directory above make's."""


def paths_in_source(output: str, source: Path, build: Path) -> str:
    """make's output with the names of files as they are below the source's top.

    Where make works right below the source, kbuild calls the source `..`: that goes from the start of a name
    which the source has. Every other `../`, inside of a name or in what the source includes, stays.
    """
    text = output.replace(f"{source}/", "")
    if build.parent != source:
        return text
    return _ABOVE.sub(lambda match: match["path"] if (source / match["path"]).exists() else match[0], text)


def first_error(output: str) -> str:
    """The first real error in what make printed; empty where there is none."""
    for pattern in _ERRORS:
        if match := pattern.search(output):
            return match[0].strip()[:_LONGEST_ERROR]
    return ""


_CORES_A_BUILD = 8
"""More jobs than this gain little: make reads its directories one after another, and the link is one job."""
_MEMORY_A_BUILD = 4 << 30
_POLL_SECONDS = 0.5


@contextmanager
def slot(progress: Progress) -> Iterator[int]:
    """Wait until one more build may run, and yield how many jobs it may have."""
    directory = cache_directory() / "trees" / "slots"
    directory.mkdir(parents=True, exist_ok=True)
    begin = told = 0.0
    while True:
        for number in range(slots()):
            with ExitStack() as stack:
                if stack.enter_context(held_if_free(directory / f"{number}.lock")):
                    yield max(1, _cores() // slots())
                    return
        moment = time.monotonic()
        if not begin:
            progress("waiting for another build to end")
            begin = told = moment
        elif moment - told >= WORD_SECONDS:
            progress(f"waiting for another build to end: {duration(moment - begin)} so far")
            told = moment
        time.sleep(_POLL_SECONDS)


def slots() -> int:
    """How many builds may run at once."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(_cores() // _CORES_A_BUILD, memory // _MEMORY_A_BUILD))


def _cores() -> int:
    return len(os.sched_getaffinity(0))


# The compiler: which one it is, for the key of a build, and whether this source can be built with it.

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
        # Without ccache's directory: the script is the source's.
        confinement = sandbox.Sandbox((tree.directory,), (), {})
        words = confinement.command(["env", "SRCARCH=x86", *words], environment)
    finished = subprocess.run(
        words,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**environment, "SRCARCH": "x86"},
        check=False,
    )
    required, installed = numbers(finished.stdout), numbers(compiler.shown.partition(",")[0])
    if finished.returncode == 0 and required and installed and installed < required:
        name = {"llvm": "clang", "gcc": "gcc"}[kind]
        raise CompilerUnsuitable(
            directory=called,
            wanted=f"{name} {finished.stdout.strip()} or newer",
            found=compiler.shown.partition(",")[0],
            advice=f"install one, and name it: --make CC={name}-{required[0]}",
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
        raise BuildToolsMissing(directory="kernels", tools=command, packages=command)
    finished = subprocess.run(
        [*words, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    return finished.stdout.partition("\n")[0].strip() or command


# What a failed build wants that is not here: a compiler, a program, a header; by what make printed.

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
    for pattern, (need, advice) in _WANTS.items():
        if match := pattern.search(output):
            return need.format(**match.groupdict()), advice
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
_STATUSES_OF_SIGNALS = frozenset({129, 130, 137, 143})
"""What a shell tells of a program that a hangup, an interrupt, a kill, or a request to end has ended."""
_NO_MEMORY = re.compile(
    r"virtual memory exhausted|out of memory allocating|LLVM ERROR: out of memory|Cannot allocate memory"
    r"|memory exhausted$",
    re.MULTILINE,
)
"""What compilers and linkers say where this host has none left."""


_NO_PROCESS = re.compile(r": Resource temporarily unavailable$|\bCannot fork$", re.MULTILINE)
"""What make, shells and compilers say where their user has as many processes as it may, of any builds."""


def cut_short(output: str) -> bool:
    """Whether a failed build was ended from outside, or had no memory, or no process: it may yet succeed."""
    return any(sign.search(output) for sign in (_KILLED, _NO_MEMORY, _NO_PROCESS))


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
        f"neither the source nor this system has {missing['header']}: if it is not a file of the source, "
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


# How far a build is: make's lines counted, against how many there were the last time; past builds' time.

_COMPILED = re.compile(r"^  (?:CC|AS|HOSTCC|AR|LD)(?: \[M\])? ")
_SECONDS_BETWEEN = 2.0
_SECONDS_TO_JUDGE = 15.0
"""Before that, the time left is worked out from past builds."""
_LONG_STEP_SECONDS = 10.0
"""A link that takes longer is named: nothing else shows that the build goes on."""
_BUILDS_KEPT = 30
_FILES_AN_OPTION = 2.9
"""Files for each option that is set, where no build has told: what 6.1 has in the guest configuration."""
_JOB_SECONDS_A_FILE = 0.42
"""Where no build has told: 6.1 in the guest configuration, ten minutes of one core for 1440 files."""


class _PastBuild(TypedDict):
    seconds: float
    from_nothing: bool


class Teller:
    """Counts what is compiled, and tells it now and then."""

    def __init__(self, progress: Progress, action: str, expected: int = 0, jobs: int = 1) -> None:
        self.done = 0
        self._progress, self._what, self._expected = progress, action, expected
        self._expected_rate = _remembered_rate("job_seconds_a_file", _JOB_SECONDS_A_FILE) / jobs
        self._start = self._told = self._line_read = time.monotonic()
        self._line = ""
        progress(self._text(0.0))

    def __call__(self, line: str) -> None:
        """Take one line of make's output; an empty one where nothing has come for a while."""
        moment = time.monotonic()
        if line:
            self._line, self._line_read = line.strip(), moment
        compiled = bool(_COMPILED.match(line))
        self.done += compiled
        if (compiled or not line) and moment - self._told >= _SECONDS_BETWEEN:
            self._told = moment
            self._progress(f"{self._text(moment - self._start)}{self._long_step(moment - self._line_read)}")

    def _text(self, seconds: float) -> str:
        of, counted = self._expected, f"{self._what}: {self.done:,}"
        if self.done >= of:
            return f"{counted} files" if self.done else self._what
        text = f"{counted} of about {of:,} files" if self.done else f"{self._what}: about {of:,} files"
        rate = seconds / self.done if self.done and seconds >= _SECONDS_TO_JUDGE else self._expected_rate
        return f"{text}, {left(rate * (of - self.done))}"

    def _long_step(self, seconds: float) -> str:
        if seconds < _LONG_STEP_SECONDS or not self._line:
            return ""
        return f"; {' '.join(self._line.split())} has taken {seconds:.0f} s"


def left(seconds: float) -> str:
    """A time for people: `about 3 min left`."""
    if seconds < 60:
        return "less than a minute left"
    return f"about {round(seconds / 60)} min left"


def expected_files(config: str) -> int:
    """How many files a build from nothing compiles, by the last one that was finished."""
    return round(_options_set(config) * _remembered_rate("files_an_option", _FILES_AN_OPTION))


def remember_files(config: str, files: int, job_seconds: float) -> None:
    """Keep how many files a build from nothing compiled, and how long all its jobs took together."""
    if files and (options := _options_set(config)):
        _time_estimate_memory().parent.mkdir(parents=True, exist_ok=True)
        rates = {"files_an_option": files / options, "job_seconds_a_file": job_seconds / files}
        write_atomically(_time_estimate_memory(), json.dumps(_remembered() | rates))


def remember_build(seconds: float, *, from_nothing: bool) -> None:
    """Keep how long a build took; `from_nothing`: in a tree that held nothing."""
    builds = [*_builds(), {"seconds": round(seconds, 1), "from_nothing": from_nothing}][-_BUILDS_KEPT:]
    _time_estimate_memory().parent.mkdir(parents=True, exist_ok=True)
    write_atomically(_time_estimate_memory(), json.dumps(_remembered() | {"builds": builds}))


def build_seconds() -> float | None:
    """About how long a build takes that begins with another's tree, by past ones; None where there are none.

    The median; where only builds from nothing are known, of these.
    """
    past = _builds()
    again = [build for build in past if not build["from_nothing"]] or past
    return float(statistics.median(build["seconds"] for build in again)) if again else None


def whole_build_seconds() -> float | None:
    """About how long a build from nothing takes, by past ones: their median; None without any."""
    past = [build["seconds"] for build in _builds() if build["from_nothing"]]
    return float(statistics.median(past)) if past else None


def _options_set(config: str) -> int:
    return len(re.findall(r"^CONFIG_\w+=[ym]$", config, re.MULTILINE))


def _remembered_rate(name: str, without: float) -> float:
    try:
        return float(_remembered()[name])
    except (ValueError, KeyError, TypeError):
        return without


def _builds() -> list[_PastBuild]:
    records = _remembered().get("builds", ())
    try:
        return [
            {"seconds": float(record["seconds"]), "from_nothing": bool(record["from_nothing"])}
            for record in records
        ]
    except (ValueError, KeyError, TypeError):
        return []


def _remembered() -> dict[str, Any]:
    try:
        memory = json.loads(_time_estimate_memory().read_text())
    except (OSError, ValueError):
        return {}
    return memory if isinstance(memory, dict) else {}


def _time_estimate_memory() -> Path:
    return cache_directory() / "trees" / "rate.json"
