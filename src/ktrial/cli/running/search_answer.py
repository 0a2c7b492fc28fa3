"""The answer of a search: printed, as JSON, as files, as a page, in force; from a run, or from the store."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.measure import Measurement
from rich.text import Text

from ktrial.cli.console import breakable, output, print_json, say, write_page
from ktrial.cli.render.screen import Screen
from ktrial.cli.render.table import rendered
from ktrial.cli.running.reports import reports_beside
from ktrial.errors import Interrupted
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Output, Table
from ktrial.model.study import Study, StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.tuning import Effect, Space, Tuned
from ktrial.optimize.deployment_files import Answer, answer_of, texts, write_answer
from ktrial.optimize.search_space import search_of
from ktrial.report import tuning as tables
from ktrial.report.tuning import goal_text, left_open, two_estimates
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy

if TYPE_CHECKING:
    from ktrial.cli.commands.tune import SearchOptions


def end(study: Study, tuned: Tuned, store: Store, options: "SearchOptions") -> None:
    """Write the answer's files, put it in force, write the report, as the options say; and print it."""
    number = store.study(study)
    answer = _answer(study, tuned, store.trials(number, counted=False))
    files = write_answer(answer, options.answer) if options.answer and answer else ()
    applied = put_in_force(study, answer) if options.apply and answer else ()
    report = None if options.no_html else _written(study, tuned, answer, number, store.name, options.html)
    if options.json:
        print_json(
            {
                **_as_json(study, tuned, answer, store.name, number),
                "files": list(map(str, files)),
                "applied": list(applied),
                "report": str(report) if report else None,
            }
        )
        return
    done = [f"written: {file}" for file in files] + [f"in force: {line}" for line in applied]
    done += ["to put back what was there: ktrial host restore"] if applied else []
    done += [f"report: {report}"] if report else []
    print_tuned(study, tuned, answer, number, output(), whole=options.verbose, done=done)


def show_search(stored: StoredStudy, store: Store, *, json: bool, whole: bool = False) -> None:
    """What `ktrial show` says of a search. Raises Interrupted where it has not ended."""
    tuned, answer = _ended(stored, store)
    if json:
        print_json(_as_json(stored.study, tuned, answer, store.name, stored.id))
    else:
        print_tuned(stored.study, tuned, answer, stored.id, output(), whole=whole)


def report_search(stored: StoredStudy, store: Store, html: Path | None, *, whole: bool = False) -> Path:
    """Write the page of a search anew. Raises Interrupted where it has not ended, ReportNotWritten."""
    tuned, answer = _ended(stored, store)
    return _written(stored.study, tuned, answer, stored.id, store.name, html, whole=whole)


def markdown_of_search(stored: StoredStudy, store: Store) -> str:
    """The search as Markdown. Raises Interrupted where it has not ended."""
    from ktrial.report.tuning import tuning_markdown

    tuned, answer = _ended(stored, store)
    in_force, files = (answer.in_force, texts(answer)) if answer else ({}, {})
    return tuning_markdown(stored.study, tuned, in_force, files, stored.id)


def with_confirmation(record: StudyRecord, stored: StoredStudy, store: Store) -> StudyRecord:
    """The record of a search's runs, with what its confirmation compared. Raises Interrupted."""
    tuned, _ = _ended(stored, store)
    result = record.result.model_copy(update={"comparisons": tuned.comparisons})
    return record.model_copy(update={"result": result})


def _ended(stored: StoredStudy, store: Store) -> tuple[Tuned, Answer | None]:
    from ktrial.optimize.session import ended

    trials = store.trials(stored.id, counted=False)
    tuned = ended(store, stored)
    if tuned is None:
        raise Interrupted(
            f"the search {stored.study.name} has {len(trials)} runs, and has not ended",
            hint="ktrial tune --resume goes on with it",
        )
    return tuned, _answer(stored.study, tuned, trials)


def _answer(study: Study, tuned: Tuned, trials: tuple[Trial, ...]) -> Answer | None:
    """With the settings as they were read back in the last run that had them, and that run's kernel."""
    confirmed = tuned.confirmed or {}
    for trial in reversed(trials):
        levels = {name: str(level) for name, level in trial.planned.treatment.levels.items()}
        if confirmed and levels == confirmed and trial.outcome is Outcome.COMPLETED:
            in_force = {name: trial.settings.get(name, value) for name, value in confirmed.items()}
            return answer_of(study, tuned, in_force, trial.provenance.kernel_release)
    return answer_of(study, tuned, confirmed)


def files_of(study: Study, tuned: Tuned, trials: tuple[Trial, ...], directory: Path) -> tuple[Path, ...]:
    """The answer's files, written, with the settings as they were read back in these trials.

    Raises SearchFailed.
    """
    answer = _answer(study, tuned, trials)
    return write_answer(answer, directory) if answer else ()


def put_in_force(study: Study, answer: Answer) -> tuple[str, ...]:
    """Set the answer's knobs here, through the journal, to stay."""
    from ktrial.knobs.apply import changing
    from ktrial.target.local import LocalTarget

    with changing(LocalTarget(), f"tune {study.name}", lasting=True, say=say) as changes:
        applied = changes.apply(*answer.configuration.items())
    return tuple(f"{change.name} = {change.now.strip()} (was {change.before.strip()})" for change in applied)


def _written(
    study: Study,
    tuned: Tuned,
    answer: Answer | None,
    number: int,
    store: str,
    html: Path | None,
    *,
    whole: bool = False,
) -> Path:
    from ktrial.report.tuning import tuning_page

    path = html or reports_beside(store) / f"{study.name}-{number}.html"
    return write_page(
        path,
        tuning_page(study, tuned, answer.in_force if answer else {}, number=number, whole=whole),
        f"ktrial report {number}",
    )


def _as_json(study: Study, tuned: Tuned, answer: Answer | None, store: str, number: int) -> dict[str, Any]:
    return {
        **tuned.model_dump(mode="json"),
        "study": study.name,
        "machine": study.machine.kind,
        "left_out": [knob.model_dump() for knob in search_of(study)[0].left_out],
        "settings": answer.in_force if answer else {},
        "undecided": tuned.undecided,
        "store": store,
        "id": number,
    }


# What `ktrial tune` prints: the plan before anything is spent, and the answer.

_MOST_LEFT_OUT = 40
_MOST_FAILURES = 5
_LEAST_SUMMARY = 20


def print_plan(study: Study, plan: Mapping[str, Any], console: Console) -> None:
    """What will be searched, for how long, and what can come of it."""
    search, space = search_of(study)
    console.print(Text(f"{study.name}: {goal_text(search.goal)}", style="bold"))
    console.print(Text(f"{search.goal.workload} on the machine {study.machine.kind}"))
    console.print()
    console.print(rendered(_space(space, console.width)))
    if space.constraints:
        console.print(Text(f"kept: {'; '.join(map(str, space.constraints))}"))
    if search.left_out:
        _print_left_out(study, console)
    console.print()
    for line in prospects(plan):
        console.print(Text(breakable(line)))


def _space(space: Space, columns: int) -> Table:
    """A line a knob; what it does goes as far as there is room."""
    table = tables.space(space.dimensions).adapted("was", heading="now")
    without = table.adapted("summary", outputs=Output.DOCUMENT)
    wide = Console(width=10_000)
    room = columns - 2 - Measurement.get(wide, wide.options, rendered(without)).maximum
    return table.cut("summary", room) if room >= _LEAST_SUMMARY else without


def _indented(text: str, columns: int) -> str:
    return textwrap.fill(
        text, max(columns, 40), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def _print_left_out(study: Study, console: Console) -> None:
    """Knobs that are not searched, those with the same reason together."""
    left_out = search_of(study)[0].left_out
    by_reason: dict[str, list[str]] = {}
    for knob in left_out:
        by_reason.setdefault(knob.reason, []).append(knob.name)
    console.print()
    console.print(Text(f"left out: {len(left_out)}"))
    for reason, names in list(by_reason.items())[:_MOST_LEFT_OUT]:
        console.print(Text(_indented(f"{', '.join(names)}: {one_line(reason)}", console.width)))
    if len(by_reason) > _MOST_LEFT_OUT:
        console.print(Text(f"  and {len(by_reason) - _MOST_LEFT_OUT} more reasons: --json"))


def prospects(plan: Mapping[str, Any]) -> list[str]:
    """Noise, smallest effect, runs and time, as far as they are known."""
    lines = []
    noise, smallest = plan["noise"], plan["smallest_effect"]
    if noise is None:
        lines.append(
            "noise of one run: not known yet; the baseline, which runs first, tells (or ktrial timed "
            "calibrate)"
        )
    elif noise:
        lines.append(f"noise of one run: {number_format.percentage(noise)} ({plan['noise_from']})")
    else:
        lines.append("noise of one run: none (exact mode)")
    if smallest is not None:
        lines.append(f"smallest gain that this budget can show: {number_format.percentage(smallest)}")
    runs, seconds, seconds_of_run = plan["runs"], plan["seconds"], plan["run_seconds"]
    budget = (
        f"at most {number_format.counted(runs, 'run')}"
        if runs is not None
        else "as many runs as there is time for"
    )
    if plan["at_once"] > 1:
        budget += f", {plan['at_once']} at once"
    if seconds is not None:
        about = "" if plan["runs"] is None else "about "
        budget += f", {about}{number_format.duration(seconds)}"
    elif seconds_of_run is None:
        budget += "; how long a run takes, the first one tells"
    lines.append(f"budget: {budget}")
    if shares := plan["shares"]:
        lines.append(
            f"  of them: {shares['calibrate']} for the baseline, {shares['explore']} to explore, "
            f"{shares['contend']} for contenders, {shares['ablate']} to take knobs back, "
            f"{shares['confirm']} to confirm"
        )
    return lines


def print_tuned(
    study: Study,
    tuned: Tuned,
    answer: Answer | None,
    number: int,
    console: Console,
    *,
    whole: bool = False,
    done: Sequence[str] = (),
) -> None:
    """The answer with its settings, what was dropped, what went wrong: 25 lines, or all.

    `number`: in its store. `done`: what was written or put in force, a line each.
    """
    screen = Screen(console, whole=whole, more=f"ktrial show {number} -v")
    screen.title(f"{study.name}: {goal_text(tuned.goal)}", breakable(_spent(tuned)))
    screen.gap()
    if tuned.comparisons:
        screen.rows(tables.confirmation(tuned.comparisons), noun="metric")
    if answer:
        screen.rows(tables.settings(tuned, answer.in_force), noun="setting")
    if len(tuned.finalists) > 1:
        _add_or_count(screen, tables.finalists(tuned), "finalist", whole=whole)
    screen.lines(list(_dropped(tuned.dropped)), "knob taken back", least=1)
    if tuned.front:
        _add_or_count(screen, tables.front(tuned), "point of the front", whole=whole)
    screen.lines(list(_failed_runs(tuned)), "failure", least=2)
    warnings = [breakable(f"note: {warning.text}; {warning.advice}") for warning in tuned.warnings]
    screen.lines(warnings, "note", least=2, style="yellow")
    if both := two_estimates(tuned):
        screen.lines([breakable(both)], "estimate", style="dim")
    if tuned.seen is not None and answer and tuned.noise:
        seen = breakable(number_format.change(tuned.seen))
        best = f"The best single run of the search showed {seen}: chance is in that."
        screen.lines([best], "remark", style="dim")
    if more := left_open(study, tuned, number):
        screen.lines([breakable(more)], "", least=1)
    for line in done:
        screen.lines([line], "", least=1, wraps=False)
    screen.print(breakable(tuned.answer))


def _add_or_count(screen: Screen, table: Table, noun: str, *, whole: bool) -> None:
    """Of what is beside the answer the terminal says how much there is."""
    if whole:
        screen.rows(table, noun=noun)
    else:
        screen.leave_out(len(table.rows), noun)


def _spent(tuned: Tuned) -> str:
    ran = breakable(number_format.counted(len(tuned.observations), "run"))
    noise = (
        f"noise of one run {number_format.percentage(tuned.noise)}"
        if tuned.noise
        else "no noise (exact mode)"
    )
    smallest = number_format.percentage(tuned.smallest_effect)
    return breakable(
        f"{ran}, {number_format.duration(tuned.seconds)}; {noise}; gains from {smallest} can be shown"
    )


def _dropped(dropped: tuple[Effect, ...]) -> Iterator[str]:
    for effect in dropped:
        names = " and ".join(effect.names)
        why = effect.reason or breakable(f"{number_format.change(effect.ratio)} with it, expected")
        yield f"taken back: {names}: {why}"


def _failed_runs(tuned: Tuned) -> Iterator[str]:
    """How many failed, then the first of them."""
    failed = [observation for observation in tuned.observations if observation.failure]
    if not failed:
        return
    yield f"{breakable(number_format.counted(len(failed), 'run'))} failed:"
    for observation in failed[:_MOST_FAILURES]:
        configuration = (
            ", ".join(f"{name}={value}" for name, value in observation.configuration.items())
            or "the baseline"
        )
        yield f"{shortened(configuration, 60)}: {shortened(observation.failure, 160)}"
    if len(failed) > _MOST_FAILURES:
        yield f"and {len(failed) - _MOST_FAILURES} more"
