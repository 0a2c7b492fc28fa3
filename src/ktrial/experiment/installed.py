"""What names a study may use here: workloads, machines, monitors and kernel providers."""

from typing import Any, NamedTuple

from ktrial import machines, monitors, workloads
from ktrial.kernels import reference
from ktrial.model.kernel import Build
from ktrial.model.warnings import DataWarning
from ktrial.studyfile import Registry


class Installed(NamedTuple):
    """Everything that is installed."""

    registry: Registry
    warnings: tuple[DataWarning, ...]
    """One for each extension that is broken, and left out."""


def installed() -> Installed:
    """Look for extensions, once. Raises GuestProgramsMissing."""
    return Installed(
        Registry(
            workloads=workloads.descriptions(),
            machines=machines.names(),
            kernel=reference,
            check=workloads.check,
            build=_build,
            monitors=monitors.installed_tracers().keys(),
        ),
        (*machines.installed()[1], *workloads.installed()[1]),
    )


def _build(source: str, **parts: Any) -> Build:
    from ktrial.kernels.build import requested  # few studies build, and it takes its time to load

    return requested(source, **parts)
