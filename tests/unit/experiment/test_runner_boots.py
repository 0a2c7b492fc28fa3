"""What a treatment boots, and what is done in it."""

from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.scripted import ScriptedWorkload, a_kernel, scripted_resources

from ktrial.experiment.jobs import Job, boot_parameter, jobs_of
from ktrial.machines import guest_programs
from ktrial.model.design import Factor, FactorKind, LevelValue, Treatment
from ktrial.model.machine import CarriedFile
from ktrial.model.study import MachineSettings, Study, kernel_name, kernel_names, treatments
from ktrial.workloads.errors import WorkloadError


def factor(kind: FactorKind, target: str, *levels: LevelValue, name: str = "it") -> Factor:
    return Factor(name=name, kind=kind, target=target, levels=levels, baseline=levels[0])


def one_job(study: Study, treatment: Treatment) -> Job:
    (job,) = jobs_of(study, treatment, a_kernel(), scripted_resources())
    return job


def with_level(study: Study, level: LevelValue) -> Job:
    treatment = Treatment(levels={"kernel": "debian:6.1", "it": level})
    return one_job(study, treatment)


def test_the_kernel_is_the_factors_level_or_the_studys_one() -> None:
    study = a_study(kernels=("debian:6.1", "debian:7.2"))
    assert kernel_names(study, treatments(study)) == ("debian:6.1", "debian:7.2")
    fixed = study.model_copy(update={"factors": (), "machine": MachineSettings(kernel="host")})
    assert kernel_name(fixed, Treatment(levels={})) == "host"


@pytest.mark.parametrize(
    ("level", "parameter"),
    [("off", "mitigations=off"), ("", ""), ("mitigations", "mitigations"), (0, "mitigations=0")],
)
def test_a_boot_parameter_is_given_left_out_or_given_alone(level: LevelValue, parameter: str) -> None:
    assert boot_parameter("mitigations", level) == parameter


def test_boot_parameters_of_the_machine_come_before_those_of_factors() -> None:
    study = a_study(
        workloads=("fork",),
        factors=(factor(FactorKind.BOOT, "mitigations", "auto", "off", ""),),
        machine=MachineSettings(boot=("threadirqs",)),
    )
    assert with_level(study, "off").boot.parameters == ("threadirqs", "mitigations=off")
    assert with_level(study, "").boot.parameters == ("threadirqs",)


@pytest.mark.parametrize(("level", "mib"), [("1G", 1024), ("256M", 256)])
def test_memory_is_the_factors_level(level: str, mib: int) -> None:
    study = a_study(workloads=("fork",), factors=(factor(FactorKind.MEMORY, "", "1G", "256M"),))
    assert with_level(study, level).boot.memory_mib == mib


def test_a_workloads_parameter_is_set_and_its_label_stays_the_studys() -> None:
    study = a_study(
        workloads=("hackbench",), factors=(factor(FactorKind.PARAMETER, "hackbench.groups", 1, 8),)
    )
    job = with_level(study, 8)
    assert job.use.parameters == {"groups": 8}
    assert job.label == "hackbench"


def test_the_machines_settings_reach_the_boot() -> None:
    machine = MachineSettings(
        memory_mib=768, cpus=2, modules=("ext4",), settle_ns=5, limit_instructions=6, limit_seconds=7.0
    )
    boot = one_job(a_study(workloads=("fork",), machine=machine), Treatment(levels={"kernel": "a"})).boot
    assert (boot.memory_mib, boot.cpus, boot.settle_ns) == (768, 2, 5)
    assert (boot.limit_instructions, boot.limit_seconds) == (6, 7.0)
    assert boot.modules == (Path("/modules/ext4.ko"),)


def test_workloads_that_bring_files_share_a_boot_which_has_none_of_them(tmp_path: Path) -> None:
    tool, other = (
        CarriedFile(host=tmp_path / name, guest=f"/usr/bin/{name}", mode=0o755) for name in ("tool", "other")
    )
    resources = scripted_resources(
        {"mine": ScriptedWorkload("mine", (tool,)), "yours": ScriptedWorkload("yours", (other,))}
    )
    study = a_study(workloads=("fork", "mine", "pipe", "yours"))
    fork, mine, pipe, yours = jobs_of(study, treatments(study)[0], a_kernel(), resources)
    assert fork.boot == pipe.boot
    assert mine.boot == yours.boot == fork.boot.model_copy(update={"awaits_files": True})
    assert fork.boot.files == ()
    assert (mine.carried.files, yours.carried.files) == ((tool,), (other,))


def test_a_program_of_ktrials_own_is_part_of_the_boot(tmp_path: Path) -> None:
    tasks = CarriedFile(host=tmp_path / "tasks", guest=guest_programs.TASKS_IN_GUEST, mode=0o755)
    resources = scripted_resources({"locks": ScriptedWorkload("locks", (tasks,))})
    study = a_study(workloads=("locks",))
    (job,) = jobs_of(study, treatments(study)[0], a_kernel(), resources)
    assert (job.boot.files, job.boot.awaits_files, job.carried.files) == ((tasks,), False, ())


def test_a_boot_does_not_depend_on_which_other_workloads_the_study_names(tmp_path: Path) -> None:
    tool = CarriedFile(host=tmp_path / "tool", guest="/usr/bin/tool", mode=0o755)
    resources = scripted_resources({"mine": ScriptedWorkload("mine", (tool,))})
    alone, beside = a_study(workloads=("fork",)), a_study(workloads=("mine", "fork"))
    (fork,) = jobs_of(alone, treatments(alone)[0], a_kernel(), resources)
    _, same_fork = jobs_of(beside, treatments(beside)[0], a_kernel(), resources)
    assert fork.boot == same_fork.boot


def test_files_of_the_study_are_carried_to_the_path_they_have(tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("x")
    data.chmod(0o640)
    study = a_study(workloads=("fork",), machine=MachineSettings(files=(str(data),)))
    job = one_job(study, treatments(study)[0])
    assert job.boot.files == (CarriedFile(host=data, guest=str(data), mode=0o640),)


def test_a_program_of_the_study_brings_its_shared_libraries() -> None:
    study = a_study(workloads=("fork",), machine=MachineSettings(files=("/bin/true",)))
    carried = [file.guest for file in one_job(study, treatments(study)[0]).boot.files]
    assert carried[0] == "/bin/true"
    assert any("libc.so" in file for file in carried)


def test_a_file_that_is_not_there_is_an_error_before_anything_boots(tmp_path: Path) -> None:
    study = a_study(machine=MachineSettings(files=(str(tmp_path / "none"),)))
    with pytest.raises(WorkloadError, match="none"):
        jobs_of(study, treatments(study)[0], a_kernel(), scripted_resources())
