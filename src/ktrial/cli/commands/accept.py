"""`ktrial accept`: a regression may stay, and why."""

from ktrial.cli.command_line import Argument, BadOption, BadUsage, Option, examples
from ktrial.cli.console import output, print_json
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import regression_ids
from ktrial.cli.studies import open_existing


@examples(
    "ktrial accept 3f2a91bc --because 'the multi-gen LRU is worth it'",
    "ktrial accept 3f2a91bc --withdraw",
)
def accept(
    regression: str = Argument(
        ..., metavar="ID", help="As ktrial history lists it.", autocompletion=regression_ids
    ),
    because: str | None = Option(None, "--because", metavar="REASON", help="Why it may stay."),
    by: str | None = Option(None, "--by", metavar="NAME", help="Who says so; else your user name."),
    withdraw: bool = Option(False, "--withdraw", help="Take an acceptance back."),
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Say why a regression may stay.

    ktrial check and watch allow its size from now on, on top of their limit: more than that fails again, and
    so does a regression that was fixed and comes back.
    """
    from ktrial.analysis.history import regressions
    from ktrial.cli.render.regressions import print_accepted
    from ktrial.cli.running.regressions import find_regression
    from ktrial.report.regressions import as_json

    reason = (because or "").strip()
    if withdraw and (because is not None or by is not None):
        raise BadOption("--withdraw", "it takes no --because and no --by")
    if not withdraw and not reason:
        raise BadUsage(
            "Why may it stay? The reason is missing.", hint=f"ktrial accept {regression} --because 'REASON'"
        )
    with open_existing(store) as opened:
        tracked = find_regression(opened, regression)
        if withdraw and tracked.regression.acceptance is None:
            raise BadUsage(
                f"Regression {tracked.regression.id} was not accepted.",
                hint=f"ktrial history {tracked.regression.id} shows what is known of it",
            )
        if withdraw:
            tracked = regressions.withdraw(opened, tracked)
        else:
            tracked = regressions.accept(opened, tracked, reason, by or "")
    if json:
        print_json(as_json(tracked))
    else:
        print_accepted(tracked, output())
