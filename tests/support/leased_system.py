"""Another system, as it is told apart and held, played by a scripted machine."""

import threading
from collections.abc import Callable

from tests.support.scripted import ScriptedMachine, number_of

from ktrial.experiment.observer import Observer
from ktrial.machines import ExclusiveUse
from ktrial.model.machine import Boot
from ktrial.target import Run, StepResult


class OtherSystem(ScriptedMachine):
    """A machine that has a lease."""

    def __init__(self, before_each: "threading.Event | None" = None) -> None:
        super().__init__(self._answer)
        self.host = "lab1"
        self.leases: dict[str, ExclusiveUse] = {}
        self.begun = threading.Event()
        self._go_on = before_each

    def lease_name(self) -> str:
        return "10.0.0.7:22"

    def close(self) -> None:
        while self.leases:
            self.leases.popitem()[1].end()

    def go_on(self) -> None:
        if self._go_on:
            self._go_on.set()

    def _answer(self, boot: Boot, program: Run) -> StepResult:
        self.begun.set()
        if self._go_on:
            self._go_on.wait()
        return number_of(boot, program)


class Heard(Observer):
    """Keeps what is told."""

    def __init__(self, then: Callable[[str], object] = lambda _text: None) -> None:
        self.notices: list[str] = []
        self._then = then

    def notice(self, text: str) -> None:
        self.notices.append(text)
        self._then(text)
