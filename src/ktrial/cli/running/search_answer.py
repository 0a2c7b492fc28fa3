"""The answer of a search: printed, as JSON, as files, as a page, in force; from a run, or from the store."""

from pathlib import Path
from typing import Any

from ktrial.cli.console import output, print_json, say
from ktrial.cli.files import write_page
from ktrial.cli.render.tuning import print_tuned
from ktrial.cli.running.study import reports_beside
from ktrial.errors import Interrupted
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.tuning import Tuned
from ktrial.optimize.deployment_files import Answer, answer_of, write_answer
from ktrial.optimize.search_space import search_of
from ktrial.store import Store, StoredStudy


def end(
    study: Study,
    tuned: Tuned,
    store: Store,
    *,
    json: bool,
    html: Path | None,
    no_html: bool,
    directory: Path | None,
    apply: bool,
) -> None:
    """Write the answer to the directory, apply it where that was asked for, write the report, and print."""
    number = store.study(study)
    answer = _answer(study, tuned, store.trials(number, counted=False))
    files = write_answer(answer, directory) if directory and answer else ()
    applied = put_in_force(study, answer) if apply and answer else ()
    report = None if no_html else _written(study, tuned, answer, number, store.name, html)
    if json:
        print_json(
            {
                **_as_json(study, tuned, answer, store.name, number),
                "files": [str(file) for file in files],
                "applied": list(applied),
                "report": str(report) if report else None,
            }
        )
        return
    print_tuned(study, tuned, answer, number, output())
    for file in files:
        print(f"written: {file}")
    for line in applied:
        print(f"in force: {line}")
    if applied:
        say("to put back what was there: ktrial restore")
    if report:
        print(f"report: {report}")


def show_search(stored: StoredStudy, store: Store, *, json: bool) -> None:
    """What `ktrial show` says of a search. Raises Interrupted where it has not ended."""
    tuned, answer = _ended(stored, store)
    if json:
        print_json(_as_json(stored.study, tuned, answer, store.name, stored.id))
    else:
        print_tuned(stored.study, tuned, answer, stored.id, output())


def report_search(stored: StoredStudy, store: Store, html: Path | None, *, whole: bool = False) -> Path:
    """Write the page of a search anew. Raises Interrupted where it has not ended, ReportNotWritten."""
    tuned, answer = _ended(stored, store)
    return _written(stored.study, tuned, answer, stored.id, store.name, html, whole=whole)


def markdown_of_search(stored: StoredStudy, store: Store) -> str:
    """The search as Markdown. Raises Interrupted where it has not ended."""
    from ktrial.report.markdown.tuning import text

    return text(stored.study, *_ended(stored, store), stored.id)


def with_confirmation(record: StudyRecord, stored: StoredStudy, store: Store) -> StudyRecord:
    """The record of a search's runs, with what its confirmation compared. Raises Interrupted."""
    tuned, _ = _ended(stored, store)
    result = record.result.model_copy(update={"comparisons": tuned.comparisons})
    return record.model_copy(update={"result": result})


def _ended(stored: StoredStudy, store: Store) -> tuple[Tuned, Answer | None]:
    from ktrial.optimize.session import ended

    trials = store.trials(stored.id, counted=False)
    tuned = ended(store, stored)
    if tuned is None:
        what = f"the search {stored.study.name} has {len(trials)} runs, and has not ended"
        raise Interrupted(what=what, hint="ktrial tune --resume goes on with it")
    return tuned, _answer(stored.study, tuned, trials)


def _answer(study: Study, tuned: Tuned, trials: tuple[Trial, ...]) -> Answer | None:
    """With the settings as they were read back in the last run that had them, and that run's kernel."""
    wanted = tuned.confirmed or {}
    for trial in reversed(trials):
        levels = {name: str(level) for name, level in trial.planned.treatment.levels.items()}
        if wanted and levels == wanted and trial.outcome is Outcome.COMPLETED:
            in_force = {name: trial.settings.get(name, value) for name, value in wanted.items()}
            return answer_of(study, tuned, in_force, trial.provenance.kernel_release)
    return answer_of(study, tuned, wanted)


def files_of(study: Study, tuned: Tuned, trials: tuple[Trial, ...], directory: Path) -> tuple[Path, ...]:
    """The answer's files, written; with the settings as they were read back in these trials. Raises
    AnswerNotWritten."""
    answer = _answer(study, tuned, trials)
    return write_answer(answer, directory) if answer else ()


def put_in_force(study: Study, answer: Answer) -> tuple[str, ...]:
    """Set the answer's knobs here, through the journal, to stay."""
    from ktrial.knobs import changing
    from ktrial.target import LocalTarget

    with changing(LocalTarget(), f"tune {study.name}", lasting=True, say=say) as changes:
        done = changes.apply(*answer.configuration.items())
    return tuple(f"{one.name} = {one.now.strip()} (was {one.before.strip()})" for one in done)


def _written(
    study: Study,
    tuned: Tuned,
    answer: Answer | None,
    number: int,
    store: str,
    html: Path | None,
    *,
    whole: bool = False,
) -> Path:
    from ktrial.report.html.tuning import page

    path = html or reports_beside(store) / f"{study.name}-{number}.html"
    return write_page(path, page(study, tuned, answer, number=number, whole=whole), f"ktrial report {number}")


def _as_json(study: Study, tuned: Tuned, answer: Answer | None, store: str, number: int) -> dict[str, Any]:
    return {
        **tuned.model_dump(mode="json"),
        "study": study.name,
        "machine": study.machine.kind,
        "left_out": [one.model_dump() for one in search_of(study)[0].left_out],
        "settings": answer.in_force if answer else {},
        "undecided": tuned.undecided,
        "store": store,
        "id": number,
    }
