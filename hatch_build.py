"""Puts into the wheel what lies beside the package: guest programs, made from crates/, and documentation."""

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GuestPrograms(BuildHookInterface[Any]):
    """Runs crates/build-* before anything but an editable install (there, `make guest` does it)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the guest programs, which reach the wheel as artifacts (pyproject.toml); add docs/*.md."""
        if version != "editable":
            for build in ("build-guest", "build-plugin"):
                subprocess.run([Path(self.root) / "crates" / build], check=True)
            docs = Path(self.root) / "docs"
            pages = [*docs.glob("*.md"), *docs.glob("architecture/*.md")]
            places = {str(page): f"ktrial/docs/{page.relative_to(docs)}" for page in pages}
            build_data["force_include"].update(places)
            # What is loaded into QEMU (lockstep.so, the plugin) is for this architecture's hosts.
            build_data["tag"] = "py3-none-linux_x86_64"
