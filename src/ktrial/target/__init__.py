"""The narrow waist: a target is a running system, and does steps.

The five verbs (read, write, run, push, collect) are data, handed over together: while a guest runs in exact
mode, nothing may be typed into it, so that a conversation step by step is impossible there. A target that can
talk (a host) does the same steps one after another.
"""

from typing import Protocol

from ktrial.target.local import LocalTarget
from ktrial.target.steps import (
    Collect,
    Failure,
    LoadModule,
    MakeDirectory,
    Mount,
    Push,
    Read,
    Run,
    SampledFiles,
    Sampling,
    Start,
    Step,
    StepResult,
    Stop,
    TracerProgram,
    Walk,
    Write,
)
from ktrial.target.tracer_process import Watcher

__all__ = [
    "Collect",
    "Failure",
    "LoadModule",
    "LocalTarget",
    "MakeDirectory",
    "Mount",
    "Push",
    "Read",
    "Run",
    "SampledFiles",
    "Sampling",
    "Start",
    "Step",
    "StepResult",
    "Stop",
    "Target",
    "TracerProgram",
    "Walk",
    "Watcher",
    "Write",
]


class Target(Protocol):
    """A running system that a machine yields."""

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Do the steps in order and return one result for each that was reached.

        A step that fails does not stop the ones after it. Raises GuestEnded where the system itself fails
        (its fact `results` holds what came before), MachineError where the machine does.
        """
        ...
