"""A machine without a kernel: a function answers every step. For fast tests of what runs trials.

    def answer(boot: Boot, step: Step) -> StepResult:
        if isinstance(step, Run) and "debian:6.12" == boot.kernel.name:
            raise ended(Outcome.PANICKED, "Fatal exception")
        return agreeable(boot, step)

    machine = FakeMachine(answer)
    ...
    assert len(machine.performed) == 12

It cannot be named in a study (there is no `MACHINE` here): its numbers are made up.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ktrial.machines import PreparationProgress
from ktrial.machines.errors import MachineStopped
from ktrial.model.machine import NO_FILES, Boot, FileSet, MachineIdentity
from ktrial.model.trial import Outcome
from ktrial.model.workload import Mode
from ktrial.target import Step, StepResult, Write
from ktrial.target.errors import GuestEnded, NoSymbolsInGuest

NAME = "fake"
Answer = Callable[[Boot, Step], StepResult]
"""What comes of a step in a boot. May raise GuestEnded (see `ended`) or MachineError."""
Preparation = Callable[[Boot], None]
"""What happens when a boot is prepared: nothing, or it raises."""


def agreeable(_boot: Boot, step: Step) -> StepResult:
    """Every step succeeds: what is written is read back, a program ends with status 0 and prints nothing."""
    after = step.value if isinstance(step, Write) else ""
    return StepResult(step=0, do=step.do, after=after, exit=0 if step.do == "run" else None)


def ended(outcome: Outcome, reason: str, console: str = "") -> GuestEnded:
    """The guest's early end, to be raised by an Answer or a Preparation; the results so far are added."""
    return GuestEnded(outcome.value, reason, console)


@dataclass(frozen=True)
class Performed:
    """One call of `perform`."""

    boot: Boot
    steps: tuple[Step, ...]
    counted: bool = False
    """Whether they were counted by function."""
    calls: bool = False
    """Whether calls were followed, too."""


class FakeMachine:
    """Does what its script says, at once, and notes what it was asked."""

    name = NAME

    def __init__(
        self,
        answer: Answer = agreeable,
        preparation: Preparation | None = None,
        *,
        mode: Mode = Mode.EXACT_CLOCK,
        plain_boot_reason: str = "",
        kallsyms: str = "",
    ) -> None:
        self.mode = mode
        self.kallsyms = kallsyms
        """What its kernels say in /proc/kallsyms; empty: they have none."""
        self.prepared: list[Boot] = []
        """Boots that `prepare` was called for, in order."""
        self.started: list[Boot] = []
        """Boots that `start` was called for, in order."""
        self.performed: list[Performed] = []
        """All that targets were asked to do, in order, also what failed."""
        self.stopped = False
        self._answer = answer
        self._preparation = preparation
        self._plain_boot_reason = plain_boot_reason

    def check(self) -> None:
        """Nothing is ever missing. Raises MachineStopped after `stop`."""
        if self.stopped:
            raise MachineStopped(machine=self.name)

    def prepare(self, boot: Boot, progress: PreparationProgress) -> None:
        """Note it, and do what the script has for it."""
        self.check()
        progress("booting")
        self.prepared.append(boot)
        if self._preparation:
            self._preparation(boot)

    @contextmanager
    def start(self, boot: Boot, carried: FileSet = NO_FILES) -> "Iterator[FakeTarget]":
        """Yield a target that answers by the script; the boot that it is asked about has the files, too."""
        self.check()
        self.started.append(boot)
        boot = boot.model_copy(update={"files": (*boot.files, *carried.files)})
        counts = self.mode is Mode.EXACT_PLUGIN
        yield FakeCountingTarget(self, boot) if counts else FakeTarget(self, boot)

    def stop(self) -> None:
        """From now on everything raises MachineStopped."""
        self.stopped = True

    def perform(
        self, boot: Boot, steps: tuple[Step, ...], *, counted: bool = False, calls: bool = False
    ) -> tuple[StepResult, ...]:
        """Answer each step. A GuestEnded on the way gets the results before it."""
        self.performed.append(Performed(boot, steps, counted, calls))
        results: list[StepResult] = []
        for number, step in enumerate(steps):
            self.check()
            try:
                result = self._answer(boot, step)
            except GuestEnded as error:
                raise GuestEnded(error.outcome, error.reason, error.console, tuple(results)) from None
            results.append(result.model_copy(update={"step": number, "do": step.do}))
        return tuple(results)

    def identity(self, boot: Boot) -> MachineIdentity:
        """The same for the same boot."""
        return MachineIdentity(
            machine=self.name,
            mode=self.mode,
            command_line=" ".join(boot.parameters),
            snapshot="" if self._plain_boot_reason else "fake",
            plain_boot_reason=self._plain_boot_reason,
        )


class FakeTarget:
    """What a FakeMachine yields."""

    def __init__(self, machine: FakeMachine, boot: Boot) -> None:
        self._machine = machine
        self._boot = boot

    @property
    def identity(self) -> MachineIdentity:
        """What the machine says it is."""
        return self._machine.identity(self._boot)

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Have the machine's script answer."""
        return self._machine.perform(self._boot, steps)


class FakeCountingTarget(FakeTarget):
    """What it yields in mode exact-plugin: its script's answers have a `region`."""

    def counted(
        self, steps: tuple[Step, ...], symbols: str = "", *, calls: bool = False
    ) -> tuple[StepResult, ...]:
        """Have the machine's script answer."""
        return self._machine.perform(self._boot, steps, counted=True, calls=calls)

    def kallsyms(self) -> str:
        """What the machine was given. Raises NoSymbolsInGuest."""
        if not self._machine.kallsyms:
            raise NoSymbolsInGuest(name=self._boot.kernel.name, problem="/proc/kallsyms is not there")
        return self._machine.kallsyms
