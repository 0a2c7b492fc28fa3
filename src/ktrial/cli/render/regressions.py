"""The regressions of a store on the terminal: all of them, or one."""

from collections.abc import Sequence

from rich.console import Console

from ktrial.cli.render.next_step import same_command
from ktrial.cli.render.screen import Screen
from ktrial.format.table import facts
from ktrial.model.regression import RegressionState, TrackedRegression
from ktrial.report.regressions import (
    OPEN,
    answer,
    facts_of,
    in_order,
    line,
    regressions_table,
    sightings_table,
    size,
    state_words,
)


def print_regressions(tracked: Sequence[TrackedRegression], console: Console, *, whole: bool = False) -> None:
    """A row each, those that are open first, what the newest are made of, and the answer."""
    screen = Screen(console, whole=whole, more=same_command("-v"))
    ordered = in_order(tracked)
    still = [item for item in ordered if item.state in OPEN]
    if ordered:
        screen.title("Regressions", "open ones first")
    screen.rows(regressions_table(ordered), noun="regression")
    causes = [
        f"{item.regression.id} {item.regression.workload} {item.regression.cause}"
        for item in still
        if item.regression.cause
    ]
    screen.lines(causes, "cause", heading="why, in mean instructions under the first perturbation:")
    step = f"ktrial history {still[0].regression.id}" if still else ""
    screen.print(answer(ordered), next_step=step)


def print_accepted(tracked: TrackedRegression, console: Console) -> None:
    """What was accepted, or is no more."""
    screen = Screen(console)
    screen.lines([line(tracked)], "line", least=1, heading="for a pull request or a mail:")
    step = f"ktrial accept {tracked.regression.id}"
    is_accepted = tracked.state is RegressionState.ACCEPTED
    screen.print(
        f"{tracked.regression.workload} {size(tracked)}: {state_words(tracked)}.",
        next_step=f"{step} --withdraw" if is_accepted else f"{step} --because REASON",
    )


def print_regression(tracked: TrackedRegression, console: Console, *, whole: bool = False) -> None:
    """All that is known of one, a line for a pull request, and what became of it."""
    screen = Screen(console, whole=whole, more=same_command("-v"))
    screen.title(f"Regression {tracked.regression.id}")
    screen.rows(facts(facts_of(tracked)), noun="fact")
    screen.rows(sightings_table(tracked), range(len(tracked.sightings))[::-1], "kernel")
    screen.lines([line(tracked)], "line", least=1, heading="for a pull request or a mail:")
    step = f"ktrial accept {tracked.regression.id} --because REASON" if tracked.state in OPEN else ""
    if tracked.state is RegressionState.ACCEPTED:
        step = f"ktrial accept {tracked.regression.id} --withdraw"
    screen.print(
        f"{tracked.regression.workload} {size(tracked)} in {tracked.regression.version.shown}: "
        f"{state_words(tracked)}.",
        next_step=step,
    )
