"""Errors about what runs inside the guest, and how it talks to the host."""

from ktrial.errors import KtrialError


class GuestError(KtrialError):
    """The guest {problem}"""


class GuestEnded(GuestError):
    """The guest ended early ({outcome}): {reason}

    Facts: `outcome` (the value of a model.trial.Outcome), `reason` (one sentence), `console` (the end of its
    console log), `results` (the tuple of StepResults that came before).
    """

    hint = "the trial's console log tells more: ktrial show STUDY --console"


class DiskNotMade(GuestError):
    """The guest could not make its disk ({filesystem} on {driver}): {problem}"""

    hint = "a kernel that has both drivers, as Debian's have; [machine.disk] names others"


class LimitNotSet(GuestError):
    """The guest could not limit the workloads' memory: {problem}"""

    hint = "a kernel with CONFIG_MEMCG, as Debian's; or a smaller guest, without [machine.cgroup]"


class NotInForce(GuestError):
    """What was asked for was not in force: {problem}"""

    hint = "which kernel takes what: ktrial help schedulers"


class FrameError(GuestError):
    """A frame from the guest is damaged: {problem}."""


class GuestProgramsMissing(GuestError):
    """ktrial's guest programs for {architecture} are not there: {directory} lacks {missing}."""

    hint = "from a checkout: make guest; from PyPI: reinstall the ktrial wheel"


class NoSymbolsInGuest(KtrialError):
    """Kernel {name} does not tell its functions' names: {problem}"""

    hint = "it has to be built with CONFIG_KALLSYMS=y; CONFIG_KALLSYMS_ALL is not needed"


class SymbolsElsewhere(NoSymbolsInGuest):
    """Kernel {name} does not run where /proc/kallsyms says that it is: {problem}."""

    hint = (
        "it may have moved itself (KASLR) although ktrial boots it with nokaslr: does it have a command line "
        "of its own (CONFIG_CMDLINE_OVERRIDE)?"
    )


# Errors about programs that watch workloads: perf, bpftrace.


class MonitorError(KtrialError):
    """Monitor {monitor}: {problem}"""


class MonitorUnusable(MonitorError):
    """The monitor {monitor} cannot watch anything here: {problem}."""

    hint = "{remedy}; or leave it out of `monitors` in [machine]"


class MonitorFailed(MonitorError):
    """The monitor {monitor} {problem}."""
