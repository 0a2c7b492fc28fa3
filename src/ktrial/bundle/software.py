"""With what a bundle was made: versions of packages, ktrial's own programs."""

import re
import subprocess
from collections import deque
from importlib import metadata
from pathlib import Path

from ktrial.bundle.contents import Guests
from ktrial.installation import package_directory
from ktrial.machines import guest_programs

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_REVISION = "REVISION"
_COMMIT = re.compile(r"[0-9a-f]{40}")
"""Written beside the guest programs when a wheel is built."""


def packages() -> str:
    """The Python packages that ktrial needs, as they are installed: a line each, `numpy==2.1.0`."""
    seen: dict[str, str] = {}
    waiting = deque(["ktrial"])
    while waiting:
        name = _canonical(waiting.popleft())
        if name in seen:
            continue
        try:
            there = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # of another system or Python: a marker of the requirement says so
        seen[name] = there.version
        needed = (text for text in there.requires or [] if "extra ==" not in text)
        waiting.extend(match[0] for text in needed if (match := _NAME.match(text)))
    return "".join(f"{name}=={seen[name]}\n" for name in sorted(seen))


def _canonical(name: str) -> str:
    """PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def guests() -> Guests:
    """The guest's programs that come with this ktrial, and the revision that they were built from."""
    where = guest_programs.directory()
    return Guests(revision=_revision(where), programs=guest_programs.published(where))


def _revision(where: Path) -> str:
    try:
        noted = (where.parent / _REVISION).read_text("ascii").strip()
    except (OSError, ValueError):
        noted = _last_commit(package_directory().parents[1])
    return noted if _COMMIT.fullmatch(noted) else ""


def _last_commit(checkout: Path) -> str:
    """Of the guest programs' sources, in a checkout of ktrial; empty in any other place."""
    if not (checkout / "crates" / "agent").is_dir():
        return ""
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%H", "--", "crates"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def licence_text() -> bytes:
    """The GNU General Public License, version 2: ktrial's, and Linux's."""
    package = package_directory()
    places = (package / "LICENSE", package.parents[1] / "LICENSE")
    return next((place.read_bytes() for place in places if place.is_file()), b"")
