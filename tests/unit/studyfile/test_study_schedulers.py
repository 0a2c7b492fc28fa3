"""Schedulers as a factor, and preemption models: how a study says them, and what is believed of a kernel."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN
from tests.support.making import a_study
from tests.support.scripted import a_kernel, scripted_resources

from ktrial.experiment.jobs import check_workloads, jobs_of
from ktrial.experiment.trial import run_trial
from ktrial.kernels.config import scheduling
from ktrial.machines.fake import FakeMachine
from ktrial.model.design import Factor, FactorKind, PlannedTrial, Treatment
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.study import MachineSettings, Study, perturbation
from ktrial.model.trial import Outcome, Trial
from ktrial.studyfile.errors import StudyError
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml
from ktrial.target import Failure, Read, Run, Start, Step, StepResult, Stop
from ktrial.workloads.errors import WorkloadError

PREEMPT = "/sys/kernel/debug/sched/preempt"
DIRECTORY = "/sys/kernel/sched_ext"
LOADED = {
    f"{DIRECTORY}/state": "enabled",
    f"{DIRECTORY}/root/ops": "fifo",
    f"{DIRECTORY}/switch_all": "1",
    f"{DIRECTORY}/nr_rejected": "0",
    f"{DIRECTORY}/enable_seq": "1",
}
Told = Callable[[Step], StepResult | None]


def nothing_special(_step: Step) -> None:
    return None


def a_machine(files: dict[str, str], special: Told = nothing_special) -> FakeMachine:
    """Files say what `files` has; `special` may answer a step in another way."""

    def answer(_boot: Boot, step: Step) -> StepResult:
        if known_one := special(step):
            return known_one
        if isinstance(step, Read) and step.path not in files:
            text = f"read {step.path}: No such file or directory"
            return StepResult(step=0, do="read", failure=Failure(errno=2, name="ENOENT", text=text))
        content = f"{files[step.path]}\n" if isinstance(step, Read) else ""
        return StepResult(step=0, do=step.do, content=content, exit=0, stdout="1000")

    return FakeMachine(answer)


def factor(kind: FactorKind, name: str, *levels: str) -> Factor:
    target = "" if kind is FactorKind.SCHEDULER else name
    return Factor(name=name, kind=kind, levels=levels, baseline=levels[0], target=target)


def trial_of(
    study: Study, level: str, machine: FakeMachine, kernel: Kernel | None = None
) -> tuple[Trial, FakeMachine]:
    treatment = Treatment(levels={"kernel": "debian:6.1", study.factors[-1].name: level})
    jobs = jobs_of(study, treatment, kernel or a_kernel(), scripted_resources())
    planned = PlannedTrial(order=0, block=0, treatment=treatment, perturbation=perturbation(1, 0))
    return run_trial(machine, planned, jobs), machine


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "scx_fifo"
    path.write_text("not looked into\n")
    path.chmod(0o755)
    return str(path)


def scheduled(program: str, level: str | None = None) -> tuple[Study, str]:
    levels = ("default", f"{program} -v --slice 5")
    study = a_study(workloads=("fork",), factors=(factor(FactorKind.SCHEDULER, "scheduler", *levels),))
    return study, levels[1] if level is None else level


def test_a_scheduler_is_started_before_all_and_stopped_after_all(program: str) -> None:
    study, level = scheduled(program)
    trial, machine = trial_of(study, level, a_machine(LOADED))
    assert trial.outcome is Outcome.COMPLETED
    assert trial.settings == {"scheduler": "fifo", "scheduler: rejected tasks": "0"}
    (performed,) = machine.performed
    first, *_, last = performed.steps
    assert isinstance(first, Start)
    assert first.argv == (program, "-v", "--slice", "5")
    assert (first.path, first.value) == (f"{DIRECTORY}/state", "enabled")
    assert isinstance(last, Stop)
    assert (last.path, last.value) == (f"{DIRECTORY}/state", "disabled")
    (sample,) = trial.samples
    assert sample.value == 1000


def test_the_kernels_own_scheduler_boots_the_same_system(program: str) -> None:
    study, level = scheduled(program)
    machine = a_machine({})
    trial, _ = trial_of(study, "default", machine)
    assert trial.outcome is Outcome.COMPLETED
    trial_of(study, level, machine)
    own, other = (performed.boot for performed in machine.performed)
    assert own == other, "nothing but the scheduler differs"
    assert [file.guest for file in own.files] == [program]
    assert all(isinstance(step, Run) for step in machine.performed[0].steps)


def test_a_scheduler_that_does_not_load_is_an_outcome_with_its_words(program: str) -> None:
    failure = Failure(text="start scx_fifo: it ended before it was ready")
    told = StepResult(step=0, do="start", failure=failure, exit=1, stderr="no BTF\n")
    machine = a_machine(LOADED, lambda step: told if isinstance(step, Start) else None)
    trial, _ = trial_of(*scheduled(program), machine)
    assert trial.outcome is Outcome.REFUSED
    assert trial.samples == ()
    assert trial.reason == (
        "the scheduler scx_fifo was not loaded: it ended before it was ready; it ended with status 1; "
        "it said: no BTF"
    )


@pytest.mark.parametrize(
    ("file", "then"), [("state", "disabled"), ("root/ops", "other"), ("enable_seq", "3")]
)
def test_a_scheduler_that_is_gone_after_the_workload_makes_the_trial_invalid(
    program: str, file: str, then: str
) -> None:
    files = dict(LOADED)

    def special(step: Step) -> StepResult | None:
        if isinstance(step, Run):
            files[f"{DIRECTORY}/{file}"] = then
        return (
            StepResult(step=0, do="stop", exit=0, stdout="EXIT: stall\n") if isinstance(step, Stop) else None
        )

    trial, _ = trial_of(*scheduled(program), a_machine(files, special))
    assert (trial.outcome, trial.samples) == (Outcome.REFUSED, ())
    assert "was gone before the workload had ended" in trial.reason
    assert "it said: EXIT: stall" in trial.reason


def test_a_scheduler_of_some_tasks_only_schedules_no_workload(program: str) -> None:
    trial, _ = trial_of(*scheduled(program), a_machine(LOADED | {f"{DIRECTORY}/switch_all": "0"}))
    assert trial.outcome is Outcome.REFUSED
    assert "SCX_OPS_SWITCH_PARTIAL" in trial.reason


def test_a_program_that_is_not_there_is_found_out_before_anything_is_fetched(tmp_path: Path) -> None:
    study, _ = scheduled(str(tmp_path / "nowhere"))
    with pytest.raises(WorkloadError, match="nowhere"):
        check_workloads(study, scripted_resources())


def preempting(level: str, told: str = "", config: Path | None = None) -> Trial:
    study = a_study(workloads=("fork",), factors=(factor(FactorKind.BOOT, "preempt", "", "full", "lazy"),))
    kernel = a_kernel(config=config)
    trial, machine = trial_of(study, level, a_machine({PREEMPT: told} if told else {}), kernel)
    assert machine.started[0].parameters == ((f"preempt={level}",) if level else ())
    return trial


def test_the_preemption_model_is_read_back() -> None:
    assert preempting("full", "none voluntary (full)").settings == {"preempt": "full"}
    assert preempting("", "none (voluntary) full").settings == {"preempt": "voluntary"}
    ignored = preempting("lazy", "none (voluntary) full")
    assert (ignored.outcome, ignored.samples) == (Outcome.REFUSED, ())
    assert ignored.reason == (
        "preempt=lazy was asked for, the kernel made it voluntary: it knows none, voluntary, full"
    )


def test_a_kernel_that_cannot_choose_has_the_model_that_it_was_built_for(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("CONFIG_PREEMPT_VOLUNTARY=y\n# CONFIG_PREEMPT is not set\n")
    assert preempting("", config=config).settings == {"preempt": "voluntary"}
    refused = preempting("full", config=config)
    assert refused.outcome is Outcome.REFUSED
    assert "built for voluntary and nothing else" in refused.reason
    config.write_text("CONFIG_PREEMPT=y\n")
    assert preempting("full", config=config).settings == {"preempt": "full"}
    unknown = preempting("full")
    assert "its effect is not known: read /sys/kernel/debug/sched/preempt" in unknown.reason
    assert preempting("").settings == {}


def test_a_fixed_model_is_read_back_too() -> None:
    study = a_study(workloads=("fork",), machine=MachineSettings(boot=("preempt=none",)))
    trial, _ = trial_of(study, "debian:6.1", a_machine({PREEMPT: "(none) full"}))
    assert trial.settings == {"preempt": "none"}


def written(directory: Path, factors: str, machine: str = 'kernel = "debian:6.12"') -> Path:
    path = directory / "study.toml"
    path.write_text(f'workloads = ["syscall"]\n[machine]\n{machine}\n{factors}')
    return path


def test_a_study_names_a_scheduler_by_its_program(tmp_path: Path) -> None:
    levels = '["default", "./scx_simple -v", "scx_lavd --performance"]'
    study = load(written(tmp_path, f"[factors.scheduler]\nlevels = {levels}\n"), KNOWN)
    (one,) = study.factors
    assert (one.kind, one.target, one.baseline) == (FactorKind.SCHEDULER, "", "default")
    assert one.levels == ("default", f"{tmp_path}/scx_simple -v", "scx_lavd --performance")
    labels = [Treatment(levels={"scheduler": level}).label for level in one.levels]
    assert labels == [
        "scheduler=default",
        "scheduler=scx_simple -v",
        "scheduler=scx_lavd --performance",
    ]
    again = tmp_path / "again.toml"
    again.write_text(study_toml(study))
    assert load(again, KNOWN).factors == study.factors


@pytest.mark.parametrize(
    ("factors", "said"),
    [
        ("[factors.scheduler]\nlevels = [1, 2]\n", "a program with its arguments"),
        ("[factors.scheduler]\nlevels = ['default', 'scx \"a']\n", "no closing quotation"),
        (
            "[factors.scheduler]\nlevels = ['default', 'a']\n"
            "[factors.other]\nkind = 'scheduler'\nlevels = ['default', 'b']\n",
            "scheduler is the scheduler already",
        ),
    ],
)
def test_mistakes_in_a_scheduler_are_named(tmp_path: Path, factors: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        load(written(tmp_path, factors), KNOWN)
    assert said in str(caught.value) + str(caught.value.facts)


def test_this_system_is_given_no_scheduler(tmp_path: Path) -> None:
    factors = "[factors.scheduler]\nlevels = ['default', 'scx_simple']\n"
    with pytest.raises(StudyError) as caught:
        load(written(tmp_path, factors, 'kind = "host"'), KNOWN)
    assert "loaded into guests only" in str(caught.value) + str(caught.value.facts)


@pytest.mark.parametrize(
    ("release", "config", "shown"),
    [
        ("5.10.0-46-cloud-amd64", "CONFIG_PREEMPT_VOLUNTARY=y", "CFS; preemption voluntary only"),
        (
            "6.12.117+deb13-cloud-amd64",
            "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y",
            "EEVDF; preemption voluntary, or by preempt=",
        ),
        (
            "7.2.13+deb14-cloud-amd64",
            "CONFIG_PREEMPT_LAZY=y\nCONFIG_SCHED_CLASS_EXT=y\nCONFIG_DEBUG_INFO_BTF=y",
            "EEVDF; preemption lazy only; sched_ext",
        ),
        ("5.10.10-ck", "CONFIG_SCHED_MUQSS=y\nCONFIG_PREEMPT=y", "MuQSS; preemption full only"),
        ("6.18.0", "CONFIG_SCHED_CLASS_EXT=y", "EEVDF"),
        ("6.6.0", "", "EEVDF"),
    ],
)
def test_what_a_kernel_offers_is_told(tmp_path: Path, release: str, config: str, shown: str) -> None:
    file = tmp_path / "config"
    file.write_text(config)
    assert str(scheduling(a_kernel(release=release, config=file))) == shown
