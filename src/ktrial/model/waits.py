"""What CPUs spend no work on."""

from ktrial.model.base import Model


class Waits(Model):
    """One workload under one treatment: shares of all CPUs' time, and the places that have most of it."""

    workload: str
    treatment: str
    """The levels of all factors but the number of CPUs; empty where there are none."""
    cpus: int
    waiting: float
    """Of 1: in loops until another CPU has done something, and for cache lines where these are modelled."""
    waiting_in: str
    """Empty: nowhere."""
    idle: float
    """Of 1: with nothing to run."""
    asleep_in: str
    """Where the last task on a CPU went to sleep; empty: nowhere."""
