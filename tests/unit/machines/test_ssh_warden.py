"""The script that leads a machine back by itself, run by a real shell on a machine that plays reboot."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.fake_lab import OWN, FakeLab, lab_kernel

from ktrial.machines.ssh.boot_ways import LEASE_SECONDS
from ktrial.machines.ssh.boots import Boots
from ktrial.model.machine import Boot

PATIENCE = 120.0


@pytest.fixture
def before(tmp_path: Path) -> set[str]:
    return FakeLab(tmp_path / "as-it-was").files()


@pytest.fixture
def lab(tmp_path: Path, before: set[str]) -> FakeLab:
    """In a kernel of a study."""
    lab = FakeLab(tmp_path / "lab")
    kernel = lab_kernel(tmp_path / "new", "6.12.0-new")
    boots = Boots("lab1", lab, root=str(lab.root))
    boots.boot(Boot(kernel=kernel, boots=True, boot_seconds=0.01, settle_ns=0))
    return lab


def warden(lab: FakeLab) -> "subprocess.Popen[bytes]":
    script = str(lab.root / "var/lib/ktrial/warden")
    environment = {"PATH": f"{lab.root}/bin:/usr/bin:/bin"}
    return subprocess.Popen(["/bin/sh", script], env=environment, start_new_session=True)


def ended(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGTERM)
    process.wait()


def until(holds: Callable[[], bool]) -> bool:
    for _ in range(2400):
        if holds():
            return True
        time.sleep(0.05)
    return False


def asked_of_systemd(lab: FakeLab) -> str:
    return (lab.root / "systemctl.log").read_text()


def test_when_it_is_released_in_its_own_kernel_nothing_stays(lab: FakeLab, before: set[str]) -> None:
    lab.power_on()
    (lab.root / "var/lib/ktrial/release").touch()
    assert warden(lab).wait(PATIENCE) == 0
    assert lab.files() == before


def test_when_it_is_released_in_another_kernel_it_is_rebooted(lab: FakeLab) -> None:
    (lab.root / "var/lib/ktrial/release").touch()
    process = warden(lab)
    try:
        assert until(lambda: "reboot --no-block" in asked_of_systemd(lab))
    finally:
        ended(process)
    lab.hang_up()
    assert (lab.root / "release").read_text() == OWN


def test_in_another_kernel_a_watchdog_is_held_and_let_go_when_the_system_goes_down(lab: FakeLab) -> None:
    dog = lab.root / "dev/watchdog"
    dog.parent.mkdir()
    dog.touch()
    process = warden(lab)
    try:
        assert until(lambda: dog.read_text() == "\n")
    finally:
        ended(process)
    assert until(lambda: dog.read_text() == "\nV")


def test_in_its_own_kernel_it_leaves_the_watchdog_alone(lab: FakeLab) -> None:
    lab.power_on()
    dog = lab.root / "dev/watchdog"
    dog.parent.mkdir()
    dog.touch()
    (lab.root / "var/lib/ktrial/release").touch()
    assert warden(lab).wait(PATIENCE) == 0
    assert dog.read_text() == ""


def test_as_long_as_it_is_heard_of_it_waits(lab: FakeLab) -> None:
    beat = lab.root / "var/lib/ktrial/beat"
    beat.touch()
    process = warden(lab)
    try:
        assert until(lambda: not beat.exists())
        assert "reboot" not in asked_of_systemd(lab)
    finally:
        ended(process)


def test_after_so_long_without_a_word_it_goes_back(lab: FakeLab) -> None:
    script = lab.root / "var/lib/ktrial/warden"
    text = script.read_text()
    assert f"-gt {LEASE_SECONDS // 10} ]" in text
    assert text.count("sleep 10 ") == 2
    script.write_text(text.replace("sleep 10 ", "sleep 0.01 "))
    (lab.root / "var/lib/ktrial/beat").unlink(missing_ok=True)
    process = warden(lab)
    try:
        assert until(lambda: "reboot --no-block" in asked_of_systemd(lab))
    finally:
        ended(process)
