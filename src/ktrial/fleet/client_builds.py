"""Kernels that a fleet builds: each content once, several at once; what no worker can build is built here."""

import pickle
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory

from ktrial.experiment.resources import Builder, Had, Listener, PortableBuilds, built_here, numbered
from ktrial.file_digests import digest_of_bytes
from ktrial.fleet.build_assignment import BuildAssignment, BuildEvent, End, Item, Site, Step
from ktrial.fleet.packages import Package
from ktrial.installation import cache_directory
from ktrial.kernels.errors import KernelError
from ktrial.model.kernel import Build, Kernel

_GLANCE_SECONDS = 0.05


class FleetBuilds:
    """Has one study's kernels built."""

    def __init__(self, home: Site, builder: Builder, listener: Listener) -> None:
        assert builder.elsewhere, "who asks has looked"
        self._home, self._builder, self._listener = home, builder, listener
        self._elsewhere: PortableBuilds = builder.elsewhere()
        self._maker = pickle.dumps(builder.elsewhere)
        self._events: SimpleQueue[BuildEvent] = SimpleQueue()

    def built(self, builds: Mapping[str, Build]) -> Generator[Had]:
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

    def _by_workers(self, items: list[Item], builds: Mapping[str, Build]) -> Generator[Had]:
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

    def _ended(self, end: End, builds: Mapping[str, Build]) -> Generator[Had]:
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
