"""The machine `kvm`: what it asks of QEMU and of the kernel, and what it says where there is no KVM."""

from itertools import pairwise
from pathlib import Path

import pytest

from ktrial.machines import kvm as kvm_probe
from ktrial.machines.errors import HostProblem, HostUsageProblem
from ktrial.machines.host import HostMachine
from ktrial.machines.kvm import KvmMachine, KvmProbe, kernel_parameters, machine_arguments
from ktrial.model.machine import Boot
from ktrial.model.workload import Mode

USABLE, HANGS = (
    KvmProbe(True, "a probe guest ran"),
    KvmProbe(False, "/dev/kvm exists but a probe guest hangs"),
)


def boot(**settings: object) -> Boot:
    return Boot.model_validate({"kernel": HostMachine().kernel(), **settings})


def words(arguments: tuple[str, ...]) -> dict[str, str]:
    return dict(pairwise(arguments))


def test_with_kvm_it_measures_time_on_the_hosts_own_cpu() -> None:
    assert KvmMachine(probe=USABLE).mode is Mode.TIMED
    arguments = words(machine_arguments(boot(cpus=2, memory_mib=1024), accelerated=True))
    assert arguments["-accel"] == "kvm"
    assert arguments["-cpu"].startswith("host")
    assert (arguments["-smp"], arguments["-m"]) == ("2", "1024M")


@pytest.mark.parametrize("accelerated", [True, False])
def test_time_is_neither_counted_nor_layouts_fixed(accelerated: bool) -> None:
    arguments = " ".join(machine_arguments(boot(), accelerated=accelerated))
    assert "-icount" not in arguments
    assert "clock=vm" not in arguments
    parameters = kernel_parameters(boot(parameters=("mitigations=off",)), accelerated=accelerated).split()
    assert not {"nokaslr", "norandmaps", "tsc=reliable"} & set(parameters)
    assert parameters[-1] == "mitigations=off"


def test_emulated_time_is_called_so() -> None:
    assert KvmMachine(probe=HANGS).mode is Mode.EMULATED_TIME
    assert words(machine_arguments(boot(), accelerated=False))["-accel"] == "tcg,thread=multi"


def test_without_kvm_a_study_that_does_not_allow_emulation_is_refused_with_the_reason() -> None:
    machine = KvmMachine(probe=HANGS)
    with pytest.raises(HostProblem, match="a probe guest hangs") as caught, machine.start(boot()):
        pass
    assert "allow_emulated_time = true" in caught.value.advice
    with pytest.raises(HostProblem):
        machine.prepare(boot(), lambda _step: None)


def test_a_cpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(HostUsageProblem):
        KvmMachine(probe=USABLE).prepare(boot(pin=(4095,)), lambda _step: None)


def test_kvm_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def probe() -> KvmProbe:
        tries.append(1)
        return HANGS

    monkeypatch.setattr(kvm_probe, "probe_kvm", probe)
    machine = KvmMachine(guest=Path("/nowhere"))
    assert (machine.mode, machine.mode) == (Mode.EMULATED_TIME, Mode.EMULATED_TIME)
    assert len(tries) == 1
