"""What names a study may use here, for commands: extensions that are broken are told, and left out."""

from collections.abc import Iterable

from ktrial.cli.error_handling import tell
from ktrial.model.warnings import DataWarning
from ktrial.studyfile import Registry


def tell_broken(warnings: Iterable[DataWarning]) -> None:
    """Tell which plugins are broken, and left out."""
    for warning in warnings:
        tell(warning.text, warning.advice, kind="warning")


def registry() -> Registry:
    """Everything that is installed. Plugins that are broken are told, and left out."""
    from ktrial.experiment.resources import installed

    everything = installed()
    tell_broken(everything.warnings)
    return everything.registry
