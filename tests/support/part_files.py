"""Trials with a large part, and stores that keep such parts in files."""

import hashlib
from pathlib import Path

from tests.support.backends import Backend
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.unit.store.test_store_fault_points import SAMPLED
from typer.testing import CliRunner, Result

from ktrial.cli.app import app
from ktrial.model.profile import Profile
from ktrial.model.trial import Trial
from ktrial.store import file_maintenance
from ktrial.store.store import Store, open_store

ABOVE = 1000
"""Bytes: a profile of one function has fewer, one of `large` has more."""


def large(seed: int = 0) -> Profile:
    """A profile that does not become small when it is compressed."""
    names = (hashlib.sha256(f"{seed} {number}".encode()).hexdigest() for number in range(40))
    return a_profile({(name, ""): 1000 + seed for name in names})


def measured(number: int = 0, *, seed: int | None = None) -> Trial:
    """A trial with one large part."""
    profile = large(number if seed is None else seed)
    return a_trial(planned(number=number, order=number), profiles=(profile,), sampled=(SAMPLED,))


def with_files(store: Store, directory: Path | str) -> Store:
    file_maintenance.name(store, str(directory), ABOVE)
    return store


def files_in(directory: Path) -> list[Path]:
    return sorted(one for one in directory.rglob("*") if one.is_file() and one.name != "owner")


def only_file_in(directory: Path) -> Path:
    (one,) = files_in(directory)
    return one


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["store", *arguments])


def filled(backend: Backend, directory: Path | None, count: int = 2) -> Backend:
    """With trials of one study, of which the large parts lie in the directory, or inside."""
    with open_store(backend.location) as store:
        if directory:
            with_files(store, directory)
        study = store.study(a_study())
        store.add_trials(study, [measured(number) for number in range(count)])
    return backend
