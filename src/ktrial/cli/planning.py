"""What `ktrial plan` computes and prints."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ktrial import machines
from ktrial.errors import BadAmount, NoMeasurements
from ktrial.importers import Choices, read_all, source_file
from ktrial.model.calibration import Calibration
from ktrial.report import figures
from ktrial.runner.calibration import newest_calibration
from ktrial.stats.analysis import measured_in_blocks
from ktrial.stats.timed import Power, SequentialDesign, blocks_needed, calibrate, ratio_spread
from ktrial.stats.timed.power import MOST_BLOCKS
from ktrial.store import open_store


@dataclass(frozen=True)
class Plan:
    """What a study needs; None where no sensible number of blocks does it."""

    effect: float
    margin: float
    power: float
    ratio_spread: float
    """Standard deviation of a block's log ratio."""
    find_the_effect: Power | None
    show_equivalence: Power | None
    block_seconds: float | None


def spread_of(sd: str | None, calibration: str | None, margin: float, store: str) -> float:
    """Standard deviation of a block's log ratio, from what the user gave. Raises BadAmount, ImportFailed."""
    from ktrial.cli.amounts import share

    if sd is not None and calibration is None:
        return ratio_spread(share("--sd", sd, least=1e-6, most=10.0))
    if calibration is not None and sd is None:
        return _calibration(calibration, margin, store).largest_spread
    hint = "give one of the two: --sd 1.2%, or --from-calibration FILE"
    problem = "one of --sd and --from-calibration has to say how much the machine's numbers scatter"
    raise BadAmount(option="--sd", value=sd or "not given", problem=problem, hint=hint)


def _calibration(named: str, margin: float, store: str) -> Calibration:
    """That in a file; else the newest one of a machine in the store."""
    if Path(named).exists() or named not in machines.names():
        return _calibrated(Path(named), margin)
    with open_store(store) as opened:
        return newest_calibration(opened, named)


def _calibrated(path: Path, margin: float) -> Calibration:
    """The calibration in a file, or that of the A/A blocks in it."""
    file = source_file(path)
    if file.text.lstrip().startswith("{") and '"ratio_spread"' in file.text:
        try:
            return Calibration.model_validate_json(file.text)
        except ValueError as error:
            problem = f"it is no calibration: {str(error).splitlines()[0]}"
            raise NoMeasurements(file=path, format="a calibration", problem=problem) from error
    (imported,) = read_all([("", path)], Choices())
    measured = [measured_in_blocks(family) for family in imported.families if family.blocked]
    if not measured:
        problem = "A/A blocks need a column block, and a column that names the arms"
        raise NoMeasurements(file=path, format=imported.format, problem=problem)
    try:
        return calibrate(measured, SequentialDesign(margin=margin))
    except ValueError as error:
        raise NoMeasurements(file=path, format=imported.format, problem=str(error)) from error


def plan_from(
    *, effect: float, spread: float, margin: float, power: float, block_seconds: float | None
) -> Plan:
    """Blocks for finding the effect, and for showing that there is none. Raises BadAmount: an effect of 0."""
    if effect == 0:
        raise BadAmount(option="--effect", value="0", problem="a change of 0 cannot be found")
    design = SequentialDesign(margin=margin)
    return Plan(
        effect=effect,
        margin=margin,
        power=power,
        ratio_spread=spread,
        find_the_effect=blocks_needed(effect, spread, design, wanted=power),
        show_equivalence=blocks_needed(0.0, spread, design, wanted=power),
        block_seconds=block_seconds,
    )


def print_plan(plan: Plan, console: Console) -> None:
    """Two sentences, and a table of when studies stop."""
    spread, effect, margin = (f"{each * 100:.3g} %" for each in (plan.ratio_spread, plan.effect, plan.margin))
    console.print(Text(f"A block's ratio scatters by {spread} (standard deviation); margin {margin}."))
    aims = (
        (f"find a change of {effect}", plan.find_the_effect),
        ("show that there is no change", plan.show_equivalence),
    )
    for what, found in aims:
        console.print(Text(_sentence(what, found, plan), style="bold"))
    console.print()
    console.print(_table([(what, found) for what, found in aims if found is not None]))


def _sentence(what: str, found: Power | None, plan: Plan) -> str:
    sure = f"{plan.power * 100:g} % of studies"
    if found is None:
        return (
            f"To {what} in {sure}, more than {MOST_BLOCKS} blocks are needed: make the trials steadier first."
        )
    return (
        f"To {what} in {sure}: up to {found.blocks} blocks{_time(found.blocks, plan)}, "
        f"on average {found.average_blocks:.0f}{_time(found.average_blocks, plan)}."
    )


def _time(blocks: float, plan: Plan) -> str:
    return "" if plan.block_seconds is None else f" ({figures.duration(blocks * plan.block_seconds)})"


def _table(aims: list[tuple[str, Power]]) -> Table:
    """Looks across, aims down: the share of studies that have their verdict by then."""
    looks = sorted({look for _, found in aims for look in found.stopped_by})
    table = Table("verdict by block", box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for look in looks:
        table.add_column(str(look), justify="right")
    for what, found in aims:
        shares = [found.stopped_by.get(look) for look in looks]
        table.add_row(what, *("" if share is None else f"{share * 100:.0f} %" for share in shares))
    return table
