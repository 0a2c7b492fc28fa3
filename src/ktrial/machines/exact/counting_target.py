"""The target that counts: an ExactTarget whose guests run under the QEMU plugin."""

import base64
import threading
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ktrial.machines.errors import NoPluginHere, PluginCountsUnreadable
from ktrial.machines.exact import plugin
from ktrial.machines.exact.plugin import CacheShapes, NoPlugin, PluginBuild
from ktrial.machines.exact.setup import Setup
from ktrial.machines.exact.snapshot_cache import SnapshotCache
from ktrial.machines.exact.target import ExactTarget
from ktrial.machines.qemu.process import Children, inherited_path, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.model.profile import RegionCounts
from ktrial.target import Collect, Step, StepResult, Write
from ktrial.target.errors import NoSymbolsInGuest

_KALLSYMS = "/proc/kallsyms"
_ASKING = threading.Lock()


class InstrumentedTarget(ExactTarget):
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
            return _with_regions(results, plugin.read_runs(counts), counts)

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
        plain = self._setup
        added = plugin.arguments(self._build, out, symbols, vector=True, calls=calls, caches=caches)
        self._setup = replace(plain, plugin=added)
        try:
            return self.perform(steps)
        finally:
            self._setup = plain

    def kallsyms(self) -> str:
        """What this system says in /proc/kallsyms, with the modules that it has loaded.

        Asked for once, and then kept beside the snapshot. Raises NoSymbolsInGuest, GuestEnded, MachineError.
        """
        with _ASKING:
            kept = self._snapshots.note(self._setup.key)
            if kept is None:
                kept = self._told()
                self._snapshots.keep_note(self._setup.key, kept)
        return kept.decode("ascii", errors="replace")

    def _told(self) -> bytes:
        # Where the kernel hides addresses from all, even root is told zeros. Every `perform` starts anew: the
        # workload does not see the change.
        shown = Write(path="/proc/sys/kernel/kptr_restrict", value="0")
        *_, told = self.perform((shown, Collect(path=_KALLSYMS)))
        if told.failure:
            name, problem = self._setup.boot.kernel.name, f"{_KALLSYMS}: {told.failure.text}"
            raise NoSymbolsInGuest(name=name, problem=problem)
        return base64.b64decode(told.content)


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
    found = plugin.find(installed.version, guest)
    problem = found if isinstance(found, NoPlugin) else _problem(installed, found)
    if isinstance(found, NoPlugin) or problem:
        reason = problem.reason if problem else ""
        raise NoPluginHere(machine=machine, program=installed.program, problem=reason)
    return found


@lru_cache
def _problem(installed: Qemu, build: PluginBuild) -> NoPlugin | None:
    return plugin.check(installed, build)
