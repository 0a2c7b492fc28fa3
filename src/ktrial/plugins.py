"""What extensions of ktrial implement. Each is found by an entry point of a group of its own.

| name | entry point group | the object is |
| --- | --- | --- |
| `Workload` | `ktrial.workloads` | a `Workload` |
| `Machine` | `ktrial.machines` | a class or function, called without arguments, that makes a `Machine` |
| `Monitor` | `ktrial.monitors` | a `Monitor` |
| `KernelProvider` | `ktrial.kernel_providers` | a `KernelProvider` |
| `Importer` | `ktrial.importers` | an `Importer` |
| `OutputFormat` | `ktrial.output_formats` | an `OutputFormat` |
| `Knob` | `ktrial.knobs` | a tuple of `Knob`s |
| `ProfileExport` | `ktrial.profile_exports` | a `ProfileExport` |

An extension that is broken warns; it does not stop ktrial, and never replaces what ktrial has itself.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrial.importers.protocol import Importer
    from ktrial.kernels.providers import KernelProvider
    from ktrial.machines import Machine
    from ktrial.model.knob import Knob
    from ktrial.monitors import Monitor
    from ktrial.program_outputs import OutputFormat
    from ktrial.report.exports import ProfileExport
    from ktrial.workloads.protocol import Workload

__all__ = [
    "Importer",
    "KernelProvider",
    "Knob",
    "Machine",
    "Monitor",
    "OutputFormat",
    "ProfileExport",
    "Workload",
]

_FROM = {
    "Importer": "ktrial.importers.protocol:Importer",
    "KernelProvider": "ktrial.kernels.providers:KernelProvider",
    "Knob": "ktrial.model.knob:Knob",
    "Machine": "ktrial.machines:Machine",
    "Monitor": "ktrial.monitors:Monitor",
    "OutputFormat": "ktrial.program_outputs:OutputFormat",
    "ProfileExport": "ktrial.report.exports:ProfileExport",
    "Workload": "ktrial.workloads.protocol:Workload",
}


if not TYPE_CHECKING:  # to mypy, a name that is not here is a mistake

    def __getattr__(name: str) -> object:
        if name not in _FROM:
            names = ", ".join(__all__)
            raise AttributeError(f"module 'ktrial.plugins' has no attribute {name!r}; it has {names}")
        module, _, attribute_name = _FROM[name].partition(":")
        return globals().setdefault(name, getattr(import_module(module), attribute_name))


def __dir__() -> list[str]:
    return sorted(__all__)
