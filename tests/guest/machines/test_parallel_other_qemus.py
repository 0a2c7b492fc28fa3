"""Several CPUs in simulated time, with each QEMU that is known and runs beside this system's own."""

from pathlib import Path

import pytest
from tests.support.guests import boot_of, busy_cores, work
from tests.support.other_qemus import unpacked

from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import KernelError
from ktrial.machines.exact_parallel import SUPPORTED_QEMUS, ParallelMachine
from ktrial.machines.qemu import program

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

CPUS = 4
HACKBENCH = ("hackbench", "--fds", "4", "--loops", "2", "--passes", "2")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("qemus")


@pytest.mark.parametrize("version", [".".join(map(str, known)) for known in SUPPORTED_QEMUS])
def test_trials_are_the_same_with_it_too(
    version: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        other = unpacked(version, place)
    except KernelError as error:
        pytest.skip(f"QEMU {version} cannot be had here: {error.message}")
    if other.problem:
        pytest.skip(f"QEMU {version} does not run here: {other.problem}")
    monkeypatch.setenv(program.VARIABLE, str(other.program))
    assert program.find().text.startswith(f"{version}.")
    boot = boot_of(kernel_registry.add("debian:6.12"), cpus=CPUS)
    with ParallelMachine(cache=tmp_path).start(boot) as target:
        first, other_seed = (
            target.perform((work(*HACKBENCH).model_copy(update={"layout_seed": seed}),)) for seed in (0, 7)
        )
        with busy_cores():
            second = target.perform((work(*HACKBENCH),))
    counts, others = first[0].parallel, other_seed[0].parallel
    assert counts is not None
    assert others is not None
    assert counts == second[0].parallel
    assert counts.fingerprint != others.fingerprint
    assert all(instructions > 100_000 for instructions in counts.cpus)
