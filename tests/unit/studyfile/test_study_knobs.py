"""Factors of a study that are knobs: recognised by name, written where each kernel keeps them."""

from pathlib import Path

import pytest
from tests.support.command_line import KNOWN

from ktrial.experiment.settings import settings_of
from ktrial.model.design import FactorKind, Treatment
from ktrial.studyfile import load

STUDY = """\
workloads = ["fork"]
[machine]
kernel = "debian:6.1"
[factors."{name}"]
levels = [1, 2]
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("base_slice_ns", FactorKind.SETTING),
        ("swappiness", FactorKind.SETTING),
        ("queue/read_ahead_kb@vda", FactorKind.SETTING),
        ("transparent_hugepage/enabled", FactorKind.SETTING),
        ("init_on_alloc", FactorKind.BOOT),
        ("mitigations", FactorKind.BOOT),
    ],
)
def test_a_knob_needs_no_kind(tmp_path: Path, name: str, kind: FactorKind) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(name=name))
    (factor,) = load(tmp_path / "study.toml", KNOWN).factors
    assert (factor.kind, factor.target) == (kind, name)


def test_one_study_writes_to_the_place_that_each_kernel_has(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(name="sched_migration_cost_ns"))
    factors = load(tmp_path / "study.toml", KNOWN).factors
    treatment = Treatment(levels={"sched_migration_cost_ns": 2})
    places = [settings_of(factors, treatment, release)[0].step.path for release in ("5.10.0-46", "6.12.1")]
    assert places == [
        "/proc/sys/kernel/sched_migration_cost_ns",
        "/sys/kernel/debug/sched/migration_cost_ns",
    ]
