"""A trial from a snapshot, and a boot without one; beside virtme-ng, which boots for every command.

Its part of the comparison is done on Debian's generic kernel: it needs 9p, which the cloud kernel lacks.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row, median, seconds
from bench.virtme_ng import INSTALL, Vng, VngFailed
from ktrial.experiment.jobs import jobs_of
from ktrial.experiment.profile import KernelSymbols
from ktrial.experiment.resources import default_resources
from ktrial.experiment.trial import run_trial
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.study import MachineSettings, Study, plan
from ktrial.model.trial import Outcome
from ktrial.model.workload import CountedBy, WorkloadUse
from ktrial.store.store import open_store

CLOUD, GENERIC = "debian:6.12", "debian:6.12:generic"
TRIALS, BOOTS = 10, 5
TIMES_FASTER = 20.0
"""Than virtme-ng."""
LONGEST_TRIAL, LONGEST_BOOT = 0.5, 3.0
"""In seconds, on two idle cores."""


def rows() -> Iterator[Row]:
    """Each on the usual kernel, then on one that virtme-ng boots too."""
    cloud, generic = kernel_registry.add(CLOUD), kernel_registry.add(GENERIC)
    by_clock = trial(cloud, CountedBy.CLOCK)
    yield Row(
        f"trial of syscall, restored, counted by the plugin, stored; {CLOUD}",
        trial(cloud),
        "read from the clock",
        by_clock,
        most_seconds=LONGEST_TRIAL,
    )
    cold = median([cold_boot(cloud) for _ in range(BOOTS)])
    yield Row(f"cold boot to ready; {CLOUD}", cold, most_seconds=LONGEST_BOOT)
    yield from beside_virtme_ng(generic)


def beside_virtme_ng(kernel: Kernel) -> Iterator[Row]:
    """Both, and virtme-ng's whole run: boots in turn, so that both meet the same load."""
    restored = trial(kernel)
    vng = Vng.find()
    ours, theirs, note = [], [], "" if vng else INSTALL.format(python=sys.executable)
    for _ in range(BOOTS):
        ours.append(cold_boot(kernel))
        if vng and not note:
            try:
                theirs.append(seconds(lambda: vng.boot(kernel)))
            except VngFailed as error:
                note = f"virtme-ng failed: {error}"
    against = f"{vng.version}, boot and --exec" if vng else "virtme-ng"
    other = median(theirs) if theirs and not note else None
    for what, took in (
        ("trial of syscall, restored, stored", restored),
        ("cold boot to ready", median(ours)),
    ):
        yield Row(f"{what}; {kernel.name}", took, against, other, least_ratio=TIMES_FASTER, note=note)


def trial(kernel: Kernel, count: CountedBy | None = None) -> float:
    """Median seconds from a trial's start to its result in the store, with a snapshot that is there.

    The first trial is left out: it looks up the symbols, and follows calls too.
    """
    study = Study(
        name="bench",
        machine=MachineSettings(kernel=kernel.name),
        factors=(),
        workloads=(WorkloadUse(name="syscall"),),
        perturbations=TRIALS + 1,
    )
    planned = plan(study)
    jobs = jobs_of(study, planned.baseline, kernel, default_resources())
    machine, symbols = ExactMachine(count=count), KernelSymbols()
    for job in jobs:
        machine.prepare(job.boot, lambda _what: None)
    took = []
    with tempfile.TemporaryDirectory() as directory, open_store(Path(directory) / "trials.db") as store:
        number = store.study(study)
        for one in planned.trials:
            began = time.monotonic()
            ended = run_trial(machine, one, jobs, symbols=symbols)
            store.add_trial(number, ended)
            took.append(time.monotonic() - began)
            if ended.outcome is not Outcome.COMPLETED:
                raise RuntimeError(f"the trial {ended.outcome}: {ended.reason}")
    return median(took[1:])


def cold_boot(kernel: Kernel) -> float:
    """Seconds from the call until the agent is ready in a settled system: no snapshot, nothing prepared."""
    with tempfile.TemporaryDirectory() as directory:
        machine = ExactMachine(cache=Path(directory))
        told: dict[str, float] = {}
        began = time.monotonic()
        machine.prepare(Boot(kernel=kernel), lambda what: told.update({what: time.monotonic()}))
        return told["saving the snapshot"] - began
