"""Errors of reading stored results: baselines and checks, real time and calibration, histories, matrices and
recommendations, and what is asked to be explained.
"""

from ktrial.errors import KtrialError


class CheckError(KtrialError):
    """{problem}"""


class BaselineNotThere(CheckError):
    """There is no baseline {name} in store {store}{similar}, and no kernel is called so."""

    hint = (
        "save one: ktrial baseline save {name} --kernel K --workload W; or name a kernel, such as debian:6.1"
    )
    exit_code = 2


class BadBaselineName(CheckError):
    """'{name}' cannot name a baseline: {problem}."""

    hint = "use letters, digits, '.', '_' and '-': last-release, v6.12"
    exit_code = 2


class BaselineFailed(CheckError):
    """The baseline {name} could not be measured: {problem}."""

    hint = "nothing is decided; take a baseline that boots and runs the workloads"


class BaselineIncomparable(CheckError):
    """Baseline {name} and {kernel} must not be compared: {problem}."""

    hint = "save it anew: ktrial baseline save {name} --kernel {saved} {workloads}"


class BaselineLacks(CheckError):
    """Baseline {name} was not measured with {what}; it has {there}."""

    hint = "leave the option out, or save it anew: ktrial baseline save {name} …"
    exit_code = 2


class BadLimit(CheckError):
    """--max {text}: {problem}."""

    hint = "write --max +1%, or for one workload --max fork=+2%"
    exit_code = 2


class MachineFailedCheck(CheckError):
    """The machine failed while it ran {kernel}: {problem}."""

    hint = "this says nothing about the kernel; ktrial doctor looks at the machine"


class TimedError(KtrialError):
    """{problem}"""


class NothingToCalibrate(TimedError):
    """The A/A study {study} calibrates nothing: {problem}."""

    hint = "run it with at least ten blocks: ktrial calibrate --blocks 20"


class CalibrationNotThere(TimedError):
    """The machine {machine} has not been calibrated in this store."""

    hint = "ktrial calibrate --machine {machine} --workload W"


class NothingToConfirm(TimedError):
    """The study {study} is exact: a second run would give the same numbers to the last digit."""

    exit_code = 2
    hint = "only studies in real time are confirmed; more perturbations show more spread: --perturbations"


class HistoryError(KtrialError):
    """{what}"""


class NotMeasured(HistoryError):
    """Store {store} has no number of workload {workload}{detail}."""

    hint = "measure it: ktrial matrix --kernels debian:6.1,debian:6.12 --workloads {workload}"


class WorkloadAmbiguous(HistoryError):
    """{count} workloads are called {workload}: {matching}."""

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


class ExplanationError(KtrialError):
    """The difference cannot be explained: {problem}"""

    exit_code = 2


class UnknownTreatment(ExplanationError):
    """{study} has no treatment {treatment}{similar}."""

    hint = "its treatments are {known}"


class AmbiguousTreatment(ExplanationError):
    """{study} has several treatments {treatment}: {matching}."""

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

    hint = "only results of the machines exact and exact-parallel can be explained"


class NotCounted(ExplanationError):
    """{study}: {workload} was not counted by function under {treatment}{problem}."""

    hint = "count it now: ktrial explain {study} --workload {workload}"
    exit_code = 1


class UnknownCandidate(ExplanationError):
    """Nothing that differs and can be taken back is called {name}{similar}."""

    hint = "what can be tried: {known}"


class ValuesUnreadable(KtrialError):
    """The settings of kernel {name} cannot be read in its guest: {problem}"""

    hint = "leave them out: --no-values"


class RepetitionError(KtrialError):
    """Study {study}: {problem}"""


class NotExact(RepetitionError):
    """Study {study} was measured in real time ({modes}): no trial of it gives the same numbers twice."""

    hint = "ktrial verify is for studies on the machine exact; run this one again, and compare the verdicts"
    exit_code = 2


class NothingToRepeat(RepetitionError):
    """Study {study} has no trial that completed: there is nothing to run again."""

    hint = "ktrial show {study} tells how its trials ended"
    exit_code = 2


class TrialNotStored(RepetitionError):
    """Study {study} has no trial {key}."""

    hint = "a trial's key is in the warning that names its seed, and in ktrial show {study} --json"
    exit_code = 2


class BadAmount(KtrialError):
    """{option} is {value!r}: {problem}."""

    hint = "an amount is a percentage: 1%, 0.5 %"
    exit_code = 2


class FidelityError(KtrialError):
    """{problem}"""


class WrongMachineForFidelity(FidelityError):
    """Study {study} ran on machine {machine}: a study {wanted} is asked for there."""

    hint = "name the study that counts first, then that in real time: ktrial fidelity EXACT TIMED"
    exit_code = 2


class NotTheSameTreatments(FidelityError):
    """Studies {exact} and {timed} have no treatment with a number for the same workload in both."""

    hint = 'run the same study file with machine = "exact" and machine = "host"'
    exit_code = 2


class NothingToFit(FidelityError):
    """Constants cannot be fitted to {operations} operations: at least {least} need a time and a profile."""

    hint = "run more of the studies that count, with a machine model and calls by function (the plugin)"
    exit_code = 2


class NoOneModel(FidelityError):
    """Constants are fitted to studies that are all counted on one modelled machine, not on: {models}."""

    hint = "run them with --model default"
    exit_code = 2
