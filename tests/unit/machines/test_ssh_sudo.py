"""A login that is not root: all that is done there is done by sudo, which must not ask. Over a real sshd."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.ssh_systems import HOST, ssh_server

from ktrial.machines.errors import MachineError
from ktrial.machines.host import HostMachine
from ktrial.machines.ssh import SshMachine
from ktrial.model.machine import Boot
from ktrial.target import Run

_SUDO = """#!/bin/sh
# What ktrial asks of sudo, and nothing else; `asks`: as it answers whom it would ask for a password.
[ -e {place}/asks ] && {{ echo "sudo: a password is required" >&2; exit 1; }}
[ "$1 $2" = "-n --" ] || {{ echo "sudo: $*" >&2; exit 1; }}
shift 2; echo "$1 $2" >>{place}/asked
exec env KTRIAL_TEST_SUDO=1 "$@"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with a sudo that is played; the server's sessions find it first."""
    directory = tmp_path_factory.mktemp("sudo")
    (directory / "bin").mkdir()
    (directory / "bin/sudo").write_text(_SUDO.format(place=directory))
    (directory / "bin/sudo").chmod(0o755)
    (directory / "ktrial").mkdir()
    (directory / "ktrial/config.toml").write_text(f"[machines.{HOST}]\nsudo = true\n")
    with ssh_server(directory, directory / "bin"):
        yield directory


@pytest.fixture
def machine(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshMachine]:
    monkeypatch.setenv("KTRIAL_SSH_CONFIG", str(place / "config"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place))
    with closing(SshMachine(HOST)) as first:
        yield first


def test_everything_is_done_by_sudo(machine: SshMachine, place: Path) -> None:
    script = Run(argv=("/bin/sh", "-c", "echo by-sudo"), environment={"PATH": "/usr/bin:/bin"})
    with machine.start(Boot(kernel=HostMachine().kernel(), limit_seconds=60)) as target:
        (finished,) = target.perform((script,))
    assert finished.stdout == "by-sudo\n"
    assert machine.connection().script("echo $KTRIAL_TEST_SUDO\n") == b"1\n"
    request = (place / "asked").read_text().splitlines()
    assert len(request) > 4
    assert set(request) == {"/bin/sh -c"}


def test_a_sudo_that_asks_is_told(machine: SshMachine, place: Path) -> None:
    (place / "asks").touch()
    try:
        with pytest.raises(MachineError, match="a password is required") as error:
            machine.check()
    finally:
        (place / "asks").unlink()
    assert "NOPASSWD" in error.value.advice
