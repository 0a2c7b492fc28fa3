"""What is in a bundle, and what it is called there."""

from datetime import datetime

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.kernel import Origin

FORMAT = 1
"""Raised with every change that an older ktrial would misread."""
CONTENTS = "bundle.json"
STUDY, STUDY_FILE = "study.json", "study.toml"
RESULT = "result.json"
PAGE, MARKDOWN = "report.html", "report.md"
DIFFERENCES = "kernel-differences.json"
SEARCHED = "search.json"
PACKAGES = "packages.txt"
README, CRATE = "README.md", "ro-crate-metadata.json"
LICENCE = "LICENSE.GPL-2.0.txt"
KERNELS, PATCHES = "kernels", "patches"
MOST_TRIALS = 20_000
MOST_PARTS = 1000
"""Profiles, or series, of one trial."""


def trial_name(number: int) -> str:
    """Trials are numbered in the study's run order."""
    return f"trials/{number:05}.json"


def part_name(kind: str, trial: int, number: int) -> str:
    """A trial's profile, or what was read over time: `profiles`, `series`."""
    return f"{kind}/{trial:05}-{number:03}.json"


class KernelEntry(Model):
    """A kernel that treatments boot."""

    asked: str
    """As the study names it, or the name of what it builds."""
    release: str = ""
    digest: str = ""
    """SHA-256 over image, modules and configuration; empty where no trial had it."""
    config_digest: str = ""
    package: str = ""
    origin: Origin | None = None
    """None where the kernel was not in the cache any more when the bundle was made."""
    obtain: str = ""
    """A name by which ktrial obtains just this one: `debian:6.1.0-50-cloud-amd64`; empty where none does."""
    files: tuple[str, ...] = ()
    """Its files in the bundle, below `kernels/DIGEST/`."""


class Guests(Model):
    """ktrial's own programs in and around guests, of the installation that made the bundle."""

    revision: str = ""
    """The last commit of ktrial that changed their sources; empty where it is not known."""
    programs: dict[str, str] = Field(default_factory=dict)
    """Name → SHA-256, as crates/SHA256SUMS has them."""


class BundleContents(Model):
    """`bundle.json`: what a bundle says of itself. Everything that verdicts rest on is in other files."""

    format: int = FORMAT
    ktrial: str
    """The version that wrote it."""
    study: str
    study_digest: str
    created: datetime
    ended: datetime
    """When the last of its trials began."""
    planned: int
    trials: int
    machine: str
    """`exact`, `kvm`, `host`."""
    versions: tuple[str, ...]
    """Of ktrial, that ran trials."""
    qemu: tuple[str, ...]
    kernels: tuple[KernelEntry, ...] = ()
    guests: Guests = Guests()
    patches: dict[str, str] = Field(default_factory=dict)
    """SHA-256 → what the patch was called; the patch is `patches/SHA-256.patch`, where it could be read."""
    host_files: tuple[str, ...] = ()
    """Files of the author's system that guests were given, and that are not in the bundle."""
    licence: str = ""
    """An SPDX identifier; empty: its author said none."""
