"""Errors of reading stored results: what cannot be compared, shown or explained."""

from ktrial.errors import KtrialError


class AnalysisError(KtrialError):
    """The room's general error."""


class AnalysisUsageError(AnalysisError):
    """The command was given something that it cannot take."""

    exit_code = 2


class NotMeasured(AnalysisError):
    text = "Store {store} has no number of workload {workload}{detail}."
    hint = "measure it: ktrial matrix --kernels debian:6.1,debian:6.12 --workloads {workload}"


class NoMatrix(AnalysisError):
    text = "Study {study} has one kernel or treatment: a matrix compares two at least."
    hint = "name another study (ktrial list), or measure: ktrial matrix 5.10..7.2"


class NothingToWatch(AnalysisError):
    text = "{what} holds nothing to watch: {problem}."
    hint = "name kernels (debian:6.12, debian:6.1:generic) or a git tree and a branch"


class ExplanationError(KtrialError):
    text = "The difference cannot be explained: {problem}"
    exit_code = 2


class NotCounted(ExplanationError):
    text = "{study}: {workload} was not counted by function under {treatment}{problem}."
    hint = "count it now: ktrial explain {study} --workload {workload}"
    exit_code = 1


class BadAmount(KtrialError):
    text = "{option} is {value!r}: {problem}."
    hint = "an amount is a percentage: 1%, 0.5 %"
    exit_code = 2
