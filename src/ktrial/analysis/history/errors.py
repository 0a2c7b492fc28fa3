"""Errors of histories, matrices, sites and what else reads many results."""

from ktrial.errors import KtrialError


class HistoryError(KtrialError):
    """{what}"""


class NotMeasured(HistoryError):
    """Store {store} has no number of workload {workload}{detail}."""

    hint = "measure it: ktrial matrix --kernels debian:6.1,debian:6.12 --workloads {workload}"


class WorkloadAmbiguous(HistoryError):
    """{count} workloads are called {workload}: {found}."""

    hint = "give one as it is written there, in quotes"
    exit_code = 2


class BadKernelRange(HistoryError):
    """Kernels {text}: {problem}."""

    hint = "5.10..7.2, or names with commas between them: debian:6.1,debian:6.12"
    exit_code = 2


class NoKernelInRange(HistoryError):
    """Kernels {text}: {where} holds no kernel in this range."""

    hint = "with --fetch, Debian's kernels are taken too; or fetch one: ktrial kernel add debian:6.12"


class NoMatrix(HistoryError):
    """Study {study} has one kernel or treatment: a matrix compares two at least."""

    hint = "name another study (ktrial list), or measure: ktrial matrix --kernels 5.10..7.2"


class SiteNotWritten(HistoryError):
    """The site {directory} cannot be written: {problem}."""

    hint = "name another directory"


class SiteInTheWay(HistoryError):
    """The directory {directory} holds other files than a site of ktrial's ({file})."""

    hint = "name an empty directory, or one that `ktrial site` made before"


class NothingToRecommend(HistoryError):
    """Store {store}: {problem}."""

    hint = "measure first: ktrial matrix --kernels 5.10..7.2 --workloads {workloads}"


class NothingToWatch(HistoryError):
    """{what} holds nothing to watch: {problem}."""

    hint = "name kernels (debian:6.12, debian:6.1:generic) or a git tree and a branch"
