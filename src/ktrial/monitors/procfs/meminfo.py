"""/proc/meminfo: how much memory is used for what (proc_meminfo(5))."""

from collections.abc import Iterator, Mapping

from ktrial.model.trial import SeriesKind
from ktrial.monitors import Reading, is_number
from ktrial.text_lines import lines_of

_FILE = "/proc/meminfo"


class _MemInfo:
    """Levels, not events: free memory, page cache, dirty pages, slabs."""

    name = "meminfo"
    summary = "levels from /proc/meminfo: free memory, page cache, dirty and anonymous pages, slabs"
    sampled = (_FILE,)
    costly = False

    def readings(self, texts: Mapping[str, str]) -> Iterator[Reading]:
        """`meminfo.MemFree` and so on, in KiB; huge pages are counted."""
        for line in lines_of(texts.get(_FILE, "")):
            name, colon, amount = line.partition(":")
            value, *unit = amount.split() or [""]
            if colon and is_number(value):
                # The kernel writes kB, and means 1024 bytes.
                kib = unit == ["kB"]
                yield Reading(f"meminfo.{name}", float(value), "KiB" if kib else "pages", SeriesKind.GAUGE)


MONITOR = _MemInfo()
