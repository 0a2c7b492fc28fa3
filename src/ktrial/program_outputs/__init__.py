"""What programs of others print or write: one reader for a workload's metrics and for `ktrial analyze`.

A format is a module in `formats` with an object `FORMAT` that has the methods of `OutputFormat`, or an entry
point in the group `ktrial.output_formats`.
"""

from functools import cache

from ktrial import plugin_discovery
from ktrial.model.notation import nearest
from ktrial.model.warnings import DataWarning
from ktrial.program_outputs.errors import FormatNotKnown, OutputDamaged, OutputEmpty, OutputError
from ktrial.program_outputs.protocol import Column, Measured, OutputFormat, Report, Told

_GROUP = "ktrial.output_formats"


@cache
def installed() -> tuple[dict[str, OutputFormat], tuple[DataWarning, ...]]:
    """Every format by its name, sorted, and a warning for each plugin that is broken."""
    packages = ("ktrial.program_outputs.formats",)
    return plugin_discovery.installed(_GROUP, "output format", "FORMAT", packages, _check)


def find(name: str) -> OutputFormat:
    """The format of this name. Raises FormatNotKnown, which suggests one."""
    known, _ = installed()
    if name not in known:
        raise FormatNotKnown(format=name, similar=nearest(name, known), known=", ".join(known))
    return known[name]


def _check(name: str, extension: object) -> tuple[str, OutputFormat]:
    if not isinstance(extension, OutputFormat):
        raise TypeError(f"{name} is no output format")
    return extension.name, extension


__all__ = [
    "Column",
    "FormatNotKnown",
    "Measured",
    "OutputDamaged",
    "OutputEmpty",
    "OutputError",
    "OutputFormat",
    "Report",
    "Told",
    "find",
    "installed",
]
