"""Booting another machine: ktrial's own scripts, run by a real shell on a machine that plays reboot."""

import os
from itertools import chain, count, repeat, takewhile
from pathlib import Path

import pytest
from tests.support.fake_lab import OWN, FakeLab, lab_kernel

from ktrial import process_identity
from ktrial.machines import ssh
from ktrial.machines.errors import (
    BadOwnCommand,
    CannotBoot,
    HostChangeForbidden,
    HostProblem,
    HostUsageProblem,
    MachineError,
    MachineInUse,
)
from ktrial.machines.ssh import SshMachine, boot_ways, power_commands
from ktrial.machines.ssh.boots import MOST_LIMITS, BootLimit, Boots
from ktrial.machines.ssh.connection import Lease, NoAnswer, OwnLease, Probe
from ktrial.machines.ssh.power_commands import OwnCommands, commands_of
from ktrial.model.kernel import Kernel, Origin
from ktrial.model.machine import Boot
from ktrial.target import StepResult, Write
from ktrial.target.errors import GuestEnded

NEW = "6.12.0-new"


@pytest.fixture
def lab(tmp_path: Path) -> FakeLab:
    return FakeLab(tmp_path / "lab")


@pytest.fixture
def boots(lab: FakeLab) -> Boots:
    return Boots("lab1", lab, root=str(lab.root))


def boot_of(kernel: Kernel, *parameters: str) -> Boot:
    return Boot(kernel=kernel, parameters=parameters, boots=True, boot_seconds=0.01, settle_ns=0)


def running() -> Kernel:
    origin = Origin(provider="running", source="lab1")
    return Kernel(name="running", release=OWN, origin=origin, digest="0" * 64, image=Path())


def quiet(_step: str) -> None:
    pass


def ended(boots: Boots, boot: Boot) -> tuple[str, str]:
    with pytest.raises(GuestEnded) as error:
        boots.boot(boot)
    return error.value.outcome, error.value.reason


def test_it_is_booted_once_and_led_back_and_nothing_stays(lab: FakeLab, boots: Boots, tmp_path: Path) -> None:
    before = lab.files()
    kernel = lab_kernel(tmp_path / "new", NEW)
    boots.place(boot_of(kernel), quiet)
    booted = boots.boot(boot_of(kernel, "mitigations=off"))
    assert booted.in_force["kernel release"] == booted.release == NEW
    assert booted.in_force["cpu vulnerability meltdown"] == "Mitigation: PTI"
    (line,) = lab.boots
    token = boot_ways.token_of(line)
    assert line == f"root=/dev/vda ro mitigations=off panic=10 ktrial.boot={token}"
    assert (lab.root / "lib/modules" / NEW / "modules.dep").is_file()
    assert not (lab.root / "lib/modules" / NEW / "build").is_symlink()
    boots.end()
    assert (lab.root / "release").read_text() == OWN
    assert lab.files() == before


def test_every_boot_is_another_and_its_own_kernel_is_booted_as_the_others_are(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    kernel = lab_kernel(tmp_path / "new", NEW)
    first, second = boots.boot(boot_of(kernel)), boots.boot(boot_of(kernel))
    own_value = boots.boot(boot_of(running()))
    assert len({first.boot_id, second.boot_id, own_value.boot_id}) == 3
    assert own_value.release == OWN
    assert len({boot_ways.token_of(line) for line in lab.boots}) == 3


@pytest.mark.parametrize(
    ("does", "outcome", "message"),
    [
        ("panics", "panicked", "its own kernel came back"),
        ("hangs", "hung", "somebody has to press the button of lab1"),
        ("is 5.0-other", "refused", "5.0-other"),
    ],
)
def test_what_does_not_come_up_as_asked_is_an_outcome(
    does: str, outcome: str, message: str, boots: Boots, tmp_path: Path
) -> None:
    came, reason = ended(boots, boot_of(lab_kernel(tmp_path / "new", NEW, does)))
    assert came == outcome
    assert message in reason
    assert f"path:{tmp_path}/new" in reason


def test_a_machine_that_hangs_is_told_to_need_somebody_and_goes_on_once_it_is_back(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    ended(boots, boot_of(lab_kernel(tmp_path / "new", NEW, "hangs")))
    good = boot_of(lab_kernel(tmp_path / "good", "6.13.0"))
    with pytest.raises(HostProblem, match="press its button"):
        boots.boot(good)
    lab.power_on()
    assert boots.boot(good).release == "6.13.0"


def test_the_users_own_command_cycles_the_power(
    lab: FakeLab, boots: Boots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = tmp_path / "power"
    switch.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n')
    switch.chmod(0o755)
    boots.commands = OwnCommands(power=(str(switch), "lab1"))
    probe = lab.probe

    def powered(seconds: float) -> Probe | NoAnswer:
        if (tmp_path / "asked").exists() and lab.down:
            lab.power_on()
        return probe(seconds)

    monkeypatch.setattr(lab, "probe", powered)
    came, reason = ended(boots, boot_of(lab_kernel(tmp_path / "new", NEW, "hangs")))
    assert (came, (tmp_path / "asked").read_text()) == ("hung", "lab1 cycle\n")
    assert "its power was cycled, and its own kernel came back" in reason
    assert "(ssh: Connection refused)" in reason


def test_a_kernel_that_goes_down_under_its_programs_is_no_lost_connection(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    booted = boots.boot(boot_of(lab_kernel(tmp_path / "new", NEW)))
    boots.ended(booted, "new")  # it runs: nothing is said
    lab.power_on()
    with pytest.raises(GuestEnded, match="went down while programs ran"):
        boots.ended(booted, "new")


def test_modules_of_the_machine_s_own_are_never_overwritten(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    before = lab.files()
    with pytest.raises(HostUsageProblem, match=f"has a kernel {OWN} of its own"):
        boots.place(boot_of(lab_kernel(tmp_path / "same", OWN)), quiet)
    boots.end()
    assert lab.files() == before


def test_a_kernel_that_is_cut_off_on_its_way_is_not_booted(
    lab: FakeLab, boots: Boots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = lab_kernel(tmp_path / "new", NEW)
    stream = lab.stream
    monkeypatch.setattr(
        lab, "stream", lambda remote, write: stream(remote.replace("cat", "head -c 3"), write)
    )
    with pytest.raises(MachineError, match="its image arrived damaged"):
        boots.place(boot_of(kernel), quiet)
    assert lab.boots == []


def test_what_is_missing_is_said_before_anything_is_changed(
    lab: FakeLab, boots: Boots, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = lab.files()
    (lab.root / "sys/kernel/kexec_loaded").unlink()
    (lab.root / "boot" / f"vmlinuz-{OWN}").unlink()
    monkeypatch.setenv("FAKE_UID", "1000")
    with pytest.raises(CannotBoot) as error:
        boots.look()
    for message in ("as root", "CONFIG_KEXEC", f"no /boot/vmlinuz-{OWN}"):
        assert message in error.value.message
    assert lab.files() == before - {f"boot/vmlinuz-{OWN}"}


def test_the_lease_holds_while_the_machine_boots_and_ends_with_its_holder(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    boots.boot(boot_of(lab_kernel(tmp_path / "new", NEW)))
    second = Boots("lab1", lab, root=str(lab.root), lease=OwnLease(who="bob@desk since 2026-11-24T11:30Z"))
    with pytest.raises(MachineInUse, match=r"@.* since 20"):
        second.look()
    # The same, of a process that has ended: it is led home, and taken.
    lease = lab.root / "var/lib/ktrial/lease"
    key, who, _, _ = lease.read_text().splitlines()
    born = process_identity.born(os.getpid())
    lease.write_text(f"{key}\n{who}\n999999999\n{born}\n")
    assert second.look().release == OWN
    assert second.look().token == ""


def test_a_lease_of_another_system_ends_when_nobody_is_heard_of(tmp_path: Path) -> None:
    assert not Lease("k", "w", 1, "other-boot 7", age=299).is_over
    assert Lease("k", "w", 1, "other-boot 7", age=301).is_over


def test_what_a_killed_ktrial_left_is_led_home_and_taken_away_by_the_next(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    before = lab.files()
    boots.boot(boot_of(lab_kernel(tmp_path / "new", NEW)))
    lab.hang_up()
    os.utime(lab.root / "var/lib/ktrial/lease", (1, 1))
    after = Boots("lab1", lab, root=str(lab.root))
    after.boot(boot_of(running()))
    after.end()
    assert lab.files() == before


def test_debian_s_kexec_tools_do_not_make_a_kexec_of_the_way_back(
    lab: FakeLab, boots: Boots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab.root / "etc/init.d/kexec-load").write_text("")
    boots.boot(boot_of(lab_kernel(tmp_path / "new", NEW)))
    boots.way.connected()
    monkeypatch.setattr(lab, "power_on", lambda: None)
    with pytest.raises(MachineError, match="has not gone down"):
        boots.home()
    assert (lab.root / "no-kexec-reboot").exists()


def test_a_crash_kernel_is_not_taken_for_the_one_that_crashed(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    (lab.root / "proc/vmcore").touch()
    came, reason = ended(boots, boot_of(lab_kernel(tmp_path / "new", NEW)))
    assert (came, "saves its memory" in reason) == ("panicked", True)


def test_a_command_line_that_the_kernel_would_cut_is_refused(boots: Boots, tmp_path: Path) -> None:
    kernel = lab_kernel(tmp_path / "new", NEW)
    with pytest.raises(MachineError, match="longer than 2047 bytes"):
        boots.boot(boot_of(kernel, f"x={'1' * 2047}"))


def test_parameters_are_only_that_to_the_shell(lab: FakeLab, boots: Boots, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    hostile = f"a='$(touch {planted})`touch {planted}`\";touch {planted}"
    boots.boot(boot_of(lab_kernel(tmp_path / "new", NEW), hostile))
    assert hostile in lab.boots[0]
    assert not planted.exists()


def test_power_and_console_come_from_the_users_configuration_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert commands_of("lab1") == OwnCommands()
    file = tmp_path / "ktrial/config.toml"
    file.parent.mkdir()
    file.write_text("[machines.lab1]\npower = \"ipmi -H 'bmc 1' power\"\n")
    assert commands_of("root@lab1").power == ("ipmi", "-H", "bmc 1", "power")
    assert commands_of("lab2") == OwnCommands()
    for wrong in ('power = ""', "power = 3", 'pwoer = "x"', 'power = "\'"'):
        file.write_text(f"[machines.lab1]\n{wrong}\n")
        with pytest.raises(BadOwnCommand, match=r"machines\.lab1"):
            commands_of("lab1")


def test_a_power_command_that_does_not_end_is_told_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(power_commands, "POWER_SECONDS", 0.05)
    problem = OwnCommands(power=("sh", "-c", "exec sleep 100", "password")).cycle()
    assert problem == "sh: it has not ended within 0.05 s"


def test_what_the_console_prints_is_kept() -> None:
    with OwnCommands(console=("sh", "-c", "echo oops; sleep 100")).listening() as console:
        while not console.text:
            pass
        assert console.text == "oops\n"


def looks(patience: BootLimit) -> int:
    """How often it was not over."""
    return sum(1 for _ in takewhile(lambda _: not patience.is_over(), count()))


def test_a_machine_is_waited_for_while_its_console_prints_but_not_for_ever() -> None:
    """By a clock that goes on by a second at each look, as the console does by a byte."""
    silent = BootLimit(10.0, lambda: 0, count().__next__)
    assert (looks(silent), silent.message) == (10, "did not answer within 10 s")
    telling = BootLimit(10.0, count().__next__, count().__next__)
    assert looks(telling) == 10 * MOST_LIMITS
    assert telling.message == "printed on its console for 40 s, and did not answer"
    sizes = chain(range(5), repeat(5))
    falling_silent = BootLimit(10.0, sizes.__next__, count().__next__)
    assert looks(falling_silent) == 15
    assert falling_silent.message == "neither answered nor printed on its console for 10 s"


def test_a_kernel_that_boots_slowly_and_prints_has_not_hung(
    lab: FakeLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed, probe = tmp_path / "printed", lab.probe
    commands = OwnCommands(console=("sh", "-c", f"while :; do echo; echo >>{printed}; sleep 0.01; done"))
    boots = Boots("lab1", lab, commands, root=str(lab.root), glance_seconds=0.0)
    boots.clock = lambda: float(printed.stat().st_size if printed.exists() else 0)
    monkeypatch.setattr(lab, "probe", lambda seconds: probe(seconds) if boots.clock() > 20 else NoAnswer(""))
    boot = boot_of(lab_kernel(tmp_path / "new", NEW)).model_copy(update={"boot_seconds": 8.0})
    with boots.listening():
        assert boots.boot(boot).release == NEW


@pytest.mark.nightly
def test_a_machine_that_takes_long_to_shake_hands_has_not_hung(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    lab.handshake_seconds = 150.0
    boot = boot_of(lab_kernel(tmp_path / "new", NEW)).model_copy(update={"boot_seconds": 240.0})
    assert boots.boot(boot).release == NEW


def test_a_machine_in_a_kernel_that_was_left_over_is_told_from_one_in_its_own(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    boots.boot(boot_of(lab_kernel(tmp_path / "new", NEW)))
    os.utime(lab.root / "var/lib/ktrial/lease", (1, 1))
    after = Boots("lab1", lab, root=str(lab.root))
    assert after.is_left_over()
    after.home()
    assert not after.is_left_over()


class _NoSettings:
    """Leave to change that system."""

    def write(self, step: Write) -> StepResult:
        raise AssertionError(step)


@pytest.fixture
def machine(lab: FakeLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SshMachine:
    monkeypatch.setattr(ssh, "Connection", lambda host, **_: lab)
    monkeypatch.setattr(ssh, "probe", lambda host, seconds: lab.probe(seconds))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    first = SshMachine("lab1", root=str(lab.root))
    first.writer = _NoSettings()
    return first


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("lost", [False, True])
def test_the_machine_is_led_back_whether_it_was_stopped_or_its_connection_lost(
    stopped: bool, lost: bool, lab: FakeLab, machine: SshMachine, tmp_path: Path
) -> None:
    messages: list[str] = []
    machine.say, before = messages.append, lab.files()
    boot = boot_of(lab_kernel(tmp_path / "new", NEW))
    machine.prepare(boot, quiet)
    with machine.start(boot) as target:
        assert target.identity.in_force["kernel release"] == NEW
    if stopped:
        machine.stop()
    lab.lost = lost
    machine.close()
    assert messages == ["lab1 is being led back to its own kernel"]
    assert (lab.root / "release").read_text() == OWN
    assert lab.files() == before


def test_without_leave_it_is_not_booted(lab: FakeLab, machine: SshMachine, tmp_path: Path) -> None:
    machine.writer, before = None, lab.files()
    with pytest.raises(HostChangeForbidden, match="boot lab1 into other kernels"):
        machine.prepare(boot_of(lab_kernel(tmp_path / "new", NEW)), quiet)
    assert lab.files() == before


def test_the_console_is_kept_with_what_did_not_come_up(
    lab: FakeLab, machine: SshMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ktrial").mkdir()
    command, printed, probe = tmp_path / "console", tmp_path / "printed", lab.probe
    command.write_text(f"#!/bin/sh\necho Kernel panic - not syncing; : >{printed}; exec sleep 1000\n")
    command.chmod(0o755)
    (tmp_path / "ktrial/config.toml").write_text(f'[machines.lab1]\nconsole = "{command}"\n')
    monkeypatch.setattr(lab, "probe", lambda seconds: probe(seconds) if printed.exists() else NoAnswer(""))
    boot = boot_of(lab_kernel(tmp_path / "new", NEW, "panics")).model_copy(update={"boot_seconds": 60.0})
    with pytest.raises(GuestEnded) as error, machine.start(boot):
        pass
    assert error.value.console == "Kernel panic - not syncing\n"
