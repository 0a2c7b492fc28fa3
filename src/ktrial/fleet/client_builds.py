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
from ktrial.fleet.errors import FleetError, TransferDamaged
from ktrial.fleet.membership import Calls, Home, JoinCheck, Membership
from ktrial.fleet.messages import (
    BuildCall,
    Built,
    CanBuild,
    Failed,
    Gone,
    NotBuilt,
    Question,
    Unable,
)
from ktrial.fleet.trial_queue import Member
from ktrial.installation import VERSION, cache_directory
from ktrial.kernels.errors import KernelError
from ktrial.model.kernel import Build, BuildOrder, Kernel

_GLANCE_SECONDS = 0.05


@dataclass(eq=False)
class Item:
    """A kernel that is to be built; `labels` are all that ask for it."""

    order: BuildOrder
    digest: str
    """Of the pickled order."""
    labels: list[str]
    losses: int = 0


@dataclass
class End:
    """Of an item: its kernel, why there is none, or None: it is to be built here. Of all: an error."""

    item: Item | None
    had: Kernel | KernelError | BaseException | None = None


class FleetBuilds:
    """Has one study's kernels built."""

    def __init__(self, home: Home, builder: Builder, listener: Listener) -> None:
        assert builder.elsewhere, "who asks has looked"
        self._home, self._builder, self._listener = home, builder, listener
        self._elsewhere: PortableBuilds = builder.elsewhere()
        self._maker = pickle.dumps(builder.elsewhere)
        self._events: SimpleQueue[BuildEvent] = SimpleQueue()

    def built(self, builds: Mapping[str, Build]) -> Generator[KernelOutcome]:
        """Each kernel as it is had. To close it ends all builds."""
        items: dict[str, Item] = {}
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
                items[order.content] = Item(order, digest_of_bytes(data), [label])
                package = Package(items[order.content].digest, data, dict(order.files), ())
                self._home.packages[package.digest] = package
        yield from built_here(here, self._builder, self._listener)
        if items:
            yield from self._by_workers(list(items.values()), builds)

    def _by_workers(self, items: list[Item], builds: Mapping[str, Build]) -> Generator[KernelOutcome]:
        with TemporaryDirectory(dir=_scratch()) as scratch:
            assignment = BuildAssignment(
                self._home, self._elsewhere, self._maker, items, Path(scratch), self._events
            )
            assignment.start()
            try:
                for end in self._ends(len(items)):
                    yield from self._ended(end, builds)
            finally:
                assignment.stop()

    def _ends(self, count: int) -> Iterator[End]:
        while count:
            try:
                event = self._events.get(timeout=_GLANCE_SECONDS)  # signals are seen between
            except Empty:
                continue
            if isinstance(event, str):
                self._listener.notice(event)
            elif isinstance(event, Step):
                what = f"{event.said['what']} on {event.worker}"
                self._listener.progress(event.item.labels[0])(
                    what, int(event.said["done"]), int(event.said["total"])
                )
            elif event.item is None:
                assert isinstance(event.had, BaseException)
                raise event.had
            else:
                count -= 1
                yield event

    def _ended(self, end: End, builds: Mapping[str, Build]) -> Generator[KernelOutcome]:
        """For whoever asked for it. In other words the same is taken from the cache, or built here."""
        assert end.item
        labels = end.item.labels
        if isinstance(end.had, Kernel):
            yield labels[0], end.had
            labels = labels[1:]
        if isinstance(end.had, KernelError):
            yield from ((label, end.had) for label in labels)
        else:
            yield from built_here({label: builds[label] for label in labels}, self._builder, self._listener)


def _scratch() -> Path:
    directory = cache_directory() / "fleet"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


# Who builds which kernel: a thread of the client's.
#
# A worker is asked first whether it can build these. It builds one at a time, and is given no more once
# something of its own kept it from one. A kernel with which three workers were lost is built by the client.

_MOST_LOSSES = 3


@dataclass
class Step:
    """How far an item is."""

    item: Item
    said: dict[str, Any]
    worker: str = ""


BuildEvent = End | Step | str


class BuildAssignment(threading.Thread):
    """Says which worker builds what, and takes what was built."""

    def __init__(
        self,
        home: Home,
        builds: PortableBuilds,
        maker: bytes,
        items: list[Item],
        scratch: Path,
        events: "SimpleQueue[BuildEvent]",
    ) -> None:
        super().__init__(name="fleet builds", daemon=True)
        self._home, self._builds, self._maker = home, builds, maker
        self._kept = Contents(scratch)
        self._events, self._stopping = events, threading.Event()
        self._waiting, self._items = list(items), {one.digest: one for one in items}
        self._topic = f"ktrial builds {uuid.uuid4().hex}"
        self._calls = Calls(home, events.put)
        question = Question(maker, tuple(self._items))
        join_check = JoinCheck(
            self._topic,
            worker_side.can_build,
            question,
            self._problem,
            keeps_out=False,
            digests=question.orders,
        )
        self._membership = Membership(home, join_check, self._calls, events.put)
        self._can: dict[str, set[str]] = {}
        """By the workers' addresses: digests of the orders that they can build."""
        self._work: dict[int, tuple[Member, Item]] = {}
        self._by: dict[str, str] = {}
        """Digest of an order → the name of the worker that builds it."""
        self._unended = len(items)

    def stop(self) -> None:
        """End all that is under way: workers see that nobody waits for it."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        """See Thread."""
        try:
            with self._home.connection.listening(self._topic, self._heard):
                while self._unended and not self._stopping.is_set():
                    self._membership.look()
                    if not self._membership.is_away:
                        self._hand_out()
                    for number, answer in self._calls.finished(_GLANCE_SECONDS):
                        self._answered(number, answer)
        except BaseException as error:  # noqa: BLE001 - whoever reads the events raises it
            self._events.put(End(None, error))
        finally:
            self._calls.give_up()

    def _problem(self, member: Member, answer: object) -> tuple[str, str]:
        """What a worker said to the question of what it can build."""
        if not isinstance(answer, CanBuild):
            return f"it does not say what it can build ({answer})", ""
        problems = answer.problems
        if answer.version != VERSION:
            problems = (f"ktrial is {answer.version} there, {VERSION} here",) * len(self._items)
        can = {one for one, problem in zip(self._items, problems, strict=True) if not problem}
        self._can[member.address] = can
        for problem in dict.fromkeys(filter(None, problems)):
            self._events.put(f"worker {member.name} of the fleet is given no builds: {problem}")
        return "" if can else problems[0], ""

    def _heard(self, said: dict[str, Any]) -> None:
        item = self._items.get(said.get("order", ""))
        if item:
            self._events.put(Step(item, said, self._by.get(item.digest, "a worker")))

    def _hand_out(self) -> None:
        at_work = {member.address for member, _ in self._work.values()}
        there = [one for one in self._home.members.values() if one.works_at(self._topic)]
        for member in there:
            can = self._can.get(member.address, set())
            item = next((one for one in self._waiting if one.digest in can), None)
            if item and member.address not in at_work:
                self._waiting.remove(item)
                self._begin(member, item)
        if self._membership.expects_more or not self._membership.someone_came:
            return
        possible = set[str]().union(*(self._can.get(one.address, set()) for one in there))
        for item in [one for one in self._waiting if one.digest not in possible]:
            self._waiting.remove(item)
            self._end(item, None)

    def _begin(self, member: Member, item: Item) -> None:
        self._by[item.digest] = member.name
        name = f"ktrial builds {item.order.build.name}"
        call = BuildCall(self._maker, item.digest, self._topic, self._home.files)
        number = self._calls.begin(member.address, name, worker_side.build, call, (item.digest,))
        self._work[number] = member, item

    def _answered(self, number: int, answer: object) -> None:
        if number not in self._work:
            self._membership.answered(number, answer)
            return
        member, item = self._work.pop(number)
        if isinstance(answer, Failed):
            problem = answer.problem.strip().splitlines()[-1]
            raise FleetError(f"Worker {member.name}: {problem}") from RuntimeError(answer.problem)
        if isinstance(answer, Built):
            self._take(member, item, answer)
        elif isinstance(answer, NotBuilt):
            self._end(item, self._as_here(item, answer))
        else:
            self._again(member, item, answer)

    def _again(self, member: Member, item: Item, answer: object) -> None:
        """Somebody else has to build it, or this system."""
        if isinstance(answer, Unable):
            self._can[member.address] = set()
            advice = f": {answer.advice}" if answer.advice else ""
            self._events.put(
                f"worker {member.name} of the fleet is given no more builds: "
                f"{answer.problem.rstrip('.')}{advice}"
            )
        item.losses += not isinstance(answer, Unable) and not (isinstance(answer, Gone) and not answer.died)
        if item.losses < _MOST_LOSSES:
            self._waiting.append(item)
        else:
            self._events.put(f"{item.losses} workers were lost while they built {item.labels[0]}")
            self._end(item, None)

    def _end(self, item: Item, had: Kernel | KernelError | None) -> None:
        self._unended -= 1
        self._events.put(End(item, had))

    def _take(self, member: Member, item: Item, built: Built) -> None:
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

    def _as_here(self, item: Item, said: NotBuilt) -> KernelError:
        """The error as it would be here, with the log in this system's cache."""
        error = said.error
        if not said.log:
            return error
        log = cache_directory() / "fleet" / "logs" / f"{item.order.content[:32]}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(said.log)
        there = str(error.facts["log"])
        facts = {
            name: value.replace(there, str(log)) if isinstance(value, str) else value
            for name, value in error.facts.items()
        }
        return type(error)(**facts | {"log": log})
