"""The machine `ssh`, over a real sshd of the tests' own on 127.0.0.1: the other system is this one."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.ssh_systems import HOST, SshServer, ssh_server

from ktrial.experiment.host_settings import RemoteSettings
from ktrial.machines.errors import (
    ConnectionLost,
    HostChangeForbidden,
    MachineError,
    MachineInUse,
    MachineUsageError,
    NotReached,
)
from ktrial.machines.host import HostMachine
from ktrial.machines.ssh import SshMachine
from ktrial.model.machine import Boot, is_host_name
from ktrial.target import Push, Read, Run, Step, StepResult, Write
from ktrial.target.errors import GuestEnded

KNOB = "/proc/sys/vm/stat_interval"
"""Harmless: how often the kernel adds up its statistics."""
PATIENCE = 60.0


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sshd")


@pytest.fixture(scope="module")
def server(directory: Path) -> Iterator[SshServer]:
    with ssh_server(directory) as running:
        yield running


@pytest.fixture
def machine(server: SshServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshMachine]:
    monkeypatch.setenv("KTRIAL_SSH_CONFIG", str(server.config))
    with closing(SshMachine(HOST)) as first:
        yield first


def performed(machine: SshMachine, *steps: Step, limit: float = 300.0) -> tuple[StepResult, ...]:
    with machine.start(Boot(kernel=HostMachine().kernel(), limit_seconds=limit)) as target:
        return target.perform(steps)


def shell(script: str) -> Run:
    return Run(argv=("sh", "-c", script), environment={"PATH": "/usr/bin:/bin"}, watch=("/proc/vmstat",))


def value() -> str:
    return Path(KNOB).read_text().strip()


def other_value() -> str:
    return str(int(value()) + 1)


def gone(path: str) -> bool:
    until = time.monotonic() + PATIENCE
    while Path(path).exists():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_steps_are_those_of_this_system_and_nothing_stays(machine: SshMachine) -> None:
    results = performed(
        machine,
        Read(path="/proc/sys/kernel/osrelease"),
        shell("echo out; echo err >&2; exit 7"),
        Run(argv=("/ktrial/work", "--list")),
        Read(path="/proc/no/such"),
        Read(path="/proc/../etc/passwd"),
        Push(path="/etc/x", base64=""),
    )
    release, ran, work, absent, outside, pushed = results
    assert [result.step for result in results] == [0, 1, 2, 3, 4, 5]
    assert release.content.strip() == os.uname().release
    assert (ran.exit, ran.stdout, ran.stderr) == (7, "out\n", "err\n")
    assert ran.wall_ns > 0
    assert ran.watched["/proc/vmstat"]["pgfault"][0] > 0
    assert work.exit == 0
    assert absent.failure is not None
    assert absent.failure.name == "ENOENT"
    assert outside.failure is not None
    assert pushed.failure is not None
    place = machine.connection().directory
    assert Path(place, "launch").exists()
    machine.close()
    assert not Path(place).exists()


def written(path: Path) -> bool:
    until = time.monotonic() + PATIENCE
    while not (path.exists() and path.read_text().endswith("\n")):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_its_kernel_is_the_one_that_runs_there(machine: SshMachine) -> None:
    assert machine.kernel().release == os.uname().release


@pytest.mark.parametrize(
    "host",
    [
        *(
            "",
            "-oProxyCommand=touch /tmp/pwned",
            "--",
            "-l",
            "a b",
            "a;b",
            "a'b",
            'a"b',
            "a\nb",
            "a\n",
            "$(id)",
        ),
        *("`id`", "a@-b", "-a@b", "ssh://a", "a|b", "a&b", "a/b", "..", "a%h", "a\0b", "é"),
    ],
)
def test_a_name_that_could_be_more_than_a_name_is_refused_before_ssh_is_started(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert not is_host_name(host)
    with pytest.raises(MachineUsageError, match="is not a name of a machine; allowed"):
        SshMachine(host).check()


@pytest.mark.parametrize("host", ["lab1", "root@lab1", "lab-1.example.org", "192.0.2.7", "a_b@x"])
def test_names_that_ssh_knows_are_taken(host: str) -> None:
    assert is_host_name(host)


@pytest.mark.nightly
def test_paths_and_values_are_only_that_to_the_shell_there(machine: SshMachine, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    hostile = [
        f"'; touch {planted}; '",
        f"$(touch {planted})",
        f"`touch {planted}`",
        f'"; touch {planted}; "',
    ]
    texts = [*hostile, f"\n touch {planted}\n", "-n", "*"]
    assert all(entry.failure for entry in performed(machine, *(Read(path=f"/proc/{text}") for text in texts)))
    for text in hostile[:2]:
        with pytest.raises(MachineError, match="has no program"):
            performed(machine, Run(argv=(text.replace("/", "_"),), environment={"PATH": text}))
    assert not planted.exists()


def test_a_server_that_is_not_there_or_is_another_one_is_told(
    server: SshServer, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text(server.config.read_text().replace(f"{directory}/known", f"{tmp_path}/none"))
    monkeypatch.setenv("KTRIAL_SSH_CONFIG", str(config))
    with pytest.raises(NotReached, match="Host key verification failed"):
        SshMachine(HOST).check()


def test_a_program_beyond_the_limit_is_ended(machine: SshMachine) -> None:
    with pytest.raises(GuestEnded):
        performed(machine, shell("sleep 100"), limit=0.2)


def test_one_ktrial_at_a_time_has_the_machine(machine: SshMachine) -> None:
    machine.check()
    who = Path(machine.connection().directory, "who")
    assert written(who)
    with pytest.raises(MachineInUse, match=rf"{HOST} is in use by another ktrial \(\S+@\S+ since 20"):
        SshMachine(HOST).check()
    machine.close()
    with closing(SshMachine(HOST)) as next_one:
        next_one.check()


def test_a_connection_that_is_lost_is_told_and_the_next_trial_has_another(
    machine: SshMachine, server: SshServer
) -> None:
    machine.check()
    place = machine.connection().directory
    with pytest.raises(ConnectionLost):
        performed(machine, shell(f"kill {server.children()[0]}; sleep 100"))
    assert gone(place)
    assert performed(machine, shell("exit 0"))[0].exit == 0
    assert machine.connection().directory != place


@pytest.mark.root
def test_without_leave_nothing_is_set(machine: SshMachine) -> None:
    before = value()
    with pytest.raises(HostChangeForbidden):
        performed(machine, Write(path=KNOB, value=other_value()))
    assert value() == before


@pytest.mark.root
def test_a_setting_is_put_back_after_the_trial(machine: SshMachine) -> None:
    machine.writer = RemoteSettings(machine)
    before, expected = value(), other_value()
    written, ran = performed(machine, Write(path=KNOB, value=expected), shell(f"cat {KNOB}"))
    assert (written.before, written.after, ran.stdout.strip()) == (before, expected, expected)
    assert value() == before


@pytest.mark.root
def test_a_value_that_the_kernel_refuses_is_the_step_s_failure(machine: SshMachine) -> None:
    machine.writer = RemoteSettings(machine)
    before = value()
    (written,) = performed(machine, Write(path=KNOB, value="'; true '"))
    assert written.failure is not None
    assert value() == before


def is_put_back(before: str) -> bool:
    until = time.monotonic() + PATIENCE
    while value() != before and time.monotonic() < until:
        time.sleep(0.5)
    return value() == before


@pytest.mark.root
@pytest.mark.parametrize("lost", ["connection", "keeper"])
def test_the_machine_itself_puts_back_what_was_set_when_the_connection_or_the_keeper_is_gone(
    lost: str, machine: SshMachine, server: SshServer
) -> None:
    machine.writer = RemoteSettings(machine)
    before, expected = value(), other_value()
    keeper = Path(machine.connection().directory, "keeper").read_text().strip()
    killed = {"connection": server.children()[0], "keeper": f"-9 {keeper}"}[lost]
    with pytest.raises(ConnectionLost):
        performed(machine, Write(path=KNOB, value=expected), shell(f"kill {killed}; sleep 0.2"))
    assert is_put_back(before)
