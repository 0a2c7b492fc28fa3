"""What crates/parallel counts by function, as a region: summed, by CPU, with names."""

from dataclasses import replace

import pytest
from tests.support.crates import LINE, SPIN, counts, profile

from ktrial.analysis.guest_time import TimePart, by_cpu, differences, places, together
from ktrial.machines.exact_parallel import region_of
from ktrial.model.profile import PROGRAM


def test_cpus_are_summed_and_a_marked_run_has_its_operations() -> None:
    region = profile().region
    functions = {function.symbol: (function.instructions, function.entered) for function in region.functions}
    assert functions[SPIN] == (100, 1)
    assert region.instructions == region.kernel + region.program == 720 + 290
    assert (region.operations.count, region.operations.median, region.operations.minimum) == (4, 250, 200)
    assert region.marking.regions == 2


def test_a_run_that_marks_nothing_is_one_operation() -> None:
    region = region_of(counts(LINE | {"regions": 0, "operations": 0, "sum": 0}))
    assert region
    assert (region.operations.count, region.operations.total) == (1, 1010)
    assert region_of(counts({name: value for name, value in LINE.items() if name != "counted"})) is None


def test_each_cpus_parts_add_up_to_the_time_that_passed() -> None:
    first, second = by_cpu(profile())
    assert (first.work, first.waiting, first.idle) == (812 / 4, 0, 1188 / 4)
    assert (second.work, second.waiting) == (108 / 4, (80 + 500 + 10 + 50) / 4)
    assert first.whole == second.whole == 2000 / 4
    assert (first.switches, second.interrupts, second.switches) == (1, 0.5, 0)
    assert together((first, second)).whole == 1000


@pytest.mark.parametrize(
    ("part", "name", "nanoseconds"),
    [
        (TimePart.WAITING, f"{SPIN} ← ext4_write [ext4]", 580),
        (TimePart.WAITING, PROGRAM, 60),
        (TimePart.IDLE, "schedule_timeout ← kthread", 1188),
        (TimePart.IDLE, "[before a task was seen]", 1192),
        (TimePart.WORK, SPIN, 20),
        (TimePart.LINES, "asm_sysvec_reschedule_ipi", 60),
    ],
)
def test_places_name_who_waits_and_for_whom(part: TimePart, name: str, nanoseconds: int) -> None:
    times = {place.name: time for place, time in places(profile(), part).items()}
    assert times[name] == nanoseconds / 4


def test_a_difference_is_told_where_it_is() -> None:
    waits = [[SPIN, "", "ext4_write", "ext4", 480, 10]]
    after = profile(LINE | {"counted": LINE["counted"] | {"waits": waits}})
    first, second = differences(profile(), after, TimePart.WAITING)
    assert (first.place.name, first.difference) == (f"{SPIN} ← ext4_write [ext4]", 100)
    assert (second.place.function, second.difference) == (PROGRAM, -15)
    assert replace(first.place, caller="").name == SPIN
