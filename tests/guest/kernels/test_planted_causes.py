"""Causes that were planted are found: the first row of the table is the planted one."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from tests.support.module_building import Headers, headers
from tests.support.places import SUPPORT

from ktrial import kernels
from ktrial.analysis.attribution.decomposition import explain
from ktrial.experiment.profile import profile
from ktrial.model.kernel import Kernel
from ktrial.model.kernel_profile import Profile
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse

pytestmark = pytest.mark.guest

MODULE = "ktrial_planted"
LOOPS = 1000
PER_LOOP = 2
"""Instructions."""
AROUND_IT = 20
"""At most so many instructions of the handler are not in the loop."""

SAME_MEDIAN, SAME_MEAN = 1e-3, 5e-3
"""A parameter without effect makes the command line longer: all lies elsewhere, and the kernel's own work in
the background falls into other operations. Medians hardly move by that, means a little.
"""


@dataclass(frozen=True)
class Planted:
    """A boot parameter, and the functions that do what it asks for."""

    parameter: str
    instead_of: str
    workload: str
    functions: frozenset[str]
    given: Mapping[str, int | str] = field(default_factory=dict)
    """The workload's parameters."""

    def __str__(self) -> str:
        return f"{self.parameter}-{self.workload}"


PLANTED = (
    # kernel/auditsc.c: what the first function that is met on the way into a system call writes down.
    Planted("audit=1", "", "syscall", frozenset({"__audit_syscall_entry"})),
    # mm/memcontrol.c: each page is charged to the program's control group, and counted there.
    Planted("cgroup_disable=memory", "", "mmap", frozenset({"__mod_memcg_lruvec_state"})),
    # mm/page_alloc.c: a page of the page cache is written wholly, and cleared before that all the same.
    Planted(
        "init_on_alloc=1",
        "init_on_alloc=0",
        "aio-stress",
        frozenset({"clear_page_erms", "clear_page_rep"}),
        {"size": 4, "stage": "write"},
    ),
    # kernel/sched/psi.c
    Planted("psi=1", "psi=0", "context-switch", frozenset({"psi_group_change"})),
    # arch/x86/entry: another page table on the way in, and again on the way out.
    Planted("pti=on", "pti=off", "syscall", frozenset({"entry_SYSCALL_64", "syscall_return_via_sysret"})),
    # security/selinux/hooks.c: asked for each directory on the way to the file.
    Planted("security=selinux", "", "open", frozenset({"selinux_inode_permission"})),
    # mm/slub.c: is an object that is freed among those that are free already?
    Planted("slub_debug=FZ", "", "fork", frozenset({"on_freelist"})),
    # arch/x86/lib/retpoline.S: calls through pointers go through it.
    Planted("spectre_v2=retpoline", "spectre_v2=off", "pipe", frozenset({"__x86_indirect_thunk_rax"})),
)
KERNELS = ("debian:6.1", "debian:6.12")

WITHOUT_EFFECT = {
    "debug_pagealloc=on": "CONFIG_DEBUG_PAGEALLOC",
    "page_owner=on": "CONFIG_PAGE_OWNER",
    "page_poison=1": "CONFIG_PAGE_POISONING",
}
"""Parameters that do nothing here, and the option without which Debian builds."""


@cache
def counted(
    kernel: str, workload: str, boot: str = "", given: frozenset[tuple[str, int | str]] = frozenset()
) -> Profile:
    settings = MachineSettings(kernel=kernel, boot=tuple(boot.split()))
    return profile(settings, WorkloadUse(name=workload, parameters=dict(given)))


@pytest.mark.parametrize("planted", PLANTED, ids=str)
@pytest.mark.parametrize("kernel_name", KERNELS)
def test_what_a_boot_parameter_does_is_found(kernel_name: str, planted: Planted) -> None:
    given = frozenset(planted.given.items())
    before = counted(kernel_name, planted.workload, planted.instead_of, given)
    after = counted(kernel_name, planted.workload, planted.parameter, given)
    explanation = explain(before, after)
    assert explanation.rows[0].function in planted.functions
    assert explanation.unexplained == 0


@pytest.mark.parametrize("parameter", WITHOUT_EFFECT)
@pytest.mark.parametrize("kernel_name", KERNELS)
def test_a_parameter_that_does_nothing_explains_nothing(kernel_name: str, parameter: str) -> None:
    """`mmap` allocates and frees pages."""
    option = WITHOUT_EFFECT[parameter]
    assert kernels.config_value(kernels.add(kernel_name), option) in (None, "n"), "it has an effect by now"
    explanation = explain(counted(kernel_name, "mmap"), counted(kernel_name, "mmap", parameter))
    largest = max(abs(explanation.difference(row)) for row in explanation.rows)
    assert explanation.after.median == pytest.approx(explanation.before.median, rel=SAME_MEDIAN)
    assert abs(explanation.total) < SAME_MEAN * explanation.before.mean
    assert largest < SAME_MEAN * explanation.before.mean


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
    source = Path(shutil.copy(SUPPORT / f"{MODULE}.c", tmp_path))
    place = tmp_path / "lib" / "modules" / kernel.release
    place.mkdir(parents=True)
    shutil.copy(built_against.build(source, PLANTED_LOOPS=LOOPS, PLANTED_AT=function), place)
    # The user's way to a module of his own: the kernel, added together with it.
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    name = kernels.add(f"path:{kernel.image}", modules=tmp_path / "lib").name

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
