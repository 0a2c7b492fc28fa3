"""Studies with results for tests of the report, made by the same statistics that judge real ones.

`fork`, `pipe` and `getppid` have figures that were measured on Debian's cloud kernels; the other workloads'
are made up in their proportion.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache

from tests.support.making import a_sample, a_study
from tests.support.profiles import with_calls
from tests.unit.report.test_flame_graph import AFTER, BEFORE

from ktrial.analysis.answer import answer
from ktrial.analysis.attribution.decomposition import explain
from ktrial.model.attribution import (
    Attribution,
    CounterDifference,
    Differences,
    LevelDifference,
    OptionDifference,
    ValueDifference,
)
from ktrial.model.comparison import Comparison, Result
from ktrial.model.design import PlannedTrial, Treatment
from ktrial.model.profile import Profile
from ktrial.model.study import StudyRecord, perturbation
from ktrial.model.trial import CounterDelta, Outcome, Provenance, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction, Metric, Mode, WorkloadUse
from ktrial.report import study_summary as summary
from ktrial.report.attribution import Why, explained
from ktrial.stats.verdict_rules import Arm, compare

RELEASES = {
    "debian:5.10": "5.10.0-35-cloud-amd64",
    "debian:6.1": "6.1.0-50-cloud-amd64",
    "debian:6.12": "6.12.57+deb13-cloud-amd64",
    "debian:6.18": "6.18.5+deb14-cloud-amd64",
    "debian:7.2": "7.2.1+deb14-cloud-amd64",
}


FIVE = tuple(RELEASES)


VALUES: dict[str, tuple[float, ...]] = {
    "fork": (120137, 143394, 163150, 170548, 175789),
    "pipe": (2276, 2510, 2427, 2082, 2104),
    "getppid": (320, 394, 398, 362, 360),
    "nqueens": (1840211, 1840211, 1840211, 1840211, 1840211),
    "open-close": (3210, 3414, 3388.5, 3402, 3430),
    "hackbench(groups=2, processes=1, sockets=1)": (9120444, 9480230, 9511100, 9230882, 9301200),
}


MORE = (
    *("vfork", "clone3", "execve", "mmap", "stat", "copy-256", "copy-1024", "copy-4096", "futex", "epoll"),
    *("socketpair", "tcp", "timer", "thread", "context-switch"),
)


FOUR_MORE = ("read", "write", "mprotect", "page-fault")


MARGIN = 0.01


def values(workload: str) -> tuple[float, ...]:
    if workload in VALUES:
        return VALUES[workload]
    place = (*MORE, *FOUR_MORE).index(workload)
    return tuple(round(900 * 1.6**place * (1 + 0.013 * ((place * step) % 7 - 2))) for step in range(5))


def a_value(workload: str, kernel: str, number: int) -> float:
    """The workload's figure, moved a little by the perturbation, as layout moves real ones."""
    figure = values(workload)[FIVE.index(kernel)]
    if workload in {"nqueens", "getppid"}:
        return figure
    if workload == "open-close":
        # Up in one kernel, down in the next: nothing that pairs by perturbation could take out.
        sign = -1 if FIVE.index(kernel) % 2 else 1
        return round(figure * (1 + 0.012 * number * sign), 1)
    return round(figure * (1 + 0.0002 * number), 1)


class Records(Mapping[str, StudyRecord]):
    """By name; each is made when it is asked for, and once."""

    def __init__(self, made_by: Mapping[str, Callable[[], StudyRecord]]) -> None:
        self.made_by = {name: cache(make) for name, make in made_by.items()}

    def __getitem__(self, name: str) -> StudyRecord:
        return self.made_by[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.made_by)

    def __len__(self) -> int:
        return len(self.made_by)


def provenance(kernel: str) -> Provenance:
    place = FIVE.index(kernel) if kernel in FIVE else 0
    return Provenance(
        kernel=kernel,
        kernel_release=RELEASES.get(kernel, ""),
        kernel_package=f"linux-image-{RELEASES.get(kernel, kernel)} 1:{kernel[7:]}-1",
        kernel_digest=f"{place + 1:x}b" * 32,
        config_digest=f"{place + 1:x}c" * 32,
        machine="exact",
        qemu="7.2.22 (Debian 1:7.2+dfsg-7+deb12u18) sha256:" + "4f" * 32,
        cpu_model="max,-erms,-fsrm",
        command_line="console=ttyS0 panic=-1 quiet nokaslr norandmaps randomize_kstack_offset=off "
        "cryptomgr.notests tsc_early_khz=1000000 lpj=4000000 tsc=reliable no_timer_check noapictimer",
        machine_arguments=(
            "-accel",
            "tcg",
            "-M",
            "pc,hpet=off",
            "-icount",
            "shift=0,sleep=off",
            "-m",
            "512M",
        ),
        agent_digest="a7" * 32,
        seed=1,
        snapshot=f"{place + 1:x}d" * 32,
        ktrial="0.1.0",
    )


def a_trial(kernel: str, workloads: tuple[str, ...], number: int, order: int) -> Trial:
    plan = PlannedTrial(
        order=order,
        block=number,
        treatment=Treatment(levels={"kernel": kernel}),
        perturbation=perturbation(1, number),
    )
    return Trial(
        planned=plan,
        outcome=Outcome.COMPLETED,
        samples=tuple(a_sample(name, a_value(name, kernel, number)) for name in workloads),
        counters=tuple(delta for name in workloads for delta in counters(name, kernel)),
        provenance=provenance(kernel),
        started=datetime(2026, 11, 21, 9, 30, tzinfo=UTC) + timedelta(seconds=7 * order),
        seconds=6.4,
    )


def counters(workload: str, kernel: str) -> tuple[CounterDelta, ...]:
    place = FIVE.index(kernel)
    deltas = {
        "vmstat.pgfault": 61000 + 4100 * place,
        "vmstat.pgalloc_normal": 88000 + 350 * place,
        "vmstat.numa_hit": 90000,
        "vmstat.slabs_scanned": 40 * place,
        "stat.ctxt": 2004 + place,
        "rusage.minflt": 60100 + 4050 * place,
    }
    return tuple(CounterDelta(workload=workload, name=name, delta=delta) for name, delta in deltas.items())


def comparisons(trials: tuple[Trial, ...], kernels: tuple[str, ...]) -> tuple[Comparison, ...]:
    metric = Metric(name="instructions", unit="instructions/operation", direction=Direction.LOWER)
    workloads = dict.fromkeys(sample.workload for trial in trials for sample in trial.samples)
    return tuple(
        compare(
            workload,
            metric,
            Mode.EXACT_CLOCK,
            an_arm(trials, kernels[0], workload),
            an_arm(trials, kernel, workload),
            margin=MARGIN,
        )
        for kernel in kernels[1:]
        for workload in workloads
    )


def an_arm(trials: tuple[Trial, ...], kernel: str, workload: str) -> Arm:
    return Arm(
        kernel,
        {
            trial.planned.perturbation.number: sample.value
            for trial in trials
            if trial.planned.treatment.label == kernel
            for sample in trial.samples
            if sample.workload == workload
        },
    )


def a_record(
    kernels: tuple[str, ...] = ("debian:6.1", "debian:6.12"),
    workloads: tuple[str, ...] = tuple(VALUES),
    perturbations: int = 3,
    question: str = "What does a process cost more on Debian 13’s kernel than on Debian 12’s?",
    **changes: object,
) -> StudyRecord:
    """A finished study in exact mode."""
    uses = tuple(WorkloadUse(name=name) for name in workloads if "(" not in name)
    if any("(" in name for name in workloads):
        uses += (WorkloadUse(name="hackbench", parameters={"groups": 2, "processes": 1, "sockets": 1}),)
    settings = {"workloads": uses, "question": question, "margin": MARGIN}
    study = a_study("quick", kernels, perturbations=perturbations).model_copy(update=settings)
    orders = [(kernel, number) for number in range(perturbations) for kernel in kernels]
    trials = tuple(a_trial(kernel, workloads, number, order) for order, (kernel, number) in enumerate(orders))
    compared = comparisons(trials, kernels)
    plain = {
        "id": 7,
        "study": study,
        "study_digest": "5e" * 32,
        "created": datetime(2026, 11, 21, 9, 29, tzinfo=UTC),
        "planned": len(trials),
        "trials": trials,
        "result": Result(
            study=study.name, question=question, answer=answer(compared, MARGIN), comparisons=compared
        ),
    }
    return StudyRecord.model_validate(plain | changes)


def in_plugin_mode(record: StudyRecord) -> StudyRecord:
    """The same with samples by the plugin; comparisons stay."""
    trials = tuple(
        trial.model_copy(
            update={
                "samples": tuple(
                    sample.model_copy(update={"mode": Mode.EXACT_PLUGIN}) for sample in trial.samples
                )
            }
        )
        for trial in record.trials
    )
    return record.model_copy(update={"trials": trials})


def a_matrix() -> StudyRecord:
    """Five kernels and 21 workloads."""
    return a_record(FIVE, (*VALUES, *MORE))


def a_single_comparison() -> StudyRecord:
    """Two kernels and one workload."""
    return a_record(workloads=("fork",))


def a_study_without_comparisons() -> StudyRecord:
    """One kernel, measured and compared with nothing."""
    record = a_record(("debian:6.1",))
    result = record.result.model_copy(update={"answer": "", "comparisons": ()})
    return record.model_copy(update={"result": result})


def an_empty_study() -> StudyRecord:
    """A study whose first trial has not ended."""
    record = a_study_without_comparisons()
    return record.model_copy(update={"trials": (), "planned": 6})


CONSOLE = "\n".join(
    [
        "[    0.000000] Linux version 6.12.57+deb13-cloud-amd64 (debian-kernel@lists.debian.org)",
        "\x1b[31m[    1.204113] Kernel panic - not syncing: VFS: Unable to mount root fs\x1b[0m",
        "[    1.204200] CPU: 0 UID: 0 PID: 1 Comm: swapper/0 Not tainted <script>alert(1)</script>",
        *(f"[    1.2043{number:02}]  ? do_syscall_64+0x{number:02x}/0x190" for number in range(30)),
        "[    1.205000] ---[ end Kernel panic - not syncing ]---",
    ]
)


def a_study_with_failures() -> StudyRecord:
    """All trials of one kernel failed, each in its own way; two trials have not run."""
    record = a_record(("debian:6.1", "debian:6.12", "debian:7.2"))
    outcomes = [Outcome.PANICKED, Outcome.HUNG, Outcome.OUT_OF_MEMORY]
    reasons = [
        "Unable to mount root fs",
        "no end after 200,000,000,000 instructions",
        "killed process 71 (fork)",
    ]
    trials = tuple(
        trial.model_copy(
            update={
                "outcome": outcomes[trial.planned.block],
                "reason": reasons[trial.planned.block],
                "samples": (),
                "console": CONSOLE if trial.planned.block < 2 else "",
            }
        )
        if trial.planned.treatment.label == "debian:6.12"
        else trial
        for trial in record.trials
    )
    warnings = (
        DataWarning(
            kind=WarningKind.FAILED_TRIALS,
            text="3 of 9 trials failed: debian:6.12 has no numbers.",
            advice="Look at the console log: ktrial show quick --console",
        ),
        DataWarning(
            kind=WarningKind.PLAIN_BOOT,
            text="Trials on debian:7.2 were booted plainly: the state could not be saved.",
        ),
    )
    kernels = ("debian:6.1", "debian:6.12", "debian:7.2")
    compared = comparisons(trials, kernels)
    changes = {"comparisons": compared, "answer": answer(compared, MARGIN), "warnings": warnings}
    result = record.result.model_copy(update=changes)
    return record.model_copy(update={"trials": trials, "result": result, "planned": 11})


def a_study_with_gaps() -> StudyRecord:
    """In one kernel a workload failed and others came to zero: these have no ratio, those beside them do."""
    record = a_record(("debian:6.1", "debian:6.12", "debian:7.2"))

    def with_gaps(trial: Trial) -> Trial:
        if trial.planned.treatment.label != "debian:6.12":
            return trial
        kept = (one for one in trial.samples if one.workload != "pipe")
        zero = ("getppid", "hackbench(groups=2, processes=1, sockets=1)")
        samples = tuple(
            one.model_copy(update={"value": 0.0}) if one.workload in zero else one for one in kept
        )
        failed = {"outcome": Outcome.WORKLOAD_FAILED, "reason": "pipe: exit status 3"}
        return trial.model_copy(update={"samples": samples, **failed})

    trials = tuple(map(with_gaps, record.trials))
    compared = comparisons(trials, ("debian:6.1", "debian:6.12", "debian:7.2"))
    changes = {"comparisons": compared, "answer": answer(compared, MARGIN)}
    result = record.result.model_copy(update=changes)
    return record.model_copy(update={"trials": trials, "result": result})


def an_endless_question() -> StudyRecord:
    """A question that nobody should ask, with a word that no line can hold."""
    return a_record(
        question="Does it matter, and if it does, for whom, since when, and how much? " * 30 + "a" * 400
    )


def a_factorial() -> StudyRecord:
    """Treatments with long labels."""
    record = a_record(FIVE, ("fork", "pipe"))
    others = {"transparent_hugepage": "never", "vm.swappiness": 100}
    named = {kernel: Treatment(levels={"kernel": kernel, **others}) for kernel in FIVE}

    def relabelled(trial: Trial) -> Trial:
        treatment = named[trial.planned.treatment.label]
        planned = trial.planned.model_copy(update={"treatment": treatment})
        return trial.model_copy(update={"planned": planned})

    renamed = tuple(
        one.model_copy(
            update={"baseline": named[one.baseline].label, "treatment": named[one.treatment].label}
        )
        for one in record.result.comparisons
    )
    changes = {"comparisons": renamed, "answer": answer(renamed, MARGIN)}
    trials = tuple(map(relabelled, record.trials))
    return record.model_copy(update={"trials": trials, "result": record.result.model_copy(update=changes)})


HOSTILE = (
    "<script>alert('1')</script>\"&\x00\x1b[31m\x07\u202egnp\u202c مرحبا | `x` @everyone [a](b) "
    + "long" * 60
)


def a_hostile_record() -> StudyRecord:
    """Every text that comes from a file or a guest tries to break out of its place."""
    record = a_record(("debian:6.1", "debian:6.12"), ("fork",))
    trials = tuple(_hostile_trial(trial) for trial in record.trials)
    comparison = record.result.comparisons[0].model_copy(
        update={
            "workload": HOSTILE,
            "metric": HOSTILE,
            "unit": HOSTILE,
            "baseline": trials[0].planned.treatment.label,
            "treatment": trials[1].planned.treatment.label,
            "reason": HOSTILE,
        }
    )
    warning = DataWarning(kind=WarningKind.WIDE_SPREAD, text=HOSTILE, advice=HOSTILE)
    result = Result(
        study=HOSTILE, question=HOSTILE, answer=HOSTILE, comparisons=(comparison,), warnings=(warning,)
    )
    study = record.study.model_copy(update={"name": HOSTILE, "question": HOSTILE})
    return record.model_copy(update={"study": study, "trials": trials, "result": result})


def _hostile_trial(trial: Trial) -> Trial:
    kernel = trial.planned.treatment.label + HOSTILE
    hostile = dict.fromkeys(("kernel", "kernel_release", "kernel_package", "qemu", "cpu_model"), HOSTILE)
    return trial.model_copy(
        update={
            "planned": trial.planned.model_copy(update={"treatment": Treatment(levels={"kernel": kernel})}),
            "outcome": Outcome.WORKLOAD_FAILED,
            "reason": HOSTILE,
            "console": HOSTILE * 3,
            "samples": tuple(
                sample.model_copy(update={"workload": HOSTILE, "metric": HOSTILE, "unit": HOSTILE})
                for sample in trial.samples
            ),
            "counters": (CounterDelta(workload=HOSTILE, name=HOSTILE, delta=trial.planned.order * 100.0),),
            "provenance": trial.provenance.model_copy(update=hostile),
        }
    )


ALL = {
    "quick": a_record,
    "matrix": a_matrix,
    "factorial": a_factorial,
    "single": a_single_comparison,
    "failures": a_study_with_failures,
    "gaps": a_study_with_gaps,
    "no-comparisons": a_study_without_comparisons,
    "empty": an_empty_study,
    "endless-question": an_endless_question,
    "hostile": a_hostile_record,
}


# A study by the plugin, with what its differences are made of, for tests of the report.


def by_the_plugin(record: StudyRecord) -> StudyRecord:
    """The same study, counted by the plugin."""
    counted = {"mode": Mode.EXACT_PLUGIN}
    trials = tuple(
        trial.model_copy(
            update={"samples": tuple(sample.model_copy(update=counted) for sample in trial.samples)}
        )
        for trial in record.trials
    )
    comparisons = tuple(one.model_copy(update=counted) for one in record.result.comparisons)
    result = record.result.model_copy(update={"comparisons": comparisons})
    return record.model_copy(update={"trials": trials, "result": result})


def a_counted_record() -> StudyRecord:
    return by_the_plugin(a_record())


def a_counted_matrix() -> StudyRecord:
    return by_the_plugin(a_record(FIVE, (*VALUES, *MORE)))


def explained_by(before: Profile, after: Profile) -> Attribution:
    """An explanation with one difference of each kind around it."""
    around = Differences(
        levels=(LevelDifference(factor="kernel", before=before.kernel, after=after.kernel),),
        boot_after=("init_on_alloc=1",),
        options=(
            OptionDifference(option="CONFIG_LRU_GEN", before=None, after="y", owners=("mm",)),
            OptionDifference(option="CONFIG_HZ", before="250", after="1000", owners=("timers",)),
            OptionDifference(option="CONFIG_UNRELATED", before=None, after="y"),
        ),
        values=(
            ValueDifference(path="/sys/block/ram0/queue/read_ahead_kb", before="128", after="8192"),
            ValueDifference(path="/proc/sys/vm/new", before=None, after="1"),
        ),
        counters=(CounterDifference(counter="vmstat.pgfault", before=4.5, after=5.25),),
        unknown=("settings: those of debian:6.1 were not read",),
    )
    return Attribution(before=before, after=after, explanation=explain(before, after), differences=around)


def whys_for(record: StudyRecord) -> tuple[Why, ...]:
    """A reason for each comparison, whatever its verdict: the same two small profiles for all."""
    before, after = with_calls(BEFORE, kernel="debian:6.1"), with_calls(AFTER, kernel="debian:6.12")
    why = explained_by(before, after)
    return tuple(explained([one], why) for group in summary.groups(record) for one in group.comparisons)
