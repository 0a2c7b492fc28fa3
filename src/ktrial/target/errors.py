"""Errors about what runs inside the guest, and how it talks to the host."""

from typing import TYPE_CHECKING

from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from ktrial.target import StepResult


class GuestError(KtrialError):
    text = "The guest {problem}"


class GuestEnded(GuestError):
    """The system ended before it had done all its steps."""

    hint = "the trial's console log tells more: ktrial show STUDY --console"

    def __init__(
        self,
        outcome: str,
        reason: str,
        console: str = "",
        results: "tuple[StepResult, ...]" = (),
        *,
        hint: str = "",
    ) -> None:
        """`outcome`: the value of a model.trial.Outcome. `reason`: a sentence. `console`: the end of its log.

        `results`: of the steps that came before.
        """
        self.outcome, self.reason = outcome, reason
        self.console, self.results = console, results
        super().__init__(f"The guest ended early ({outcome}): {reason}", hint=hint)


class FrameError(GuestError):
    """A frame that the agent sent is damaged."""

    def __init__(self, problem: str, position: int | None = None, damage: str = "") -> None:
        """`position`: of its first byte in the stream. `damage`: in one word, `magic` or `crc`."""
        self.problem, self.position, self.damage = problem, position, damage
        super().__init__(f"A frame from the guest is damaged: {problem}.")


class GuestProgramsMissing(GuestError):
    text = "ktrial's guest programs for {architecture} are not there: {directory} lacks {missing}."
    hint = "from a checkout: make guest; from PyPI: reinstall the ktrial wheel"


class GuestProgramsDamaged(GuestProgramsMissing):
    text = "ktrial's guest programs for {architecture} are damaged: {file}: {problem}."


class NoSymbolsInGuest(KtrialError):
    """A kernel does not tell its functions' names."""

    hint = "it has to be built with CONFIG_KALLSYMS=y; CONFIG_KALLSYMS_ALL is not needed"

    def __init__(self, message: str = "", *, name: str = "", problem: str = "", hint: str = "") -> None:
        """Either the message, or the kernel's name and why it does not."""
        self.problem = problem
        super().__init__(message or f"Kernel {name} does not tell its functions' names: {problem}", hint=hint)


# Errors about programs that watch workloads: perf, bpftrace.


class MonitorError(KtrialError):
    text = "Monitor {monitor}: {problem}"


class MonitorUnusable(MonitorError):
    text = "The monitor {monitor} cannot watch anything here: {problem}."
    hint = "{remedy}; or leave it out of `monitors` in [machine]"


class MonitorFailed(MonitorError):
    text = "The monitor {monitor} {problem}."
