"""/proc/softirqs: soft interrupts by kind, summed over the CPUs (proc_softirqs(5))."""

from collections.abc import Iterator, Mapping

from ktrial.monitors import Reading, numbers

_FILE = "/proc/softirqs"


class _SoftIrqs:
    """How often each kind ran, by the kernel's own names (kernel/softirq.c, softirq_to_name)."""

    name = "softirqs"
    summary = "from /proc/softirqs: soft interrupts by kind (TIMER, NET_RX, BLOCK, SCHED, RCU)"
    sampled = (_FILE,)
    costly = False

    def readings(self, texts: Mapping[str, str]) -> Iterator[Reading]:
        """`softirqs.NET_RX` and so on."""
        for name, by_cpu in numbers(texts.get(_FILE, "")).items():
            yield Reading(f"softirqs.{name}", sum(by_cpu))


MONITOR = _SoftIrqs()
