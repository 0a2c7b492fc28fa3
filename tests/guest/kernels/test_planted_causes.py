"""Causes that were planted are found: the first row of the table is the planted one."""

import shutil
from functools import partial
from pathlib import Path

import pytest
from tests.support.guests import (
    EACH_CHANGE,
    OPTIONS,
    PLANTED,
    SAME_MEAN,
    SAME_MEDIAN,
    WITHOUT_EFFECT,
    Headers,
    Planted,
    headers,
    versions,
)
from tests.support.places import SUPPORT

from ktrial.analysis.attribution.decomposition import explain
from ktrial.experiment.profile import profile
from ktrial.kernels import kernel_registry
from ktrial.kernels.config import config_of
from ktrial.model.kernel import Kernel
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse

pytestmark = pytest.mark.guest

MODULE = "ktrial_planted"
LOOPS = 1000
PER_LOOP = 2
"""Instructions."""
AROUND_IT = 20
"""At most so many instructions of the handler are not in the loop."""


def counted(kernel: str, use: WorkloadUse, *boot: str) -> Profile:
    return profile(MachineSettings(kernel=kernel, boot=boot), use)


@pytest.mark.nightly  # for each change tests/recorded has their profiles
@pytest.mark.parametrize("planted", PLANTED, ids=str)
@pytest.mark.parametrize("kernel_name", EACH_CHANGE)
def test_what_a_boot_parameter_does_is_found(kernel_name: str, planted: Planted) -> None:
    explanation = explain(*planted.profiles(partial(counted, kernel_name)))
    assert explanation.rows[0].function in planted.functions
    assert explanation.unexplained == 0


@pytest.mark.nightly
@pytest.mark.parametrize("planted", WITHOUT_EFFECT, ids=str)
@pytest.mark.parametrize("kernel_name", EACH_CHANGE)
def test_a_parameter_that_does_nothing_explains_nothing(kernel_name: str, planted: Planted) -> None:
    option = OPTIONS[planted.parameter]
    assert config_of(kernel_registry.add(kernel_name)).get(option) in (None, "n"), "it has an effect by now"
    explanation = explain(*planted.profiles(partial(counted, kernel_name)))
    largest = max(abs(explanation.difference(row)) for row in explanation.rows)
    assert explanation.after.median == pytest.approx(explanation.before.median, rel=SAME_MEDIAN)
    assert abs(explanation.total) < SAME_MEAN * explanation.before.mean
    assert largest < SAME_MEAN * explanation.before.mean


@pytest.fixture(scope="module", params=versions("debian:5.10", "debian:6.1"))
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return kernel_registry.add(request.param)


@pytest.fixture(scope="module")
def built_against(kernel: Kernel, request: pytest.FixtureRequest) -> Headers:
    assert request.config.cache, "pytest's own cache keeps the headers"
    return headers(kernel, request.config.cache.mkdir("kernel-headers"))


@pytest.mark.nightly  # fetches headers, builds a module, and boots twice
@pytest.mark.parametrize(("workload", "function"), [("fork", "kernel_clone"), ("pipe", "vfs_write")])
def test_a_module_that_hooks_a_function_is_found(
    kernel: Kernel,
    built_against: Headers,
    workload: str,
    function: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Path(shutil.copy(SUPPORT / f"{MODULE}.c", tmp_path))
    place = tmp_path / "lib" / "modules" / kernel.release
    place.mkdir(parents=True)
    shutil.copy(built_against.build(source, PLANTED_LOOPS=LOOPS, PLANTED_AT=function), place)
    # The user's way to a module of his own: the kernel, added together with it.
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    name = kernel_registry.add(f"path:{kernel.image}", modules=tmp_path / "lib").name

    settings, use = MachineSettings(kernel=name), WorkloadUse(name=workload)
    before = profile(settings, use)
    after = profile(settings.model_copy(update={"modules": (MODULE,)}), use)
    explanation = explain(before, after)
    planted = explanation.rows[0]
    assert (planted.function, planted.module) == ("planted_cost", MODULE)
    assert explanation.unexplained == 0
    calls = planted.after.entered / after.operations
    assert calls == pytest.approx(1, abs=0.01)
    cost = float(explanation.difference(planted)) / calls
    assert PER_LOOP * LOOPS < cost <= PER_LOOP * LOOPS + AROUND_IT
