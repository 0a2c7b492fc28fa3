"""What the plugin of several CPUs counts by function: one run of a program on two CPUs, as it writes it."""

import json
from typing import Any

from ktrial.machines.exact_parallel import region_of
from ktrial.model.parallel import ParallelCounts
from ktrial.model.profile import Profile

SPIN = "native_queued_spin_lock_slowpath"
LINE: dict[str, Any] = {
    "regions": 2,
    "instructions": 1010,
    "operations": 4,
    "sum": 1000,
    "middle": [240, 260],
    "extremes": [200, 300],
    "cpus": [5000, 6000],
    "idle": [0, 0],
    "clock": 9,
    "rounds": 10,
    "fingerprint": "00ff",
    "counted": {
        "time": 2000,
        "functions": [
            ["do_mmap", "", [[600, 2, 0, 0, 0], [0, 0, 0, 0, 0]]],
            [SPIN, "", [[0, 0, 0, 0, 0], [100, 1, 80, 10, 0]]],
            ["__switch_to_asm", "", [[10, 4, 0, 0, 0], [0, 0, 0, 0, 0]]],
            ["asm_sysvec_reschedule_ipi", "", [[0, 0, 0, 0, 0], [8, 2, 0, 0, 60]]],
            ["ext4_write", "ext4", [[2, 1, 0, 0, 0], [0, 0, 0, 0, 0]]],
        ],
        "pages": [
            [4096, 7, [[200, 0, 0, 0, 0], [0, 0, 0, 0, 0]]],
            [8192, 8, [[0, 0, 0, 0, 0], [90, 0, 10, 1, 0]]],
        ],
        "waits": [
            [SPIN, "", "ext4_write", "ext4", 80, 10],
            ["[program]", "", "", "", 10, 1],
        ],
        "idle": [["schedule_timeout", "", "kthread", "", 0, 1188], ["", "", "", "", 1, 1192]],
    },
}


def counts(line: dict[str, Any] = LINE) -> ParallelCounts:
    return ParallelCounts.model_validate_json(json.dumps(line))


def profile(line: dict[str, Any] = LINE) -> Profile:
    region = region_of(counts(line))
    assert region
    return Profile(kernel="k", workload="w", operations=4, region=region)
