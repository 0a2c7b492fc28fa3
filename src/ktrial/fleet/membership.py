"""Who is there: workers come, introduce themselves, are refused, and are gone."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ktrial.file_store import FileStore, FileStoreFailed
from ktrial.fleet import worker_side
from ktrial.fleet.connection import Connection, Pending, is_lost
from ktrial.fleet.contents import Package
from ktrial.fleet.errors import FleetError, FleetOutOfReach
from ktrial.fleet.messages import Bench, Failed, Gone, Introduction, Lacking, Taken, Unable
from ktrial.fleet.settings import FleetSettings
from ktrial.fleet.trial_queue import Member
from ktrial.installation import VERSION
from ktrial.machines import Machine, PortableMachine

_LOOK_SECONDS = 0.25


_AGAIN_SECONDS = 2.0


_GONE = "it is gone"


class Home(Protocol):
    """What is looked at."""

    settings: FleetSettings
    members: dict[str, Member]

    @property
    def connection(self) -> Connection:
        """To the scheduler."""
        ...


@dataclass(frozen=True)
class JoinCheck:
    """What workers are asked when they come."""

    key: str
    """In `Member.passed`."""
    function: Callable[[Any], object]
    """Of the worker."""
    argument: object
    problem: Callable[[Member, Any], tuple[str, str]]
    """Why a member that answered so cannot work, and advice; empty: it can."""
    keeps_out: bool = True
    """Who cannot do this gets nothing else to do."""

    def has_passed(self, member: Member) -> bool:
        """Whether it has answered, in a way that does not keep it out."""
        return member.passed.get(self.key, False) or (self.key in member.passed and not self.keeps_out)


def join_check_of(machine: Machine, bench: Bench) -> JoinCheck:
    """For trials on the machine."""
    agrees = machine.has_to_agree() if isinstance(machine, PortableMachine) else {}
    expected = {"ktrial": VERSION} | agrees

    def problem(_member: Member, said: Introduction) -> tuple[str, str]:
        return said.problem or _difference(expected, said.agrees), said.advice

    return JoinCheck(bench.key, worker_side.introduce, bench, problem)


@dataclass
class _Call:
    worker: str
    name: str
    function: Callable[..., object]
    argument: object
    future: Pending | None = None
    deliveries: int = 0


_Part = tuple[str, int, bytes, int]
"""Digest of a file, offset, content there, size of the file."""


@dataclass
class _Delivery:
    """All that goes to one worker now: in order, each file once."""

    digests: set[str] = field(default_factory=set)
    parts: Iterator[_Part] = field(default_factory=lambda: iter(()))
    sent: dict[int, Pending] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)
    """Calls that begin again after it."""


class Calls:
    """Of one thread."""

    def __init__(
        self,
        connection: Connection,
        packages: Mapping[str, Package],
        files: str = "",
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """`packages`: by their digests; where files are taken from that workers lack.

        `files`: the fleet's store of files. `tell`: what a person has to know. Raises BadFileStore.
        """
        self._connection = connection
        self._packages = packages
        self._tell = tell
        self._store = self._reached(files) if files else None
        self._taken: set[tuple[str, str]] = set()
        """Which worker was asked to take which file from the store."""
        self._calls: dict[int, _Call] = {}
        self._deliveries: dict[str, _Delivery] = {}
        self._numbers = itertools.count()
        self._ended: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self._answers: list[tuple[int, object]] = []

    def begin(self, worker: str, name: str, function: Callable[..., object], argument: object) -> int:
        """Have the worker at the address call the function; return the call's number."""
        number = next(self._numbers)
        self._calls[number] = _Call(worker, name, function, argument)
        self._submit(number)
        return number

    def finished(self, seconds: float) -> list[tuple[int, object]]:
        """Numbers and answers of the calls that have ended; waits so long for the first."""
        self._collect(seconds)
        answers, self._answers = self._answers, []
        return [(number, answer) for number, answer in answers if self._calls.pop(number, None)]

    def lose(self, workers: Iterable[str], *, died: bool = False) -> None:
        """What these workers were asked is answered with Gone. `died`: they are not there any more."""
        gone = set(workers)
        lost = {number: one for number, one in self._calls.items() if one.worker in gone}
        futures = [one.future for one in lost.values() if one.future]
        for worker in gone:
            if delivery := self._deliveries.pop(worker, None):
                futures += delivery.sent.values()
        # Dask would keep them, with what they carry, for a worker of this address.
        if futures:
            self._connection.give_up(futures)
        self._answers += [(number, Gone(died)) for number in lost]

    def look_for_lost(self) -> None:
        """What the scheduler has forgotten is answered with Gone."""
        lost = {one.worker for one in self._calls.values() if one.future and is_lost(one.future)}
        lost |= {
            worker
            for worker, delivery in self._deliveries.items()
            if any(is_lost(one) for one in delivery.sent.values())
        }
        self.lose(lost)

    def give_up(self, numbers: Iterable[int] | None = None) -> None:
        """Nobody waits for these calls any more; None: for any."""
        calls = [
            self._calls.pop(number, None) for number in (list(self._calls) if numbers is None else numbers)
        ]
        self._connection.give_up(one.future for one in calls if one and one.future)

    def _submit(self, number: int) -> None:
        call = self._calls[number]
        name = f"{call.name} #{number}.{call.deliveries}"
        call.future = self._connection.call(call.worker, name, call.function, call.argument)
        self._tell_end(call.future, "call", number)

    def _tell_end(self, future: Pending, kind: str, number: int) -> None:
        ended = self._ended
        future.add_done_callback(lambda _future: ended.put((kind, number)))

    def _collect(self, seconds: float) -> None:
        ended = []
        try:
            ended.append(self._ended.get(timeout=0 if self._answers else seconds))
            while True:
                ended.append(self._ended.get_nowait())
        except Empty:
            pass
        futures = {
            number: call.future
            for kind, number in ended
            if kind == "call"
            if (call := self._calls.get(number)) and call.future and call.future.done()
        }
        for number, result in zip(futures, self._connection.results(futures.values()), strict=True):
            self._answered(number, result)
        for kind, number in ended:
            if kind != "call":
                self._part_arrived(kind, number)

    def _answered(self, number: int, result: object) -> None:
        call = self._calls[number]
        if isinstance(result, Lacking):
            self._deliver(number, call, result)
        elif isinstance(result, BaseException):
            problem = f"{type(result).__name__}: {result}"
            self._answers.append((number, Failed(problem)))
        else:
            self._answers.append((number, Gone() if result is None else result))

    def _deliver(self, number: int, call: _Call, lacking: Lacking) -> None:
        call.deliveries += 1
        if call.deliveries > _MOST_DELIVERIES:
            self._answers.append((number, Unable("it does not keep the files that it is given")))
            return
        delivery = self._deliveries.setdefault(call.worker, _Delivery())
        new = [digest for digest in lacking.digests if digest not in delivery.digests]
        delivery.digests.update(new)
        delivery.waiting.append(number)
        # What is not in the store, or is damaged there, is lacking a second time.
        taken = [digest for digest in new if (call.worker, digest) not in self._taken]
        if taken and self._put(taken):
            self._have_taken(call.worker, delivery, tuple(taken))
            new = [digest for digest in new if digest not in taken]
        delivery.parts = itertools.chain(delivery.parts, self._parts(new))
        self._send(call.worker, delivery)

    def _reached(self, files: str) -> FileStore | None:
        try:
            return FileStore(files)
        except FileStoreFailed as error:
            self._tell(f"{error.message}: files go to workers from here")
            return None

    def _put(self, digests: Iterable[str], *, anew: bool = False) -> bool:
        """Have the contents in the fleet's store; whether they are."""
        if self._store is None:
            return False
        try:
            for digest in digests:
                self._store.put(digest, self._content(digest), anew=anew)
        except FileStoreFailed as error:
            self._tell(f"{error.message}: files go to workers from here")
            self._store = None
        return self._store is not None

    def _have_taken(self, worker: str, delivery: _Delivery, digests: tuple[str, ...]) -> None:
        assert self._store is not None
        self._taken.update((worker, digest) for digest in digests)
        number = next(self._numbers)
        name = f"ktrial takes {len(digests)} files #{number}"
        future = self._connection.call(worker, name, worker_side.take, self._store.url, digests)
        delivery.sent[number] = future
        self._tell_end(future, worker, number)

    def _send(self, worker: str, delivery: _Delivery) -> None:
        while len(delivery.sent) < _PARTS_AT_ONCE and (part := next(delivery.parts, None)):
            number = next(self._numbers)
            digest, offset, data, size = part
            name = f"ktrial file {digest[:12]} #{number}"
            future = self._connection.call(worker, name, worker_side.receive, digest, offset, data, size)
            delivery.sent[number] = future
            self._tell_end(future, worker, number)
        if not delivery.sent:
            self._deliveries.pop(worker, None)
            for number in delivery.waiting:
                if number in self._calls:
                    self._submit(number)

    def _part_arrived(self, worker: str, number: int) -> None:
        delivery = self._deliveries.get(worker)
        future = delivery.sent.get(number) if delivery else None
        if delivery is None or future is None:
            return
        (result,) = self._connection.results([future])
        if result is None:
            self.lose([worker])
        elif isinstance(result, BaseException | Unable | Failed):
            self._deliveries.pop(worker, None)
            problem = result if isinstance(result, Unable) else Unable(str(result))
            self._answers += [(waiting, problem) for waiting in delivery.waiting]
        else:
            if isinstance(result, Taken) and result.problem:
                self._tell(f"a worker takes files from here, not from the fleet's store: {result.problem}")
                self._put(result.damaged, anew=True)
            del delivery.sent[number]
            self._send(worker, delivery)

    def _content(self, digest: str) -> Path | bytes:
        package = self._packages.get(digest)
        if package:
            return package.data
        return next(each.files[digest] for each in self._packages.values() if digest in each.files)

    def _parts(self, digests: Iterable[str]) -> Iterator[_Part]:
        for digest in digests:
            content = self._content(digest)
            if isinstance(content, bytes):
                yield from _in_parts(digest, content)
                continue
            size = content.stat().st_size
            with content.open("rb") as file:
                for offset in range(0, max(size, 1), _PART_BYTES):
                    yield digest, offset, file.read(_PART_BYTES), size


class Membership:
    """For one join check. Members are those of the fleet, whatever they were asked when they came."""

    def __init__(self, home: Home, join_check: JoinCheck, calls: Calls, tell: Callable[[str], None]) -> None:
        self._home, self._join_check, self._calls, self._tell = home, join_check, calls, tell
        self._asked: dict[int, Member] = {}
        self._looked = self._tried = 0.0
        self.is_away = False
        """Whether the scheduler does not answer: nobody can be given anything."""
        self._without_since: float | None = None
        """Since when nobody can be given anything."""

    @property
    def expects_more(self) -> bool:
        """Whether there are workers that have not introduced themselves yet."""
        return bool(self._asked)

    @property
    def someone_came(self) -> bool:
        """Whether there is a worker that has introduced itself."""
        return any(not one.out and self._join_check.has_passed(one) for one in self._home.members.values())

    def look(self) -> None:
        """See who has come and who is gone. Raises FleetOutOfReach, FleetEmpty, after patience."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        try:
            seen = self._home.connection.workers()
        except FleetOutOfReach as error:
            self.is_away = True
            self._come_back(error, now)
            return
        self.is_away = False
        members = self._home.members
        for address, worker in seen.items():
            if address not in members or members[address].out == _GONE:
                members[address] = Member(address, worker.name, worker.slots)
        gone = [one for one in members.values() if one.address not in seen and one.out != _GONE]
        for member in gone:
            self._lose(member)
        self._calls.look_for_lost()
        for member in members.values():
            if (
                not member.out
                and self._join_check.key not in member.passed
                and member not in self._asked.values()
            ):
                self._ask(member)
        self._check_someone_is_there(now)

    def answered(self, number: int, answer: object) -> None:
        """A worker has introduced itself."""
        member = self._asked.pop(number, None)
        if member is None or isinstance(answer, Gone):
            return
        if isinstance(answer, Failed):
            self.dismiss(member, f"it cannot introduce itself ({_last_line(answer.problem)})", "")
        else:
            problem, advice = self._join_check.problem(member, answer)
            member.passed[self._join_check.key] = not problem
            if problem and self._join_check.keeps_out:
                self.dismiss(member, problem, advice)

    def dismiss(self, member: Member, why: str, advice: str) -> None:
        """It gets nothing more to do."""
        if member.out:
            return
        member.out = f"{why.rstrip('.')}{f': {advice}' if advice else ''}"
        kind = "quarantined" if member.quarantined else "refused"
        self._home.connection.note(member.address, f"{kind}: {member.out}")
        if not member.quarantined:
            self._tell(f"worker {member.name} of the fleet is refused: {member.out}")

    def _ask(self, member: Member) -> None:
        join_check = self._join_check
        name = f"ktrial meets {member.name}"
        number = self._calls.begin(member.address, name, join_check.function, join_check.argument)
        self._asked[number] = member

    def _lose(self, member: Member) -> None:
        if not member.out:
            self._tell(f"worker {member.name} of the fleet is gone: others do what it had to do")
        member.out = _GONE
        self._calls.lose([member.address], died=True)

    def _come_back(self, error: FleetOutOfReach, now: float) -> None:
        if self._without_since is None:
            self._without_since = now
            self._tell("the scheduler of the fleet does not answer: waiting for it")
        if now - self._without_since > self._home.settings.patience:
            raise error
        self._calls.look_for_lost()
        if now - self._tried < _AGAIN_SECONDS:
            return
        self._tried = now
        try:
            self._home.connection.reopen()
        except FleetOutOfReach:
            return
        for member in self._home.members.values():
            member.out = member.out or _GONE
            self._calls.lose([member.address])

    def _check_someone_is_there(self, now: float) -> None:
        members = self._home.members.values()
        if self.someone_came or self._asked:
            self._without_since = None
            return
        if self._without_since is None:
            self._without_since = now
        refused = [f"{one.name}: {one.out}" for one in members if one.out and one.out != _GONE]
        still = [one for one in members if one.out != _GONE]
        patient = now - self._without_since <= self._home.settings.patience
        if not patient or (refused and len(refused) == len(still)):
            problem = f" ({'; '.join(refused)})" if refused else ""
            raise FleetError(
                f"Fleet {self._home.settings.address} has no worker that can be used{problem}",
                hint=(
                    "ktrial fleet worker ADDRESS starts one; trials that ended are stored; run the same "
                    "command again"
                ),
            )


def _difference(expected: dict[str, str], there: dict[str, str]) -> str:
    """What does not agree, with both sides; empty where all does."""
    other = [
        f"{what} is {there.get(what, 'unknown')} there, {value} here"
        for what, value in expected.items()
        if there.get(what) != value
    ]
    return "; ".join(other)


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else "nothing is known"


# Calls on workers. What a worker lacks for one is sent to it first; what is lost is told as `Gone`.

_PART_BYTES = 2 << 20


_PARTS_AT_ONCE = 4


_MOST_DELIVERIES = 5
"""For one call: a worker that lacks the same again and again does not keep what it is given."""


def _in_parts(digest: str, data: bytes) -> Iterator[_Part]:
    for offset in range(0, max(len(data), 1), _PART_BYTES):
        yield digest, offset, data[offset : offset + _PART_BYTES], len(data)
