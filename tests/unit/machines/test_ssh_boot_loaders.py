"""Booting once by the boot loader: ktrial's own scripts, a real shell, and loaders that are played."""

from pathlib import Path

import pytest
from tests.support.fake_lab import OWN, FakeGrub, FakeLab, FakeSystemdBoot, lab_kernel
from tests.unit.machines.test_ssh_boots import NEW, boot_of, ended, running

from ktrial.machines.errors import BadOwnCommand, CannotBoot, MachineError
from ktrial.machines.ssh import boot_ways
from ktrial.machines.ssh.boots import Boots
from ktrial.machines.ssh.power_commands import OwnCommands, commands_of

LOADERS = {"grub": FakeGrub, "systemd-boot": FakeSystemdBoot}


@pytest.fixture
def lab(tmp_path: Path) -> FakeLab:
    """Without kexec."""
    lab = FakeLab(tmp_path / "lab")
    (lab.root / "bin/kexec").unlink()
    (lab.root / "sys/kernel/kexec_loaded").unlink()
    return lab


@pytest.fixture
def boots(lab: FakeLab) -> Boots:
    return Boots("lab1", lab, root=str(lab.root))


def with_grub(lab: FakeLab) -> FakeGrub:
    lab.loader = loader = FakeGrub(lab.root)
    return loader


@pytest.mark.parametrize("name", LOADERS)
def test_it_is_booted_once_and_led_back_and_nothing_stays(
    name: str, lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    lab.loader = LOADERS[name](lab.root)
    before = lab.files()
    kernel = lab_kernel(tmp_path / "new", NEW)
    booted = boots.boot(boot_of(kernel, "mitigations=off", "a=$(touch x);b"))
    assert boots.by.name == name
    assert booted.release == NEW
    (line,) = lab.boots
    token = boot_ways.token_of(line)
    assert line == f"root=/dev/vda ro mitigations=off a=$(touch x);b panic=10 ktrial.boot={token}"
    again = boots.boot(boot_of(kernel))
    own_value = boots.boot(boot_of(running()))
    assert (again.release, own_value.release) == (NEW, OWN)
    assert len({boot_ways.token_of(line) for line in lab.boots}) == 3
    boots.end()
    assert (lab.root / "release").read_text() == OWN
    assert lab.files() == before
    assert lab.loader.told() is None


@pytest.mark.parametrize("name", LOADERS)
def test_a_kernel_that_panics_leads_back_to_the_machine_s_own(
    name: str, lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    lab.loader = LOADERS[name](lab.root)
    came, reason = ended(boots, boot_of(lab_kernel(tmp_path / "new", NEW, "panics")))
    assert (came, "its own kernel came back" in reason) == ("panicked", True)
    assert (lab.root / "release").read_text() == OWN


def test_a_loader_that_does_not_heed_or_does_not_forget_is_told_and_no_outcome_of_a_kernel(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    loader = with_grub(lab)
    kernel = boot_of(lab_kernel(tmp_path / "new", NEW))
    loader.heeds = False
    with pytest.raises(CannotBoot, match=r"\(grub\) does not boot what it is told"):
        boots.boot(kernel)
    assert "next_entry" not in loader.environment.read_text()
    loader.heeds, loader.forgets = True, False
    with pytest.raises(CannotBoot, match="does not forget it after one boot"):
        boots.boot(kernel)
    assert "next_entry" not in loader.environment.read_text(), "the next boot is its own kernel's"


def test_what_was_not_taken_is_seen_before_the_machine_goes_down(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    with_grub(lab)
    (lab.root / "bin/grub-reboot").write_text("#!/bin/sh\n")
    with pytest.raises(MachineError, match="grub-reboot took nothing"):
        boots.boot(boot_of(lab_kernel(tmp_path / "new", NEW)))
    assert not (lab.root / "pending").exists()
    lab.loader = FakeSystemdBoot(lab.root)
    second = Boots(
        "lab1", lab, root=str(lab.root), commands=OwnCommands(boot="systemd-boot"), lease=boots.lease
    )
    (lab.root / "bin/bootctl").write_text(f"#!/bin/sh\n[ $1 = set-oneshot ] || echo {lab.root}/efi\n")
    with pytest.raises(MachineError, match="bootctl set-oneshot took nothing"):
        second.boot(boot_of(lab_kernel(tmp_path / "other", NEW)))


def test_systemd_boot_that_would_boot_the_entry_by_default_is_not_used(
    lab: FakeLab, boots: Boots, tmp_path: Path
) -> None:
    """As versions before 250 would, where nobody has named a default."""
    lab.loader = loader = FakeSystemdBoot(lab.root, boots_first=True)
    with pytest.raises(MachineError, match="would boot it by default: bootctl set-default"):
        boots.boot(boot_of(lab_kernel(tmp_path / "new", NEW)))
    assert not (lab.root / "pending").exists()
    assert loader.told() is None, "the next boot is its own kernel's"


def test_grub_that_could_not_forget_or_has_a_menu_of_its_own_is_not_used(lab: FakeLab, boots: Boots) -> None:
    loader = with_grub(lab)
    before = lab.files()
    (lab.root / "abstraction").write_text("lvm\n")
    (lab.root / "boot/grub/custom.cfg").write_text("menuentry mine {}\n")
    (lab.root / "boot/grub/grub.cfg").write_text("menuentry all {}\n")
    with pytest.raises(CannotBoot) as error:
        boots.look()
    for message in (
        "GRUB cannot write to lvm",
        "custom.cfg of its own",
        "does not read custom.cfg or next_entry",
        "no kexec",
        "systemd-boot",
    ):
        assert message in error.value.message
    assert lab.files() == before | {"abstraction", "boot/grub/custom.cfg"}
    assert loader.told() is None


def test_quotes_that_grub_would_change_are_refused(lab: FakeLab, boots: Boots, tmp_path: Path) -> None:
    with_grub(lab)
    with pytest.raises(MachineError, match="GRUB's menu does not accept \" in a command line"):
        boots.boot(boot_of(lab_kernel(tmp_path / "new", NEW), 'dyndbg="file a +p"'))


def test_kexec_is_taken_where_there_is_both_and_the_users_configuration_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = FakeLab(tmp_path / "both")
    with_grub(lab)
    for request, taken in (("", "kexec"), ("grub", "grub")):
        boots = Boots("lab1", lab, root=str(lab.root), commands=OwnCommands(boot=request))
        boots.look()
        assert boots.by.name == taken
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "ktrial/config.toml"
    file.parent.mkdir()
    file.write_text('[machines.lab1]\nboot = "grub"\nsudo = true\n')
    assert commands_of("me@lab1") == OwnCommands(boot="grub", sudo=True)
    for wrong in ('boot = "lilo"', "boot = 3", "sudo = 1"):
        file.write_text(f"[machines.lab1]\n{wrong}\n")
        with pytest.raises(BadOwnCommand, match=r"machines\.lab1"):
            commands_of("lab1")
