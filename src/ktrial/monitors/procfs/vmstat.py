"""/proc/vmstat: memory management's events, by the kernel's own names (mm/vmstat.c, vmstat_text)."""

from collections.abc import Mapping

_FILE = "/proc/vmstat"
_RISING = {
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_dirtied",
    "nr_written",
    "nr_throttled_written",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_tlb_remote_flush",
    "nr_tlb_remote_flush_received",
    "nr_tlb_local_flush_all",
    "nr_tlb_local_flush_one",
}
"""The lines `nr_…` that only rise. All others say how much there is, not how often something happened."""


class _VmStat:
    """Faults, allocations, reclaim, page-cache reads and writes."""

    name = "vmstat"
    summary = "memory events from /proc/vmstat: faults, allocations, reclaim, page-cache traffic"
    files = (_FILE,)

    def counters(
        self, watched: Mapping[str, Mapping[str, tuple[float, ...]]], rusage: Mapping[str, float]
    ) -> dict[str, float]:
        """`vmstat.pgfault` and so on; gauges (`nr_free_pages`) are left out."""
        lines = watched.get(_FILE, {})
        return {f"vmstat.{name}": rise[0] for name, rise in lines.items() if _is_event(name) and rise}


def _is_event(name: str) -> bool:
    return not name.startswith("nr_") or name in _RISING


MONITOR = _VmStat()
