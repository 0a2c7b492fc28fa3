"""The text that `perf script` prints of `perf record -e instructions -c PERIOD -g`, with PERIOD chosen here.

Source: tools/perf/builtin-script.c of Linux, in the form that stackcollapse-perf.pl and the importers of
speedscope and the Firefox Profiler read: a line for each sample, its stack below, the innermost function
first. Most of them give each sample the weight 1, whatever its period is. So a stack stands there once for
each PERIOD instructions of its own, as if every such instruction had been sampled.
"""

from collections.abc import Iterator, Sequence

from ktrial.model.profile import PROGRAM, Profile
from ktrial.report.call_tree import stacks
from ktrial.report.stack_tree import Stack

SAMPLES = 10_000
"""About so many samples: a stack of a ten-thousandth of all instructions still has one."""
_KERNEL_START = 0xFFFFFFFF81000000
_PROGRAM_START = 0x401000
_APART = 16


class PerfScript:
    """Samples at equal distances."""

    name = "perf-script"
    summary = "the text of perf script: stackcollapse-perf.pl, Firefox Profiler, speedscope, FlameScope"

    def text(self, profile: Profile) -> str:
        """Addresses are made up, in the order of the names; the time is the guest's, 1 ns an instruction."""
        counts = {stack: int(value * profile.operations) for stack, value in sorted(stacks(profile).items())}
        period = max(1, sum(counts.values()) // SAMPLES)
        names = sorted({name for stack in counts for name in stack})
        places = {name: _APART * place for place, name in enumerate(names)}
        command = "".join(letter if letter.isalnum() else "-" for letter in profile.workload) or "workload"
        return "".join(_samples(counts, period, command, places))


def _samples(counts: dict[Stack, int], period: int, command: str, places: dict[str, int]) -> Iterator[str]:
    clock = 0
    for stack, samples in zip(counts, _shared_out(list(counts.values()), period), strict=True):
        lines = "".join(f"{_frame(name, stack, places)}\n" for name in reversed(stack))
        for _ in range(samples):
            clock += period
            seconds, nanoseconds = divmod(clock, 10**9)
            yield (
                f"{command} 1/1 [000] {seconds:5d}.{nanoseconds:09d}: {period:10d} instructions: \n{lines}\n"
            )


def _shared_out(counts: Sequence[int], period: int) -> list[int]:
    """Samples of each stack, by largest remainder (Hamilton): their sum is that of all instructions."""
    samples = [count // period for count in counts]
    left = sum(counts) // period - sum(samples)
    by_remainder = sorted(range(len(counts)), key=lambda place: (-(counts[place] % period), place))
    for place in by_remainder[:left]:
        samples[place] += 1
    return samples


def _frame(name: str, stack: Stack, places: dict[str, int]) -> str:
    if stack[0] == PROGRAM:
        return f"\t{_PROGRAM_START + places[name]:16x} {name} ({_bare(stack[-1])})"
    symbol, _, module = name.partition(" [")
    place = f"[{module}" if module else "[kernel.kallsyms]"
    return f"\t{_KERNEL_START + places[name]:16x} {_bare(symbol)} ({_bare(place)})"


def _bare(text: str) -> str:
    """Without what ends a name in this format: white space and brackets."""
    return "".join("_" if letter.isspace() or letter in "()" else letter for letter in text)


EXPORT = PerfScript()
