"""A real machine is one user's at a time: a lease in the store, with a heartbeat, until it is closed."""

import os
import socket
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from ktrial import process_identity
from ktrial.experiment.errors import LeaseLost, MachineHeld
from ktrial.machines import HeldLease, LeasedMachine, Machine
from ktrial.model.machine_lease import MachineLease
from ktrial.store import Store

BEAT_SECONDS = 10.0
SILENCE_SECONDS = 120.0
"""After so long without a word a holder is taken for gone."""


class Unleased:
    """What a run holds whose machine is no other system: nothing."""

    is_lost = False

    def check(self) -> None:
        """See HeldLease."""

    def tell_loss(self, told: Callable[[], None]) -> None:
        """See HeldLease."""

    def end(self) -> None:
        """See HeldLease."""


class Lease:
    """In the store. A thread renews it: the machine that measures is another one than this. A HeldLease."""

    def __init__(self, store: Store, lease: MachineLease) -> None:
        self._store, self._lease = store, lease
        self._ended = threading.Event()
        self._told: Callable[[], None] = lambda: None
        self.is_lost = False
        self._thread = threading.Thread(target=self._beats, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """See HeldLease. Raises LeaseLost."""
        if self.is_lost:
            raise LeaseLost(machine=self._lease.shown, seconds=self._lease.silence_seconds)

    def tell_loss(self, told: Callable[[], None]) -> None:
        """See HeldLease."""
        self._told = told

    def end(self) -> None:
        """See HeldLease."""
        self._ended.set()
        self._thread.join()
        self._store.give_machine_back(self._lease)

    def _beats(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            if self._store.renew_machine(self._lease) is False:
                self.is_lost = True
                self._told()
                return


def leased(machine: Machine, store: Store, study: str, say: Callable[[str], None]) -> HeldLease:
    """The machine is this process's alone until it is closed. `say` is told whose it was, if that is gone.

    Raises MachineHeld, StoreError.
    """
    if not isinstance(machine, LeasedMachine):
        return Unleased()
    held = machine.leases.get(store.name)
    if held is None or held.is_lost:
        held = machine.leases[store.name] = Lease(store, _taken(store, _asked(machine, study), say))
    return held


def _taken(store: Store, asked: MachineLease, say: Callable[[str], None]) -> MachineLease:
    taking = store.take_machine(asked)
    if not taking.is_taken:
        raise MachineHeld(
            machine=asked.shown,
            who=taking.lease.who,
            since=f"{taking.lease.since:%Y-%m-%d %H:%M} UTC",
            study=taking.lease.study,
            heard=f"{taking.lease.heard:%H:%M:%S}",
            seconds=taking.lease.silence_seconds,
        )
    if before := taking.before:
        held = f"was held by {before.who} for study {before.study} since {before.since:%Y-%m-%d %H:%M} UTC"
        say(f"machine {asked.shown} {held}, who is gone (last heard at {before.heard:%H:%M:%S}): taken over")
    return taking.lease


def _asked(machine: LeasedMachine, study: str) -> MachineLease:
    now = datetime.now(UTC)
    return MachineLease(
        machine=machine.lease_name(),
        called=machine.host,
        key=uuid.uuid4().hex,
        host=socket.gethostname(),
        user=process_identity.user(),
        process=os.getpid(),
        born=process_identity.born(os.getpid()),
        study=study,
        since=now,
        heard=now,
        silence_seconds=SILENCE_SECONDS,
    )
