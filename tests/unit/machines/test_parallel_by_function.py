"""What crates/parallel counts by function, as a region: summed, by CPU, with names."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.making import a_study

from ktrial.analysis.guest_time import Part, by_cpu, differences, places, together
from ktrial.cli.running.waits import waits
from ktrial.machines.exact_parallel.region import region_of
from ktrial.model.design import Factor, FactorKind
from ktrial.model.parallel import ParallelCounts
from ktrial.model.profile import PROGRAM, Profile
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse

SPIN = "native_queued_spin_lock_slowpath"
LINE: dict[str, Any] = {
    "regions": 2,
    "instructions": 1010,
    "operations": 4,
    "sum": 1000,
    "middle": [240, 260],
    "extremes": [200, 300],
    "cpus": [5000, 6000],
    "idle": [0, 0],
    "clock": 9,
    "rounds": 10,
    "fingerprint": "00ff",
    "counted": {
        "time": 2000,
        "functions": [
            ["do_mmap", "", [[600, 2, 0, 0, 0], [0, 0, 0, 0, 0]]],
            [SPIN, "", [[0, 0, 0, 0, 0], [100, 1, 80, 10, 0]]],
            ["__switch_to_asm", "", [[10, 4, 0, 0, 0], [0, 0, 0, 0, 0]]],
            ["asm_sysvec_reschedule_ipi", "", [[0, 0, 0, 0, 0], [8, 2, 0, 0, 60]]],
            ["ext4_write", "ext4", [[2, 1, 0, 0, 0], [0, 0, 0, 0, 0]]],
        ],
        "pages": [
            [4096, 7, [[200, 0, 0, 0, 0], [0, 0, 0, 0, 0]]],
            [8192, 8, [[0, 0, 0, 0, 0], [90, 0, 10, 1, 0]]],
        ],
        "waits": [
            [SPIN, "", "ext4_write", "ext4", 80, 10],
            ["[program]", "", "", "", 10, 1],
        ],
        "idle": [["schedule_timeout", "", "kthread", "", 0, 1188], ["", "", "", "", 1, 1192]],
    },
}


def counts(line: dict[str, Any] = LINE) -> ParallelCounts:
    return ParallelCounts.model_validate_json(json.dumps(line))


def profile(line: dict[str, Any] = LINE) -> Profile:
    region = region_of(counts(line))
    assert region
    return Profile(kernel="k", workload="w", operations=4, region=region)


def test_cpus_are_summed_and_a_marked_run_has_its_operations() -> None:
    region = profile().region
    functions = {each.symbol: (each.instructions, each.entered) for each in region.functions}
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
        (Part.WAITING, f"{SPIN} ← ext4_write [ext4]", 580),
        (Part.WAITING, PROGRAM, 60),
        (Part.IDLE, "schedule_timeout ← kthread", 1188),
        (Part.IDLE, "[before a task was seen]", 1192),
        (Part.WORK, SPIN, 20),
        (Part.LINES, "asm_sysvec_reschedule_ipi", 60),
    ],
)
def test_places_name_who_waits_and_for_whom(part: Part, name: str, nanoseconds: int) -> None:
    found = {place.name: time for place, time in places(profile(), part).items()}
    assert found[name] == nanoseconds / 4


def test_a_difference_is_told_where_it_is() -> None:
    waits = [[SPIN, "", "ext4_write", "ext4", 480, 10]]
    after = profile(LINE | {"counted": LINE["counted"] | {"waits": waits}})
    first, second = differences(profile(), after, Part.WAITING)
    assert (first.place.name, first.difference) == (f"{SPIN} ← ext4_write [ext4]", 100)
    assert (second.place.function, second.difference) == (PROGRAM, -15)
    assert replace(first.place, caller="").name == SPIN


def test_the_places_of_waits_are_told_at_the_largest_number_of_cpus() -> None:
    cpus = Factor(name="cpus", kind=FactorKind.CPUS, levels=(1, 2), baseline=1)
    kernels = Factor(
        name="kernel", kind=FactorKind.KERNEL, levels=("debian:6.1", "debian:6.12"), baseline="debian:6.1"
    )
    machine = MachineSettings(kind="exact-parallel", quantum_ns=500)
    study = a_study(machine=machine, factors=(kernels, cpus), workloads=("fork",))
    asked: list[tuple[str, int, int]] = []

    def counted(settings: MachineSettings, use: WorkloadUse) -> Profile:
        asked.append((settings.kernel, settings.cpus, settings.quantum_ns))
        return profile()

    first, second = waits(study, counted)
    assert asked == [("debian:6.1", 2, 500), ("debian:6.12", 2, 500)]
    assert first.waiting == pytest.approx(640 / 4000)
    assert first.waiting_in == f"{SPIN} ← ext4_write [ext4]"
    assert first.idle == pytest.approx((1188 + 1192) / 4000)
    assert str(second).startswith(
        "debian:6.12, fork, 2 CPUs: waiting 16% in native_queued_spin_lock_slowpath"
    )
    assert second.as_json()["cpus"] == 2
