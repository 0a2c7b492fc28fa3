"""How a workload's throughput grows with the number of CPUs."""

from ktrial.model.base import Model


class ScalingPoint(Model):
    """One number of CPUs."""

    cpus: int
    throughput: float
    """Operations a second of all CPUs together: the geometric mean over the seeds."""
    lowest: float
    """Of the seeds."""
    highest: float
    speed_up: float
    """Throughput by that at the smallest number of CPUs, of which one is 1."""
    efficiency: float
    """Speed-up by the CPUs there are for each that there was first: 1 is perfect."""


class CoefficientEstimate(Model):
    """A coefficient of the Universal Scalability Law, at least 0."""

    value: float
    low: float | None
    """Its interval at 95 % over the seeds; None with one seed."""
    high: float | None


class ScalingCurve(Model):
    """One workload under one treatment, apart from its number of CPUs."""

    workload: str
    treatment: str
    """The levels of all other factors; empty where there are none."""
    seeds: int
    """Trials at each number of CPUs."""
    points: tuple[ScalingPoint, ...]
    """By number of CPUs, from the smallest."""
    rate: float | None = None
    """λ: operations a second of one CPU, by the law; None where there are too few numbers of CPUs."""
    contention: CoefficientEstimate | None = None
    """σ: the share that is done one after another."""
    coherence: CoefficientEstimate | None = None
    """κ: what each pair of CPUs costs."""
    peak: float | None = None
    """CPUs beyond which throughput falls, by the law; None where there is no such number."""

    def at(self, cpus: int) -> ScalingPoint | None:
        """The point at a number of CPUs."""
        return next((point for point in self.points if point.cpus == cpus), None)
