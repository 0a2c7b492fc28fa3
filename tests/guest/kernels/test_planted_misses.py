"""Causes that only time sees: modelled cycles name the planted function first, instructions another one."""

import shutil
from pathlib import Path

import pytest
from tests.support.guests import Headers, headers, versions
from tests.support.places import SUPPORT

from ktrial.analysis.attribution.costs import CostKind, cost_rows
from ktrial.analysis.attribution.decomposition import explain
from ktrial.experiment.profile import profile
from ktrial.kernels import kernel_registry
from ktrial.model.kernel import Kernel
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse
from ktrial.studyfile.machine_model_files import machine_model

pytestmark = [pytest.mark.guest, pytest.mark.nightly]  # fetches headers, builds modules, boots four times

MODULE = "ktrial_planted_misses"
PIPE = WorkloadUse(name="pipe")
LINES, ROUNDS, COINS = 32, 2, 200
KINDS = {"thrash a set": 1, "invalidate pages": 2, "mispredict": 3}
MISSES = {
    "thrash a set": (CostKind.DATA_MISSES, LINES * ROUNDS),
    "mispredict": (CostKind.MISPREDICTIONS, COINS / 2),
}


@pytest.fixture(scope="module", params=versions("debian:5.10", "debian:6.1"))
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return kernel_registry.add(request.param)


@pytest.fixture(scope="module")
def built_against(kernel: Kernel, request: pytest.FixtureRequest) -> Headers:
    assert request.config.cache, "pytest's own cache keeps the headers"
    return headers(kernel, request.config.cache.mkdir("kernel-headers"))


def counted(name: str, *modules: str) -> Profile:
    model = machine_model("desktop", Path())
    return profile(MachineSettings(kernel=name, modules=modules, model=model), PIPE)


@pytest.fixture(scope="module")
def before(kernel: Kernel) -> Profile:
    return counted(kernel.name)


@pytest.mark.parametrize("kind", KINDS)
def test_cycles_name_the_function_that_misses(
    kind: str,
    kernel: Kernel,
    before: Profile,
    built_against: Headers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Path(shutil.copy(SUPPORT / f"{MODULE}.c", tmp_path))
    place = tmp_path / "lib" / "modules" / kernel.release
    place.mkdir(parents=True)
    shutil.copy(built_against.build(source, PLANTED_KIND=KINDS[kind], PLANTED_AT="vfs_write"), place)
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    name = kernel_registry.add(f"path:{kernel.image}", modules=tmp_path / "lib").name

    explanation = explain(before, counted(name, MODULE))
    assert explanation.rows[0].function == "planted_work"
    rows = cost_rows(explanation, CostKind.CYCLES)
    assert rows[0].name == f"planted_misses [{MODULE}]", rows[:3]
    if kind in MISSES:
        by, expected = MISSES[kind]
        row = cost_rows(explanation, by)[0]
        assert row.name == rows[0].name
        assert row.difference == pytest.approx(expected, rel=0.1)
