"""What is odd about a trial from its beginning: broken plugins, how it booted, its kernel's patches."""

from ktrial import monitors
from ktrial.model.boot import MachineIdentity
from ktrial.model.kernel import Kernel
from ktrial.model.warnings import DataWarning, WarningKind

_SHOWN_HUNKS = 3


def machine_warnings(identity: MachineIdentity | None, kernel: Kernel | None) -> tuple[DataWarning, ...]:
    """The warnings of a trial on this machine, with this kernel; None where the trial did not get so far."""
    _, found = monitors.installed()
    if identity and identity.plain_boot_reason:
        plain = DataWarning(
            kind=WarningKind.PLAIN_BOOT,
            text=f"booted without a snapshot: {identity.plain_boot_reason}",
            advice="the numbers are the same; each trial takes a whole boot longer",
        )
        found = (*found, plain)
    if identity and identity.clock_reason:
        clock = DataWarning(
            kind=WarningKind.COUNTED_BY_CLOCK,
            text=f"instructions are read from the guest's clock, since the plugin does not load: "
            f"{identity.clock_reason}",
            advice="a QEMU with plugins (Debian's is; KTRIAL_QEMU names another) counts string instructions "
            'as hardware runs them; count = "clock" in [machine], or --count clock, asks for the clock',
        )
        found = (*found, clock)
    return (*found, *patch_warnings(kernel)) if kernel else found


def patch_warnings(kernel: Kernel) -> tuple[DataWarning, ...]:
    """Of patches that apply elsewhere than they say."""
    inexact = kernel.origin.inexact_patches
    if not inexact:
        return ()
    more = f"; {len(inexact) - _SHOWN_HUNKS} more" if len(inexact) > _SHOWN_HUNKS else ""
    return (
        DataWarning(
            kind=WarningKind.INEXACT_PATCH,
            text=f"{kernel.name}: {'; '.join(inexact[:_SHOWN_HUNKS])}{more}",
            advice="it may be for another version: look whether its hunks are where they belong",
        ),
    )
