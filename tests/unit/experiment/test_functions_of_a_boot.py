"""Which functions a kernel's boot executes, on a machine that tells where the boot's code lies."""

from pathlib import Path

import pytest
from tests.support.kernel_images import a_kernel_of
from tests.support.scripted import ScriptedMachine
from tests.support.series import SeriesBuilder, runs

from ktrial.experiment.regression_check import ROUTE_CPUS
from ktrial.experiment.single_kernel import functions_in_boot
from ktrial.kernels.code_image import code_image
from ktrial.machines.errors import MachineError
from ktrial.model.machine import Boot
from ktrial.model.study import MachineSettings, Measurement
from ktrial.series.run import booted_in
from ktrial.store.store import open_store

CODE = "__attribute__((noinline)) int begins(int task) { return pick(task) ^ 9; }"
SETTINGS = MachineSettings(memory_mib=640, boot=("quiet",))


class Telling(ScriptedMachine):
    """Its guests begin blocks of code at these addresses."""

    def __init__(self, *addresses: int) -> None:
        super().__init__()
        self.addresses = frozenset(addresses)
        self.booted: list[Boot] = []

    def executed_in_boot(self, boot: Boot) -> frozenset[int]:
        self.booted.append(boot)
        if not self.addresses:
            raise MachineError(machine="exact", problem="it is gone")
        return self.addresses


def booted(place: Path, machine: ScriptedMachine) -> frozenset[str] | None:
    kernel = a_kernel_of(place, "boot", inserted=CODE)
    with open_store(str(place / "x.db")) as store:
        return booted_in((kernel, kernel), Measurement((), SETTINGS), runs(store, SeriesBuilder(), machine))


def test_functions_are_named_by_the_addresses_at_which_the_boot_began_their_code(tmp_path: Path) -> None:
    kernel = a_kernel_of(tmp_path, "boot", inserted=CODE)
    assert kernel.vmlinux is not None
    (begins,) = code_image(kernel.vmlinux).functions["begins"]
    machine = Telling(begins.address + 2, 0xFE05B)
    with open_store(str(tmp_path / "x.db")) as store:
        series_runs = runs(store, SeriesBuilder(), machine)
        assert functions_in_boot(kernel, Measurement((), SETTINGS), series_runs) == {"begins"}
    (boot,) = machine.booted
    assert (boot.memory_mib, boot.parameters) == (640, ("quiet",))


def test_a_kernel_is_booted_for_that_once_on_one_cpu_and_once_on_several(tmp_path: Path) -> None:
    machine = Telling(0xFE05B)
    assert booted(tmp_path, machine) is None
    assert [boot.cpus for boot in machine.booted] == [1, ROUTE_CPUS]


@pytest.mark.parametrize("machine", [ScriptedMachine(), Telling()], ids=["tells nothing", "fails"])
def test_where_no_boot_tells_nothing_is_known(machine: ScriptedMachine, tmp_path: Path) -> None:
    assert booted(tmp_path, machine) is None
