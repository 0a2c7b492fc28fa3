"""What `ktrial bisect` runs and prints: how candidates are measured, the plan, the progress, the result."""

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from ktrial.bisect.search import SearchPlan
from ktrial.bisect.versions import step_caution
from ktrial.cli.command_line import BadOption
from ktrial.cli.console import breakable, messages, output, print_json, say
from ktrial.cli.options import kernel_measurement
from ktrial.cli.options.common import margin_of
from ktrial.cli.options.kernel_measurement import measurement
from ktrial.cli.progress import StepLog
from ktrial.cli.render.explanation import explanation_as_json
from ktrial.cli.render.next_step import same_command
from ktrial.cli.render.screen import Screen
from ktrial.cli.running.preflight import check_first
from ktrial.cli.studies import open_store, study_at
from ktrial.errors import Interrupted
from ktrial.experiment.observer import Observer
from ktrial.format import number_format
from ktrial.format.labels import MODE_NAMES
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Table, of_texts
from ktrial.model.bisection import BisectResult, FoundCause, FoundItem, FoundTarget, Shares
from ktrial.model.design import Plan
from ktrial.model.machine import Boot
from ktrial.model.trial import Trial
from ktrial.report.attribution import net_sentence_of, why_heading

if TYPE_CHECKING:
    from ktrial.bisect.bisection import SubsetGround
    from ktrial.bisect.decision import Terms
    from ktrial.cli.commands.bisect import BisectOptions
    from ktrial.experiment.single_kernel import Runs
    from ktrial.kernels import Progress
    from ktrial.model.kernel import Build
    from ktrial.model.study import Measurement
    from ktrial.store.store import Store
    from ktrial.system_tools import Tool


class Bisection:
    """What the kinds of bisections have in common: how candidates are measured, plan, progress, result."""

    def __init__(self, options: "BisectOptions") -> None:
        self.options = options
        self.study = study_at(options.study) if options.study else None

    @property
    def on_host(self) -> bool:
        """Whether candidates are settings of this system."""
        return self._machine_kind() == "host"

    def _machine_kind(self) -> str:
        return self.options.machine or (self.study.machine.kind if self.study else "exact")

    def check_system(
        self, *, kernels: Iterable[str] = (), builds: "Iterable[Build]" = (), tools: "Iterable[Tool]" = ()
    ) -> None:
        """Look for all that the bisection needs here, before anything is done. Raises SystemNotReady."""
        kind = self._machine_kind()
        check_first(
            kind=kind,
            settings=self.study.machine.model_copy(update={"kind": kind}) if self.study else None,
            kernels=kernels,
            builds=builds,
            similar_builds=True,
            workloads=self.options.workload_names,
            tools=tools,
            jobs=self.options.jobs,
        )

    def terms(self, kind: str, before: str, after: str) -> "Terms":
        """How the bisection is done. Raises BadOption."""
        from ktrial.bisect.decision import DEFAULT_MARGIN, Terms

        options = self.options
        return Terms(
            kind=kind,
            before=before,
            after=after,
            measurement=self._measurement(),
            margin=margin_of(options.margin) or (self.study.margin if self.study else DEFAULT_MARGIN),
            metrics=tuple(options.metric or ()),
            limit=options.limit,
            alpha=options.alpha,
            blocks=options.blocks,
            tell=messages().print,
        )

    def _measurement(self) -> "Measurement":
        """How candidates are measured: as options say, else as the study. Raises WorkloadError, BadOption."""
        from ktrial.model.study import Measurement

        options, study = self.options, self.study
        if study is None:
            measured = measurement(options)
        else:
            perturbations = options.perturbations or study.perturbations
            measured = Measurement(study.workloads, study.machine, perturbations)
            if options.workload_names:
                measured = replace(measured, workloads=measurement(options).workloads)
        if options.machine is None:
            return measured
        return replace(measured, settings=measured.settings.model_copy(update={"kind": options.machine}))

    @contextmanager
    def runs(self) -> Iterator["Runs"]:
        """Where candidates are measured and kept."""
        from ktrial.experiment.host_settings import machine_for
        from ktrial.model.study import MachineSettings, Study

        options, settings = self.options, MachineSettings(kind=self._machine_kind())
        study = Study(name="bisect", machine=settings, factors=(), workloads=())
        with (
            open_store(options.store) as store,
            machine_for(study, allow_host_changes=options.allow_host_changes, say=say) as machine,
        ):
            runs = kernel_measurement.runs(store, StepLines(messages()), options.jobs)
            try:
                yield replace(runs, machine=machine) if machine else runs
            except (KeyboardInterrupt, Interrupted):
                # During a build or a fetch; or in a candidate's trials, which speak of that one alone.
                raise _interrupted(store) from None

    def progress_of(self, runs: "Runs", name: str) -> "Progress":
        """Steps of builds and fetches, told to whoever watches the runs."""
        return lambda step, size=0, total=0: runs.observer.kernel_progress(name, step, size, total)

    def search(
        self,
        ground: "SubsetGround",
        terms: "Terms",
        runs: "Runs",
        *,
        builds: bool = False,
        together: int = 0,
    ) -> None:
        """Show the plan; search; show the result. `builds`: candidates are kernels that are built.

        `together`: options of modules that the guest does not load, which are the last item.
        """
        from ktrial import machines
        from ktrial.bisect.bisection import ExactBisection, SequentialBisection
        from ktrial.bisect.search import plan_of
        from ktrial.kernels.build.make import build_seconds

        if builds and self.on_host:
            raise BadOption("--machine host", "this system boots no other kernel; take exact or kvm")
        groups = [ground.described(at) for at in range(ground.items.count)]
        names = [" + ".join(item.name for item in group) for group in groups]
        differing = sum(map(len, groups)) + max(0, together - 1)
        seconds = build_seconds() if builds else None
        plan = plan_of(terms, names, differing, runs.store, builds=builds, build_seconds=seconds)
        self.show_plan(plan.model_copy(update={"together": together}))
        is_exact = machines.find(self._machine_kind()).mode.value.startswith("exact")
        kind = ExactBisection if is_exact else SequentialBisection
        self.show(kind(ground, terms, runs, self.show).run())

    def show_plan(self, plan: SearchPlan) -> None:
        """Print the plan; a dry run ends here."""
        if self.options.dry_run and self.options.json:
            print_json(plan.model_dump(mode="json"))
        else:
            print_plan(plan, output() if self.options.dry_run else messages())
        if self.options.dry_run:
            raise typer.Exit

    def show(self, result: BisectResult) -> None:
        """Print the result."""
        if self.options.json:
            print_json(as_json(result))
        else:
            print_bisection(result, output(), self.options.top, whole=self.options.verbose)


def _interrupted(store: "Store") -> Interrupted:
    """The error that ends an interrupted bisection: it promises nothing of a store that is gone."""
    from ktrial.store.errors import StoreError

    try:
        store.names()
    except StoreError as error:
        return Interrupted(f"no candidate's trials are known to be kept. {error.message}", hint=error.advice)
    return Interrupted(
        "the candidates that were built and measured are kept",
        hint="run the same command again: it goes on from there",
    )


class StepLines(Observer):
    """Steps of builds and boots as lines; the search itself tells which candidate they are for."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._steps = StepLog(lambda text: console.print(f"  {text}"))

    def kernel_progress(self, name: str, step: str, size: int, total: int) -> None:
        """A new step; what it counts (`building: 120 files`) only now and then."""
        self._steps.step("", step, size, total)

    def study_planned(self, plan: Plan, finished: int) -> None:
        """A candidate begins."""
        self._steps.clear()
        if finished == len(plan.trials):
            self._console.print("  its trials are in the store")

    def preparing(self, boot: Boot, step: str) -> None:
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


_MANY_COMMITS = (
    "a step between two releases may be thousands of commits; ktrial explain A B WORKLOAD --commits git:DIR "
    "ranks those of a git tree, and with --prove ends at one"
)
_SINGULARS = {"config": "option", "knobs": "knob", "patches": "patch", "versions": "release"}
_PLURALS = {"patch": "patches"}
_NAME_COLUMNS = 60
_SHOWN_NAMES = 12
_SHOWN_CAUTIONS = 3
_SHOWN_PROBLEMS = 5
_UNLIKELY_SHARE = 0.005


def print_plan(plan: SearchPlan, console: Console) -> None:
    """What differs, and what the search may cost."""
    console.print(Text(_title(plan), style="bold"), soft_wrap=True)
    console.print(_differing(plan.kind, plan.differing, plan.groups))
    shown = ", ".join(shortened(name, _NAME_COLUMNS) for name in plan.names[:_SHOWN_NAMES])
    more = f", and {len(plan.names) - _SHOWN_NAMES} more" if len(plan.names) > _SHOWN_NAMES else ""
    _say(f"{shown}{more}", console, 2)
    if plan.together:
        text = (
            f"{plan.together:,} options only of modules that the guest never loads are one candidate together"
        )
        _say(text, console)
    if plan.kind == "versions":
        cautions = filter(None, (step_caution(*step) for step in pairwise(plan.names)))
        for caution in islice(cautions, _SHOWN_CAUTIONS):
            _say(f"note: {caution}", console)
        _say(f"note: {_MANY_COMMITS}", console)
    candidates = "kernels built" if plan.builds else "candidates measured"
    most = f"at most {plan.candidates_for_one} {candidates} where one is the cause"
    if plan.kind in {"config", "knobs"}:
        most += f", {plan.candidates_for_two} where two matter only together"
    if plan.candidates_for_each_more is not None:
        most = (
            f"at most {plan.candidates_for_one} {candidates} where the numbers change in one place, and "
            f"about {plan.candidates_for_each_more} more for each further place; all {plan.groups} at the "
            "very most"
        )
    _say(f"plan: {most}; {number_format.counted(plan.trials_each, 'trial')} each", console)
    if plan.seconds:
        console.print(breakable(f"about {number_format.duration(plan.seconds)} at most, for one cause"))
    else:
        console.print("how long that takes is not known yet on this machine")
    if plan.build_seconds:
        console.print(
            breakable(f"a build takes about {number_format.duration(plan.build_seconds)}, by past ones")
        )


def print_bisection(result: BisectResult, console: Console, top: int, *, whole: bool = False) -> None:
    """The difference, the causes with their shares, what is left, and the answer: 25 lines, or all."""
    screen = Screen(console, whole=whole, more=same_command("-v"))
    screen.title(_title(result), breakable(_summary(result)))
    screen.gap()
    screen.rows(_targets(result), noun="metric")
    for number, cause in enumerate(result.causes, start=1):
        title, *lines = _cause_lines(f"Cause {number}", cause)
        screen.lines(lines, "line on a cause", least=2, heading=title)
    for cause in result.alternatives:
        title, *lines = _cause_lines("Without it, this shows the same difference", cause)
        screen.lines(lines, "line on an alternative", least=1, heading=title)
    screen.gap()
    screen.lines(list(_notes(result)), "note", least=1)
    explained = [
        (target.label, result.explanations[target.label])
        for target in result.targets
        if target.differs and target.label in result.explanations and top
    ]
    nets = [f"{label} {breakable(net_sentence_of(why, None))}" for label, why in explained]
    screen.lines(nets, "cause by function", heading=why_heading(followed=False))
    words = ["ktrial", "explain" if explained else "show", result.study]
    words += ["--to", result.treatment] if explained and result.treatment else []
    next_step = shlex.join(words) if result.study else ""
    if whole and explained:
        from ktrial.cli.render.explanation import print_explanation

        for _, explanation in explained:
            print_explanation(explanation, top, console)
            console.print()
    screen.print(answer(result), next_step=next_step)


def _say(text: str, console: Console, indent: int = 0) -> None:
    """One line, that what is printed can be searched for."""
    console.print(" " * indent + breakable(one_line(text)), soft_wrap=True)


def _title(bisection: SearchPlan | BisectResult) -> str:
    names = (shortened(name, _NAME_COLUMNS) for name in (bisection.before, bisection.after))
    return f"{bisection.kind}: {' → '.join(names)}"


def answer(result: BisectResult) -> str:
    """The whole result in one sentence."""
    if not any(target.differs for target in result.targets):
        names = ", ".join(target.label for target in result.targets)
        margin = number_format.percentage(result.margin, space=" ")
        return f"There is nothing to explain: {names} differ by less than {margin}."
    if result.kind == "versions" and result.causes:
        return f"The numbers change {', and '.join(_between(cause) for cause in result.causes)}."
    causes = "; ".join(_named(cause) for cause in result.causes)
    left = ", ".join(target.label for target in result.targets if not target.explained)
    if not result.causes:
        return f"Nothing was found that explains {left}: {result.stopped or 'the ends differ, no part does'}."
    if left:
        why = result.stopped or "it is spread over many, none of which is beyond the margin"
        return f"{causes} explain a part; what is left of {left} was not found: {why}."
    verb = "explains" if len(result.causes) == 1 and len(result.causes[0].members) == 1 else "explain"
    changes = ", ".join(
        f"{target.label} {number_format.change(target.reached / target.before)}"
        for target in result.targets
        if target.differs and target.reached and target.before
    )
    return f"{causes} {verb} the difference{f': {changes}' if changes else ''}."


def as_json(result: BisectResult) -> dict[str, Any]:
    """What `bisect --json` prints; docs/bisect.md names every field."""
    explained = {
        label: explanation_as_json(explanation) for label, explanation in result.explanations.items()
    }
    return {
        **result.model_dump(mode="json"),
        "found": result.found,
        "answer": breakable(answer(result)),
        "explanations": explained,
    }


def _summary(result: BisectResult) -> str:
    modes = dict.fromkeys(MODE_NAMES[target.mode] for target in result.targets)
    return one_line("; ".join([_differing(result.kind, result.differing, result.groups), *modes]))


def _differing(kind: str, differing: int, groups: int) -> str:
    singular = _SINGULARS[kind]
    many = _PLURALS.get(singular, f"{singular}s")
    verb = "lie between" if kind in {"versions", "patches"} else "differ"
    text = f"{differing} {many if differing != 1 else singular} {verb if differing != 1 else 'differs'}"
    return f"{text}, in {groups} groups" if groups != differing else text


def _targets(result: BisectResult) -> Table:
    reached = any(target.reached is not None for target in result.targets)
    with_causes = ("A with the causes", "change") if reached else ()
    headings = ("workload", "A", "B", "change", *with_causes, "")
    table = of_texts(headings, (_target_cells(target, is_cause=reached) for target in result.targets))
    return table.adapted(table.columns[-1].key, numeric=False)


def _target_cells(target: FoundTarget, *, is_cause: bool) -> list[str]:
    cells = [
        shortened(target.label, _NAME_COLUMNS),
        breakable(number_format.quantity(target.before, target.unit)),
        breakable(number_format.quantity(target.after, target.unit)),
        breakable(number_format.change(target.ratio)),
    ]
    if is_cause:
        reached = target.reached / target.before if target.reached and target.before else None
        cells += [
            breakable(number_format.quantity(target.reached, target.unit)),
            breakable(number_format.change(reached)),
        ]
    state = "no difference" if not target.differs else "explained" if target.explained else "not explained"
    return [*cells, state]


def _cause_lines(title: str, cause: FoundCause) -> Iterator[str]:
    yield f"{title}{' (only together)' if _only_together(cause) else ''}:"
    for member in cause.members:
        yield from map(_item, member.items)
        if member.alone:
            yield f"alone it does {_shares(member.alone)}"
        if member.without:
            yield f"without it the others do {_shares(member.without)}"
    for label, share in cause.shares.items():
        ratio = breakable(number_format.change(cause.ratios.get(label)))
        yield f"{label} {ratio}: {_share(share)} of the difference"
    if cause.needed:
        names = ", ".join(_item(item) for item in cause.needed)
        alone = f"; that alone does {_shares(cause.needed_alone)}" if cause.needed_alone else ""
        yield f"goes with what it needs: {names}{alone}"


def _only_together(cause: FoundCause) -> bool:
    shares = [share for member in cause.members for share in member.alone.values()]
    return len(cause.members) > 1 and bool(shares) and max(map(abs, shares)) < 0.25


def _shares(shares: Shares) -> str:
    if len(set(shares.values())) <= 1 or all(abs(share) < _UNLIKELY_SHARE for share in shares.values()):
        return f"{_share(next(iter(shares.values()), 0.0))} of it"
    return ", ".join(f"{_share(share)} of {label}" for label, share in shares.items())


def _share(share: float) -> str:
    return breakable(number_format.share_of(share))


def _item(item: FoundItem) -> str:
    return f"{item.text} ({item.note})" if item.note else item.text


def _between(cause: FoundCause) -> str:
    (item,) = cause.members[0].items
    return f"between {item.note.removeprefix('follows ')} and {item.name}"


def _named(cause: FoundCause) -> str:
    names = [item.text for member in cause.members for item in member.items[:1]]
    return " with ".join(names) if _only_together(cause) else ", ".join(names)


def _notes(result: BisectResult) -> Iterator[str]:
    built = (
        f": {result.builds} kernels, {result.built} of them built now"
        if result.kind in {"config", "patches"}
        else ""
    )
    yield f"measured: {result.measured} candidates{built}"
    if result.error_probability is not None:
        most = number_format.percentage(result.error_probability)
        yield breakable(f"the probability that any decision of this search is wrong is at most {most}")
    for problem in result.unresolved:
        yield f"unresolved: {problem.candidate}: {problem.problem}"
    yield from result.notes
    if result.stopped:
        yield f"stopped: {result.stopped}"
