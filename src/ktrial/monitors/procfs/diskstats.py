"""/proc/diskstats: requests, sectors and time by disk (Documentation/admin-guide/iostats.rst)."""

from collections.abc import Iterator, Mapping

from ktrial.model.trial import SeriesKind
from ktrial.monitors import Reading, is_number
from ktrial.text_lines import lines_of

_FILE = "/proc/diskstats"
_FIELDS = (
    ("reads", "requests"),
    ("read_merges", "requests"),
    ("read_sectors", "sectors"),
    ("read_ticks", "ms"),
    ("writes", "requests"),
    ("write_merges", "requests"),
    ("write_sectors", "sectors"),
    ("write_ticks", "ms"),
    ("in_flight", "requests"),
    ("io_ticks", "ms"),
    ("time_in_queue", "ms"),
    ("discards", "requests"),
    ("discard_merges", "requests"),
    ("discard_sectors", "sectors"),
    ("discard_ticks", "ms"),
    ("flushes", "requests"),
    ("flush_ticks", "ms"),
)
"""Named as Documentation/block/stat.rst names them. Discards since 4.18, flushes since 5.5. A sector has 512
bytes."""
_BEFORE = 3
"""Major number, minor number, name."""
_LEVEL = "in_flight"


class _DiskStats:
    """What each disk and partition was asked for. Devices that were never asked are left out."""

    name = "diskstats"
    summary = "from /proc/diskstats, by device: requests, merges, sectors, time, requests under way"
    sampled = (_FILE,)
    costly = False

    def readings(self, texts: Mapping[str, str]) -> Iterator[Reading]:
        """`diskstats.vda.reads`, `diskstats.nullb0.write_sectors` and so on."""
        for line in lines_of(texts.get(_FILE, "")):
            words = line.split()
            values = words[_BEFORE:]
            if not values or not all(map(is_number, values)) or not any(map(float, values)):
                continue
            for (field, unit), value in zip(_FIELDS, values, strict=False):
                kind = SeriesKind.GAUGE if field == _LEVEL else SeriesKind.COUNTER
                yield Reading(f"diskstats.{words[2]}.{field}", float(value), unit, kind)


MONITOR = _DiskStats()
