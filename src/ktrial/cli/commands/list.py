"""`ktrial list`: the studies in the store."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.console import output, print_json, say
from ktrial.cli.options.common import Json, StoreOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ktrial.store.study_digests import StudyName
    from ktrial.store.study_summary import StudyRow

All = Annotated[
    bool,
    typer.Option("--all", help="Also what check, watch, baseline and bisect measured for themselves."),
]


@examples("ktrial list", "ktrial list --all")
def list_studies(store: StoreOption = None, all_: All = False, json: Json = False) -> None:
    """List the studies in the store.

    Exit code 1: a study is not what was stored; it is named, and the others are listed.
    """
    name, every, damaged = _studies(store)
    shown = [one for one in every if all_ or one.is_a_users]
    if json:
        print_json([_data(one, name) for one in shown])
    else:
        if shown:
            _print(shown)
        elif not (every or damaged):
            say(f"there is no study in {name} yet; run one: ktrial run STUDY.toml")
        if hidden := len(every) - len(shown):
            say(f"{hidden} more that ktrial measured for check, watch, baseline or bisect: ktrial list --all")
    _tell_damaged(damaged)


def _studies(store: str | None) -> "tuple[str, list[_Listed], Sequence[StudyName]]":
    """The store's name, its studies and the damaged ones: read quickly where that can be done.

    Raises StoreError.
    """
    from ktrial.store import default_location
    from ktrial.store.quick_reader import NoQuickReading, quick_reader

    try:
        with quick_reader(store or default_location()) as reader:
            return reader.name, [_Listed(one) for one in reader.studies()], ()
    except NoQuickReading:
        from ktrial.cli.options.stored_study import open_existing

        with open_existing(store) as opened:
            sound, damaged = opened.readable_studies()
            return opened.name, [_Listed(one.row()) for one in sound], damaged


def _tell_damaged(damaged: "Sequence[StudyName]") -> None:
    """A warning for each; where there is one, `list` ends here."""
    from ktrial.cli.damaged_studies import DAMAGED, tell_left_out

    if tell_left_out([f"study {one.id}, {one.name}" for one in damaged], "listed"):
        raise typer.Exit(DAMAGED)


class _Listed:
    """A study, and what is said of it beside what its row has."""

    def __init__(self, row: "StudyRow") -> None:
        self.row = row
        self.planned = row.planned
        # A study file can choose no name with a colon, and has a search or at least two treatments.
        self.is_a_users = row.is_search or (":" not in row.name and row.treatment_count > 1)


def _data(one: _Listed, store: str) -> dict[str, Any]:
    return {
        "id": one.row.id,
        "study": one.row.name,
        "question": one.row.question,
        "created": one.row.created.isoformat(),
        "planned": one.planned,
        "finished": one.row.finished,
        "failed": one.row.failed,
        "store": store,
    }


def _print(studies: list[_Listed]) -> None:
    from ktrial.cli.render.long_tables import print_table
    from ktrial.format import number_format
    from ktrial.format.sanitize import one_line

    def cells(one: _Listed) -> tuple[str, ...]:
        row = one.row
        failed = f", {row.failed} failed" if row.failed else ""
        trials = f"{row.finished}/{one.planned or '?'}{failed}"
        made = number_format.moment(row.created)
        return str(row.id), one_line(row.name), made, trials, one_line(row.question)

    print_table(("id", "study", "made", "trials", "question"), list(map(cells, studies)), output())
