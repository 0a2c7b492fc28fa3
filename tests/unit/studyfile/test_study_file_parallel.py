"""Studies on several CPUs in simulated time: what `[machine]` may say there."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN

from ktrial.model.study import Study
from ktrial.studyfile import load
from ktrial.studyfile.errors import StudyMistake
from ktrial.studyfile.writer import study_toml

MACHINES = replace(KNOWN, machines=("exact", "exact-parallel", "kvm"))
KERNELS = '[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]\n'


def read(tmp_path: Path, keys: str, kind: str = "exact-parallel") -> Study:
    path = tmp_path / "study.toml"
    path.write_text(f'workloads = ["syscall"]\n[machine]\nkind = "{kind}"\n{keys}\n{KERNELS}')
    return load(path, MACHINES)


def test_cpus_and_quantum_are_read_and_written(tmp_path: Path) -> None:
    study = read(tmp_path, "cpus = 64\nquantum = 500")
    assert (study.machine.cpus, study.machine.quantum_ns, study.timing) == (64, 500, None)
    assert "quantum = 500" in study_toml(study)
    assert read(tmp_path, "").machine.quantum_ns == 1000


@pytest.mark.parametrize(
    ("keys", "kind", "said"),
    [
        ("cpus = 65", "exact-parallel", "at most 64 CPUs"),
        ("quantum = 99", "exact-parallel", "found 99; allowed: nanoseconds of guest time from 100 to 100000"),
        ('count = "clock"', "exact-parallel", '"count" means nothing on the machine exact-parallel'),
        ("quantum = 500", "exact", '"quantum" means nothing on the machine exact'),
        ("quantum = 500", "kvm", '"quantum" means nothing on the machine kvm'),
    ],
)
def test_what_cannot_be_is_named_with_what_can(tmp_path: Path, keys: str, kind: str, said: str) -> None:
    with pytest.raises(StudyMistake) as raised:
        read(tmp_path, keys, kind)
    assert said in str(raised.value)
