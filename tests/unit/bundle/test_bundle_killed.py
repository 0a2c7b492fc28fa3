"""A process is killed while it writes a bundle: the file is there whole, or as it was."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from tests.support import bundles
from tests.support.killing import forked

from ktrial.bundle.reading import open_bundle

DAY, NIGHT = 3, 40


@pytest.mark.parametrize(
    "kills", [DAY, pytest.param(NIGHT, marks=pytest.mark.nightly)], ids=["some instants", "many instants"]
)
def test_a_kill_at_any_instant_leaves_a_whole_bundle_or_the_older(kills: int, tmp_path: Path) -> None:
    store, file = tmp_path / "trials.db", tmp_path / "out" / "quick.ktrial"
    file.parent.mkdir()
    bundles.fill(store)
    begin = time.monotonic()
    digest = bundles.bundle(store, file).digest
    seconds, draw = time.monotonic() - begin, random.Random(kills)
    for _ in range(kills):
        process = forked(lambda: bundles.bundle(store, file))
        time.sleep(draw.uniform(0, 1.2 * seconds))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        with open_bundle(file) as opened:
            assert opened.contents.study == "quick"
    assert bundles.bundle(store, file).digest == digest
    assert [path.name for path in file.parent.iterdir()] == [file.name], "nothing half-written stays"
