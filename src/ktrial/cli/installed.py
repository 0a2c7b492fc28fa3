"""What names a study may use here: the workloads, machines and kernel providers that are installed."""

from collections.abc import Iterable
from typing import Any

from ktrial.cli.error_handling import tell
from ktrial.model.kernel_build import Build
from ktrial.model.warnings import DataWarning
from ktrial.studyfile import Registry


def tell_broken(warnings: Iterable[DataWarning]) -> None:
    """Tell which plugins are broken, and left out."""
    for warning in warnings:
        tell(warning.text, warning.advice, kind="warning")


def registry() -> Registry:
    """Everything that is installed. Plugins that are broken are told, and left out."""
    from ktrial import machines, monitors, workloads
    from ktrial.kernels.providers.protocol import provider_of

    def build(source: str, **parts: Any) -> Build:
        from ktrial.kernels.build import requested  # few studies build, and it takes its time to load

        return requested(source, **parts)

    def kernel_name(name: str) -> str:
        provider, wanted = provider_of(name)
        return provider.canonical(name, wanted)

    tell_broken((*machines.found()[1], *workloads.found()[1]))
    return Registry(
        workloads=workloads.descriptions(),
        machines=machines.names(),
        kernel_name=kernel_name,
        check=workloads.check,
        build=build,
        monitors=monitors.beside().keys(),
    )
