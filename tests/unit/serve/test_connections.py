"""Strangers who open connections to `ktrial serve` and ask nothing, take nothing or send too much."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.support.report_records import FIVE, a_record
from tests.support.scripted import wait_until
from tests.support.stored_results import a_store

from ktrial.serve.connections import Limits
from ktrial.serve.content import Content
from ktrial.serve.live import Live
from ktrial.serve.server import Served, Server, application
from ktrial.store.store import Store, open_store

FEW_HUNDRED = 300
HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: "
LONG = 64 << 20
PATIENCE = 600
"""Seconds after which a client that should have been served gives up: nothing is measured by it."""
MOST_CPU_SECONDS = 10
"""For a few hundred connections and twenty pages, which take less than one."""


@contextmanager
def listening(store: Path, limits: Limits) -> Iterator[Server]:
    def opened() -> Store:
        return open_store(store, read_only=True, followed=True)

    served = Served(Content(opened), Live(opened))
    server = Server(application(served), "127.0.0.1", 0, lambda: None, limits)
    server.start()
    try:
        yield server
    finally:
        served.stopping.set()
        server.stop()
        served.content.close()
        served.live.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return a_store(tmp_path / "store", a_record(FIVE))


def connection(server: Server, sent: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    made.sendall(sent)
    return made


def status(server: Server, method: str = "GET", place: str = "/", **headers: str) -> int:
    client = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    client.request(method, place, headers=headers)
    answer = client.getresponse()
    answer.read()
    client.close()
    return answer.status


def is_closed(client: socket.socket) -> bool:
    """Waits until it is, unless something is sent."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_who_asks_is_answered_beside_hundreds_of_half_sent_requests_which_end(store: Path) -> None:
    with listening(store, Limits(connections=FEW_HUNDRED + 10, seconds=1)) as server:
        before = time.process_time()
        stalled = [connection(server, HALF) for _ in range(FEW_HUNDRED)]
        assert [status(server) for _ in range(20)] == [200] * 20
        assert all(is_closed(client) for client in stalled)
        assert status(server) == 200
        assert time.process_time() - before < MOST_CPU_SECONDS


def test_who_asks_is_answered_beside_more_connections_than_there_may_be(store: Path) -> None:
    """Nobody's time is over here: those that came first make room."""
    with listening(store, Limits(connections=50, seconds=PATIENCE)) as server:
        before = time.process_time()
        stalled = [connection(server, HALF) for _ in range(FEW_HUNDRED)]
        assert [status(server) for _ in range(20)] == [200] * 20
        assert all(is_closed(client) for client in stalled[: FEW_HUNDRED - 50])
        assert time.process_time() - before < MOST_CPU_SECONDS


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET",
        HALF,
        b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n" + HALF,
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nfew",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfew\r\n",
    ],
)
def test_a_connection_on_which_no_request_is_finished_ends(store: Path, sent: bytes) -> None:
    with listening(store, Limits(seconds=0.5)) as server, connection(server, sent) as client:
        while not is_closed(client):
            pass


def test_a_request_that_comes_byte_by_byte_is_not_waited_for_longer(store: Path) -> None:
    with listening(store, Limits(seconds=0.5)) as server, connection(server, HALF) as client:
        wait_until(lambda: not sends_on(client, b"x"))


def sends_on(client: socket.socket, more: bytes) -> bool:
    """Whether anybody still takes it."""
    try:
        client.sendall(more)
    except OSError:
        return False
    return True


def test_a_browser_that_follows_what_runs_is_not_cut_off(store: Path) -> None:
    with listening(store, Limits(seconds=0.2)) as server:
        request = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with connection(server, request) as browser, connection(server, HALF) as stalled:
            assert is_closed(stalled)
            with connection(server, HALF) as another:
                assert is_closed(another)
            browser.setblocking(False)
            assert b"event: running" in browser.recv(1 << 16)
            with pytest.raises(BlockingIOError):
                browser.recv(1)


def test_where_all_are_being_answered_another_one_gets_503(store: Path) -> None:
    with listening(store, Limits(connections=3, seconds=PATIENCE)) as server:
        followers = [HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE) for _ in range(3)]
        for follower in followers:
            follower.request("GET", "/events")
            follower.getresponse().readline()
        assert status(server) == 503
        followers.pop().close()
        wait_until(lambda: status(server) == 200)


def test_who_takes_nothing_of_a_long_answer_is_let_go_and_who_is_slow_is_not() -> None:
    async def long(_request: Request) -> Response:
        return PlainTextResponse(b"x" * LONG)

    server = Server(Starlette(routes=[Route("/", long)]), "127.0.0.1", 0, lambda: None, Limits(seconds=1))
    server.start()
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with (
        connection(server, request) as takes_nothing,
        connection(server, request) as slow,
        ThreadPoolExecutor(1) as pool,
    ):
        received = pool.submit(received_slowly, slow)
        wait_until(lambda: was_reset(takes_nothing))
        assert received.result() > LONG
    server.stop()


def received_slowly(client: socket.socket) -> int:
    count = 0
    while count <= LONG and (block := client.recv(1 << 20)):
        count += len(block)
        time.sleep(0.03)
    return count


def was_reset(client: socket.socket) -> bool:
    return client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0


@pytest.mark.parametrize("headers", [{"Content-Length": "1"}, {"Transfer-Encoding": "chunked"}])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_with_a_body_is_refused_before_it_comes(
    store: Path, method: str, headers: dict[str, str]
) -> None:
    with listening(store, Limits()) as server:
        client = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        client.putrequest(method, "/")
        for name, value in headers.items():
            client.putheader(name, value)
        client.endheaders()
        answer = client.getresponse()
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert status(server, **{"Content-Length": "0"}) == 200


def test_a_request_without_end_is_refused(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with listening(store, Limits(seconds=PATIENCE)) as server:
        for start in (HALF, b"GET /"):
            with connection(server, start) as client:
                wait_until(lambda client=client: not sends_on(client, b"x" * 100_000))  # type: ignore[misc]
        assert status(server) == 200
    assert capfd.readouterr().err == "", "strangers fill nobody's terminal"


def test_connections_leave_some_of_the_files_that_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _which: (100, 1000))
    assert Limits().connections_here == 50
    monkeypatch.setattr("resource.getrlimit", lambda _which: (1024, 4096))
    assert Limits().connections_here == 256
