"""Errors about workloads: names, parameters, files to carry, runs that failed, metrics not found."""

from ktrial.errors import KtrialError
from ktrial.package_names import INSTALL


class WorkloadError(KtrialError):
    """Workload {workload}: {problem}"""


class UnknownWorkload(WorkloadError):
    """There is no workload {workload}{similar}."""

    hint = "ktrial workload list shows all; a command of yours needs a name and its command line"
    exit_code = 2


class UnknownParameter(WorkloadError):
    """Workload {workload} has no parameter {parameter}{similar}; it has {known}."""

    hint = "ktrial workload show {workload}"
    exit_code = 2


class BadParameter(WorkloadError):
    """Workload {workload}: {parameter} is {value!r}; give {allowed}."""

    hint = "ktrial workload show {workload}"
    exit_code = 2


class BadCommand(WorkloadError):
    """Workload {workload}: {problem}."""

    exit_code = 2


class ProgramNotFound(WorkloadError):
    """Workload {workload}: there is no program {program} on this host."""

    hint = "give its whole path, or install it; it is carried into the guest from here"


class ProgramNotInstalled(WorkloadError):
    """Workload {workload} needs the program {program}, which is not installed here."""

    hint = f"{INSTALL} {{package}}"


class FileNotCarried(WorkloadError):
    """Workload {workload}: cannot carry {path} into the guest: {problem}."""


class TooMuchToCarry(WorkloadError):
    """Workload {workload}: its files are too many or too large for a guest: {count} files, {size}."""

    hint = (
        "at most {files} files and {bytes} are carried, for they lie in the guest's memory; most is in "
        "{most}: name what is needed of it"
    )
    exit_code = 2


class TracerMissing(WorkloadError):
    """Workload {workload}: what the command needs is found by strace, which is not installed here."""

    hint = f"{INSTALL} strace; or name the files yourself, in a study file: ktrial help studies"


class NotTraced(WorkloadError):
    """Workload {workload}: strace cannot watch the command here: {said}"""

    hint = "containers may forbid ptrace: docker run --cap-add SYS_PTRACE"


class NotCaptured(WorkloadError):
    """Workload {workload}: the command {problem} when it was run here: {said}"""

    hint = (
        "a guest would see the same: it ran in {directory}, with PATH and HOME and no other variable of "
        "yours (workload capture --env NAME takes one along), and without input"
    )


class LibraryNotFound(WorkloadError):
    """Workload {workload}: {path} needs the shared library {library}, which this host does not have."""

    hint = "install it, or link the program statically"


class WorkloadNotStarted(WorkloadError):
    """Workload {workload} could not be run: {problem}."""


class WorkloadFailed(WorkloadError):
    """Workload {workload} exited with status {status}: {said}"""


class WorkloadKilled(WorkloadError):
    """Workload {workload} was killed by signal {signal}: {said}"""


class WorkloadTimedOut(WorkloadError):
    """Workload {workload} did not end within {limit}."""


class BadOutput(WorkloadError):
    """Workload {workload}: its output is not what was expected: {problem}."""


class MetricNotFound(WorkloadError):
    """Workload {workload}: the metric {metric} is not in what it printed: {problem}."""

    hint = "the output ends with: {said}"


class MetricNotANumber(WorkloadError):
    """Workload {workload}: its {metric} is {value}, read from {where}; a finite number is wanted."""

    hint = (
        "let the command print a number, or exit with a status other than 0 where it has none: that run "
        "counts as failed. The output ends with: {said}"
    )


class WrongMarks(WorkloadError):
    """Workload {workload} marks what cannot be counted: {problem}"""

    hint = (
        "one thread begins a region, marks the end of each operation in it, and ends it before the next one "
        "begins: ktrial help guest-protocol, Marks"
    )


class NoMarkedRegion(WorkloadError):
    """Workload {workload} cannot be profiled: {problem}"""

    hint = "the built-in workloads mark what they measure: ktrial workload list"
