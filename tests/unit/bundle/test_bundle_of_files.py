"""The bundle of a study whose large parts lie in files."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support import bundles
from tests.support.profiles import a_profile

from ktrial import report
from ktrial.store import part_files
from ktrial.store.copying import copy_study
from ktrial.store.file_maintenance import name_file_place
from ktrial.store.store import open_store


def test_large_parts_in_files_give_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {**vars(report), "study_html": lambda record, _whys: f"<h1>{record.study.name}</h1>"}
    monkeypatch.setattr("ktrial.bundle.writing.report", SimpleNamespace(**quick))
    bundles.fill(tmp_path / "inside.db")
    with open_store(tmp_path / "inside.db") as first, open_store(tmp_path / "outside.db") as second:
        number = first.find("quick").id
        trial = first.trials(number)[0].model_copy(update={"profiles": (a_profile({("do_fork", ""): 9}),)})
        first.remove_trials_of(number, [trial.planned.key])
        first.add_trial(number, trial)
        name_file_place(second, str(tmp_path / "files"), 0)
        copy_study(first, second, number, keeps_number=True)
        assert second.transactions.read(part_files.parts_outside).parts
    for place in ("inside", "outside"):
        bundles.bundle(tmp_path / f"{place}.db", tmp_path / f"{place}.zip")
    inside, outside = (bundles.files_of(tmp_path / f"{place}.zip") for place in ("inside", "outside"))
    # It names the entry of the store's own log, and the list of digests has its digest.
    differing = {name for name, content in inside.items() if outside.get(name) != content}
    assert inside.keys() == outside.keys()
    assert differing <= {"bundle.json", "manifest-sha256.txt", "ro-crate-metadata.json"}
