"""`ktrial store`: look after the store itself: verify, copy, merge, and where its large parts lie."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import Argument, BadOption, Option, command_group, examples
from ktrial.cli.console import messages, print_json, print_texts
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import study_names
from ktrial.cli.studies import open_store
from ktrial.format.number_format import counted, size
from ktrial.model.notation import size_bytes
from ktrial.store.errors import StudyDamaged, StudyNotStored

if TYPE_CHECKING:
    from ktrial.store.copying import Copied
    from ktrial.store.integrity import StudyCheck
    from ktrial.store.store import Store
    from ktrial.store.trial_rows import TrialCheck

app = command_group("Look after the store of trials.")

DAMAGED, NOT_ALL = 1, 1
"""The exit codes where a trial is not what was stored, and where something was not copied."""
From = Annotated[str, typer.Argument(metavar="FROM", help="A store: a file or a URL.")]


@app.declare("verify")
@examples("ktrial store verify", "ktrial store verify quick --remove-damaged")
def verify(
    studies: list[str] | None = Argument(
        None, help="Studies, by name or number; without, all.", metavar="[STUDY…]", autocompletion=study_names
    ),
    store: StoreOption = None,
    remove_damaged: bool = Option(
        False, "--remove-damaged", help="Take damaged trials away, so that they are run again."
    ),
    json: Json = False,
) -> None:
    """Compare studies, answers and trials with their digests.

    No verdict is given from a damaged trial. Exit code 1: something is damaged (and still there).
    """
    with open_store(store, read_only=not remove_damaged) as opened:
        checked: list[CheckedStudy] = []
        with messages().status("") as status:
            for check in _chosen(opened, studies or []):
                status.update(f"{check.name}: reading its trials")
                trials = opened.check_trials(check.id)
                checked.append(CheckedStudy(check, trials, opened.missing_trials(check.id)))
        damaged = [trial for study in checked for trial in study.damaged]
        if remove_damaged:
            opened.remove_trials([trial.trial_id for trial in damaged])
            for study in checked:
                if study.missing or study.damaged:
                    opened.accept_missing_trials(study.check.id)
                if study.check.damaged:
                    opened.remove_damaged(study.check)
    if json:
        print_json([study.data(removed=remove_damaged) for study in checked])
    else:
        _print_verified(checked)
    parts = [part for study in checked for part in study.check.damaged]
    missing = any(study.missing for study in checked)
    if remove_damaged:
        if missing:
            messages().print("the command that ran the study runs the missing trials again")
        if damaged or parts:
            count = len(damaged) + len(parts)
            messages().print(f"{count} removed: the command that ran the study runs them again")
        return
    if missing:
        messages().print(
            "what is missing was in the store: put a copy of it back if there is one; or ktrial store verify "
            "--remove-damaged takes the trials that are there for all, and the command that ran the study "
            "runs the others again"
        )
    if damaged or parts:
        messages().print(
            "take them away: ktrial store verify --remove-damaged; the command that ran the study then runs "
            "them again"
        )
        if any("(its file " in part for trial in damaged for part in trial.damaged):
            messages().print(
                "where a file is lost, the trial's numbers and verdicts are whole: put the file back from a "
                "backup, under its name, and nothing has to be taken away"
            )
        if "study" in parts:
            messages().print(
                "what a study asks for is put right by the command that ran it, and its trials stay; "
                "--remove-damaged takes them away with it"
            )
    if damaged or parts or missing:
        raise typer.Exit(DAMAGED)


class CheckedStudy:
    """A study, its trials as they were checked, and what is said of trials that are missing."""

    def __init__(self, check: "StudyCheck", trials: "tuple[TrialCheck, ...]", missing: str) -> None:
        self.check, self.trials, self.missing = check, trials, missing
        self.damaged = [trial for trial in trials if trial.damaged]

    def data(self, *, removed: bool) -> dict[str, Any]:
        """What `store verify --json` prints of it."""
        return {
            "number": self.check.id,
            "study": self.check.name,
            "damaged_parts": list(self.check.damaged),
            "trials": len(self.trials),
            "damaged": [
                {"trial": trial.key, "what": list(trial.damaged), "removed": removed}
                for trial in self.damaged
            ],
            "missing": self.missing,
        }


def _chosen(store: "Store", names: list[str]) -> "list[StudyCheck]":
    """The studies that are named, or all. Raises StudyNotStored."""
    studies = list(store.check_studies())
    chosen = []
    for name in names:
        named = [study for study in studies if study.name == name]
        named = named or [study for study in studies if str(study.id) == name]
        if not named:
            raise StudyNotStored(store=store.name, study=name, similar="")
        chosen.append(named[-1])
    return chosen if names else studies


def _print_verified(checked: list[CheckedStudy]) -> None:
    """A row a study; then each damaged part, and each damaged trial."""
    rows = (
        (
            str(study.check.id),
            study.check.name,
            str(len(study.trials)),
            str(len(study.damaged) + len(study.check.damaged) + bool(study.missing)),
        )
        for study in checked
    )
    print_texts(("number", "study", "trials", "damaged"), rows)
    for study in checked:
        if study.missing:
            print(f"damaged: {study.check.name}: {study.missing}")
    for study in checked:
        for part in study.check.damaged:
            print(f"damaged: {study.check.name}, {part}: it is not what was stored")
    for study in checked:
        for trial in study.damaged:
            print(f"damaged: {study.check.name}, trial {trial.key}: {', '.join(trial.damaged)}")


@app.declare("copy")
@examples("ktrial store copy ktrial.db postgresql://me@db.example.org/ktrial")
def copy(
    source: From,
    target: str = Argument(..., metavar="TO", help="A new store, or a copy that was interrupted."),
    json: Json = False,
) -> None:
    """Copy a store, from a file to a server or back.

    Numbers, moments and digests stay as they are.

    Each trial is compared with its digest on the way. Interrupted, the same command goes on where it was.
    Exit code 1: something is damaged, and was not copied.
    """
    _copy(source, target, json=json, keeps_number=True)


@app.declare("merge")
@examples("ktrial store merge colleague.db postgresql://me@db.example.org/ktrial")
def merge(
    source: From,
    target: str = Argument(..., metavar="INTO", help="The store that is added to."),
    json: Json = False,
) -> None:
    """Add a store's studies to another one.

    They have new numbers there; of a study that both have, what is missing is added.

    Nothing in INTO is changed. Exit code 1: something is damaged, or both have it and say different things.
    """
    _copy(source, target, json=json, keeps_number=False)


def _copy(source: str, target: str, *, json: bool, keeps_number: bool) -> None:
    from ktrial.store.copying import check_is_copy, copy_study

    copied: list[Copied] = []
    left_out: list[str] = []
    with open_store(source, existing=True) as first, open_store(target) as second:
        if first.name == second.name:
            raise BadOption("FROM", f"both stores are {first.name}")
        if keeps_number:
            check_is_copy(first, second)
        with messages().status("") as status:
            for study in first.check_studies():

                def tell(trials: int, name: str = study.name) -> None:
                    status.update(f"{name}: {trials} trials")

                try:
                    copied.append(copy_study(first, second, study.id, keeps_number=keeps_number, tell=tell))
                except StudyDamaged:
                    left_out.append(f"study {study.id}, {study.name}")
    if json:
        print_json({"studies": [study._asdict() for study in copied], "damaged_studies": left_out})
    else:
        _print_copied(copied, left_out)
    if left_out or any(study.damaged or study.differing for study in copied):
        raise typer.Exit(NOT_ALL)


def _print_copied(copied: "list[Copied]", left_out: list[str]) -> None:
    """A row a study; then what was not copied, and why."""
    rows = (
        (study.number, study.name, study.copied, study.there, len(study.damaged), len(study.differing))
        for study in copied
    )
    print_texts(("number", "study", "copied", "there", "damaged", "differ"), (map(str, row) for row in rows))
    say = messages().print
    for name in left_out:
        say(f"not copied: {name}: it is not what was stored")
    for study in copied:
        for part in study.damaged:
            say(f"not copied: {study.name}, {part}: it is not what was stored")
    for study in copied:
        for part in study.differing:
            say(f"not copied: {study.name}, {part}: the other store has it, and says something else")


@app.declare("files")
@examples("ktrial store files ktrial.files", "ktrial store files s3://lab/ktrial --above 64K")
def files(
    place: str | None = Argument(
        None, metavar="[PLACE|none]", help="A directory, or a URL of fsspec's. Without: where they are now."
    ),
    above: str | None = Option(None, metavar="8K", help="Smaller parts stay inside; else 8K, a page."),
    take_over: bool = Option(
        False, "--take-over", help="The store was moved: its files are this one's from now on."
    ),
    store: StoreOption = None,
    json: Json = False,
) -> None:
    """Keep large parts of trials in files, or say where.

    Large profiles and series lie outside the store then.

    Whoever opens the store finds the place in it. What is stored already stays where it is (ktrial store copy
    moves it). `none`: nothing more goes there.
    """
    from ktrial.store import file_maintenance

    if place is None and not take_over and above is None:
        with open_store(store, read_only=True) as opened:
            _print_place(opened, json=json)
        return
    with open_store(store) as opened:
        if place == "none":
            file_maintenance.forget_file_place(opened)
        else:
            _name_place(opened, place, above, take_over=take_over)
        _print_place(opened, json=json)


def _name_place(store: "Store", place: str | None, above: str | None, *, take_over: bool) -> None:
    from ktrial.store import file_maintenance, part_files
    from ktrial.store.part_files import ABOVE

    before = store.transactions.read(part_files.read_place)
    if place is None and before is None:
        raise BadOption("PLACE", "this store has no files: where are they to be?")
    try:
        size = size_bytes(above, bare=True) if above else before.above if before else ABOVE
    except ValueError as error:
        raise BadOption("--above", error) from None
    file_maintenance.name_file_place(store, place, size, take_over=take_over)


def _print_place(store: "Store", *, json: bool) -> None:
    from ktrial.store import part_files

    place = store.transactions.read(part_files.read_place)
    outside = store.transactions.read(part_files.parts_outside)
    if json:
        facts = {"place": store.files.shown(place), "above": place.above} if place else {"place": None}
        print_json(facts | outside._asdict())
    elif place is None:
        print("all of it is inside; ktrial store files PLACE keeps large profiles and series in files")
    else:
        parts, count, total = outside
        stored = f"{counted(parts, 'part')} in {counted(count, 'file')}, {size(total)}"
        print(f"{store.files.shown(place)}: parts above {size(place.above)}; {stored}")


@app.declare("collect")
@examples("ktrial store collect")
def collect(store: StoreOption = None, json: Json = False) -> None:
    """Take away files that no trial names any more.

    They are of trials that were removed, and of killed writes.

    Others may use the store meanwhile.
    """
    from ktrial.store import file_maintenance

    with open_store(store, existing=True) as opened, messages().status("reading what is there"):
        collected = file_maintenance.collect(opened)
    if json:
        print_json(collected._asdict())
    else:
        print(f"{counted(collected.files, 'file')} taken away, {size(collected.size)}")
