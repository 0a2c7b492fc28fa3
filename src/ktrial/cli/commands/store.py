"""`ktrial store`: look after the store itself: verify, copy, merge, and where its large parts lie."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import Argument, BadOption, Option, command_group, examples
from ktrial.cli.console import messages, print_json, print_texts
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import study_names
from ktrial.cli.studies import open_store
from ktrial.format.number_format import counted, size
from ktrial.format.sanitize import one_line
from ktrial.model.notation import size_bytes
from ktrial.store.errors import StudyDamaged, StudyNotStored

if TYPE_CHECKING:
    from ktrial.store.completeness import KeptHead, StoreCheck, StudyGaps
    from ktrial.store.copying import Copied
    from ktrial.store.integrity import StudyCheck
    from ktrial.store.store import Store
    from ktrial.store.trial_rows import TrialCheck

app = command_group("Verify, copy and merge stores of trials.")

_MOST_NAMED = 50
"""Missing trials of a study that are named each."""
DAMAGED, NOT_ALL = 1, 1
"""The exit codes where a trial is not what was stored, and where something was not copied."""
From = Annotated[str, typer.Argument(metavar="FROM", help="A store: a file or a URL.")]


@app.declare("verify")
@examples(
    "ktrial store verify",
    "ktrial store verify --bundle quick.ktrial",
    "ktrial store verify quick --remove-damaged",
)
def verify(
    studies: list[str] | None = Argument(
        None, help="Studies, by name or number; else all.", metavar="[STUDY…]", autocompletion=study_names
    ),
    store: StoreOption = None,
    bundle: list[Path] | None = Option(
        None, metavar="FILE", help="A bundle of this store: check that the store still has its trials."
    ),
    remove_damaged: bool = Option(
        False, "--remove-damaged", help="Remove damaged trials, so that they are run again."
    ),
    json: Json = False,
) -> None:
    """Compare what is stored with its digests and its log.

    It also runs the database's own check. No verdict is given from a damaged trial. Exit code 1: something is
    damaged or missing (and still is).
    """
    kept = [_head_in(file) for file in bundle or ()]
    with open_store(store, read_only=not remove_damaged, unchecked=True) as opened:
        with messages().status("the database's own check, and the log") as status:
            whole = opened.check_whole(kept)
            if not json:
                _print_store_problems(whole)
            checked: list[CheckedStudy] = []
            for check in _chosen(opened, studies or []):
                status.update(f"{check.name}: reading its trials")
                checked.append(_checked(opened, check, whole))
        if remove_damaged:
            _remove_damaged(opened, whole, checked, chosen=bool(studies))
    if json:
        print_json(
            {
                "store": _store_data(whole),
                "studies": [study.data(removed=remove_damaged) for study in checked],
            }
        )
    else:
        _print_verified(checked)
    for remark in whole.remarks:
        messages().print(remark)
    if remove_damaged:
        _tell_removed(checked)
        if whole.of_database or (studies and not whole.is_whole):
            _tell_ways_of_store(whole, chosen=bool(studies))
            raise typer.Exit(DAMAGED)
        return
    _tell_ways_on(checked)
    if not whole.is_whole:
        _tell_ways_of_store(whole, chosen=False)
    if not whole.is_whole or any(study.is_damaged for study in checked):
        raise typer.Exit(DAMAGED)


def _head_in(file: Path) -> "KeptHead":
    """The head that a bundle keeps. Raises BundleError; BadOption where it keeps none."""
    from ktrial.bundle.reading import open_bundle
    from ktrial.store.completeness import KeptHead
    from ktrial.store.head_file import Head

    with open_bundle(file) as opened:
        contents = opened.contents
    if not contents.store_head:
        raise BadOption("--bundle", f"{file} does not record the state of the store that it was made from")
    return KeptHead(str(file), Head(contents.store_entry, contents.store_head))


def _checked(store: "Store", check: "StudyCheck", whole: "StoreCheck") -> "CheckedStudy":
    from ktrial.store.completeness import StudyGaps, with_gaps

    gaps = StudyGaps() if whole.of_log else store.gaps(check.id)
    study, trials = with_gaps(check, store.check_trials(check.id), gaps)
    return CheckedStudy(study, trials, store.missing_trials(check.id), gaps)


def _remove_damaged(
    store: "Store", whole: "StoreCheck", checked: "list[CheckedStudy]", *, chosen: bool
) -> None:
    """`chosen`: some studies alone, and nothing of the others is taken for all that there should be."""
    store.accept(
        whole._replace(of_log=(), of_head=(), missing=(), unlogged=()) if chosen else whole,
        {study.check.id: study.gaps for study in checked},
    )
    store.remove_trials([trial.trial_id for study in checked for trial in study.damaged])
    for study in checked:
        if study.missing or study.damaged:
            store.accept_missing_trials(study.check.id)
        if study.check.damaged:
            store.remove_damaged(study.check)


def _tell_removed(checked: "list[CheckedStudy]") -> None:
    if any(study.missing or study.gaps.missing_trials for study in checked):
        messages().print("the command that ran the study runs the missing trials again")
    if count := sum(len(study.damaged) + len(study.check.damaged) for study in checked):
        messages().print(f"{count} removed: the command that ran the study runs them again")


def _tell_ways_on(checked: "list[CheckedStudy]") -> None:
    """How to go on where something is missing or damaged."""
    damaged = [trial for study in checked for trial in study.damaged]
    parts = [part for study in checked for part in study.check.damaged]
    if any(study.is_incomplete for study in checked):
        messages().print(
            "restore a copy of the store that has the missing trials; or accept their loss: ktrial store "
            "verify --remove-damaged, after which the command that ran the study runs them again"
        )
    if damaged or parts:
        messages().print(
            "remove them: ktrial store verify --remove-damaged; the command that ran the study then runs "
            "them again"
        )
    if any("(its file " in part for trial in damaged for part in trial.damaged):
        messages().print(
            "if only a file is lost, the trial's numbers and verdicts are whole: restore the file from a "
            "backup, under its name, and remove nothing"
        )
    if "study" in parts:
        messages().print(
            "a damaged definition of a study is repaired by the command that ran it, and its trials stay; "
            "--remove-damaged removes them too"
        )


def _tell_ways_of_store(whole: "StoreCheck", *, chosen: bool) -> None:
    """The same where the store as a whole is not what it was."""
    say = messages().print
    if whole.of_database:
        say(
            "the database itself is damaged: keep a copy; then restore a backup, or copy what is whole "
            "into a new store: ktrial store copy"
        )
    if whole.of_log or whole.of_head or whole.missing or whole.unlogged:
        say(
            "restore the newest copy of the store; or accept the loss: ktrial store verify "
            "--remove-damaged{' without a study' if chosen else ''}, which keeps what is whole"
            + (" without a study" if chosen else "")
            + " takes what is there, and whole, for all"
        )


def _store_data(whole: "StoreCheck") -> dict[str, Any]:
    """What `store verify --json` prints of the store as a whole."""
    return {
        "log_entries": whole.entries,
        "database": list(whole.of_database),
        "log": [*whole.of_log, *whole.of_head],
        "missing_studies": [study._asdict() for study in whole.missing],
        "studies_not_in_the_log": [study._asdict() for study in whole.unlogged],
    }


def _print_store_problems(whole: "StoreCheck") -> None:
    """A line each."""
    for problem in whole.of_database:
        print(f"damaged: the database: {one_line(problem)}")
    for problem in (*whole.of_log, *whole.of_head):
        print(f"damaged: the log: {one_line(problem)}")
    for study in whole.missing:
        print(f"missing: study {study.id}, {one_line(study.name)}, with {counted(study.trials, 'trial')}")
    for number, name in whole.unlogged:
        print(f"damaged: study {number}, {one_line(name)}: the log does not have it")


class CheckedStudy:
    """A study, its trials as they were checked, and what is said of trials that are missing."""

    def __init__(
        self, check: "StudyCheck", trials: "tuple[TrialCheck, ...]", missing: str, gaps: "StudyGaps"
    ) -> None:
        self.check, self.trials, self.missing, self.gaps = check, trials, missing, gaps
        self.damaged = [trial for trial in trials if trial.damaged]

    @property
    def is_incomplete(self) -> bool:
        """Whether something is missing."""
        return bool(self.missing or self.gaps.missing_trials or self.gaps.missing_parts)

    @property
    def is_damaged(self) -> bool:
        """Whether something is missing, or is not what was stored."""
        return bool(self.is_incomplete or self.damaged or self.check.damaged)

    def data(self, *, removed: bool) -> dict[str, Any]:
        """What `store verify --json` prints of it."""
        return {
            "number": self.check.id,
            "study": self.check.name,
            "damaged_parts": list(self.check.damaged),
            "missing_parts": list(self.gaps.missing_parts),
            "trials": len(self.trials),
            "damaged": [
                {"trial": trial.key, "what": list(trial.damaged), "removed": removed}
                for trial in self.damaged
            ],
            "missing": self.missing,
            "missing_trials": list(self.gaps.missing_trials),
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
            str(
                len(study.damaged)
                + len(study.check.damaged)
                + len(study.gaps.missing_parts)
                + bool(study.missing or study.gaps.missing_trials)
            ),
        )
        for study in checked
    )
    print_texts(("number", "study", "trials", "damaged"), rows)
    for study in checked:
        if study.missing:
            print(f"damaged: {study.check.name}: {study.missing}")
        for key in study.gaps.missing_trials[:_MOST_NAMED]:
            print(f"missing: {study.check.name}, trial {one_line(key)}")
        for part in study.gaps.missing_parts:
            print(f"missing: {study.check.name}, {part}")
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

    Numbers, times and digests stay as they are.

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

    The studies get new numbers there. If both stores have a study, its missing trials are added.

    Nothing that INTO has is changed. Exit code 1: something is damaged, or differs between the two stores.
    """
    _copy(source, target, json=json, keeps_number=False)


def _copy(source: str, target: str, *, json: bool, keeps_number: bool) -> None:
    from ktrial.store.copying import check_is_copy, copy_study

    copied: list[Copied] = []
    left_out: list[str] = []
    with open_store(source, existing=True, unchecked=True) as first, open_store(target) as second:
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
        left_out += [f"study {study.id}, {study.name} (missing)" for study in first.missing_studies()]
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
            say(f"not copied: {study.name}, {part}: the other store has different data for it")


@app.declare("files")
@examples("ktrial store files ktrial.files", "ktrial store files s3://lab/ktrial --above 64K")
def files(
    place: str | None = Argument(
        None,
        metavar="[PLACE|none]",
        help=("A directory, or a URL for fsspec. Without it: show where they are."),
    ),
    above: str | None = Option(None, metavar="8K", help="Smaller parts stay in the store; else 8K, a page."),
    take_over: bool = Option(
        False, "--take-over", help="The store was moved: its files belong to this store from now on."
    ),
    store: StoreOption = None,
    json: Json = False,
) -> None:
    """Keep large parts of trials in files, or say where.

    Large profiles and series are then kept outside the store.

    The store records the place. What is stored already stays where it is (ktrial store copy moves it).
    `none`: nothing more goes there.
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
        raise BadOption("PLACE", "this store has no files yet: name a place for them")
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
        print(
            "everything is in the store itself; ktrial store files PLACE keeps large profiles and series "
            "in files"
        )
    else:
        parts, count, total = outside
        stored = f"{counted(parts, 'part')} in {counted(count, 'file')}, {size(total)}"
        print(f"{store.files.shown(place)}: parts above {size(place.above)}; {stored}")


@app.declare("collect")
@examples("ktrial store collect")
def collect(store: StoreOption = None, json: Json = False) -> None:
    """Delete files that no trial uses any more.

    Removed trials and killed writes leave them.

    Others may use the store meanwhile.
    """
    from ktrial.store import file_maintenance

    with open_store(store, existing=True) as opened, messages().status("reading what is there"):
        collected = file_maintenance.collect(opened)
    if json:
        print_json(collected._asdict())
    else:
        print(f"{counted(collected.files, 'file')} deleted, {size(collected.size)}")
