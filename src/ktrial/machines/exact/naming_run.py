"""Steps done once more to learn what the kernel calls the code that it makes meanwhile.

A program's address is known only after it was loaded, and the program is gone when who loaded it has ended.
So every program of the steps runs by `ksymbols`, which hears of each symbol as it comes. Nothing is counted
then: from the same state the kernel lays the same code at the same place, though bpf(2) does a little more.
"""

import base64
import itertools

from ktrial.machines.exact.generated_code import GeneratedCode, listed, told
from ktrial.machines.guest_programs import ksymbols
from ktrial.machines.qemu.guest_symbols import SHOWN
from ktrial.target import Collect, Push, Run, Start, Step, StepResult

_IN_GUEST = "/ktrial/ksymbols"
_TOLD = "/ktrial/symbols-"


def asking(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps, each program watched, and then what came of that. Raises GuestProgramsMissing."""
    program = base64.b64encode(ksymbols().read_bytes()).decode()
    files = [f"{_TOLD}{number}" for number, step in enumerate(steps) if isinstance(step, Run | Start)]
    left = iter(files)
    watched = (_watched(step, next(left)) if isinstance(step, Run | Start) else step for step in steps)
    push = Push(path=_IN_GUEST, base64=program, mode=0o755)
    # The whole list is many megabytes: the guest picks what is asked for.
    listing = Run(argv=(_IN_GUEST, "--listed"))
    return (push, *watched, *(Collect(path=file) for file in files), SHOWN, listing)


def _watched(step: Run | Start, file: str) -> Step:
    return step.model_copy(update={"argv": (_IN_GUEST, file, *step.argv)})


def code_told(results: tuple[StepResult, ...]) -> tuple[GeneratedCode, ...]:
    """What the kernel made, as the results of `asking` say. Of what failed nothing has a name."""
    *of_programs, listing = results
    texts = (base64.b64decode(result.content) for result in of_programs if result.do == "collect")
    pieces = (told(text.decode("utf-8", "replace")) for text in texts)
    return (*itertools.chain.from_iterable(pieces), *listed(listing.stdout))
