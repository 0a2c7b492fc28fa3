"""How the page cache serves reads: pages asked for, and pages that had to be brought (bpftrace)."""

from ktrial.monitors.tracers.bpftrace import BpftraceMonitor


class _PageCache(BpftraceMonitor):
    """Hits are what was asked for, less what was added."""

    def counted(self, printed: str) -> dict[str, float]:
        """`page-cache.asked`, `.added`, `.hits`, `.reads`."""
        found = super().counted(printed)
        asked, added = (found.get(f"{self.name}.{what}", 0.0) for what in ("asked", "added"))
        # What was written, or mapped, was added too, and nobody asked for it by reading.
        return found | {f"{self.name}.hits": max(0.0, asked - added)}


MONITOR = _PageCache(
    "page-cache",
    "pages that reads ask for, pages that are added to the page cache, and hits (bpftrace)",
    "page-cache",
    "page-cache-tracepoints",
)
