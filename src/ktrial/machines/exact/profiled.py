"""The target that counts by function: an ExactTarget whose guests run under the QEMU plugin."""

from dataclasses import replace
from pathlib import Path

from ktrial.errors import NoPluginHere
from ktrial.machines.exact import plugin
from ktrial.machines.exact.plugin import CacheShapes, NoPlugin, PluginBuild
from ktrial.machines.exact.process import Children
from ktrial.machines.exact.qemu import Qemu
from ktrial.machines.exact.setup import Setup
from ktrial.machines.exact.snapshot import SnapshotCache
from ktrial.machines.exact.target import ExactTarget
from ktrial.target import Step, StepResult


class ProfiledTarget(ExactTarget):
    """A system that starts anew for every `perform`, as ExactTarget, and can be counted."""

    def __init__(
        self,
        setup: Setup,
        children: Children,
        snapshots: SnapshotCache,
        plain_boot_reason: str,
        build: PluginBuild,
    ) -> None:
        super().__init__(setup, children, snapshots, plain_boot_reason)
        self._build = build

    def counted(
        self, steps: tuple[Step, ...], symbols: Path, out: Path, caches: CacheShapes | None = None
    ) -> tuple[StepResult, ...]:
        """Do the steps under the plugin, which writes what it counts to the file `out`.

        `symbols`: /proc/kallsyms of the kernel that runs. Each operation's count is kept; calls are followed
        where there is one CPU only. `caches`: model these, too (one CPU only; several times slower). Raises
        GuestEnded or MachineError.
        """
        plain = self._setup
        calls = plain.boot.cpus == 1
        added = plugin.arguments(self._build, out, symbols, vector=True, calls=calls, caches=caches)
        self._setup = replace(plain, plugin=added)
        try:
            return self.perform(steps)
        finally:
            self._setup = plain


def usable_plugin(installed: Qemu, guest: Path, machine: str) -> PluginBuild:
    """The plugin's build for this QEMU, which has been seen to load. Raises NoPluginHere."""
    found = plugin.find(installed.version, guest)
    problem = found if isinstance(found, NoPlugin) else plugin.check(installed, found)
    if isinstance(found, NoPlugin) or problem:
        reason = problem.reason if problem else ""
        raise NoPluginHere(machine=machine, program=installed.program, problem=reason)
    return found
