"""Signals that ask for an end: raised at once, told, or kept until they may be raised."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from ktrial import interruption


@pytest.fixture(autouse=True)
def others() -> Iterator[list[int]]:
    """What signals arrive at a handler that was there before."""
    arrived: list[int] = []
    before = [
        (each, signal.signal(each, lambda number, _: arrived.append(number))) for each in interruption.SIGNALS
    ]
    yield arrived
    for each, handler in before:
        signal.signal(each, handler)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", interruption.SIGNALS)
def test_where_nothing_can_be_left_half_done_it_is_raised_at_once(
    number: signal.Signals, others: list[int]
) -> None:
    with interruption.caught(), pytest.raises(KeyboardInterrupt):
        send(number)
    assert not others, "it was raised, and is not delivered again"


def test_what_ends_is_not_interrupted_again(capfd: pytest.CaptureFixture[str]) -> None:
    with interruption.caught():
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGTERM)
        send(signal.SIGTERM)
    assert "it is ending already" in capfd.readouterr().err


def test_the_first_one_is_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one interrupts again what has not ended for long."""
    monkeypatch.setattr(interruption, "PATIENCE_SECONDS", 0.0)
    with interruption.caught():
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        assert interruption.exit_status() == 143
    assert interruption.exit_status() == 130, "none has arrived since"


def test_what_was_asked_for_stays_asked_for() -> None:
    with interruption.caught():
        interruption.check()
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGHUP)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                interruption.check()


def test_deferred_it_is_raised_where_it_is_looked_for(capfd: pytest.CaptureFixture[str]) -> None:
    finished = []

    def work() -> None:
        with interruption.caught(), interruption.deferred():
            with interruption.deferred():
                send(signal.SIGINT)
                send(signal.SIGINT)
                finished.append("inner")
            finished.append("outer")
            interruption.check()
            finished.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert finished == ["inner", "outer"]
    assert "it is ending already" in capfd.readouterr().err


def test_deferred_it_is_raised_at_the_end() -> None:
    def work() -> None:
        with interruption.caught(), interruption.deferred():
            send(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        work()


def test_what_was_only_remembered_reaches_who_had_the_signal_before(others: list[int]) -> None:
    with interruption.deferred():
        send(signal.SIGTERM)
        send(signal.SIGHUP)
        assert not others
    assert others == [signal.SIGTERM]


@pytest.mark.parametrize("before", [True, False], ids=["before it listens", "while it listens"])
def test_who_listens_is_told_once_and_interrupted_at_the_end(before: bool) -> None:
    calls = []

    def work() -> None:
        with interruption.caught(), interruption.deferred():
            if before:
                send(signal.SIGTERM)
            with interruption.listening(lambda: calls.append("an end is asked for")):
                send(signal.SIGTERM)
                send(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert calls == ["an end is asked for"]


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interruption.caught():
        send(signal.SIGHUP)
        interruption.check()


def test_other_threads_are_left_alone(others: list[int]) -> None:
    def work() -> None:
        with interruption.caught(), interruption.deferred(), interruption.listening(lambda: None):
            interruption.check()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    send(signal.SIGINT)
    assert others == [signal.SIGINT]
