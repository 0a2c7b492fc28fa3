"""Debian's kernels, from the mirror that this system's apt is set up with.

Up to Linux 6.19 one package, linux-image-<release>, holds image, configuration and modules. From 7.0 it is
empty and depends on linux-binary-<release> (image), linux-modules-<release> and linux-base-<release>
(configuration). Both are unpacked in the same way: the package and those of its dependencies that belong to
the kernel.
"""

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from debian.debian_support import Version

from ktrial.kernels import Progress, silent
from ktrial.kernels.depmod import DEPMOD
from ktrial.kernels.errors import BadKernelName, BadRange, NoDebianSource, NoSuchRelease
from ktrial.kernels.files import require_space
from ktrial.kernels.kernel_cache import Cache
from ktrial.kernels.packages import unpack
from ktrial.kernels.packages.apt import (
    APT,
    Archive,
    ConfiguredSource,
    Package,
    PrivateApt,
    configured_sources,
    fetch_failed,
    run_tool,
)
from ktrial.kernels.packages.deb import DPKG_DEB
from ktrial.kernels.providers import Parts, Request
from ktrial.model.kernel import Origin
from ktrial.model.notation import nearest
from ktrial.system_tools import Tool

RELEASES = ("bullseye", "bookworm", "trixie", "forky", "duke")
"""Code names whose suites are looked for; one that an archive does not hold is skipped."""


_MAIN_SUITES = (
    *(name + kind for name in RELEASES for kind in ("", "-updates", "-backports")),
    "sid",
    "experimental",
)


_SECURITY_SUITES = tuple(name + "-security" for name in RELEASES)


_KNOWN_SUITE = re.compile(
    rf"({'|'.join(RELEASES)}|sid|(old)*stable|testing|unstable|experimental)(-[a-z-]+)?(/updates)?/?"
)


_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


_ARCHITECTURE = "amd64"


_PACKAGES = r"linux-(image|binary|modules|base)-\d\S*-amd64"


_PART = re.compile(r"linux-(binary|modules|base)-\d")


_RELEASE = re.compile(r"linux-image-(?P<release>(?P<abi>\d\S*?)(-(?P<flavour>cloud|rt))?-amd64)")


_WANTED = re.compile(r"(?P<version>\d[\w.+~-]*)(:(?P<flavour>\w+))?")


_DEFAULT_FLAVOUR, _FLAVOURS = "cloud", ("cloud", "generic", "rt")


_RECENT_SECONDS = 600
"""Lists younger than this are not fetched again for a name that they lack."""


_VMLINUX_BYTES = 80 << 20


@dataclass(frozen=True)
class _Candidate:
    package: Package
    release: str
    """`uname -r`."""
    abi: str
    """The release without flavour and architecture: `6.1.0-50`, `6.12.90+deb12`."""
    flavour: str

    @property
    def upstream(self) -> str:
        """Linux's own version: `6.1.176`, `7.3~rc7`."""
        return Version(self.package.version).upstream_version or ""

    def answers(self, version: str) -> bool:
        """Whether it is what a user calls `version`."""
        longer = self.upstream.startswith((version + ".", version + "~"))
        return longer or version in {self.upstream, self.abi, self.release}


class Debian:
    """Names like `debian:6.1`, `debian:6.12:rt`, `debian:6.12.90`, `debian:6.12.90+deb12-cloud-amd64`."""

    prefix = "debian"
    summary = "debian:VERSION[:cloud|generic|rt], such as debian:6.12 or debian:6.12.90+deb12-cloud-amd64"
    takes_files = False
    remembers = True

    def canonical(self, name: str, wanted: str) -> str:
        """Leave the default flavour out: `debian:6.1:cloud` is `debian:6.1`."""
        version, flavour = _parse(name, wanted)
        given_whole = version.endswith("-" + _ARCHITECTURE)
        return (
            f"debian:{version}"
            if given_whole or flavour == _DEFAULT_FLAVOUR
            else f"debian:{version}:{flavour}"
        )

    def release(self, wanted: str) -> str:
        """Debian's packages are named by it."""
        return _parse(wanted, wanted)[0]

    def tools(self, wanted: str) -> tuple[Tool, ...]:
        """What fetches and unpacks it."""
        return (APT, DPKG_DEB, DEPMOD)

    def fetch(self, request: Request) -> Parts:
        """Find the newest package that answers, fetch it and what it depends on, and unpack it."""
        apt = PrivateApt(request.state, "Debian", _ARCHITECTURE, _PACKAGES)
        archives = debian_archives(request.name, system_sources(request.name))
        oldest = _RECENT_SECONDS if request.refresh else None
        packages = apt.packages(archives, request.name, request.progress, *([oldest] if oldest else []))
        try:
            chosen = choose(request.name, request.wanted, packages)
        except NoSuchRelease as error:
            if problems := apt.problems():
                before = "some package lists are missing: "
                raise fetch_failed(request.name, "Debian", problems[:3], before) from error
            if apt.age() < _RECENT_SECONDS:
                raise
            packages = apt.packages(archives, request.name, request.progress, _RECENT_SECONDS)
            chosen = choose(request.name, request.wanted, packages)
        wanted = needed_packages(chosen.package, packages)
        size = sum(package.size + package.installed for package in wanted) + _VMLINUX_BYTES
        require_space(request.workspace, size)
        root = request.workspace / "root"
        debs = request.workspace / "debs"
        debs.mkdir()
        for file in apt.download(wanted, debs, request.name, request.progress):
            request.progress("unpacking the packages")
            unpack(request.name, file, root)
            file.unlink()
        return _parts(root, chosen, wanted)


def debian_archives(name: str, sources: list[ConfiguredSource]) -> tuple[Archive, ...]:
    """Debian's archives among the system's sources, with all suites to look for. Raises NoDebianSource."""
    archives: dict[str, Archive] = {}
    for source in sources:
        known = _KNOWN_SUITE.fullmatch(source.suite) is not None
        if source.origin == "Debian" or (not source.origin and known):
            security = source.label == "Debian-Security" or "-security" in source.suite + source.uri
            suites = _SECURITY_SUITES if security else _MAIN_SUITES
            options = dict(source.options)
            if "Signed-By" not in options and _KEYRING.exists():
                options["Signed-By"] = str(_KEYRING)
            before = archives.get(source.uri, Archive(source.uri, (), tuple(options.items())))
            archives[source.uri] = replace(before, suites=tuple(dict.fromkeys(before.suites + suites)))
    if not archives:
        raise NoDebianSource(name=name)
    return tuple(archives.values())


@dataclass(frozen=True)
class Available:
    """A kernel that the mirrors hold."""

    name: str
    """As `ktrial kernel add` takes it: `debian:6.12.90+deb12-cloud-amd64`."""
    release: str
    """`uname -r`."""
    version: str
    """The package's."""
    suite: str


def available(name: str, directory: Path, flavour: str, progress: Progress) -> tuple[Available, ...]:
    """Every kernel of a flavour that can be had whole, in Debian's order of versions.

    `directory`: where apt keeps its lists. Raises NoDebianSource, FetchFailed, ToolMissing.
    """
    apt = PrivateApt(directory, "Debian", _ARCHITECTURE, _PACKAGES)
    packages = apt.packages(debian_archives(name, system_sources(name)), name, progress)
    newest: dict[str, _Candidate] = {}
    for one in sorted(_candidates(packages), key=lambda one: Version(one.package.version)):
        # A package of a series (linux-image-6.12-cloud-amd64) only leads to that of a release.
        leads_on = "linux-image-" in one.package.depends
        if one.flavour == flavour and not leads_on and not _missing(one.package, packages):
            newest[one.release] = one
    return tuple(
        Available(f"debian:{one.release}", one.release, one.package.version, one.package.suite)
        for one in sorted(newest.values(), key=lambda one: Version(one.package.version))
    )


def choose(name: str, wanted: str, packages: tuple[Package, ...]) -> _Candidate:
    """Return the newest kernel that answers `wanted`, by Debian's order of versions. Raises NoSuchRelease."""
    version, flavour = _parse(name, wanted)
    known = _candidates(packages)
    complete = [one for one in known if not _missing(one.package, packages)]
    answering = [one for one in complete if one.answers(version)]
    fitting = [one for one in answering if one.flavour == flavour or one.release == version]
    if fitting:
        return max(fitting, key=lambda one: Version(one.package.version))
    if gone := [name for one in known if one.answers(version) for name in _missing(one.package, packages)]:
        problem = f"the mirror has lost a part of every {version} ({gone[-1]})"
        available = "versions there: " + ", ".join(_short({one.upstream for one in complete}))
    elif answering:
        problem = f"there is {version}, but not with flavour {flavour}"
        available = "flavours there: " + ", ".join(sorted({one.flavour for one in answering}))
    else:
        upstream = {one.upstream for one in complete}
        near = nearest(version, upstream | {one.abi for one in complete})
        problem = f"no suite of the configured mirrors holds version {version}{near}"
        available = "versions there: " + ", ".join(_short(upstream))
    raise NoSuchRelease(distribution="Debian", name=name, problem=problem, available=available)


def needed_packages(package: Package, packages: tuple[Package, ...]) -> list[Package]:
    """Return the package and what it depends on of the same kernel, in the same version."""
    by_name = {one.name: one for one in packages if one.version == package.version}
    needed = {package.name: package}
    waiting = [package]
    while waiting:
        for name in _dependencies(waiting.pop()):
            if name in by_name and name not in needed:
                needed[name] = by_name[name]
                waiting.append(by_name[name])
    return list(needed.values())


def _parse(name: str, wanted: str) -> tuple[str, str]:
    match = _WANTED.fullmatch(wanted)
    flavour = (match["flavour"] if match else None) or _DEFAULT_FLAVOUR
    if match is None:
        problem = "a version is missing" if not wanted else f"'{wanted}' is not a version with a flavour"
    elif flavour not in _FLAVOURS:
        problem = f"Debian builds no flavour '{flavour}'{nearest(flavour, _FLAVOURS)}"
    else:
        return match["version"], flavour
    raise BadKernelName(name=name, problem=problem, allowed=Debian.summary)


def _candidates(packages: tuple[Package, ...]) -> list[_Candidate]:
    matches = ((package, _RELEASE.fullmatch(package.name)) for package in packages)
    return [
        _Candidate(package, match["release"], match["abi"], match["flavour"] or "generic")
        for package, match in matches
        if match
    ]


def _dependencies(package: Package) -> list[str]:
    return [name for name in re.findall(r"linux-[^\s,|(]+", package.depends) if _PART.match(name)]


def _missing(package: Package, packages: tuple[Package, ...]) -> list[str]:
    """Parts that no suite holds: backports keep signed images longer than what was built beside them.

    linux-base is not among them: 6.18 depends on it, but has its configuration in the image's package.
    """
    names = {one.name for one in packages if one.version == package.version}
    parts = [name for name in _dependencies(package) if not name.startswith("linux-base-")]
    return [name for name in parts if name not in names]


def _short(versions: set[str]) -> list[str]:
    """`6.1`, `6.12`, …: each series once, in order."""
    series = {".".join(re.split(r"[.~]", version)[:2]) for version in versions}
    return sorted(series, key=lambda one: [int(part) for part in one.split(".")])


def system_sources(name: str) -> list[ConfiguredSource]:
    """What the system's apt is set up with. Raises NoDebianSource, FetchFailed."""
    if shutil.which("apt-get") is None:
        raise NoDebianSource(name=name)
    command = ["apt-get", "indextargets"]
    outputs = (run_tool(name, [*command, *more]).stdout for more in ([], ["--no-release-info"]))
    return configured_sources("\n".join(outputs))


def _parts(root: Path, chosen: _Candidate, packages: list[Package]) -> Parts:
    release = chosen.release
    modules = _first(root, f"usr/lib/modules/{release}", f"lib/modules/{release}")
    image = _first(root, f"boot/vmlinuz-{release}", f"usr/lib/modules/{release}/vmlinuz")
    if image is None:
        raise NoSuchRelease(
            distribution="Debian",
            name=release,
            problem=f"the packages {', '.join(one.name for one in packages)} hold no image",
            available="this layout is new to ktrial: please report it",
        )
    return Parts(
        image=image,
        modules=modules,
        config=_first(root, f"boot/config-{release}", f"usr/lib/modules/{release}/config"),
        system_map=_first(root, f"boot/System.map-{release}", f"usr/lib/modules/{release}/System.map"),
        flavour=chosen.flavour,
        origin=Origin(
            provider="debian",
            source=chosen.package.name,
            version=chosen.package.version,
            suite=chosen.package.suite,
            packages=tuple(f"{one.name}={one.version}" for one in packages),
        ),
    )


def _first(root: Path, *names: str) -> Path | None:
    return next((root / name for name in names if (root / name).exists()), None)


PROVIDER = Debian()


# Which releases of a distribution's kernel can be had, between two of them.

_PREFIX = "debian:"


_DEBIAN_RELEASES_FLAVOURS = ("cloud", "generic", "rt")


def releases(flavour: str = "cloud", progress: Progress = silent) -> tuple[Available, ...]:
    """Debian's kernels of one flavour that the configured mirrors hold, oldest first.

    Raises NoDebianSource, FetchFailed, ToolMissing.
    """
    cache = Cache()
    with cache.adding("debian:releases", progress):
        return available("debian:releases", cache.root / "providers" / "debian", flavour, progress)


def releases_between(text: str, progress: Progress = silent) -> tuple[Available, ...]:
    """The releases from A to B in `debian:6.1..6.12` or `6.1..6.12:generic`: the newest that each names.

    Raises BadRange, and as `releases`.
    """
    first, dots, last = text.removeprefix(_PREFIX).partition("..")
    last, _, flavour = last.removeprefix(_PREFIX).partition(":")
    first, _, other_flavour = first.partition(":")
    flavour = flavour or other_flavour or "cloud"
    if not (dots and first and last):
        raise BadRange(text=text, problem="write A..B", advice="such as debian:5.10..6.1")
    if flavour not in _DEBIAN_RELEASES_FLAVOURS or other_flavour not in ("", flavour):
        problem = "both ends have to be of one flavour"
        raise BadRange(text=text, problem=problem, advice=f"one of {', '.join(_DEBIAN_RELEASES_FLAVOURS)}")
    known = releases(flavour, progress)
    ends = [_newest(text, version, known) for version in (first, last)]
    if ends[0] >= ends[1]:
        problem = f"{known[ends[1]].release} is no newer than {known[ends[0]].release}"
        raise BadRange(text=text, problem=problem, advice="write the older one first")
    return known[ends[0] : ends[1] + 1]


def _newest(text: str, version: str, known: tuple[Available, ...]) -> int:
    """The place of the newest release that a version means."""
    fitting = [at for at, one in enumerate(known) if _is_meant(version, one)]
    if not fitting:
        there = ", ".join(dict.fromkeys(".".join(one.version.split(".")[:2]) for one in known))
        problem = f"no suite of the configured mirrors holds {version}"
        raise BadRange(text=text, problem=problem, advice=f"there are {there}")
    return fitting[-1]


def _is_meant(version: str, one: Available) -> bool:
    longer = one.version.startswith((f"{version}.", f"{version}-", f"{version}~"))
    return longer or one.version == version or one.release == version or one.release.startswith(f"{version}-")
