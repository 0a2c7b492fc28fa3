"""Errors about what runs inside the guest, and how it talks to the host."""

from ktrial.errors import KtrialError


class GuestError(KtrialError):
    text = "The guest {problem}"


class GuestEnded(GuestError):
    """Facts: `outcome` (the value of a model.trial.Outcome), `reason` (a sentence), `console` (the end of its
    console log), `results` (the tuple of StepResults that came before).
    """

    text = "The guest ended early ({outcome}): {reason}"
    hint = "the trial's console log tells more: ktrial show STUDY --console"


class FrameError(GuestError):
    text = "A frame from the guest is damaged: {problem}."


class GuestProgramsMissing(GuestError):
    text = "ktrial's guest programs for {architecture} are not there: {directory} lacks {missing}."
    hint = "from a checkout: make guest; from PyPI: reinstall the ktrial wheel"


class NoSymbolsInGuest(KtrialError):
    text = "Kernel {name} does not tell its functions' names: {problem}"
    hint = "it has to be built with CONFIG_KALLSYMS=y; CONFIG_KALLSYMS_ALL is not needed"


# Errors about programs that watch workloads: perf, bpftrace.


class MonitorError(KtrialError):
    text = "Monitor {monitor}: {problem}"


class MonitorUnusable(MonitorError):
    text = "The monitor {monitor} cannot watch anything here: {problem}."
    hint = "{remedy}; or leave it out of `monitors` in [machine]"


class MonitorFailed(MonitorError):
    text = "The monitor {monitor} {problem}."
