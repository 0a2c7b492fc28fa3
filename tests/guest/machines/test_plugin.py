"""The QEMU plugin on real kernels: exact, harmless to the guest, and right about who did what."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests import boot_of, newest_for_each_change, work

from ktrial.experiment.profile import KernelSymbols
from ktrial.kernels import kernel_registry
from ktrial.machines import guest_programs
from ktrial.machines.exact import ExactMachine, InstrumentedTarget
from ktrial.machines.qemu import plugin, program
from ktrial.machines.qemu.plugin import CacheShapes, NoPlugin, PluginBuild
from ktrial.machines.qemu.plugin_counts import by_program
from ktrial.machines.qemu.process import memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.model.profile import FunctionCount, RegionCounts
from ktrial.target import StepResult

pytestmark = pytest.mark.guest

KERNELS = newest_for_each_change("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2")
CLOSE = 1e-4
"""How far the sum may be from the guest's own clock, relatively."""
ENDS = 40
"""Instructions of a pass that only one of the two sees: marks, the clock's own reading."""

STEPS = (
    work("syscall", "--operations", "301", "--vector"),
    work("fork", "--operations", "7", "--vector"),
    work("mmap", "--operations", "21", "--vector"),
    work("copy-4096", "--operations", "5", "--vector"),
    work("context-switch", "--operations", "41", "--vector"),
)


LAST_LINE = '{"end":true}\n'
"""Written as QEMU ends by itself; a guest that has said all is not waited for."""


@dataclass(frozen=True)
class Bench:
    """One kernel, with or without the plugin."""

    target: InstrumentedTarget
    symbols: Path
    place: Path

    def plain(self) -> tuple[StepResult, ...]:
        """What the guest reports by itself."""
        return self.target.perform(STEPS)

    def counted(self, caches: CacheShapes | None = None) -> tuple[tuple[StepResult, ...], Path]:
        """What the guest reports, and what the plugin wrote."""
        out = self.place / f"counts{len(list(self.place.iterdir()))}"
        # QEMU writes no file that has a name.
        with memory_file("counts") as file, self.symbols.open("rb") as symbols:
            into = self.target.counted_into
            results = into(file, STEPS, symbols.fileno(), calls=True, caches=caches)
            out.write_bytes(os.pread(file, os.fstat(file).st_size, 0))
        return results, out


@pytest.fixture(scope="module")
def installed() -> Qemu:
    return program.find()


@pytest.fixture(scope="module")
def build(installed: Qemu) -> PluginBuild:
    path = plugin.find(installed.version)
    assert isinstance(path, PluginBuild), path
    return path


@pytest.fixture(scope="module", params=KERNELS)
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, snapshots: Path
) -> Iterator[Bench]:
    place = tmp_path_factory.mktemp("counts")
    machine = ExactMachine(cache=snapshots)
    boot = boot_of(kernel_registry.add(request.param))
    with machine.instrumented(boot) as target:
        symbols = place / "kallsyms"
        symbols.write_text(KernelSymbols().of(target, boot).text)
        yield Bench(target, symbols, place)


@pytest.fixture(scope="module")
def plain(bench: Bench) -> tuple[StepResult, ...]:
    return bench.plain()


@pytest.fixture(scope="module")
def profile(bench: Bench, plain: tuple[StepResult, ...]) -> dict[str, RegionCounts]:
    results, out = bench.counted()
    assert results == plain, "the guest's own numbers change under the plugin"
    runs = plugin.read_runs(out)
    assert [run and run.operations.count for run in runs] == operations_of(results)
    return {report_of(result)["workload"]: run for result, run in zip(results, runs, strict=True) if run}


def report_of(result: StepResult) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def operations_of(results: tuple[StepResult, ...]) -> list[int]:
    return [report_of(result)["metrics"][0]["operations"] for result in results]


def named(run: RegionCounts, *names: str) -> FunctionCount:
    (one,) = (each for each in run.functions if each.symbol in names)
    return one


def test_two_runs_write_the_same_bytes(bench: Bench) -> None:
    first, second = (bench.counted()[1].read_text().removesuffix(LAST_LINE) for _ in range(2))
    assert first == second


@pytest.mark.nightly
def test_the_functions_sum_to_the_whole(profile: dict[str, RegionCounts]) -> None:
    for run in profile.values():
        assert run.whole
        assert run.kernel + run.program == run.instructions


def test_the_whole_is_what_the_guest_s_clock_says(
    profile: dict[str, RegionCounts], plain: tuple[StepResult, ...]
) -> None:
    for report in map(report_of, plain):
        (metric,) = report["metrics"]
        timed = sum(time * report["bundle"] + report["overhead"] for time in metric["vector"])
        run = profile[report["workload"]]
        passes = run.operations.count if report["workload"] == "fork" else 3
        assert run.clock == pytest.approx(timed, rel=CLOSE, abs=ENDS * passes), report["workload"]


def test_each_operation_is_counted(profile: dict[str, RegionCounts], plain: tuple[StepResult, ...]) -> None:
    for report in map(report_of, plain):
        run = profile[report["workload"]]
        assert run.operations.vector is not None
        assert len(run.operations.vector) == report["metrics"][0]["operations"]
        assert run.operations.total == pytest.approx(run.instructions, rel=0.01)


def test_string_instructions_count_once_and_their_bytes_apart(profile: dict[str, RegionCounts]) -> None:
    copy = profile["copy-4096"]
    # 4096 bytes are read and written: two copies per operation, of which some kernels make the ends by hand.
    copied = copy.strings.bytes / copy.operations.count
    assert copied == pytest.approx(2 * 4096, rel=0.1)
    assert copy.strings.passes > 100 * copy.strings.instructions
    assert copy.operations.median < 5000


def test_functions_are_entered_as_often_as_they_are_called(
    profile: dict[str, RegionCounts], plain: tuple[StepResult, ...]
) -> None:
    done = {
        report["workload"]: report["metrics"][0]["operations"] * report["bundle"]
        for report in map(report_of, plain)
    }
    assert named(profile["fork"], "kernel_clone", "_do_fork").entered == done["fork"]
    assert named(profile["fork"], "do_exit").entered == done["fork"]
    faults = named(profile["mmap"], "asm_exc_page_fault").entered
    assert faults == pytest.approx(16 * done["mmap"], abs=3)


def test_calls_account_for_everything(profile: dict[str, RegionCounts]) -> None:
    for name, run in profile.items():
        assert run.nodes is not None
        assert sum(node.instructions for node in run.nodes) == run.instructions
        own = [0] * len(run.functions)
        for node in run.nodes[2:]:
            own[node.function] += node.instructions
        assert own == [each.instructions for each in run.functions], name
        assert run.unmatched < 10, name


def test_inclusive_counts_nest(profile: dict[str, RegionCounts]) -> None:
    fork = profile["fork"]
    entry = named(fork, "entry_SYSCALL_64").inclusive or 0
    clone = named(fork, "kernel_clone").inclusive or 0
    copy = named(fork, "copy_process").inclusive or 0
    assert entry > clone > copy > 0.3 * entry
    assert all((each.inclusive or 0) <= fork.instructions for each in fork.functions)


def test_the_child_is_a_task_of_its_own(profile: dict[str, RegionCounts]) -> None:
    busy = [task for task in profile["context-switch"].tasks if task.program > 1000]
    assert len(busy) == 2


def test_the_program_is_found_by_its_pages(profile: dict[str, RegionCounts]) -> None:
    files = guest_programs.programs(guest_programs.directory())
    (work_count, *others) = by_program(profile["syscall"].pages, files)
    assert work_count.program == guest_programs.WORK_IN_GUEST
    assert sum(each.instructions for each in others) <= 0.01 * work_count.instructions


@pytest.mark.nightly
def test_caches_see_what_string_instructions_touch(bench: Bench, plain: tuple[StepResult, ...]) -> None:
    results, out = bench.counted(CacheShapes())
    assert results == plain
    assert bench.counted(CacheShapes())[1].read_bytes() == out.read_bytes()
    copy = plugin.read_runs(out)[3]
    assert copy
    caches = [each.caches for each in copy.functions if each.caches]
    # The file is larger than the first level: its lines, read and written, miss there.
    lines = 2 * 4096 / 64 * copy.operations.count
    assert sum(each.data_misses for each in caches) > 0.9 * lines
    assert sum(each.last_misses for each in caches) < sum(each.data_misses for each in caches)


def test_it_loads(installed: Qemu, build: PluginBuild) -> None:
    assert plugin.check(installed, build) is None


def test_a_build_for_another_version_is_refused(installed: Qemu, build: PluginBuild) -> None:
    others = [path for path in guest_programs.directory().glob("insn-v*.so") if path != build.path]
    newest = max(others) if build.api < 4 else min(others)
    refusal = plugin.check(installed, replace(build, path=newest))
    assert isinstance(refusal, NoPlugin)
    assert "does not load the plugin" in refusal.reason
