"""The kernel that this machine runs."""

import os
import platform
from pathlib import Path

from ktrial.kernels.depmod import DEPMOD
from ktrial.kernels.errors import BadKernelName, KernelError
from ktrial.kernels.providers import Parts, Request
from ktrial.model.kernel import Origin
from ktrial.system_tools import Tool


class Host:
    """The name `host`."""

    prefix = "host"
    summary = "host, the running kernel's own image"
    takes_files = True
    remembers = False

    def canonical(self, name: str, selector: str) -> str:
        """There is only one name."""
        if selector:
            raise BadKernelName(name=name, problem="nothing can follow 'host'", allowed=self.summary)
        return "host"

    def release(self, selector: str) -> str:
        """The running kernel's."""
        return platform.release()

    def tools(self, selector: str) -> tuple[Tool, ...]:
        """What its modules need."""
        return (DEPMOD,)

    def fetch(self, request: Request) -> Parts:
        """Look where distributions install the running kernel's parts. Raises KernelError."""
        release = platform.release()
        return host_parts(release, Path("/"), request)


def host_parts(release: str, root: Path, request: Request) -> Parts:
    """Find the parts of kernel `release` below `root`. What the request brings goes first."""
    modules = (root / "lib/modules" / release, root / "usr/lib/modules" / release)
    images = (root / "boot" / f"vmlinuz-{release}", *(directory / "vmlinuz" for directory in modules))
    configs = (root / "boot" / f"config-{release}", *(directory / "config" for directory in modules))
    # Ubuntu lets only root read it; then the symbols come from the guest.
    system_map = root / "boot" / f"System.map-{release}"
    image = next((path for path in images if path.exists()), None)
    if image is None:
        raise KernelError(
            f"The running kernel {release} has no image on this machine: looked for "
            f"{', '.join(map(str, images))}.",
            hint="give its image: ktrial kernel add path:/where/vmlinuz --modules DIR --config FILE",
        )
    return Parts(
        image=image,
        modules=request.modules or next((path for path in modules if path.is_dir()), None),
        config=request.config or next((path for path in configs if path.exists()), None),
        system_map=system_map if os.access(system_map, os.R_OK) else None,
        origin=Origin(provider="host", source=str(image)),
    )


PROVIDER = Host()
