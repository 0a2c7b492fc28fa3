"""One trial: whatever happens in the guest is an outcome, and everything that counts is kept."""

from collections.abc import Callable

import pytest
from tests.support.making import a_study
from tests.support.scripted import (
    ScriptedMachine,
    ScriptedWorkload,
    a_kernel,
    ends,
    number_of,
    refused,
    scripted_resources,
)

from ktrial import __version__
from ktrial.errors import KtrialError
from ktrial.experiment.jobs import Job, jobs_of
from ktrial.experiment.trial import run_trial
from ktrial.machines.errors import HostProblem, MachineStopped, QemuGone
from ktrial.model.design import Factor, FactorKind, PlannedTrial
from ktrial.model.machine import Boot, CarriedFile
from ktrial.model.study import plan
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import WarningKind
from ktrial.studyfile.references import resolved
from ktrial.target import Run, StepResult, Write
from ktrial.target.errors import FrameError, GuestEnded
from ktrial.workloads.errors import WorkloadError

SWAPPINESS = Factor(
    name="swappiness", kind=FactorKind.SETTING, levels=(10, 60), baseline=10, target="vm.swappiness"
)


def one(factors: tuple[Factor, ...] = ()) -> tuple[PlannedTrial, tuple[Job, ...]]:
    study = a_study(factors=factors)
    planned = plan(study).trials[0]
    kernel = a_kernel(str(planned.treatment.levels["kernel"]))
    return planned, jobs_of(resolved(study), planned.treatment, kernel, scripted_resources())


def run_on(machine: ScriptedMachine, factors: tuple[Factor, ...] = ()) -> Trial:
    return run_trial(machine, *one(factors))


def only(workload: str, then: Callable[[Boot, Run], StepResult]) -> Callable[[Boot, Run], StepResult]:
    """Answer normally, apart from one workload."""
    return lambda boot, run: then(boot, run) if run.argv[0] == workload else number_of(boot, run)


def raises(error: Exception) -> Callable[[Boot, Run], StepResult]:
    def answer(boot: Boot, run: Run) -> StepResult:
        raise error

    return answer


def test_a_trial_keeps_samples_counters_settings_and_provenance() -> None:
    trial = run_on(ScriptedMachine(), (SWAPPINESS,))
    assert trial.outcome is Outcome.COMPLETED
    assert [sample.workload for sample in trial.samples] == ["fork", "pipe"]
    assert {(counter.workload, counter.name, counter.delta) for counter in trial.counters} == {
        ("fork", "vmstat.pgfault", 2.0),
        ("fork", "rusage.minflt", 1.0),
        ("pipe", "vmstat.pgfault", 2.0),
        ("pipe", "rusage.minflt", 1.0),
    }
    assert trial.settings == {"vm.swappiness": str(trial.planned.treatment.levels["swappiness"])}
    seen = trial.provenance
    kernel = a_kernel(seen.kernel)
    assert (seen.kernel_digest, seen.config_digest) == (kernel.digest, kernel.config_digest)
    assert (seen.machine, seen.qemu, seen.cpu_model, seen.snapshot) == ("scripted", "7.2.22", "max", "key")
    assert (seen.agent_digest, seen.ktrial) == ("agent", __version__)
    assert seen.kernel_package.startswith("linux-image-debian:6.")
    assert trial.seconds >= 0


def test_every_workload_is_performed_by_itself_with_the_settings_before_it() -> None:
    machine = ScriptedMachine()
    run_on(machine, (SWAPPINESS,))
    performed = [[type(step) for step in steps] for _, steps in machine.programs]
    assert performed == [[Write, Run], [Write, Run]]


def test_the_monitors_files_are_watched_around_every_program() -> None:
    machine = ScriptedMachine()
    run_on(machine)
    (_, (program,)), *_ = machine.programs
    assert isinstance(program, Run)
    assert program.watch == ("/proc/schedstat", "/proc/stat", "/proc/vmstat")


def test_a_factor_of_a_workload_does_not_change_its_name_in_the_samples() -> None:
    groups = Factor(name="groups", kind=FactorKind.PARAMETER, levels=(8,), baseline=8, target="fork.groups")
    assert {sample.workload for sample in run_on(ScriptedMachine(), (groups,)).samples} == {"fork", "pipe"}


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (ends(Outcome.PANICKED, "Kernel panic - not syncing: oops"), Outcome.PANICKED, "oops"),
        (ends(Outcome.HUNG, "no end after 300 s"), Outcome.HUNG, "no end after 300 s"),
        (ends(Outcome.OUT_OF_MEMORY, "the kernel killed fork"), Outcome.OUT_OF_MEMORY, "killed fork"),
        (FrameError(problem="its checksum is wrong"), Outcome.MACHINE_FAILED, "checksum"),
        (QemuGone(machine="exact", command="cont"), Outcome.MACHINE_FAILED, "QEMU ended"),
        (WorkloadError("Workload fork: short read"), Outcome.WORKLOAD_FAILED, "short read"),
    ],
)
def test_a_failure_is_an_outcome_and_the_other_workloads_still_run(
    error: Exception, outcome: Outcome, reason: str
) -> None:
    trial = run_on(ScriptedMachine(only("fork", raises(error))))
    assert trial.outcome is outcome
    assert reason in trial.reason
    assert trial.reason.count("fork") >= 1 or outcome is Outcome.MACHINE_FAILED
    assert [sample.workload for sample in trial.samples] == ["pipe"]
    assert trial.provenance.qemu == "7.2.22"


def test_the_end_of_the_console_is_kept() -> None:
    console = "x" * 100_000 + "Kernel panic - not syncing: oops\n"
    error = ends(Outcome.PANICKED, "it panicked", console)
    trial = run_on(ScriptedMachine(only("fork", raises(error))))
    assert trial.console.endswith("oops\n")
    assert len(trial.console) == 64 * 1024


def test_the_first_failure_is_the_trials_and_the_others_are_told() -> None:
    def answer(boot: Boot, run: Run) -> StepResult:
        raise ends(Outcome.PANICKED if run.argv[0] == "fork" else Outcome.HUNG, run.argv[0])

    trial = run_on(ScriptedMachine(answer))
    # How the first one ended is the outcome; of the others nothing is kept from whoever reads the reason.
    assert (trial.outcome, trial.reason) == (Outcome.PANICKED, "fork: fork; pipe: pipe")
    assert trial.samples == ()


def test_a_program_that_fails_is_a_failed_workload() -> None:
    failing = StepResult(step=0, do="run", exit=1, stderr="short read: 511 of 512")
    trial = run_on(ScriptedMachine(only("pipe", lambda boot, run: failing)))
    assert trial.outcome is Outcome.WORKLOAD_FAILED
    assert "short read: 511 of 512" in trial.reason
    assert [sample.workload for sample in trial.samples] == ["fork"]


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_a_sample_that_is_no_number_is_a_failed_workload(number: str) -> None:
    answer = StepResult(step=0, do="run", exit=0, stdout=number)
    trial = run_on(ScriptedMachine(only("fork", lambda boot, run: answer)))
    assert trial.outcome is Outcome.WORKLOAD_FAILED
    assert "is not a number" in trial.reason


def test_a_refused_setting_makes_the_trial_invalid_with_the_kernels_answer() -> None:
    machine = ScriptedMachine(on_write=lambda step: refused("EINVAL", "Invalid argument"))
    trial = run_on(machine, (SWAPPINESS,))
    assert trial.outcome is Outcome.REFUSED
    assert "was refused: EINVAL: Invalid argument" in trial.reason
    assert (trial.samples, trial.counters) == ((), ())
    assert len(machine.programs) == 1, "nothing else is run once a setting was refused"


def test_a_setting_that_the_kernel_changed_makes_the_trial_invalid() -> None:
    changed = StepResult(step=0, do="write", before="60", after="100")
    trial = run_on(ScriptedMachine(on_write=lambda step: changed), (SWAPPINESS,))
    assert trial.outcome is Outcome.REFUSED
    assert "the kernel made it 100" in trial.reason


def test_a_refused_setting_comes_before_the_panic_that_follows_it() -> None:
    answered = refused("EINVAL", "Invalid argument")
    error = GuestEnded(outcome=Outcome.PANICKED, reason="it panicked", console="", results=(answered,))
    trial = run_on(ScriptedMachine(raises(error)), (SWAPPINESS,))
    assert trial.outcome is Outcome.REFUSED


def test_what_failed_when_it_was_prepared_is_not_booted_again() -> None:
    machine = ScriptedMachine()
    planned, jobs = one()
    failed = {jobs[0].boot: ends(Outcome.NO_INIT, "No working init found", "console")}
    trial = run_trial(machine, planned, jobs, failed)
    assert (trial.outcome, trial.reason) == (Outcome.NO_INIT, "No working init found")
    assert (machine.programs, trial.console) == ([], "console")
    assert trial.provenance.kernel == jobs[0].boot.kernel.name


def test_a_system_of_its_own_that_fails_leaves_the_others_alone() -> None:
    study = a_study(workloads=("fork", "mine"))
    tool = CarriedFile(host="/bin/true", guest="/bin/true")
    resources = scripted_resources({"mine": ScriptedWorkload("mine", (tool,))})
    planned = plan(study).trials[0]
    jobs = jobs_of(study, planned.treatment, a_kernel(), resources)
    failed = {jobs[1].boot: ends(Outcome.OUT_OF_MEMORY, "the initial RAM disk does not fit")}
    trial = run_trial(ScriptedMachine(), planned, jobs, failed)
    assert trial.outcome is Outcome.OUT_OF_MEMORY
    assert [sample.workload for sample in trial.samples] == ["fork"]


@pytest.mark.parametrize(
    "error",
    [
        HostProblem(machine="exact", directory="/x", problem="no space", mib=40),
        MachineStopped(machine="exact"),
    ],
)
def test_what_says_nothing_about_the_treatment_is_no_outcome(error: KtrialError) -> None:
    with pytest.raises(type(error)):
        run_on(ScriptedMachine(raises(error)))


def test_a_plain_boot_is_said_to_be_one() -> None:
    trial = run_on(ScriptedMachine(plain_boot_reason="the CPU model cannot be migrated"))
    assert trial.provenance.snapshot == "plain boot: the CPU model cannot be migrated"
    assert [warning.kind for warning in trial.warnings] == [WarningKind.PLAIN_BOOT]


def test_an_outcome_is_of_a_workload_and_the_others_completed() -> None:
    trial = run_on(ScriptedMachine(only("fork", raises(ends(Outcome.PANICKED, "it fell over")))))
    assert (trial.outcome, trial.is_measured) == (Outcome.PANICKED, True)
    assert {name: trial.outcome_of(name) for name in ("fork", "pipe")} == {
        "fork": Outcome.PANICKED,
        "pipe": Outcome.COMPLETED,
    }
    assert trial.reason_of("fork") == "fork: it fell over"


def test_a_trial_without_any_number_ended_as_a_whole() -> None:
    trial = run_on(ScriptedMachine(raises(ends(Outcome.HUNG, "nothing moved"))))
    assert not trial.is_measured
    assert {trial.outcome_of(name) for name in ("fork", "pipe")} == {Outcome.HUNG}
