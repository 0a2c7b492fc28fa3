"""The sources of a series: each patch is applied once, and what comes out is what all of them give."""

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source, a_patch

from ktrial.kernels import silent
from ktrial.kernels.build.patches import BuildSource, patched, source_of
from ktrial.kernels.build.requests import requested
from ktrial.kernels.build.sources import snapshot_of
from ktrial.kernels.errors import PatchNotApplied


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    return a_buildable_source(tmp_path / "linux")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a line for each call of patch(1)."""
    programs, calls = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    calls.touch()
    program = programs / "patch"
    program.write_text(f'#!/bin/sh\necho >>{calls}\nPATH="${{PATH#*:}}" exec patch "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return calls


def patches_of(source: Path, *values: int) -> list[str]:
    """Files of patches, each onto what the one before it has made."""
    names = []
    for number, (old, new) in enumerate(pairwise(values)):
        text = a_patch(source, "sched", "slice = 3", f"slice = {new}").replace(
            "-int slice = 3", f"-int slice = {old}"
        )
        (source.parent / f"{number}.patch").write_text(text)
        names.append(f"{number}.patch")
    return names


def with_patches(source: Path, names: list[str], fuzz: int = 0) -> BuildSource:
    spec = requested(str(source), patches=names, fuzz=fuzz, directory=source.parent)
    with tempfile.TemporaryDirectory() as scratch:
        return source_of(spec, Path(scratch), silent)


def test_each_patch_of_a_series_is_applied_once(source: Path, calls: Path) -> None:
    names = patches_of(source, 3, 4, 5, 6)
    for count in (1, 2, 2, 3, 1):
        files = with_patches(source, names[:count]).overlay.files
        entry = files["kernel/sched.c"]
        assert entry is not None
        assert f"int slice = {3 + count};" in entry[1].decode()
    assert len(calls.read_text().splitlines()) == 3


def test_it_is_what_all_patches_together_give(source: Path, tmp_path: Path) -> None:
    names = patches_of(source, 3, 4, 5)
    with_patches(source, names[:1])
    together = requested(str(source), patches=names, directory=tmp_path)
    (tmp_path / "apart").mkdir()
    plain = patched(snapshot_of(together.source), together.patches, tmp_path / "apart")
    assert with_patches(source, names).overlay == plain


def test_what_does_not_apply_is_told_each_time(source: Path) -> None:
    names = patches_of(source, 3, 4, 5)
    wrong = [names[0], names[0]]
    for _ in range(2):
        with pytest.raises(PatchNotApplied, match="has its change already"):
            with_patches(source, wrong)
    assert with_patches(source, names).overlay.files["kernel/sched.c"] is not None


def test_another_source_has_its_patches_applied_anew(source: Path, calls: Path) -> None:
    names = patches_of(source, 3, 4)
    with_patches(source, names)
    file = source / "kernel/sched.c"
    file.write_text(f"{file.read_text()}int more;\n")
    entry = with_patches(source, names).overlay.files["kernel/sched.c"]
    assert entry is not None
    assert "int more;" in entry[1].decode()
    assert len(calls.read_text().splitlines()) == 2


def test_how_much_fuzz_is_allowed_is_asked_of_each(source: Path) -> None:
    file = source / "kernel/sched.c"
    lines = "".join(f"int line{number};\n" for number in range(40))
    file.write_text(lines)
    (source.parent / "0.patch").write_text(a_patch(source, "sched", "line20", "line_20"))
    file.write_text(lines.replace("line17;", "other17;"))
    assert with_patches(source, ["0.patch"], fuzz=1).overlay.inexact
    with pytest.raises(PatchNotApplied, match="fuzz 1"):
        with_patches(source, ["0.patch"])
