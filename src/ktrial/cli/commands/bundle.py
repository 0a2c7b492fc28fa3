"""`ktrial bundle` and `replicate`: a study in one file, and whether a second run gives the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ktrial.cli.command_line import Argument, BadOption, Option, examples
from ktrial.cli.console import breakable, messages, output, print_json, print_link, say, write_page
from ktrial.cli.options.common import (
    Fleet,
    Html,
    Jobs,
    Json,
    NoHtml,
    Perturbations,
    Signers,
    StoredStudyName,
    StoreOption,
    performed_by_fleet,
    waits_for_machine,
)
from ktrial.cli.options.completion import study_names
from ktrial.cli.studies import find, is_bundle, open_existing, open_store
from ktrial.format.number_format import counted
from ktrial.format.sanitize import one_line

if TYPE_CHECKING:
    from ktrial.bundle.reading import Bundle
    from ktrial.bundle.replicating import Replicated, ReplicationRequest
    from ktrial.bundle.writing import Written
    from ktrial.store.store import Store

CONTRADICTED, UNDECIDED = 1, 3
"""Exit codes of `replicate`."""
_MOST_DIFFERENCES, _MOST_NUMBERS, _MOST_COUNTERS = 10, 12, 5


@examples(
    "ktrial bundle quick -o quick.zip",
    "ktrial bundle quick -o quick.zip --with-kernels --sign ~/.ssh/id_ed25519",
)
def bundle(
    study: StoredStudyName = None,
    file: Path | None = Option(
        None, "--output", "-o", metavar="FILE", help="Write it here; else NAME.zip in this directory."
    ),
    with_kernels: bool = Option(False, "--with-kernels", help="Include the kernels' images and modules."),
    sign: Path | None = Option(None, metavar="KEY", help="Sign it with this OpenSSH key."),
    licence: str | None = Option(None, metavar="SPDX", help="The licence of the data, such as CC-BY-4.0."),
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Write a study, with all that it measured, as one file.

    Others check it: `ktrial replicate FILE` runs it again and compares every number. The same study gives the
    same bytes.
    """
    import re

    from ktrial.bundle.writing import Wanted, write_bundle

    if licence and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,80}", licence):
        problem = f"'{licence}' is not an SPDX identifier; allowed: such as CC-BY-4.0, CC0-1.0"
        raise BadOption("--licence", problem)
    with open_existing(store) as opened, messages().status("") as status:
        stored = find(opened, study)
        path = file or Path(f"{stored.study.name}.zip")
        contents = Wanted(with_kernels=with_kernels, licence=licence or "", key=sign)
        if sign:
            status.stop()  # ssh-keygen may ask for the key's passphrase
        written = write_bundle(opened, stored, path, contents, status.update)
    if json:
        print_json(_written_data(written))
    else:
        _print_written(written)


def _written_data(written: "Written") -> dict[str, Any]:
    contents = written.contents
    return {
        "file": str(written.file),
        "bytes": written.size,
        "sha256": written.digest,
        "signed": written.signed,
        "study": contents.study,
        "trials": contents.trials,
        "planned": contents.planned,
        "kernels": [kernel.model_dump(mode="json", exclude={"origin"}) for kernel in contents.kernels],
        "host_files": list(contents.host_files),
        "licence": contents.licence,
    }


def _print_written(written: "Written") -> None:

    contents = written.contents
    print_link("bundle", written.file, output())
    signed = "signed" if written.signed else "not signed"
    trials = breakable(counted(contents.trials, "trial"))
    print(f"{trials}, {written.size} bytes, {signed}; sha256 {written.digest}")
    if contents.trials < contents.planned:
        messages().print(
            f"{contents.planned - contents.trials} planned trials have not ended: the bundle does not "
            "have them"
        )
    for kernel in contents.kernels:
        if kernel.digest and not (kernel.obtain or kernel.files):
            messages().print(
                f"no command obtains {kernel.asked} on another machine: --with-kernels includes it"
            )
    if contents.host_files:
        names = ", ".join(contents.host_files[:3])
        messages().print(
            f"it does not include these files of this system, and others need their own: {names}"
        )
    if not contents.licence:
        messages().print("it names no licence for the data: add one with --licence CC-BY-4.0")


@dataclass(frozen=True)
class BundleOptions:
    """How the study of a bundle is run again."""

    only: list[str] | None = Option(
        None, metavar="WORKLOAD", help="A bundle: run this workload only; may be repeated."
    )
    perturbations: Perturbations = None
    signers: Signers = None
    host_files: bool = Option(
        False, "--allow-host-files", help="A bundle: give guests the files of this system that it names."
    )
    html: Html = None
    no_html: NoHtml = False
    jobs: Jobs = None
    fleet: Fleet = None

    def refuse(self) -> None:
        """Raise BadOption where one is given: a stored study has no use for them."""
        options = {
            "--only": self.only,
            "--perturbations": self.perturbations,
            "--signers": self.signers,
            "--allow-host-files": self.host_files,
            "--html": self.html,
            "--jobs": self.jobs,
            "--fleet": self.fleet,
        }
        for option, value in options.items():
            if value:
                raise BadOption(
                    option,
                    ("it goes with a bundle; of a stored study, one trial is run again on this system"),
                )


@dataclass(frozen=True)
class StoredTrialOptions:
    """Which trial of a stored study is run again."""

    seed: int | None = Option(
        None, metavar="N", help="A stored study: seed that picks the trial to run again; else 1."
    )
    trial: str | None = Option(
        None,
        metavar="KEY",
        help=("A stored study: run this trial again, even a failed one, and show its console."),
    )

    def refuse(self) -> None:
        """Raise BadOption where one is given: a bundle is run again as a whole."""
        for option, value in {"--seed": self.seed, "--trial": self.trial}.items():
            if value is not None:
                raise BadOption(option, "it goes with a stored study; a bundle is run again as a whole")


@examples(
    "ktrial replicate quick.zip",
    "ktrial replicate quick.zip --only fork --perturbations 1",
    "ktrial replicate quick --seed 2",
)
@waits_for_machine
def replicate(
    study: str | None = Argument(
        None,
        metavar="[FILE|STUDY]",
        help=(
            "A bundle, or a stored study (name, number or file; else the latest), of which one trial is "
            "run again."
        ),
        autocompletion=study_names,
        show_default=False,
    ),
    *,
    of_bundle: BundleOptions,
    of_stored: StoredTrialOptions,
    json: Json = False,
    store: str | None = Option(
        None,
        metavar="FILE|URL",
        help="The store that has the study. For a bundle: a new store.",
    ),
) -> None:
    """Run a study again, and compare every number.

    A bundle is run in guests, and in a store of its own. Exact numbers are compared digit by digit. Verdicts
    are consistent, contradicted or undecided. Of a stored study in exact mode, one trial is run again: it has
    to be the same to the last digit, and nothing is stored. Exit code 1: a number or a verdict is
    contradicted; 3: undecided.
    """
    if study is not None and _means_a_file(study):
        of_stored.refuse()
        with performed_by_fleet(of_bundle.fleet):
            _replicate_bundle(Path(study), of_bundle, Path(store) if store else None, json=json)
    else:
        of_bundle.refuse()
        _repeat_trial(study, of_stored, store, json=json)


def _means_a_file(study: str) -> bool:
    """Whether it is a bundle's file, or would be one if it were there."""
    return is_bundle(study) or study.endswith(".zip") or ("/" in study and not study.endswith(".toml"))


def _replicate_bundle(file: Path, options: BundleOptions, store: Path | None, *, json: bool) -> None:
    import tempfile

    from ktrial.bundle import replicating
    from ktrial.bundle.reading import open_bundle
    from ktrial.cli.progress import progress
    from ktrial.model.replication import Outcome
    from ktrial.report.replication import replication_page as page_of

    request = replicating.ReplicationRequest(
        tuple(options.only or ()), options.perturbations, options.host_files
    )
    with open_bundle(file, options.signers) as opened:
        replicating.study_again(opened, request)  # what is refused is refused before anything is made
        _introduce(opened)
        with (
            tempfile.TemporaryDirectory(prefix="ktrial-bundle-") as directory,
            open_store(Path(directory) / "bundle.db") as first,
            _fresh_store(opened, request, store) as second,
            progress() as observer,
        ):
            replicated = replicating.replicate(
                opened, (first, second), request, observer=observer, jobs=options.jobs
            )
    page = None
    if not options.no_html:
        page = write_page(
            options.html or file.with_name(f"{file.stem}-replicated.html"),
            page_of(replicated.replication, replicated.before, replicated.now),
            "run the same command again: finished trials are kept",
        )
    if json:
        print_json(_replicated_data(replicated, page))
    else:
        _print_replicated(replicated, page)
    outcome = replicated.replication.outcome
    if outcome in {Outcome.CONTRADICTED, Outcome.UNDECIDED}:
        raise typer.Exit(CONTRADICTED if outcome is Outcome.CONTRADICTED else UNDECIDED)


def _introduce(opened: "Bundle") -> None:

    contents = opened.contents
    signed = (
        f"signed by {opened.signer}"
        if opened.signer
        else ("its signature was not checked (--signers checks it)")
    )
    date = contents.ended.date().isoformat()
    say(f"{one_line(contents.study)}: {contents.trials} trials of {date}, ktrial {contents.ktrial}; {signed}")


@contextmanager
def _fresh_store(opened: "Bundle", request: "ReplicationRequest", file: Path | None) -> "Iterator[Store]":
    """A store that has nothing, or the trials of this replication that an interruption left.

    One that is named stays; else it is deleted when all of it has been compared.
    """
    import platformdirs

    from ktrial.model.base import digest

    if file and file.exists():
        raise BadOption("--store", f"{file} is there; a replication needs a store of its own")
    if file:
        with open_store(file) as store:
            yield store
        return
    key = digest([opened.manifest_digest, request.only, request.perturbations])[:16]
    place = Path(platformdirs.user_data_dir("ktrial")) / "replications" / f"{key}.db"
    with open_store(place) as store:
        yield store
    for left in place.parent.glob(f"{place.name}*"):
        left.unlink(missing_ok=True)


def _replicated_data(replicated: "Replicated", page: Path | None) -> dict[str, Any]:
    from ktrial.model.replication import Agreement, Word

    replication = replicated.replication
    return {
        **replication.model_dump(mode="json", exclude={"counters", "trials"}),
        "identical": replication.count(Agreement.IDENTICAL),
        "compared": len(replication.numbers),
        "words": {word.value: replication.said_of(word) for word in Word},
        "counters": dict(zip(("identical", "compared"), replication.counters, strict=True)),
        "trials": dict(zip(("run", "bundled"), replication.trials, strict=True)),
        "answers": {"before": replicated.before.result.answer, "now": replicated.now.result.answer},
        "page": str(page) if page else None,
    }


def _print_replicated(replicated: "Replicated", page: Path | None) -> None:
    from dataclasses import replace

    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Output
    from ktrial.report import replication as tables

    replication, console = replicated.replication, output()
    for kernel in replication.kernels:
        if not kernel.same:
            stand_in = f"{kernel.how} ({kernel.release}) replaces it"
            state = stand_in if kernel.how else f"not available: {kernel.problem}"
            console.print(f"kernel {kernel.asked}: {state}", soft_wrap=True)
    verdicts = tables.verdicts(replication)
    for key in ("before_interval", "now_interval", "metric"):  # for 80 columns
        verdicts = verdicts.adapted(key, outputs=Output.DOCUMENT | Output.PROGRAMS)
    console.print(rendered(verdicts))
    numbers = tables.numbers(replication)
    if numbers.rows:
        console.print()
        console.print(rendered(replace(numbers, rows=numbers.rows[:_MOST_NUMBERS])))
        if len(numbers.rows) > _MOST_NUMBERS:
            print(f"and {len(numbers.rows) - _MOST_NUMBERS} more")
    console.print()
    if replication.exact:
        same, total = replication.counters
        print(f"{same} of {total} event counters are identical")
        for counter in replication.differing_counters[:_MOST_COUNTERS]:
            where = f"{counter.workload}, {counter.treatment}, perturbation {counter.perturbation}"
            values = f"{counter.before:g}, now {counter.now or 0:g}"
            console.print(f"  {counter.counter} ({where}): {values}", soft_wrap=True)
    if replication.likely:
        print(breakable(f"likely reason: {replication.likely}"))
    print(breakable(replication.said))
    if page:
        print_link("page", page, console)


def _repeat_trial(study: str | None, options: StoredTrialOptions, store: str | None, *, json: bool) -> None:
    """Run a stored trial again. Raises typer.Exit where a number is another than it was."""
    from ktrial import machines
    from ktrial.experiment.resources import default_resources
    from ktrial.experiment.stored_trials import differences, drawn_trial, repeated_trial, trial_with_key
    from ktrial.machines import CountingMachine
    from ktrial.model.trial import Outcome

    with open_store(store, read_only=True) as opened:
        stored = find(opened, study)
        seed = 1 if options.seed is None else options.seed
        trials = opened.trials(stored.id)
        before = (
            trial_with_key(stored.study, trials, options.trial)
            if options.trial
            else drawn_trial(stored.study, trials, seed)
        )
    machine = machines.find(stored.study.machine.kind)
    if isinstance(machine, CountingMachine):
        machine.count_by(stored.study.machine.counted_by)
    name = f"{stored.study.name}, trial {before.planned.key}"
    with messages().status("") as status:

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            status.update(f"{name}: {what}")

        again = repeated_trial(stored.study, before, machine, default_resources(), progress)
    differing = differences(before, again)
    if json:
        print_json(
            {
                "study": stored.study.name,
                "trial": before.planned.key,
                "seed": seed,
                "same": not differing,
                "outcome": again.outcome.value,
                "reason": again.reason,
                **({"console": again.console} if options.trial else {}),
                "differences": [vars(difference) for difference in differing],
            }
        )
    elif differing:
        print(f"{name}: {len(differing)} values differ from the stored ones")
        for difference in differing[:_MOST_DIFFERENCES]:
            print(f"  {difference.fact}: {difference.before}, now {difference.repeated}")
    else:
        if options.trial and again.console.strip():
            print(again.console.rstrip())
        if options.trial and again.outcome is not Outcome.COMPLETED:
            print(f"{again.outcome.value}: {again.reason}")
        values = f"{len(again.samples)} numbers and {len(again.counters)} counters"
        print(f"{name}: {values} are the same to the last digit")
    if differing:
        raise typer.Exit(CONTRADICTED)
