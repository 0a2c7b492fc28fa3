"""Checks and baselines: what is within, what is beyond, what cannot be decided, what must not be compared."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.kernel_images import a_kernel_of
from tests.support.making import a_sample, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.scripted import ScriptedMachine, ScriptedWorkload, a_kernel, ends, scripted_resources

from ktrial.analysis import kernel_diff
from ktrial.analysis.errors import AnalysisError, AnalysisUsageError
from ktrial.errors import KtrialError
from ktrial.experiment import regression_check as baselines
from ktrial.experiment import regression_check as checks
from ktrial.experiment.regression_check import check
from ktrial.experiment.resources import Resources
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels.errors import ImageError
from ktrial.machines.errors import MachineError
from ktrial.model.base import digest
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.kernel import Build, Kernel, Reach
from ktrial.model.machine import Boot
from ktrial.model.profile import FunctionFiles, Profile
from ktrial.model.regression_check import Decision, RegressionCheck
from ktrial.model.study import Measurement, StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import CountedBy, Direction, Mode, Parameter, WorkloadUse
from ktrial.store.store import Store
from ktrial.target import Run, StepResult

FORK = Measurement((WorkloadUse(name="fork"),))
GOOD, TESTED = a_kernel("debian:6.1"), a_kernel("path:/vmlinux")


def machine(numbers: Mapping[str, tuple[float, ...]], qemu: str = "7.2.22") -> ScriptedMachine:
    """Answers with the kernel's number for each perturbation, or with its one number."""

    def answer(boot: Boot, run: Run) -> StepResult:
        values = numbers[boot.kernel.name]
        return StepResult(step=0, do="run", exit=0, stdout=str(values[int(run.argv[1]) % len(values)]))

    return ScriptedMachine(answer, qemu=qemu)


def runs(store: Store, where: ScriptedMachine) -> Runs:
    return Runs(store, machine=where, resources=scripted_resources())


def checked(
    store: Store, good: tuple[float, ...], tested: tuple[float, ...], limit: float = 0.01
) -> RegressionCheck:
    place = runs(store, machine({GOOD.name: good, TESTED.name: tested}))
    return check(TESTED, baselines.of_kernel(GOOD, FORK, place), FORK, {"fork": limit}, place)


@pytest.mark.parametrize(
    ("good", "tested", "limit", "decision"),
    [
        ((1000,), (1000,), 0.01, Decision.WITHIN),
        ((1000,), (1009,), 0.01, Decision.WITHIN),
        ((1000,), (1011,), 0.01, Decision.BEYOND),
        ((1000,), (1011,), 0.02, Decision.WITHIN),
        ((1000,), (500,), 0.01, Decision.WITHIN),
        ((1000, 1003, 1001), (1012, 1015, 1010), 0.01, Decision.UNDECIDED),
        ((1000, 1003, 1001), (1015, 1015, 1016), 0.01, Decision.BEYOND),
        ((1000, 1003, 1001), (1000, 1003, 1004), 0.01, Decision.WITHIN),
        ((1000, 1050, 1001), (800, 990, 900), 0.01, Decision.WITHIN),
        ((10000,), (10025,), 0.0001, Decision.WITHIN),
        ((10000,), (10035,), 0.0001, Decision.BEYOND),
    ],
)
def test_a_check_decides_by_the_whole_spread_and_never_below_what_irrelevant_changes_do(
    good: tuple[float, ...], tested: tuple[float, ...], limit: float, decision: Decision, store: Store
) -> None:
    outcome = checked(store, good, tested, limit)
    assert outcome.decision is decision
    (row,) = outcome.rows
    assert row.decision is decision
    assert bool(row.reason) == (decision is Decision.UNDECIDED)
    assert row.limit == max(limit, checks.FLOOR)


def test_the_limit_of_one_workload_is_not_that_of_another(store: Store) -> None:
    both = Measurement((WorkloadUse(name="fork"), WorkloadUse(name="pipe")))
    place = runs(store, machine({GOOD.name: (1000,), TESTED.name: (1015,)}))
    decision = check(
        TESTED, baselines.of_kernel(GOOD, both, place), both, {"fork": 0.02, "pipe": 0.01}, place
    )
    assert [row.decision for row in decision.rows] == [Decision.WITHIN, Decision.BEYOND]
    assert decision.decision is Decision.BEYOND


def a_comparison(direction: Direction, verdict: Verdict, low: float, high: float) -> Comparison:
    return Comparison(
        workload="own", metric="rate", unit="1/s", direction=direction, baseline="a", treatment="b",
        baseline_value=1, value=1, ratio=1, low=low, high=high, verdict=verdict, mode=Mode.TIMED,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("direction", "verdict", "low", "high", "decision"),
    [
        (Direction.HIGHER, Verdict.INCONCLUSIVE, 0.995, 1.2, Decision.WITHIN),
        (Direction.HIGHER, Verdict.INCONCLUSIVE, 0.9, 1.0, Decision.UNDECIDED),
        (Direction.LOWER, Verdict.INCONCLUSIVE, 0.9, 1.0, Decision.WITHIN),
        (Direction.LOWER, Verdict.BETTER, 0.5, 0.6, Decision.WITHIN),
        (Direction.HIGHER, Verdict.WORSE, 0.5, 0.6, Decision.BEYOND),
    ],
)
def test_only_the_side_of_the_worse_counts(
    direction: Direction, verdict: Verdict, low: float, high: float, decision: Decision
) -> None:
    assert checks.decided(a_comparison(direction, verdict, low, high), 0.01).decision is decision


def trials_with_bytes(kernel: str, moved: tuple[float, ...]) -> list[Trial]:
    def samples(value: float) -> tuple[object, ...]:
        work = a_sample(metric="fork, exit, wait", unit="instructions", value=10_000)
        return work, a_sample(metric="string-bytes", unit="bytes", value=value)

    plans = [planned(kernel, number) for number in range(3)]
    return [a_trial(plan, samples=samples(value)) for plan, value in zip(plans, moved, strict=True)]


@pytest.mark.parametrize(
    ("before", "after", "decision"),
    [
        ((8, 8, 8), (16, 16, 16), Decision.WITHIN),
        ((0, 0, 0), (64, 64, 64), Decision.WITHIN),
        ((0, 0, 0), (8192, 8192, 8192), Decision.BEYOND),
        ((4096, 4096, 4096), (4096, 12288, 8192), Decision.UNDECIDED),
        ((8192, 8192, 8192), (0, 0, 0), Decision.WITHIN),
    ],
)
def test_bytes_of_string_instructions_weigh_against_the_instructions(
    before: tuple[float, ...], after: tuple[float, ...], decision: Decision
) -> None:
    """32 bytes are an instruction: of 10000, 1 % is 3200 bytes."""
    sides = (trials_with_bytes("debian:6.1", before), trials_with_bytes("debian:6.12", after))
    comparison = a_comparison(Direction.LOWER, Verdict.INCONCLUSIVE, 1, 2).model_copy(
        update={"workload": "fork", "metric": "string-bytes"}
    )
    assert checks.decided_by_weight(comparison, 0.01, *sides).decision is decision


def another(kernel: Kernel) -> Kernel:
    """Built anew: the same name, another content."""
    return kernel.model_copy(update={"digest": digest("built anew")})


def test_a_kernel_that_was_built_anew_under_the_same_name_is_measured_anew(store: Store) -> None:
    place = machine({GOOD.name: (1000,), TESTED.name: (1000,)})
    good = baselines.of_kernel(GOOD, FORK, runs(store, place))
    assert check(TESTED, good, FORK, {}, runs(store, place)).decision is Decision.WITHIN
    slower = machine({GOOD.name: (1000,), TESTED.name: (2000,)})
    assert check(TESTED, good, FORK, {}, runs(store, slower)).decision is Decision.WITHIN
    assert slower.programs == [], "what the store has of this content is not run again"
    assert check(another(TESTED), good, FORK, {}, runs(store, slower)).decision is Decision.BEYOND


def test_a_kernel_that_panics_has_not_run_and_the_console_tells(store: Store) -> None:
    def panics(boot: Boot, run: Run) -> StepResult:
        if boot.kernel.name == TESTED.name:
            raise ends(Outcome.PANICKED, "Fatal exception", "Kernel panic - not syncing")
        return StepResult(step=0, do="run", exit=0, stdout="1000")

    place = runs(store, ScriptedMachine(panics))
    decision = check(TESTED, baselines.of_kernel(GOOD, FORK, place), FORK, {}, place)
    assert (decision.decision, decision.rows) == (Decision.NOT_RUN, ())
    assert "3 of 3 trials panicked (fork: Fatal exception)" in decision.problem
    assert "not syncing" in decision.console


def test_a_machine_that_fails_says_nothing_about_the_kernel(store: Store) -> None:
    good = baselines.of_kernel(GOOD, FORK, runs(store, machine({GOOD.name: (1000,)})))

    def fails(boot: Boot, run: Run) -> StepResult:
        raise MachineError(machine="scripted", problem="QEMU is gone")

    with pytest.raises(AnalysisError, match="QEMU is gone"):
        check(TESTED, good, FORK, {}, runs(store, ScriptedMachine(fails)))


def test_a_saved_baseline_from_another_qemu_is_refused_with_the_command_that_saves_it_anew(
    store: Store,
) -> None:
    good = baselines.save_baseline("good", GOOD, FORK, runs(store, machine({GOOD.name: (1000,)})))
    newer = machine({TESTED.name: (1000,)}, qemu="10.0.0")
    with pytest.raises(AnalysisError, match=r"a different QEMU build: 10\.0\.0 and 7\.2\.22") as caught:
        check(TESTED, good, FORK, {}, runs(store, newer))
    assert "ktrial check baseline save good --kernel debian:6.1 --workload 'fork'" in caught.value.advice


def test_what_another_qemu_measured_of_two_kernels_is_measured_anew(store: Store) -> None:
    numbers = {GOOD.name: (1000.0,), TESTED.name: (1000.0,)}
    old = runs(store, machine(numbers))
    check(TESTED, baselines.of_kernel(GOOD, FORK, old), FORK, {}, old)
    new = machine({GOOD.name: (1000,), TESTED.name: (3000,)}, qemu="10.0.0")
    decision = check(TESTED, baselines.of_kernel(GOOD, FORK, runs(store, new)), FORK, {}, runs(store, new))
    assert decision.decision is Decision.WITHIN, "both are from one QEMU, and stored"
    third = a_kernel("path:/third")
    newest = machine({GOOD.name: (1000,), third.name: (3000,)}, qemu="10.0.0")
    place = runs(store, newest)
    assert check(third, baselines.of_kernel(GOOD, FORK, place), FORK, {}, place).decision is Decision.BEYOND
    assert {boot.kernel.name for boot, _ in newest.programs} == {GOOD.name, third.name}


def test_a_baseline_is_found_again_shown_in_the_list_and_removed(store: Store) -> None:
    place = runs(store, machine({GOOD.name: (1000,), TESTED.name: (2000,)}))
    saved = baselines.save_baseline("v6.1", GOOD, FORK, place)
    baseline = baselines.find_baseline("v6.1", store)
    assert (baseline, baseline.kernel, baseline.measurement) == (saved, GOOD.name, FORK)
    baselines.save_baseline("v6.2", TESTED, FORK, place)
    assert [baselines.baseline_name(study.study.name) for study in baselines.saved(store)] == ["v6.1", "v6.2"]
    baselines.remove_baseline("v6.1", store)
    with pytest.raises(AnalysisUsageError, match=r"did you mean v6.2\?"):
        baselines.find_baseline("v6.1", store)


def test_saving_anew_replaces_the_numbers_and_measures_even_what_was_measured(store: Store) -> None:
    baselines.save_baseline("good", GOOD, FORK, runs(store, machine({GOOD.name: (1000,)})))
    second = baselines.save_baseline("good", GOOD, FORK, runs(store, machine({GOOD.name: (1500,)})))
    assert {sample.value for trial in second.record.trials for sample in trial.samples} == {1500}
    assert len(store.studies()) == 1


def test_a_baseline_that_fails_is_not_saved_and_the_old_one_stays(store: Store) -> None:
    baselines.save_baseline("good", GOOD, FORK, runs(store, machine({GOOD.name: (1000,)})))

    def hangs(boot: Boot, run: Run) -> StepResult:
        raise ends(Outcome.HUNG, "no end in sight")

    with pytest.raises(AnalysisError, match="3 of 3 trials hung"):
        baselines.save_baseline("good", GOOD, FORK, runs(store, ScriptedMachine(hangs)))
    values = [
        sample.value
        for trial in baselines.find_baseline("good", store).record.trials
        for sample in trial.samples
    ]
    assert values == [1000] * 3


def test_a_baseline_whose_file_is_gone_has_failed_and_not_the_kernel_under_test(store: Store) -> None:
    gone = ImageError(
        "/gone cannot be read: there is no such file.",
        hint=(
            "expected: an x86-64 kernel image (bzImage, often called vmlinuz) or an uncompressed ELF vmlinux"
        ),
    )
    place = Runs(store, machine=machine({}), resources=scripted_resources(missing={"path:/gone": gone}))
    with pytest.raises(AnalysisError, match="there is no such file"):
        baselines.kernel_named("path:/gone", place)


@pytest.mark.parametrize("name", ["", "host", "debian:6.1", "a b", "-x", "a/b", "x" * 65])
def test_names_that_could_be_kernels_or_are_hard_to_type_are_refused(name: str) -> None:
    with pytest.raises(AnalysisUsageError, match="cannot name a baseline"):
        baselines.check_name(name)


def test_a_metric_beside_the_first_is_told_by_its_own_name(store: Store) -> None:
    decision = checked(store, (1000,), (1000,))
    assert [row.secondary for row in decision.rows] == [False]
    sides = (trials_with_bytes("debian:6.1", (64, 64, 64)), trials_with_bytes("debian:6.12", (64, 64, 64)))
    record = baselines.of_kernel(GOOD, FORK, runs(store, machine({GOOD.name: (1000,)}))).record
    both = [record.model_copy(update={"trials": tuple(trials)}) for trials in sides]
    rows = checks.rows_of(FORK.workloads[0], 0.01, ("a", "b"), *both)
    assert [(row.comparison.metric, row.secondary) for row in rows] == [
        ("fork, exit, wait", False),
        ("string-bytes", True),
    ]


# What one CPU cannot decide is measured on several.

PLAIN = Build(source="/linux")
CHANGED = Build(source="/linux", options={"CHANGED": "y"})
TWO = Measurement((WorkloadUse(name="fork"), WorkloadUse(name="pipe")))
LIMITS = {"fork": 0.01, "pipe": 0.01}


def contended_machine(tested: str = TESTED.name, alone: int = 900, on_several: int = 1400) -> ScriptedMachine:
    """On one CPU the tested kernel is 10 % better, on several 40 % worse."""

    def answer(boot: Boot, _run: Run) -> StepResult:
        number = on_several if boot.cpus > 1 else alone
        number = number if boot.kernel.name == tested else 1000
        return StepResult(step=0, do="run", exit=0, stdout=str(number))

    return ScriptedMachine(answer)


def with_tasks() -> Resources:
    """Workload `fork` has as many tasks as there are CPUs."""
    fork = ScriptedWorkload("fork")
    tasks = Parameter(name="tasks", summary="how many", default=0)
    fork.description = fork.description.model_copy(update={"parameters": (tasks,)})
    return scripted_resources({"fork": fork})


@pytest.mark.parametrize(
    ("share", "whole", "on_several"),
    [
        (0.2, False, ()),
        (0.5, False, ("fork",)),
        (0.2, True, ("fork", "pipe")),
    ],
    ids=["little in locks", "half in locks", "asked for"],
)
def test_what_rests_on_locks_is_measured_on_several_cpus(
    share: float, whole: bool, on_several: tuple[str, ...], store: Store
) -> None:
    place = runs(store, contended_machine())
    alone = check(TESTED, baselines.of_kernel(GOOD, TWO, place), TWO, LIMITS, place)
    assert alone.decision is Decision.WITHIN
    fork, pipe = alone.rows
    alone = replace(alone, rows=(replace(fork, locking_share=share), pipe))
    both = checks.routed(alone, TESTED, GOOD, TWO, LIMITS, place, whole=whole)
    rows = both.on_several.rows if both.on_several else ()
    assert tuple(row.comparison.workload for row in rows) == on_several
    assert both.rows == alone.rows
    assert checks.worst(both.decisions) is (Decision.BEYOND if on_several else Decision.WITHIN)


@pytest.mark.parametrize(
    ("number", "reached", "several_tasks", "measured"),
    [
        (1000, ("fork",), True, True),
        (1000, ("fork",), False, False),  # one task waits for nobody
        (1000, (), True, False),  # nothing ran that differs
        (900, ("fork",), True, False),  # one CPU shows the difference
    ],
)
def test_tasks_that_ran_the_change_and_show_nothing_on_one_cpu_are_measured_on_several(
    number: int, reached: tuple[str, ...], several_tasks: bool, measured: bool, store: Store
) -> None:
    def answer(boot: Boot, _run: Run) -> StepResult:
        tested = 1400 if boot.cpus > 1 else number
        value = tested if boot.kernel.name == TESTED.name else 1000
        return StepResult(step=0, do="run", exit=0, stdout=str(value))

    resources = with_tasks() if several_tasks else scripted_resources()
    place = Runs(store, machine=ScriptedMachine(answer), resources=resources)
    alone = check(TESTED, baselines.of_kernel(GOOD, FORK, place), FORK, LIMITS, place)
    assert alone.reached == ()  # of kernels that nobody built from one source nothing tells it
    ran = replace(alone, reach=Reach(functions=1, data=0, ran=reached))
    routed = checks.routed(ran, TESTED, GOOD, FORK, LIMITS, place, whole=False)
    assert checks.worst(routed.decisions) is (Decision.BEYOND if measured else Decision.WITHIN)


@pytest.mark.parametrize(
    ("ran_on_several", "decision"), [(9, Decision.BEYOND), (0, Decision.NOT_EXECUTED)], ids=["ran", "did not"]
)
def test_what_runs_on_several_cpus_only_is_measured_there(
    ran_on_several: int, decision: Decision, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As what flushes the translations of other CPUs: on one CPU there are none."""
    plain = a_kernel_of(tmp_path, "plain", build=PLAIN)
    changed = a_kernel_of(tmp_path, "changed", build=CHANGED, waking=2)
    place = Runs(store, machine=contended_machine(changed.name), resources=with_tasks())

    def counted(_store: Store, record: StudyRecord, *_: object) -> Profile:
        several = record.study.machine.count is CountedBy.PLUGIN
        return a_profile({("wake", ""): ran_on_several if several else 0, ("pick", ""): 9})

    monkeypatch.setattr(checks, "profile_of", counted)
    alone = check(changed, baselines.of_kernel(plain, FORK, place), FORK, LIMITS, place)
    assert alone.decision is Decision.NOT_EXECUTED
    both = checks.routed(alone, changed, plain, FORK, LIMITS, place, whole=False)
    assert checks.worst(both.decisions) is decision
    assert (both.on_several is not None) == bool(ran_on_several)
    silent = [warning.kind for warning in both.warnings] == [WarningKind.CHANGE_NOT_RUN]
    assert silent == (decision is Decision.NOT_EXECUTED)


@pytest.mark.parametrize(
    ("several_tasks", "on_several", "warned"),
    [(False, 1000, True), (True, 1000, True), (True, 1400, False)],
    ids=["one CPU finds nothing", "nor do several", "several do"],
)
def test_a_change_of_code_that_locks_memory_and_finds_nothing_is_told_with_what_no_count_has(
    several_tasks: bool,
    on_several: int,
    warned: bool,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = a_kernel_of(tmp_path, "plain", build=PLAIN)
    changed = a_kernel_of(tmp_path, "changed", build=CHANGED, waking=2)
    machine_ = contended_machine(changed.name, alone=1000, on_several=on_several)
    resources = with_tasks() if several_tasks else scripted_resources()
    place = Runs(store, machine=machine_, resources=resources)
    monkeypatch.setattr(checks, "profile_of", lambda *_: a_profile({("wake", ""): 9}))
    monkeypatch.setattr(
        kernel_diff, "function_files", lambda _kernel: FunctionFiles(locking=frozenset({"wake"}))
    )
    alone = check(changed, baselines.of_kernel(plain, FORK, place), FORK, LIMITS, place)
    both = checks.routed(alone, changed, plain, FORK, LIMITS, place, whole=False)
    texts = [warning.text for warning in both.warnings if warning.kind is WarningKind.SEVERAL_CPUS]
    assert [text.partition(": no count")[0] for text in texts] == (
        ["fork: the change is in code that locks memory or takes locks (wake)"] if warned else []
    )


def test_a_build_whose_code_is_the_baselines_has_nothing_to_compare(store: Store, tmp_path: Path) -> None:
    plain, other = (
        a_kernel_of(tmp_path, name, build=Build(source="/linux", options={"DEBUG": name}))
        for name in ("plain", "other")
    )
    other = other.model_copy(update={"digest": digest("another mark of its build")})
    place = runs(store, machine({plain.name: (1000,), other.name: (1000,)}))
    outcome = check(other, baselines.of_kernel(plain, FORK, place), FORK, LIMITS, place)
    (warning,) = outcome.warnings
    assert warning.kind is WarningKind.SAME_IMAGE
    assert "there is nothing to compare" in warning.text
    assert outcome.decision is Decision.SAME_CODE


SHIFTED = '__asm__(".text\\n.skip 4096\\n");'


@pytest.mark.parametrize(
    ("image", "ran", "number", "decision", "warnings"),
    [
        ({"waking": 2}, {"wake": 9}, 1000, Decision.WITHIN, []),
        ({"waking": 2}, {"pick": 9}, 1000, Decision.NOT_EXECUTED, [WarningKind.CHANGE_NOT_RUN]),
        ({"waking": 2}, {"pick": 9, "wake": 0}, 1000, Decision.NOT_EXECUTED, [WarningKind.CHANGE_NOT_RUN]),
        ({"waking": 2}, {"pick": 9}, 990, Decision.NOT_EXECUTED, [WarningKind.CHANGE_NOT_RUN]),
        # Whatever has moved the count: it is beyond the limit.
        ({"waking": 2}, {"pick": 9}, 1100, Decision.BEYOND, [WarningKind.CHANGE_NOT_RUN]),
        ({"inserted": SHIFTED}, {"pick": 9}, 1000, Decision.SAME_CODE, [WarningKind.CHANGE_NOT_RUN]),
        ({"slice_": 24}, {"pick": 9}, 1000, Decision.WITHIN, [WarningKind.CHANGE_PARTLY_RUN]),
    ],
    ids=["ran", "did not run", "stood still", "moved a little", "moved much", "shifted", "data"],
)
def test_a_change_that_the_workload_never_ran_is_not_called_within(
    image: dict[str, Any],
    ran: dict[str, int],
    number: int,
    decision: Decision,
    warnings: list[WarningKind],
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = a_kernel_of(tmp_path, "plain", build=PLAIN)
    changed = a_kernel_of(tmp_path, "changed", build=CHANGED, **image)
    profile = a_profile({(name, ""): count for name, count in ran.items()})
    monkeypatch.setattr(checks, "profile_of", lambda *_: profile)
    place = runs(store, machine({plain.name: (1000,), changed.name: (number,)}))
    outcome = check(changed, baselines.of_kernel(plain, FORK, place), FORK, LIMITS, place)
    assert (outcome.decision, [row.decision for row in outcome.rows]) == (decision, [decision])
    assert [warning.kind for warning in outcome.warnings] == warnings


def test_a_check_is_within_where_one_workload_ran_the_change_and_the_others_are_controls(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = a_kernel_of(tmp_path, "plain", build=PLAIN)
    changed = a_kernel_of(tmp_path, "changed", build=CHANGED, waking=2)
    ran = {"fork": "wake", "pipe": "pick"}
    monkeypatch.setattr(checks, "profile_of", lambda *about: a_profile({(ran[about[-1]], ""): 9}))
    place = runs(store, machine({plain.name: (1000,), changed.name: (1000,)}))
    outcome = check(changed, baselines.of_kernel(plain, TWO, place), TWO, LIMITS, place)
    assert [row.decision for row in outcome.rows] == [Decision.WITHIN, Decision.NOT_EXECUTED]
    assert outcome.decision is Decision.WITHIN
    assert outcome.reach == Reach(functions=1, data=0, named=("wake",), ran=("fork",), not_run=("pipe",))


def test_where_several_cpus_cannot_be_had_the_check_of_one_says_so(store: Store) -> None:
    def no_cpus(boot: Boot) -> None:
        if boot.cpus > 1:
            raise MachineError("Machine exact-parallel does not know this QEMU.")

    def answer(boot: Boot, _run: Run) -> StepResult:
        number = 900 if boot.kernel.name == TESTED.name else 1000
        return StepResult(step=0, do="run", exit=0, stdout=str(number))

    place = runs(store, ScriptedMachine(answer, on_prepare=no_cpus))
    alone = check(TESTED, baselines.of_kernel(GOOD, FORK, place), FORK, LIMITS, place)
    alone = replace(alone, rows=tuple(replace(row, locking_share=0.5) for row in alone.rows))
    both = checks.routed(alone, TESTED, GOOD, FORK, LIMITS, place, whole=False)
    assert (both.on_several, both.decision) == (None, Decision.WITHIN)
    (note,) = both.warnings
    assert note.text == ("fork: not measured on several CPUs: Machine exact-parallel does not know this QEMU")
    with pytest.raises(KtrialError, match="does not know this QEMU"):
        checks.routed(alone, TESTED, GOOD, FORK, LIMITS, place, whole=True)
