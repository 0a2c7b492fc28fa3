"""Directories of results: of the Phoronix Test Suite, and of LKP."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from tests.support.places import FOREIGN
from tests.support.program_texts import read_file

from ktrial.importers import Choices, read_all
from ktrial.importers.directories import files_of
from ktrial.importers.errors import ImportFailed


def lkp_runs(root: Path, *throughputs: float, packed: bool = False) -> Path:
    """A result root with a directory for each run."""
    for run, throughput in enumerate(throughputs):
        directory = root / str(run)
        directory.mkdir(parents=True)
        text = json.dumps({"hackbench.throughput": throughput, "last_state.exit_fail": 0})
        if packed:
            (directory / "stats.json.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (directory / "stats.json").write_text(text)
    return root


def saved_result(directory: Path) -> Path:
    directory.mkdir(parents=True)
    shutil.copy(FOREIGN / "composite.xml", directory)
    return directory


def test_the_runs_of_two_result_roots_of_lkp_are_two_groups(tmp_path: Path) -> None:
    old = lkp_runs(tmp_path / "old", 1000, 1010, 1020)
    new = lkp_runs(tmp_path / "new", 1100, 1110, 1120, packed=True)
    (whole,) = read_all([("", old), ("patched", new)], Choices())
    assert {group.label: group.values for group in whole.families[0].groups} == {
        "old": (1000, 1010, 1020),
        "patched": (1100, 1110, 1120),
    }


def test_more_than_ten_runs_are_in_their_order(tmp_path: Path) -> None:
    root = lkp_runs(tmp_path / "root", *range(1, 13))
    assert [file.path.parent.name for file in files_of([("", root)])] == [str(run) for run in range(12)]


def test_a_saved_result_of_phoronix_is_its_composite_xml(tmp_path: Path) -> None:
    assert read_file(saved_result(tmp_path / "aio")).families == read_file(FOREIGN / "composite.xml").families


def test_all_saved_results_of_phoronix_are_a_file_each(tmp_path: Path) -> None:
    files = [saved_result(tmp_path / name) / "composite.xml" for name in ("a", "b")]
    (tmp_path / "other").mkdir()
    assert [file.path for file in files_of([("", tmp_path)])] == files


def test_a_united_matrix_of_lkp_is_found(tmp_path: Path) -> None:
    (tmp_path / "matrix.json").write_text('{"stats_source": ["a"], "hackbench.throughput": [5.5]}')
    assert read_file(tmp_path).families[0].groups[0].values == (5.5,)


def test_another_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    with pytest.raises(ImportFailed, match="no result of Phoronix, LKP or MMTests"):
        files_of([("", tmp_path)])
