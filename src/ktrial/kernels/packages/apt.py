"""apt with a state directory of its own: the system's mirrors, proxies and keys, but none of its state.

Nothing here writes outside its directory: lists, cache and dpkg status are private, and the system's hooks
(APT::Update::Post-Invoke and the like, which delete or refresh the system's own caches) are left out. apt
itself checks the signatures of the Release files and, through them, every package.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ktrial.kernels import Progress
from ktrial.kernels.errors import FetchFailed
from ktrial.kernels.files import check_output, require_space, write_atomically
from ktrial.kernels.kernel_cache import held
from ktrial.kernels.programs import require_tool
from ktrial.system_tools import Tool
from ktrial.text_lines import lines_of

if TYPE_CHECKING:
    from debian.deb822 import Deb822

APT = Tool("apt-get", "apt", "fetches distribution kernels")
_LEFT_OUT = re.compile(
    r"^(Dir|DPkg|APT::Update|APT::Architectures?|APT::Periodic|Unattended-Upgrade|Acquire::GzipIndexes"
    r"|quiet|APT::Get|APT::Install.*)\b"
)
"""What of the system's configuration must not reach the private apt; proxies and TLS settings stay."""
_HELPER = Path("/usr/lib/apt/apt-helper")
_WAITING = "waiting for another ktrial that uses apt"
_ABSENT_SUITE = re.compile(r"does not have a Release file|no longer has a Release file|404 ")
_NOT_NOW = re.compile(r"Release file for .* is (?:expired|not valid yet)")
"""apt-pkg/acquire-item.cc: the file is signed for another time than this machine's clock shows."""
_NO_REASON = "apt gave no reason"
_POLL_SECONDS = 0.1
OLD_SECONDS = 6 * 3600
INDEX_FORMAT = 2


# apt's own index over all packages takes seconds, and is not needed here.
_UPDATE = ["apt-get", "-q=2", "-o", "pkgCacheFile::Generate=false", "update"]
_LISTS_BYTES = 150 << 20
"""About what the lists of all suites take."""


@dataclass(frozen=True)
class Archive:
    """One place that apt fetches from, and the suites to look for there."""

    uri: str
    suites: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()

    def stanza(self, architecture: str) -> str:
        """Write it in the format of sources.list(5), asking for nothing but package lists.

        `architecture`: `source` asks for the lists of source packages.
        """
        kind = (
            {"Types": "deb-src", "Targets": "Sources"}
            if architecture == SOURCE
            else {"Types": "deb", "Architectures": architecture, "Targets": "Packages"}
        )
        fields = {
            **kind,
            "URIs": self.uri,
            "Suites": " ".join(self.suites),
            "Components": "main",
            "Languages": "none",
            "PDiffs": "no",
            **dict(self.options),
        }
        return "".join(f"{name}: {value}\n" for name, value in fields.items())


@dataclass(frozen=True)
class Package:
    """One version of a package in a suite."""

    name: str
    version: str
    suite: str
    depends: str
    size: int
    """Bytes to download."""
    installed: int
    """Bytes when unpacked; 0 of a source package, which does not say."""
    uri: str
    sha256: str
    """From the package list, whose own hash stands in the signed Release file."""

    @property
    def ending(self) -> str:
        """Of its file's name: `.deb`; of a source package's packaging that of a tarball, `.xz`."""
        return PurePosixPath(self.uri).suffix


class PrivateApt:
    """apt-get with its whole state below `directory`, for packages of `architecture` whose names match.

    Of the architecture `source` they are source packages, each as the file with its packaging.
    """

    def __init__(self, directory: Path, distribution: str, architecture: str, names: str) -> None:
        self.directory = directory
        self.distribution = distribution
        self.architecture = architecture
        self.names = re.compile(names)

    def packages(
        self, archives: tuple[Archive, ...], kernel: str, progress: Progress, oldest: float = OLD_SECONDS
    ) -> tuple[Package, ...]:
        """All versions of the packages, in all suites that the archives hold.

        Lists older than `oldest` seconds, or made from other archives, are fetched anew.
        Raises FetchFailed, NoSpace or ToolMissing.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with held(self.directory / "lock", progress, _WAITING):
            sources = "\n".join(archive.stanza(self.architecture) for archive in archives)
            fresh = self._is_fresh(sources, oldest)
            # Each time: the system's proxy may have changed.
            self._configure(kernel, sources)
            if not fresh:
                self._update(kernel, progress)
            return tuple(Package(**entry) for entry in self._read_index()["packages"])

    def packages_here(self) -> tuple[Package, ...] | None:
        """Those of the lists as they were fetched last; None where none were. Nothing is fetched."""
        try:
            index = self._read_index()
        except (OSError, ValueError):
            return None
        if index.get("format") != INDEX_FORMAT:
            return None
        return tuple(Package(**entry) for entry in index["packages"])

    def problems(self) -> list[str]:
        """What apt said about lists that it could not fetch, other than that a suite is not there."""
        return [str(problem) for problem in self._read_index()["problems"]]

    def age(self) -> float:
        """Seconds since the lists were fetched."""
        return time.time() - self._index.stat().st_mtime if self._index.exists() else float("inf")

    def download(self, packages: list[Package], into: Path, kernel: str, progress: Progress) -> list[Path]:
        """Fetch packages into the empty directory `into`; apt checks their hashes. Returns the files."""
        action = f"fetching {len(packages)} packages" if len(packages) > 1 else "fetching the package"
        total = sum(package.size for package in packages)
        finished = self._run(kernel, _download_command(packages, into), into, progress, action, total)
        files = sorted(
            path for end in {package.ending for package in packages} for path in into.glob(f"*{end}")
        )
        if finished.returncode or len(files) != len(packages):
            check_output(finished.stderr, into, total)
            # Of a file that is not there the 404 is all that tells; of a suite it is only one of many.
            raise fetch_failed(kernel, self.distribution, _complaints(finished.stderr)[:4] or [_NO_REASON])
        return files

    def _read_index(self) -> dict[str, Any]:
        return dict(json.loads(self._index.read_text(encoding="utf-8")))

    @property
    def _index(self) -> Path:
        return self.directory / "index.json"

    @property
    def _sources(self) -> Path:
        return self.directory / "ktrial.sources"

    def _is_fresh(self, sources: str, oldest: float) -> bool:
        try:
            if self._read_index().get("format") != INDEX_FORMAT:
                return False
        except (OSError, ValueError):
            return False  # never written, or damaged: it is made anew
        same = self._sources.exists() and self._sources.read_text(encoding="utf-8") == sources
        return same and self.age() < oldest and not self.problems()

    def _configure(self, kernel: str, sources: str) -> None:
        for part in ("state/lists/partial", "cache/archives/partial", "log"):
            (self.directory / part).mkdir(parents=True, exist_ok=True)
        (self.directory / "status").write_text("", encoding="utf-8")
        write_atomically(self._sources, sources)
        write_atomically(self.directory / "apt.conf", self._configuration(kernel))

    def _configuration(self, kernel: str) -> str:
        dump = run_tool(kernel, ["apt-config", "dump", "--format", '%F "%v";%n']).stdout
        lines = [line for line in lines_of(dump) if not _LEFT_OUT.match(line)]
        settings = {
            "Dir": "/",
            "Dir::Etc::main": "/dev/null",
            "Dir::Etc::parts": "/dev/null",
            "Dir::Etc::sourcelist": self._sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State": self.directory / "state",
            "Dir::State::status": self.directory / "status",
            "Dir::Cache": self.directory / "cache",
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "Dir::Log": self.directory / "log",
            **self._native,
            # The user _apt, to whom root's apt steps down, may not enter another user's cache directory.
            "APT::Sandbox::User": "root",
            "Acquire::GzipIndexes": "true",
            "Acquire::AllowInsecureRepositories": "false",
            "Acquire::AllowWeakRepositories": "false",
            "Acquire::AllowDowngradeToInsecureRepositories": "false",
        }
        return "\n".join([*lines, *(f'{key} "{value}";' for key, value in settings.items()), ""])

    def _update(self, kernel: str, progress: Progress) -> None:
        """A suite that is not there makes apt-get fail, but the others come: what came is what counts."""
        lists = self.directory / "state" / "lists"
        self._index.unlink(missing_ok=True)
        if not any(lists.glob("*InRelease")):
            require_space(lists, _LISTS_BYTES)
        finished = self._run(kernel, _UPDATE, lists, progress, "fetching package lists", 0)
        check_output(finished.stderr, lists, _LISTS_BYTES)
        packages = [package for target in self._targets(kernel) for package in self._read(kernel, target)]
        if not packages:
            raise self._failure(kernel, finished.stderr)
        problems = [line for line in _complaints(finished.stderr) if not _ABSENT_SUITE.search(line)]
        index = {
            "format": INDEX_FORMAT,
            "problems": problems,
            "packages": [vars(package) for package in packages],
        }
        write_atomically(self._index, json.dumps(index))

    @property
    def _native(self) -> dict[str, str]:
        """The architecture that apt takes for its own; source packages have none."""
        if self.architecture == SOURCE:
            return {}
        return {"APT::Architecture": self.architecture, "APT::Architectures::": self.architecture}

    def _targets(self, kernel: str) -> Iterator[Mapping[str, str]]:
        text = run_tool(kernel, ["apt-get", "indextargets"], self._environment()).stdout
        kind = "Sources" if self.architecture == SOURCE else "Packages"
        for target in _paragraphs(text):
            if target.get("Identifier", kind) == kind and Path(target["Filename"]).exists():
                yield target

    def _read(self, kernel: str, target: Mapping[str, str]) -> Iterator[Package]:
        text = run_tool(kernel, [str(_HELPER), "cat-file", target["Filename"]], self._environment()).stdout
        packages = source_packages if self.architecture == SOURCE else binary_packages
        return packages(text, self.names, target["Repo-URI"], target["Release"])

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "APT_CONFIG": str(self.directory / "apt.conf"), "LC_ALL": "C.UTF-8"}

    def _run(
        self, kernel: str, command: list[str], watched: Path, progress: Progress, action: str, total: int
    ) -> subprocess.CompletedProcess[str]:
        """Run one of apt's programs, and tell how many bytes came into the directory `watched`."""
        require_tool(APT._replace(name=command[0]))
        if setpriv := shutil.which("setpriv"):
            # If ktrial is killed, apt must not go on alone in a directory that the next ktrial uses.
            command = [setpriv, "--pdeathsig", "TERM", *command]
        before = _bytes_in(watched)
        progress(action, 0, total)
        process = subprocess.Popen(
            command,
            cwd=watched,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        try:
            while True:
                try:
                    _, errors = process.communicate(timeout=_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    progress(action, max(0, _bytes_in(watched) - before), total)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        progress(action, total, total)
        return subprocess.CompletedProcess(command, process.returncode, "", errors)

    def _failure(self, kernel: str, output: str) -> FetchFailed:
        complaints = _complaints(output) or [_NO_REASON]
        # Suites that are not there matter only where nothing else went wrong.
        telling = [line for line in complaints if not _ABSENT_SUITE.search(line)] or complaints
        return fetch_failed(kernel, self.distribution, telling[:4])


def fetch_failed(kernel: str, distribution: str, complaints: list[str], before: str = "") -> FetchFailed:
    """The error for what apt complains of. Of lists whose time is over, or not yet come, it says no more."""
    problem = before + "; ".join(complaints)
    if any(_NOT_NOW.search(line) for line in complaints):
        clock = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        return FetchFailed(
            f"Kernel {kernel} could not be fetched from {distribution}: {problem}",
            hint=(
                f"this machine's clock says {clock}: if that is wrong, set it (sudo timedatectl set-ntp "
                "true); if it is right, the mirror is out of date: use another"
            ),
        )
    return FetchFailed(name=kernel, distribution=distribution, problem=problem)


def _download_command(packages: list[Package], into: Path) -> list[str]:
    """apt-helper fetches at once; apt-get must first index all packages, but knows mirror+file: addresses."""
    if any(package.uri.startswith("mirror") for package in packages):
        is_source = all(package.ending != ".deb" for package in packages)
        ask = ["source", "--download-only", "--diff-only"] if is_source else ["download"]
        return ["apt-get", "-q=2", *ask, *(f"{package.name}={package.version}" for package in packages)]
    command = [str(_HELPER), "download-file"]
    for package in packages:
        command += [package.uri, str(into / f"{package.name}{package.ending}"), f"SHA256:{package.sha256}"]
    return command


def _complaints(output: str) -> list[str]:
    return [line[3:] for line in lines_of(output) if line.startswith(("E: ", "W: "))]


def run_tool(
    kernel: str, command: list[str], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of apt's programs to its end. Raises ToolMissing, FetchFailed."""
    require_tool(APT._replace(name=command[0]))
    finished = subprocess.run(
        command,
        env=environment or {**os.environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if finished.returncode:
        problem = f"{' '.join(command[:2])}: {finished.stderr.strip()}"
        raise FetchFailed(name=kernel, distribution="Debian", problem=problem)
    return finished


def _bytes_in(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue  # apt moved it between the two calls
    return total


# What apt's lists tell of packages: binary ones (Packages), and the packaging of source ones (Sources).
#
# deb-src lists name all files of a source package; of them only the one with Debian's own part is taken,
# which format `3.0 (quilt)` keeps in `NAME_VERSION.debian.tar.*` (dpkg-source(1)).

_PACKAGING = re.compile(r"^ ?([0-9a-f]{64}) (\d+) (\S+\.debian\.tar\.\w+)$", re.MULTILINE)


def binary_packages(text: str, names: re.Pattern[str], base: str, suite: str) -> Iterator[Package]:
    """Those of a list `Packages` whose names match. `base`: the address below which the files lie."""
    for fields in _entries(text, names):
        yield Package(
            name=fields["Package"],
            version=fields["Version"],
            suite=suite,
            depends=fields.get("Depends", ""),
            size=int(fields["Size"]),
            installed=int(fields.get("Installed-Size", "0")) * 1024,
            uri=base + fields["Filename"],
            sha256=fields["SHA256"],
        )


def source_packages(text: str, names: re.Pattern[str], base: str, suite: str) -> Iterator[Package]:
    """Those of a list `Sources` whose names match, each as the file with its packaging."""
    for fields in _entries(text, names):
        if packaging := _PACKAGING.search(fields.get("Checksums-Sha256", "")):
            yield Package(
                name=fields["Package"],
                version=fields["Version"],
                suite=suite,
                depends="",
                size=int(packaging[2]),
                installed=0,
                uri=f"{base}{fields['Directory']}/{packaging[3]}",
                sha256=packaging[1],
            )


def _paragraphs(text: str) -> "Iterator[Deb822]":
    from debian.deb822 import Deb822  # with what it needs, a fortieth of a report's imports

    return Deb822.iter_paragraphs(text, use_apt_pkg=False)


def _entries(text: str, names: re.Pattern[str]) -> "Iterator[Deb822]":
    """Lists have some ten thousand entries: only those that are meant are taken apart."""
    from debian.deb822 import Deb822

    for match in re.finditer(r"^Package: (\S+)$", text, re.MULTILINE):
        if names.fullmatch(match[1]):
            end = text.find("\n\n", match.end())
            yield Deb822(text[match.start() : end + 1 if end >= 0 else len(text)])


# Which archives the system's apt is set up with: apt says where, the source's file says with which key.

SOURCE = "source"
"""What Debian calls the architecture of source packages."""
_KEPT_OPTIONS = ("Signed-By", "Check-Valid-Until", "Check-Date", "By-Hash")
"""Options of a system's source that hold for its other suites too; not `Trusted`: signatures count."""


@dataclass(frozen=True)
class ConfiguredSource:
    """One suite of one archive in the system's apt configuration."""

    uri: str
    origin: str
    """Of the Release file; empty where the lists were never fetched."""
    label: str
    suite: str
    options: tuple[tuple[str, str], ...]


def configured_sources(indextargets: str) -> list[ConfiguredSource]:
    """Read the output of `apt-get indextargets`, then that of the same with `--no-release-info`.

    The first tells origins, but only of lists that were fetched; the second tells all that is set up.
    """
    sources = {}
    for target in _paragraphs(indextargets):
        uri, suite = target.get("Repo-URI", ""), target.get("Release", "")
        file = Path(target.get("Sourcesentry", "").rpartition(":")[0])
        if uri and (uri, suite) not in sources:
            sources[uri, suite] = ConfiguredSource(
                uri=uri,
                origin=target.get("Origin", ""),
                label=target.get("Label", ""),
                suite=suite,
                options=source_options(file, uri),
            )
    return list(sources.values())


def source_options(file: Path, uri: str) -> tuple[tuple[str, str], ...]:
    """Return the options with which `file` names the archive `uri`: Signed-By and those like it."""
    if not file.is_file():
        return ()
    text = file.read_text(encoding="utf-8", errors="replace")
    for uris, settings in _entries_of_apt(text, deb822=file.suffix == ".sources"):
        if uri.rstrip("/") in {address.rstrip("/") for address in uris}:
            options = {name.lower(): value for name, value in settings.items()}
            return tuple((name, options[name.lower()]) for name in _KEPT_OPTIONS if name.lower() in options)
    return ()


def _entries_of_apt(text: str, *, deb822: bool) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The addresses and options of each entry, in one of the two formats of sources.list(5)."""
    if deb822:
        for stanza in _paragraphs(text):
            yield stanza.get("URIs", "").split(), dict(stanza)
        return
    for match in re.finditer(r"^[ \t]*deb[ \t]+(?:\[([^]\n]*)\][ \t]+)?(\S+)", text, re.MULTILINE):
        pairs = (option.partition("=") for option in (match[1] or "").split())
        yield [match[2]], {name: value for name, _, value in pairs}
