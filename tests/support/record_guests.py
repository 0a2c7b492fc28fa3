"""Boots golden guests and writes down what they say: python -m tests.support.record_guests [NAME...]

Run it after a change that changes what guests are asked or say (the agent, the workloads, the plugin, QEMU's
arguments), look at what changed in the tests of tests/recorded, and commit both. Kernels come from the cache.
"""

import sys
import tempfile
from pathlib import Path

from tests.support.golden_guests import GOLDEN, RECORDINGS, Guests
from tests.support.recorded_guests import Recorder, Recording

from ktrial.experiment.resources import default_resources
from ktrial.machines.exact import ExactMachine


def recorded(name: str, directory: Path) -> Recording:
    """Boot the golden guest of that name, with no snapshots but its own."""
    golden = GOLDEN[name]
    machine = ExactMachine(cache=directory / "snapshots", count=golden.count, keeps=False)
    machine.check()
    with Recorder().recording() as recorder:
        golden.does(Guests(machine, default_resources(), directory))
    return recorder.recorded()


def main(names: list[str]) -> None:
    """Record those that are named, or all."""
    RECORDINGS.mkdir(exist_ok=True)
    for name in names or GOLDEN:
        with tempfile.TemporaryDirectory() as directory:
            recording = recorded(name, Path(directory))
        path = RECORDINGS / f"{name}.json.xz"
        recording.save(path)
        print(f"{name}: {len(recording.runs)} guests, {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
