"""The target of the machine `exact-parallel`: each `perform` starts from the same state, and is counted."""

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from ktrial.machines.errors import PluginCountsUnreadable
from ktrial.machines.exact_parallel.region import region_of
from ktrial.machines.exact_parallel.setup import ParallelSetup
from ktrial.machines.qemu.guest_symbols import kallsyms
from ktrial.machines.qemu.process import Children, inherited_path, memory_file
from ktrial.machines.qemu.snapshot_cache import SnapshotCache
from ktrial.machines.qemu.snapshot_target import SnapshotTarget
from ktrial.model.parallel import ParallelCounts
from ktrial.target import Run, Step, StepResult


class ParallelTarget(SnapshotTarget):
    """A system with several CPUs that starts anew for every `perform`."""

    def __init__(
        self, setup: ParallelSetup, children: Children, snapshots: SnapshotCache, plain_boot_reason: str
    ) -> None:
        super().__init__(setup, children, snapshots, plain_boot_reason)
        self._prepared = setup

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in a fresh copy of the system; each program's result has its `parallel` counts.

        The CPUs' offsets and their order follow from the perturbation, by the programs' layout seed. Raises
        GuestEnded or MachineError.
        """
        return self._performed(steps)

    def by_function(self) -> "CountingParallelTarget":
        """A target of the same system that counts by function. See CountsByFunction."""
        return CountingParallelTarget(
            self._prepared, self._children, self._snapshots, self._plain_boot_reason
        )

    def _performed(self, steps: tuple[Step, ...], symbols: int | None = None) -> tuple[StepResult, ...]:
        with memory_file("ktrial-parallel") as out:
            path = inherited_path(out)
            setup = replace(self._prepared, seed=seed_of(steps), out=path, inherited=(out,))
            if symbols is not None:
                setup = replace(setup, symbols=inherited_path(symbols), inherited=(out, symbols))
            self._setup = setup
            try:
                results = super().perform(steps)
                return with_counts(results, counts_in(Path(path), self._prepared.machine))
            finally:
                self._setup = self._prepared


class CountingParallelTarget(ParallelTarget):
    """The same, which also counts by function."""

    def counted(
        self, steps: tuple[Step, ...], symbols: str = "", *, calls: bool = False
    ) -> tuple[StepResult, ...]:
        """As `perform`; what each program's regions had by function is its result's `region`.

        `symbols`: /proc/kallsyms of the kernel that runs. Calls are not followed on this machine. Raises
        GuestEnded or MachineError.
        """
        with memory_file("ktrial-symbols", symbols.encode("ascii", errors="replace")) as known:
            results = self._performed(steps, known)
        return tuple(
            result.model_copy(update={"region": region_of(result.parallel)}) if result.parallel else result
            for result in results
        )

    def kallsyms(self) -> str:
        """What this system says in /proc/kallsyms. Raises NoSymbolsInGuest, GuestEnded, MachineError."""
        return kallsyms(self, self._snapshots, self._prepared)


def seed_of(steps: tuple[Step, ...]) -> int:
    """The first seed among the programs' layouts; 0 where all are fixed: perturbation 0."""
    seeds = (step.layout_seed for step in steps if isinstance(step, Run))
    return next(filter(None, seeds), 0)


def counts_in(path: Path, machine: str) -> tuple[ParallelCounts, ...]:
    """What the plugin wrote: one line a program. Raises PluginCountsUnreadable."""
    counts = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        try:
            counts.append(ParallelCounts.model_validate_json(line))
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise PluginCountsUnreadable(machine=machine, path=path, line=number, problem=problem) from None
    return tuple(counts)


def with_counts(
    results: tuple[StepResult, ...], counts: tuple[ParallelCounts, ...]
) -> tuple[StepResult, ...]:
    """Each program's result with its counts; none where they do not fit, as where a program did not start."""
    programs = sum(result.do == "run" and not result.failure for result in results)
    if programs != len(counts):
        return results
    left = iter(counts)
    return tuple(
        result.model_copy(update={"parallel": next(left)})
        if result.do == "run" and not result.failure
        else result
        for result in results
    )
