"""Builds the guest programs into the wheel: they are data of the package, made from crates/."""

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GuestPrograms(BuildHookInterface[Any]):
    """Runs crates/build-* before anything but an editable install (there, `make guest` does it)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the guest programs; they reach the wheel as artifacts (pyproject.toml)."""
        if version != "editable":
            for build in ("build-guest", "build-plugin"):
                subprocess.run([Path(self.root) / "crates" / build], check=True)
            # What is loaded into QEMU (lockstep.so, the plugin) is for this architecture's hosts.
            build_data["tag"] = "py3-none-linux_x86_64"
