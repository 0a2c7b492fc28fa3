"""The target of the exact machine that counts: its guests run under the QEMU plugin."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ktrial.file_digests import digest_of_file
from ktrial.machines.errors import NoPluginHere, PluginCountsUnreadable
from ktrial.machines.exact import plugin
from ktrial.machines.exact.generated_code import GeneratedCode, code_told, with_ksymbols
from ktrial.machines.exact.plugin import CacheShapes, NoPlugin, PluginBuild
from ktrial.machines.exact.setup import Setup
from ktrial.machines.qemu.guest_symbols import kallsyms
from ktrial.machines.qemu.process import Children, inherited_path, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot_cache import SnapshotCache
from ktrial.machines.qemu.snapshot_target import SnapshotTarget
from ktrial.model.base import digest
from ktrial.model.machine import MachineIdentity
from ktrial.model.profile import RegionCounts
from ktrial.target import Step, StepResult
from ktrial.target.errors import GuestEnded


class InstrumentedTarget(SnapshotTarget):
    """A system that starts anew for every `perform`, as SnapshotTarget, and can be counted."""

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

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result, with the plugin that counts."""
        plain = super().identity
        executed = plain.executed | {"plugin": digest_of_file(self._build.path)}
        if self._setup.boot.model:
            executed["machine model"] = digest(self._setup.boot.model)
        return plain.model_copy(update={"executed": executed})

    def counted(
        self,
        steps: tuple[Step, ...],
        symbols: str = "",
        *,
        calls: bool = False,
        caches: CacheShapes | None = None,
    ) -> tuple[StepResult, ...]:
        """Do the steps under the plugin; what it counts of each program is its result's `region`.

        `symbols`: /proc/kallsyms of the kernel that runs; without it all of the kernel is one function.
        `calls`: follow calls; `caches`: model these, too, several times slower (one CPU only, both). Raises
        GuestEnded or MachineError.
        """
        with (
            memory_file("ktrial-symbols", symbols.encode("ascii", errors="replace")) as known,
            memory_file("ktrial-counts") as out,
        ):
            self._setup = replace(self._setup, inherited=(known, out))
            names = Path(inherited_path(known)) if symbols else None
            counts = Path(inherited_path(out))
            try:
                results = self.counted_into(counts, steps, names, calls=calls, caches=caches)
            finally:
                self._setup = replace(self._setup, inherited=())
            return _with_regions(results, plugin.read_runs(counts, lambda: self._generated(steps)), counts)

    def _generated(self, steps: tuple[Step, ...]) -> tuple[GeneratedCode, ...]:
        """What code the kernel makes in these steps: they are done again, and it is asked.

        It is none where the guest cannot tell. Raises MachineError.
        """
        try:
            return code_told(self.perform(with_ksymbols(steps)))
        except GuestEnded:
            return ()

    def counted_into(
        self,
        out: Path,
        steps: tuple[Step, ...],
        symbols: Path | None,
        *,
        calls: bool = False,
        caches: CacheShapes | None = None,
    ) -> tuple[StepResult, ...]:
        """As `counted`, but the plugin writes to the file `out`, and nothing is read from there."""
        plain, model = self._setup, self._setup.boot.model
        added = plugin.arguments(
            self._build, out, symbols, vector=True, calls=calls, caches=caches, model=model
        )
        self._setup = replace(plain, plugin=added)
        try:
            return self.perform(steps)
        finally:
            self._setup = plain

    def kallsyms(self) -> str:
        """What this system says in /proc/kallsyms. Raises NoSymbolsInGuest, GuestEnded, MachineError."""
        return kallsyms(self, self._snapshots, self._setup)


def _with_regions(
    results: tuple[StepResult, ...], regions: tuple[RegionCounts | None, ...], counts: Path
) -> tuple[StepResult, ...]:
    """Each program's result with its region. Raises PluginCountsUnreadable rather than give it another's."""
    programs = sum(result.do == "run" for result in results)
    if programs != len(regions):
        problem = (
            f"{programs} programs ran, it has {len(regions)}: does one mark a region with nothing in it?"
        )
        raise PluginCountsUnreadable(machine="exact", path=counts, line=1, problem=problem)
    left = iter(regions)
    return tuple(
        result.model_copy(update={"region": next(left)}) if result.do == "run" else result
        for result in results
    )


def usable_plugin(installed: Qemu, guest: Path, machine: str) -> PluginBuild:
    """The plugin's build for this QEMU, which has been seen to load. Raises NoPluginHere."""
    build = plugin.find(installed.version, guest)
    problem = build if isinstance(build, NoPlugin) else _problem(installed, build)
    if isinstance(build, NoPlugin) or problem:
        reason = problem.reason if problem else ""
        raise NoPluginHere(machine=machine, program=installed.program, problem=reason)
    return build


@lru_cache
def _problem(installed: Qemu, build: PluginBuild) -> NoPlugin | None:
    return plugin.check(installed, build)
