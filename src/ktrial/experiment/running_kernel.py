"""A machine that is this system: its kernel is not fetched, and nothing is carried anywhere."""

from dataclasses import replace
from typing import Protocol, runtime_checkable

from ktrial.experiment.resources import Resources
from ktrial.machines import Machine
from ktrial.model.kernel import Kernel


@runtime_checkable
class RunsAlready(Protocol):
    """A machine that boots nothing."""

    def kernel(self) -> Kernel:
        """The kernel that runs there."""
        ...


def sources_for(machine: Machine, sources: Resources) -> Resources:
    """The sources, with the machine's own kernel for every name where it boots none."""
    if not isinstance(machine, RunsAlready):
        return sources
    kernel = machine.kernel()
    return replace(sources, obtain=lambda _name, _progress: kernel)
