"""Modelled cycles of real kernels: the same in two runs, harmless to the guest, costs where they belong."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.guests import boot_of, busy_cores, newest_for_each_change, work

from ktrial.experiment.profile import KernelSymbols
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine, InstrumentedTarget
from ktrial.model.machine import ModelCounts
from ktrial.model.profile import RegionCounts
from ktrial.studyfile.machine_model_files import machine_model

pytestmark = pytest.mark.guest

KERNELS = newest_for_each_change("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2")
COPIES = 21
STEPS = (
    work("syscall", "--operations", "501"),
    work("copy-4096", "--operations", str(COPIES)),
    work("fork", "--operations", "5"),
)


@dataclass(frozen=True)
class Counted:
    """The same steps without a model, and twice with one, the second time beside four busy loops."""

    plain: tuple[RegionCounts, ...]
    once: tuple[RegionCounts, ...]
    again: tuple[RegionCounts, ...]


def regions(target: InstrumentedTarget, symbols: str) -> tuple[RegionCounts, ...]:
    totals = [result.region for result in target.counted(STEPS, symbols)]
    assert None not in totals
    return tuple(region for region in totals if region)


@pytest.fixture(scope="module", params=KERNELS)
def counted(request: pytest.FixtureRequest, snapshots: Path) -> Iterator[Counted]:
    boot = boot_of(kernel_registry.add(request.param))
    modelled = boot.model_copy(update={"model": machine_model("desktop", Path())})
    machine = ExactMachine(cache=snapshots)
    with machine.instrumented(boot) as plain, machine.instrumented(modelled) as model:
        symbols = KernelSymbols().of(plain, boot).text
        bare, once = regions(plain, symbols), regions(model, symbols)
        with busy_cores(4):
            again = regions(model, symbols)
        yield Counted(bare, once, again)


def sums(region: RegionCounts) -> ModelCounts:
    """Over all functions and pages."""
    of_functions = [each.modelled for each in region.functions]
    of_pages = [each.modelled for each in region.pages]
    rows = [counts.model_dump() for counts in (*of_functions, *of_pages) if counts]
    return ModelCounts(**{name: sum(row[name] for row in rows) for name in rows[0]})


@pytest.mark.nightly
def test_two_runs_say_the_same_to_the_last_digit_whatever_the_load(counted: Counted) -> None:
    assert counted.once == counted.again
    assert all(region.cycles for region in counted.once)


@pytest.mark.nightly
def test_the_instructions_are_those_without_a_model(counted: Counted) -> None:
    bare = {"modelled": None}
    for plain, modelled in zip(counted.plain, counted.once, strict=True):
        assert plain.instructions == modelled.instructions
        assert plain.operations.vector == modelled.operations.vector
        functions = [each.model_copy(update=bare) for each in modelled.functions]
        assert functions == list(plain.functions)


def test_the_rows_and_the_instructions_sum_to_the_whole(counted: Counted) -> None:
    cycles = (machine_model("desktop", Path()) or pytest.fail("there is no machine")).cycles
    for region in counted.once:
        base = region.instructions * cycles.instruction + region.strings.bytes / cycles.string_bytes
        # The plugin rounds the bytes to a thousandth of a cycle, in each of the regions that were made one.
        assert region.cycles == pytest.approx(base + sums(region).cycles, abs=0.5)


def test_a_system_call_costs_its_way_in_and_back(counted: Counted) -> None:
    region = counted.once[0]
    assert region.operations.cycles is not None
    entry = next(each for each in region.functions if each.symbol == "entry_SYSCALL_64")
    assert region.operations.cycles > 75 + 75 + region.operations.median * 0.25
    assert sums(region).last_misses < region.operations.count / 10
    assert entry.entered >= region.operations.count


def test_a_copy_misses_the_first_level_by_its_lines(counted: Counted) -> None:
    """Of 4 KiB that are written and read back, through a page of the page cache or of a pipe."""
    lines = sums(counted.once[1]).data_misses / counted.once[1].operations.count
    assert 64 <= lines <= 64 * 4


def test_fork_walks_page_tables_and_mispredicts(counted: Counted) -> None:
    region = counted.once[2]
    assert sums(region).walks >= region.operations.count
    assert sums(region).mispredictions > 100 * region.operations.count
