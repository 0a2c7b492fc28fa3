"""`ktrial fidelity EXACT TIMED`: do changes that exact mode counts agree with those in real time?"""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import study_names

if TYPE_CHECKING:
    from ktrial.model.fidelity import Change, Fidelity, FidelityPair, FidelityResult, Interval


@examples("ktrial fidelity 12 13", "ktrial fidelity fidelity-exact fidelity-host --json")
def fidelity(
    exact: Annotated[
        str, typer.Argument(metavar="EXACT", help="A stored study that counts.", autocompletion=study_names)
    ],
    timed: Annotated[
        str,
        typer.Argument(
            metavar="TIMED", help="One of the same treatments in real time.", autocompletion=study_names
        ),
    ],
    seed: Annotated[
        int, typer.Option(metavar="N", help="Draws the half that is held out, and the bootstrap.")
    ] = 1,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Compare counted changes with those in real time.

    Of two stored studies with the same treatments and workloads: signs, correlations, error, disagreements.
    """
    from ktrial.analysis.fidelity import fidelity as compared
    from ktrial.analysis.result import record
    from ktrial.cli.console import print_json
    from ktrial.cli.options.stored_study import find, open_existing

    with open_existing(store) as opened:
        counted, measured = (record(opened, find(opened, one).id) for one in (exact, timed))
    found = compared(counted, measured, seed)
    if json:
        sentences = [one.sentence for one in found.all]
        print_json({**found.model_dump(mode="json"), "sentences": sentences})
        return
    _print(found)


def _print(found: "FidelityResult") -> None:
    from ktrial.cli.console import output
    from ktrial.format.sanitize import one_line

    console = output()
    for title, figures in (("All treatments", found.all), ("The half held out", found.held_out)):
        console.print(f"{title}:", style="bold")
        for one in figures:
            console.print(one_line(f"  {one.sentence}"))
            console.print(one_line(f"    {_figures(one)}"))
    for one in found.all:
        for pair in one.disagreements:
            console.print(one_line(f"Other sign by {one.count}: {_pair(pair, one.count)}"))
    for reason in found.left_out:
        console.print(one_line(f"Left out: {reason}"))


def _figures(one: "Fidelity") -> str:
    if one.rms_error is None or one.slope is None:
        return f"no pair is decided on both; {one.undecided_in_exact} only in real time"
    return (
        f"Spearman {_interval(one.spearman)}, Pearson {_interval(one.pearson)}, RMS error of log ratios "
        f"{one.rms_error:.3f}, slope {one.slope:.2f}; {one.undecided_in_exact} decided only in real time"
    )


def _interval(one: "Interval") -> str:
    if one.value is None:
        return "unknown (too few)"
    return f"{one.value:.2f}" + (f" ({one.low:.2f} to {one.high:.2f})" if one.low is not None else "")


def _pair(pair: "FidelityPair", count: str) -> str:
    right = [name for name, each in pair.exact.items() if each.verdict is pair.time.verdict]
    better = f"; {', '.join(right)} has it right" if right else ""
    counted, timed = _change(pair.exact[count]), _change(pair.time)
    return f"{pair.treatment}, {pair.workload}, {pair.metric}: counted {counted}, in time {timed}{better}"


def _change(one: "Change") -> str:
    from ktrial.format import number_format

    return f"{number_format.change(one.ratio)} ({number_format.interval(one.low, one.high)})"
