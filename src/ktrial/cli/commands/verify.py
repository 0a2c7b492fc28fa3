"""`ktrial verify`: run a stored trial again; it must give the same numbers."""

from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoredStudyName, StoreOption

DIFFERS = 1
"""The exit code where a number is another."""
_MOST_SHOWN = 10


@examples("ktrial verify", "ktrial verify quick --seed 2")
def verify(
    study: StoredStudyName = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Draws which trial is run again.")] = 1,
    trial: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="This trial, however it ended, with its console; else one is drawn."
        ),
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Run a stored trial again: it must give the same numbers.

    To the last digit, for a study in exact mode; one in real time is refused. Nothing is stored. Exit code 1:
    a number is another than it was.
    """
    from ktrial import machines
    from ktrial.cli.console import messages, print_json
    from ktrial.cli.options.stored_study import find
    from ktrial.experiment.resources import default_resources
    from ktrial.experiment.stored_trials import differences, drawn_trial, repeated_trial, trial_with_key
    from ktrial.machines import CountingMachine
    from ktrial.model.trial import Outcome
    from ktrial.store import open_store

    with open_store(store, read_only=True) as opened:
        stored = find(opened, study)
        trials = opened.trials(stored.id)
        before = (
            trial_with_key(stored.study, trials, trial) if trial else drawn_trial(stored.study, trials, seed)
        )
    machine = machines.find(stored.study.machine.kind)
    if isinstance(machine, CountingMachine):
        machine.count_by(stored.study.machine.counted_by)
    with messages().status("") as status:

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            status.update(f"{stored.study.name}, trial {before.planned.key}: {what}")

        now = repeated_trial(stored.study, before, machine, default_resources(), progress)
    differing = differences(before, now)
    if json:
        print_json(
            {
                "study": stored.study.name,
                "trial": before.planned.key,
                "seed": seed,
                "same": not differing,
                "outcome": now.outcome.value,
                "reason": now.reason,
                **({"console": now.console} if trial else {}),
                "differences": [vars(one) for one in differing],
            }
        )
    elif differing:
        print(
            f"{stored.study.name}, trial {before.planned.key}: {len(differing)} values are not what they were"
        )
        for one in differing[:_MOST_SHOWN]:
            print(f"  {one.what}: {one.before}, now {one.now}")
    else:
        if trial and now.console.strip():
            print(now.console.rstrip())
        if trial and now.outcome is not Outcome.COMPLETED:
            print(f"{now.outcome.value}: {now.reason}")
        count = f"{len(now.samples)} numbers and {len(now.counters)} counters"
        print(f"{stored.study.name}, trial {before.planned.key}: {count} are the same to the last digit")
    if differing:
        raise typer.Exit(DIFFERS)
