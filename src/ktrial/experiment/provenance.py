"""What a trial is noted with: its kernel and machine, and the warnings that these call for."""

from ktrial import monitors
from ktrial.installation import VERSION
from ktrial.machines import guest_programs
from ktrial.model.kernel import Kernel, options_shown
from ktrial.model.machine import MachineIdentity
from ktrial.model.study import EXACT_MACHINES
from ktrial.model.trial import WATCHED_FILES, Provenance
from ktrial.model.warnings import DataWarning, WarningKind


def provenance(kernel: Kernel | None, identity: MachineIdentity | None) -> Provenance:
    """What a trial of the kernel on this machine is noted with."""
    facts: dict[str, object] = {"ktrial": VERSION}
    if kernel:
        facts |= {
            "kernel": kernel.name,
            "kernel_release": kernel.release,
            "kernel_package": f"{kernel.origin.source} {kernel.origin.version}".strip(),
            "kernel_compiler": kernel.origin.compiler,
            "kernel_digest": kernel.digest,
            "config_digest": kernel.config_digest,
        }
    if identity:
        facts |= {
            "machine": identity.machine,
            "qemu": identity.qemu,
            "cpu_model": identity.cpu_model,
            "command_line": identity.command_line,
            "machine_arguments": identity.arguments,
            "agent_digest": identity.agent_digest,
            "boot": identity.boot,
            "seed": identity.seed,
            # Machines in real time have no snapshot.
            "snapshot": identity.snapshot
            or (f"plain boot: {identity.plain_boot_reason}" if identity.plain_boot_reason else ""),
            "executed": identity.executed
            | ({WATCHED_FILES: monitors.watched_digest()} if identity.machine in EXACT_MACHINES else {}),
        }
    return Provenance.model_validate(facts)


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
            advice=(
                "this may be why a guest fails, or a program that reads the flags: a QEMU from 8.0 on, or "
                "Debian's 7.2, has them right (KTRIAL_QEMU names another one)"
            ),
        )
        warnings = (*warnings, flags)
    # What a guest program executes is a part of what is counted there, down to the page of a variable.
    if identity and (unpublished := guest_programs.unpublished_digests(identity.executed)):
        programs = DataWarning(
            kind=WarningKind.GUEST_PROGRAMS,
            text=f"the guest's programs ({', '.join(unpublished)}) are not the published ones: another "
            "compiler or C library made them",
            advice="numbers may differ from published ones in the last digits, and verdicts of trials on "
            "one system do not depend on it: ktrial doctor",
        )
        warnings = (*warnings, programs)
    return (*warnings, *patch_warnings(kernel)) if kernel else warnings


def patch_warnings(kernel: Kernel) -> tuple[DataWarning, ...]:
    """Of patches that apply elsewhere than they say, and of the options that patches or commits bring."""
    inexact, brought, build = kernel.origin.inexact_patches, kernel.origin.new_options, kernel.origin.build
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
        commits = f"commits since {build.since[:12]}" if build and build.since else "commits"
        bringing = "patches" if build and build.patches and not build.since else commits
        warnings.append(
            DataWarning(
                kind=WarningKind.NEW_OPTIONS,
                text=f"{kernel.name}: options that its {bringing} bring: {options_shown(brought)}",
                advice="what nothing sets has its author's own default: options in [kernels.NAME] set others",
            )
        )
    return tuple(warnings)
