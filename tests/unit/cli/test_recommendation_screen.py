"""`matrix recommend` and `matrix systems` on a screen: 25 lines, the answer last, no number cut."""

import io

import pytest
from rich.console import Console
from tests.support.runs_of_tests import at_night

from ktrial.cli.render.recommendation import across_answer, print_across, print_recommendation
from ktrial.cli.render.screen import LINES
from ktrial.model.history import (
    Across,
    Agreement,
    KernelCandidate,
    OnSystem,
    Recommendation,
    Regret,
    SystemIdentity,
)
from ktrial.model.workload import Direction, Mode


def screen(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, color_system=None)


def shown(console: Console) -> list[str]:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().splitlines()


def a_recommendation(kernels: int, workloads: int) -> Recommendation:
    names = tuple(f"workload-{number}" for number in range(workloads))
    candidates = tuple(
        KernelCandidate(
            version=f"debian:6.{kernel}",
            release=f"6.{kernel}.0",
            regrets=tuple(
                Regret(workload=name, value=100.0, ratio=1 + kernel / 100, low=1.0, high=1.5)
                for name in names
            ),
            mean=1 + kernel / 100,
            worst=1 + kernel / 50,
            worst_workload=names[0],
            dominated_by=("debian:6.0",) if kernel else (),
        )
        for kernel in range(kernels)
    )
    return Recommendation(
        workloads=names,
        margin=0.01,
        system=SystemIdentity(machine="exact"),
        candidates=candidates,
        best=("debian:6.0",),
        measured_by="instructions counted, not time",
        avoid=(),
        incomplete={},
        answer="debian:6.0 serves them best.",
    )


def a_change(agreement: Agreement, number: int, machines: int) -> Across:
    systems = tuple(
        OnSystem(
            system=SystemIdentity(machine="exact", cpu_model=f"model {place}"),
            study_id=place + 1,
            ratio=1.05,
            low=1.04,
            high=1.06,
            blocks=3,
        )
        for place in range(machines)
    )
    return Across(
        workload=f"workload-{number}",
        metric="instructions",
        mode=Mode.EXACT_CLOCK,
        direction=Direction.LOWER,
        before="debian:6.1",
        after="debian:6.12",
        systems=systems,
        agreement=agreement,
    )


@pytest.mark.parametrize("width", [60, at_night(80), 120])
@pytest.mark.parametrize(("kernels", "workloads"), [(1, 1), (4, 3), (40, 1), (40, 60), at_night(4, 60)])
def test_a_recommendation_has_its_answer_last(kernels: int, workloads: int, width: int) -> None:
    console, whole = screen(width), screen(width)
    print_recommendation(a_recommendation(kernels, workloads), console)
    lines = shown(console)
    assert len(lines) <= LINES
    assert lines[-1] == "debian:6.0 serves them best."
    assert all(len(line.rstrip()) <= width for line in lines if "-v" not in line)
    assert "…" not in "\n".join(lines[3:-1])
    print_recommendation(a_recommendation(kernels, workloads), whole, whole=True)
    text = "\n".join(shown(whole))
    assert all(f"workload-{number}" in text for number in range(workloads))
    assert all(f" 6.{kernel}" in text for kernel in range(kernels))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(("changes", "machines"), [(1, 2), (60, 2), (3, 20)])
def test_a_change_on_several_machines_has_its_answer_last(changes: int, machines: int, width: int) -> None:
    kinds = [Agreement.SAME, Agreement.DIFFERS, Agreement.UNDECIDED]
    rows = [a_change(kinds[number % 3], number, machines) for number in range(changes)]
    console = screen(width)
    print_across(rows, console)
    lines = shown(console)
    assert len(lines) <= LINES
    assert " ".join(" ".join(lines).split())[-30:] == across_answer(rows)[-30:] or lines[-1].endswith("…")


def test_the_answer_counts_what_is_the_same() -> None:
    rows = [a_change(Agreement.SAME, 0, 2), a_change(Agreement.DIFFERS, 1, 2)]
    assert across_answer(rows) == (
        "From debian:6.1 to debian:6.12 the change is the same on all machines in 1 of 2; "
        "it depends on the machine in workload-1."
    )
