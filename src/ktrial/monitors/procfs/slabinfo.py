"""/proc/slabinfo: objects of the kernel's own caches (slabinfo(5)). Only root may read it.

The kernel counts the objects of every cache of every CPU for it, under a lock: some milliseconds, where all
other monitors together take a tenth of one.
"""

from collections.abc import Iterator, Mapping

from ktrial.model.trial import SeriesKind
from ktrial.monitors import Reading, is_number
from ktrial.text_lines import lines_of

_FILE = "/proc/slabinfo"


class _SlabInfo:
    """How many objects of each cache are in use."""

    name = "slabinfo"
    summary = "levels from /proc/slabinfo (root only): objects in use by cache: dentry, inode_cache"
    sampled = (_FILE,)
    costly = True

    def readings(self, texts: Mapping[str, str]) -> Iterator[Reading]:
        """`slabinfo.dentry` and so on. The two first lines are no caches."""
        for line in lines_of(texts.get(_FILE, "")):
            cache, active, *_ = (*line.split(), "", "")
            if is_number(active):
                yield Reading(f"slabinfo.{cache}", float(active), "objects", SeriesKind.GAUGE)


MONITOR = _SlabInfo()
