"""A machine that is no Linux: busybox alone, no /proc, no /sys. Its shell runs commands, with wall time."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from tests.support import ssh_systems
from tests.support.command_line import KNOWN
from tests.support.ssh_systems import HOST, SshServer, ssh_server

from ktrial.experiment import preflight
from ktrial.experiment.host_settings import RemoteSettings
from ktrial.experiment.resources import default_resources
from ktrial.experiment.session import run
from ktrial.machines.errors import ConnectionLost, MachineError, MachineUsageError
from ktrial.machines.ssh import SshMachine, cpu_model, running_kernel, system_of
from ktrial.machines.ssh.connection import Connection
from ktrial.model.machine import Boot
from ktrial.model.study import Study
from ktrial.model.trial import Outcome
from ktrial.store.store import open_store
from ktrial.studyfile.reader import load
from ktrial.target import Read, Run, Step, StepResult, Write
from ktrial.target.errors import GuestEnded

pytestmark = pytest.mark.skipif(ssh_systems.BUSYBOX is None, reason="needs busybox-static")
PATH = {"PATH": "/bin"}
NANOSECONDS = 1e9
SLEEP_SECONDS = 0.5
PATIENCE_SECONDS = 60.0
STUDY = """[machine]
kind = "ssh"
host = "lab1"
settle_seconds = 0
[timed]
blocks = 3
stopping = "fixed"
{more}
"""
COMMAND = """[factors.PAUSE]
kind = "environment"
levels = ["0", "0.2"]
[[workloads]]
name = "mine"
command = ["/bin/sh", "-c", "sleep $PAUSE"]
"""
SETTING = '[factors."vm.swappiness"]\nlevels = [60, 10]\n[[workloads]]\nname = "mine"\ncommand = ["true"]\n'
OWN_WORKLOAD = '[[workloads]]\nname = "syscall"\n[factors.a]\nkind = "nothing"\nlevels = ["1", "2"]\n'
KERNELS = SETTING.replace('"vm.swappiness"', "kernel").replace("60, 10", '"running", "debian:6.12"')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    directory = tmp_path_factory.mktemp("other")
    root = ssh_systems.made(directory)
    with ssh_server(directory, forced=ssh_systems.forced(root)) as running:
        yield running


@pytest.fixture(scope="module")
def machine(server: SshServer) -> Iterator[SshMachine]:
    """One connection for all tests; where a test ends it, the next one has another."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KTRIAL_SSH_CONFIG", str(server.config))
        with closing(SshMachine(HOST)) as first:
            yield first


def performed(machine: SshMachine, *steps: Step, limit: float = 300.0) -> tuple[StepResult, ...]:
    with machine.start(Boot(kernel=machine.kernel(), limit_seconds=limit)) as target:
        return target.perform(steps)


def shell(script: str, **environment: str) -> Run:
    return Run(argv=("sh", "-c", script), environment=PATH | environment, directory="/tmp")


def study(tmp_path: Path, more: str) -> Study:
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(more=more))
    return load(file, replace(KNOWN, machines=("exact", "host", "ssh")))


def is_gone(words: bytes) -> bool:
    """Whether no process of this system, which is the other one's, has these words."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            if not any(words in entry.read_bytes() for entry in Path("/proc").glob("[0-9]*/cmdline")):
                return True
        except (FileNotFoundError, ProcessLookupError):
            continue
        time.sleep(0.02)
    return False


@pytest.mark.nightly
def test_commands_run_and_tell_how_they_ended(machine: SshMachine) -> None:
    ran, killed, read = performed(
        machine,
        shell("echo out; echo err >&2; pwd; exit 7"),
        shell("kill -9 $$"),
        Read(path="/proc/sys/kernel/osrelease"),
    )
    assert (ran.exit, ran.signal, ran.stdout, ran.stderr) == (7, None, "out\n/tmp\n", "err\n")
    assert ran.wall_ns > 0
    assert (killed.exit, killed.signal) == (None, 9)
    assert read.failure is not None


@pytest.mark.nightly
def test_a_wall_time_is_what_a_command_takes_but_for_the_ways_of_two_words(machine: SshMachine) -> None:
    """'begin' may come later than it was said (by 1.5 ms was seen), and by more where this system is busy:
    three sleep, and the longest is asked, which lacks a tenth of itself only where all three words were late.
    """
    begun = time.monotonic_ns()
    slept = performed(machine, *(shell(f"sleep {SLEEP_SECONDS}") for _ in range(3)))
    took = time.monotonic_ns() - begun
    assert max(entry.wall_ns for entry in slept) >= 0.9 * SLEEP_SECONDS * NANOSECONDS
    assert sum(entry.wall_ns for entry in slept) <= took


class Bsd:
    """As far as it is asked what it is."""

    host = HOST

    def script(self, text: str) -> bytes:
        answers = ["FreeBSD", "amd64", "14.1-RELEASE", "FreeBSD 14.1-RELEASE GENERIC"]
        return "\n".join(answers).encode() if "uname" in text else b"model name: AMD EPYC\n"


def test_its_kernel_bears_the_name_of_its_system() -> None:
    bsd = cast("Connection", Bsd())
    kernel = running_kernel(bsd, system_of(bsd))
    assert (kernel.release, kernel.architecture) == ("FreeBSD 14.1-RELEASE", "amd64")
    assert cpu_model(bsd) == "AMD EPYC"


def test_what_a_command_is_given_arrives_as_it_is(machine: SshMachine) -> None:
    hostile = "'; touch /tmp/planted; '$(touch /tmp/planted)`touch /tmp/planted`\n\"\\ *"
    ran, planted = performed(machine, shell('printf %s "$GIVEN"', GIVEN=hostile), shell("test -e planted"))
    assert ran.stdout == hostile
    assert planted.exit == 1


@pytest.mark.nightly
def test_what_a_command_prints_comes_whole(machine: SshMachine) -> None:
    (ran,) = performed(machine, shell("yes 0123456789abcde | head -c 1600000; printf end >&2"))
    assert (len(ran.stdout), ran.stderr) == (1_600_000, "end")


@pytest.mark.nightly
def test_nothing_stays_there(machine: SshMachine, server: SshServer) -> None:
    performed(machine, shell("true"))
    place = server.config.parent / "root" / machine.connection().directory.lstrip("/")
    assert place.is_dir()
    machine.close()
    assert not place.exists()


def test_a_command_beyond_the_limit_is_ended_with_what_it_has_started(machine: SshMachine) -> None:
    with pytest.raises(GuestEnded):
        performed(machine, shell("sleep 1234.5 & sleep 1234.5; :"), limit=0.2)
    assert is_gone(b"1234.5")


@pytest.mark.nightly
def test_a_connection_that_is_lost_ends_the_command_and_is_told(
    machine: SshMachine, server: SshServer
) -> None:
    machine.check()
    (serving,) = server.children()
    with pytest.raises(ConnectionLost):
        performed(machine, shell(f"kill {serving}; sleep 2345.6; :"))
    assert is_gone(b"2345.6")


@pytest.mark.nightly
def test_a_program_or_a_directory_that_is_not_there_is_told(machine: SshMachine) -> None:
    with pytest.raises(MachineError, match="has no program nothing in /bin"):
        performed(machine, Run(argv=("nothing",), environment=PATH))
    with pytest.raises(MachineError, match="has no directory /nowhere"):
        performed(machine, shell("true").model_copy(update={"directory": "/nowhere"}))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (SETTING, "no settings"),
        (OWN_WORKLOAD, r"no workloads of its own \(syscall\)"),
        (KERNELS, "no boots into kernels"),
    ],
)
def test_what_needs_linux_is_refused_before_the_first_trial(
    machine: SshMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, expected: str
) -> None:
    monkeypatch.setattr(machine, "writer", RemoteSettings(machine))
    with pytest.raises(MachineUsageError, match=f"lab1 is Linux on i686, where ktrial has {expected}"):
        preflight.check_host(study(tmp_path, more), machine)


@pytest.mark.nightly
def test_steps_that_need_linux_are_refused_as_well(machine: SshMachine) -> None:
    for step in (Write(path="/proc/sys/vm/swappiness", value="1"), Run(argv=("/ktrial/work", "--list"))):
        with pytest.raises(MachineUsageError):
            performed(machine, step)


@pytest.mark.nightly
def test_a_study_of_a_command_is_measured_there(machine: SshMachine, tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        record = run(study(tmp_path, COMMAND), store=store, machine=machine, resources=default_resources())
    assert [trial.outcome for trial in record.trials] == [Outcome.COMPLETED] * 6
    paused = [
        sample.value > 0.2 * NANOSECONDS
        for trial in record.trials
        for sample in trial.samples
        if trial.planned.treatment.levels["PAUSE"] == "0.2"
    ]
    assert paused == [True] * 3
