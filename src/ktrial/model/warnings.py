"""Warnings about data: typed values that carry advice, and reach the terminal, the store and the report."""

from enum import StrEnum

from ktrial.model.base import Model


class WarningKind(StrEnum):
    """What a warning is about."""

    FAILED_TRIALS = "failed-trials"
    REPLAY = "replay"
    """On several CPUs, a trial in which the kernel failed or complained: its seed, and what runs it again."""
    PLAIN_BOOT = "plain-boot"
    COUNTED_BY_CLOCK = "counted-by-clock"
    """The QEMU plugin does not load here: instructions are read from the guest's clock."""
    PROCESSOR_FLAGS = "processor-flags"
    """QEMU's flags behind `cmpxchg16b` are wrong, and could not be mended."""
    NO_PROFILE = "no-profile"
    """The totals hold, but what each function had of them is not known."""
    GUEST_TIME = "guest-time"
    """In exact mode, what a program tells as time: it read the guest's clock, which counts instructions."""
    SEVERAL_CPUS = "several-cpus"
    """What several simulated CPUs cannot show: a note."""
    SAME_TIME = "same-time"
    """A command takes as long on any number of CPUs: it may run for a fixed time."""
    MARKS = "marks"
    """A program of the user's marks regions and operations, and something else than these stands in them."""
    SET_UP = "set-up"
    """How much of a run came before counting began: a note."""
    FILES = "files"
    """Something in a directory that a command needs could not be carried into the guest."""
    CAPTURED = "captured"
    """What is otherwise in a guest than where a command was captured: a note."""
    GUEST_PROGRAMS = "guest-programs"
    """The guest's programs are not the published ones: another compiler or C library made them."""
    WORKER_QUARANTINED = "worker-quarantined"
    """A worker of a fleet told other digits than another one: its trials were run again elsewhere."""
    DIFFERENT_MACHINES = "different-machines"
    DIFFERENT_KERNELS = "different-kernels"
    """One treatment's trials ran on kernels that differ, under one name."""
    WIDE_SPREAD = "wide-spread"
    NO_SPREAD = "no-spread"
    """One perturbation only: nothing tells an effect from an accident of layout."""
    MISSING_WORKLOAD = "missing-workload"
    COUNTERS_MISSING = "counters-missing"
    EVENTS_LEFT_OUT = "events-left-out"
    """A monitor does not count here all that it counts elsewhere."""
    MONITOR_COST = "monitor-cost"
    """By how much a monitor slows down what it watches: a note, since the study's numbers are without it."""
    PLUGIN_BROKEN = "plugin-broken"
    """An outside machine, workload or importer that cannot be loaded."""
    ENVIRONMENT = "environment"
    """Something about the machine disturbs measurements in real time."""
    ENVIRONMENT_CHANGED = "environment-changed"
    """It changed while the study ran."""
    CONFOUND = "confound"
    """It differs between treatments, and no factor of the study's says so."""
    WHOLE_STEP = "whole-step"
    """Two kernels differ in several ways at once, as different versions do: a note, and no alarm."""
    INEXACT_PATCH = "inexact-patch"
    """A patch that applies elsewhere than it says: it may have been written for another source."""
    NEW_OPTIONS = "new-options"
    """What became of the options that a kernel's patches bring: a note."""
    SAME_IMAGE = "same-image"
    """Two kernels that a factor tells apart are bit-identical."""
    LIMIT_RAISED = "limit-raised"
    """A limit that is smaller than what irrelevant changes move: another one was used."""
    OUT_OF_REACH = "out-of-reach"
    """A setting of something that no workload of the study uses: verdicts are about something else."""
    NOT_TESTED = "not-tested"
    """What a setting decides about never happened while the workloads ran: nothing is said of it."""
    CHANGE_NOT_RUN = "change-not-run"
    """Nothing of what differs between two kernels ran in any workload: verdicts are about something else."""
    CHANGE_PARTLY_RUN = "change-partly-run"
    """In some workloads nothing of it ran, or no profile can tell: a note."""
    RUNS_AS_ROOT = "runs-as-root"
    """A command of the user's has all rights on this system, and nobody said that it should."""
    DRIFT = "drift"
    AUTOCORRELATION = "autocorrelation"
    BIMODAL = "bimodal"
    UNEQUAL_VARIANCES = "unequal-variances"
    COARSE_VALUES = "coarse-values"
    """So few distinct values that the clock's or the print's resolution shows."""
    SPREAD_UNKNOWN = "spread-unknown"
    """Numbers that are all alike: how much they scatter lies below what the clock or the print shows."""
    FAR_BLOCKS = "far-blocks"
    """A few blocks far off the others: they move the mean, and the typical block does not."""
    TAILS_DISAGREE = "tails-disagree"
    """Typical trials and all trials together say different things."""
    RARE_TRIALS_UNSEEN = "rare-trials-unseen"
    """A verdict on typical trials from so few blocks that they may have met none of the slow ones."""
    SEARCH_DISAGREES = "search-disagrees"
    """What a search let expect of its answer and what fresh runs show are further apart than by chance."""
    EARLY_STOPPING = "early-stopping"
    """The study stopped as soon as a difference was certain, which makes the difference look larger."""
    PERMUTATION_DISAGREES = "permutation-disagrees"
    """A difference that the t test finds, and permutation within blocks does not."""
    TOO_FEW_RUNS = "too-few-runs"
    COPIED_VALUES = "copied-values"
    """The same numbers where independent measurements should stand."""
    INDEX_MISMATCH = "index-mismatch"
    """A published index or score that its own parts do not give."""
    IMPOSSIBLE_SUMMARY = "impossible-summary"
    """A mean, standard error, standard deviation and run count that cannot belong together."""
    ORDER_CONFOUNDED = "order-confounded"
    """Treatment and run order go together: drift and effect cannot be told apart."""
    REPEATS_DISAGREE = "repeats-disagree"
    """One treatment, measured several times, with results that contradict each other."""
    DIRECTION = "direction"
    """Somebody says that the other way is better than the one that the tool's format has."""
    INPUT_INCOMPLETE = "input-incomplete"
    """A results file with parts that could not be used."""


NOTES = frozenset(
    {
        WarningKind.SEVERAL_CPUS,
        WarningKind.CAPTURED,
        WarningKind.WHOLE_STEP,
        WarningKind.NEW_OPTIONS,
        WarningKind.CHANGE_PARTLY_RUN,
        WarningKind.EVENTS_LEFT_OUT,
        WarningKind.MONITOR_COST,
        WarningKind.GUEST_PROGRAMS,
    }
)
"""What is said so that a result is read for what it is; nothing is wrong with the data."""


class DataWarning(Model):
    """One warning: what is odd about the data, and what to do about it."""

    kind: WarningKind
    text: str
    advice: str = ""

    @property
    def is_note(self) -> bool:
        """Whether it is no alarm."""
        return self.kind in NOTES
