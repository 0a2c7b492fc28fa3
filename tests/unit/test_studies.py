"""Every study that ktrial brings can be run as it is, with the workloads and providers that there are."""

from pathlib import Path

import pytest

from ktrial.cli.known import known
from ktrial.runner.planning import plan
from ktrial.runner.study_file import load
from ktrial.workloads import DEFAULT

STUDIES = Path(__file__).resolve().parents[2] / "studies"
FILES = sorted(STUDIES.glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_study_that_ktrial_brings_has_no_mistake(file: Path) -> None:
    study = load(file, known())
    assert study.name == file.stem
    assert study.question.endswith("?")
    assert len(plan(study).treatments) > 1


def test_the_quick_study_is_two_kernels_and_six_workloads() -> None:
    study = load(STUDIES / "quick.toml", known())
    assert [factor.levels for factor in study.factors] == [("debian:6.1", "debian:6.12")]
    assert len(study.workloads) == 6
    assert study.workloads[-1].name == "nqueens", "the null control"


def test_the_kernel_versions_study_runs_every_built_in_workload() -> None:
    study = load(STUDIES / "kernel-versions.toml", known())
    assert {use.name for use in study.workloads} == set(DEFAULT)
    assert len(study.factors[0].levels) == 5


def test_init_on_alloc_is_a_boot_parameter_of_one_kernel() -> None:
    study = load(STUDIES / "init-on-alloc.toml", known())
    [factor] = study.factors
    assert (factor.kind.value, factor.target, factor.levels) == ("boot", "init_on_alloc", (0, 1))
    assert study.machine.kernel == "debian:6.12"
