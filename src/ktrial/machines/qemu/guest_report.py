"""What the guest reported in frames so far."""

from dataclasses import dataclass

from ktrial.machines.qemu.process import QemuProcess
from ktrial.target.errors import FrameError
from ktrial.target.frames import Decoder, Done, Failed, Payload, Ready, payload_of
from ktrial.target.steps import StepResult


@dataclass(frozen=True)
class Report:
    """All frames of one process, sorted by what they say."""

    ready: Ready | None = None
    results: tuple[StepResult, ...] = ()
    done: bool = False
    failed: str = ""
    """Why the agent could not go on; empty where it could."""
    damage: str = ""
    """What is wrong with the first damaged frame; those before it count."""

    @property
    def module_refused(self) -> str:
        """The first module that the kernel did not take at boot, and its answer; empty where it took all."""
        failures = self.ready.failures if self.ready else ()
        refused = (f.failure.text for f in failures if f.what.startswith("module "))
        return next(refused, "")


def read_report(process: QemuProcess) -> Report:
    """Decode what there is. A frame that is not complete yet is left out."""
    payloads, damage = _payloads(process.frame_bytes())
    return Report(
        ready=next((payload for payload in payloads if isinstance(payload, Ready)), None),
        results=tuple(payload for payload in payloads if isinstance(payload, StepResult)),
        done=any(isinstance(payload, Done) for payload in payloads),
        failed=next((payload.text for payload in payloads if isinstance(payload, Failed)), ""),
        damage=damage,
    )


def _payloads(data: bytes) -> tuple[list[Payload], str]:
    payloads: list[Payload] = []
    decoder = Decoder()
    try:
        payloads += [payload_of(frame) for frame in decoder.feed(data)]
        decoder.feed(b"")  # a damaged frame after good ones is told by the next call
    except FrameError as error:
        return payloads, str(error.facts["problem"])
    return payloads, ""
