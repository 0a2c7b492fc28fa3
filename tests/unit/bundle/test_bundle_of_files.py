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


def test_large_parts_in_files_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {**vars(report), "study_html": lambda record, _whys: f"<h1>{record.study.name}</h1>"}
    monkeypatch.setattr("ktrial.bundle.writing.report", SimpleNamespace(**quick))
    bundles.fill(tmp_path / "inside.db")
    with open_store(tmp_path / "inside.db") as inside, open_store(tmp_path / "outside.db") as outside:
        number = inside.find("quick").id
        trial = inside.trials(number)[0].model_copy(update={"profiles": (a_profile({("do_fork", ""): 9}),)})
        inside.remove_trials_of(number, [trial.planned.key])
        inside.add_trial(number, trial)
        name_file_place(outside, str(tmp_path / "files"), 0)
        copy_study(inside, outside, number, keeps_number=True)
        assert outside.transactions.read(part_files.parts_outside).parts
    first = bundles.bundle(tmp_path / "inside.db", tmp_path / "a.zip")
    assert bundles.bundle(tmp_path / "outside.db", tmp_path / "b.zip").digest == first.digest
