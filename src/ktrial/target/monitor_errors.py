"""Errors about programs that watch workloads: perf, bpftrace."""

from ktrial.errors import KtrialError


class MonitorError(KtrialError):
    """Monitor {monitor}: {problem}"""


class MonitorUnusable(MonitorError):
    """The monitor {monitor} cannot watch anything here: {problem}."""

    hint = "{remedy}; or leave it out of `monitors` in [machine]"


class MonitorFailed(MonitorError):
    """The monitor {monitor} {problem}."""
