"""Mutated bundles: whatever is in one, ktrial says what is wrong; it writes nothing and starts nothing."""

import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support import bundles

from ktrial import report
from ktrial.analysis.result import load_record
from ktrial.bundle.errors import BundleError
from ktrial.bundle.reading import open_bundle
from ktrial.bundle.replicating import ReplicationRequest, study_again
from ktrial.errors import KtrialError
from ktrial.report.csv_and_json import record_as_json
from ktrial.store.store import open_store

OF_EACH_CHANGE, AT_NIGHT = 60, 100_000
OF_A_PART = 5_000
"""The night's archives come in parts, so that a night that is interrupted goes on at the part it was in."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect"}
_MOVES = {"os.symlink", "os.link", "os.rename", "os.mkdir", "os.chmod", "os.chown"}


class Watch:
    """What the process does to its surroundings while it is watched (PEP 578)."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if not self.on:
            return
        if (event == "open" and isinstance(args[2], int) and args[2] & _WRITES) or event in _STARTS | _MOVES:
            self.seen.append(f"{event} {args[0]!s}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.on = True
        try:
            yield
        finally:
            self.on = False


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    where = tmp_path_factory.mktemp("whole")
    bundles.fill(where / "trials.db", workloads=("fork", "pipe"), perturbations=2)
    return bundles.bundle(where / "trials.db", where / "quick.zip").file.read_bytes()


def taken_in(file: Path, store: Path) -> str:
    """Do with it what commands do; how far it came."""
    with open_bundle(file) as bundle:
        trials = list(bundle.trials())
        bundle.result()
        bundle.differences()
        study_again(bundle, ReplicationRequest())
    with open_bundle(file) as bundle, open_store(store) as filled:
        number = bundle.fill(filled)
        record = load_record(filled, number)
        record_as_json(record, filled.name)
        report.study_markdown(record)
    return f"read, {len(trials)} trials"


def end_of(file: Path, store: Path) -> str:
    """How taking it in ends: whatever is no KtrialError is a failure of the test."""
    try:
        return taken_in(file, store)
    except KtrialError as error:
        return type(error).__name__ if error.message else "an error without a message"


def search(
    whole: bytes, watch: Watch, where: Path, seeds: range, mutate: Callable[[random.Random], bytes]
) -> Counter[str]:
    ends: Counter[str] = Counter()
    file, store = where / "mutated.zip", where / "store.db"
    for seed in seeds:
        file.write_bytes(mutate(random.Random(seed)))
        watch.seen.clear()
        with watch.watching():
            ends[end_of(file, store)] += 1
        expected = (f"os.mkdir {where}", f"open {store}")
        # The rights of the file beside the store are those of the store: by its number, once it is open.
        changes = [what for what in watch.seen if not re.fullmatch(r"os\.ch(?:mod|own) \d+", what)]
        outside = [what for what in changes if not what.startswith(expected) or ".." in what]
        assert outside == [], seed
        for left in where.glob("store.db*"):
            left.unlink()
    assert {path.name for path in where.iterdir()} == {"mutated.zip"}
    return ends


def test_damaged_archives(whole: bytes, watch: Watch, tmp_path: Path) -> None:
    ends = search(whole, watch, tmp_path, range(OF_EACH_CHANGE), lambda draw: bundles.damaged(whole, draw))
    assert ends["NotABundle"] > OF_EACH_CHANGE / 10
    assert ends["BundleDamaged"] > OF_EACH_CHANGE / 20


def test_forged_archives(whole: bytes, watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "whole.zip").write_bytes(whole)
    files = bundles.files_of(tmp_path / "whole.zip")
    (tmp_path / "whole.zip").unlink()
    count = OF_EACH_CHANGE // 4
    ends = search(whole, watch, tmp_path, range(count), lambda draw: bundles.forged_archive(files, draw))
    assert ends["BundleDamaged"] > count / 10
    assert sum(number for end, number in ends.items() if end.startswith("read")) > count / 10


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(0, AT_NIGHT, OF_A_PART))
def test_a_hundred_thousand_of_them(whole: bytes, watch: Watch, tmp_path: Path, first: int) -> None:
    (tmp_path / "whole.zip").write_bytes(whole)
    files = bundles.files_of(tmp_path / "whole.zip")
    (tmp_path / "whole.zip").unlink()

    def mutate(draw: random.Random) -> bytes:
        if draw.random() < 0.8:
            return bundles.damaged(whole, draw)
        return bundles.forged_archive(files, draw)

    ends = search(whole, watch, tmp_path, range(first, first + OF_A_PART), mutate)
    assert sum(ends.values()) == OF_A_PART
    assert any(end.startswith("read") for end in ends)


def test_the_watch_sees_what_it_is_there_for(watch: Watch, tmp_path: Path) -> None:
    watch.seen.clear()
    with watch.watching():
        (tmp_path / "x").write_text("x")
    assert any(str(tmp_path / "x") in what for what in watch.seen)
    assert issubclass(BundleError, KtrialError)
