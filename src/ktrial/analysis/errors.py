"""Errors of reading stored results: baselines and checks, real time and calibration, histories, matrices and
recommendations, and what is asked to be explained.
"""

from ktrial.errors import KtrialError


class CheckError(KtrialError):
    text = "{problem}"


class CheckUsageError(CheckError):
    """The command was given something that it cannot take."""

    exit_code = 2


class TimedError(KtrialError):
    text = "{problem}"


class TimedUsageError(TimedError):
    """The command was given something that it cannot take."""

    exit_code = 2


class HistoryError(KtrialError):
    text = "{what}"


class HistoryUsageError(HistoryError):
    """The command was given something that it cannot take."""

    exit_code = 2


class NotMeasured(HistoryError):
    text = "Store {store} has no number of workload {workload}{detail}."
    hint = "measure it: ktrial matrix --kernels debian:6.1,debian:6.12 --workloads {workload}"


class NoMatrix(HistoryError):
    text = "Study {study} has one kernel or treatment: a matrix compares two at least."
    hint = "name another study (ktrial list), or measure: ktrial matrix --kernels 5.10..7.2"


class NothingToWatch(HistoryError):
    text = "{what} holds nothing to watch: {problem}."
    hint = "name kernels (debian:6.12, debian:6.1:generic) or a git tree and a branch"


class ExplanationError(KtrialError):
    text = "The difference cannot be explained: {problem}"
    exit_code = 2


class NotCounted(ExplanationError):
    text = "{study}: {workload} was not counted by function under {treatment}{problem}."
    hint = "count it now: ktrial explain {study} --workload {workload}"
    exit_code = 1


class ValuesUnreadable(KtrialError):
    text = "The settings of kernel {name} cannot be read in its guest: {problem}"
    hint = "leave them out: --no-values"


class RepetitionError(KtrialError):
    text = "Study {study}: {problem}"


class RepetitionUsageError(RepetitionError):
    """The command was given something that it cannot take."""

    exit_code = 2


class BadAmount(KtrialError):
    text = "{option} is {value!r}: {problem}."
    hint = "an amount is a percentage: 1%, 0.5 %"
    exit_code = 2


class FidelityError(KtrialError):
    text = "{problem}"


class FidelityUsageError(FidelityError):
    """The command was given something that it cannot take."""

    exit_code = 2
