"""Time off the CPU: blocked, asleep, or runnable while others had it (bpftrace)."""

from ktrial.monitors.tracers.bpftrace import BpftraceMonitor

MONITOR = BpftraceMonitor(
    "off-cpu",
    "time off the CPU: blocked, asleep, or waiting for a CPU (bpftrace)",
    "off-cpu",
)
