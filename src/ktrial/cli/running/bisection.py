"""What the commands of `ktrial bisect` have in common: how candidates are measured, plan, progress, end."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ktrial.cli.console import messages, output, print_json, say
from ktrial.cli.options.duration_size_share import margin_of
from ktrial.cli.options.kernel_measurement import MeasurementOptions, measurement
from ktrial.cli.step_display import StepLog
from ktrial.errors import Interrupted
from ktrial.experiment.observer import Silent
from ktrial.model.boot import Boot
from ktrial.model.design import Plan
from ktrial.model.trial import Trial

if TYPE_CHECKING:
    from rich.console import Console

    from ktrial.bisect.decision import Terms
    from ktrial.bisect.result import BisectResult
    from ktrial.bisect.search import SearchPlan
    from ktrial.experiment.single_kernel import Measurement, Runs
    from ktrial.model.kernel import Build
    from ktrial.model.study import Study
    from ktrial.store import Store
    from ktrial.system_tools import Tool


@dataclass(frozen=True)
class BisectOptions:
    """The options that all kinds of bisections share, as they were given."""

    given: MeasurementOptions
    study: "Study | None" = None
    margin: str | None = None
    metrics: tuple[str, ...] = ()
    limit: int | None = None
    json: bool = False
    dry_run: bool = False
    store: str | None = None
    jobs: int | None = None
    top: int = 5
    machine: str | None = None
    alpha: float = 0.05
    blocks: int = 60
    allow_host_changes: bool = False

    def how(self) -> "Measurement":
        """How candidates are measured: as options say, else as the study. Raises WorkloadError, BadOption."""
        said = self._as_said()
        if self.machine is None:
            return said
        return replace(said, settings=said.settings.model_copy(update={"kind": self.machine}))

    def check_system(
        self, *, kernels: "Iterable[str]" = (), builds: "Iterable[Build]" = (), tools: "Iterable[Tool]" = ()
    ) -> None:
        """Look for all that the bisection needs here, before anything is done. Raises SystemNotReady."""
        from ktrial.cli.running.preflight import check_first

        check_first(
            kind=self._kind(),
            settings=self.study.machine.model_copy(update={"kind": self._kind()}) if self.study else None,
            kernels=kernels,
            builds=builds,
            anew=True,
            workloads=self.given.workloads,
            words=self.given.words,
            tools=tools,
            jobs=self.jobs,
        )

    @property
    def in_time(self) -> bool:
        """Whether candidates are measured in real time. Raises UnknownMachine."""
        from ktrial import machines

        return not machines.find(self._kind()).mode.value.startswith("exact")

    @property
    def on_host(self) -> bool:
        """Whether candidates are settings of this system."""
        return self._kind() == "host"

    def _kind(self) -> str:
        return self.machine or (self.study.machine.kind if self.study else "exact")

    def _as_said(self) -> "Measurement":
        from ktrial.experiment.single_kernel import Measurement

        if self.study is None:
            return measurement(self.given)
        study = self.study
        there = Measurement(study.workloads, study.machine, self.given.perturbations or study.perturbations)
        if not self.given.workloads:
            return there
        return replace(there, workloads=measurement(self.given).workloads)

    def terms(self, kind: str, before: str, after: str) -> "Terms":
        """How the bisection is done. Raises BadOption."""
        from ktrial.bisect.decision import DEFAULT_MARGIN, Terms

        margin = self.study.margin if self.study else DEFAULT_MARGIN
        return Terms(
            kind=kind,
            before=before,
            after=after,
            how=self.how(),
            margin=margin_of(self.margin) or margin,
            metrics=self.metrics,
            limit=self.limit,
            alpha=self.alpha,
            blocks=self.blocks,
            tell=messages().print,
        )

    @contextmanager
    def runs(self) -> Iterator["Runs"]:
        """Where candidates are measured and kept."""
        from ktrial.cli.options import kernel_measurement as measuring
        from ktrial.experiment.host_settings import machine_for
        from ktrial.model.study import MachineSettings, Study
        from ktrial.store import default_location, open_store

        about = Study(name="bisect", machine=MachineSettings(kind=self._kind()), factors=(), workloads=())
        with (
            open_store(self.store or default_location()) as opened,
            machine_for(about, allow_host_changes=self.allow_host_changes, say=say) as machine,
        ):
            runs = measuring.runs(opened, StepLines(messages()), self.jobs)
            try:
                yield replace(runs, machine=machine) if machine else runs
            except (KeyboardInterrupt, Interrupted):
                # During a build or a fetch; or in a candidate's trials, which speak of that one alone.
                raise _interrupted(opened) from None

    def show_plan(self, plan: "SearchPlan") -> None:
        """Print the plan; end here where that is all that was asked for."""
        from ktrial.cli.render.bisection import print_plan

        if self.dry_run and self.json:
            print_json(plan.model_dump(mode="json"))
        else:
            print_plan(plan, output() if self.dry_run else messages())
        if self.dry_run:
            raise typer.Exit

    def show(self, result: "BisectResult") -> None:
        """Print the result."""
        from ktrial.cli.render.bisection import as_json, print_bisection

        if self.json:
            print_json(as_json(result))
        else:
            print_bisection(result, output(), self.top)


def _interrupted(store: "Store") -> Interrupted:
    """The error that ends an interrupted bisection: it promises nothing of a store that is gone."""
    from ktrial.store.errors import StoreError

    try:
        store.names()
    except StoreError as error:
        what = f"no candidate's trials are known to be kept. {error.message}"
        return Interrupted(what=what, hint=error.advice)
    what = "the candidates that were built and measured are kept"
    return Interrupted(what=what, hint="run the same command again: it goes on from there")


def study_at(path: Path | None) -> "Study | None":
    """The study in the file. Raises StudyError."""
    from ktrial.cli.installed import registry
    from ktrial.studyfile import load

    return load(path, registry()) if path else None


class StepLines(Silent):
    """Steps of builds and boots as lines; the search itself tells which candidate they are for."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._steps = StepLog(lambda text: console.print(f"  {text}"))

    def kernel_progress(self, name: str, what: str, done: int, total: int) -> None:
        """A new step; what it counts (`building: 120 files`) only now and then."""
        self._steps.step("", what, done, total)

    def study_planned(self, plan: Plan, finished: int) -> None:
        """A candidate begins."""
        self._steps.begin_anew()
        if finished == len(plan.trials):
            self._console.print("  its trials are in the store")

    def preparing(self, boot: Boot, what: str) -> None:
        """Booting is not told: a candidate takes seconds."""

    def trial_finished(self, trial: Trial, finished: int, total: int, seconds_left: float | None) -> None:
        """A line for a candidate's last trial only."""
        if finished == total:
            self._console.print(f"  trials: {finished}/{total}")

    def notice(self, text: str) -> None:
        """See Observer."""
        self._console.print(f"  {text}")

    def stopping(self) -> None:
        """See Observer."""
        self._console.print("stopping: what is finished is being stored")


if TYPE_CHECKING:
    from ktrial.bisect.bisection import SubsetGround
    from ktrial.bisect.decision import Terms
    from ktrial.experiment.single_kernel import Runs
    from ktrial.kernels import Progress


def searched(
    ground: "SubsetGround", terms: "Terms", bisection: BisectOptions, runs: "Runs", *, builds: bool = False
) -> None:
    """Show the plan; search; show the result."""
    from ktrial.bisect.bisection import Investigation, SequentialInvestigation
    from ktrial.bisect.search import plan_of
    from ktrial.cli.command_line import BadOption
    from ktrial.kernels.build import build_seconds

    if builds and bisection.on_host:
        raise BadOption(
            option="--machine host", problem="this system boots no other kernel; take exact or kvm"
        )

    names = [" + ".join(item.name for item in ground.described(at)) for at in range(ground.items.count)]
    differing = sum(len(ground.described(at)) for at in range(ground.items.count))
    seconds = build_seconds() if builds else None
    bisection.show_plan(plan_of(terms, names, differing, runs.store, builds=builds, build_seconds=seconds))
    kind = SequentialInvestigation if bisection.in_time else Investigation
    bisection.show(kind(ground, terms, runs, bisection.show).run())


def progress_of(runs: "Runs", name: str) -> "Progress":
    """Steps of builds and fetches, told to whoever watches the runs."""

    def told(what: str, done: int = 0, total: int = 0) -> None:
        runs.observer.kernel_progress(name, what, done, total)

    return told
