"""Who is there: workers come, introduce themselves, are refused, and are gone."""

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ktrial.file_store import FileStore
from ktrial.fleet import worker_side
from ktrial.fleet.connection import Connection, Pending, is_lost
from ktrial.fleet.contents import Package
from ktrial.fleet.errors import FleetError, FleetOutOfReach
from ktrial.fleet.settings import FleetSettings
from ktrial.fleet.trial_queue import Member, Pace
from ktrial.fleet.worker_side import Bench, Failed, Gone, Introduction, Lacking, Unable
from ktrial.installation import VERSION
from ktrial.machines import Machine, PortableMachine

_LOOK_SECONDS = 0.25
_AGAIN_SECONDS = 2.0
_GONE = "it is gone"
_MOST_DELIVERIES = 5
"""For one call: a worker that lacks the same again and again does not keep what it takes."""
_PLACE_ADVICE = (
    "files in the fleet's file names a place that this system and all workers reach: ktrial help fleet"
)


class Home(Protocol):
    """What executors of one fleet share."""

    settings: FleetSettings
    members: dict[str, Member]
    packages: dict[str, Package]
    pace: Pace

    @property
    def connection(self) -> Connection:
        """To the scheduler."""
        ...

    @property
    def files(self) -> str:
        """The fleet's place of files."""
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
    digests: tuple[str, ...] = ()
    """Of the contents that the function needs."""

    def has_passed(self, member: Member) -> bool:
        """Whether it has answered, in a way that does not keep it out."""
        return member.passed.get(self.key, False) or (self.key in member.passed and not self.keeps_out)


def join_check_of(machine: Machine, bench: Bench) -> JoinCheck:
    """For trials on the machine."""
    agrees = machine.has_to_agree() if isinstance(machine, PortableMachine) else {}
    expected = {"ktrial": VERSION} | agrees

    def problem(_member: Member, answer: Introduction) -> tuple[str, str]:
        differences = [
            f"{what} is {answer.agrees.get(what, 'unknown')} there, {value} here"
            for what, value in expected.items()
            if answer.agrees.get(what) != value
        ]
        return answer.problem or "; ".join(differences), answer.advice

    return JoinCheck(bench.key, worker_side.introduce, bench, problem)


@dataclass
class _Call:
    worker: str
    name: str
    function: Callable[[Any], object]
    argument: object
    digests: tuple[str, ...]
    """Of the contents that the worker needs for it."""
    future: Pending | None = None
    deliveries: int = 0


class Calls:
    """Calls on workers, of one thread; what is lost is answered with `Gone`.

    What a worker needs for a call lies in the fleet's place of files before the worker is called, and the
    worker takes from there what it lacks.
    """

    def __init__(self, home: Home, tell: Callable[[str], None] = lambda _text: None) -> None:
        """`tell`: what a person has to know."""
        self._home, self._tell = home, tell
        self._put: set[str] = set()
        """Digests of what lies in the place of files."""
        self._calls: dict[int, _Call] = {}
        self._numbers = itertools.count()
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._answers: list[tuple[int, object]] = []

    def begin(
        self,
        worker: str,
        name: str,
        function: Callable[[Any], object],
        argument: object,
        digests: Sequence[str] = (),
    ) -> int:
        """Have the worker at the address call the function, with these contents at hand; the call's number.

        Raises FileStoreFailed.
        """
        number = next(self._numbers)
        self._calls[number] = _Call(worker, name, function, argument, tuple(digests))
        self._submit(number)
        return number

    def finished(self, seconds: float) -> list[tuple[int, object]]:
        """Numbers and answers of the calls that have ended; waits so long for the first."""
        ended = []
        try:
            ended.append(self._ended.get(timeout=0 if self._answers else seconds))
            while True:
                ended.append(self._ended.get_nowait())
        except Empty:
            pass
        futures = {
            number: call.future
            for number in ended
            if (call := self._calls.get(number)) and call.future and call.future.done()
        }
        for number, result in zip(futures, self._home.connection.results(futures.values()), strict=True):
            if isinstance(result, Lacking):
                self._deliver(number, result)
            elif isinstance(result, BaseException):
                self._answers.append((number, Failed(f"{type(result).__name__}: {result}")))
            else:
                self._answers.append((number, Gone() if result is None else result))
        answers, self._answers = self._answers, []
        return [(number, answer) for number, answer in answers if self._calls.pop(number, None)]

    def lose(self, workers: Iterable[str], *, died: bool = False) -> None:
        """What these workers were asked is answered with Gone. `died`: they are not there any more."""
        addresses = set(workers)
        lost = {number: call for number, call in self._calls.items() if call.worker in addresses}
        # Dask would keep them, with what they carry, for a worker of this address.
        if futures := [call.future for call in lost.values() if call.future]:
            self._home.connection.give_up(futures)
        self._answers += [(number, Gone(died)) for number in lost]

    def look_for_lost(self) -> None:
        """What the scheduler has forgotten is answered with Gone."""
        self.lose({call.worker for call in self._calls.values() if call.future and is_lost(call.future)})

    def give_up(self) -> None:
        """Nobody waits for any of the calls any more."""
        self._home.connection.give_up(call.future for call in self._calls.values() if call.future)
        self._calls.clear()

    def _submit(self, number: int) -> None:
        call, ended = self._calls[number], self._ended
        name = f"{call.name} #{number}.{call.deliveries}"
        if call.digests:
            self._supply(call.digests)
            arguments = (self._home.files, call.digests, call.function, call.argument)
            call.future = self._home.connection.call(call.worker, name, worker_side.supplied, *arguments)
        else:
            call.future = self._home.connection.call(call.worker, name, call.function, call.argument)
        call.future.add_done_callback(lambda _future: ended.put(number))

    def _deliver(self, number: int, lacking: Lacking) -> None:
        """Once more: with what the worker did not ask for before, or has not found whole."""
        call = self._calls[number]
        call.deliveries += 1
        if call.deliveries > _MOST_DELIVERIES:
            problem = f"it does not find the files in {self._home.files}, or does not keep them"
            self._answers.append((number, Unable(problem, _PLACE_ADVICE)))
            return
        for digest in lacking.digests:
            if digest in call.digests:
                self._tell(
                    f"{digest[:12]} is not what a worker finds in {self._home.files}: it is put there anew"
                )
                self._put.discard(digest)
                self._supply([digest], anew=True)
        call.digests = tuple(dict.fromkeys((*call.digests, *lacking.digests)))
        self._submit(number)

    def _supply(self, digests: Iterable[str], *, anew: bool = False) -> None:
        """Have the contents in the fleet's place of files."""
        missing = [digest for digest in digests if digest not in self._put]
        if not missing:
            return
        store, packages = FileStore(self._home.files), self._home.packages
        for digest in missing:
            content = packages[digest].data if digest in packages else self._file(digest)
            store.put(digest, content, anew=anew)
            self._put.add(digest)

    def _file(self, digest: str) -> Path:
        packages = self._home.packages.values()
        return next(package.files[digest] for package in packages if digest in package.files)


class Membership:
    """For one join check. Members are those of the fleet, whatever they were asked when they came."""

    def __init__(self, home: Home, join_check: JoinCheck, calls: Calls, tell: Callable[[str], None]) -> None:
        self._home, self._join_check, self._calls, self._tell = home, join_check, calls, tell
        self._meeting: dict[int, Member] = {}
        self._looked = self._tried = 0.0
        self.is_away = False
        """Whether the scheduler does not answer: nobody can be given anything."""
        self._without_since: float | None = None
        """Since when nobody can be given anything."""

    @property
    def expects_more(self) -> bool:
        """Whether there are workers that have not introduced themselves yet."""
        return bool(self._meeting)

    @property
    def someone_came(self) -> bool:
        """Whether there is a worker that has introduced itself."""
        return any(
            not member.out and self._join_check.has_passed(member) for member in self._home.members.values()
        )

    def look(self) -> None:
        """See who has come and who is gone. Raises FleetOutOfReach, FleetError, after patience."""
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
        for member in members.values():
            if member.address not in seen and member.out != _GONE:
                if not member.out:
                    self._tell(f"worker {member.name} of the fleet is gone: others take over its work")
                member.out = _GONE
                self._calls.lose([member.address], died=True)
        self._calls.look_for_lost()
        check = self._join_check
        for member in members.values():
            if not member.out and check.key not in member.passed and member not in self._meeting.values():
                name = f"ktrial meets {member.name}"
                arguments = (check.function, check.argument, check.digests)
                self._meeting[self._calls.begin(member.address, name, *arguments)] = member
        self._check_someone_is_there(now)

    def answered(self, number: int, answer: object) -> None:
        """A worker has introduced itself."""
        member = self._meeting.pop(number, None)
        if member is None or isinstance(answer, Gone):
            return
        if isinstance(answer, Failed):
            self.dismiss(member, f"it cannot introduce itself ({answer.last_line})", "")
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
        if self.someone_came or self._meeting:
            self._without_since = None
            return
        if self._without_since is None:
            self._without_since = now
        here = [member for member in members if member.out != _GONE]
        refused = [f"{member.name}: {member.out}" for member in here if member.out]
        patient = now - self._without_since <= self._home.settings.patience
        if not patient or (refused and len(refused) == len(here)):
            problem = f" ({'; '.join(refused)})" if refused else ""
            raise FleetError(
                f"Fleet {self._home.settings.address} has no worker that can be used{problem}",
                hint=(
                    "ktrial fleet worker ADDRESS starts one; trials that ended are stored; run the same "
                    "command again"
                ),
            )
