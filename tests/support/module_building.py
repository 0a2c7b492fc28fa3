"""Kernel modules built against a distribution's headers, which ktrial's own apt fetches."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from ktrial.kernels import silent
from ktrial.kernels.packages.apt import Package, PrivateApt, configured_sources, run_tool
from ktrial.kernels.providers.debian import debian_archives
from ktrial.model.kernel import Kernel

NAMES = r"linux-(headers|kbuild)-\d\S*"


@dataclass(frozen=True)
class Headers:
    """What modules of one kernel are built against, unpacked."""

    tree: Path
    """As /usr/src/linux-headers-<release> would be, were it installed."""

    def build(self, source: Path, **defined: int | str) -> Path:
        """Build the one file `source` where it lies. Returns the module: the same bytes wherever that is."""
        flags = " ".join(f"-D{name}={_c_constant(value)}" for name, value in defined.items())
        (source.parent / "Kbuild").write_text(f"obj-m := {source.stem}.o\nccflags-y := {flags}\n")
        # The headers name the compiler of their distribution's release, the host may have another one.
        # Debugging information names the directory: a longer path is a larger file in the guest, which moves
        # all that lies in its memory, and refaults differ by a third.
        command = ["make", "-C", str(self.tree), f"M={source.parent}", "CC=gcc", "KCFLAGS=-g0", "modules"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return source.with_suffix(".ko")


def headers(kernel: Kernel, place: Path) -> Headers:
    """The headers of a Debian kernel, below `place`: fetched once, whoever else wants them meanwhile."""
    root = place / kernel.release
    tree = root / "usr" / "src" / f"linux-headers-{kernel.release}"
    with FileLock(place / "headers.lock"):
        if not root.exists():
            _unpack(kernel, root, tree)
    return Headers(tree)


def _unpack(kernel: Kernel, root: Path, tree: Path) -> None:
    place = root.parent
    unpacking = place / f"{kernel.release}.unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)
    debs = unpacking / "debs"
    debs.mkdir(parents=True)
    for file in _fetched(kernel, place / "apt", debs):
        subprocess.run(["dpkg-deb", "-x", file, unpacking], check=True)
    makefile = unpacking / tree.relative_to(root) / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{root}/usr/src/"))
    unpacking.rename(root)


def _fetched(kernel: Kernel, state: Path, into: Path) -> list[Path]:
    apt = PrivateApt(state, "Debian", "amd64", NAMES)
    targets = [["apt-get", "indextargets", *more] for more in ([], ["--no-release-info"])]
    sources = configured_sources("\n".join(run_tool(kernel.name, each).stdout for each in targets))
    packages = apt.packages(debian_archives(kernel.name, sources), kernel.name, silent)
    return apt.download(_needed(kernel, packages), into, kernel.name, silent)


def _needed(kernel: Kernel, packages: tuple[Package, ...]) -> list[Package]:
    version = kernel.origin.version
    there = {package.name: package for package in packages if package.version == version}
    first = there[f"linux-headers-{kernel.release}"]
    wanted = [name.strip().split(" ")[0] for name in first.depends.split(",")]
    return [first, *(there[name] for name in wanted if name in there)]


def _c_constant(value: int | str) -> str:
    return str(value) if isinstance(value, int) else f'\\"{value}\\"'
