"""Run the kernel's make for a build directory beside the source: bounded, logged, and told as it goes."""

import fcntl
import os
import re
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ktrial.kernels.build import sandbox
from ktrial.kernels.build.compiler import compiler_of
from ktrial.kernels.build.errors import (
    BuildCutShort,
    BuildError,
    BuildFailed,
    BuildToolsMissing,
    CompilerUnsuitable,
    SandboxFailed,
)
from ktrial.kernels.build.failure_diagnosis import advice_on, cut_short, missing_tool, wanted_tool
from ktrial.kernels.build.source_tree import Tree
from ktrial.kernels.build.time_estimate import Teller
from ktrial.kernels.cache.disk_space import check_output
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.cache.locks import held_if_free
from ktrial.kernels.progress import Progress

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
_BLOCK = 1 << 16


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
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KBUILD_", "KCONFIG_")) and name not in _CHANGING
        }
        return kept | _REPRODUCIBLE

    @property
    def most_jobs(self) -> int:
        """How many compilations at once."""
        return self.jobs or jobs()

    def write_file(self, name: str, content: str) -> Path:
        """Write a file beside the build directory."""
        path = self.home / name
        path.write_text(content, encoding="utf-8")
        return path

    def run(self, what: str, *arguments: str, expected: int = 0) -> int:
        """Run make with the arguments to its end, and return how many files it compiled.

        `expected`: how many that may be; 0 where nobody knows.
        Raises BuildFailed, BuildToolsMissing, CompilerUnsuitable, NoSpace.
        """
        with self._alone() as descriptor:
            start = self.log.stat().st_size if self.log.exists() else 0
            with self.log.open("a", buffering=1, encoding="utf-8", errors="replace") as log:
                teller = Teller(self.progress, what, expected, self.most_jobs)
                command = self._command(*arguments)
                status = self._watched(command, descriptor, log.write, teller)
        if status:
            said = self.log.read_bytes()[start:].decode("utf-8", errors="replace")
            check_output(said, self.build)
            raise self._failure(paths_in_source(said, self.tree.directory, self.build), status)
        return teller.done

    def confinement(self, *writable: Path) -> sandbox.Sandbox | None:
        """What the source's own programs may reach; None where there is no sandbox, which is told once."""
        if why := sandbox.problem():
            if why not in _TOLD_WITHOUT:
                _TOLD_WITHOUT.add(why)
                self.progress(f"building without a sandbox: {why}")
            return None
        return sandbox.Sandbox((self.tree.directory, self.home), writable, self.variables)

    def _watched(self, command: list[str], inherited: int, *readers: Callable[[str], object]) -> int:
        """Run the command, in the sandbox where there is one, and return its status."""
        self.build.mkdir(parents=True, exist_ok=True)
        confinement = self.confinement(self.build, *self.also_writable)
        if confinement is None:
            if setpriv := shutil.which("setpriv"):
                # If ktrial is killed, make must not go on in a directory that the next ktrial uses.
                command = [setpriv, "--pdeathsig", "TERM", *command]
            return _watched(command, self.environment, inherited, None, *readers)
        confined = confinement.command(sandbox.until_closed(command), self.environment)
        with sandbox.ending_pipe() as ends:
            return _watched(confined, self.environment, inherited, ends, *readers)

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

    def _failure(self, said: str, status: int) -> BuildError:
        name = self.called or str(self.tree.directory)
        problem = first_error(said) or f"make ended with status {status}"
        if why := sandbox.refusal_in(said):
            return SandboxFailed(name=name, directory=name, problem=why)
        if tool := wanted_tool(said):
            compiler = f"{compiler_of(self.variables).shown.partition(',')[0]} ({problem})"
            advice = f"{tool[1]}; the whole log: {self.log}"
            return CompilerUnsuitable(
                name=name, directory=name, wanted=tool[0], found=compiler, advice=advice
            )
        if missing := missing_tool(said):
            return BuildToolsMissing(name=name, directory=name, tools=missing[0], packages=missing[1])
        facts = {"name": name, "directory": name, "problem": problem, "log": self.log}
        hint = f"the whole log: {self.log}"
        if cut_short(said):
            advice = f"dmesg tells whether memory ran out; the same command goes on where it was; {hint}"
            return BuildCutShort(**facts, hint=advice, killed=True)
        more = advice_on(problem, compiler_of(self.variables).shown, self.tree.version)
        return BuildFailed(**facts, hint="; ".join(filter(None, (hint, more))), killed=False)

    def _command(self, *arguments: str) -> list[str]:
        through = "ccache " if shutil.which("ccache") else ""
        compiler = compiler_of(self.variables).cc
        host = self.variables.get("HOSTCC") or ("clang" if self.variables.get("LLVM") == "1" else "gcc")
        own = {"CC": f"{through}{compiler}", "HOSTCC": f"{through}{host}"}
        fixed = [f"{name}={value}" for name, value in {**self.variables, **own}.items()]
        fixed += ["ARCH=x86_64", f"O={self.build}"]
        return ["make", "-C", str(self.tree.directory), f"-j{self.most_jobs}", *fixed, *arguments]


_TOLD_WITHOUT: set[str] = set()


def _watched(
    command: list[str],
    environment: dict[str, str],
    inherited: int,
    ending: tuple[int, int] | None,
    *readers: Callable[[str], object],
) -> int:
    """Run the command, hand each line of its output to the readers, and return its status.

    A reader gets an empty line where none has come for a while. `ending`: a pipe's ends, to read and to
    write: to close the latter ends it; None: a signal does.
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
    ended = False
    try:
        for line in lines_and_silences(process.stdout, _SILENCE_SECONDS):
            for reader in readers:
                reader(line)
            if _STOPS.match(line):
                # Told now: what else make had begun, whole directories of it, could go on for an hour.
                ended = True
                end()
                break
        return process.wait()
    finally:
        if process.poll() is None:
            if not ended:
                end()
            process.wait()


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
                yield line.decode("utf-8", errors="replace") + "\n"
    if begun:
        yield begun.decode("utf-8", errors="replace")


def check_products(make: Make, names: Iterable[str]) -> None:
    """Raise BuildFailed where a product is a link: a build may name no file of the host's for its own."""
    for name in names:
        if (make.build / name).is_symlink():
            source = make.called or str(make.tree.directory)
            problem = f"its build made {name} a symbolic link"
            raise BuildFailed(name=source, directory=source, problem=problem, log=make.log)


def jobs() -> int:
    """How many compilations at once: one a core that is ours, as far as the free memory goes."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, free_memory() // _MEMORY_A_JOB))


def free_memory() -> int:
    """Bytes that programs may have without swapping, as the kernel estimates them."""
    match = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(match[1]) << 10 if match else _MEMORY_A_JOB


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
    told = False
    while True:
        for number in range(slots()):
            with ExitStack() as stack:
                if stack.enter_context(held_if_free(directory / f"{number}.lock")):
                    yield max(1, _cores() // slots())
                    return
        if not told:
            progress("waiting for another build to end")
            told = True
        time.sleep(_POLL_SECONDS)


def slots() -> int:
    """How many builds may run at once."""
    return max(1, min(_cores() // _CORES_A_BUILD, _memory() // _MEMORY_A_BUILD))


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
