"""`ktrial bisect patches` from the command line: kernels that nobody builds."""

from pathlib import Path

import pytest
from tests.support.bisecting import FORK, SOURCE, FakeSource, Here, a_series, here_in

from ktrial.kernels import Progress
from ktrial.kernels.errors import KernelError, PatchNotApplied
from ktrial.model.kernel import Build, Kernel


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return here_in(tmp_path, monkeypatch, capsys)


def test_patches_are_built_with_the_flags_that_are_given(here: Here, tmp_path: Path) -> None:
    flags: list[dict[str, str]] = []

    class Flagged(FakeSource):
        def build(self, wanted: Build, progress: Progress) -> Kernel:
            flags.append(wanted.make)
            return super().build(wanted, progress)

    here.source(Flagged(lambda on: 900 if "0001.patch" in on else 1000))
    series = a_series(tmp_path, 2)
    said = here.run("bisect", "patches", "--patches", series, "--make", "KCFLAGS=-O3", *SOURCE, *FORK)
    assert said.status == 0
    assert flags
    assert all(one == {"KCFLAGS": "-O3"} for one in flags)


def test_fuzz_is_allowed_where_patches_are_and_the_source_stays_the_build_that_it_is(
    here: Here, tmp_path: Path
) -> None:
    allowed: set[tuple[bool, int]] = set()

    class Fuzzy(FakeSource):
        def build(self, wanted: Build, progress: Progress) -> Kernel:
            allowed.add((bool(wanted.patches), wanted.fuzz))
            return super().build(wanted, progress)

    here.source(Fuzzy(lambda on: 900 if "0001.patch" in on else 1000))
    series = a_series(tmp_path, 2)
    said = here.run("bisect", "patches", "--patches", series, "--fuzz", "2", *SOURCE, *FORK)
    assert said.status == 0
    assert allowed == {(False, 0), (True, 2)}
    assert here.run("bisect", "patches", "--patches", series, "--fuzz", "3", *SOURCE, *FORK).status == 2


def test_the_patch_that_matters_is_found_in_a_series(here: Here, tmp_path: Path) -> None:
    source = here.source(FakeSource(lambda on: 900 if "0011.patch" in on else 1000))
    said = here.run("bisect", "patches", "--patches", a_series(tmp_path, 16), *SOURCE, *FORK)
    assert said.status == 0
    assert "  0011.patch (change 11)" in said.output
    assert "candidate 3: the first 8 of 16 patches" in said.messages
    assert len(source.built) <= 4 + 4


def test_a_patch_that_does_not_apply_alone_is_grouped_with_what_it_needs(here: Here, tmp_path: Path) -> None:
    directory = a_series(tmp_path, 8)
    shared = (directory / "0002.patch").read_text()
    (directory / "0005.patch").write_text(shared.replace("change 2", "change 5"))

    def refuse(on: set[str]) -> KernelError | None:
        facts = {"name": "x", "directory": "x", "path": "0005.patch", "problem": "hunk 1 fails", "advice": ""}
        return PatchNotApplied(**facts) if "0005.patch" in on and "0002.patch" not in on else None

    here.source(FakeSource(lambda on: 900 if "0005.patch" in on else 1000, refuse=refuse))
    said = here.run("bisect", "patches", "--patches", directory, *SOURCE, *FORK)
    assert "  0005.patch (change 5)" in said.output
    assert "goes with what it needs: 0002.patch (change 2); that alone does 0.0 % of it" in said.output
