"""Steps done once more to learn what the kernel calls the code that it makes meanwhile.

A program's address is known only after it was loaded, and the program is gone when who loaded it has ended.
So every program of the steps runs by `ksymbols`, which hears of each symbol as it comes. Nothing is counted
then: from the same state the kernel lays the same code at the same place, though bpf(2) does a little more.
"""

import base64
from collections.abc import Iterable

from ktrial.machines.exact.generated_code import GeneratedCode, listed, told
from ktrial.machines.guest_programs import ksymbols
from ktrial.target import Collect, Push, Run, Start, Step, StepResult, Write

KALLSYMS = (Write(path="/proc/sys/kernel/kptr_restrict", value="0"), Collect(path="/proc/kallsyms"))
"""Where the kernel hides addresses from all, even root is told zeros."""
_IN_GUEST = "/ktrial/ksymbols"
_TOLD = "/ktrial/symbols-"


def asking(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps, each program watched, and then what came of that. Raises GuestProgramsMissing."""
    program = base64.b64encode(ksymbols().read_bytes()).decode()
    files = [f"{_TOLD}{number}" for number, step in enumerate(steps) if isinstance(step, Run | Start)]
    left = iter(files)
    watched = (_watched(step, next(left)) if isinstance(step, Run | Start) else step for step in steps)
    push = Push(path=_IN_GUEST, base64=program, mode=0o755)
    return (push, *watched, *(Collect(path=file) for file in files), *KALLSYMS)


def _watched(step: Run | Start, file: str) -> Step:
    return step.model_copy(update={"argv": (_IN_GUEST, file, *step.argv)})


def code_told(results: Iterable[StepResult]) -> tuple[GeneratedCode, ...]:
    """What the kernel made, as the results of `asking` say. Of what failed nothing has a name."""
    files = (base64.b64decode(result.content) for result in results if result.do == "collect")
    *of_programs, kallsyms = (file.decode("utf-8", "replace") for file in files)
    return tuple(piece for text in of_programs for piece in told(text)) + listed(kallsyms)
