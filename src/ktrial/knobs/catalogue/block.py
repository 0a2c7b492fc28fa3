"""Block devices: elevator, read-ahead, queue depth, write-back throttling. One of each for every disk."""

from collections.abc import Sequence
from typing import Any

from ktrial.knobs.catalogue.declare import file
from ktrial.model.knob import Default, Knob, KnobKind, Safety

_DRIVER = (Default(computed="the driver"),)


def _queue(name: str, summary: str, default: str | Sequence[Default], **more: Any) -> Knob:
    more.setdefault("documentation", "Documentation/ABI/stable/sysfs-block")
    return file(
        f"queue/{name}", f"/sys/block/{{disk}}/queue/{name}", summary, default, needs="a disk", **more
    )


KNOBS = (
    _queue(
        "scheduler",
        "elevator: in which order requests go to the disk",
        _DRIVER,
        kind=KnobKind.CHOICE,
        documentation="Documentation/block/switching-sched.rst",
        coupled=("queue/nr_requests",),
    ),
    _queue(
        "read_ahead_kb",
        "file data read ahead at most; kernels round it to pages",
        (Default(value="128", computed="the driver: more where its best size is larger"),),
        unit="kB",
        minimum=0,
    ),
    _queue(
        "nr_requests",
        "requests that the elevator holds in each direction",
        _DRIVER,
        minimum=4,
        coupled=("queue/scheduler",),
    ),
    _queue(
        "wbt_lat_usec",
        "read latency that write-back throttling aims for; 0: no throttling, -1: the default",
        (Default(computed="the driver: 2000 for SSDs, 75000 for rotating disks"),),
        unit="us",
        minimum=-1,
        config="CONFIG_BLK_WBT",
    ),
    _queue(
        "rotational",
        "the disk is taken for one that turns: elevators, swap and file systems decide by it",
        _DRIVER,
        kind=KnobKind.SWITCH,
        choices=("0", "1"),
    ),
    _queue(
        "nomerges",
        "requests are not merged: 1 only in the simple way, 2 not at all",
        "0",
        choices=("0", "1", "2"),
    ),
    _queue(
        "rq_affinity",
        "CPU that completes a request: 0 any, 1 near the one that asked, 2 that one",
        "1",
        choices=("0", "1", "2"),
    ),
    _queue(
        "iostats",
        "the disk's counters are kept, which costs time at each request",
        _DRIVER,
        kind=KnobKind.SWITCH,
        choices=("0", "1"),
    ),
    _queue(
        "add_random",
        "requests add to the kernel's entropy",
        _DRIVER,
        kind=KnobKind.SWITCH,
        choices=("0", "1"),
    ),
    _queue(
        "max_sectors_kb", "largest request", _DRIVER, unit="kB", minimum=4, coupled=("queue/read_ahead_kb",)
    ),
    _queue(
        "write_cache",
        "whether flushes are sent to the disk: `write through` sends none",
        _DRIVER,
        kind=KnobKind.CHOICE,
        choices=("write back", "write through"),
        safety=Safety.DURABILITY,
    ),
)
"""Those of this subsystem."""
