"""A machine for searches on fleets: its numbers follow from its knobs, in each worker as here."""

from collections.abc import Callable, Mapping

from tests.support.fleets import log, told, worker_number
from tests.support.tunable import TunableMachine

from ktrial.model.machine import Boot

PRESSURE = "/proc/sys/vm/vfs_cache_pressure"


def planted(_boot: Boot, written: Mapping[str, str]) -> float:
    """A fifth fewer instructions where the pressure is high; nothing else matters."""
    log("tuned", worker_number())
    return (800.0 if int(written.get(PRESSURE, "100")) > 300 else 1000.0) * float(told().get("factor", "1"))


class PortableTunableMachine(TunableMachine):
    """Workers make one like it."""

    def __init__(self) -> None:
        super().__init__(planted)

    def elsewhere(self) -> Callable[[], "PortableTunableMachine"]:
        return PortableTunableMachine

    def has_to_agree(self) -> dict[str, str]:
        return {"QEMU": "7.2.22"}
