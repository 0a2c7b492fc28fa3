"""The targets that the exact machine yields: each `perform` is one QEMU, from the same state.

One of them counts: its guests run under the QEMU plugin.
"""

import base64
import contextlib
import threading
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ktrial.file_digests import digest_of_file
from ktrial.machines.errors import CannotLoadState, NoPluginHere, PluginCountsUnreadable
from ktrial.machines.exact import naming_run, plugin
from ktrial.machines.exact.boot import not_booted, restored, started
from ktrial.machines.exact.generated_code import GeneratedCode
from ktrial.machines.exact.naming_run import SHOWN
from ktrial.machines.exact.plugin import CacheShapes, NoPlugin, PluginBuild
from ktrial.machines.exact.setup import Setup
from ktrial.machines.exact.snapshot_cache import SnapshotCache
from ktrial.machines.qemu import outcome as outcome
from ktrial.machines.qemu.boot import Unstarted
from ktrial.machines.qemu.outcome import Report, read_report
from ktrial.machines.qemu.process import Children, QemuProcess, inherited_path, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.watchdog import GuestExit, Stop, Watcher
from ktrial.model.boot import MachineIdentity
from ktrial.model.profile import RegionCounts
from ktrial.target import Collect, Run, Step, StepResult
from ktrial.target.errors import GuestEnded, NoSymbolsInGuest
from ktrial.target.guest_plan import GuestPlan


class ExactTarget:
    """A system that starts anew, from one state, for every `perform`."""

    def __init__(
        self, setup: Setup, children: Children, snapshots: SnapshotCache, plain_boot_reason: str
    ) -> None:
        self._setup = setup
        self._children = children
        self._snapshots = snapshots
        self._plain_boot_reason = plain_boot_reason
        self._console = ""
        self._held: set[int] = set()

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result."""
        plain = self._plain_boot_reason
        used = {"plain_boot_reason": plain} if plain else {"snapshot": self._setup.key}
        return self._setup.identity.model_copy(update=used)

    @property
    def console(self) -> str:
        """The end of the console log of the last `perform`: at most 200 lines."""
        return self._console

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in a fresh copy of the system. Raises GuestEnded or MachineError."""
        self._console = ""
        self._held = {number for number, step in enumerate(steps) if _is_unlimited(step)}
        plan = GuestPlan(steps=tuple(self._limited(step) for step in steps)).model_dump_json().encode()
        if not self._plain_boot_reason:
            try:
                return self._perform_restored(plan)
            except CannotLoadState as error:
                self._plain_boot_reason = error.message
        return self._perform_plainly(plan)

    def _perform_restored(self, plan: bytes) -> tuple[StepResult, ...]:
        with contextlib.ExitStack() as kept:
            snapshot = kept.enter_context(self._snapshots.open(self._setup.key))
            if snapshot is None:
                raise CannotLoadState(machine=self._setup.machine, problem="it has gone from the cache")
            try:
                process = kept.enter_context(restored(self._setup, self._children, snapshot, plan))
            except Unstarted as error:
                verdict = outcome.judge_unstarted(error.status, error.said)
                raise self._ended(verdict, ()) from None
            return self._results(process, *self._run(process))

    def _perform_plainly(self, plan: bytes) -> tuple[StepResult, ...]:
        setup, children = self._setup, self._children
        with (
            memory_file("ktrial-ram") as ram,
            started(setup, children, ram, plan) as process,
        ):
            ending, report = self._run(process)
            if report.ready is None:
                raise not_booted(setup, children, process, ending, report)
            return self._results(process, ending, report)

    def _run(self, process: QemuProcess) -> tuple[GuestExit, Report]:
        watcher = Watcher(process, self._setup.limits)
        watcher.resume()
        ending = watcher.watch()
        return ending, read_report(process)

    def _results(self, process: QemuProcess, ending: GuestExit, report: Report) -> tuple[StepResult, ...]:
        console = process.console_text()
        self._console = outcome.console_end(console)
        verdict = self._judge(ending, report, console, process.said())
        if verdict:
            raise self._ended(verdict, report.results)
        return report.results

    def _judge(
        self, ending: GuestExit, report: Report, console: str, said: str
    ) -> outcome.GuestVerdict | None:
        if report.done:
            return self._judge_done(report, console)
        if report.failed:
            return outcome.agent_failed(report.failed, console)
        if report.damage:
            return outcome.frames_damaged(report.damage)
        return outcome.judge(ending, self._setup.limits, console=console, said=said, ready=True)

    def _judge_done(self, report: Report, console: str) -> outcome.GuestVerdict | None:
        killed = sum(result.oom_kills for result in report.results)
        late = any(result.timed_out and result.step in self._held for result in report.results)
        limit = GuestExit(Stop.INSTRUCTIONS)
        return outcome.processes_killed(killed, console) or (
            outcome.judge(limit, self._setup.limits, console="", said="", ready=True) if late else None
        )

    def _limited(self, step: Step) -> Step:
        """A program without a limit of its own is held to that of the boot, in the guest's own time."""
        limit = self._setup.limits.instructions
        return step.model_copy(update={"limit_ns": limit}) if _is_unlimited(step) else step

    def _ended(self, verdict: outcome.GuestVerdict, results: tuple[StepResult, ...]) -> GuestEnded:
        return GuestEnded(
            outcome=verdict.outcome.value, reason=verdict.reason, console=self._console, results=results
        )


def _is_unlimited(step: Step) -> bool:
    return isinstance(step, Run) and not step.limit_ns


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

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result, with the plugin that counts."""
        plain = super().identity
        executed = plain.executed | {"plugin": digest_of_file(self._build.path)}
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
            return naming_run.code_told(self.perform(naming_run.asking(steps)))
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
        # Every `perform` starts anew: the workload does not see the change.
        *_, told = self.perform((SHOWN, Collect(path=_KALLSYMS)))
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
    build = plugin.find(installed.version, guest)
    problem = build if isinstance(build, NoPlugin) else _problem(installed, build)
    if isinstance(build, NoPlugin) or problem:
        reason = problem.reason if problem else ""
        raise NoPluginHere(machine=machine, program=installed.program, problem=reason)
    return build


@lru_cache
def _problem(installed: Qemu, build: PluginBuild) -> NoPlugin | None:
    return plugin.check(installed, build)
