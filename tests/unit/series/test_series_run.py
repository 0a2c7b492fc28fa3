"""A series, built and measured by fakes: each patch is told as what it is, and the steps add up."""

import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.fault_points import declared, each_kill_at
from tests.support.profiles import a_profile
from tests.support.scripted import ScriptedMachine, ends
from tests.support.series import SeriesBuilder, a_series, answer, names_in, runs

from ktrial.analysis.attribution.decomposition import explain
from ktrial.cli.running.series import as_json
from ktrial.experiment.errors import TrialsNotMeasured
from ktrial.experiment.resources import Builder
from ktrial.kernels import Progress, silent
from ktrial.kernels.build.make import remember_build
from ktrial.kernels.errors import KernelError, OptionNotTaken
from ktrial.kernels.patch_series import series_in_quilt
from ktrial.machines.errors import MachineError
from ktrial.model.kernel import Build, CodeDifference, Kernel, Patch
from ktrial.model.machine import Boot
from ktrial.model.profile import FunctionFiles
from ktrial.model.regression_check import Decision
from ktrial.model.series_result import SeriesCell, SeriesResult, StepState
from ktrial.model.study import MachineSettings, Measurement
from ktrial.model.trial import Outcome
from ktrial.model.workload import WorkloadUse
from ktrial.report.patch_series import COLUMNS, as_text, exercised, idle_lines
from ktrial.report.patch_series import answer as answer_of
from ktrial.report.patch_series_page import as_markdown, series_page
from ktrial.series.building import Forward
from ktrial.series.errors import SeriesError
from ktrial.series.estimate import estimate
from ktrial.series.run import SeriesRun, differs, needs_several, rebuilt
from ktrial.store.store import Store, open_store
from ktrial.target import Run, StepResult

SOURCE = "debian:linux-source-6.1"
FORK, PIPE = WorkloadUse(name="fork"), WorkloadUse(name="pipe")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))


def asked(
    place: Path,
    store: Store,
    *names: str,
    builder: SeriesBuilder | None = None,
    machine: ScriptedMachine | None = None,
    uses: tuple[WorkloadUse, ...] = (FORK, PIPE),
) -> SeriesRun:
    series = series_in_quilt(a_series(place / "q", *names), SOURCE)
    measurement = Measurement(uses, perturbations=2)
    series_runs = runs(store, builder or SeriesBuilder(), machine)
    return SeriesRun(series, Build(source=SOURCE), measurement, series_runs, lambda _: None, (FORK, PIPE))


def run(place: Path, *names: str) -> SeriesResult:
    place.mkdir(exist_ok=True)
    with open_store(str(place / "x.db")) as store:
        return asked(place, store, *names).run()


def states(result: SeriesResult) -> list[str]:
    return [step.state.value for step in result.steps[1:]]


def assert_steps_add_up(result: SeriesResult) -> None:
    """As each kernel is measured once."""
    for total in result.totals:
        steps = [cell.difference for cell in result.cells if cell.workload == total.workload]
        assert sum(steps, Fraction(0)) == total.difference


def differences(result: SeriesResult, workload: str) -> dict[int, Fraction]:
    return {cell.number: cell.difference for cell in result.cells if cell.workload == workload}


def test_each_patch_has_its_own_cost_and_the_steps_add_up(tmp_path: Path) -> None:
    result = run(tmp_path, "cost-fork-10", "cost-pipe--30", "cost-fork-3")
    assert differences(result, "fork") == {1: 10, 2: 0, 3: 3}
    assert differences(result, "pipe") == {1: 0, 2: -30, 3: 0}
    assert {total.workload: total.difference for total in result.totals} == {"fork": 13, "pipe": -30}
    assert_steps_add_up(result)
    assert [cell.is_inside for cell in result.cells if cell.workload == "fork"] == [True, True, True]


def test_what_is_not_compiled_and_what_is_the_same_costs_no_trial(tmp_path: Path) -> None:
    machine, builder = ScriptedMachine(answer), SeriesBuilder()
    with open_store(str(tmp_path / "x.db")) as store:
        result = asked(tmp_path, store, "doc", "noop", "cost-fork-50", builder=builder, machine=machine).run()
    assert states(result) == ["not compiled", "same image", "built"]
    assert result.steps[1].why == "documentation"
    # The base, `noop` and the one that counts; of the second nothing is measured.
    assert len(builder.built) == 3
    assert {boot.kernel.digest for boot in machine.prepared} == {
        step.kernel.digest for step in result.steps if step.kernel
    }
    assert len({boot.kernel.digest for boot in machine.prepared}) == 2


def programs_on(machine: ScriptedMachine, result: SeriesResult) -> dict[int, list[str]]:
    """Step → the programs that ran on its kernel, each once."""
    ran: dict[int, dict[str, None]] = {step.number: {} for step in result.steps if step.is_own}
    digests = {step.kernel.digest: step.number for step in result.steps if step.is_own and step.kernel}
    for boot, steps in machine.programs:
        names = [Path(step.argv[0]).name for step in steps if isinstance(step, Run)]
        ran.get(digests.get(boot.kernel.digest, -1), {}).update(dict.fromkeys(names))
    return {number: sorted(names) for number, names in ran.items()}


def test_a_step_is_known_to_boot_by_its_trials_where_their_workloads_are_known(tmp_path: Path) -> None:
    machine = ScriptedMachine(answer)
    with open_store(str(tmp_path / "x.db")) as store:
        result = asked(tmp_path, store, "cost-fork-5", "cost-pipe-2", machine=machine).run()
    assert states(result) == ["built", "built"]
    assert programs_on(machine, result) == {
        0: ["fork", "nqueens", "pipe"],
        1: ["fork", "pipe"],
        2: ["fork", "pipe"],
    }


def test_where_a_workload_fails_the_null_control_tells_whether_the_kernel_boots(tmp_path: Path) -> None:
    def fails(boot: Boot, run: Run) -> StepResult:
        build = boot.kernel.origin.build
        if build and "cost-fork-5" in names_in(build.patches) and Path(run.argv[0]).name == "fork":
            raise ends(Outcome.HUNG, "it did nothing for a minute")
        return answer(boot, run)

    machine = ScriptedMachine(fails)
    with open_store(str(tmp_path / "x.db")) as store:
        result = asked(tmp_path, store, "cost-fork-5", machine=machine).run()
    assert states(result) == ["built"]
    assert programs_on(machine, result)[1] == ["fork", "nqueens", "pipe"]
    assert result.notes[-1].startswith("patch 1 was not measured: ")


def test_what_has_the_image_of_a_kernel_that_boots_is_not_booted(tmp_path: Path) -> None:
    booted: list[str] = []

    def boots(kernel: Kernel) -> str:
        booted.append(kernel.digest)
        return ""

    series = series_in_quilt(a_series(tmp_path / "q", "noop", "cost-fork-5", "noop-2"), SOURCE)
    forward = Forward(series, Build(source=SOURCE), SeriesBuilder().builder, boots, silent, lambda _: None)
    steps = forward.steps()
    assert [step.state.value for step in steps[1:]] == ["same image", "built", "same image"]
    assert booted == [step.kernel.digest for step in steps if step.kernel and step.is_own]


def test_what_is_undecided_comes_before_what_did_not_run(tmp_path: Path) -> None:
    result = run(tmp_path, "cost-fork-3", "broken")
    idle = replace(result, cells=tuple(replace(cell, is_idle=True) for cell in result.cells))
    assert answer_of(idle).startswith(
        "Not all of it ran: patch 2 does not build. Of the rest no function that"
    )
    undecided = [
        replace(cell, checked=(replace(cell.checked[0], decision=Decision.UNDECIDED),))
        for cell in result.cells
    ]
    both = replace(result, cells=tuple(undecided))
    assert both.decision is Decision.UNDECIDED
    assert answer_of(both).startswith("Undecided: fork, pipe")
    assert answer_of(both).endswith("Not all of it ran: patch 2 does not build.")


def test_what_is_decided_is_said_before_what_is_not(tmp_path: Path) -> None:
    result = run(tmp_path, "cost-fork-3")

    def open_in(cell: SeriesCell) -> SeriesCell:
        undecided = replace(cell.checked[0], decision=Decision.UNDECIDED)
        return replace(cell, checked=(undecided,)) if cell.workload == "pipe" else cell

    partly = replace(
        result, cells=tuple(map(open_in, result.cells)), totals=tuple(map(open_in, result.totals))
    )
    assert answer_of(partly).startswith("Within the limit: fork +0.30%. Undecided: pipe: ")


class Timed(SeriesBuilder):
    """A build takes 100 seconds, and one more for each patch."""

    @property
    def builder(self) -> Builder:
        return replace(super().builder, cpu_seconds=lambda build: 100.0 + len(names_in(build.patches)))


def test_each_build_has_its_processor_time_and_what_was_not_built_has_none(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        names = ("doc", "noop", "broken", "cost-fork-50")
        result = asked(tmp_path, store, *names, builder=Timed()).run()
    assert states(result) == ["not compiled", "same image", "does not build", "built"]
    assert [step.cpu_seconds for step in result.steps] == [100.0, None, 102.0, None, 103.0]
    answer = as_json(result, "ktrial series")
    assert answer["base_cpu_seconds"] == 100.0
    assert [patch["cpu_seconds"] for patch in answer["patches"]] == [None, 102.0, None, 103.0]


class AfterwardsOnly(SeriesBuilder):
    """A build tree that is in use: only after a build of its own it tells what has read nothing."""

    @property
    def builder(self) -> Builder:
        return replace(super().builder, compiles_the_same=self.compiles_the_same)

    def compiles_the_same(self, before: Build, wanted: Build, _progress: Progress) -> bool:
        is_off = {name for name in (*names_in(before.patches), *names_in(wanted.patches)) if "off" in name}
        return len(before.patches) > len(wanted.patches) and bool(is_off)


@pytest.mark.parametrize(("name", "state"), [("noop-off", "not compiled"), ("noop", "same image")])
def test_what_nothing_reads_is_not_compiled_whether_that_is_known_before_its_build_or_after(
    name: str, state: str, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        result = asked(tmp_path, store, name, "cost-fork-7", builder=AfterwardsOnly()).run()
    assert states(result) == [state, "built"]
    assert differences(result, "fork") == {2: 7}


@pytest.mark.parametrize(("name", "state"), [("broken", "does not build"), ("panic", "does not boot")])
def test_what_breaks_is_left_out_of_what_follows(name: str, state: str, tmp_path: Path) -> None:
    result = run(tmp_path, "cost-fork-50", name, "doc", "cost-pipe-20", "cost-fork-7")
    assert states(result)[:2] == ["built", state]
    assert result.steps[2].left_out
    assert differences(result, "pipe") == {1: 0, 4: 20, 5: 0} | (
        {3: 0} if states(result)[2] == "built" else {}
    )
    assert_steps_add_up(result)
    assert result.decision is Decision.BEYOND


@pytest.mark.parametrize(("name", "state"), [("broken", "does not build"), ("panic", "does not boot")])
def test_what_the_next_patch_mends_is_in_its_step(name: str, state: str, tmp_path: Path) -> None:
    result = run(tmp_path, name, "mend-cost-fork-4", "cost-fork-1")
    assert states(result) == [state, "built", "built"]
    assert (result.steps[1].mended_by, result.steps[1].left_out) == (2, False)
    assert differences(result, "fork") == {2: 4, 3: 1}
    assert result.decision is Decision.NOT_RUN


class Inexactly(SeriesBuilder):
    """Each patch applies elsewhere than it says, in four hunks."""

    @staticmethod
    def kernel(build: Build) -> Kernel:
        kernel = SeriesBuilder.kernel(build)
        notes = tuple(f"{name}: hunk {number}" for name in names_in(build.patches) for number in range(1, 5))
        return kernel.model_copy(
            update={"origin": kernel.origin.model_copy(update={"inexact_patches": notes})}
        )


def test_what_a_patch_brings_is_told_once_also_where_the_image_stays(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        names = ("cost-fork-1", "noop-a", "noop-b", "cost-fork-2")
        result = asked(tmp_path, store, *names, builder=Inexactly()).run()
    assert states(result) == ["built", "same image", "same image", "built"]
    files = [[note.partition(":")[0] for note in step.notes] for step in result.steps[1:]]
    assert files == [4 * [name] for name in names]
    text = as_text(result, "ktrial series")
    assert text.count("noop-a: hunk") == 2
    assert text.count("and 2 more hunks elsewhere than it says") == 4


def test_what_is_said_of_a_patch_that_is_not_compiled_stands_at_it(tmp_path: Path) -> None:
    class ByFile(SeriesBuilder):
        @staticmethod
        def kernel(build: Build) -> Kernel:
            kernel = SeriesBuilder.kernel(build)
            notes = tuple(f"{Path(patch.path).name}: hunk 1" for patch in build.patches)
            return kernel.model_copy(
                update={"origin": kernel.origin.model_copy(update={"inexact_patches": notes})}
            )

    with open_store(str(tmp_path / "x.db")) as store:
        result = asked(tmp_path, store, "cost-fork-1", "doc", "cost-fork-2", builder=ByFile()).run()
    assert states(result) == ["built", "not compiled", "built"]
    names = [
        [Path(step.patch.patch.path).name]
        for step in result.steps[1:]
        if step.patch is not None and step.patch.patch is not None
    ]
    assert [[note.partition(":")[0] for note in step.notes] for step in result.steps[1:]] == names
    assert len({*map(str, names)}) == 3


def test_a_kernel_with_the_same_code_elsewhere_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, "cost-fork-0")
    moved = replace(result.steps[1], is_compared=True)
    text = as_text(replace(result, steps=(result.steps[0], moved)), "ktrial series")
    assert "  1 mm: cost-fork-0                     same code at other addresses\n" in text
    assert "its kernel has the same functions and data, at other addresses" in text
    changed = replace(moved, functions=("do_fork",))
    assert "  1 mm: cost-fork-0                     ≈\n" in as_text(
        replace(result, steps=(result.steps[0], changed)), "ktrial series"
    )


def test_a_patch_that_does_not_apply_is_told_and_the_others_are_measured(tmp_path: Path) -> None:
    result = run(tmp_path, "unapplied", "cost-fork-4")
    assert states(result) == ["does not apply", "built"]
    assert "hunk 1 of mm/a.c fails" in result.steps[1].why
    assert differences(result, "fork") == {2: 4}


def test_a_hunk_that_does_not_apply_stands_in_the_report_as_in_the_patch(tmp_path: Path) -> None:
    result = run(tmp_path, "unapplied", "cost-fork-4")
    hunk = ["@@ -2451,8 +2511,7 @@ static void __split_huge_page_tail(struct page *head, int tail,"]
    hunk += [" \t/* first */", "-\tVM_BUG_ON(tail > 2);"]
    why = "\n  ".join(["hunk 9 of mm/a.c fails at line 2511; the hunk starts with:", *hunk])
    steps = (result.steps[0], replace(result.steps[1], why=why), *result.steps[2:])
    text = as_text(replace(result, steps=steps), "ktrial series")
    assert (
        "  does not apply: hunk 9 of mm/a.c fails at line 2511; the hunk starts\n"
        "    with:\n"
        "      @@ -2451,8 +2511,7 @@ static void __split_huge_page_tail(struct page\n"
        "            /* first */\n"
        "      -     VM_BUG_ON(tail > 2);\n"
    ) in text


@pytest.mark.parametrize("option", ["CONFIG_LATE", "LATE"])
def test_an_option_that_a_patch_makes_possible_is_measured_from_there(option: str, tmp_path: Path) -> None:
    names = ("cost-fork-100", "cost-pipe-50", "Kconfig-late", "cost-fork-4", "doc")
    with open_store(str(tmp_path / "x.db")) as store:
        series_run = asked(tmp_path, store, *names)
        result = replace(
            series_run, plain=series_run.plain.model_copy(update={"options": {option: "y"}})
        ).run()
    assert states(result) == [*3 * ["not configurable"], "built", "not compiled"]
    assert differences(result, "fork") == {4: 4}
    assert int(result.cells[0].before) == 1100
    assert_steps_add_up(result)
    assert result.decision is Decision.WITHIN
    text = " ".join(as_text(result, "ktrial series").split())
    assert "LATE=y can be set from patch 3 on, whose kernel is the base" in text
    assert "CONFIG_LATE" not in text


def test_an_option_that_no_patch_makes_possible_is_refused(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        series_run = asked(tmp_path, store, "Kconfig-late", "cost-fork-4")
        rare = replace(series_run, plain=series_run.plain.model_copy(update={"options": {"RARE": "y"}}))
        with pytest.raises(OptionNotTaken):
            rare.run()


def test_a_base_that_does_not_boot_ends_it(tmp_path: Path) -> None:
    (tmp_path / "panic.patch").write_text("")
    patch = Patch(path=str(tmp_path / "panic.patch"), digest="0" * 64)
    with open_store(str(tmp_path / "x.db")) as store:
        series_run = asked(tmp_path, store, "cost-fork-1")
        panicking = replace(series_run, plain=series_run.plain.model_copy(update={"patches": (patch,)}))
        with pytest.raises(KernelError, match="of the base"):
            panicking.run()


@pytest.mark.parametrize(
    ("names", "decision"),
    [
        (("cost-fork-2",), Decision.WITHIN),
        (("cost-fork-20",), Decision.BEYOND),
        (("cost-fork--200",), Decision.WITHIN),
        (("cost-fork-6", "cost-fork-7"), Decision.BEYOND),
        (("cost-fork-20", "cost-fork--20-back"), Decision.BEYOND),
        (("cost-fork-2", "unapplied"), Decision.NOT_RUN),
    ],
)
def test_it_is_beyond_where_a_patch_is_or_all_together_are(
    names: tuple[str, ...], decision: Decision, tmp_path: Path
) -> None:
    assert run(tmp_path, *names).decision is decision


def test_a_series_that_compiles_nothing_boots_the_base_and_no_more(tmp_path: Path) -> None:
    result = run(tmp_path, "doc", "doc2")
    assert states(result) == ["not compiled", "not compiled"]
    assert (result.cells, result.decision) == ((), Decision.WITHIN)


def test_without_profiles_all_candidates_are_measured_and_the_null_control(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        result = asked(tmp_path, store, "cost-fork-4", uses=()).run()
    assert [use.name for use in result.measurement.workloads] == ["fork", "pipe", "nqueens"]
    assert not result.counted


def test_without_profiles_nobody_makes_tours(tmp_path: Path) -> None:
    lines: list[str] = []
    with open_store(str(tmp_path / "x.db")) as store:
        series = asked(tmp_path, store, "cost-fork-4", uses=())
        replace(series, tours=("tour-ext4",), tell=lines.append).run()
    assert not [line for line in lines if "tours" in line]


def test_the_estimate_has_tours_too(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        series = asked(tmp_path, store, "cost-fork-4", uses=())
        assert estimate(replace(series, tours=("tour-ext4",))).profiles == estimate(series).profiles + 1


def test_the_text_fits_a_mail_and_says_all(tmp_path: Path) -> None:
    names = [
        "doc",
        "cost-fork-50",
        "broken",
        "cost-pipe--30",
        *(f"cost-fork-{number}-{'x' * number}" for number in range(9)),
    ]
    text = as_text(run(tmp_path, *names), "ktrial series --quilt q --onto " + "debian:linux-source-6.1 " * 4)
    assert max(map(len, text.splitlines())) <= COLUMNS
    for words in (
        "not compiled: documentation",
        "DOES NOT BUILD, left out",
        "+5.00%",
        "−3.00%",
        "base to tip",
    ):
        assert words in text, text
    assert "fork: +50 instructions per operation" in text
    assert "\n> [PATCH 2/13] mm: cost-fork-50\n  fork: +50 instructions per operation (+5.00%)\n" in text
    assert "\n> [PATCH 1/13] mm: doc\n  not compiled: documentation\n" in text
    trailer = text.partition("\n-- \n")[2].splitlines()
    assert [line.split()[0] for line in trailer[:2]] == ["base", "config"]
    assert trailer[2:4] == [
        "To repeat it, with these numbers again:",
        "    ktrial series --quilt q --onto debian:linux-source-6.1",
    ]
    assert re.fullmatch(r"  sha256:[0-9a-f]{64}", trailer[-1])


def test_patches_of_which_the_same_is_to_be_said_are_quoted_together(tmp_path: Path) -> None:
    result = run(tmp_path, "doc-one", "doc-two", "noop")
    text = as_text(result, "ktrial series")
    two = "> [PATCH 1/3] mm: doc-one\n> [PATCH 2/3] mm: doc-two\n  not compiled: documentation"
    assert f"{two}\n\n> [PATCH 3/3] mm: noop\n  same image\n" in text
    assert max(map(len, text.splitlines())) <= COLUMNS


def test_the_same_numbers_have_the_same_digest_wherever_they_were_measured(tmp_path: Path) -> None:
    first, second = run(tmp_path / "a", "cost-fork-5"), run(tmp_path / "b", "cost-fork-5")
    assert first.numbers_digest == second.numbers_digest
    assert run(tmp_path / "c", "cost-fork-6").numbers_digest != first.numbers_digest
    planted = replace(first, cells=(replace(first.cells[0], after=Fraction(7)), *first.cells[1:]))
    assert planted.numbers_digest != first.numbers_digest


@pytest.mark.nightly
@pytest.mark.parametrize("point", declared("series"))
def test_killed_at_any_step_the_same_command_goes_on(point: str, tmp_path: Path) -> None:
    names = ("cost-fork-10", "broken", "cost-pipe-20")
    expected = run(tmp_path / "whole", *names)

    def work() -> None:
        with open_store(str(tmp_path / "x.db")) as store:
            asked(tmp_path, store, *names).run()

    for killed in each_kill_at(point, work):
        machine = ScriptedMachine(answer)
        with open_store(str(tmp_path / "x.db")) as store:
            result = asked(tmp_path, store, *names, machine=machine).run()
        assert [cell.difference for cell in result.cells] == [cell.difference for cell in expected.cells], (
            killed
        )
        (tmp_path / "x.db").unlink()


def test_each_alone_names_what_depends_on_others_and_what_cannot_stand_alone(tmp_path: Path) -> None:
    names = ("cost-fork-10", "cost-fork-20", "cost-pipe-30")
    with open_store(str(tmp_path / "x.db")) as store:
        result, alone = replace(asked(tmp_path, store, *names), each_alone=True).run_all()
    assert [patch.number for patch in alone] == [1, 2, 3]
    assert [patch.depends for patch in alone] == [(), (), ()]
    assert {cell.workload: cell.difference for cell in alone[2].cells} == {"fork": 0, "pipe": 30}
    text = as_text(result, "ktrial", 3, alone)
    assert "Alone on the base:" in text
    assert "pipe +3.00%" in text


def test_a_patch_of_data_alone_is_named_beside_patches_of_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = CodeDifference(data=("sysctl_latency",), readers=("sched_slice",))
    differences = iter([CodeDifference(functions=("do_fork",)), data])
    monkeypatch.setattr("ktrial.series.building.code_difference", lambda _before, _after: next(differences))
    result = replace(run(tmp_path, "cost-fork-10", "cost-pipe-3"), counted=True)
    shown = exercised(result)
    assert "Data alone: patch 2 changes sysctl_latency, and none of its readers ran: sched_slice." in shown
    ran = replace(result, executed=frozenset({"sched_slice"}))
    assert "sysctl_latency, and all of its readers ran: sched_slice." in exercised(ran)
    steps = (*result.steps[:2], replace(result.steps[2], readers=()))
    nobody = "which no function names: who reads it through a pointer is not known."
    assert f"sysctl_latency, {nobody}" in exercised(replace(result, steps=steps))


def test_workloads_are_chosen_on_one_cpu_whatever_the_steps_are_measured_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    differing = CodeDifference(functions=("do_fork",))
    monkeypatch.setattr("ktrial.series.building.code_difference", lambda _before, _after: differing)
    machine = ScriptedMachine(answer)
    with open_store(str(tmp_path / "x.db")) as store:
        series_run = asked(tmp_path, store, "cost-fork-10", uses=(), machine=machine)
        four = MachineSettings(kind="exact-parallel", cpus=4)
        replace(series_run, measurement=replace(series_run.measurement, settings=four)).run()
        kinds = {study.study.name: study.study.machine.kind for study in store.studies()}
    parallel = "exact-parallel"
    assert kinds == {"series-boot": parallel, "series-coverage": "exact", "series": parallel}
    assert {boot.cpus for boot in machine.prepared} == {1, 4}


@pytest.mark.parametrize(("alone", "depends"), [(1010, False), (1012, False), (1030, True), (980, True)])
def test_a_patch_depends_on_others_where_it_costs_something_else_alone(alone: int, depends: bool) -> None:
    among = SeriesCell(3, "fork", Fraction(2000), Fraction(2010))
    assert differs(SeriesCell(3, "fork", Fraction(1000), Fraction(alone)), among) is depends


def test_a_patch_that_does_not_build_alone_says_so(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        series_run = asked(tmp_path, store, "mend-cost-fork-4", "broken-cost-pipe-20")
        result, alone = replace(series_run, each_alone=True).run_all()
    assert states(result) == ["built", "built"]
    assert [patch.why for patch in alone] == ["", "does not build alone: mm/a.c:1: error: no"]


def test_a_second_run_runs_no_trial(tmp_path: Path) -> None:
    run(tmp_path, "cost-fork-10", "cost-pipe-20")
    machine = ScriptedMachine(answer)
    with open_store(str(tmp_path / "x.db")) as store:
        asked(tmp_path, store, "cost-fork-10", "cost-pipe-20", machine=machine).run()
    assert machine.programs == []


def test_the_steps_are_in_order_and_each_is_compared_with_the_one_before(tmp_path: Path) -> None:
    result = run(tmp_path, "cost-fork-10", "noop", "cost-fork-20")
    assert all(step.number < next_step.number for step, next_step in pairwise(result.steps))
    cell = result.cell(3, "fork")
    assert cell
    assert (int(cell.before), int(cell.after)) == (1010, 1030)
    assert result.steps[2].state is StepState.SAME_IMAGE


@pytest.mark.parametrize(("every", "numbers"), [(0, []), (1, [1, 2, 3]), (2, [2, 3]), (24, [3])], ids=str)
def test_of_strangers_kernels_some_and_the_last_are_built_from_nothing_too(
    every: int, numbers: list[int], tmp_path: Path
) -> None:
    names = ("cost-fork-10", "cost-fork-20", "cost-fork-30")
    steps = run(tmp_path / "x", *names).steps
    assert [step.number for step in rebuilt(steps, every)] == numbers


def test_why_and_for_how_long_a_kernel_is_built_again_is_told_and_what_came_of_it(tmp_path: Path) -> None:
    told: list[str] = []
    with open_store(str(tmp_path / "x.db")) as store:
        series_run = replace(
            asked(tmp_path, store, "cost-fork-10", "noop"), tell=told.append, rebuild_every=24
        )
        remember_build(540.0, from_nothing=True)
        result = series_run.run()
    assert result.built_again == (1,)
    again = [line for line in told if "from nothing" in line or "bit by bit" in line]
    assert again == [
        "building 1\u00a0kernel of the series from nothing, too: what a patch's makefile leaves in a build "
        "tree would be in every later kernel; --rebuild 0 leaves it out",
        "1/2: building it from nothing, about 9\u00a0min 0\u00a0s by earlier builds here",
        "1/2: both builds are the same, bit by bit",
    ]
    page = series_page(result, "ktrial series")
    assert "Built from nothing, too, the kernel of patch 1 is the same, bit by bit" in page
    text = " ".join(as_text(result, "ktrial series").split())
    assert "built from nothing, too, the kernel of patch 1 is the same, bit by bit" in text
    assert "from nothing" not in as_text(replace(result, built_again=()), "ktrial series")


def test_an_estimate_has_builds_boots_and_a_time_only_where_it_was_measured(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        series_run = replace(asked(tmp_path, store, "cost-fork-10", "cost-pipe-5"), rebuild_every=24)
        words = estimate(series_run).words().replace("\u00a0", " ")
        assert words == (
            "at most 4 kernels to compile (1 of them from nothing, to compare; 1 of them whole, or nearly), "
            "3 to boot and 6 trials to run; how long that takes is not known yet on this machine"
        )
        series_run.run()
        (tmp_path / "other").mkdir()
        more = asked(tmp_path / "other", store, "cost-fork-1", "cost-pipe-2")
        more = replace(more, rebuild_every=24)
        remember_build(60.0, from_nothing=False)
        assert estimate(more).seconds is None, "how long a build from nothing takes is not known"
        remember_build(600.0, from_nothing=True)
        planned = estimate(more)
        assert (planned.builds, planned.rebuilds, planned.seconds is not None) == (4, 1, True)
        assert planned.seconds
        assert planned.boot_seconds
        compiling = 2 * 60 + 2 * 600
        assert planned.trial_seconds
        running = 3 * planned.boot_seconds + 6 * planned.trial_seconds
        assert planned.seconds == pytest.approx(compiling + running)
        (tmp_path / "third").mkdir()
        free = asked(tmp_path / "third", store, "cost-fork-1", "cost-pipe-2", "noop", uses=())
        planned, without = estimate(free), estimate(free, refused=[2])
        assert planned.profiles == 2, "the candidates' profiles are to be had"
        assert "to boot, 2 workloads to profile and 8 trials" in planned.words().replace("\u00a0", " ")
        assert (planned.builds - without.builds, planned.boots - without.boots) == (1, 1)


@pytest.mark.parametrize(
    ("path", "whole"),
    [
        ("include/linux/sched.h", True),
        ("arch/x86/include/asm/page.h", True),
        ("mm/slab.h", False),
        ("mm/a.c", False),
    ],
)
def test_a_patch_of_a_header_that_most_files_read_is_estimated_as_a_whole_build(
    path: str, whole: bool, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        series_run = asked(tmp_path, store, "cost-fork-10")
        (patch,) = series_run.series.patches
        touching = patch.model_copy(update={"paths": (path,)})
        series = series_run.series.model_copy(update={"patches": (touching,)})
        base = 1  # there is no build tree to begin with
        assert estimate(replace(series_run, series=series)).wholes == base + whole


def test_a_change_beside_which_nothing_of_the_patch_ran_says_so(tmp_path: Path) -> None:
    """hackbench moves by 8 % where another layout of the same code schedules otherwise."""
    result = run(tmp_path, "cost-fork-50")
    idle = replace(result, cells=tuple(replace(cell, is_idle=True) for cell in result.cells))
    words = "no function that the patch changes ran in it: the difference is of layout"
    assert words not in " ".join(as_text(result, "x").split())
    assert words in " ".join(as_text(idle, "x").split())
    assert max(map(len, as_text(idle, "x").splitlines())) <= COLUMNS
    assert words in as_markdown(idle, "x")
    assert "nothing of the patch ran here" in series_page(idle, "x")
    (line,) = idle_lines(idle)
    assert line.startswith(f"fork, patch 1, +5.00%: {words}")


def test_a_name_is_whole_where_there_is_room_for_it(tmp_path: Path) -> None:
    result = run(tmp_path, "cost-fork-50")
    named = replace(
        result,
        measurement=replace(result.measurement, workloads=(WorkloadUse(name="tour-memory"),)),
        cells=tuple(
            replace(cell, workload="tour-memory") for cell in result.cells if cell.workload == "fork"
        ),
        totals=tuple(
            replace(cell, workload="tour-memory") for cell in result.totals if cell.workload == "fork"
        ),
    )
    table = as_text(named, "x").partition("base to tip")[0].splitlines()
    heading, row = next(pair for pair in pairwise(table) if pair[0].strip() == "tour-memory")
    assert len(heading) == len(row), "right under it"


def test_the_sign_for_what_did_not_run_is_explained_where_it_stands(tmp_path: Path) -> None:
    result = run(tmp_path, "cost-fork-50")
    others = [replace(cell, is_idle=cell.workload != "fork") for cell in result.cells]
    assert "∅" not in as_text(replace(result, cells=tuple(others)), "x")


def test_a_patch_that_moves_no_number_is_inside_the_margin_in_markdown(tmp_path: Path) -> None:
    (row,) = (line for line in as_markdown(run(tmp_path, "cost-fork-0"), "x").splitlines() if "| 1 |" in line)
    assert row.split(" | ")[2].startswith("≈")


def test_a_patch_of_which_nothing_ran_is_not_inside_the_margin(tmp_path: Path) -> None:
    """A row of `≈` would say that it costs nothing; no workload could tell."""
    result = run(tmp_path, "cost-fork-0")
    assert "inside the margin in all workloads" in " ".join(as_text(result, "x").split())
    idle = replace(result, cells=tuple(replace(cell, is_idle=True) for cell in result.cells))
    text = " ".join(as_text(idle, "x").split())
    assert "≈" not in text
    assert "∅ not executed" in text
    assert "not executed: no function that it changes ran in " in text
    assert (result.decision, idle.decision) == (Decision.WITHIN, Decision.NOT_EXECUTED)
    assert answer_of(idle).startswith("Not executed: no function that a patch changes ran in ")
    assert as_json(idle, "x")["decision"] == "not-executed"
    assert "∅ not executed" in series_page(idle, "x")
    some = replace(result, cells=(*idle.cells[:1], *result.cells[1:]))
    assert "inside the margin in all workloads; no function that it changes ran in " in " ".join(
        as_text(some, "x").split()
    )


def test_a_change_that_rests_on_locks_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, "cost-fork-50")
    words = "of this difference is in functions that lock memory: on several CPUs it may go the other way"
    assert words not in " ".join(as_text(result, "x").split())
    before, after = (a_profile({("fput", ""): instructions}) for instructions in (1000, 1050))
    why = explain(before, after, FunctionFiles(locking=frozenset({"fput"})))
    locking = replace(result, cells=tuple(replace(cell, explanation=why) for cell in result.cells))
    assert words in " ".join(as_text(locking, "x").split())
    assert words in as_markdown(locking, "x")


@pytest.mark.parametrize(
    ("functions", "idle", "route", "measured"),
    [
        ({"fput"}, False, None, True),
        ({"other"}, False, None, False),
        ({"fput"}, True, None, False),
        ({"fput"}, False, False, False),
        ({"other"}, False, True, True),
    ],
    ids=["in a lock", "in none", "nothing of the patch ran", "refused", "asked for"],
)
def test_what_rests_on_locks_needs_several_cpus(
    functions: set[str], idle: bool, route: bool | None, measured: bool, tmp_path: Path
) -> None:
    cell = run(tmp_path, "cost-fork-50").cells[0]
    before, after = (a_profile({("fput", ""): instructions}) for instructions in (1000, 1050))
    why = explain(before, after, FunctionFiles(locking=frozenset(functions)))
    assert needs_several(replace(cell, explanation=why, is_idle=idle), route) is measured


def contended(boot: Boot, run: Run) -> StepResult:
    """On several CPUs each patch costs 400 instructions more."""
    alone = answer(boot, run)
    patches = boot.kernel.origin.build.patches if boot.kernel.origin.build else ()
    waiting = 400 * len(patches) if boot.cpus > 1 else 0
    return alone.model_copy(update={"stdout": str(int(alone.stdout) + waiting)})


def test_a_patch_that_is_better_on_one_cpu_and_worse_on_four_has_both_answers(tmp_path: Path) -> None:
    machine = ScriptedMachine(contended)
    with open_store(str(tmp_path / "x.db")) as store:
        plain = asked(tmp_path, store, "cost-fork--50", machine=machine, uses=(FORK,))
        on_one, on_four = (replace(plain, route=route).run() for route in (False, True))
    assert (on_one.decision, on_four.decision) == (Decision.WITHIN, Decision.BEYOND)
    assert {boot.cpus for boot in machine.prepared} == {1, 4}
    (cell,) = on_four.cells
    assert (int(cell.difference), cell.cpus) == (-50, 4)
    assert cell.on_several[0].comparison.value == 1350
    assert on_one.numbers_digest != on_four.numbers_digest
    line = "    4 CPUs: 1,000 → 1,350, +35.00% (+35.00% … +35.00%): worse"
    assert line in as_text(on_four, "x").splitlines()
    assert max(map(len, as_text(on_four, "x").splitlines())) <= COLUMNS
    assert "patch 1 in fork on 4 CPUs +35.00% (one CPU: −5.00%)" in answer_of(on_four)
    assert "4 CPUs: " in series_page(on_four, "x")
    assert "4 CPUs: " in as_markdown(on_four, "x")


def test_where_several_cpus_are_asked_for_and_cannot_be_had_the_series_ends(tmp_path: Path) -> None:
    def no_cpus(boot: Boot) -> None:
        if boot.cpus > 1:
            raise MachineError("Machine exact-parallel does not know this QEMU.")

    with open_store(str(tmp_path / "x.db")) as store:
        machine = ScriptedMachine(answer, on_prepare=no_cpus)
        plain = asked(tmp_path, store, "cost-fork-50", machine=machine, uses=(FORK,))
        with pytest.raises(TrialsNotMeasured, match="does not know this QEMU"):
            replace(plain, route=True).run()


def test_a_series_whose_kernel_is_another_one_from_nothing_is_not_trusted(tmp_path: Path) -> None:
    class Poisoned(SeriesBuilder):
        @property
        def builder(self) -> Builder:
            return replace(super().builder, same_from_nothing=lambda *_: False)

    with open_store(str(tmp_path / "x.db")) as store:
        series_run = asked(tmp_path, store, "cost-fork-10", "cost-fork-20", builder=Poisoned())
        assert [estimate(replace(series_run, rebuild_every=every)).builds for every in (0, 1, 24)] == [
            3,
            5,
            4,
        ]
        with pytest.raises(SeriesError, match="not to be trusted: the kernel of patch 2 ") as error:
            replace(series_run, rebuild_every=24).run()
    assert "--rebuild 1" in error.value.advice
