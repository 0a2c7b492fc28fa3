"""A room: a root file system of mmdebstrap's, and commands that run in it as on a machine of its own."""

import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORES = 2
TMP_MEGABYTES = 1500
BARE = ("git", "make", "python3", "ca-certificates")
"""What a room has beside mmdebstrap's minbase."""
NEWCOMER = "newcomer"
_UID = 1000
_REACHING = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CARGO_HTTP_CAINFO", "GIT_SSL_CAINFO"),
    *("PIP_CERT", "PIP_DEFAULT_TIMEOUT", "PIP_INDEX_URL"),
    # What the caller wants of the tests: --durations=50.
    "PYTEST_ADDOPTS",
)
"""Variables that a room takes from here: mostly those by which programs reach package registries."""
_REACHING_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf")
_REACHING_OF_A_HOME = (".config/pip/pip.conf", ".pip/pip.conf", ".cargo/config.toml")
_HINT = re.compile(r"apt-get update && (?:sudo )?apt-get install ((?:-y )?--no-install-recommends [^\n;,)]*)")

_INSTALL = "sudo apt-get update && sudo apt-get install --no-install-recommends"


class RoomError(Exception):
    """The host cannot have rooms, or a room could not be made: nothing is known of ktrial."""


@dataclass
class Cost:
    """What commands in a room took."""

    cpu_seconds: float = 0.0
    seconds: float = 0.0
    fetched_megabytes: float = 0.0
    """By the network interfaces of the host: of whoever used them meanwhile."""
    tmp_megabytes: float = 0.0
    """The most that /tmp held."""
    disk_megabytes: float = 0.0


@dataclass
class Room:
    """One root file system, for one user, until it is removed."""

    root: Path
    user: str
    """`root` or NEWCOMER."""
    log: Path
    """All that its commands print."""
    cost: Cost = field(default_factory=Cost)
    hints: list[str] = field(default_factory=list)
    """Lines of hints that were followed as root."""
    path: list[str] = field(default_factory=list)
    """Directories that the user has put into PATH."""

    @property
    def home(self) -> str:
        """The user's, as the room sees it."""
        return "/root" if self.user == "root" else f"/home/{self.user}"

    def run(self, command: str, directory: str = "") -> str:
        """Run a line of shell as the user, follow its hint once, and return what it printed.

        Raises CommandFailed: also where what the hint names was not all that is missing.
        """
        status, text = self._run(command, self.user, directory)
        if status == 0:
            return text
        hint = hint_in(text)
        if not hint:
            raise CommandFailed(command, status, text)
        self.hints.append(hint)
        self.run_as_root(f"apt-get update -q && {hint}")
        status, text = self._run(command, self.user, directory)
        if status:
            more = " (a second round of hints)" if hint_in(text) else ""
            raise CommandFailed(f"{command}{more}", status, text)
        return text

    def run_as_root(self, command: str) -> str:
        """Run a line of shell as root. Raises CommandFailed."""
        status, text = self._run(command, "root", "")
        if status:
            raise CommandFailed(command, status, text)
        return text

    def _run(self, command: str, user: str, directory: str) -> tuple[int, str]:
        self._write_environment(user)
        start, received, used = time.monotonic(), received_bytes(), _cpu_seconds()
        self._tell(f"{'#' if user == 'root' else '$'} {command}")
        with self.log.open("a+", encoding="utf-8", errors="replace") as log:
            log.seek(0, os.SEEK_END)
            begin = log.tell()
            home = "/root" if user == "root" else self.home
            status = _in_namespaces(
                [
                    *(str(HERE / "enter"), str(self.root), "0" if user == "root" else str(_UID)),
                    *(str(TMP_MEGABYTES), directory or home, "sh", "-c", command),
                ],
                log.fileno(),
            )
            log.seek(begin)
            text = log.read()
        self.cost.seconds += time.monotonic() - start
        self.cost.fetched_megabytes += (received_bytes() - received) / 1e6
        self.cost.cpu_seconds += _cpu_seconds() - used
        peak = self.root / "tmp-peak"
        if peak.exists():
            self.cost.tmp_megabytes = max(self.cost.tmp_megabytes, int(peak.read_text() or 0) / 1024)
        return status, text

    def _write_environment(self, user: str) -> None:
        """What a login gives, and what reaching the registries takes."""
        ordinary = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
        of_root = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        variables = {
            "PATH": ":".join([*self.path, of_root if user == "root" else ordinary]),
            "HOME": "/root" if user == "root" else self.home,
            "USER": user,
            "LOGNAME": user,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "DEBIAN_FRONTEND": "noninteractive",
            **reaching(),
        }
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
        (self.root / "environment").write_text("".join(lines), encoding="utf-8")

    def _tell(self, line: str) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"\n{line}\n")

    def take(self, checkout: Path) -> None:
        """A clone of a repository in the user's home, as `ktrial`."""
        to = self.root / self.home.lstrip("/") / "ktrial"
        _as_root(["git", "clone", "--quiet", "--no-hardlinks", str(checkout), str(to)])
        _as_root(["git", "-C", str(to), "remote", "remove", "origin"])
        self.give(to)

    def put(self, path: Path, name: str) -> None:
        """Copy a file into the user's home."""
        to = self.root / self.home.lstrip("/") / name
        _copy(path, to)
        self.give(to)

    def give(self, path: Path) -> None:
        """Make a path of the room the user's."""
        uid = 0 if self.user == "root" else _UID
        _as_root(["chown", "-R", f"{uid}:{uid}", str(path)])

    def remove(self) -> None:
        """Remove it, whoever its files belong to."""
        _as_root(["rm", "-rf", "--one-file-system", str(self.root)])


class CommandFailed(Exception):
    """A command in a room ended with another status than 0."""

    def __init__(self, command: str, status: int, text: str) -> None:
        super().__init__(f"{command}: exit status {status}")
        self.text = text


def hint_in(text: str) -> str:
    """The command of the last hint in a text that brings what is missing; empty where there is none."""
    hints = _HINT.findall(text)
    return f"apt-get install -y {hints[-1].removeprefix('-y ').strip()}" if hints else ""


def problem() -> str:
    """Why this host cannot have rooms, with what helps; empty where it can."""
    if shutil.which("mmdebstrap") is None:
        return f"mmdebstrap is not installed: {_INSTALL} mmdebstrap"
    if shutil.which("apt-get") is None:
        return "there is no apt here, whose sources say where Debian's packages are"
    if os.geteuid() != 0 and shutil.which("newuidmap") is None:
        return f"newuidmap is not installed: {_INSTALL} uidmap; or run it as root"
    done = subprocess.run(
        [*_namespaces(), "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"this system makes no namespaces for you: {done.stderr.strip()}; as root it may"
    return ""


def base_of(suite: str, directory: Path) -> tuple[Path, str]:
    """The bare system as a tar archive, made where it is not there yet; and a note, where one is due.

    Raises RoomError.
    """
    archive, note = directory / f"{suite}.tar", directory / f"{suite}.note"
    if archive.exists():
        return archive, note.read_text(encoding="utf-8") if note.exists() else ""
    directory.mkdir(parents=True, exist_ok=True)
    new = directory / f"{suite}.new.tar"
    # With --quiet some releases of mmdebstrap keep back why apt failed.
    command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(BARE)}", suite, str(new)]
    lines = "\n".join(sources_of(suite))
    done = _with_input([*command, "-"], lines)
    said = ""
    if done.returncode and "is expired" in done.stderr:
        said = f"the mirror's list of {suite} has expired, and was taken all the same"
        option = '--aptopt=Acquire::Check-Valid-Until "false"'
        done = _with_input([*command[:1], option, *command[1:], "-"], lines)
    if done.returncode:
        raise RoomError(f"mmdebstrap makes no {suite}: {done.stderr.strip()[-600:]}")
    note.write_text(said, encoding="utf-8")
    new.rename(archive)
    return archive, said


def make_room(archive: Path, root: Path, user: str, log: Path) -> Room:
    """A fresh room, from the bare system."""
    room = Room(root, user, log)
    if root.exists():
        room.remove()
    root.mkdir(parents=True)
    _as_root(["tar", "--extract", "--numeric-owner", f"--file={archive}", f"--directory={root}"])
    if user != "root":
        room.run_as_root(f"useradd --create-home --uid {_UID} --shell /bin/bash {user}")
    for name in _REACHING_FILES:
        _copy(Path(name), root / name.lstrip("/"))
    for name in _REACHING_OF_A_HOME:
        there = root / room.home.lstrip("/") / name
        if _copy(Path.home() / name, there):
            room.give(root / room.home.lstrip("/") / name.partition("/")[0])
    for value in reaching().values():
        if value.startswith("/") and value.endswith((".crt", ".pem")):
            _copy(Path(value), root / value.lstrip("/"))
    room.cost = Cost()
    return room


def used_megabytes(root: Path) -> float:
    """Disk that a room takes."""
    text = _as_root(["du", "--summarize", "--one-file-system", "--block-size=1K", str(root)])
    return int(text.split()[0]) / 1024


def sources_of(suite: str) -> list[str]:
    """Lines of sources.list for a suite, with the mirrors that this system's apt takes Debian from."""
    form = "$(LABEL)\t$(REPO_URI)\t$(COMPONENT)"
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", form, "Identifier: Packages"],
        capture_output=True,
        text=True,
        check=True,
    )
    mirrors: dict[str, str] = {}
    for line in done.stdout.splitlines():
        label, mirror, component = line.split("\t")
        if component == "main":
            mirrors.setdefault(label, mirror)
    if "Debian" not in mirrors:
        raise RoomError("this system's apt knows no mirror of Debian (after apt-get update)")
    lines = [f"deb {mirrors['Debian']} {suite} main"]
    if suite not in {"testing", "sid", "unstable"}:
        lines.append(f"deb {mirrors['Debian']} {suite}-updates main")
        if security := mirrors.get("Debian-Security"):
            lines.append(f"deb {security} {suite}-security main")
    return lines


def reaching() -> Mapping[str, str]:
    """The host's variables that programs need to reach package registries."""
    return {name: os.environ[name] for name in _REACHING if name in os.environ}


def received_bytes() -> int:
    """What all network interfaces but the loopback have received since the host booted."""
    lines = (line.partition(":") for line in Path("/proc/net/dev").read_text().splitlines()[2:])
    return sum(int(numbers.split()[0]) for name, _, numbers in lines if name.strip() != "lo")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _namespaces() -> list[str]:
    """The program that makes a room's namespaces; where it is not root, root and more users are mapped in."""
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--propagation=private"]
    if os.geteuid() != 0:
        words += ["--map-root-user", "--map-auto", "--setuid", "0", "--setgid", "0"]
    return words


def _in_namespaces(words: Sequence[str], output: int) -> int:
    """Run it on two cores, and return its exit status. Ctrl-C ends all of it."""
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:CORES])
    process = subprocess.Popen(
        ["taskset", "--cpu-list", cores, "setpriv", "--pdeathsig", "KILL", *_namespaces(), *words],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _as_root(words: Sequence[str]) -> str:
    """Run it as the rooms' root: the host's, or the one that is mapped in."""
    if os.geteuid() != 0:
        words = ["unshare", "--map-root-user", "--map-auto", "--setuid", "0", "--setgid", "0", *words]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def _with_input(words: Sequence[str], text: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, input=text, capture_output=True, text=True, check=False)


def _copy(path: Path, to: Path) -> bool:
    """Copy a file's content, where there is one."""
    if not path.is_file():
        return False
    _as_root(["install", "-D", "--mode=644", str(path), str(to)])
    return True
