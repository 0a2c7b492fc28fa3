"""What is known of a trial while it runs, what becomes of it at its end, and what its warnings say."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ktrial import monitors
from ktrial.errors import KtrialError
from ktrial.experiment.host_failures import HOST_PROBLEMS
from ktrial.experiment.kernel_symbols import KernelSymbols
from ktrial.experiment.replay import replays
from ktrial.experiment.settings import SettingRefused
from ktrial.installation import VERSION
from ktrial.machines import guest_programs
from ktrial.machines.errors import MachineStopped
from ktrial.model.boot import MachineIdentity
from ktrial.model.design import PlannedTrial
from ktrial.model.environment import Environment
from ktrial.model.kernel import Kernel, options_shown
from ktrial.model.profile import Profile
from ktrial.model.time_series import Sampled
from ktrial.model.trial import BETWEEN_REASONS, CounterDelta, Monitored, Outcome, Provenance, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Sample
from ktrial.target.errors import GuestEnded
from ktrial.workloads.errors import WorkloadError

LONGEST_CONSOLE = 64 * 1024
"""Characters of the console, its end, that are kept of a trial that failed."""


@dataclass
class TrialNotes:
    """What is known so far about the trial under way."""

    planned: PlannedTrial
    symbols: KernelSymbols
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=time.monotonic)
    kernel: Kernel | None = None
    identity: MachineIdentity | None = None
    outcome: Outcome = Outcome.COMPLETED
    reason: str = ""
    console: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    counters: list[CounterDelta] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    sampled: list[Sampled] = field(default_factory=list)
    warnings: list[DataWarning] = field(default_factory=list)
    executed: dict[str, str] = field(default_factory=dict)
    """Digests of what gave names; the machine tells the rest."""
    programs: dict[str, str] = field(default_factory=dict)
    monitored: list[Monitored] = field(default_factory=list)
    environment: Environment | None = None
    replayed: bool = False
    """The machine repeats a schedule by its seed: who sees a failure is told how."""
    complaints: list[str] = field(default_factory=list)
    """The kernel's, on its console."""

    def failed(self, error: KtrialError | SettingRefused, workload: str = "") -> None:
        """Note the failure: how the first one ended is the trial's outcome, and all of them are its reason.

        Host problems and the end of the machine are raised instead.
        """
        if isinstance(error, (*HOST_PROBLEMS, MachineStopped)):
            raise error
        reason = f"{workload}: {_reason(error)}" if workload else _reason(error)
        if self.outcome is Outcome.COMPLETED:
            self.outcome, self.reason = _outcome(error), reason
        else:
            self.reason = BETWEEN_REASONS.join((self.reason.rstrip("."), reason))
        if isinstance(error, KtrialError) and not self.console:
            self.console = str(error.facts.get("console", ""))[-LONGEST_CONSOLE:]

    def trial(self) -> Trial:
        """The trial, ended now."""
        valid = self.outcome is not Outcome.REFUSED
        if self.replayed:
            self.warnings += replays(self.planned, self.outcome, tuple(dict.fromkeys(self.complaints)))
        return Trial(
            planned=self.planned,
            outcome=self.outcome,
            reason=self.reason,
            samples=tuple(self.samples) if valid else (),
            counters=tuple(self.counters) if valid else (),
            profiles=tuple(self.profiles) if valid else (),
            sampled=tuple(self.sampled) if valid else (),
            settings=self.settings,
            warnings=(*machine_warnings(self.identity, self.kernel), *dict.fromkeys(self.warnings)),
            console=self.console,
            provenance=provenance(self.kernel, self.identity).model_copy(
                update={
                    "programs": self.programs,
                    "executed": (self.identity.executed if self.identity else {}) | self.executed,
                    "environment": self.environment,
                    "monitored": tuple(self.monitored) if valid else (),
                }
            ),
            started=self.started,
            seconds=time.monotonic() - self.clock,
        )


def without_running(planned: PlannedTrial, outcome: Outcome, reason: str, kernel: str) -> Trial:
    """The trial of a treatment that could not even be tried, because its kernel could not be had."""
    return Trial(
        planned=planned,
        outcome=outcome,
        reason=reason,
        provenance=Provenance(kernel=kernel, ktrial=VERSION),
        started=datetime.now(UTC),
        seconds=0.0,
    )


def _outcome(error: Exception) -> Outcome:
    if isinstance(error, SettingRefused):
        return Outcome.REFUSED
    if isinstance(error, GuestEnded):
        return Outcome(str(error.facts["outcome"]))
    if isinstance(error, WorkloadError):
        return Outcome.WORKLOAD_FAILED
    return Outcome.MACHINE_FAILED


def _reason(error: Exception) -> str:
    return str(error.facts["reason"]) if isinstance(error, GuestEnded) else str(error)


def provenance(kernel: Kernel | None, identity: MachineIdentity | None) -> Provenance:
    """What a trial of the kernel on this machine is noted with."""
    known: dict[str, object] = {"ktrial": VERSION}
    if kernel:
        known |= {
            "kernel": kernel.name,
            "kernel_release": kernel.release,
            "kernel_package": f"{kernel.origin.source} {kernel.origin.version}".strip(),
            "kernel_compiler": kernel.origin.compiler,
            "kernel_digest": kernel.digest,
            "config_digest": kernel.config_digest,
        }
    if identity:
        known |= {
            "machine": identity.machine,
            "qemu": identity.qemu,
            "cpu_model": identity.cpu_model,
            "command_line": identity.command_line,
            "machine_arguments": identity.arguments,
            "agent_digest": identity.agent_digest,
            "seed": identity.seed,
            "snapshot": identity.snapshot or _without_snapshot(identity),
        }
    return Provenance.model_validate(known)


def _without_snapshot(identity: MachineIdentity) -> str:
    """Machines in real time have none."""
    return f"plain boot: {identity.plain_boot_reason}" if identity.plain_boot_reason else ""


_SHOWN_HUNKS = 3


def machine_warnings(identity: MachineIdentity | None, kernel: Kernel | None) -> tuple[DataWarning, ...]:
    """The warnings of a trial on this machine, with this kernel; None where the trial did not get so far."""
    _, warnings = monitors.installed()
    if identity and identity.plain_boot_reason:
        plain = DataWarning(
            kind=WarningKind.PLAIN_BOOT,
            text=f"booted without a snapshot: {identity.plain_boot_reason}",
            advice="the numbers are the same; each trial takes a whole boot longer",
        )
        warnings = (*warnings, plain)
    if identity and identity.clock_reason:
        clock = DataWarning(
            kind=WarningKind.COUNTED_BY_CLOCK,
            text=f"instructions are read from the guest's clock, since the plugin does not load: "
            f"{identity.clock_reason}",
            advice="a QEMU with plugins (Debian's is; KTRIAL_QEMU names another) counts string instructions "
            'as hardware runs them; count = "clock" in [machine], or --count clock, asks for the clock',
        )
        warnings = (*warnings, clock)
    if identity and identity.flags_reason:
        flags = DataWarning(
            kind=WarningKind.PROCESSOR_FLAGS,
            text=identity.flags_reason,
            advice="a guest that fails, or a program that reads the flags, may do so for that: a QEMU from "
            "8.0 on, or Debian's 7.2, has them right (KTRIAL_QEMU names another one)",
        )
        warnings = (*warnings, flags)
    if identity:
        warnings = (*warnings, *_unpublished_programs(identity))
    return (*warnings, *patch_warnings(kernel)) if kernel else warnings


def _unpublished_programs(identity: MachineIdentity) -> tuple[DataWarning, ...]:
    """What a guest program executes is a part of what is counted there, down to the page of a variable."""
    others = guest_programs.unpublished_digests(identity.executed)
    if not others:
        return ()
    text = (
        f"the guest's programs ({', '.join(others)}) are not the published ones: another compiler or C "
        "library made them"
    )
    advice = (
        "numbers may differ from published ones in the last digits, and verdicts of trials on one system do "
        "not depend on it: ktrial doctor"
    )
    return (DataWarning(kind=WarningKind.GUEST_PROGRAMS, text=text, advice=advice),)


def patch_warnings(kernel: Kernel) -> tuple[DataWarning, ...]:
    """Of patches that apply elsewhere than they say, and of the options that patches bring."""
    inexact, brought = kernel.origin.inexact_patches, kernel.origin.new_options
    warnings: list[DataWarning] = []
    if inexact:
        more = f"; {len(inexact) - _SHOWN_HUNKS} more" if len(inexact) > _SHOWN_HUNKS else ""
        warnings.append(
            DataWarning(
                kind=WarningKind.INEXACT_PATCH,
                text=f"{kernel.name}: {'; '.join(inexact[:_SHOWN_HUNKS])}{more}",
                advice="it may be for another version: look whether its hunks are where they belong",
            )
        )
    if brought:
        warnings.append(
            DataWarning(
                kind=WarningKind.NEW_OPTIONS,
                text=f"{kernel.name}: options that its patches bring: {options_shown(brought)}",
                advice="what nothing sets has the patch's own default: options in [kernels.NAME] set others",
            )
        )
    return tuple(warnings)
