"""What `ktrial series` runs: the series that its options name, the estimate, the progress, the result."""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ktrial import workloads
from ktrial.cli.console import messages, output, print_json
from ktrial.cli.options import kernel_measurement
from ktrial.cli.options.counting import on_model
from ktrial.cli.options.kernel_measurement import BuildOptions, measurement
from ktrial.cli.options.workloads import named_workloads, use_of
from ktrial.cli.render.explanation import explanation_as_json
from ktrial.cli.render.next_step import same_command
from ktrial.cli.render.screen import Screen
from ktrial.cli.running.bisection import StepLines
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import open_store
from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment.regression_check import ON_SEVERAL
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, printable
from ktrial.kernels import patch_series
from ktrial.kernels.build.requests import reaching
from ktrial.kernels.config import parse_config
from ktrial.model.kernel import Build, PatchSeries
from ktrial.model.machine import NO_MODEL
from ktrial.model.regression_check import CheckedMetric
from ktrial.model.series_result import Alone, SeriesCell, SeriesResult, Step
from ktrial.model.study import Measurement
from ktrial.model.workload import WorkloadUse
from ktrial.report import configurations
from ktrial.report.patch_series import (
    answer,
    based_on,
    built_again,
    cost_lines,
    counted,
    exercised,
    idle_lines,
    marks,
    several_lines,
    terminal_rows,
    title,
    with_quoted_lines,
)
from ktrial.series.commit_ranges import run_sparsely
from ktrial.series.errors import SeriesNotChosen
from ktrial.series.estimate import Estimate, estimate, refusals
from ktrial.series.run import REBUILD_EVERY, SeriesRun, side_by_side
from ktrial.store.store import Store
from ktrial.studyfile.tree_rules import TreeRules, rules_in
from ktrial.workloads.tours import NAMES

if TYPE_CHECKING:
    from ktrial.cli.commands.series import SeriesOptions


class MeasuredSeries:
    """A series of patches, and how it is built and measured."""

    def __init__(self, options: "SeriesOptions", build: BuildOptions) -> None:
        self.options = options
        self.build_options = build

    @cached_property
    def series(self) -> PatchSeries:
        """The series. Raises SeriesNotChosen, KernelUsageError, BadPatch.

        One of a source package is fetched: it raises what that raises, too.
        """
        self._check()
        options = self.options
        if options.commits is not None:
            return patch_series.series_in_git(options.git or Path.cwd(), options.commits)
        base = self._builds[0].build(self._onto).source
        if options.mbox is not None:
            return patch_series.series_in_mailbox(options.mbox, base)
        quilt = options.quilt or Path()
        if patch_series.is_packaged(quilt):
            lines = StepLines(messages())

            def progress(what: str, done: int = 0, total: int = 0) -> None:
                lines.kernel_progress(str(quilt), what, done, total)

            return patch_series.series_in_package(quilt, base, progress)
        return patch_series.series_in_quilt(quilt, base)

    @cached_property
    def _onto(self) -> str:
        """What the patches apply to: what the user names, or the commit that the mails name."""
        options = self.options
        if options.onto is not None or options.mbox is None:
            return options.onto or ""
        commit = patch_series.base_commit(options.mbox)
        if not commit:
            return ""
        tree = options.git or Path.cwd()
        if not patch_series.has_commit(tree, commit):
            problem = f"its base-commit {commit[:12]} is not in {tree}"
            raise SeriesNotChosen(problem, hint="--git DIR names a tree that has it; or give --onto SOURCE")
        return f"git:{tree.expanduser().absolute()}@{commit}"

    @cached_property
    def rules(self) -> TreeRules:
        """What the base's `.ktrial.toml` says of the paths that the series changes. Raises as `rules_in`.

        It is not read where the command line names workloads and limits.
        """
        options = self.options
        if options.maximum and (options.workload_names or options.words):
            return TreeRules()
        names = (*workloads.DEFAULT, *workloads.DISK)
        paths = [path for patch in self.series.patches for path in patch.paths]
        return rules_in(self.series.base, names).of(paths)

    def _check(self) -> None:
        """Raise SeriesNotChosen where it is not one series that is meant."""
        options = self.options
        sources = {"BASE..TIP": options.commits, "--mbox": options.mbox, "--quilt": options.quilt}
        names = [name for name, value in sources.items() if value is not None]
        if len(names) != 1:
            problem = "none was given" if not names else f"{' and '.join(names)} were given"
            raise SeriesNotChosen(problem)
        if options.commits is None and not self._onto:
            raise SeriesNotChosen(f"{names[0]} says nothing of the source that it applies to")
        if options.commits is not None and options.onto is not None:
            raise SeriesNotChosen("commits have their own base, and --onto another one")
        if options.every and options.each_alone:
            raise SeriesNotChosen("--every takes patches together, --each-alone takes them apart")
        if options.candidate and (options.workload_names or options.words):
            raise SeriesNotChosen("--candidate is to choose from, and --workload leaves no choice")
        if options.every and len(self._builds) > 1:
            raise SeriesNotChosen("--every looks for changes in one configuration, and two were given")
        if options.thorough and not options.every:
            raise SeriesNotChosen("--thorough goes with --every N: without it each patch is measured")
        if options.route and (options.machine != "exact" or options.cpus not in {None, 1}):
            problem = "--route compares one CPU with several: leave out --machine and --cpus"
            raise SeriesNotChosen(problem)
        if options.git is not None and options.commits is None and (options.onto or options.mbox is None):
            raise SeriesNotChosen("--git goes with BASE..TIP, or with mails that name their base-commit")

    def run(self) -> list[tuple[SeriesResult, tuple[Alone, ...]]]:
        """Run it in each configuration, and tell how far it is. Raises what reading, building and measuring
        raise.
        """
        console = messages()
        self._check_system()
        self.series  # noqa: B018 - mistakes are told before a store is opened
        with open_store(self.options.store) as store:
            plans = self._planned(store, StepLines(console))
            planned = plans[0]
            refused = refusals(planned) if len(self.series.patches) > 1 else {}
            costs = [estimate(planned, refused) for planned in plans]
            self._print_plan(costs, console, refused, lists_patches=False)
            try:
                if not self.options.every:
                    return side_by_side(plans) if len(plans) > 1 else [planned.run_all()]

                def run(series: PatchSeries) -> SeriesResult:
                    return replace(planned, series=series).run()

                every, thorough = self.options.every, self.options.thorough
                return [(run_sparsely(self.series, every, run, planned.tell, thorough=thorough), ())]
            except (KeyboardInterrupt, Interrupted):
                raise Interrupted(
                    "the kernels that were built and the trials that were run are kept",
                    hint="run the same command again: it goes on from there",
                ) from None

    def show_plan(self, *, json: bool) -> None:
        """Print what would be run, and which patches do not apply; nothing is run."""
        self._check_system()
        self.series  # noqa: B018 - as above
        with open_store(self.options.store) as store:
            plans = self._planned(store, StepLines(messages()))
            refused = refusals(plans[0])
            costs = [estimate(planned, refused) for planned in plans]
        if json:
            estimates = [cost.as_json() for cost in costs]
            data = {
                "estimate": estimates[0] if len(estimates) == 1 else estimates,
                "refused": {str(key): why for key, why in refused.items()},
            }
            print_json({**self.series.model_dump(mode="json"), **data})
            return
        self._print_plan(costs, output(), refused, lists_patches=True)

    def _print_plan(
        self, costs: Sequence[Estimate], console: Console, refused: Mapping[int, str], *, lists_patches: bool
    ) -> None:
        """The series, how many patches do not apply, and what it will cost."""
        series = self.series
        count = len(series.patches)
        version = f"{series.version} of " if series.version else ""
        lines = [f"{version}{count} {'patch' if count == 1 else 'patches'} onto {series.base}"]
        lines += [
            f"note: {note}" for note in (*series.notes, *([str(self.rules)] if self.rules.rules else []))
        ]
        lines += [f"note: {many}" for build in self._builds if (many := many_modules(build.config))]
        if lists_patches:
            for patch in series.patches:
                files = number_format.counted(len(patch.paths), "file")
                lines.append(f"{patch.number:>4}  {patch.subject}  ({files})")
                if patch.number in refused:
                    why, quoted = with_quoted_lines(refused[patch.number])
                    lines += [f"      does not apply: {why}", *(f"        {line}" for line in quoted)]
        if refused:
            rest = "; the others are tried without them" if len(refused) < count else ""
            which = "" if lists_patches else f" ({', '.join(map(str, sorted(refused)))})"
            lines.append(f"{len(refused)} of {count} do not apply{which}{rest}")
        names = [f"{build.config}: " for build in self._builds] if len(costs) > 1 else [""]
        lines += [f"{name}{cost.words()}" for name, cost in zip(names, costs, strict=True)]
        for line in lines:
            console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    def _check_system(self) -> None:
        """Look for all that the whole series needs here, before anything is fetched.

        Raises SystemNotReady, and what reading the series raises.
        """
        from ktrial.kernels.build.debian_sources import package_tools
        from ktrial.kernels.build.patches import PATCH
        from ktrial.kernels.build.sources import GIT

        self._check()
        options = self.options
        packaged = options.quilt is not None and patch_series.is_packaged(options.quilt)
        if not packaged and (options.commits is None or GIT.path()):
            self.series  # noqa: B018 - mistakes in what is here already are told first
        package = str(options.quilt).removeprefix("debian:").partition("/")[0]
        builds: tuple[Build, ...] = ()
        with suppress(KtrialError):  # what is wrong with a source is told where it is read
            source = self._onto or f"git:{options.git or Path.cwd()}@HEAD"
            builds = tuple(build.build(source) for build in self._builds)
        check_first(
            kind=ON_SEVERAL if options.route else options.machine,
            builds=builds,
            similar_builds=True,
            workloads=options.workload_names,
            words=options.words,
            tools=(PATCH, *(package_tools(package) if packaged else ())),
            confined=(options.mbox is not None or options.quilt is not None) and not options.trust,
            jobs=options.jobs,
        )

    @property
    def _builds(self) -> tuple[BuildOptions, ...]:
        """How it is built in each configuration. Raises BadOption."""
        return self.build_options.each()

    def _planned(self, store: Store, observer: StepLines) -> list[SeriesRun]:
        """The runs, one for each configuration."""
        options, rules = self.options, self.rules

        def limits(uses: Sequence[WorkloadUse]) -> dict[str, float]:
            asked = kernel_measurement.limits(options.maximum or [], tuple(uses))
            return asked if options.maximum else rules.limits(asked)

        # A mistake is told before anything is built.
        candidates, measured = self._candidates(), self._measurement()
        touched = [path for patch in self.series.patches for path in patch.paths]
        for text in options.maximum or []:
            kernel_measurement.limit_of(text)
        if measured.workloads:
            limits(measured.workloads)
        plain_run = SeriesRun(
            series=self.series,
            plain=self._builds[0].build(self.series.base),
            measurement=measured,
            runs=kernel_measurement.runs(store, observer, options.jobs),
            tell=lambda text: messages().print(one_line(text), markup=False, highlight=False),
            candidates=candidates,
            tours=NAMES if options.machine == "exact" else (),
            first=() if measured.workloads else tuple(map(use_of, rules.workloads)),
            notes=(str(rules),) if rules.rules else (),
            limits=limits,
            each_alone=options.each_alone,
            rebuild_every=options.rebuild,
            route=options.route if options.machine == "exact" and options.cpus in {None, 1} else False,
        )
        plains = [reaching(build.build(self.series.base), touched) for build in self._builds]
        return [replace(plain_run, plain=plain) for plain in plains]

    def _measurement(self) -> Measurement:
        """How steps are measured; without workloads where they are to be chosen.

        Raises BadOption, StudyError.
        """
        options = self.options
        are_named = bool(options.workload_names or options.words)
        measured = measurement(options if are_named else replace(options, workload=["nqueens"]))
        settings = measured.settings.model_copy(update={"kind": options.machine})
        uses = measured.workloads if are_named else ()
        return replace(measured, settings=on_model(settings, options.model), workloads=uses)

    def _candidates(self) -> tuple[WorkloadUse, ...]:
        """Workloads that may be chosen: built-in ones, without whole benchmarks, and the user's.

        Raises WorkloadError.
        """
        built_in = built_in_candidates()
        files = self.options.candidate
        users = named_workloads(files, ()).uses() if files else ()
        return tuple({use.label: use for use in (*built_in, *users)}.values())

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self._command(self.build_options)

    @property
    def commands(self) -> list[str]:
        """The command lines that repeat it in each configuration alone."""
        return [self._command(build) for build in self._builds]

    def _command(self, build: BuildOptions) -> str:
        options = self.options
        pairs = {
            "--git": options.git,
            "--mbox": options.mbox,
            "--quilt": options.quilt,
            "--onto": options.onto,
            "--config": build.config if build.config != "guest" else None,
            "--fuzz": build.fuzz or None,
            "--memory": options.memory,
            "--cpus": options.cpus,
            "--machine": options.machine if options.machine != "exact" else None,
            "--model": options.model if options.model != NO_MODEL else None,
            "--perturbations": options.perturbations,
            "--every": options.every,
            "--rebuild": options.rebuild if options.rebuild != REBUILD_EVERY else None,
        }
        words = ["ktrial", "series", *([options.commits] if options.commits else [])]
        words += [str(word) for name, value in pairs.items() if value is not None for word in (name, value)]
        lists = {
            "--option": build.option,
            "--make": build.make,
            "--boot": options.boot,
            "--max": options.maximum,
            "--workload": [",".join(options.workload_names)] if options.workload_names else [],
            "--candidate": options.candidate,
        }
        words += [word for name, values in lists.items() for value in values or () for word in (name, value)]
        words += ["--each-alone"] if options.each_alone else []
        words += ["--thorough"] if options.thorough else []
        words += [] if options.route is None else ["--route" if options.route else "--no-route"]
        return shlex.join([*words, *(["--", *options.words] if options.words else [])])


_MANY_MODULES = 200


def built_in_candidates() -> tuple[WorkloadUse, ...]:
    """The built-in workloads that may be chosen for what they execute: those without whole benchmarks."""
    descriptions = workloads.descriptions()
    names = dict.fromkeys((*workloads.DEFAULT, *workloads.DISK))
    return tuple(workloads.check(WorkloadUse(name=name)) for name in names if name in descriptions)


def many_modules(config: str) -> str:
    """That a file has modules which no guest loads, and how to leave them out; empty where it has few."""
    path = Path(config).expanduser()
    if not path.is_file():
        return ""
    modules = sum(value == "m" for value in parse_config(path.read_text(errors="replace")).values())
    if modules < _MANY_MODULES:
        return ""
    return f"{config} has {modules:,} modules, all built: --config reached:{config} takes what guests reach"


def print_series(result: SeriesResult, console: Console) -> None:
    """In 25 lines: what nothing ran, patches that changed a number, the answer."""
    heading, rows, more_workloads = terminal_rows(result)
    screen = Screen(console, more=same_command("-v"))
    screen.title(title(result), based_on(result))
    screen.lines([exercised(result)], "", least=1)
    screen.gap()
    quiet = sum(not row.is_telling for row in rows)
    shown = rows if len(rows) <= _MOST_PATCHES else [row for row in rows if row.is_telling]
    least = min(len(shown), _LEAST_PATCHES)
    screen.lines([row.text for row in shown], "patch", least=least, heading=heading, wraps=False)
    if len(shown) < len(rows):
        screen.lines([f"{quiet} patches changed no number beyond the margin"], "", least=1)
    screen.leave_out(more_workloads, "workload that changed")
    heading = f"where, in {counted(result)} per operation:"
    screen.lines(cost_lines(result, _MOST_FUNCTIONS), "place", heading=heading)
    if meaning := marks(result):
        screen.lines([meaning], "", least=1)
    screen.lines(several_lines(result), "several-CPU row", least=2)
    screen.lines(idle_lines(result), "change beside which nothing ran", least=1)
    if again := built_again(result):
        screen.lines([again], "", least=1)
    screen.leave_out(len(result.series.patches), "patch report")
    screen.print(answer(result))


def print_side_by_side(results: Sequence[SeriesResult], console: Console) -> None:
    """The same of a series in two configurations."""
    names, rows = configurations.rows(results)
    screen = Screen(console, more=same_command("-v"))
    screen.title(configurations.heading(results), based_on(results[0]))
    screen.lines(configurations.executed(results), "configuration", least=1)
    screen.gap()
    screen.lines(rows, "patch", least=min(len(rows), _LEAST_PATCHES), heading=names, wraps=False)
    screen.lines(list(configurations.costs(results)), "place", heading="where:")
    if only := configurations.compiled_in_one(results):
        screen.lines([only], "", least=1)
    screen.print(configurations.verdict(results))


_MOST_FUNCTIONS = 3
_MOST_PATCHES = 15
_LEAST_PATCHES = 5


def as_json(result: SeriesResult, command: str, alone: Sequence[Alone] = ()) -> dict[str, Any]:
    """What `series --json` prints."""
    return {
        "kind": result.series.kind.value,
        "origin": result.series.origin,
        "base": result.series.base,
        "base_cpu_seconds": result.steps[0].cpu_seconds,
        "title": result.series.title,
        "version": result.series.version,
        "command": command,
        "decision": result.decision.value,
        "answer": answer(result),
        "exercised": exercised(result),
        "functions": list(result.selection.changed),
        "not_executed": list(result.not_executed),
        "only_booted": list(result.only_booted),
        "executed_elsewhere": {name: list(labels) for name, labels in result.executed_elsewhere.items()},
        "shared_names": list(result.shared_names),
        "ways": {name: way.model_dump(mode="json") for name, way in result.ways.items()},
        "machine": result.measurement.settings.model_dump(mode="json"),
        "workloads": [use.label for use in result.measurement.workloads],
        "built_again": list(result.built_again),
        "patches": [_step(result, step) for step in result.steps[1:]],
        "totals": [_cell(cell) for cell in result.totals],
        "numbers_digest": result.numbers_digest,
        "alone": [
            {
                "number": patch.number,
                "why": patch.why,
                "cells": [_cell(cell) for cell in patch.cells],
                "depends": list(patch.depends),
            }
            for patch in alone
        ],
        "notes": [*result.series.notes, *result.notes],
    }


def pair_as_json(
    pairs: Sequence[tuple[SeriesResult, Sequence[Alone]]], command: str, commands: Sequence[str]
) -> dict[str, Any]:
    """What it prints for two configurations: the worse verdict, and each one's own output."""
    results = [result for result, _ in pairs]
    return {
        "command": command,
        "decision": configurations.decision(results).value,
        "answer": configurations.verdict(results),
        "compiled_in_one": configurations.compiled_in_one(results),
        "configurations": {
            result.plain.config: as_json(result, own, alone)
            for (result, alone), own in zip(pairs, commands, strict=True)
        },
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
        "cpu_seconds": step.cpu_seconds,
        "options": [
            {"option": change.option, "before": change.before, "after": change.after, "new": change.brought}
            for change in step.options
        ],
        "functions": list(step.functions),
        "data": list(step.data),
        "readers": list(step.readers),
        "notes": list(step.notes),
        "cells": [_cell(cell) for cell in result.cells if cell.number == step.number],
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
        "idle": cell.is_idle,
        "decision": cell.decision.value,
        "metrics": list(map(_metric, cell.checked)),
        **(
            {"on_several": {"cpus": cell.cpus, "metrics": list(map(_metric, cell.on_several))}}
            if cell.on_several
            else {}
        ),
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


def _metric(metric: CheckedMetric) -> dict[str, Any]:
    comparison = metric.comparison.model_dump(mode="json")
    return {**comparison, "limit": metric.limit, "decision": metric.decision.value}


def _number(value: Fraction) -> str:
    """All digits: `1256`, `418.666667`, as a fraction where decimals would not end: exact sums need them."""
    return str(value) if value.denominator != 1 else number_format.exactly(value)
