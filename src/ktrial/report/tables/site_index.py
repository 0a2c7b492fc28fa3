"""The tables of a site's front page: workloads, kernels, changes machine by machine, results."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode

from ktrial.format import labels, number_format
from ktrial.format.sanitize import beginning
from ktrial.format.table import Cell, Column, Field, Kind, Table, change, name, own, table
from ktrial.model.history import Across, History, KernelPairs, MeasuredKernel, OnSystem
from ktrial.model.workload import short_labels

_LONGEST_ANSWER = 240
_IN_BRIEF = ("in brief",)


class StudyRow(NamedTuple):
    """One result of the site."""

    study: str
    number: int
    created: datetime
    answer: str
    page: str
    in_brief: bool = False
    """Whether its page has the verdicts alone."""


class _Past(NamedTuple):
    history: History
    name: str
    page: str


class _Kernel(NamedTuple):
    kernel: MeasuredKernel
    page: str


class _Machines(NamedTuple):
    across: Across
    name: str
    page: str


def workloads(past: Iterable[History], pages: Mapping[str, str]) -> Table:
    """A row a workload. `pages`: its name → the page of its history."""
    every = list(past)
    short = short_labels(one.workload for one in every)
    rows = [_Past(one, short[one.workload], pages[one.workload]) for one in every]
    return table(_WORKLOADS, rows, "workloads")


def kernels(pairs: KernelPairs, page: str) -> Table:
    """A row a kernel, the newest first. `page`: where it is compared with the one before it."""
    before = ("", *(one.name for one in pairs.kernels))
    rows = [
        _Kernel(one, f"{page}#?{_chosen(old, one.name)}")
        for old, one in zip(before, pairs.kernels, strict=False)
    ]
    return table(_KERNELS, reversed(rows), "measured-kernels")


def _chosen(old: str, new: str) -> str:
    return urlencode({"from": old, "to": new} if old else {"to": new})


def machines(changes: Iterable[Across], past: Iterable[History], pages: Mapping[str, str]) -> Table:
    """A row a change that several machines measured; names are as short as in the table of workloads."""
    short = short_labels(one.workload for one in past)
    rows = [_Machines(one, short[one.workload], pages[one.workload]) for one in changes]
    return table(_MACHINES, rows, "machines")


def results(studies: Iterable[StudyRow]) -> Table:
    """A row a stored study."""
    return table(_RESULTS, studies, "results")


def first_to_last(past: History) -> float | None:
    """The last value of a history's first line by its first one; None where it has no such values."""
    values = [point.value for point in past.lines[0].points if point.value is not None]
    return values[-1] / values[0] if values and values[0] > 0 else None


def _count(value: int) -> Cell:
    return Cell(value, str(value))


def _on_each(systems: Iterable[OnSystem]) -> Cell:
    each = "; ".join(
        f"{number_format.change(one.ratio)} on {one.system.cpu_model or one.system.machine}"
        for one in systems
    )
    return Cell(each, each, Kind.PROSE)


def _agreement(across: Across) -> Cell:
    said = labels.AGREEMENTS[across.agreement]
    text = said if across.p is None else f"{said} (p {across.p:.2g})"
    return Cell(across.agreement, text, notes=(across.reason,) if across.reason else ())


def _answer(text: str) -> Cell:
    return Cell(text, beginning(text, _LONGEST_ANSWER), Kind.PROSE)


_WORKLOADS: tuple[Field[_Past], ...] = (
    Field(Column("workload", "workload"), lambda row: name(row.name, link=row.page)),
    Field(Column("versions", "versions", numeric=True), lambda row: _count(len(row.history.lines[0].points))),
    Field(
        Column("changes", "change points", numeric=True),
        lambda row: _count(len(row.history.lines[0].changes)),
    ),
    Field(Column("ratio", "first to last", numeric=True), lambda row: change(first_to_last(row.history))),
)

_KERNELS: tuple[Field[_Kernel], ...] = (
    Field(Column("kernel", "kernel"), lambda row: name(row.kernel.name, link=row.page)),
    Field(Column("release", "release"), lambda row: name(row.kernel.release)),
    Field(Column("workloads", "workloads", numeric=True), lambda row: _count(row.kernel.workloads)),
)

_MACHINES: tuple[Field[_Machines], ...] = (
    Field(Column("workload", "workload"), lambda row: name(row.name, link=row.page)),
    Field(Column("change", "change"), lambda row: name(f"{row.across.before} → {row.across.after}")),
    Field(Column("systems", "on each machine"), lambda row: _on_each(row.across.systems)),
    Field(Column("agreement", "machine × version"), lambda row: _agreement(row.across)),
)

_RESULTS: tuple[Field[StudyRow], ...] = (
    Field(
        Column("study", "study"),
        lambda row: name(row.study, link=row.page, notes=_IN_BRIEF if row.in_brief else ()),
    ),
    Field(Column("answer", "answer"), lambda row: _answer(row.answer)),
    Field(Column("created", "made"), lambda row: own(number_format.moment(row.created))),
    Field(Column("number", "number", numeric=True), lambda row: _count(row.number)),
)
