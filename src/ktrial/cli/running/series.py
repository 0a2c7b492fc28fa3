"""What `ktrial series` runs: the series that was asked for, its estimate, its progress."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial.cli.console import messages, output, print_json
from ktrial.cli.options.kernel_measurement import MeasurementOptions
from ktrial.cli.render.profile import explanation_as_json
from ktrial.errors import Interrupted, KtrialError
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, printable
from ktrial.model.machine import NO_MODEL
from ktrial.model.series_result import Alone, SeriesCell, SeriesResult, Step
from ktrial.report.patch_series import answer, exercised

if TYPE_CHECKING:
    from ktrial.model.kernel import Build, PatchSeries
    from ktrial.model.study import Measurement
    from ktrial.model.workload import WorkloadUse
    from ktrial.series.run import Estimate, SeriesRun
    from ktrial.store.store import Store


@dataclass(frozen=True)
class SeriesOptions:
    """The options of the command, as they were given."""

    commits: str | None
    git: Path | None
    mbox: Path | None
    quilt: Path | None
    onto: str | None
    config: str
    options: tuple[str, ...]
    make: tuple[str, ...]
    fuzz: int
    given: MeasurementOptions
    maximum: tuple[str, ...]
    store: str | None
    jobs: int | None
    trust: bool = False
    """Whether mails may be built without a sandbox."""
    each_alone: bool = False
    every: int = 0
    """How many patches a stretch has that is measured first; 0: each patch is measured."""
    thorough: bool = False
    """Whether stretches without a difference are looked into as well."""
    offered: tuple[str, ...] = ()
    """Workloads to choose from beside the built-in ones: names, and files of one's own."""
    machine: str = "exact"
    model: str = NO_MODEL
    """What cycles are modelled on."""

    @cached_property
    def series(self) -> "PatchSeries":
        """The series. Raises SeriesNotChosen, BadCommitRange, BadMailbox, BadQuiltSeries, BadPatch.

        One of a source package is fetched: it raises what that raises, too.
        """
        from ktrial.cli.running.bisection import StepLines
        from ktrial.kernels.patch_series import (
            is_packaged,
            series_in_git,
            series_in_mailbox,
            series_in_package,
            series_in_quilt,
        )

        self._check()
        if self.commits is not None:
            return series_in_git(self.git or Path.cwd(), self.commits)
        base = self._build(self.onto or "").source
        if self.mbox is not None:
            return series_in_mailbox(self.mbox, base)
        quilt = self.quilt or Path()
        if is_packaged(quilt):
            lines = StepLines(messages())

            def progress(what: str, done: int = 0, total: int = 0) -> None:
                lines.kernel_progress(str(quilt), what, done, total)

            return series_in_package(quilt, base, progress)
        return series_in_quilt(quilt, base)

    @cached_property
    def plain(self) -> "Build":
        """The build of the base."""
        return self._build(self.series.base)

    @cached_property
    def how(self) -> "Measurement":
        """How steps are measured; without workloads where they are to be chosen. Raises BadOption,
        StudyError.
        """
        from dataclasses import replace

        from ktrial.cli.options.counting import with_model
        from ktrial.cli.options.kernel_measurement import measurement

        asked = bool(self.given.workloads or self.given.words)
        how = measurement(self.given if asked else replace(self.given, workloads=("nqueens",)))
        settings = with_model(how.settings.model_copy(update={"kind": self.machine}), self.model)
        return replace(how, settings=settings, workloads=how.workloads if asked else ())

    @cached_property
    def candidates(self) -> "tuple[WorkloadUse, ...]":
        """Workloads that may be chosen: built-in ones, without whole benchmarks, and what is offered.

        Raises WorkloadError.
        """
        from ktrial.cli.options.own_command import asked

        offered = asked(self.offered, ()).uses() if self.offered else ()
        return tuple({one.label: one for one in (*_candidates(), *offered)}.values())

    @property
    def command(self) -> str:
        """What repeats it."""
        pairs = {
            "--git": self.git,
            "--mbox": self.mbox,
            "--quilt": self.quilt,
            "--onto": self.onto,
            "--config": self.config if self.config != "guest" else None,
            "--fuzz": self.fuzz or None,
            "--memory": self.given.memory,
            "--cpus": self.given.cpus,
            "--machine": self.machine if self.machine != "exact" else None,
            "--model": self.model if self.model != NO_MODEL else None,
            "--perturbations": self.given.perturbations,
            "--every": self.every or None,
        }
        words = ["ktrial", "series", *([self.commits] if self.commits else [])]
        words += [str(word) for name, value in pairs.items() if value is not None for word in (name, value)]
        lists = {
            "--option": self.options,
            "--make": self.make,
            "--boot": self.given.boot,
            "--max": self.maximum,
            "--workload": (",".join(self.given.workloads),) if self.given.workloads else (),
            "--candidate": self.offered,
        }
        words += [word for name, values in lists.items() for value in values for word in (name, value)]
        words += ["--each-alone"] if self.each_alone else []
        words += ["--thorough"] if self.thorough else []
        return shlex.join([*words, *(["--", *self.given.words] if self.given.words else [])])

    def run(self) -> "tuple[SeriesResult, tuple[Alone, ...]]":
        """Run it, and tell how far it is. Raises what reading, building and measuring raise."""
        from ktrial.cli.running.bisection import StepLines
        from ktrial.store.location import default_location
        from ktrial.store.store import open_store

        console = messages()
        self._check_system()
        self.series  # noqa: B018 - mistakes are told before a store is opened
        with open_store(self.store or default_location()) as opened:
            asked = self._asked(opened, StepLines(console))
            print_plan(self, self._estimate(asked), console)
            try:
                return self._run_sparsely(asked) if self.every else asked.run_all()
            except (KeyboardInterrupt, Interrupted):
                what = "the kernels that were built and the trials that were run are kept"
                resume = "run the same command again: it goes on from there"
                raise Interrupted(what=what, hint=resume) from None

    def _run_sparsely(self, asked: "SeriesRun") -> "tuple[SeriesResult, tuple[Alone, ...]]":
        from dataclasses import replace

        from ktrial.series.commit_ranges import run_sparsely

        def run(series: "PatchSeries") -> "SeriesResult":
            return replace(asked, series=series).run()

        return run_sparsely(self.series, self.every, run, asked.tell, thorough=self.thorough), ()

    def plan(self) -> "tuple[Estimate, dict[int, str]]":
        """What is to be done, without doing any of it; and which patches do not apply, and why."""
        from ktrial.cli.running.bisection import StepLines
        from ktrial.series.run import refusals
        from ktrial.store.location import default_location
        from ktrial.store.store import open_store

        self._check_system()
        self.series  # noqa: B018 - as above
        with open_store(self.store or default_location()) as opened:
            asked = self._asked(opened, StepLines(messages()))
            return self._estimate(asked), refusals(asked)

    def _estimate(self, asked: "SeriesRun") -> "Estimate":
        from ktrial.series.run import estimate

        return estimate(asked)

    def _asked(self, store: "Store", observer: object) -> "SeriesRun":
        from ktrial.cli.options import kernel_measurement as measuring
        from ktrial.series.run import SeriesRun

        def limits(uses: "Sequence[WorkloadUse]") -> dict[str, float]:
            return measuring.limits(list(self.maximum), tuple(uses))

        # A mistake is told before anything is built.
        candidates = self.candidates
        if self.how.workloads:
            limits(self.how.workloads)
        return SeriesRun(
            series=self.series,
            plain=self.plain,
            measurement=self.how,
            runs=measuring.runs(store, observer, self.jobs),  # type: ignore[arg-type]
            tell=lambda text: messages().print(one_line(text), markup=False, highlight=False),
            candidates=candidates,
            limits=limits,
            each_alone=self.each_alone,
        )

    def _build(self, source: str) -> "Build":
        from ktrial.kernels.build.requests import requested, variable_of

        make = dict(variable_of(text) for text in self.make)
        return requested(
            source,
            config=self.config,
            options=self.options,
            make=make,
            fuzz=self.fuzz,
            directory=Path.cwd(),
        )

    def _check_system(self) -> None:
        """Look for all that the whole series needs here, before anything is fetched. Raises SystemNotReady,
        and what reading the series raises.
        """
        from ktrial.cli.running.preflight import check_first
        from ktrial.kernels.build.debian_sources import package_tools
        from ktrial.kernels.build.patches import PATCH
        from ktrial.kernels.build.sources import GIT
        from ktrial.kernels.patch_series import is_packaged

        self._check()
        packaged = self.quilt is not None and is_packaged(self.quilt)
        if not packaged and (self.commits is None or GIT.path()):
            self.series  # noqa: B018 - mistakes in what is here already are told first
        package = str(self.quilt).removeprefix("debian:").partition("/")[0]
        builds: tuple[Build, ...] = ()
        with suppress(KtrialError):  # what is wrong with a source is told where it is read
            builds = (self._build(self.onto or f"git:{self.git or Path.cwd()}@HEAD"),)
        check_first(
            kind=self.machine,
            builds=builds,
            anew=True,
            workloads=self.given.workloads,
            words=self.given.words,
            tools=(PATCH, *(package_tools(package) if packaged else ())),
            confined=self.mbox is not None and not self.trust,
            jobs=self.jobs,
        )

    def _check(self) -> None:
        """Raise SeriesNotChosen where it is not one series that is meant."""
        from ktrial.series.errors import SeriesNotChosen

        given = {"BASE..TIP": self.commits, "--mbox": self.mbox, "--quilt": self.quilt}
        there = [name for name, value in given.items() if value is not None]
        if len(there) != 1:
            problem = "none was given" if not there else f"{' and '.join(there)} were given"
            raise SeriesNotChosen(problem)
        if self.commits is None and self.onto is None:
            raise SeriesNotChosen(f"{there[0]} says nothing of the source that it applies to")
        if self.commits is not None and self.onto is not None:
            raise SeriesNotChosen("commits have their own base, and --onto another one")
        if self.every and self.each_alone:
            raise SeriesNotChosen("--every takes patches together, --each-alone takes them apart")
        if self.offered and (self.given.workloads or self.given.words):
            raise SeriesNotChosen("--candidate is to choose from, and --workload leaves no choice")
        if self.thorough and not self.every:
            raise SeriesNotChosen("--thorough goes with --every N: without it each patch is measured")
        if self.git is not None and self.commits is None:
            raise SeriesNotChosen("--git goes with BASE..TIP")


def _candidates() -> "tuple[WorkloadUse, ...]":
    """The built-in workloads, without those that are whole benchmarks."""
    from ktrial import workloads
    from ktrial.model.workload import WorkloadUse

    names = dict.fromkeys((*workloads.DEFAULT, *workloads.DISK))
    known = workloads.descriptions()
    return tuple(workloads.check(WorkloadUse(name=name)) for name in names if name in known)


def show_plan(asked: SeriesOptions, json: bool) -> None:
    """Print what would be done."""
    estimate, refused = asked.plan()
    if json:
        told = {"estimate": estimate.as_json(), "refused": {str(key): why for key, why in refused.items()}}
        print_json({**asked.series.model_dump(mode="json"), **told})
        return
    print_plan(asked, estimate, output(), refused)


def print_plan(
    asked: SeriesOptions, estimate: "Estimate", console: object, refused: dict[int, str] | None = None
) -> None:
    """The series, and what it will cost; with `refused` also its patches, and which of them do not apply."""
    from rich.console import Console

    assert isinstance(console, Console), "it is one of ours"
    series = asked.series
    count = len(series.patches)
    version = f"{series.version} of " if series.version else ""
    lines = [f"{version}{count} {'patch' if count == 1 else 'patches'} onto {series.base}"]
    lines += [f"note: {note}" for note in series.notes]
    if refused is not None:
        for one in series.patches:
            lines.append(f"{one.number:>4}  {one.subject}  ({number_format.counted(len(one.paths), 'file')})")
            lines += [f"      does not apply: {refused[one.number]}"] if one.number in refused else []
        if refused:
            lines.append(f"{len(refused)} of {count} do not apply; the others are tried without them")
    for line in (*lines, estimate.words()):
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


# A series as JSON; docs/series.md names every field.


def as_json(result: SeriesResult, command: str, alone: Sequence[Alone] = ()) -> dict[str, Any]:
    """What `series --json` prints."""
    return {
        "kind": result.series.kind.value,
        "origin": result.series.origin,
        "base": result.series.base,
        "title": result.series.title,
        "version": result.series.version,
        "command": command,
        "decision": result.decision.value,
        "answer": answer(result),
        "exercised": exercised(result),
        "functions": list(result.selection.changed),
        "not_executed": list(result.not_executed),
        "machine": result.measurement.settings.model_dump(mode="json"),
        "workloads": [use.label for use in result.measurement.workloads],
        "exact": result.is_exact,
        "patches": [_step(result, one) for one in result.steps[1:]],
        "totals": [_cell(one) for one in result.totals],
        "alone": [
            {
                "number": one.number,
                "why": one.why,
                "cells": [_cell(cell) for cell in one.cells],
                "depends": list(one.depends),
            }
            for one in alone
        ],
        "notes": [*result.series.notes, *result.notes],
    }


def _step(result: SeriesResult, step: Step) -> dict[str, Any]:
    assert step.patch is not None, "only the base has none"
    return {
        "number": step.number,
        "subject": step.patch.subject,
        "name": step.patch.name,
        "message_id": step.patch.message_id,
        "commit": step.patch.commit,
        "state": step.state.value,
        "why": step.why,
        "left_out": step.left_out,
        "mended_by": step.mended_by,
        "kernel": step.kernel.name if step.kernel else None,
        "options": [
            {"option": one.option, "before": one.before, "after": one.after, "new": one.brought}
            for one in step.options
        ],
        "functions": list(step.functions),
        "data": list(step.data),
        "notes": list(step.notes),
        "cells": [_cell(one) for one in result.cells if one.number == step.number],
    }


def _cell(cell: SeriesCell) -> dict[str, Any]:
    return {
        "workload": cell.workload,
        "before": _number(cell.before),
        "after": _number(cell.after),
        "difference": _number(cell.difference),
        "ratio": cell.ratio,
        "inside": cell.is_inside,
        "open": cell.is_open,
        "decision": cell.decision.value,
        "metrics": [
            {**one.comparison.model_dump(mode="json"), "limit": one.limit, "decision": one.decision.value}
            for one in cell.checked
        ],
        "functions": [
            {
                "function": row.name,
                "file": row.file,
                "difference": _number(part),
                "changed": cell.is_changed(row),
            }
            for row, part in cell.functions(20)
        ],
        "explanation": explanation_as_json(cell.explanation) if cell.explanation and cell.is_told else None,
    }


def _number(value: Fraction) -> str:
    """All digits: `1256`, `418.666667`, as a fraction where decimals would not end: exact sums need them."""
    return str(value) if value.denominator != 1 else number_format.exactly(value)
