"""Workloads on another machine: programs that are there already, and ktrial's own."""

from ktrial.model.machine import CarriedFile
from ktrial.model.workload import WorkloadUse
from ktrial.workloads.adapter import GROUP
from ktrial.workloads.command import CommandWorkload
from ktrial.workloads.errors import BadCommand
from ktrial.workloads.protocol import Workload


class RemoteCommand(CommandWorkload):
    """Runs what `use.command` says; its program is looked for on the machine that it runs on."""

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        """None. Raises BadCommand where the study wants some carried there."""
        if use.command and (use.command.files or use.command.directories):
            raise BadCommand(
                workload=use.label, problem="the machine ssh carries no files: put them there first"
            )
        return ()

    def program(self, workload: str, named: str) -> str:
        """As it was named."""
        return named


def only_built_in(use: WorkloadUse, workload: Workload) -> Workload:
    """The workload, if its program comes with ktrial. Raises BadCommand."""
    if workload.description.group == GROUP:
        problem = "it runs a program of this system; on the machine ssh, name the program as a command"
        raise BadCommand(workload=use.label, problem=problem)
    return workload
