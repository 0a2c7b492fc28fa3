"""Studies on this system and under KVM: what `[machine]` may say there."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN

from ktrial.model.machine import CgroupLimits
from ktrial.model.study import Study
from ktrial.studyfile.errors import StudyMistake
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml

MACHINES = replace(KNOWN, machines=("exact", "host", "kvm"), monitors=("off-cpu", "perf-stat"))
SETTING = '[factors."vm.swappiness"]\nlevels = [60, 10]\n'
KERNELS = '[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]\n'


def read(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["syscall"]\n{text}')
    return load(path, MACHINES)


def host(tmp_path: Path, keys: str, factor: str = SETTING) -> Study:
    return read(tmp_path, f'[machine]\nkind = "host"\n{keys}\n{factor}')


def test_a_study_on_this_system_has_its_kernel_its_cpus_and_its_limits(tmp_path: Path) -> None:
    limits = 'cgroup = { cpus = 0.5, memory = "64M", io = ["8:0 wbps=1048576 riops=max"] }'
    machine = host(tmp_path, f"pin = [2, 3]\n{limits}\nlimit_seconds = 60").machine
    assert (machine.kernel, machine.pin, machine.limit_seconds) == ("running", (2, 3), 60)
    assert machine.cgroup == CgroupLimits(cpus=0.5, memory_mib=64, io=("8:0 wbps=1048576 riops=max",))


def test_a_study_under_kvm_may_allow_emulated_time(tmp_path: Path) -> None:
    study = read(tmp_path, f'[machine]\nkind = "kvm"\nallow_emulated_time = true\npin = [1]\n{KERNELS}')
    assert study.machine.allow_emulated_time
    assert study.machine.pin == (1,)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("pin = [1, 1]", "CPU 1 is here twice"),
        ("pin = [-1]", "found -1; allowed: "),
        ('pin = "1"', "allowed: a list of CPUs: [2, 3]"),
        ("cgroup = { cpus = 0 }", "machine.cgroup.cpus: found 0"),
        ("cgroup = { memory = 64 }", "machine.cgroup.memory: found 64"),
        ('cgroup = { memory = "64" }', "a whole number with M or G"),
        ('cgroup = { io = ["sda wbps=1"] }', "a limit names a device and what it may do"),
        ("cgroup = { memroy = 1 }", 'did you mean "memory"?'),
        ("allow_emulated_time = true", '"allow_emulated_time" means nothing on the machine host'),
        ('kernel = "debian:6.12"', '"kernel" means nothing on the machine host'),
        ('memory = "1G"', '"memory" means nothing on the machine host'),
        ('boot = ["quiet"]', '"boot" means nothing on the machine host'),
        ('monitors = ["perf-stats"]', 'did you mean "perf-stat"?'),
        ('monitors = ["off-cpu", "off-cpu"]', "off-cpu is here twice"),
        ('monitors = "off-cpu"', 'allowed: a list of monitors: ["perf-stat", "off-cpu"]'),
    ],
)
def test_a_mistake_in_the_machine_is_named(tmp_path: Path, keys: str, said: str) -> None:
    with pytest.raises(StudyMistake, match=re.escape(said)):
        host(tmp_path, keys)


@pytest.mark.parametrize(
    "factor",
    [
        KERNELS,
        '[factors.memory]\nlevels = ["512M", "1G"]\n',
        '[factors.nosmt]\nkind = "boot"\nlevels = [0, 1]\n',
    ],
)
def test_what_needs_a_boot_cannot_be_a_factor_on_this_system(tmp_path: Path, factor: str) -> None:
    with pytest.raises(StudyMistake, match="needs a boot, and the machine host is this system"):
        host(tmp_path, "", factor)


@pytest.mark.parametrize("key", ["pin = [1]", "allow_emulated_time = true", 'monitors = ["perf-stat"]'])
def test_exact_mode_has_no_use_for_keys_of_real_time(tmp_path: Path, key: str) -> None:
    with pytest.raises(StudyMistake, match="means nothing on the machine exact"):
        read(tmp_path, f"[machine]\n{key}\n{KERNELS}")


def test_the_study_file_of_a_report_reads_as_the_same_study(tmp_path: Path) -> None:
    limits = 'cgroup = { cpus = 0.5, memory = "64M" }'
    first = host(tmp_path, f'pin = [0]\n{limits}\nsample_every = "0.1 s"\nmonitors = ["off-cpu"]')
    assert first.machine.monitors == ("off-cpu",)
    again = tmp_path / "again.toml"
    again.write_text(study_toml(first))
    assert load(again, MACHINES) == first


COMMAND = 'workloads = [{ name = "mine", command = "/usr/bin/id", user = "nobody" }]'


def test_a_command_may_name_its_user_on_this_system_only(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'{COMMAND}\nmachine = "host"\n{SETTING}')
    study = load(path, MACHINES)
    assert study.workloads[0].command
    assert study.workloads[0].command.user == "nobody"
    again = tmp_path / "again.toml"
    again.write_text(study_toml(study))
    assert load(again, MACHINES).workloads == study.workloads
    path.write_text(f"{COMMAND}\n{KERNELS}")
    with pytest.raises(StudyMistake, match=r'workloads\[0\].user: "user" is for the machine host'):
        load(path, MACHINES)
    path.write_text(f'workloads = [{{ name = "fork", user = "nobody" }}]\nmachine = "host"\n{SETTING}')
    with pytest.raises(StudyMistake, match='"user" is for a workload with a "command"'):
        load(path, MACHINES)
