"""Studies on several CPUs in simulated time: what `[machine]` may say there."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN

from ktrial.analysis.interim import design_of
from ktrial.model.design import FactorKind
from ktrial.model.parallel import MemoryModel, Topology
from ktrial.model.study import Study, treatments
from ktrial.studyfile.errors import StudyMistake
from ktrial.studyfile.reader import load
from ktrial.studyfile.writer import study_toml

MACHINES = replace(KNOWN, machines=("exact", "exact-parallel", "kvm"))
KERNELS = '[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]\n'


def read(tmp_path: Path, keys: str, kind: str = "exact-parallel") -> Study:
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["syscall"]\n[machine]\nkind = "{kind}"\n{keys}\n{KERNELS}')
    return load(path, MACHINES)


def test_cpus_and_quantum_are_read_and_written(tmp_path: Path) -> None:
    study = read(tmp_path, "cpus = 64\nquantum = 500")
    assert (study.machine.cpus, study.machine.quantum_ns) == (64, 500)
    assert "quantum = 500" in study_toml(study)
    assert read(tmp_path, "").machine.quantum_ns == 100


def test_topology_and_memory_model_are_read_and_written(tmp_path: Path) -> None:
    keys = 'cpus = 4\ntopology = { sockets = 2, cores = 2 }\nmemory_model = "coherence"'
    machine = read(tmp_path, keys).machine
    assert machine.topology == Topology(sockets=2, cores=2)
    assert machine.memory_model is MemoryModel.COHERENCE
    (tmp_path / "again.toml").write_text(study_toml(read(tmp_path, keys)))
    assert load(tmp_path / "again.toml", MACHINES).machine == machine


def test_nodes_are_read_and_written(tmp_path: Path) -> None:
    keys = 'cpus = 2\ntopology = { sockets = 2, nodes = ["128M", "384M"] }'
    machine = read(tmp_path, keys).machine
    assert machine.topology == Topology(sockets=2, nodes_mib=(128, 384))
    (tmp_path / "again.toml").write_text(study_toml(read(tmp_path, keys)))
    assert load(tmp_path / "again.toml", MACHINES).machine == machine


def test_cpus_are_a_factor(tmp_path: Path) -> None:
    study = read(tmp_path, "[factors.cpus]\nlevels = [1, 2, 4]")
    factor = study.factors[0]
    assert (factor.kind, factor.levels, factor.target) == (FactorKind.CPUS, (1, 2, 4), "")
    labels = [treatment.label for treatment in treatments(study)]
    assert labels[0] == "1 CPU · debian:6.1"
    assert "4 CPUs · debian:6.12" in labels
    (tmp_path / "again.toml").write_text(study_toml(study))
    assert load(tmp_path / "again.toml", MACHINES).factors == study.factors


def with_perturbations(tmp_path: Path, text: str, kind: str) -> Study:
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["syscall"]\nmachine = "{kind}"\n{text}\n{KERNELS}')
    return load(path, MACHINES)


@pytest.mark.parametrize(
    ("text", "kind", "blocks"),
    [
        ("", "exact-parallel", 60),
        ('perturbations = "auto"', "exact-parallel", 60),
        ('perturbations = "auto"', "exact", 60),
        ('perturbations = "auto"\n[timed]\nblocks = 20', "exact", 20),
        ("perturbations = 4", "exact-parallel", None),
        ("", "exact", None),
    ],
)
def test_seeds_are_blocks_where_they_move_the_numbers(
    tmp_path: Path, text: str, kind: str, blocks: int | None
) -> None:
    study = with_perturbations(tmp_path, text, kind)
    assert (study.timing and study.timing.blocks) == blocks
    assert study.blocks == blocks or study.blocks == study.perturbations
    again = tmp_path / "again.toml"
    again.write_text(study_toml(study))
    assert load(again, MACHINES) == study


def test_each_seeds_trial_starts_anew_so_that_blocks_are_independent(tmp_path: Path) -> None:
    study = with_perturbations(tmp_path, "", "exact-parallel")
    assert design_of(study).independent
    assert not design_of(with_perturbations(tmp_path, "", "kvm")).independent


def test_real_time_takes_blocks_for_what_exact_machines_take_seeds_for(tmp_path: Path) -> None:
    with pytest.raises(StudyMistake, match=r'"auto" is for exact machines: .* kvm \[timed\]'):
        with_perturbations(tmp_path, 'perturbations = "auto"', "kvm")


@pytest.mark.parametrize(
    ("keys", "kind", "said"),
    [
        ("cpus = 65", "exact-parallel", "at most 64 CPUs"),
        ("quantum = 24", "exact-parallel", "found 24; allowed: nanoseconds of guest time from 25 to 100000"),
        ('count = "clock"', "exact-parallel", '"count" means nothing on the machine exact-parallel'),
        (
            "cpus = 4\ntopology = { cores = 3 }",
            "exact-parallel",
            "3 cores, 1 threads are 3 CPUs, and cpus = 4",
        ),
        (
            'cpus = 2\ntopology = { cores = 2, nodes = ["128M", "128M"] }',
            "exact-parallel",
            "256 MiB together, and memory is 512 MiB",
        ),
        (
            'cpus = 2\ntopology = { cores = 2, nodes = ["1K"] }',
            "exact-parallel",
            "machine.topology.nodes",
        ),
        ('memory_model = "caches"', "exact-parallel", "There are: none, coherence"),
        ("topology = { cores = 1 }", "kvm", '"topology" means nothing on the machine kvm'),
        ("cpus = 2\n[factors.cpus]\nlevels = [1, 2]", "exact-parallel", "they can be one only"),
        ("[factors.cpus]\nlevels = [1, 128]", "exact-parallel", "at most 64 CPUs"),
        ("[factors.cpus]\nlevels = [1, 0]", "exact-parallel", "whole numbers of CPUs from 1 to 256"),
        (
            "topology = { cores = 1 }\n[factors.cpus]\nlevels = [1, 2]",
            "exact-parallel",
            "a fixed number of them",
        ),
        ("quantum = 500", "exact", '"quantum" means nothing on the machine exact'),
        ("quantum = 500", "kvm", '"quantum" means nothing on the machine kvm'),
    ],
)
def test_what_cannot_be_is_named_with_what_can(tmp_path: Path, keys: str, kind: str, said: str) -> None:
    with pytest.raises(StudyMistake) as raised:
        read(tmp_path, keys, kind)
    assert said in str(raised.value)


def test_run_delays_are_asked_for_as_a_monitor(tmp_path: Path) -> None:
    study = read(tmp_path, 'monitors = ["run-delay"]')
    assert study.machine.monitors == ("run-delay",)
    (tmp_path / "again.toml").write_text(study_toml(study))
    assert load(tmp_path / "again.toml", MACHINES).machine == study.machine


@pytest.mark.parametrize(
    ("keys", "kind", "said"),
    [
        ('monitors = ["off-cpu"]', "exact-parallel", "run-delay"),
        ('monitors = ["run-delay", "run-delay"]', "exact-parallel", "run-delay is here twice"),
        ('monitors = ["run-delay"]', "exact", '"monitors" means nothing on the machine exact'),
    ],
)
def test_other_monitors_are_refused(tmp_path: Path, keys: str, kind: str, said: str) -> None:
    with pytest.raises(StudyMistake, match=said):
        read(tmp_path, keys, kind)


def test_a_topology_beside_a_factor_of_cpus_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(StudyMistake) as raised:
        read(
            tmp_path,
            "topology = { sockets = 2, cores = 2 }\n[factors.cpus]\nlevels = [1, 2]",
            "exact-parallel",
        )
    assert "a fixed number of them" in str(raised.value)
    assert "are 4 CPUs" not in str(raised.value)
