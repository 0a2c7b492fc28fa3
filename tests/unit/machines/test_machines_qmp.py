"""QEMU's monitor protocol, spoken with the other end of a socket pair."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from ktrial.machines.errors import QemuGone, QemuRefused
from ktrial.machines.qemu.process import Qmp

GREETING = b'{"QMP": {"version": {}, "capabilities": ["oob"]}}\r\n'


@pytest.fixture
def pair() -> Iterator[tuple[Qmp, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        yield Qmp(ours, "exact"), theirs


def during(action: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_negotiation(pair: tuple[Qmp, socket.socket]) -> None:
    qmp, qemu = pair
    qemu.sendall(GREETING + b'{"return": {}, "id": 1}\r\n')
    qmp.negotiate(5)
    assert json.loads(qemu.recv(4096)) == {"execute": "qmp_capabilities", "arguments": {}, "id": 1}


def test_events_between_a_command_and_its_answer_are_kept(pair: tuple[Qmp, socket.socket]) -> None:
    qmp, qemu = pair
    qemu.sendall(b'{"event": "STOP"}\n{"return": {"a": 1}, "id": 1}\n{"event": "RESUME"}\n')
    assert qmp.execute("query-status") == {"a": 1}
    assert [event["event"] for event in qmp.events] == ["STOP", "RESUME"]


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_messages_may_arrive_in_pieces(size: int, pair: tuple[Qmp, socket.socket]) -> None:
    qmp, qemu = pair
    data = b'{"event": "STOP", "data": {"text": "h\xc3\xa4lt"}}\r\n{"return": 5, "id": 1}\r\n'

    def send() -> None:
        for at in range(0, len(data), size):
            qemu.sendall(data[at : at + size])

    thread = during(send)
    assert qmp.execute("query-status") == 5
    thread.join()
    assert qmp.events[0]["data"] == {"text": "hält"}


def test_answers_find_their_questions_in_any_order(pair: tuple[Qmp, socket.socket]) -> None:
    qmp, qemu = pair
    number = qmp.send("qom-get", path="/machine")
    qemu.sendall(b'{"return": "second", "id": 2}\n{"return": "first", "id": 1}\n')
    assert qmp.execute("query-status") == "second"
    assert qmp.answered(number)
    assert qmp.answer(number, "qom-get") == "first"


def test_names_have_hyphens(pair: tuple[Qmp, socket.socket]) -> None:
    qmp, qemu = pair
    qmp.send("migrate-set-parameters", announce_rounds=0)
    assert json.loads(qemu.recv(4096))["arguments"] == {"announce-rounds": 0}


def test_an_error_says_which_command_and_why(pair: tuple[Qmp, socket.socket]) -> None:
    qmp, qemu = pair
    qemu.sendall(b'{"error": {"class": "GenericError", "desc": "no such device"}, "id": 1}\n')
    with pytest.raises(QemuRefused, match="refused qom-get: no such device"):
        qmp.execute("qom-get")


def test_the_end_of_qemu_is_told(pair: tuple[Qmp, socket.socket]) -> None:
    qmp, qemu = pair
    qemu.sendall(b'{"ret')
    qemu.close()
    with pytest.raises(QemuGone, match="query-status"):
        qmp.execute("query-status")


def test_silence_is_told_after_a_while(pair: tuple[Qmp, socket.socket]) -> None:
    qmp, _ = pair
    with pytest.raises(QemuGone, match="greeting"):
        qmp.negotiate(0.05)


def test_descriptors_are_handed_over(pair: tuple[Qmp, socket.socket]) -> None:
    qmp, qemu = pair
    qemu.sendall(b'{"return": {}, "id": 1}\n')
    reading, writing = os.pipe()
    qmp.execute("getfd", (writing,), fdname="x")
    os.close(writing)
    _, received, _, _ = socket.recv_fds(qemu, 4096, 1)
    os.write(received[0], b"through")
    os.close(received[0])
    assert os.read(reading, 100) == b"through"
    os.close(reading)
