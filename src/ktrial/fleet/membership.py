"""Who is there: workers come, introduce themselves, are refused, and are gone."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ktrial.fleet import worker_side
from ktrial.fleet.calls import Calls
from ktrial.fleet.connection import Connection
from ktrial.fleet.errors import FleetEmpty, FleetOutOfReach
from ktrial.fleet.messages import Bench, Failed, Gone, Introduction
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
            raise FleetEmpty(address=self._home.settings.address, problem=problem)


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
