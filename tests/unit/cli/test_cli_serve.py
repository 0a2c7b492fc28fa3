"""`ktrial serve` as a user starts and ends it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.stored_results import a_store

from ktrial.installation import how_to_add

_PROGRAM = (sys.executable, "-c", "from ktrial.cli.main import main; main()")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


@contextmanager
def served(store: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """The process, and the port that it listens at."""
    command = (*_PROGRAM, "serve", "--port", "0", "--store", str(store), *options)
    environment = {**os.environ, "XDG_CACHE_HOME": str(store.parent / "cache")}
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout
            result = process.stdout.readline()
            assert result.startswith("serving at http://"), result
            yield process, int(result.split("/ ")[0].rpartition(":")[2])
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_also_while_somebody_looks(tmp_path: Path, number: signal.Signals) -> None:
    with served(a_store(tmp_path / "store")) as (process, port):
        page, events = (HTTPConnection("127.0.0.1", port, timeout=600) for _ in range(2))
        page.request("GET", "/")
        answer = page.getresponse()
        assert (answer.status, b"Kernel performance" in answer.read()) == (200, True)
        events.request("GET", "/events")
        assert events.getresponse().readline() == b"event: running\n"
        process.send_signal(number)
        _, messages = process.communicate()
        assert (process.returncode, messages) == (0, "ktrial: stopped\n")


@pytest.mark.nightly
def test_nothing_of_the_store_is_changed_by_looking(tmp_path: Path) -> None:
    store = a_store(tmp_path / "store")
    before = store.read_bytes()
    with served(store) as (process, port):
        for place in ("/", "/results/1.html", "/reports/1.html", "/matrix.json"):
            connection = HTTPConnection("127.0.0.1", port, timeout=600)
            connection.request("GET", place)
            assert connection.getresponse().status == 200
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert store.read_bytes() == before


def test_another_address_is_taken_with_a_warning(tmp_path: Path) -> None:
    with served(a_store(tmp_path / "store"), "--address", "0.0.0.0") as (process, _):
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate()
    assert "warning: whoever reaches 0.0.0.0 can read all that is in the store" in messages
    assert "ktrial help serve" in messages


def test_without_its_packages_it_says_what_to_install(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = cli("serve")
    assert result.status == 1
    assert "needs uvicorn, which is not installed" in result.messages
    assert f"install it: {how_to_add('serve')}" in result.messages


def test_a_store_that_is_not_there_and_a_name_for_an_address_are_told(
    cli: CommandLine, tmp_path: Path
) -> None:
    result = cli("serve", "--store", tmp_path / "none.db", "--port", "0")
    assert (result.status, "There is no store" in result.messages) == (2, True)
    result = cli("serve", "--store", a_store(tmp_path / "store"), "--address", "example.org")
    assert (result.status, "not an address of this machine" in result.messages) == (2, True)
