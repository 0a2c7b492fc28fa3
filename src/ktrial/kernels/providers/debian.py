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
from ktrial.kernels.errors import BadKernelName, KernelUsageError, NoDebianSource, NoDebugInfo, NoSuchRelease
from ktrial.kernels.files import require_space
from ktrial.kernels.kernel_cache import Cache
from ktrial.kernels.packages import unpack
from ktrial.kernels.packages.apt import (
    APT,
    OLD_SECONDS,
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
from ktrial.model.kernel import Kernel, Origin
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
_DEBUG_PACKAGES = r"linux-image-\d\S*-amd64-dbg"
_PART = re.compile(r"linux-(binary|modules|base)-\d")
_RELEASE = re.compile(r"linux-image-(?P<release>(?P<abi>\d\S*?)(-(?P<flavour>cloud|rt))?-amd64)")
_SELECTOR = re.compile(r"(?P<version>\d[\w.+~-]*)(:(?P<flavour>\w+))?")
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

    def canonical(self, name: str, selector: str) -> str:
        """Leave the default flavour out: `debian:6.1:cloud` is `debian:6.1`."""
        version, flavour = _parse(name, selector)
        given_whole = version.endswith("-" + _ARCHITECTURE)
        return (
            f"debian:{version}"
            if given_whole or flavour == _DEFAULT_FLAVOUR
            else f"debian:{version}:{flavour}"
        )

    def release(self, selector: str) -> str:
        """Debian's packages are named by it."""
        return _parse(selector, selector)[0]

    def tools(self, selector: str) -> tuple[Tool, ...]:
        """What fetches and unpacks it."""
        return (APT, DPKG_DEB, DEPMOD)

    def is_listed(self, name: str, selector: str, state: Path) -> bool:
        """By the lists that apt fetched last; those that a fetch would use decide that there is none."""
        apt = PrivateApt(state, "Debian", _ARCHITECTURE, _PACKAGES)
        packages = apt.packages_here()
        if packages is None:
            return False
        try:
            choose(name, selector, packages)
        except NoSuchRelease:
            if apt.age() < OLD_SECONDS and not apt.problems():
                raise
            return False
        return True

    def fetch(self, request: Request) -> Parts:
        """Find the newest package that answers, fetch it and what it depends on, and unpack it."""
        apt = PrivateApt(request.state, "Debian", _ARCHITECTURE, _PACKAGES)
        archives = debian_archives(request.name, system_sources(request.name))
        oldest = _RECENT_SECONDS if request.refresh else None
        packages = apt.packages(archives, request.name, request.progress, *([oldest] if oldest else []))
        try:
            chosen = choose(request.name, request.selector, packages)
        except NoSuchRelease as error:
            if problems := apt.problems():
                before = "some package lists are missing: "
                raise fetch_failed(request.name, "Debian", problems[:3], before) from error
            if apt.age() < _RECENT_SECONDS:
                raise
            packages = apt.packages(archives, request.name, request.progress, _RECENT_SECONDS)
            chosen = choose(request.name, request.selector, packages)
        needed = needed_packages(chosen.package, packages)
        size = sum(package.size + package.installed for package in needed) + _VMLINUX_BYTES
        require_space(request.workspace, size)
        root = request.workspace / "root"
        debs = request.workspace / "debs"
        debs.mkdir()
        for file in apt.download(needed, debs, request.name, request.progress):
            request.progress("unpacking the packages")
            unpack(file, root)
            file.unlink()
        return _parts(root, chosen, needed)


def debug_package(kernel: Kernel, state: Path, progress: Progress) -> tuple[PrivateApt, Package]:
    """The package with the debugging information of a kernel from Debian, in the kernel's own version.

    Raises NoDebugInfo where no mirror holds it; NoDebianSource, FetchFailed, ToolMissing.
    """
    apt = PrivateApt(state, "Debian", _ARCHITECTURE, _DEBUG_PACKAGES)
    archives = debian_archives(kernel.name, system_sources(kernel.name))
    name, version = f"linux-image-{kernel.release}-dbg", kernel.origin.version if kernel.origin else ""
    for package in apt.packages(archives, kernel.name, progress):
        if (package.name, package.version) == (name, version):
            return apt, package
    raise NoDebugInfo(name=kernel.name, problem=f"Debian's mirrors hold no {name} {version}")


def debian_archives(name: str, sources: list[ConfiguredSource]) -> tuple[Archive, ...]:
    """Debian's archives among the system's sources, with all suites to look for. Raises NoDebianSource."""
    archives: dict[str, Archive] = {}
    for source in sources:
        is_debian_suite = _KNOWN_SUITE.fullmatch(source.suite) is not None
        if source.origin == "Debian" or (not source.origin and is_debian_suite):
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
    for candidate in sorted(_candidates(packages), key=lambda candidate: Version(candidate.package.version)):
        # A package of a series (linux-image-6.12-cloud-amd64) only leads to that of a release.
        leads_on = "linux-image-" in candidate.package.depends
        if candidate.flavour == flavour and not leads_on and not _missing(candidate.package, packages):
            newest[candidate.release] = candidate
    return tuple(
        Available(
            f"debian:{candidate.release}",
            candidate.release,
            candidate.package.version,
            candidate.package.suite,
        )
        for candidate in sorted(newest.values(), key=lambda candidate: Version(candidate.package.version))
    )


def choose(name: str, selector: str, packages: tuple[Package, ...]) -> _Candidate:
    """The newest kernel that answers `selector`, by Debian's order of versions. Raises NoSuchRelease."""
    version, flavour = _parse(name, selector)
    candidates = _candidates(packages)
    complete = [candidate for candidate in candidates if not _missing(candidate.package, packages)]
    answering = [candidate for candidate in complete if candidate.answers(version)]
    fitting = [
        candidate for candidate in answering if candidate.flavour == flavour or candidate.release == version
    ]
    if fitting:
        return max(fitting, key=lambda candidate: Version(candidate.package.version))
    if gone := [
        name
        for candidate in candidates
        if candidate.answers(version)
        for name in _missing(candidate.package, packages)
    ]:
        problem = f"the mirror has lost a part of every {version} ({gone[-1]})"
        available = "versions there: " + ", ".join(_short({candidate.upstream for candidate in complete}))
    elif answering:
        problem = f"there is {version}, but not with flavour {flavour}"
        available = "flavours there: " + ", ".join(sorted({candidate.flavour for candidate in answering}))
    else:
        upstream = {candidate.upstream for candidate in complete}
        near = nearest(version, upstream | {candidate.abi for candidate in complete})
        problem = f"no suite of the configured mirrors holds version {version}{near}"
        available = "versions there: " + ", ".join(_short(upstream))
    raise NoSuchRelease(distribution="Debian", name=name, problem=problem, available=available)


def needed_packages(package: Package, packages: tuple[Package, ...]) -> list[Package]:
    """Return the package and what it depends on of the same kernel, in the same version."""
    by_name = {sibling.name: sibling for sibling in packages if sibling.version == package.version}
    needed = {package.name: package}
    waiting = [package]
    while waiting:
        for name in _dependencies(waiting.pop()):
            if name in by_name and name not in needed:
                needed[name] = by_name[name]
                waiting.append(by_name[name])
    return list(needed.values())


def _parse(name: str, selector: str) -> tuple[str, str]:
    match = _SELECTOR.fullmatch(selector)
    flavour = (match["flavour"] if match else None) or _DEFAULT_FLAVOUR
    if match is None:
        problem = "a version is missing" if not selector else f"'{selector}' is not a version with a flavour"
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
    names = {sibling.name for sibling in packages if sibling.version == package.version}
    parts = [name for name in _dependencies(package) if not name.startswith("linux-base-")]
    return [name for name in parts if name not in names]


def _short(versions: set[str]) -> list[str]:
    """`6.1`, `6.12`, …: each series once, in order."""
    series = {".".join(re.split(r"[.~]", version)[:2]) for version in versions}
    return sorted(series, key=lambda name: [int(part) for part in name.split(".")])


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
            problem=f"the packages {', '.join(package.name for package in packages)} hold no image",
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
            packages=tuple(f"{package.name}={package.version}" for package in packages),
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

    Raises KernelError, and as `releases`.
    """
    first, dots, last = text.removeprefix(_PREFIX).partition("..")
    last, _, flavour = last.removeprefix(_PREFIX).partition(":")
    first, _, other_flavour = first.partition(":")
    flavour = flavour or other_flavour or "cloud"
    if not (dots and first and last):
        raise KernelUsageError(
            f"'{text}' is not a range of releases: write A..B.", hint="such as debian:5.10..6.1"
        )
    if flavour not in _DEBIAN_RELEASES_FLAVOURS or other_flavour not in ("", flavour):
        problem = "both ends have to be of one flavour"
        raise KernelUsageError(
            f"'{text}' is not a range of releases: {problem}.",
            hint=f"one of {', '.join(_DEBIAN_RELEASES_FLAVOURS)}",
        )
    kernels = releases(flavour, progress)
    ends = [_newest(text, version, kernels) for version in (first, last)]
    if ends[0] >= ends[1]:
        problem = f"{kernels[ends[1]].release} is not newer than {kernels[ends[0]].release}"
        raise KernelUsageError(
            f"'{text}' is not a range of releases: {problem}.", hint="write the older one first"
        )
    return kernels[ends[0] : ends[1] + 1]


def _newest(text: str, version: str, kernels: tuple[Available, ...]) -> int:
    """The place of the newest release that a version means."""
    fitting = [at for at, kernel in enumerate(kernels) if _is_meant(version, kernel)]
    if not fitting:
        versions = ", ".join(dict.fromkeys(".".join(kernel.version.split(".")[:2]) for kernel in kernels))
        problem = f"no suite of the configured mirrors holds {version}"
        raise KernelUsageError(
            f"'{text}' is not a range of releases: {problem}.", hint=f"there are {versions}"
        )
    return fitting[-1]


def _is_meant(version: str, kernel: Available) -> bool:
    longer = kernel.version.startswith((f"{version}.", f"{version}-", f"{version}~"))
    return (
        longer
        or kernel.version == version
        or kernel.release == version
        or kernel.release.startswith(f"{version}-")
    )
