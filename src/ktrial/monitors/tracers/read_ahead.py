"""Read-ahead windows: how many pages at a time, and why (bpftrace)."""

from ktrial.monitors.tracers.bpftrace import BpftraceMonitor

MONITOR = BpftraceMonitor(
    "read-ahead",
    "read-ahead windows in pages, and whether a miss or a mark asked for them (bpftrace)",
    "read-ahead",
    "read-ahead-tracepoints",
)
