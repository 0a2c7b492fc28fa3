"""Kernels from RPM packages in a directory, as `dnf download` leaves them there."""

import re
from pathlib import Path
from typing import NamedTuple

from ktrial.kernels.depmod import DEPMOD
from ktrial.kernels.errors import BadKernelName, NoSuchRelease
from ktrial.kernels.packages import unpack
from ktrial.kernels.packages.rpm import BSDTAR
from ktrial.kernels.providers import Parts, Request
from ktrial.model.kernel import Origin
from ktrial.model.notation import nearest
from ktrial.system_tools import Tool

_ARCHITECTURE = "x86_64"
_PACKAGE = re.compile(
    r"(?P<name>[A-Za-z0-9._+-]+)-(?P<version>[^-]+)-(?P<release>[^-]+)\.(?P<architecture>[^.]+)\.rpm"
)
"""name-version-release.architecture.rpm: how rpm itself names a package's file."""
_PARTS = re.compile(r"kernel(-[a-z0-9+]+)?(-core|-modules|-modules-core|-modules-extra|-modules-internal)?")
_NO_PART = re.compile(r".*-(devel|headers|doc|tools|debuginfo|macros|source|syms|matched|abi-.*)")


class _RpmPackage(NamedTuple):
    file: Path
    name: str
    build: str
    """`6.11.4-301.fc41`."""


class Rpm:
    """Names like `rpm:/srv/kernels` and `rpm:/srv/kernels@6.11.4-301.fc41`."""

    prefix = "rpm"
    summary = "rpm:DIRECTORY[@VERSION-RELEASE], RPM packages of one distribution's kernels"
    takes_files = False
    remembers = True

    def canonical(self, name: str, selector: str) -> str:
        """Make the path absolute."""
        directory, build = _split(selector)
        if not directory:
            raise BadKernelName(name=name, problem="a directory is missing", allowed=self.summary)
        return f"rpm:{Path(directory).expanduser().absolute()}{f'@{build}' if build else ''}"

    def tools(self, selector: str) -> tuple[Tool, ...]:
        """What unpacks it."""
        return (BSDTAR, DEPMOD)

    def fetch(self, request: Request) -> Parts:
        """Unpack the one kernel of the directory, or the one that is asked for."""
        directory, build = _split(request.selector)
        chosen = _chosen(request.name, Path(directory).expanduser().absolute(), build)
        root = request.workspace / "root"
        for number, package in enumerate(chosen):
            request.progress("unpacking the packages", number, len(chosen))
            unpack(package.file, root)
        return _parts(request.name, root, chosen)


def _split(selector: str) -> tuple[str, str]:
    directory, _, build = selector.partition("@")
    return directory, build.removesuffix(f".{_ARCHITECTURE}")


def _chosen(name: str, directory: Path, requested: str) -> list[_RpmPackage]:
    """The packages of one build. Raises NoSuchRelease: there is none, or there are several."""
    packages = sorted(_packages(directory))
    builds = sorted({package.build for package in packages})
    if not packages:
        problem = f"{directory} has no kernel package for {_ARCHITECTURE} (kernel-core-*.{_ARCHITECTURE}.rpm)"
        fetch = "dnf download kernel-core kernel-modules-core kernel-modules; on openSUSE kernel-default"
        raise NoSuchRelease(distribution="That directory", name=name, problem=problem, available=fetch)
    if not requested and len(builds) > 1:
        available = f"say which: {', '.join(f'rpm:{directory}@{build}' for build in builds)}"
        raise NoSuchRelease(
            distribution="That directory", name=name, problem="it has several kernels", available=available
        )
    build = requested or builds[0]
    if build not in builds:
        problem = f"it has no {build}{nearest(build, builds)}"
        available = f"there are {', '.join(builds)}"
        raise NoSuchRelease(distribution="That directory", name=name, problem=problem, available=available)
    return [package for package in packages if package.build == build]


def _packages(directory: Path) -> list[_RpmPackage]:
    matches = ((file, _PACKAGE.fullmatch(file.name)) for file in directory.glob("kernel*.rpm"))
    return [
        _RpmPackage(file, match["name"], f"{match['version']}-{match['release']}")
        for file, match in matches
        if match
        and match["architecture"] == _ARCHITECTURE
        and _PARTS.fullmatch(match["name"])
        and not _NO_PART.fullmatch(match["name"])
    ]


def _parts(name: str, root: Path, packages: list[_RpmPackage]) -> Parts:
    trees = [path for up in ("lib", "usr/lib") for path in sorted((root / up / "modules").glob("*"))]
    for modules in trees:
        image = _first(modules / "vmlinuz", root / "boot" / f"vmlinuz-{modules.name}")
        if image:
            break
    else:
        raise NoSuchRelease(
            distribution="That directory",
            name=name,
            problem=f"{', '.join(package.file.name for package in packages)} hold no image",
            available="kernel-core (Fedora) or kernel-default (openSUSE) has it",
        )
    return Parts(
        image=image,
        modules=modules,
        config=_first(modules / "config", root / "boot" / f"config-{modules.name}"),
        system_map=_first(modules / "System.map", root / "boot" / f"System.map-{modules.name}"),
        origin=Origin(
            provider="rpm",
            source=packages[0].name,
            version=packages[0].build,
            packages=tuple(f"{package.name}={package.build}" for package in packages),
        ),
    )


def _first(*paths: Path) -> Path | None:
    # A link could lead out of the packages: only what they hold themselves is a part of the kernel.
    return next((path for path in paths if path.is_file() and not path.is_symlink()), None)


PROVIDER = Rpm()
