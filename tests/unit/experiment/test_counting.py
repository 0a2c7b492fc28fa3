"""What counts instructions, the plugin or the clock, and what each trial keeps of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.making import a_sample, a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.scripted import a_kernel, scripted_resources

from ktrial.analysis.result import result
from ktrial.cli.main import main
from ktrial.cli.studies import registry
from ktrial.experiment.jobs import Job
from ktrial.experiment.session import run
from ktrial.experiment.trial import run_trial
from ktrial.machines.errors import NoPluginHere
from ktrial.machines.exact import ExactMachine
from ktrial.machines.fake import FakeMachine, agreeable
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.model.profile import RegionCounts
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import (
    Command,
    CountedBy,
    Direction,
    Metric,
    Mode,
    WorkloadDescription,
    WorkloadUse,
)
from ktrial.store.store import open_store
from ktrial.studyfile.errors import StudyError
from ktrial.studyfile.reader import load
from ktrial.target import Run, Step, StepResult
from ktrial.workloads import Workload
from ktrial.workloads.builtin import BuiltIn
from ktrial.workloads.command import CommandWorkload

KALLSYMS = "".join(f"{0xFFFFFFFF81000000 + 16 * n:016x} T function_{n}\n" for n in range(2000))
CALL = Metric(name="call", unit="instructions", direction=Direction.LOWER)
BUILT_IN = BuiltIn(WorkloadDescription(name="fork", summary="", does="", metrics=(CALL,)))
FORK = WorkloadUse(name="fork")
MINE = WorkloadUse(name="mine", command=Command(argv=("/bin/true",), repeats=3))
PROFILE = a_profile({("do_fork", ""): 9000, ("clear_page_erms", ""): 1000}, program=500, operations=10)


# Which of the two


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """A directory of guest programs, which need not run."""
    for name in ("agent", "work", "lockstep.so", "insn-v1.so"):
        (tmp_path / name).write_text(name)
    return tmp_path


def a_qemu(path: Path, plugins: bool) -> Path:
    path.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "  --version) echo 'QEMU emulator version 7.2.22 (Debian)' ;;\n"
        f"  *-plugin*) {'exit 0' if plugins else 'echo no such option >&2; exit 1'} ;;\n"
        "esac\n"
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("plugins", "count", "mode"),
    [
        (True, None, Mode.EXACT_PLUGIN),
        (True, CountedBy.PLUGIN, Mode.EXACT_PLUGIN),
        (True, CountedBy.CLOCK, Mode.EXACT_CLOCK),
        (False, None, Mode.EXACT_CLOCK),
        (False, CountedBy.CLOCK, Mode.EXACT_CLOCK),
    ],
)
def test_the_plugin_counts_where_it_loads_unless_the_clock_is_asked_for(
    plugins: bool,
    count: CountedBy | None,
    mode: Mode,
    guest: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KTRIAL_QEMU", str(a_qemu(tmp_path / f"qemu-{plugins}", plugins)))
    machine = ExactMachine(guest)
    machine.count_by(count)
    machine.check()
    assert machine.mode is mode


def test_a_plugin_that_is_asked_for_and_does_not_load_is_an_error(
    guest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTRIAL_QEMU", str(a_qemu(tmp_path / "qemu", plugins=False)))
    with pytest.raises(NoPluginHere, match="no such option") as raised:
        ExactMachine(guest, count=CountedBy.PLUGIN).check()
    assert "--count clock" in raised.value.advice


class Asked(FakeMachine):
    """Notes what it is asked to count by."""

    asked: CountedBy | None = None

    def count_by(self, count: CountedBy | None) -> None:
        Asked.asked = count


@pytest.mark.parametrize(
    ("text", "options", "asked"),
    [
        ("", [], None),
        ('machine = { count = "clock" }', [], CountedBy.CLOCK),
        ('machine = { count = "clock" }', ["--count", "plugin"], CountedBy.PLUGIN),
        ("", ["--count", "clock"], CountedBy.CLOCK),
        ('machine = { model = "default" }', [], CountedBy.PLUGIN),
    ],
)
def test_a_study_and_its_command_line_say_what_counts(
    text: str,
    options: list[str],
    asked: CountedBy | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = a_file(tmp_path, text)
    Asked.asked = None
    monkeypatch.setattr("ktrial.machines.find", lambda _name: Asked())
    monkeypatch.setattr("ktrial.experiment.session.default_resources", scripted_resources)
    monkeypatch.setattr(
        "sys.argv", ["ktrial", "run", study, "--store", str(tmp_path / "a.db"), "--no-html", *options]
    )
    with pytest.raises(SystemExit):
        main()
    assert Asked.asked is asked


def test_cycles_are_not_modelled_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = a_file(tmp_path, 'machine = { model = "small" }')
    monkeypatch.setattr("sys.argv", ["ktrial", "run", study, "--count", "clock"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert "the study models cycles on small" in output
    assert 'model = "small"' in output


def a_file(directory: Path, text: str) -> str:
    path = directory / "study.toml"
    path.write_text(
        f'{text}\nworkloads = ["syscall"]\n[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]\n'
    )
    return str(path)


def test_time_cannot_be_counted(tmp_path: Path) -> None:
    study = a_file(tmp_path, 'machine = { kind = "kvm", count = "plugin" }')
    with pytest.raises(StudyError, match='"count" means nothing on the machine kvm'):
        load(Path(study), registry())


# What a trial keeps


def region(**changes: object) -> RegionCounts:
    operations = PROFILE.region.operations.model_copy(update={"string_bytes": 4096.0, **changes})
    return PROFILE.region.model_copy(update={"operations": operations})


def report(operations: int = 10) -> str:
    metric = {"name": CALL.name, "unit": CALL.unit, "direction": "lower", "operations": operations}
    metric |= {"minimum": 1, "median": 1, "mean": 1}
    report = {"workload": "fork", "clock": "tsc", "overhead": 51, "bundle": 2, "metrics": [metric]}
    return json.dumps(report | {"checks": operations})


def counted(counts: RegionCounts | None = None, said: str = "") -> FakeMachine:
    """A machine whose programs have this region."""

    def answer(_boot: Boot, step: Step) -> StepResult:
        result = StepResult(
            step=0, do="run", exit=0, stdout=said or report(), wall_ns=777, region=counts or region()
        )
        return result if isinstance(step, Run) else agreeable(_boot, step)

    return FakeMachine(answer, mode=Mode.EXACT_PLUGIN, kallsyms=KALLSYMS)


def trial(
    machine: FakeMachine,
    tmp_path: Path,
    number: int = 0,
    use: WorkloadUse = FORK,
    workload: Workload = BUILT_IN,
    cpus: int = 1,
) -> Trial:
    boot = Boot(kernel=a_kernel(image=tmp_path / "vmlinuz"), cpus=cpus)
    return run_trial(machine, planned(number=number), (Job(use.label, use, workload, boot, ()),))


def test_a_workload_s_numbers_are_the_plugin_s_less_its_own_overhead(tmp_path: Path) -> None:
    ended = trial(counted(), tmp_path)
    assert ended.outcome is Outcome.COMPLETED, ended.reason
    instructions, moved = ended.samples
    # 1050 from mark to mark, of which 50 are the loop around the operation; two operations in a row.
    assert (instructions.metric, instructions.value, instructions.mode) == ("call", 500.0, Mode.EXACT_PLUGIN)
    assert (moved.metric, moved.value, moved.unit) == ("string-bytes", 2048.0, "bytes")


def test_a_trial_keeps_what_each_function_had(tmp_path: Path) -> None:
    (profile,) = trial(counted(), tmp_path).profiles
    assert (profile.workload, profile.operations) == ("fork", 20)
    assert {function.symbol: function.instructions for function in profile.region.functions} == {
        "do_fork": 9000,
        "clear_page_erms": 1000,
    }


@pytest.mark.parametrize(("number", "cpus", "calls"), [(0, 1, True), (1, 1, False), (0, 2, False)])
def test_calls_are_followed_once_a_treatment_and_on_one_cpu(
    number: int, cpus: int, calls: bool, tmp_path: Path
) -> None:
    machine = counted()
    trial(machine, tmp_path, number, cpus=cpus)
    (performed,) = machine.performed
    assert (performed.counted, performed.calls) == (True, calls)


def test_without_symbols_the_totals_are_kept_and_the_names_are_not(tmp_path: Path) -> None:
    machine = counted()
    machine.kallsyms = ""
    ended = trial(machine, tmp_path)
    assert ended.outcome is Outcome.COMPLETED
    assert [sample.value for sample in ended.samples] == [500.0, 2048.0]
    assert ended.profiles == ()
    (warning,) = ended.warnings
    assert warning.kind is WarningKind.NO_PROFILE
    assert "/proc/kallsyms is not there" in warning.text
    assert warning.advice


def test_names_that_would_be_wrong_are_not_kept(tmp_path: Path) -> None:
    moved = a_profile({("[unknown]", ""): 9000, ("do_fork", ""): 1000}, program=500).region
    ended = trial(counted(moved), tmp_path)
    assert [len(ended.samples), len(ended.profiles)] == [2, 0]
    assert [warning.kind for warning in ended.warnings] == [WarningKind.NO_PROFILE]


def test_a_workload_that_marks_less_than_it_does_fails(tmp_path: Path) -> None:
    ended = trial(counted(said=report(operations=11)), tmp_path)
    assert ended.outcome is Outcome.WORKLOAD_FAILED
    assert "did 11 operations, and marked 10" in ended.reason


def test_a_command_is_counted_from_its_start_to_its_end(tmp_path: Path) -> None:
    regions = [region(count=1, total=operations, median=operations) for operations in (99, 30, 10, 20)]
    totals = iter(
        [region_.model_copy(update={"instructions": region_.operations.total}) for region_ in regions]
    )

    def answer(_boot: Boot, _step: Step) -> StepResult:
        return StepResult(step=0, do="run", exit=0, wall_ns=777, region=next(totals))

    machine = FakeMachine(answer, mode=Mode.EXACT_PLUGIN, kallsyms=KALLSYMS)
    ended = trial(machine, tmp_path, use=MINE, workload=CommandWorkload())
    assert ended.outcome is Outcome.COMPLETED, ended.reason
    wall, moved = ended.samples
    assert (wall.metric, wall.unit, wall.value) == ("wall time", "instructions", 20)
    assert (moved.metric, moved.value) == ("string-bytes", 4096)
    (profile,) = ended.profiles
    assert (profile.operations, profile.region.instructions) == (1, 20)


def test_by_the_clock_nothing_is_counted(tmp_path: Path) -> None:
    machine = FakeMachine(lambda _boot, _step: StepResult(step=0, do="run", exit=0, stdout=report()))
    ended = trial(machine, tmp_path)
    assert [(sample.value, sample.mode) for sample in ended.samples] == [(1.0, Mode.EXACT_CLOCK)]
    assert ended.profiles == ()
    assert [performed.counted for performed in machine.performed] == [False]


def test_the_clock_in_the_plugin_s_place_is_warned_about(tmp_path: Path) -> None:
    class Fallback(FakeMachine):
        def identity(self, boot: Boot) -> MachineIdentity:
            return super().identity(boot).model_copy(update={"clock_reason": "no such option"})

    machine = Fallback(lambda _boot, _step: StepResult(step=0, do="run", exit=0, stdout=report()))
    (warning,) = trial(machine, tmp_path).warnings
    assert warning.kind is WarningKind.COUNTED_BY_CLOCK
    assert "no such option" in warning.text
    assert "KTRIAL_QEMU" in warning.advice


def test_flags_that_are_wrong_are_warned_about(tmp_path: Path) -> None:
    class Mistaken(FakeMachine):
        def identity(self, boot: Boot) -> MachineIdentity:
            return super().identity(boot).model_copy(update={"flags_reason": "the flags are wrong"})

    machine = Mistaken(lambda _boot, _step: StepResult(step=0, do="run", exit=0, stdout=report()))
    (warning,) = trial(machine, tmp_path).warnings
    assert (warning.kind, warning.text) == (WarningKind.PROCESSOR_FLAGS, "the flags are wrong")
    assert "KTRIAL_QEMU" in warning.advice


# What a study says


def by_plugin(kernel: str, bytes_: float, number: int = 0) -> Trial:
    moved = a_sample("fork", bytes_, metric="string-bytes", unit="bytes", mode=Mode.EXACT_PLUGIN)
    plain = a_trial(planned(kernel, number))
    return plain.model_copy(update={"samples": (a_sample("fork", 1000.0, mode=Mode.EXACT_PLUGIN), moved)})


def test_bytes_of_string_instructions_are_compared_where_there_are_any() -> None:
    study = a_study(workloads=("fork",), perturbations=1)
    some = [by_plugin("debian:6.1", 0.0), by_plugin("debian:6.12", 4096.0)]
    verdicts = {comparison.metric: comparison.verdict for comparison in result(study, some).comparisons}
    assert verdicts == {"instructions": Verdict.EQUIVALENT, "string-bytes": Verdict.WORSE}
    none = [by_plugin("debian:6.1", 0.0), by_plugin("debian:6.12", 0.0)]
    assert [comparison.metric for comparison in result(study, none).comparisons] == ["instructions"]


def test_a_study_keeps_its_profiles_in_the_store(tmp_path: Path) -> None:
    study = a_study(workloads=("fork",), perturbations=2)
    with open_store(tmp_path / "trials.db") as store:
        record = run(
            study,
            store=store,
            machine=counted(),
            jobs=1,
            resources=replace(
                scripted_resources(),
                obtain=lambda kernel, _progress: a_kernel(kernel.asked, image=tmp_path / "vmlinuz"),
                workload=lambda _use: BUILT_IN,
            ),
        )
        stored = [store.profile(record.id, trial.planned.key, "fork") for trial in record.trials]
    assert len(stored) == 4
    assert all(profile and profile.region.functions == PROFILE.region.functions for profile in stored)


def weighed(before: float, after: float, instructions: float) -> Comparison:
    """The row of string bytes of a workload that runs so many instructions in both kernels."""
    trials = []
    for kernel, moved in (("debian:6.1", before), ("debian:6.12", after)):
        bytes_ = a_sample("fork", moved, metric="string-bytes", unit="bytes", mode=Mode.EXACT_PLUGIN)
        counted = a_sample("fork", instructions, unit="instructions", mode=Mode.EXACT_PLUGIN)
        trials.append(a_trial(planned(kernel, 0)).model_copy(update={"samples": (counted, bytes_)}))
    study = a_study(workloads=("fork",), perturbations=1, margin=0.01)
    (row,) = (
        comparison for comparison in result(study, trials).comparisons if comparison.metric == "string-bytes"
    )
    return row


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (192.0, 608.0, Verdict.EQUIVALENT),  # 416 bytes weigh 13 instructions of 8,759
        (608.0, 192.0, Verdict.EQUIVALENT),
        (0.0, 416.0, Verdict.EQUIVALENT),
        (192.0, 192.0 + 32 * 87, Verdict.EQUIVALENT),
        (192.0, 192.0 + 32 * 88, Verdict.WORSE),
        (192.0 + 32 * 88, 192.0, Verdict.BETTER),
        (0.0, 32.0 * 88, Verdict.WORSE),
    ],
)
def test_string_bytes_have_a_verdict_of_their_own_from_the_weight_on_that_matters(
    before: float, after: float, verdict: Verdict
) -> None:
    row = weighed(before, after, 8759.0)
    assert row.verdict is verdict
    light = f"worth {abs(after - before) / 32:.0f} of 8,759 instructions: less than the margin of 1 %"
    assert (light in row.reason.replace("\N{NO-BREAK SPACE}", " ")) is (verdict is Verdict.EQUIVALENT)
    assert (row.baseline_value, row.value) == (before, after), "the numbers stay what they are"
