"""Formats that other tools read profiles in, one file each; docs/reports.md shows them.

A module here with an object `EXPORT` is found, and so is an entry point `ktrial.profile_exports` of another
package.
"""

from typing import Protocol, runtime_checkable

from ktrial import plugin_discovery
from ktrial.model.profile import Profile
from ktrial.model.warnings import DataWarning

GROUP = "ktrial.profile_exports"


@runtime_checkable
class ProfileExport(Protocol):
    """One format."""

    name: str
    """As it is typed: `speedscope`."""
    summary: str
    """What reads it, in a few words."""

    def text(self, profile: Profile) -> str:
        """The file's text. The same profile gives the same text."""
        ...


def exports() -> tuple[dict[str, ProfileExport], tuple[DataWarning, ...]]:
    """All formats by name, with a warning for each of another package's that is broken."""
    return plugin_discovery.installed(GROUP, "profile export", "EXPORT", (__name__,), _checked)


def _checked(name: str, extension: object) -> tuple[str, ProfileExport]:
    if not isinstance(extension, ProfileExport):
        raise TypeError(f"{name} is not a profile export: it lacks name, summary or text")
    return extension.name, extension
