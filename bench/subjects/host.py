"""Many runs of a short command on this system, beside hyperfine; and what ktrial does meanwhile."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.row import Row, median, seconds
from ktrial.experiment.jobs import jobs_of
from ktrial.experiment.resources import default_resources
from ktrial.experiment.trial import run_trial
from ktrial.machines.host import HostMachine
from ktrial.model.design import Factor, FactorKind
from ktrial.model.machine import Boot
from ktrial.model.study import MachineSettings, Study, plan
from ktrial.model.trial import Outcome
from ktrial.model.workload import Command, WorkloadUse
from ktrial.store.store import open_store
from ktrial.target import Run

COMMAND = ("/bin/sleep", "0.001")
"""A command of about a millisecond."""
RUNS, ROUNDS, WHOLE_ROUNDS = 200, 9, 3
MOST_OWN_WORK = 0.001
"""ktrial's own CPU time while a workload runs, as a share of the wall clock."""
_LONG = ("/bin/sh", "-c", "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done")
_KTRIAL = (sys.executable, "-c", "from ktrial.cli.main import main; main()")
_INSTALL = "hyperfine is not installed: sudo apt-get install hyperfine"
_WHOLE = f"""
machine = "host"
workloads = [{{ name = "short", command = {json.dumps(COMMAND)}, repeats = {RUNS // 6} }}]
[timed]
stopping = "fixed"
blocks = 3
[factors.nothing]
kind = "nothing"
levels = ["one", "other"]
"""
"""Three blocks of two trials, with one more run in each that is discarded."""


def rows() -> Iterator[Row]:
    """In turn, so that both meet the same load."""
    note = "" if shutil.which("hyperfine") else _INSTALL
    rounds = [(*_ours(), *(_theirs() if not note else ())) for _ in range(ROUNDS)]
    whole, inside, *others = (median(list(column)) for column in zip(*rounds, strict=True))
    other_whole, other_inside = others or (None, None)
    name = f"a run of `sleep 0.001` on the host ({RUNS} in a trial)"
    yield Row(
        f"{name}, all around it too, stored", whole, "hyperfine -N", other_whole, least_ratio=1.0, note=note
    )
    yield Row(f"{name}, as it is measured", inside, "hyperfine -N", other_inside, least_ratio=1.0)
    yield from _commands(note)
    share = own_share()
    yield Row(
        "ktrial's own CPU time in a second of a workload",
        share,
        most_seconds=MOST_OWN_WORK,
        note=f"ktrial worked {share * 100:.4f} % of the time while a workload ran",
    )


def _ours() -> tuple[float, float]:
    """Seconds a run: of a trial from its start to its result in the store, and as measured (median)."""
    use = WorkloadUse(name="short", command=Command(argv=COMMAND, repeats=RUNS - 1))
    same = Factor(name="nothing", kind=FactorKind.NOTHING, levels=("one", "other"), baseline="one")
    study = Study(name="bench", machine=MachineSettings(kind="host"), factors=(same,), workloads=(use,))
    machine = HostMachine()
    planned = plan(study)
    jobs = jobs_of(study, planned.baseline, machine.kernel(), default_resources())
    with tempfile.TemporaryDirectory() as directory, open_store(Path(directory) / "trials.db") as store:
        number = store.study(study)

        def trial() -> None:
            ended = run_trial(machine, planned.trials[0], jobs)
            store.add_trial(number, ended)
            if ended.outcome is not Outcome.COMPLETED:
                raise RuntimeError(f"the trial {ended.outcome}: {ended.reason}")
            [sample] = ended.samples
            measured.append(sample.value / 1e9)

        measured: list[float] = []
        whole = seconds(trial)
    return whole / RUNS, measured[0]


def _theirs() -> tuple[float, float]:
    """The same of hyperfine, without a shell."""
    with tempfile.TemporaryDirectory(prefix="ktrial-bench-") as directory:
        report = Path(directory) / "report.json"
        command = ("hyperfine", "-N", "--runs", str(RUNS), "--export-json", str(report), " ".join(COMMAND))
        whole = seconds(lambda: subprocess.run(command, check=True, capture_output=True))
        return whole / RUNS, float(json.loads(report.read_text())["results"][0]["median"])


def _commands(note: str) -> Iterator[Row]:
    """The two programs from their start to their end, with as many runs; and ktrial's start-up alone."""
    with tempfile.TemporaryDirectory(prefix="ktrial-bench-") as directory:
        file = Path(directory) / "short.toml"
        file.write_text(_WHOLE)
        ours, again, theirs = [], [], []
        for number in range(WHOLE_ROUNDS):
            store = str(Path(directory) / f"{number}.db")
            command = (*_KTRIAL, "run", str(file), "--store", store, "--no-html")
            ours.append(_took(*command))
            again.append(_took(*command))
            if not note:
                theirs.append(_took("hyperfine", "--runs", str(RUNS), " ".join(COMMAND)))
    other = median(theirs) if theirs else None
    yield Row(
        f"`ktrial run`, {RUNS} runs of `sleep 0.001`, its start-up too",
        median(ours),
        "hyperfine --runs",
        other,
    )
    yield Row("`ktrial run` where every trial is stored already: its start-up", median(again))


def _took(*command: str) -> float:
    return seconds(lambda: subprocess.run(command, check=True, capture_output=True))


def own_share() -> float:
    """The middle one of some rounds: another program may have disturbed one."""
    machine = HostMachine()
    with machine.start(Boot(kernel=machine.kernel())) as target:
        results = target.perform((Run(argv=_LONG),) * ROUNDS)
    return median([result.rusage["ktrial_ns"] / result.wall_ns for result in results])
