"""A timed study computes between its trials in one thread, whatever BLAS may do.

A thread of BLAS that has had work waits busily for tens of milliseconds, beside what is measured next, and
sums depend on how many there are. `tune` limits them (`ktrial.optimize.search`). The looks at a timed study
need no limit: their products are too small for BLAS to share them out, which this holds.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = '''
import os, random, sys, time
from pathlib import Path
import numpy as np
import scipy.linalg, scipy.special
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, scripted_resources
from ktrial.experiment.observer import Observer
from ktrial.experiment.session import run
from ktrial.model.base import digest
from ktrial.model.study import Timing
from ktrial.model.workload import Mode
from ktrial.store.store import open_store
from ktrial.target import StepResult

threads = [each for each in os.listdir("/proc/self/task") if int(each) != os.getpid()]

def spent():
    """Nanoseconds of CPU of the threads that BLAS has, once they are at rest."""
    before = None
    while True:
        texts = [Path(f"/proc/self/task/{each}/schedstat").read_text() for each in threads]
        now = [int(text.split()[0]) for text in texts]
        if now == before:
            return sum(now)
        before = now
        time.sleep(0.2)

def answer(boot, run):
    drawn = random.Random(digest([boot.kernel.name, run.argv])).gauss(0.0, 0.03)
    return StepResult(step=0, do="run", exit=0, stdout=str(1000 * (1 + drawn)))

def study():
    kernels = tuple(f"debian:{each}" for each in ("6.1", "6.6", "6.12", "6.18"))
    timing = Timing(blocks=int(sys.argv[2]))
    which = a_study(workloads=("fork", "pipe", "syscall"), kernels=kernels, timing=timing)
    with open_store(Path(sys.argv[1]) / "trials.db") as store:
        machine = ScriptedMachine(answer, mode=Mode.TIMED)
        record = run(which, store=store, machine=machine, resources=scripted_resources(), observer=Observer())
        assert len(record.trials) > 40, len(record.trials)

def product():
    np.ones((4000, 400)) @ np.ones(400)

for work in (study, product):
    before = spent()
    work()
    print(spent() - before)
'''


@pytest.mark.nightly
@pytest.mark.parametrize("blocks", [12, pytest.param(30, marks=pytest.mark.nightly)])
def test_no_other_thread_computes(blocks: int, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path), str(blocks)]
    root = Path(__file__).parents[3]
    process = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    assert not process.returncode, process.stderr
    study, product = map(int, process.stdout.split())
    if not product:
        pytest.skip("BLAS has one thread here: one CPU, or a library without threads")
    assert study == 0, "nanoseconds of CPU of the threads of BLAS"
