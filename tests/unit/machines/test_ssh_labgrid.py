"""Power and console of a machine by labgrid: its own drivers, whose switch and serial line are commands."""

import shlex
import sys
import time
from pathlib import Path

import pytest

from ktrial.machines.errors import BadOwnCommand
from ktrial.machines.ssh.power_commands import OwnCommands, commands_of

POWER = """      ExternalPowerDriver:
        cmd_on: 'tee -a {directory}/on'
        cmd_off: 'false'
        cmd_cycle: 'cp {directory}/lab.yaml {directory}/cycled'
"""
CONSOLE = """      ExternalConsoleDriver:
        cmd: {console}
"""
PRINTS = "sh -c 'echo $$ >{directory}/pid; echo Kernel panic; exec sleep 100'"
PATIENCE_SECONDS = 60.0


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file of configuration, beside which labgrid's lies."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "ktrial/config.toml"
    file.parent.mkdir()
    file.write_text('[machines.lab1]\nlabgrid = "lab.yaml"\ntarget = "dut"\n')
    return file


def with_labgrid(configured: Path, drivers: str = POWER + CONSOLE) -> OwnCommands:
    pytest.importorskip("labgrid")
    directory = configured.parent
    console = PRINTS.format(directory=directory)
    text = drivers.format(directory=directory, console=f'"{console}"')
    (directory / "lab.yaml").write_text(f"targets:\n  dut:\n    drivers:\n{text}")
    return commands_of("root@lab1")


def test_labgrid_cycles_the_power(configured: Path) -> None:
    assert with_labgrid(configured).cycle() == ""
    assert (configured.parent / "cycled").is_file()


def test_what_labgrid_says_is_wrong_is_told(configured: Path) -> None:
    problem = with_labgrid(configured, CONSOLE).cycle()
    assert "NoDriverFoundError" in problem
    assert "PowerProtocol" in problem


@pytest.mark.nightly
def test_a_target_that_labgrid_s_file_has_not_is_told_with_those_it_has(configured: Path) -> None:
    configured.write_text(configured.read_text().replace('"dut"', '"another"'))
    assert "has no target another; it has dut" in with_labgrid(configured).cycle()


def test_what_labgrid_s_console_prints_is_kept_and_it_ends_with_the_trial(configured: Path) -> None:
    commands, until = with_labgrid(configured), time.monotonic() + PATIENCE_SECONDS
    with commands.listening() as console:
        while "Kernel panic\n" not in console.text and time.monotonic() < until:
            time.sleep(0.02)
        assert console.text == "Kernel panic\n"
        pid = (configured.parent / "pid").read_text().strip()
    assert not Path("/proc", pid).exists(), "its own program goes on"


def test_a_command_of_the_user_s_goes_before_labgrid_s(configured: Path) -> None:
    configured.write_text(configured.read_text() + 'power = "ipmitool power"\n')
    commands = with_labgrid(configured)
    assert commands.power == ("ipmitool", "power")
    assert shlex.join(commands.console).endswith("lab.yaml dut console")


def test_without_labgrid_what_to_install_is_told(configured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (configured.parent / "lab.yaml").write_text("targets:\n")
    monkeypatch.setitem(sys.modules, "labgrid", None)
    with pytest.raises(BadOwnCommand, match=r"not installed: .*(install|add|inject).*labgrid"):
        commands_of("lab1")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ('labgrid = "nowhere.yaml"', "labgrid is not a file"),
        ("labgrid = 3", "labgrid is not a file"),
        ('target = "dut"', "labgrid is not a file"),
        ('labgrid = "config.toml"\ntarget = ""', "target is not the name"),
    ],
)
def test_what_is_wrong_with_labgrid_s_keys_is_told(configured: Path, lines: str, problem: str) -> None:
    configured.write_text(f"[machines.lab1]\n{lines}\n")
    with pytest.raises(BadOwnCommand, match=problem):
        commands_of("lab1")
