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
            if revision := self._revision():
                places[str(revision)] = "ktrial/_guest/REVISION"
            build_data["force_include"].update(places)
            # What is loaded into QEMU (lockstep.so, the plugin) is for this architecture's hosts.
            build_data["tag"] = "py3-none-linux_x86_64"

    def _revision(self) -> Path | None:
        """A file with the last commit that changed the guest programs' sources; None where there is none."""
        command = ["git", "-C", self.root, "log", "-1", "--format=%H", "--", "crates"]
        try:
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
        file = Path(self.root) / "target" / "REVISION"
        file.parent.mkdir(exist_ok=True)
        file.write_text(commit, encoding="ascii")
        return file if commit else None
