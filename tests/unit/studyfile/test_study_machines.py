"""What a study may say of its machine, disk, time and treatments: read, written and read again."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN
from tests.support.program_texts import KERNELS

from ktrial.analysis.interim import design_of
from ktrial.model.comparison import Estimand
from ktrial.model.design import Design, FactorKind
from ktrial.model.machine import CgroupLimits
from ktrial.model.parallel import MemoryModel, Topology
from ktrial.model.study import Disk, Stopping, Study, Timing, treatments
from ktrial.studyfile.errors import StudyMistake
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml

MACHINES = replace(
    KNOWN,
    machines=("exact", "exact-parallel", "fake", "host", "kvm", "ssh"),
    monitors=("off-cpu", "perf-stat"),
)
SETTING = '[factors."vm.swappiness"]\nlevels = [60, 10]\n'
RUNNING = '[factors.kernel]\nlevels = ["running", "debian:6.12"]\n'
BOOT = '[factors.mitigations]\nkind = "boot"\nlevels = ["auto", "off"]\n'
MEMORY = '[factors.memory]\nlevels = ["512M", "1G"]\n'
CPUS = f"{KERNELS}[factors.cpus]\nlevels = [1, 2, 4]\n"
PARALLEL, HOST, KVM = 'kind = "exact-parallel"\n', 'kind = "host"\n', 'kind = "kvm"\n'
SSH = 'kind = "ssh"\nhost = "lab1"\n'


def read(tmp_path: Path, machine: str, factors: str = KERNELS, head: str = "") -> Study:
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["syscall", "hackbench"]\n{head}[machine]\n{machine}\n{factors}')
    return load(path, MACHINES)


def read_again(tmp_path: Path, study: Study) -> Study:
    path = tmp_path / "again.toml"
    path.write_text(study_toml(study))
    return load(path, MACHINES)


@pytest.mark.parametrize(
    ("machine", "factors", "settings"),
    [
        (f"{PARALLEL}cpus = 64\nquantum = 500", KERNELS, {"cpus": 64, "quantum_ns": 500}),
        (PARALLEL, KERNELS, {"quantum_ns": 100, "topology": None}),
        (
            f'{PARALLEL}cpus = 4\ntopology = {{ sockets = 2, cores = 2 }}\nmemory_model = "coherence"',
            KERNELS,
            {"topology": Topology(sockets=2, cores=2), "memory_model": MemoryModel.COHERENCE},
        ),
        (
            f'{PARALLEL}cpus = 2\ntopology = {{ sockets = 2, nodes = ["128M", "384M"] }}',
            KERNELS,
            {"topology": Topology(sockets=2, nodes_mib=(128, 384))},
        ),
        (f'{PARALLEL}monitors = ["run-delay"]', KERNELS, {"monitors": ("run-delay",)}),
        (
            f'{HOST}pin = [2, 3]\nlimit_seconds = 60\nsample_every = "0.1 s"\nmonitors = ["off-cpu"]\n'
            'cgroup = { cpus = 0.5, memory = "64M", io = ["8:0 wbps=1048576 riops=max"] }',
            SETTING,
            {
                "kernel": "running",
                "pin": (2, 3),
                "limit_seconds": 60,
                "sample_ns": 100_000_000,
                "monitors": ("off-cpu",),
                "cgroup": CgroupLimits(cpus=0.5, memory_mib=64, io=("8:0 wbps=1048576 riops=max",)),
            },
        ),
        (
            f"{KVM}allow_emulated_time = true\npin = [1]",
            KERNELS,
            {"allow_emulated_time": True, "pin": (1,)},
        ),
        (SSH, SETTING, {"kernel": "running", "boots": False}),
        (f'{SSH}kernel = "running"', SETTING, {"kernel": "running", "boots": False}),
        (f'{SSH}kernel = "debian:6.12"', SETTING, {"kernel": "debian:6.12", "boots": True}),
        (f'{SSH}boot = ["mitigations=off"]', SETTING, {"kernel": "running", "boots": True}),
        (SSH, RUNNING, {"kernel": "", "boots": True}),
        (SSH, BOOT, {"kernel": "running", "boots": True}),
        (
            f"{SSH}boot_seconds = 90\nsettle_seconds = 20",
            RUNNING,
            {"boot_seconds": 90, "settle_ns": 20_000_000_000},
        ),
        ("disk = {}", KERNELS, {"disk": Disk()}),
        (
            'disk = { size = "1G", path = "/data", filesystem = "xfs", bandwidth = "80M", latency_us = 100 }',
            KERNELS,
            {"disk": Disk(size_mib=1024, path="/data", filesystem="xfs", bandwidth_mib=80, latency_us=100)},
        ),
    ],
)
def test_a_machine_is_read_and_written(
    tmp_path: Path, machine: str, factors: str, settings: dict[str, object]
) -> None:
    study = read(tmp_path, machine, factors)
    assert {name: getattr(study.machine, name) for name in settings} == settings
    assert read_again(tmp_path, study) == study


def test_nothing_of_this_system_s_release_is_said_of_another_machine_s_kernel(tmp_path: Path) -> None:
    assert read(tmp_path, SSH, RUNNING).references.kernels["running"].release == ""


@pytest.mark.parametrize(
    ("machine", "factors", "said"),
    [
        (f"{PARALLEL}cpus = 65", KERNELS, "at most 64 CPUs"),
        (
            f"{PARALLEL}quantum = 24",
            KERNELS,
            "found 24; allowed: nanoseconds of guest time from 25 to 100000",
        ),
        (f'{PARALLEL}count = "clock"', KERNELS, '"count" means nothing on the machine exact-parallel'),
        (
            f"{PARALLEL}cpus = 4\ntopology = {{ cores = 3 }}",
            KERNELS,
            "3 cores, 1 threads are 3 CPUs, and cpus = 4",
        ),
        (
            f'{PARALLEL}cpus = 2\ntopology = {{ cores = 2, nodes = ["128M", "128M"] }}',
            KERNELS,
            "256 MiB together, and memory is 512 MiB",
        ),
        (
            f'{PARALLEL}cpus = 2\ntopology = {{ cores = 2, nodes = ["1K"] }}',
            KERNELS,
            "machine.topology.nodes",
        ),
        (f'{PARALLEL}memory_model = "caches"', KERNELS, "There are: none, coherence"),
        (f"{PARALLEL}cpus = 2", CPUS, "they can be one only"),
        (PARALLEL, CPUS.replace("4", "128"), "at most 64 CPUs"),
        (PARALLEL, CPUS.replace("4", "0"), "whole numbers of CPUs from 1 to 256"),
        (f'{PARALLEL}monitors = ["off-cpu"]', KERNELS, "run-delay"),
        (f'{PARALLEL}monitors = ["run-delay", "run-delay"]', KERNELS, "run-delay is here twice"),
        (f"{KVM}topology = {{ cores = 1 }}", KERNELS, '"topology" means nothing on the machine kvm'),
        (f"{KVM}quantum = 500", KERNELS, '"quantum" means nothing on the machine kvm'),
        ("quantum = 500", KERNELS, '"quantum" means nothing on the machine exact'),
        ('monitors = ["run-delay"]', KERNELS, '"monitors" means nothing on the machine exact'),
        ("pin = [1]", KERNELS, "means nothing on the machine exact"),
        ("allow_emulated_time = true", KERNELS, "means nothing on the machine exact"),
        (f"{HOST}pin = [1, 1]", SETTING, "CPU 1 is here twice"),
        (f"{HOST}pin = [-1]", SETTING, "found -1; allowed: "),
        (f'{HOST}pin = "1"', SETTING, "allowed: a list of CPUs: [2, 3]"),
        (f"{HOST}cgroup = {{ cpus = 0 }}", SETTING, "machine.cgroup.cpus: found 0"),
        (f"{HOST}cgroup = {{ memory = 64 }}", SETTING, "machine.cgroup.memory: found 64"),
        (f'{HOST}cgroup = {{ memory = "64" }}', SETTING, "a whole number with M or G"),
        (f'{HOST}cgroup = {{ io = ["sda wbps=1"] }}', SETTING, "a limit names a device and what it may do"),
        (f"{HOST}cgroup = {{ memroy = 1 }}", SETTING, 'did you mean "memory"?'),
        (f"{HOST}allow_emulated_time = true", SETTING, '"allow_emulated_time" means nothing on the machine'),
        (f'{HOST}kernel = "debian:6.12"', SETTING, '"kernel" means nothing on the machine host'),
        (f'{HOST}memory = "1G"', SETTING, '"memory" means nothing on the machine host'),
        (f'{HOST}boot = ["quiet"]', SETTING, '"boot" means nothing on the machine host'),
        (f'{HOST}monitors = ["perf-stats"]', SETTING, 'did you mean "perf-stat"?'),
        (f'{HOST}monitors = ["off-cpu", "off-cpu"]', SETTING, "off-cpu is here twice"),
        (f'{HOST}monitors = "off-cpu"', SETTING, 'allowed: a list of monitors: ["perf-stat", "off-cpu"]'),
        (HOST, KERNELS, "needs a boot, and the machine host is this system"),
        (HOST, MEMORY, "needs a boot, and the machine host is this system"),
        (HOST, BOOT, "needs a boot, and the machine host is this system"),
        (f'{SSH}kernel = "debian:6.1"', RUNNING, "the kernel is a factor here, and fixed too"),
        (f'{SSH}boot = ["mitigations=off"]', BOOT, "mitigations is a factor here, and fixed too"),
        (SSH, MEMORY, "needs a boot, and the machine ssh is another system"),
        (SSH, "[factors.cpus]\nlevels = [1, 2]\n", "needs a boot, and the machine ssh is another"),
        (f'{SSH}memory = "1G"', SETTING, '"memory" means nothing on the machine ssh'),
        (f"{SSH}boot_seconds = 0", SETTING, "seconds above 0"),
        (f"{SSH}boots = true", SETTING, 'there is no key "boots"'),
        (f'{SSH}power = "touch /tmp/pwned"', SETTING, "power"),
        (f'{SSH}console = "touch /tmp/pwned"', SETTING, "console"),
        ('kind = "ssh"', SETTING, "which machine?"),
        ("", RUNNING, 'found "running"'),
        ('disk = { path = "mnt" }', KERNELS, "a directory of the guest's, from its root"),
        ('disk = { path = "/mnt/../etc" }', KERNELS, "a directory of the guest's, from its root"),
        ('disk = { filesystem = "ext5" }', KERNELS, 'did you mean "ext4"?'),
        ('disk = { bandwidth = "0M" }', KERNELS, "a memory size lies between"),
        ("disk = { latency_us = -1 }", KERNELS, "microseconds from 0"),
    ],
)
def test_a_mistake_in_the_machine_is_named(tmp_path: Path, machine: str, factors: str, said: str) -> None:
    with pytest.raises(StudyMistake, match=re.escape(said)):
        read(tmp_path, machine, factors)


def test_cpus_are_a_factor(tmp_path: Path) -> None:
    study = read(tmp_path, PARALLEL, CPUS)
    factor = study.factors[1]
    assert (factor.kind, factor.levels, factor.target) == (FactorKind.CPUS, (1, 2, 4), "")
    labels = [treatment.label for treatment in treatments(study)]
    assert labels[0] == "debian:6.1 · 1 CPU"
    assert "debian:6.12 · 4 CPUs" in labels
    assert read_again(tmp_path, study) == study


def test_a_topology_beside_a_factor_of_cpus_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(StudyMistake) as raised:
        read(tmp_path, f"{PARALLEL}topology = {{ sockets = 2, cores = 2 }}", CPUS)
    assert "a fixed number of them" in str(raised.value)
    assert "are 4 CPUs" not in str(raised.value)


COMMAND = 'workloads = [{ name = "mine", command = "/usr/bin/id", user = "nobody" }]\n'


def test_a_command_may_name_its_user_on_this_system_only(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'{COMMAND}machine = "host"\n{SETTING}')
    study = load(path, MACHINES)
    assert study.workloads[0].command
    assert study.workloads[0].command.user == "nobody"
    assert read_again(tmp_path, study).workloads == study.workloads
    path.write_text(f"{COMMAND}{KERNELS}")
    with pytest.raises(StudyMistake, match=r'workloads\[0\].user: "user" is for the machine host'):
        load(path, MACHINES)
    path.write_text(f'workloads = [{{ name = "fork", user = "nobody" }}]\nmachine = "host"\n{SETTING}')
    with pytest.raises(StudyMistake, match='"user" is for a workload with a "command"'):
        load(path, MACHINES)


# Time and seeds.


@pytest.mark.parametrize(
    ("machine", "head", "table", "timing"),
    [
        ("fake", "", "", Timing(blocks=60, stopping=Stopping.SEQUENTIAL, alpha=0.05)),
        (
            "fake",
            "",
            'blocks = 100\nstopping = "open-ended"\nalpha = 0.01\nbudget = "1.5 h"\nprimary = ["syscall"]\n',
            Timing(
                blocks=100,
                stopping=Stopping.OPEN_ENDED,
                alpha=0.01,
                budget_seconds=5400,
                primary=("syscall",),
            ),
        ),
        ("exact", "", "", None),
        ("exact", 'perturbations = "auto"\n', "", Timing()),
        ("exact", 'perturbations = "auto"\n', "blocks = 20\n", Timing(blocks=20)),
        ("exact-parallel", "", "", Timing()),
        ("fake", "", 'estimand = "tail"\n', Timing(estimand=Estimand.TAIL)),
        ("fake", "", 'estimand = "total"\nblocks = 30\n', Timing(estimand=Estimand.TOTAL, blocks=30)),
        ("exact-parallel", 'perturbations = "auto"\n', "", Timing()),
        ("exact-parallel", "perturbations = 4\n", "", None),
    ],
)
def test_blocks_are_repeated_where_numbers_scatter(
    tmp_path: Path, machine: str, head: str, table: str, timing: Timing | None
) -> None:
    study = read(tmp_path, f'kind = "{machine}"', f"{KERNELS}[timed]\n{table}" if table else KERNELS, head)
    assert study.timing == timing
    assert study.blocks == (timing.blocks if timing else study.perturbations)
    assert read_again(tmp_path, study) == study


@pytest.mark.parametrize(
    ("machine", "head", "table", "said"),
    [
        ("fake", "", "blocks = 2", "a whole number from 3 to 10000"),
        ("fake", "", 'stopping = "sequental"', 'did you mean "sequential"?'),
        ("fake", "", 'budget = "2"', "a time is a number above 0 with its unit"),
        ("fake", "", "alpha = 0.5", "a probability above 0 and below 0.5"),
        ("fake", "", 'estimand = "mean"', 'there is no estimand "mean". There are: typical, total, tail'),
        (
            "fake",
            "",
            'blocks = 20\nestimand = "total"',
            'timed.blocks: a verdict with estimand = "total" takes at least 30 blocks, and there are 20',
        ),
        ("fake", "", 'primary = ["syscal"]', 'did you mean "syscall"?'),
        ("fake", "", 'primary = ["syscal: rate"]', 'did you mean "syscall"?'),
        ("fake", "", "block = 9", 'there is no key "block"; did you mean "blocks"?'),
        ("kvm", 'perturbations = "auto"\n', "", '"auto" is for exact machines: on the machine kvm [timed]'),
        (
            "exact",
            "",
            "blocks = 10",
            'timed: the machine "exact" has no noise, and needs no blocks: take the table out, name a '
            'machine in real time, machine = "host", or let seeds be the blocks, perturbations = "auto"',
        ),
    ],
)
def test_a_mistake_in_how_it_is_timed_is_named(
    tmp_path: Path, machine: str, head: str, table: str, said: str
) -> None:
    with pytest.raises(StudyMistake, match=re.escape(said)):
        read(tmp_path, f'kind = "{machine}"', f"{KERNELS}[timed]\n{table}\n", head)


def test_each_seeds_trial_starts_anew_so_that_blocks_are_independent(tmp_path: Path) -> None:
    assert design_of(read(tmp_path, PARALLEL)).independent
    assert not design_of(read(tmp_path, KVM)).independent


# Treatments that are listed.

ROWS = 'treatments = [{ "vm.swappiness" = 10 }, { "vm.swappiness" = 10, "vm.dirty_ratio" = 5 }]\n'
TWO = f'{SETTING}[factors."vm.dirty_ratio"]\nlevels = [20, 5, 80]\n'


def test_treatments_may_be_listed(tmp_path: Path) -> None:
    study = read(tmp_path, 'kernel = "debian:6.12"', TWO, ROWS)
    assert study.design is Design.LISTED
    assert [treatment.levels for treatment in treatments(study)] == [
        {"vm.swappiness": 60, "vm.dirty_ratio": 20},
        {"vm.swappiness": 10, "vm.dirty_ratio": 20},
        {"vm.swappiness": 10, "vm.dirty_ratio": 5},
    ]
    assert read_again(tmp_path, study) == study


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('treatments = [{ "vm.swapiness" = 10 }]', 'did you mean "vm.swappiness"?'),
        ('treatments = [{ "vm.swappiness" = 11 }]', "11 is not a level of it; its levels are 60, 10"),
        ('treatments = [{ "vm.swappiness" = 60 }]', "this is the baseline"),
        ("treatments = []", "the list is empty"),
        ('treatments = [{ "vm.swappiness" = [1] }]', "levels are numbers and text"),
        (f'design = "full-factorial"\n{ROWS}', "the treatments are listed here"),
    ],
)
def test_a_mistake_in_listed_treatments_is_named(tmp_path: Path, head: str, said: str) -> None:
    with pytest.raises(StudyMistake, match=re.escape(said)):
        read(tmp_path, 'kernel = "debian:6.12"', TWO, f"{head}\n")
