"""Studies on another machine: what `[machine]` may say there, and when it is booted."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN

from ktrial.model.study import Study
from ktrial.studyfile.errors import StudyMistake
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml

MACHINES = replace(KNOWN, machines=("exact", "host", "ssh"))
SETTING = '[factors."vm.swappiness"]\nlevels = [60, 10]\n'
KERNELS = '[factors.kernel]\nlevels = ["running", "debian:6.12"]\n'
BOOT = '[factors.mitigations]\nkind = "boot"\nlevels = ["auto", "off"]\n'


def read(tmp_path: Path, factor: str, keys: str = "") -> Study:
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["syscall"]\n[machine]\nkind = "ssh"\nhost = "lab1"\n{keys}\n{factor}')
    return load(path, MACHINES)


@pytest.mark.parametrize(
    ("factor", "keys", "kernel", "boots"),
    [
        (SETTING, "", "running", False),
        (SETTING, 'kernel = "running"', "running", False),
        (SETTING, 'kernel = "debian:6.12"', "debian:6.12", True),
        (SETTING, 'boot = ["mitigations=off"]', "running", True),
        (KERNELS, "", "", True),
        (BOOT, "", "running", True),
    ],
)
def test_it_is_booted_where_the_study_needs_that(
    tmp_path: Path, factor: str, keys: str, kernel: str, boots: bool
) -> None:
    study = read(tmp_path, factor, keys)
    assert (study.machine.kernel, study.machine.boots) == (kernel, boots)
    (tmp_path / "again.toml").write_text(study_toml(study))
    again = load(tmp_path / "again.toml", MACHINES)
    assert (again.machine, again.factors, again.references) == (
        study.machine,
        study.factors,
        study.references,
    )


def test_what_each_boot_may_take_is_kept(tmp_path: Path) -> None:
    machine = read(tmp_path, KERNELS, "boot_seconds = 90\nsettle_seconds = 20").machine
    assert (machine.boot_seconds, machine.settle_ns) == (90, 20_000_000_000)


def test_nothing_of_this_system_s_release_is_said_of_another_machine_s_kernel(tmp_path: Path) -> None:
    assert read(tmp_path, KERNELS).references.kernels["running"].release == ""


@pytest.mark.parametrize(
    ("factor", "keys", "said"),
    [
        (KERNELS, 'kernel = "debian:6.1"', "the kernel is a factor here, and fixed too"),
        (BOOT, 'boot = ["mitigations=off"]', "mitigations is a factor here, and fixed too"),
        (
            '[factors.memory]\nlevels = ["512M", "1G"]\n',
            "",
            "needs a boot, and the machine ssh is another system",
        ),
        (
            '[factors.cpus]\nkind = "cpus"\nlevels = [1, 2]\n',
            "",
            "needs a boot, and the machine ssh is another",
        ),
        (SETTING, 'memory = "1G"', '"memory" means nothing on the machine ssh'),
        (SETTING, "boot_seconds = 0", "seconds above 0"),
        (SETTING, 'power = "touch /tmp/pwned"', "power"),
        (SETTING, 'console = "touch /tmp/pwned"', "console"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, factor: str, keys: str, said: str) -> None:
    with pytest.raises(StudyMistake, match=re.escape(said)):
        read(tmp_path, factor, keys)


def test_the_running_kernel_is_a_level_of_another_machine_only(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["syscall"]\n{KERNELS}')
    with pytest.raises(StudyMistake, match='found "running"'):
        load(path, MACHINES)
