"""The executor that has trials performed by a fleet: who does what, and what becomes of the answers.

One thread of the client decides all of it. Nothing that a worker tells is believed for being told (`checks`).
What is lost with a worker is given to another; what a worker cannot do is told, and it gets no more.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from ktrial.errors import KtrialError
from ktrial.experiment.executor import (
    Broken,
    Ended,
    Event,
    EventQueue,
    Notice,
    Prepared,
    Preparing,
    Started,
    StopRequested,
    TrialOptions,
    Withdrawn,
)
from ktrial.experiment.jobs import Job
from ktrial.experiment.trial import run_trial, without_running
from ktrial.fleet import worker_side
from ktrial.fleet.contents import packed
from ktrial.fleet.errors import FleetError
from ktrial.fleet.membership import Calls, Home, Membership, join_check_of
from ktrial.fleet.trial_queue import (
    Check,
    Checks,
    Entry,
    Member,
    Waiting,
    compared,
    for_member,
    next_group,
    short,
)
from ktrial.fleet.worker_side import Bench, Completed, Failed, Gone, Order, Preparation, Unable
from ktrial.machines import Machine
from ktrial.model.design import PlannedTrial
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.target import Step

_GLANCE_SECONDS = 0.05
_MOST_DEATHS = 3
"""Of workers, while they perform one trial: then it is the trial's doing."""


@dataclass(frozen=True)
class Work:
    """Trials, a second performance of one, or a system that is prepared."""

    member: Member
    entries: tuple[Entry, ...] = ()
    """The trials that are performed, one after another."""
    check: Check | None = None
    """The trial is performed once more."""
    boot: Boot | None = None
    """The system that is prepared."""
    begun: float = field(default_factory=time.monotonic)

    def parts(self, answer: object) -> "Iterator[tuple[Work, object]]":
        """Each trial of it, with its own answer; what the worker did not come to is answered with Gone."""
        if not isinstance(answer, tuple):
            yield self, answer
            return
        replies = [*answer, *[Gone()] * (len(self.entries) - len(answer))]
        for entry, reply in zip(self.entries, replies, strict=True):
            yield replace(self, entries=(entry,)), reply


class FleetExecutor:
    """An Executor."""

    def __init__(self, home: Home, machine: Machine, bench: Bench, options: TrialOptions) -> None:
        """`machine`: the client's own, which says who is right where workers disagree."""
        self._home, self._machine, self._bench, self._options = home, machine, bench, options
        self._events = EventQueue()
        self._calls = Calls(home, self._tell)
        self._membership = Membership(home, join_check_of(machine, bench), self._calls, self._tell)
        self._checks = Checks(home.settings.check_share, options.scope)
        self._waiting = Waiting()
        self._work: dict[int, Work] = {}
        self._held: Ended | None = None
        """The last trial: it ends when no other can be withdrawn any more."""
        self._unended = 0
        self._unsaid: list[DataWarning] = []
        """Of quarantined workers, none of whose trials is run again: the last trial says it."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fleet", daemon=True)
        self._here = ThreadPoolExecutor(1, thread_name_prefix="judge")
        self._judged: list[tuple[Check, list[tuple[Member, Trial]], Future[Trial]]] = []

    def begin(self, trials: Sequence[PlannedTrial], jobs: Mapping[str, Sequence[Job]]) -> None:
        """Hand everything over. `jobs` is by the treatments' keys."""
        packages = {key: packed(jobs[key]) for key in dict.fromkeys(trial.treatment.key for trial in trials)}
        self._home.packages.update({package.digest: package for package in packages.values()})
        for planned in trials:
            key = planned.treatment.key
            steps: list[tuple[Step, ...] | None] = []
            for job in jobs[key]:
                try:
                    steps.append(job.steps(self._machine.mode, planned.perturbation))
                except KtrialError:
                    steps.append(None)  # the worker finds out why there are none
            self._waiting.add(Entry(planned, jobs[key], packages[key], tuple(steps), self._options.scope))
        self._unended = len(trials)
        self._thread.start()

    def next_event(self) -> Event:
        """What has happened next; waits for it."""
        return self._events.next_event()

    def ended_at_hand(self) -> tuple[Ended, ...]:
        """See Executor."""
        return self._events.ended_at_hand()

    def ask_to_stop(self) -> None:
        """Have `next_event` return StopAsked. Safe in a signal handler."""
        self._events.put(StopRequested())

    def stop(self) -> tuple[Trial, ...]:
        """End all that is under way, on every worker; return the trials that had ended before."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._give_up()
        there = [member.address for member in self._home.members.values() if not member.out]
        self._home.connection.tell_all(there, worker_side.end, self._bench.key)
        self._machine.stop()
        self._here.shutdown(wait=True, cancel_futures=True)
        ended = [self._held.trial] if self._held else []
        while not self._events.is_empty:
            event = self._events.next_event()
            ended += [event.trial] if isinstance(event, Ended) else []
        return tuple(ended)

    def close(self) -> None:
        """Wait for the thread, which has nothing left to do."""
        self._thread.join()
        self._give_up()
        self._here.shutdown(wait=True)

    def _give_up(self) -> None:
        """Nobody waits any more for what is under way, and no member counts it: another executor has them."""
        self._calls.give_up()
        for work in self._work.values():
            work.member.busy -= 1
            if work.boot:
                work.member.preparing.discard(work.boot)
        self._work.clear()

    def _tell(self, text: str) -> None:
        self._events.put(Notice(text))

    def _run(self) -> None:
        try:
            while self._unended and not self._stopping.is_set():
                self._membership.look()
                if not self._membership.is_away:
                    self._hand_out()
                for number, answer in self._calls.finished(_GLANCE_SECONDS):
                    self._answered(number, answer)
                self._judge()
                self._end_last()
        except BaseException as error:  # noqa: BLE001 - whoever reads the events raises it
            self._events.put(Broken(error))

    def _hand_out(self) -> None:
        """Give every worker that has room something to do, one thing each in turn."""
        members = [member for member in self._home.members.values() if member.works_for(self._bench.key)]
        slots = sum(member.slots for member in members)
        ahead = 1 if len(self._waiting) > 2 * slots else 0
        most = self._options.jobs
        gives = True
        while gives:
            gives = False
            for member in sorted(members, key=lambda member: member.busy):
                if member.busy < member.slots + ahead and (most is None or len(self._work) < most):
                    gives = self._give(member, members) or gives
        self._check_here(members)

    def _give(self, member: Member, members: Sequence[Member]) -> bool:
        others = [other for other in members if other is not member]
        group = next_group(member, self._bench, self._waiting, others, self._home.pace)
        checks = self._checks.open(self._members_believed())
        check = for_member(checks, member, self._bench, idle=group is None)
        if check and member.has(self._bench, check.entry.boots):
            self._checks.begin(check)
            self._perform(member, (check.entry,), check)
        elif group and member.has(self._bench, group):
            slots = sum(member.slots for member in members)
            most = self._home.pace.at_a_time(len(self._waiting), slots)
            self._perform(member, self._waiting.take(group, most))
        elif member.busy >= member.slots:
            return False  # only what begins at once is given ahead
        elif group:
            self._prepare(member, self._waiting.first(group))
        elif check:
            self._prepare(member, check.entry)
        else:
            return False
        return True

    def _members_believed(self) -> list[Member]:
        members = self._home.members.values()
        return [member for member in members if member.performed and not member.quarantined]

    def _perform(self, member: Member, entries: tuple[Entry, ...], check: Check | None = None) -> None:
        for entry in entries:
            if not entry.started:
                entry.started = True
                self._events.put(Started(entry.planned))
        orders = tuple(
            Order(self._bench, entry.package.digest, entry.planned, entry.steps) for entry in entries
        )
        planned, more = entries[0].planned, f" and {len(entries) - 1} more" if len(entries) > 1 else ""
        what = "check" if check else "trial"
        name = f"ktrial {what} {planned.treatment.label} {planned.perturbation.number}{more}"
        digests = dict.fromkeys(digest for entry in entries for digest in entry.package.digests)
        self._begin(Work(member, entries, check), name, worker_side.perform, orders, tuple(digests))

    def _prepare(self, member: Member, entry: Entry) -> None:
        ready = member.prepared.setdefault(self._bench.key, set())
        boot = next(boot for boot in entry.boots if boot not in ready)
        number = entry.boots.index(boot)
        member.preparing.add(boot)
        self._events.put(Preparing(boot, f"preparing on {member.name}"))
        order = Preparation(self._bench, entry.package.digest, number)
        name = f"ktrial prepares {boot.kernel.name}"
        self._begin(Work(member, boot=boot), name, worker_side.prepare, order, entry.package.digests)

    def _begin(
        self, work: Work, name: str, function: Callable[[Any], object], order: object, digests: Sequence[str]
    ) -> None:
        work.member.busy += 1
        self._work[self._calls.begin(work.member.address, name, function, order, digests)] = work

    def _answered(self, number: int, answer: object) -> None:
        if number not in self._work:
            self._membership.answered(number, answer)
            return
        work = self._work.pop(number)
        work.member.busy -= 1
        if work.boot:
            work.member.preparing.discard(work.boot)
        for part, reply in work.parts(answer):
            self._settle(part, reply)

    def _settle(self, work: Work, answer: object) -> None:
        if isinstance(answer, Failed):
            raise answer.error(work.member.name)
        if isinstance(answer, Completed):
            self._done(work, answer)
            return
        if isinstance(answer, Unable):
            self._membership.dismiss(work.member, answer.problem, answer.advice)
        self._undone(work, died=isinstance(answer, Gone) and answer.died)

    def _done(self, work: Work, answer: Completed) -> None:
        if work.boot:
            work.member.prepared.setdefault(self._bench.key, set()).add(work.boot)
            self._home.pace.saw_preparation(time.monotonic() - work.begun)
            self._events.put(Prepared(work.boot))
            return
        trial = Trial.model_validate_json(answer.trial)
        self._home.pace.saw_trial(trial.seconds)
        if work.check:
            self._performed_again(work.member, work.check, trial)
            return
        (entry,) = work.entries
        if work.member.quarantined:
            self._waiting.add(entry)
        else:
            self._performed(work.member, entry, trial)

    def _undone(self, work: Work, *, died: bool) -> None:
        """Somebody else has to do it."""
        if work.check:
            self._checks.abandon(work.check)
        for entry in work.entries if not work.check else ():
            entry.deaths += died
            if entry.deaths < _MOST_DEATHS:
                self._waiting.add(entry)
                continue
            reason = f"{entry.deaths} workers of the fleet were lost while they ran it"
            kernel = entry.boots[0].kernel.name
            self._end(without_running(entry.planned, Outcome.MACHINE_FAILED, reason, kernel))

    def _performed(self, member: Member, entry: Entry, trial: Trial) -> None:
        if trial.outcome is not Outcome.MACHINE_FAILED:
            entry.result = short(trial)
            member.performed.append(entry)
            self._checks.performed(member, entry)
        provenance = trial.provenance.model_copy(update={"worker": member.name})
        warnings = (*trial.warnings, *entry.warnings)
        self._end(trial.model_copy(update={"provenance": provenance, "warnings": warnings}))

    def _end(self, trial: Trial) -> None:
        if self._unended == 1:
            self._held = Ended(trial)
        else:
            self._unended -= 1
            self._events.put(Ended(trial))

    def _end_last(self) -> None:
        """Once nothing can be withdrawn any more."""
        if self._held is None or self._judged or self._checks.under_way:
            return
        if not self._checks.open(self._members_believed()):
            trial = self._held.trial
            warnings = (*trial.warnings, *self._unsaid)
            self._events.put(Ended(trial.model_copy(update={"warnings": warnings})))
            self._held = None
            self._unended = 0

    def _performed_again(self, member: Member, check: Check, trial: Trial) -> None:
        before = check.entry.result
        if before is None or check.first.quarantined:
            self._checks.end(check)
            return
        if trial.outcome is Outcome.MACHINE_FAILED or member.quarantined:
            self._checks.abandon(check)
            return
        if compared(before, trial):
            self._ask_this_system(check, [(check.first, before), (member, short(trial))])
            return
        self._checks.end(check)
        check.entry.settled = member.confirmed = check.first.confirmed = True

    def _check_here(self, members: Sequence[Member]) -> None:
        """Where there is no second worker this system is the second, unless the fleet is its own."""
        if self._membership.expects_more or self._judged or len(self._waiting) or self._work:
            return
        for check in self._checks.open(self._members_believed()):
            if any(member is not check.first for member in members):
                continue
            if self._home.settings.local_workers:
                check.first.confirmed = True
                self._checks.forget(check.first)
            elif check.entry.result:
                self._checks.begin(check)
                self._ask_this_system(check, [(check.first, check.entry.result)])
            return

    def _ask_this_system(self, check: Check, opinions: list[tuple[Member, Trial]]) -> None:
        entry = check.entry
        rerun = self._here.submit(run_trial, self._machine, entry.planned, entry.jobs, audited=False)
        self._judged.append((check, opinions, rerun))

    def _judge(self) -> None:
        """What this system says to trials of which workers told different digits."""
        for check, opinions, rerun in [judged for judged in self._judged if judged[2].done()]:
            entry = check.entry
            self._judged = [judged for judged in self._judged if judged[2] is not rerun]
            self._checks.end(check)
            try:
                trial = rerun.result()
                problem = trial.reason if trial.outcome is Outcome.MACHINE_FAILED else None
            except KtrialError as error:
                problem = error.message
            if problem is not None:
                raise FleetError(
                    f"Workers returned different digits for {entry.planned.key}, and this system could "
                    f"not say which are right: {problem}",
                    hint="trials that ended before are stored; ktrial doctor says what this system lacks",
                )
            entry.settled = True
            for member, opinion in opinions:
                member.confirmed = True
                if compared(opinion, trial) and not member.quarantined:
                    self._quarantine(member, entry, opinion, trial)

    def _quarantine(self, member: Member, entry: Entry, opinion: Trial, right: Trial) -> None:
        first = compared(opinion, right)[0]
        why = f"{first.fact} was {first.before} there, and is {first.repeated}"
        member.quarantined = True
        self._membership.dismiss(
            member, f"it returned wrong digits ({entry.planned.treatment.label}: {why})", ""
        )
        self._checks.forget(member)
        again = [entry for entry in member.performed if entry.scope == self._options.scope]
        text = f"worker {member.name} of the fleet returned wrong digits ({why}): it was quarantined"
        warning = DataWarning(
            kind=WarningKind.WORKER_QUARANTINED,
            text=f"{text}, and its trials were run again elsewhere ({len(again)})",
            advice="find out what is wrong with that system (memory?); ktrial replicate runs any trial again",
        )
        self._unsaid += [] if again else [warning]
        for entry in again:
            entry.warnings, entry.result, entry.settled = (*entry.warnings, warning), None, False
        self._withdraw(again, text)

    def _withdraw(self, entries: Sequence[Entry], text: str) -> None:
        """Their trials have ended; one of them may be held. Those of an earlier executor are stored."""
        held, self._held = self._held, None
        ended = tuple(
            entry.planned for entry in entries if held is None or entry.planned != held.trial.planned
        )
        self._unended += len(ended)
        self._events.put(Withdrawn(ended, text) if ended else Notice(text))
        if held and len(ended) == len(entries):
            self._end(held.trial)
        for entry in entries:
            self._waiting.add(entry)
