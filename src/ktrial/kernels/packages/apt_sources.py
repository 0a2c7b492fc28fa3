"""Which archives the system's apt is set up with: apt says where, the source's file says with which key."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from debian.deb822 import Deb822

SOURCE = "source"
"""What Debian calls the architecture of source packages."""
_KEPT_OPTIONS = ("Signed-By", "Check-Valid-Until", "Check-Date", "By-Hash")
"""Options of a system's source that hold for its other suites too; not `Trusted`: signatures count."""


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
    for target in Deb822.iter_paragraphs(indextargets, use_apt_pkg=False):
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
    entries = _deb822_entries(text) if file.suffix == ".sources" else _one_line_entries(text)
    for uris, options in entries:
        if uri.rstrip("/") in {one.rstrip("/") for one in uris}:
            return tuple((name, options[name.lower()]) for name in _KEPT_OPTIONS if name.lower() in options)
    return ()


def _deb822_entries(text: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    for stanza in Deb822.iter_paragraphs(text, use_apt_pkg=False):
        yield stanza.get("URIs", "").split(), {name.lower(): value for name, value in stanza.items()}


def _one_line_entries(text: str) -> Iterator[tuple[list[str], dict[str, str]]]:
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)", line)
        if match:
            pairs = (one.partition("=") for one in (match[1] or "").split())
            yield [match[2]], {name.lower(): value for name, _, value in pairs}
