"""Providers of kernels: one file each, found by its object `PROVIDER`."""

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from ktrial import plugin_discovery
from ktrial.kernels import Progress
from ktrial.kernels.errors import BadKernelName
from ktrial.model.kernel import Kernel, Origin
from ktrial.model.notation import nearest
from ktrial.system_tools import Tool

# Providers: where kernels come from. One file each in `providers/`, or an entry point of another package.

ENTRY_POINTS = "ktrial.kernel_providers"
"""The group in which other packages name an object that is a KernelProvider."""


@dataclass(frozen=True)
class Request:
    """What a provider is asked for."""

    name: str
    """The whole name, for messages."""
    selector: str
    """What stands behind the provider's prefix and its colon; empty where there is none."""
    workspace: Path
    """An empty directory for the parts; it is on the cache's file system, and goes away afterwards."""
    state: Path
    """The provider's own directory in the cache: it stays. It may not exist yet."""
    progress: Progress
    modules: Path | None = None
    config: Path | None = None
    refresh: bool = False
    """Look for something newer, even where old lists would do."""


@dataclass(frozen=True)
class Parts:
    """What a provider found. Files in the workspace are moved into the cache, others are copied."""

    image: Path
    origin: Origin
    flavour: str = ""
    modules: Path | None = None
    """The directory that holds the modules (`…/lib/modules/<release>`)."""
    config: Path | None = None
    system_map: Path | None = None


@runtime_checkable
class KernelProvider(Protocol):
    """One source of kernels."""

    prefix: str
    """What names start with: `debian` in `debian:6.1`."""
    summary: str
    """One line for help texts: the names it understands."""
    takes_files: bool
    """Whether modules and a configuration can be given beside the name."""
    remembers: bool
    """Whether a name, once added, stays what it is until a refresh is asked for. False: look each time."""

    def canonical(self, name: str, selector: str) -> str:
        """Write one kernel's name in one way. Raises BadKernelName; looks at nothing but the name."""
        ...

    def fetch(self, request: Request) -> Parts:
        """Bring the kernel's parts. Raises a KernelError that says what is wrong."""
        ...


@runtime_checkable
class Keeps(Protocol):
    """A provider that keeps files of its own for a kernel, beside what is in the cache."""

    def forget(self, selector: str) -> int:
        """Delete them; return how many bytes that freed. What another process is using stays."""
        ...


@runtime_checkable
class GoesStale(Protocol):
    """A provider whose names may mean another kernel than they did: a revision that moves."""

    def outdated(self, selector: str, kernel: Kernel) -> bool:
        """Whether the cache's kernel of that name is no longer what the name means. Raises KernelError."""
        ...


@runtime_checkable
class RunsTools(Protocol):
    """A provider that runs programs of this system."""

    def tools(self, selector: str) -> tuple[Tool, ...]:
        """What brings the kernel, where it is not in the cache. Nothing is fetched. Raises KernelError."""
        ...


@runtime_checkable
class KnowsWithoutFetching(Protocol):
    """A provider that keeps lists of what it has."""

    def is_listed(self, name: str, selector: str, state: Path) -> bool:
        """Whether the lists that are here have the kernel; False: they are missing, or too old to tell.

        Nothing is fetched. Raises KernelError where they are new enough, and do not have it.
        """
        ...


@runtime_checkable
class TellsRelease(Protocol):
    """A provider whose names tell which release a kernel is, as far as `6.12`."""

    def release(self, selector: str) -> str:
        """What `uname -r` of the kernel begins with; empty where the name does not tell."""
        ...


def all_providers() -> dict[str, KernelProvider]:
    """All providers by prefix: the built-in ones and those of other packages. A broken one only warns."""
    packages = (__name__,)
    providers, broken = plugin_discovery.installed(
        ENTRY_POINTS, "kernel provider", "PROVIDER", packages, _check
    )
    for warning in broken:
        warnings.warn(warning.text, stacklevel=2)
    return providers


def _check(_name: str, extension: object) -> tuple[str, KernelProvider]:
    if not isinstance(extension, KernelProvider):
        raise TypeError("it is not a kernel provider")
    return extension.prefix, extension


def provider_named(prefix: str) -> KernelProvider:
    """The provider of a reference that was made here."""
    return all_providers()[prefix]


_VERSION = re.compile(r"\d+(\.\d+)+([.~+-]\w+)*(:\w+)?")


def full_name(name: str) -> str:
    """`debian:6.12` for `6.12`, the only kernel that a bare version can mean; other names as they are."""
    return f"debian:{name}" if _VERSION.fullmatch(name) else name


def provider_of(name: str) -> tuple[KernelProvider, str]:
    """Return the provider that `name` belongs to, and what is wanted from it. Raises BadKernelName."""
    prefix, _, selector = full_name(name).partition(":")
    providers = all_providers()
    allowed = "; ".join(provider.summary for provider in providers.values())
    if prefix in providers:
        return providers[prefix], selector
    if not prefix or prefix != prefix.strip() or "/" in prefix:
        problem = "a file is named path:FILE" if "/" in prefix else "it is empty"
    else:
        problem = f"there is no provider '{prefix}'{nearest(prefix, providers)}"
    raise BadKernelName(name=name, problem=problem, allowed=allowed)
