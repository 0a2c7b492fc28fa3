"""Real boot loaders boot a lab machine once into a treatment's kernel, and then its own again.

GRUB from a BIOS, systemd-boot from UEFI firmware. GRUB's takes some 500 CPU-seconds with the making of its
disk, systemd-boot's some 250 without: in an emulated machine the loader itself takes longer to read a kernel
than that takes to boot.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support import lab_grub, lab_systemd_boot
from tests.support.lab_machine import LabMachine

from ktrial.experiment.host_settings import RemoteSettings
from ktrial.machines.ssh import SshMachine
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.target import Read
from ktrial.target.errors import GuestEnded

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * 3600)]
MADE_BY = {"grub": lab_grub, "systemd-boot": lab_systemd_boot}
SHOWN = {"grub": "BOOT_IMAGE=", "systemd-boot": r"initrd=\ktrial\initrd"}
"""What each adds to the command line of a kernel that it starts."""
LEFT = "/var/lib/ktrial /tmp/ktrial.* /etc/systemd/system/ktrial* /boot/grub/custom.cfg /efi/ktrial"
WAITING = "/sys/firmware/efi/efivars/LoaderEntryOneShot* /efi/loader/entries/*ktrial*"
OWN = (
    f"grep -c ktrial /proc/cmdline; grub-editenv list | grep next_entry=.; ls -d {LEFT} {WAITING} 2>/dev/null"
)
"""Prints `0` alone where the machine is as it was."""


@pytest.fixture(params=MADE_BY)
def name(request: pytest.FixtureRequest) -> str:
    loader = str(request.param)
    if missing := MADE_BY[loader].can_run():
        pytest.skip(missing)
    return loader


@pytest.fixture
def lab(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabMachine]:
    image = MADE_BY[name].build(tmp_path / "image")
    machine = LabMachine(image, tmp_path / "lab", by_loader=True, uefi=name == "systemd-boot")
    monkeypatch.setenv("KTRIAL_SSH_CONFIG", str(machine.config))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/ktrial").mkdir(parents=True)
    (tmp_path / "config/ktrial/config.toml").write_text(f'[machines.lab1]\nboot = "{name}"\n')
    machine.start()
    try:
        assert machine.wait(OWN, "0") == "0"
        yield machine
    finally:
        machine.cut()


def boot_of(kernel: Kernel, *parameters: str) -> Boot:
    return Boot(kernel=kernel, parameters=parameters, boots=True, boot_seconds=900.0, settle_ns=10**9)


def test_it_boots_once_and_what_panics_leads_back(name: str, lab: LabMachine) -> None:
    with closing(SshMachine("lab1")) as machine:
        machine.writer = RemoteSettings(machine)
        kernel = machine.kernel()
        chosen = boot_of(kernel, "mitigations=off")
        machine.prepare(chosen, lambda _what: None)
        with machine.start(chosen) as target:
            (read,) = target.perform((Read(path="/proc/cmdline"),))
            assert f"boot_by={name}" in target.identity.arguments
        assert {"mitigations=off", "panic=10"} <= set(read.content.split())
        assert SHOWN[name] in read.content, "no loader started it"
        with pytest.raises(GuestEnded) as ended, machine.start(boot_of(kernel, "init=/bin/true")):
            pass
        assert ended.value.outcome == "panicked"
    assert lab.wait(OWN, "0") == "0"
