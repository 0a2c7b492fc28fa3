"""The symbols of a kernel that runs: kept with the kernel, or told by the guest. Each is asked for once."""

import re
import threading
from dataclasses import dataclass
from functools import cached_property

from ktrial.file_digests import digest_of_bytes
from ktrial.kernels.image.symbols import kept_kallsyms, save_symbols
from ktrial.machines import CountingTarget
from ktrial.model.boot import Boot
from ktrial.model.kernel import Kernel
from ktrial.model.trial import Outcome
from ktrial.target.errors import GuestEnded, NoSymbolsInGuest

_FUNCTION = re.compile(r"^[89a-f][0-9a-f]{15} [tTwW] .*\n", re.MULTILINE)
"""A function in the kernel's half of the address space: all that the plugin looks at."""

_TRACING = re.compile(r"(?:ftrace|kprobe_event|trace_event|stacktrace)\w*(?:=|$)")
"""Boot parameters with which the kernel makes trampolines before a workload runs."""


@dataclass(frozen=True)
class KernelFunctions:
    """The symbols of one boot, or why there are none."""

    text: str
    """The functions in /proc/kallsyms; empty where there is none."""
    problem: str = ""
    advice: str = ""
    """Other than that of NoSymbolsInGuest, which speaks of the kernel's configuration."""

    def missing(self, kernel: str) -> NoSymbolsInGuest:
        """The error that says why this kernel's functions have no names here."""
        hint = {"hint": self.advice} if self.advice else {}
        return NoSymbolsInGuest(name=kernel, problem=self.problem, **hint)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return digest_of_bytes(self.text.encode())


class KernelSymbols:
    """Symbols by boot, for all trials of a run. May be asked from several threads."""

    def __init__(self, *, wanted: bool = True) -> None:
        """`wanted`: tell which function did what; without, a trial has its numbers alone, and sooner."""
        self.wanted = wanted
        self._known: dict[object, KernelFunctions] = {}
        self._lock = threading.Lock()

    def of(self, target: CountingTarget, boot: Boot) -> KernelFunctions:
        """The symbols of the system that `target` is. Raises MachineError."""
        if not self.wanted:
            return KernelFunctions("")
        # Modules lie elsewhere in each boot; the image, without KASLR, is where it is.
        key = boot if _has_code_of_its_own(boot) else boot.kernel.image
        with self._lock:
            if key not in self._known:
                self._known[key] = _look_up(target, boot)
            return self._known[key]


_OF_THIS_TIME = frozenset({Outcome.MACHINE_FAILED.value, Outcome.HUNG.value})
"""Ends that say nothing about the kernel's names: as an answer they would lose all trials' functions."""


_OF_A_GUEST_THAT_ENDED = "its configuration is not what is wrong: see why it ends when /proc/kallsyms is read"


def _has_code_of_its_own(boot: Boot) -> bool:
    """Whether the boot's functions are others than those of the image: modules, trampolines of tracers."""
    return bool(boot.modules) or any(map(_TRACING.match, boot.parameters))


def _look_up(target: CountingTarget, boot: Boot) -> KernelFunctions:
    try:
        text = target.kallsyms() if _has_code_of_its_own(boot) else _of_image(target, boot.kernel)
    except NoSymbolsInGuest as error:
        return KernelFunctions("", str(error.facts["problem"]))
    except GuestEnded as error:
        if error.facts["outcome"] in _OF_THIS_TIME:
            raise  # that trial failed; the next one asks again
        reason = f"the guest ended while it was asked: {error.facts['reason']}"
        return KernelFunctions("", reason, _OF_A_GUEST_THAT_ENDED)
    functions = "".join(_FUNCTION.findall(text))
    if not functions:
        return KernelFunctions("", "/proc/kallsyms names no function with an address")
    return KernelFunctions(functions)


def _of_image(target: CountingTarget, kernel: Kernel) -> str:
    kept = kept_kallsyms(kernel)
    if kept is not None:
        return kept
    text = target.kallsyms()
    try:
        save_symbols(kernel, text)
    except ValueError as error:
        raise NoSymbolsInGuest(name=kernel.name, problem=str(error)) from None
    return text
