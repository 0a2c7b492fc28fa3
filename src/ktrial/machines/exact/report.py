"""What the guest reported in frames so far."""

from dataclasses import dataclass

from ktrial.errors import FrameError
from ktrial.machines.exact.process import QemuProcess
from ktrial.target.frames import Decoder, Done, Failed, Ready
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


def read_report(process: QemuProcess) -> Report:
    """Decode what there is. A frame that is not complete yet is left out."""
    ready: Ready | None = None
    results: list[StepResult] = []
    done, failed, damage = False, "", ""
    decoder = Decoder()
    try:
        for message in decoder.feed(process.frame_bytes()):
            match message:
                case Ready():
                    ready = message
                case StepResult():
                    results.append(message)
                case Done():
                    done = True
                case Failed():
                    failed = message.text
    except FrameError as error:
        damage = str(error.facts["problem"])
    return Report(ready, tuple(results), done, failed, damage)
