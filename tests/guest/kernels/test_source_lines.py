"""Functions of Debian's 6.12 by source line: their lines sum to them, and are those that objdump names."""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from tests.support.disassembly import disassembled

from ktrial.analysis.attribution.question import question
from ktrial.experiment.explain import Guests, explain_question
from ktrial.experiment.profile import profile
from ktrial.experiment.source_lines import debug_files, difference_by_line, function_lines
from ktrial.kernels import kernel_registry, silent
from ktrial.kernels.debug_info import debug_file
from ktrial.kernels.source_lines import at, stretches
from ktrial.kernels.symbols import symbols_in
from ktrial.machines.exact import ExactMachine
from ktrial.model.design import Factor, FactorKind
from ktrial.model.profile import PROGRAM
from ktrial.model.source_lines import counts_of
from ktrial.model.study import MachineSettings, Study
from ktrial.model.workload import WorkloadUse

pytestmark = [pytest.mark.guest, pytest.mark.nightly]
KERNEL = "debian:6.12"
FUNCTIONS = 20
ROWS = 4
PADDING = 3
"""Instructions behind a function, at the most."""


def test_twenty_functions_by_source_line(snapshots: Path) -> None:
    """Their debugging information is 320 MB of Debian's, fetched once."""
    settings = MachineSettings(kernel=KERNEL)
    use = WorkloadUse(name="mmap", parameters={"operations": 101})
    machine = ExactMachine(cache=snapshots)
    counted = profile(settings, use, machine=machine).region.functions
    kernel = kernel_registry.add(KERNEL)
    information = debug_file(kernel, silent)
    code = [symbol for symbol in symbols_in(kernel).all if symbol.kind in "tT" and not symbol.module]
    start_of = {symbol.name: symbol.address for symbol in code}
    twins = {name for name, times in Counter(symbol.name for symbol in code).items() if times > 1}
    ranked = sorted(counted, key=lambda count: -count.instructions)
    whole = [count for count in ranked if not count.module and count.symbol not in twins and count.entered]
    by_line = partial(function_lines, settings, use, machine=machine)
    for count in whole[:FUNCTIONS]:
        lines = by_line(count.symbol)
        assert lines.instructions == sum(line.instructions for line in lines.lines) == count.instructions
        assert all(line.file for line in lines.lines), count.symbol
        start = start_of[count.symbol]
        end = min(symbol.address for symbol in code if symbol.address > start)
        code_of = stretches(information, start)
        every = disassembled(information, "", f"--start-address={start}", f"--stop-address={end}")
        places = [(each, place) for each in every if (place := at(code_of, each.address)).file]
        assert len(every) - len(places) <= PADDING, "what fills the gap to the next function has no line"
        for each, place in places:
            assert (Path(place.file).name, place.line) == (each.file, each.line), hex(each.address)
            assert (count.symbol, *place.inlined)[-1] == each.function, hex(each.address)


def test_rows_of_a_difference_open_into_lines_that_add_up_to_what_the_ranking_has(snapshots: Path) -> None:
    """Of the heaviest rows, whatever their match: renamed, merged, of one side only."""
    use = WorkloadUse(name="mmap", parameters={"operations": 101})
    kernels = ("debian:6.1:cloud", KERNEL)
    factor = Factor(name="kernel", kind=FactorKind.KERNEL, levels=kernels, baseline=kernels[0])
    study = Study(name="explain", machine=MachineSettings(), factors=(factor,), workloads=(use,))
    query = question(study)
    guests = Guests(machine=ExactMachine(cache=snapshots), values=False)
    information = debug_files(query, guests)
    attribution = explain_question(query, guests)
    rows = [row for row in attribution.explanation.rows if not row.module and row.function != PROGRAM]
    for row in rows[:ROWS]:
        opened = difference_by_line(query, attribution, row.function, information, guests)
        sides = opened.before, opened.after
        assert [side.instructions for side in sides] == [side.in_ranking for side in sides], row.function
        lines = zip(*map(counts_of, opened.lines), strict=True)
        assert [sum(counts) for counts in lines] == [side.instructions for side in sides], row.function
        assert opened.difference == attribution.explanation.difference(row), row.function
