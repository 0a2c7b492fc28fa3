"""Code that a real kernel makes while a program runs has its own name, not that of the symbol before it."""

import subprocess
from pathlib import Path

import pytest
from tests.support.places import SUPPORT

from ktrial.experiment.profile import profile
from ktrial.kernels import kernel_registry
from ktrial.kernels.modules import resolve
from ktrial.machines.exact import ExactMachine
from ktrial.model.profile import FunctionCount
from ktrial.model.study import MachineSettings
from ktrial.model.workload import Command, WorkloadUse

pytestmark = [pytest.mark.guest, pytest.mark.nightly]
"""For each change: tests/unit/machines/test_generated_code.py."""

KERNEL = "debian:6.12"
DATAGRAMS, ROUNDS, TRACED = 200, 300, 2000
"""As generated_code.c has them."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that loads programs of BPF, or switches the function tracer on: one file, and one boot for all."""
    built = tmp_path_factory.mktemp("generated") / "generated"
    source = SUPPORT / "generated_code.c"
    subprocess.run(["gcc", "-static", "-O2", "-Wall", "-Werror", "-o", built, source], check=True)
    return built


def without_symbols(program: Path, made: str) -> list[FunctionCount]:
    """What of a run has no symbol of the image or of a module."""
    command = Command(argv=(str(program), made), repeats=1, discarded=0)
    use = WorkloadUse(name="generated", command=command)
    counted = profile(MachineSettings(kernel=KERNEL), use, machine=ExactMachine())
    return [each for each in counted.region.functions if each.symbol.startswith("[")]


def test_a_program_of_bpf_has_the_name_that_it_was_loaded_with(program: Path) -> None:
    (filtered,) = without_symbols(program, "ebpf")
    assert (filtered.symbol, filtered.module) == ("[bpf: counts_to_300]", "")
    assert filtered.instructions % DATAGRAMS == 0, "each datagram costs the same"
    assert 3 * ROUNDS <= filtered.instructions / DATAGRAMS <= 3 * ROUNDS + 20


def test_a_classic_filter_has_no_name_and_is_generated_code(program: Path) -> None:
    (filtered,) = without_symbols(program, "classic")
    assert (filtered.symbol, filtered.module) == ("[generated]", "")
    assert filtered.instructions % DATAGRAMS == 0
    assert ROUNDS <= filtered.instructions / DATAGRAMS <= ROUNDS + 20


def test_a_trampoline_of_the_function_tracer_is_ftrace_s(program: Path) -> None:
    (trampoline,) = without_symbols(program, "ftrace")
    assert (trampoline.symbol, trampoline.module) == ("[generated: ftrace]", "")
    assert 20 * TRACED <= trampoline.instructions <= 60 * TRACED


def test_a_module_in_the_place_of_another_has_not_its_names(tmp_path: Path) -> None:
    another, program = tmp_path / "ifb.ko", tmp_path / "swapped_modules"
    (packed,) = (path for path in resolve(kernel_registry.obtain(KERNEL), ["ifb"]) if path.stem == "ifb")
    another.write_bytes(packed.read_bytes())
    source = SUPPORT / "swapped_modules.c"
    flags = ("-static", "-O2", "-Wall", "-Werror", f'-DANOTHER="{another}"')
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    use = WorkloadUse(name="swapped", command=Command(argv=(str(program),), repeats=1, discarded=0))
    settings = MachineSettings(kernel=KERNEL, modules=("dummy",))
    functions = profile(settings, use, machine=ExactMachine()).region.functions
    of_dummy = {each.symbol: each.instructions for each in functions if each.module == "dummy"}
    # Its end calls two functions of the image; of five ends of ifb it had 278 each.
    assert 0 < of_dummy.pop("cleanup_module") < 10
    # Asked for as its device goes.
    assert set(of_dummy) <= {"dummy_get_stats64"}
    (generated,) = (each for each in functions if each.symbol.startswith("["))
    assert (generated.symbol, generated.module) == ("[generated]", "")
    assert generated.instructions > 1000
