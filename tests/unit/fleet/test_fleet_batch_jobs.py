"""Workers that are jobs of a batch system. (With real Slurm: by hand, see docs/fleet.md.)"""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.fleets import (
    a_fleet,
    fake_slurm,
    numbers,
    run_here,
    run_on,
    runs,
    study_of,
    submitted,
    with_all_there,
)
from tests.support.places import ROOT
from tests.support.real_runs import KTRIAL
from tests.support.scripted import wait_until

from ktrial.fleet.batch_jobs import read, script
from ktrial.fleet.errors import BadFleet
from ktrial.fleet.settings import fleet
from ktrial.store.store import Store

TABLE = """
[slurm]
workers = 2
cores = 1
memory = "1 GiB"
queue = "short"
job-extra-directives = ["--exclusive"]
"""


def written(directory: Path, tables: str = TABLE, address: str = "tcp://127.0.0.1:8786") -> Path:
    path = directory / "lab.toml"
    path.write_text(f'address = "{address}"\n{tables}')
    return path


def test_a_job_is_what_the_file_s_table_says(place: Path) -> None:
    path = written(place)
    jobs = read(path, None)
    assert (jobs.system, jobs.workers) == ("slurm", 2)
    assert read(path, "slurm", 64).workers == 64, "the command line's number goes before the file's"
    assert fleet(str(path)).address == "tcp://127.0.0.1:8786", "the file serves clients too"
    lines = script(jobs, fleet(str(path))).splitlines()
    assert {"#SBATCH -p short", "#SBATCH --exclusive", "#SBATCH --mem=1G", "#SBATCH -J ktrial"} <= set(lines)
    assert "-m ktrial.fleet.serving tcp://127.0.0.1:8786" in lines[-1]


def test_a_job_of_an_encrypted_fleet_has_its_certificates_and_no_leave_to_go_without(place: Path) -> None:
    kinds = ("ca", "cert", "key")
    for what in kinds:
        (place / f"{what}.pem").touch()
    files = "".join(f'tls-{what} = "{what}.pem"\n' for what in kinds)
    path = written(place, files + TABLE, "tls://head:8786")
    last = script(read(path, None), fleet(str(path))).splitlines()[-1]
    assert f"--tls-ca-file {place}/ca.pem" in last
    assert f"--tls-key {place}/key.pem" in last
    assert "--insecure" not in last


@pytest.mark.parametrize(
    ("tables", "system", "said"),
    [
        ("", None, "it has none of htcondor, lsf, oar, pbs, sge, slurm"),
        ("[slurm]\nworkers = 1\n[pbs]\nworkers = 1\n", None, "which batch system. it has pbs, slurm"),
        ("[slurm]\nworkers = 1\n", "pbs", "which batch system. it has slurm"),
        ("[slurm]\n", None, r"\[slurm\] workers: a whole number from 1 is needed"),
        ("[slurm]\nworkers = 1.5\n", None, r"\[slurm\] workers: a whole number from 1 is needed"),
        ("[slurm]\nworkers = 1\nqueu = 'x'\n", None, r"\[slurm\] queu is not known; known: account, cores"),
        ("[slurm]\nworkers = 1\nworker-command = 'x'\n", None, "worker-command is not known"),
        ("slurm = 3\n", None, r"slurm is a table: \[slurm\]"),
    ],
)
def test_a_table_with_a_mistake_is_refused_with_what_it_is(
    tables: str, system: str | None, said: str, place: Path
) -> None:
    with pytest.raises(BadFleet, match=said):
        read(written(place, tables), system)


@contextmanager
def up(path: Path, commands: Path) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {
        "PATH": f"{commands}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
        "DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "1s",
    }
    program = [KTRIAL, "fleet", "up", str(path)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(program, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.nightly
def test_jobs_perform_a_study_and_what_ends_is_submitted_again_until_the_end(
    place: Path, store: Store, other: Store
) -> None:
    commands = fake_slurm(place / "bin")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with up(written(place, address=address), commands) as process, a_fleet(address, patience=300.0) as lab:
        first = submitted_when(2, commands)
        record = run_on(with_all_there(lab, 2), study_of(2), store)
        os.killpg(first[0], signal.SIGKILL)
        third = submitted_when(3, commands)[2]
        wait_until(
            lambda: {one.name for one in lab.connection.workers().values()} == {"ktrial-0", "ktrial-1"}
        )
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate()
    assert {one.provenance.worker for one in record.trials} <= {"ktrial-0", "ktrial-1"}
    assert numbers(record) == numbers(run_here(study_of(2), other))
    wait_until(lambda: not runs(first[1]) and not runs(third))
    assert process.returncode == 0
    assert "2 of 2 workers are there" in said
    assert said.splitlines()[-1] == "cancelling the jobs"


def submitted_when(count: int, commands: Path) -> list[int]:
    wait_until(lambda: len(submitted(commands)) >= count)
    return submitted(commands)


def test_a_batch_system_that_takes_no_job_is_told(place: Path) -> None:
    commands = fake_slurm(place / "bin")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    path = written(place, TABLE.replace("short", "nowhere"), address)
    with up(path, commands) as process:
        said, _ = process.communicate()
    assert process.returncode == 1
    assert "The batch system slurm took no job" in said
    assert "invalid partition specified: nowhere" in said
