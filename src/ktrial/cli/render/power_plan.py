"""What `ktrial plan` prints: how many blocks, and when studies stop."""

from rich.console import Console
from rich.text import Text

from ktrial.analysis.calibration import PowerPlan
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.table import Table, of_texts
from ktrial.stats.sequential.power import MOST_BLOCKS, Power


def print_plan(plan: PowerPlan, console: Console) -> None:
    """Two sentences, and a table of when studies stop."""
    spread, effect, margin = (f"{each * 100:.3g} %" for each in (plan.ratio_spread, plan.effect, plan.margin))
    console.print(Text(f"A block's ratio scatters by {spread} (standard deviation); margin {margin}."))
    aims = (
        (f"find a change of {effect}", plan.find_the_effect),
        ("show that there is no change", plan.show_equivalence),
    )
    for what, power in aims:
        console.print(Text(_sentence(what, power, plan), style="bold"))
    if plan.find_the_effect and plan.find_if_independent:
        console.print(Text(_price(plan.find_the_effect, plan.find_if_independent)))
    console.print()
    console.print(rendered(_table([(what, power) for what, power in aims if power is not None])))


def _sentence(what: str, power: Power | None, plan: PowerPlan) -> str:
    sure = f"{plan.power * 100:g} % of studies"
    if power is None:
        return (
            f"To {what} in {sure}, more than {MOST_BLOCKS} blocks are needed: make the trials steadier first."
        )
    return (
        f"To {what} in {sure}: up to {power.blocks} blocks{_time(power.blocks, plan)}, "
        f"on average {power.average_blocks:.0f}{_time(power.average_blocks, plan)}."
    )


def _price(needed: Power, independent: Power) -> str:
    return (
        "The interval allows for neighbouring blocks that are alike: of blocks that are not, "
        f"{independent.average_blocks:.0f} on average would do instead of {needed.average_blocks:.0f}."
    )


def _time(blocks: float, plan: PowerPlan) -> str:
    return "" if plan.block_seconds is None else f" ({number_format.duration(blocks * plan.block_seconds)})"


def _table(aims: list[tuple[str, Power]]) -> Table:
    """Looks across, aims down: the share of studies that have their verdict by then."""
    looks = sorted({look for _, power in aims for look in power.stopped_by})
    rows = ((what, *(_share(power.stopped_by.get(look)) for look in looks)) for what, power in aims)
    return of_texts(("verdict by block", *map(str, looks)), rows)


def _share(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.0f} %"
