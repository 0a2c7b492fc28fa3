"""Errors of explaining a difference: what is asked for is not there, or is no difference."""

from ktrial.errors import KtrialError


class ExplanationError(KtrialError):
    """The difference cannot be explained: {problem}"""

    exit_code = 2


class UnknownTreatment(ExplanationError):
    """{study} has no treatment {treatment}{similar}."""

    hint = "its treatments are {known}"


class AmbiguousTreatment(ExplanationError):
    """{study} has several treatments {treatment}: {found}."""

    hint = "give the whole name, as ktrial show prints it"


class SameTreatmentTwice(ExplanationError):
    """{option} and {other} are both {treatment}: there is no difference to explain."""

    hint = "{advice}"


class TreatmentNotSaid(ExplanationError):
    """{study} has {count} treatments; {option} has to say which one is explained."""

    hint = "its treatments are {known}"


class WorkloadNotInStudy(ExplanationError):
    """{study} has no workload {workload}{similar}."""

    hint = "its workloads are {known}"


class WorkloadNotSaid(ExplanationError):
    """{study} has {count} workloads; --workload has to say which one is explained."""

    hint = "its workloads are {known}"


class OtherMachine(ExplanationError):
    """{study} ran on the machine {machine}, which counts no instructions by function."""

    hint = "only results of the machine exact can be explained"


class NotCounted(ExplanationError):
    """{study}: {workload} was not counted by function under {treatment}{problem}."""

    hint = "count it now: ktrial explain {study} --workload {workload}"
    exit_code = 1


class ValuesUnreadable(KtrialError):
    """The settings of kernel {name} cannot be read in its guest: {problem}"""

    hint = "leave them out: --no-values"
