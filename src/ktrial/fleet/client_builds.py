"""Kernels that a fleet builds: each content once, several at once; what no worker can build is built here."""

import pickle
import threading
import uuid
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from ktrial.experiment.resources import Builder, KernelOutcome, Listener, PortableBuilds, built_here, numbered
from ktrial.file_digests import digest_of_bytes
from ktrial.file_store import FileStore
from ktrial.fleet import worker_side
from ktrial.fleet.contents import Contents, Package
from ktrial.fleet.errors import TransferDamaged
from ktrial.fleet.membership import Calls, Home, JoinCheck, Membership
from ktrial.fleet.trial_queue import Member
from ktrial.fleet.worker_side import BuildCall, BuildQuestion, Built, CanBuild, Failed, Gone, NotBuilt, Unable
from ktrial.installation import VERSION, cache_directory
from ktrial.kernels.errors import KernelError
from ktrial.model.kernel import Build, BuildOrder, Kernel

_GLANCE_SECONDS = 0.05
_MOST_LOSSES = 3
"""Of workers, while they build one kernel: then this system builds it."""


@dataclass(eq=False)
class _Item:
    """A kernel that is to be built."""

    order: BuildOrder
    digest: str
    """Of the pickled order."""
    labels: list[str]
    """All that ask for it."""
    losses: int = 0


@dataclass
class _End:
    """Of an item: its kernel, why there is none, or None: it is to be built here."""

    item: _Item
    outcome: Kernel | KernelError | None


@dataclass
class _Step:
    """How far an item is."""

    item: _Item
    progress: dict[str, Any]
    worker: str


class FleetBuilds:
    """Has one study's kernels built."""

    def __init__(self, home: Home, builder: Builder, listener: Listener) -> None:
        assert builder.elsewhere, "who asks has looked"
        self._home, self._builder, self._listener = home, builder, listener
        self._elsewhere: PortableBuilds = builder.elsewhere()
        self._maker = pickle.dumps(builder.elsewhere)

    def built(self, builds: Mapping[str, Build]) -> Generator[KernelOutcome]:
        """Each kernel as it is had. To close it ends all builds."""
        items: dict[str, _Item] = {}
        here: dict[str, Build] = {}
        for number, (label, build) in enumerate(builds.items(), 1):
            progress = numbered(self._listener.progress(label), number, len(builds))
            try:
                order = None if self._builder.cached(build) else self._elsewhere.order(build, progress)
            except KernelError as error:
                yield label, error
                continue
            if order is None:
                here[label] = build
            elif order.content in items:
                items[order.content].labels.append(label)
            else:
                data = pickle.dumps(order)
                items[order.content] = _Item(order, digest_of_bytes(data), [label])
                package = Package(items[order.content].digest, data, dict(order.files), ())
                self._home.packages[package.digest] = package
        yield from built_here(here, self._builder, self._listener)
        if items:
            yield from self._by_workers(list(items.values()), builds)

    def _by_workers(self, items: list[_Item], builds: Mapping[str, Build]) -> Generator[KernelOutcome]:
        directory = cache_directory() / "fleet"
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=directory) as scratch:
            assignment = _Assignment(self._home, self._elsewhere, self._maker, items, Path(scratch))
            assignment.start()
            try:
                for end in self._ends(assignment.events, len(items)):
                    labels = end.item.labels
                    if isinstance(end.outcome, KernelError):
                        yield from ((label, end.outcome) for label in labels)
                        continue
                    if end.outcome:
                        yield labels[0], end.outcome
                        labels = labels[1:]  # in other words the same is taken from the cache
                    again = {label: builds[label] for label in labels}
                    yield from built_here(again, self._builder, self._listener)
            finally:
                assignment.stop()

    def _ends(self, events: "SimpleQueue[_End | _Step | str | BaseException]", count: int) -> Iterator[_End]:
        while count:
            try:
                event = events.get(timeout=_GLANCE_SECONDS)  # signals are seen between
            except Empty:
                continue
            if isinstance(event, str):
                self._listener.notice(event)
            elif isinstance(event, _Step):
                what = f"{event.progress['what']} on {event.worker}"
                done, total = int(event.progress["done"]), int(event.progress["total"])
                self._listener.progress(event.item.labels[0])(what, done, total)
            elif isinstance(event, BaseException):
                raise event
            else:
                count -= 1
                yield event


class _Assignment(threading.Thread):
    """Says which worker builds what, and takes what was built.

    A worker is asked first whether it can build these. It builds one at a time, and is given no more once
    something of its own kept it from one. A kernel with which three workers were lost is built by the client.
    """

    def __init__(
        self, home: Home, builds: PortableBuilds, maker: bytes, items: list[_Item], scratch: Path
    ) -> None:
        super().__init__(name="fleet builds", daemon=True)
        self.events: SimpleQueue[_End | _Step | str | BaseException] = SimpleQueue()
        self._home, self._builds, self._maker = home, builds, maker
        self._kept = Contents(scratch)
        self._stopping = threading.Event()
        self._waiting, self._items = list(items), {item.digest: item for item in items}
        self._topic = f"ktrial builds {uuid.uuid4().hex}"
        self._calls = Calls(home, self.events.put)
        question = BuildQuestion(maker, tuple(self._items))
        join_check = JoinCheck(
            self._topic,
            worker_side.can_build,
            question,
            self._problem,
            keeps_out=False,
            digests=question.orders,
        )
        self._membership = Membership(home, join_check, self._calls, self.events.put)
        self._can_build: dict[str, set[str]] = {}
        """By the workers' addresses: digests of the orders that they can build."""
        self._work: dict[int, tuple[Member, _Item]] = {}
        self._builders: dict[str, str] = {}
        """Digest of an order → the name of the worker that builds it."""
        self._unended = len(items)

    def stop(self) -> None:
        """End all that is under way: workers see that nobody waits for it."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        """See Thread."""
        try:
            with self._home.connection.listening(self._topic, self._report_step):
                while self._unended and not self._stopping.is_set():
                    self._membership.look()
                    if not self._membership.is_away:
                        self._hand_out()
                    for number, answer in self._calls.finished(_GLANCE_SECONDS):
                        self._answered(number, answer)
        except BaseException as error:  # noqa: BLE001 - whoever reads the events raises it
            self.events.put(error)
        finally:
            self._calls.give_up()

    def _problem(self, member: Member, answer: object) -> tuple[str, str]:
        """What a worker said to the question of what it can build."""
        if not isinstance(answer, CanBuild):
            return f"it does not say what it can build ({answer})", ""
        problems = answer.problems
        if answer.version != VERSION:
            problems = (f"ktrial is {answer.version} there, {VERSION} here",) * len(self._items)
        able = {digest for digest, problem in zip(self._items, problems, strict=True) if not problem}
        self._can_build[member.address] = able
        for problem in dict.fromkeys(filter(None, problems)):
            self.events.put(f"worker {member.name} of the fleet gets no builds: {problem}")
        return "" if able else problems[0], ""

    def _report_step(self, progress: dict[str, Any]) -> None:
        if item := self._items.get(progress.get("order", "")):
            self.events.put(_Step(item, progress, self._builders.get(item.digest, "a worker")))

    def _hand_out(self) -> None:
        at_work = {member.address for member, _ in self._work.values()}
        members = [member for member in self._home.members.values() if member.works_for(self._topic)]
        for member in members:
            able = self._can_build.get(member.address, set())
            item = next((item for item in self._waiting if item.digest in able), None)
            if item and member.address not in at_work:
                self._waiting.remove(item)
                self._builders[item.digest] = member.name
                name = f"ktrial builds {item.order.build.name}"
                call = BuildCall(self._maker, item.digest, self._topic, self._home.files)
                number = self._calls.begin(member.address, name, worker_side.build, call, (item.digest,))
                self._work[number] = member, item
        if self._membership.expects_more or not self._membership.someone_came:
            return
        possible = set[str]().union(*(self._can_build.get(member.address, set()) for member in members))
        for item in [item for item in self._waiting if item.digest not in possible]:
            self._waiting.remove(item)
            self._end(item, None)

    def _answered(self, number: int, answer: object) -> None:
        if number not in self._work:
            self._membership.answered(number, answer)
            return
        member, item = self._work.pop(number)
        if isinstance(answer, Failed):
            raise answer.error(member.name)
        if isinstance(answer, Built):
            self._take(member, item, answer)
        elif isinstance(answer, NotBuilt):
            self._end(item, _with_log_here(item, answer))
        else:
            self._again(member, item, answer)

    def _take(self, member: Member, item: _Item, built: Built) -> None:
        """What was built, from the fleet's place of files."""
        try:
            if not self._kept.take(FileStore(self._home.files), built.digest):
                self._again(member, item, Unable(f"what it built is not in {self._home.files}"))
                return
            archive = self._kept.place(built.digest, "content")
            kernel = self._builds.take(item.order, archive)
            archive.unlink(missing_ok=True)
        except (TransferDamaged, KernelError) as error:
            self._again(member, item, Unable(error.message))
        else:
            self._end(item, kernel)

    def _again(self, member: Member, item: _Item, answer: object) -> None:
        """Somebody else has to build it, or this system."""
        if isinstance(answer, Unable):
            self._can_build[member.address] = set()
            advice = f": {answer.advice}" if answer.advice else ""
            self.events.put(
                f"worker {member.name} of the fleet gets no more builds: {answer.problem.rstrip('.')}{advice}"
            )
        item.losses += not isinstance(answer, Unable) and not (isinstance(answer, Gone) and not answer.died)
        if item.losses < _MOST_LOSSES:
            self._waiting.append(item)
        else:
            self.events.put(f"{item.losses} workers were lost while they built {item.labels[0]}")
            self._end(item, None)

    def _end(self, item: _Item, outcome: Kernel | KernelError | None) -> None:
        self._unended -= 1
        self.events.put(_End(item, outcome))


def _with_log_here(item: _Item, answer: NotBuilt) -> KernelError:
    """The error as it would be here, with the log in this system's cache."""
    error = answer.error
    if not answer.log:
        return error
    log = cache_directory() / "fleet" / "logs" / f"{item.order.content[:32]}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(answer.log)
    there = str(error.facts["log"])
    facts = {
        name: value.replace(there, str(log)) if isinstance(value, str) else value
        for name, value in error.facts.items()
    }
    return type(error)(**facts | {"log": log})
