"""`ktrial list`: the studies in the store."""

from ktrial.cli.options import Json, StoreOption
from ktrial.cli.terminal import output, print_json, say


def list_studies(store: StoreOption = None, json: Json = False) -> None:
    """List the studies in the store."""
    from rich.table import Table

    from ktrial.report import figures
    from ktrial.report.printable import one_line
    from ktrial.runner.planning import plan
    from ktrial.store import default_location, open_store

    with open_store(store or default_location()) as opened:
        rows = [(one, len(plan(one.study).trials)) for one in opened.studies()]
        name = opened.name
    if json:
        print_json(
            [
                {
                    "id": one.id,
                    "study": one.study.name,
                    "question": one.study.question,
                    "created": one.created.isoformat(),
                    "planned": planned,
                    "finished": one.finished,
                    "failed": one.failed,
                    "store": name,
                }
                for one, planned in rows
            ]
        )
        return
    if not rows:
        say(f"there is no study in {name} yet; run one: ktrial run STUDY.toml")
        return
    table = Table("id", "study", "made", "trials", "question", box=None, pad_edge=False, header_style="bold")
    for one, planned in rows:
        failed = f", {one.failed} failed" if one.failed else ""
        trials = f"{one.finished}/{planned}{failed}"
        made = figures.moment(one.created)
        table.add_row(str(one.id), one_line(one.study.name), made, trials, one_line(one.study.question))
    output().print(table)
