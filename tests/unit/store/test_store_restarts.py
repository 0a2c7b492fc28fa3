"""A server that restarts in the middle of a run is waited for: nothing is lost, nothing counted twice."""

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support import databases
from tests.support.databases import Server
from tests.support.making import a_study, a_trial, planned

from ktrial.store.errors import ServerAway
from ktrial.store.store import open_store

TRIALS, WRITERS, RESTARTS = 120, 8, 3
PROCESSES, EACH = 50, 4


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that nobody else uses."""
    with databases.running() as made:
        yield made


@pytest.mark.nightly
def test_a_run_goes_on_after_the_server_was_restarted_and_says_so_once(server: Server) -> None:
    told: list[str] = []
    url, draw, halfway = server.database(), random.Random(1), threading.Semaphore(0)
    with open_store(url) as store, ThreadPoolExecutor(WRITERS + 1) as pool:
        store.transactions.say = told.append
        study = store.study(a_study())

        def add(number: int) -> None:
            store.add_trial(study, a_trial(planned(number=number, order=number)))
            halfway.release()

        writing = [pool.submit(add, number) for number in range(TRIALS)]
        for _ in range(RESTARTS):
            for _ in range(TRIALS // (RESTARTS + 2)):
                halfway.acquire()
            server.stop(draw.choice(["immediate", "fast"]))
            server.start()
        for one in writing:
            one.result()
        trials = store.trials(study)
        assert [trial.planned.order for trial in trials] == list(range(TRIALS))
        assert trials == tuple(a_trial(planned(number=n, order=n)) for n in range(TRIALS))
        assert not any(one.damaged for one in store.check_trials(study))
    waits = [text for text in told if "waiting for its server" in text]
    assert 1 <= len(waits) <= 2 * RESTARTS, "not once for each of the writers"
    assert len([text for text in told if "is there again" in text]) == len(waits)


@pytest.mark.nightly
def test_a_server_that_stays_away_ends_the_wait_with_an_error(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    url = server.database()
    with open_store(url) as store:
        store.transactions.say = told.append
        study = store.study(a_study())
        monkeypatch.setattr("ktrial.store.transactions.WAIT_SECONDS", 0.5)
        server.stop()
        try:
            with pytest.raises(ServerAway, match=r"waited 0 s|waited 1 s") as said:
                store.add_trial(study, a_trial())
            assert "run the same command again" in said.value.advice
            with pytest.raises(ServerAway, match="No such file or directory"):
                open_store(url)
        finally:
            server.start()
        assert len(told) == 1
        assert store.add_trial(study, a_trial())
        assert len(told) == 2


WRITE = """
import sys
from ktrial.store.store import open_store
from tests.support.making import a_study, a_trial, planned
first, each = map(int, sys.argv[2:])
with open_store(sys.argv[1]) as store:
    study = store.study(a_study())
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(first, first + each):
        assert store.add_trial(study, a_trial(planned(number=number, order=number)))
    assert not store.add_trial(study, a_trial(planned(number=first)))
"""


@pytest.mark.nightly
def test_fifty_processes_write_one_store_at_once(server: Server) -> None:
    url = server.database(empty=True)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, url, str(number * EACH), str(EACH)],
            cwd=Path.cwd(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    for one in writers:
        assert one.stdout
        assert one.stdout.readline() == "open\n"
    for one in writers:
        one.communicate("go\n")
    assert [one.returncode for one in writers] == [0] * PROCESSES
    with open_store(url) as store:
        (study,) = store.studies()
        assert study.finished == PROCESSES * EACH
        assert not any(one.damaged for one in store.check_trials(study.id))
