"""/proc/pressure: time lost because CPU, memory or I/O was short (Documentation/accounting/psi.rst)."""

from collections.abc import Iterator, Mapping

from ktrial.monitors import Reading, is_number
from ktrial.text_lines import lines_of

_DIRECTORY = "/proc/pressure/"
_RESOURCES = ("cpu", "io", "irq", "memory")
"""irq since 6.1, where the kernel accounts interrupt time."""


class _Pressure:
    """Microseconds in which some tasks, or all of them, waited for a resource."""

    name = "pressure"
    summary = "pressure stall information: time lost to lack of CPU, memory or I/O, in microseconds"
    sampled = tuple(f"{_DIRECTORY}{resource}" for resource in _RESOURCES)
    costly = False

    def readings(self, texts: Mapping[str, str]) -> Iterator[Reading]:
        """`pressure.io.some`, `pressure.memory.full` and so on: the totals; averages follow from them."""
        for path in self.sampled:
            for line in lines_of(texts.get(path, "")):
                share, *fields = line.split() or [""]
                total = dict(field.split("=", 1) for field in fields if "=" in field).get("total", "")
                if is_number(total):
                    yield Reading(f"pressure.{path.removeprefix(_DIRECTORY)}.{share}", float(total), "µs")


MONITOR = _Pressure()
