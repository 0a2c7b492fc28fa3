"""The running kernel as a Kernel: what a trial on this system records of it."""

import contextlib
import gzip
import os
import platform
from pathlib import Path

from ktrial.model.base import digest
from ktrial.model.kernel import Kernel, Origin

NAME = "running"
"""What studies and results call the kernel of the machine `host`."""

_IMAGES = ("/boot/vmlinuz-{release}", "/lib/modules/{release}/vmlinuz", "/usr/lib/modules/{release}/vmlinuz")


def running_kernel() -> Kernel:
    """It has no image where the system keeps none: it is not booted.

    Its digest is over release, version (which holds the build's date) and configuration, as far as they are
    to be read.
    """
    facts = os.uname()
    config = _config(facts.release)
    config_digest = digest(config) if config else ""
    images = (Path(image.format(release=facts.release)) for image in _IMAGES)
    return Kernel(
        name=NAME,
        release=facts.release,
        architecture=facts.machine,
        origin=Origin(provider="running", source=_distribution(), version=facts.version),
        digest=digest([facts.release, facts.version, config_digest]),
        config_digest=config_digest,
        image=next((image for image in images if image.exists()), Path()),
        vmlinux_reason="it runs already",
    )


def _distribution() -> str:
    with contextlib.suppress(OSError):  # a system without the file has no name
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    return ""


def _config(release: str) -> str:
    """Of /proc/config.gz (CONFIG_IKCONFIG_PROC), or where distributions put it; empty where it is unknown."""
    for path, opened in (("/proc/config.gz", gzip.open), (f"/boot/config-{release}", open)):
        with contextlib.suppress(OSError), opened(path, "rt") as file:  # absent, or for root only
            return str(file.read())
    return ""
