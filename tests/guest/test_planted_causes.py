"""Causes that were planted are found: the first row of the table is the planted one."""

import shutil
from pathlib import Path

import pytest
from tests.guest.module_building import Headers, headers

from ktrial import kernels
from ktrial.model.kernel import Kernel
from ktrial.model.kernel_profile import Profile
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse
from ktrial.runner.profile import profile
from ktrial.stats.explain import explain

pytestmark = pytest.mark.guest

MODULE = "ktrial_planted"
LOOPS = 1000
PER_LOOP = 2
"""Instructions."""
AROUND_IT = 20
"""At most so many instructions of the handler are not in the loop."""


def counted(kernel: str, workload: str, *boot: str, modules: tuple[str, ...] = ()) -> Profile:
    settings = MachineSettings(kernel=kernel, boot=boot, modules=modules)
    return profile(settings, WorkloadUse(name=workload))


@pytest.fixture(scope="module", params=["debian:5.10", "debian:6.1"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return kernels.add(request.param)


@pytest.fixture(scope="module")
def built_against(kernel: Kernel, request: pytest.FixtureRequest) -> Headers:
    assert request.config.cache, "pytest's own cache keeps the headers"
    return headers(kernel, request.config.cache.mkdir("kernel-headers"))


@pytest.mark.parametrize(("workload", "function"), [("fork", "kernel_clone"), ("pipe", "vfs_write")])
def test_a_module_that_hooks_a_function_is_found(
    kernel: Kernel,
    built_against: Headers,
    workload: str,
    function: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Path(shutil.copy(Path(__file__).with_name(f"{MODULE}.c"), tmp_path))
    place = tmp_path / "lib" / "modules" / kernel.release
    place.mkdir(parents=True)
    shutil.copy(built_against.build(source, PLANTED_LOOPS=LOOPS, PLANTED_AT=function), place)
    # The user's way to a module of his own: the kernel, added together with it.
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    name = kernels.add(f"path:{kernel.image}", modules=tmp_path / "lib").name

    before, after = counted(name, workload), counted(name, workload, modules=(MODULE,))
    explanation = explain(before, after)
    planted = explanation.rows[0]
    assert (planted.function, planted.module) == ("planted_cost", MODULE)
    assert explanation.unexplained == 0
    calls = planted.after.entered / after.operations
    assert calls == pytest.approx(1, abs=0.01)
    cost = float(explanation.difference(planted)) / calls
    assert PER_LOOP * LOOPS < cost <= PER_LOOP * LOOPS + AROUND_IT
