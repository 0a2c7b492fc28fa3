"""What a bisection asks of Kconfig, asked of the real one: Linux's own source; nothing is compiled.

Kernels are stood in for by their final configurations; what they cost is planted.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.scripted import ScriptedMachine, a_kernel, scripted_resources

from ktrial.bisect.bisection import ExactBisection
from ktrial.bisect.builds import OFF, ConfigGround, config_ground
from ktrial.bisect.decision import Terms
from ktrial.experiment.resources import Builder
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.build.builds import configured, menu_of
from ktrial.kernels.build.requests import requested
from ktrial.model.base import digest
from ktrial.model.bisection import BisectResult
from ktrial.model.kernel import Build, Kernel
from ktrial.model.machine import Boot
from ktrial.model.study import Measurement
from ktrial.model.workload import WorkloadUse
from ktrial.store.store import open_store
from ktrial.target import Run, StepResult

# The real Kconfig files of Linux 6.1: 100 s of CPU, and 130 MB of source. tests/unit has small ones.
pytestmark = [pytest.mark.guest, pytest.mark.nightly]

DEBIAN = "debian:linux-source-6.1"
CHARACTER_SETS = ("NLS", "NLS_ASCII", "NLS_UTF8", *(f"NLS_ISO8859_{at}" for at in (1, 2, 3, 4, 5, 6, 7, 9)))
DEPENDENT = ("MISC_FILESYSTEMS", "ROMFS_FS", "QNX4FS_FS", "CRC8", "LIBCRC32C", "XZ_DEC")


@dataclass
class Configured:
    """Kernels that are their configurations."""

    cost: Callable[[Mapping[str, str]], float]
    configs: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def build(self, wanted: Build, progress: Progress) -> Kernel:
        final = configured(wanted, progress)
        key = digest(dict(final))
        self.configs[f"build:{key[:12]}"] = final
        return a_kernel(f"build:{key[:12]}", release="6.1.0", digest=key)

    def answer(self, boot: Boot, _run: Run) -> StepResult:
        return StepResult(step=0, do="run", exit=0, stdout=str(self.cost(self.configs[boot.kernel.name])))


def _bisected(
    directory: Path, before: list[str], after: list[str], cost: Callable[[Mapping[str, str]], float]
) -> tuple[BisectResult, ConfigGround, Configured]:
    kernels = Configured(cost)
    builder = Builder(build=kernels.build, configured=configured, cached=lambda _: None, menus=menu_of)
    ends = [requested(DEBIAN, options=options, directory=directory) for options in (before, after)]
    ground = config_ground(ends[0], ends[1], ("A", "B"), builder)
    terms = Terms("config", "A", "B", Measurement((WorkloadUse(name="fork"),), perturbations=1))
    with open_store(str(directory / "ktrial.db")) as store:
        runs = Runs(store, machine=ScriptedMachine(kernels.answer), resources=scripted_resources())
        return ExactBisection(ground, terms, runs).run(), ground, kernels


def test_every_candidate_is_a_configuration_that_kconfig_leaves_as_it_is(tmp_path: Path) -> None:
    after = [f"{name}=y" for name in (*CHARACTER_SETS, *DEPENDENT, "SLUB_DEBUG_ON")]

    def cost(config: Mapping[str, str]) -> float:
        return 1300 if config.get("CONFIG_SLUB_DEBUG_ON") == "y" else 1000

    result, ground, kernels = _bisected(tmp_path, [], after, cost)
    (cause,) = result.causes
    assert [item.name for member in cause.members for item in member.items] == ["SLUB_DEBUG_ON"]
    assert not result.unresolved
    assert len(kernels.configs) <= 2 * math.log2(result.groups) + 6
    for half in range(1, result.groups, 6):
        final = configured(ground.build_of(frozenset(range(half))))
        for at, group in enumerate(ground.grouped.groups):
            wanted = ground.new if at < half else ground.old
            values = {name: (final.get(name, OFF), wanted.get(name, OFF)) for name in group}
            assert {name: pair for name, pair in values.items() if pair[0] != pair[1]} == {}


def test_a_choice_and_what_depends_on_it_go_together(tmp_path: Path) -> None:
    def cost(config: Mapping[str, str]) -> float:
        return 900 if config.get("CONFIG_SLAB") == "y" else 1000

    result, ground, _ = _bisected(tmp_path, [], ["SLAB=y", "CRC8=y"], cost)
    (cause,) = result.causes
    names = {item.name for member in cause.members for item in member.items}
    assert {"SLAB", "SLUB"} <= names
    assert not result.unresolved
    assert "CONFIG_CRC8" in ground.grouped.options


def test_two_options_that_kconfig_does_not_connect_are_found_as_a_pair(tmp_path: Path) -> None:
    """A command line that is built in, and what reads it: what a kernel with slub_debug= does."""

    def cost(config: Mapping[str, str]) -> float:
        both = config.get("CONFIG_SLUB_DEBUG") == "y" and "slub_debug" in config.get("CONFIG_CMDLINE", "")
        return 1300 if both else 1000

    before = ["SLUB_DEBUG=n"]
    after = [
        "SLUB_DEBUG=y",
        "CMDLINE_BOOL=y",
        "CMDLINE=slub_debug=FZP",
        *(f"{name}=y" for name in CHARACTER_SETS),
    ]
    result, _, _ = _bisected(tmp_path, before, after, cost)
    (cause,) = result.causes
    assert {item.name for member in cause.members for item in member.items} == {"SLUB_DEBUG", "CMDLINE"}
    assert [item.name for item in cause.needed] == ["CMDLINE_BOOL"]
    assert all(max(member.alone.values()) == 0 for member in cause.members)
