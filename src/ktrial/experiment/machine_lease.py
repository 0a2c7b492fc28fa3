"""A real machine is one user's at a time: a lease in the store, with a heartbeat, until it is closed.

Where a fleet is named it is held there as well, among users whose stores are others.

Who may wait (`waiting`) asks again and again for a machine that is somebody's; else that ends the run.
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, TypeVar

from ktrial import process_identity
from ktrial.experiment.errors import MachineHeld
from ktrial.format.number_format import duration
from ktrial.format.sanitize import one_line
from ktrial.machines import ExclusiveUse, LeasedMachine, Machine
from ktrial.machines.errors import MachineError, MachineInUse
from ktrial.model.machine import MachineLease
from ktrial.store.leases import Taking
from ktrial.store.store import Store

BEAT_SECONDS = 10.0
SILENCE_SECONDS = 120.0
"""After so long without a word a holder is taken for gone."""
ASK_SECONDS = 2.0
"""Between two questions whether a machine is free by now."""
_Answer = TypeVar("_Answer")


class LeasePlace(Protocol):
    """What is told who has which machine: a store, or a fleet's scheduler."""

    @property
    def name(self) -> str:
        """What tells it from others."""
        ...

    def take_machine(self, request: MachineLease) -> Taking:
        """Have a machine for oneself, unless somebody has it who is there. Raises KtrialError."""
        ...

    def renew_machine(self, lease: MachineLease) -> bool | None:
        """Say that its holder is there. False: it is another's by now. None: that could not be told."""
        ...

    def give_machine_back(self, lease: MachineLease) -> bool:
        """Others may have it. False where that could not be told: they have it after a while."""
        ...


@dataclass
class _Patience:
    seconds: float = 0.0


_patience = _Patience()


@contextmanager
def waiting(seconds: float) -> Iterator[None]:
    """Inside, runs wait so long for a machine that somebody else has."""
    before, _patience.seconds = _patience.seconds, seconds
    try:
        yield
    finally:
        _patience.seconds = before


def when_free(ask: Callable[[], _Answer], say: Callable[[str], None]) -> _Answer:
    """What `ask` returns, asked again while the machine is somebody's, as long as `waiting` says.

    `say` is told whose it is, for each holder once. Raises what `ask` raises: MachineHeld or MachineInUse
    when the time is over. KeyboardInterrupt ends it at any instant.
    """
    begun, announced = time.monotonic(), ""
    while True:
        try:
            answer = ask()
        except (MachineHeld, MachineInUse) as error:
            left = begun + _patience.seconds - time.monotonic()
            if left <= 0:
                raise
            # Without when that was last heard of.
            whose = " ".join(str(error.facts.get(name, "")) for name in ("who", "since", "study"))
            if whose != announced:
                say(f"{error.message} Waiting for it, {duration(left)} at most")
                announced = whose
            time.sleep(min(ASK_SECONDS, left))
            continue
        if announced:
            say(f"the machine is free, after {duration(time.monotonic() - begun)}")
        return answer


class Lease:
    """An `ExclusiveUse` in one place. A thread renews it: the machine that measures is another one."""

    def __init__(self, place: LeasePlace, lease: MachineLease) -> None:
        self._place, self._lease = place, lease
        self._ended = threading.Event()
        self._on_loss: Callable[[], None] = lambda: None
        self.is_lost = False
        self._thread = threading.Thread(target=self._beats, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """See ExclusiveUse. Raises MachineError where it is lost."""
        if self.is_lost:
            raise MachineError(
                f"Machine {self._lease.shown} is held by somebody else by now: nothing was heard of this "
                f"ktrial for {self._lease.silence_seconds:g} s.",
                hint="what was stored before is safe, and the trial that was under way is not stored: run "
                "the same command again; ktrial fleet machines shows who holds it",
            )

    def tell_loss(self, on_loss: Callable[[], None]) -> None:
        """See ExclusiveUse."""
        self._on_loss = on_loss

    def end(self) -> None:
        """See ExclusiveUse."""
        self._ended.set()
        self._thread.join()
        self._place.give_machine_back(self._lease)

    def _beats(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            if self._place.renew_machine(self._lease) is False:
                self.is_lost = True
                self._on_loss()
                return


class Leases:
    """Of one machine, in several places: all of them, or the machine is not this process's alone. A
    ExclusiveUse."""

    def __init__(self, held: Sequence[ExclusiveUse] = ()) -> None:
        """`held`: none where the machine is no other system."""
        self._held = held

    @property
    def is_lost(self) -> bool:
        """See ExclusiveUse."""
        return any(lease.is_lost for lease in self._held)

    def check(self) -> None:
        """See ExclusiveUse. Raises MachineError where it is lost."""
        for lease in self._held:
            lease.check()

    def tell_loss(self, on_loss: Callable[[], None]) -> None:
        """See ExclusiveUse."""
        for lease in self._held:
            lease.tell_loss(on_loss)

    def end(self) -> None:
        """See ExclusiveUse."""
        for lease in reversed(self._held):
            lease.end()


def leased(
    machine: Machine, places: Sequence[LeasePlace], study: str, say: Callable[[str], None]
) -> ExclusiveUse:
    """The machine is this process's alone in all these places, until it is closed.

    `say` is told whose it was, if that is gone. Who may wait for it waits. Raises MachineHeld, StoreError,
    and what a place raises that is not reached.
    """
    if not isinstance(machine, LeasedMachine):
        return Leases()
    held = []
    for place in places:
        lease = machine.leases.get(place.name)
        if lease is None or lease.is_lost:
            request = _request(machine, study)
            taken = when_free(partial(_taken, place, request, say), say)
            lease = machine.leases[place.name] = Lease(place, taken)
        held.append(lease)
    return Leases(held)


def _taken(place: LeasePlace, request: MachineLease, say: Callable[[str], None]) -> MachineLease:
    taking = place.take_machine(request)
    if not taking.is_taken:
        holder = taking.lease
        who, since, study = one_line(holder.who), f"{holder.since:%Y-%m-%d %H:%M} UTC", one_line(holder.study)
        where = "" if isinstance(place, Store) else f", in {place.name}"
        raise MachineHeld(
            f"Machine {request.shown} is held by {who} since {since}, for study {study}{where} "
            f"(last heard at {holder.heard:%H:%M:%S}): one trial at a time runs on a machine.",
            hint="run the same command again when that has ended (ktrial fleet machines shows who holds "
            "which, in a fleet ktrial fleet status), or with --wait 2h; a holder of whom nothing is heard "
            f"for {holder.silence_seconds:g} s is taken for gone",
            who=who,
            since=since,
            study=study,
        )
    if before := taking.before:
        held = one_line(f"was held by {before.who} for study {before.study}")
        since = f"since {before.since:%Y-%m-%d %H:%M} UTC"
        heard = f"last heard at {before.heard:%H:%M:%S}"
        say(f"machine {request.shown} {held} {since}, who is gone ({heard}): taken over")
    return taking.lease


def _request(machine: LeasedMachine, study: str) -> MachineLease:
    instant = datetime.now(UTC)
    return MachineLease(
        machine=machine.lease_name(),
        called=machine.host,
        key=uuid.uuid4().hex,
        host=socket.gethostname(),
        user=process_identity.user(),
        process=os.getpid(),
        born=process_identity.born(os.getpid()),
        study=study,
        since=instant,
        heard=instant,
        silence_seconds=SILENCE_SECONDS,
    )
