"""The command lines of the exact machine, and the boots that are refused before QEMU is started."""

from dataclasses import replace
from pathlib import Path

import pytest

from ktrial.machines.errors import HostProblem
from ktrial.machines.exact import (
    CPU_MODEL,
    check_cpus,
    kernel_parameters,
    machine_arguments,
)
from ktrial.machines.qemu.boot import cpu_model_for, memory_arguments, snapshot_point_arguments
from ktrial.machines.qemu.program import Qemu
from ktrial.model.kernel import Kernel, Origin
from ktrial.model.machine import Boot

KERNEL = Kernel(
    name="k",
    release="6.1.0",
    origin=Origin(provider="path", source="k"),
    digest="d",
    image=Path("/k/vmlinuz"),
)
BOOT = Boot(kernel=KERNEL)


def qemu(*version: int) -> Qemu:
    major, minor, micro = version
    return Qemu(
        Path("/usr/bin/qemu-system-x86_64"), (major, minor, micro), f"{major}.{minor}.{micro}", "d", "f"
    )


def following(arguments: tuple[str, ...], option: str) -> str:
    return arguments[arguments.index(option) + 1]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("-icount", "shift=0,sleep=off"),
        ("-rtc", "clock=vm,base=2024-01-01T00:00:00"),
        ("-seed", "1"),
        ("-cpu", CPU_MODEL),
        ("-accel", "tcg"),
        ("-m", "512M"),
        ("-smp", "1"),
    ],
)
def test_what_makes_boots_alike_is_on_the_command_line(option: str, value: str) -> None:
    assert following(machine_arguments(BOOT), option) == value


def test_no_default_device_and_no_file_of_the_host_is_on_it() -> None:
    arguments = machine_arguments(BOOT)
    assert {"-nodefaults", "-no-user-config", "-no-reboot"} <= set(arguments)
    assert not [argument for argument in arguments if argument.startswith("/")]


def test_the_boots_own_parameters_come_last_so_that_they_win() -> None:
    boot = BOOT.model_copy(update={"parameters": ("lpj=1", "quiet")})
    assert kernel_parameters(boot).split()[-2:] == ["lpj=1", "quiet"]
    assert {"nokaslr", "norandmaps", "panic=-1"} <= set(kernel_parameters(boot).split())


def test_random_numbers_are_seeded_when_it_boots_whatever_the_configuration() -> None:
    """Else 6.1 hashes the pool anew for each fork, or does not, by when the workload starts: 14 %."""
    assert "random.trust_cpu=on" in kernel_parameters(BOOT).split()


def test_a_talkative_boot_differs_by_quiet_only() -> None:
    quiet, talkative = (kernel_parameters(BOOT, quiet=q).split() for q in (True, False))
    assert [word for word in quiet if word != "quiet"] == talkative


def test_the_timer_interrupt_is_not_taken_from_several_cpus() -> None:
    several = BOOT.model_copy(update={"cpus": 2})
    assert "noapictimer" in kernel_parameters(BOOT).split()
    assert "noapictimer" not in kernel_parameters(several).split()


def test_only_a_guest_to_be_saved_stops_at_the_snapshot_point() -> None:
    assert snapshot_point_arguments(stops=True) == ("-action", "panic=pause")
    assert snapshot_point_arguments(stops=False) == ("-action", "panic=none")


def test_memory_is_shared_only_while_a_snapshot_is_made() -> None:
    assert memory_arguments(BOOT, "/ram", shared=True)[1].endswith("size=512M,mem-path=/ram,share=on")
    assert memory_arguments(BOOT, "/ram", shared=False)[1].endswith("size=512M,mem-path=/ram,share=off")


@pytest.mark.parametrize(
    ("cpus", "version"), [(1, (6, 2, 0)), (1, (7, 2, 22)), (2, (10, 0, 0)), (4, (10, 1, 3))]
)
def test_cpus_that_this_qemu_can_count(cpus: int, version: tuple[int, ...]) -> None:
    check_cpus(cpus, qemu(*version), "exact")


@pytest.mark.parametrize("version", [(7, 2, 22), (9, 2, 0)])
def test_more_cpus_than_this_qemu_can_count_are_refused(version: tuple[int, ...]) -> None:
    with pytest.raises(HostProblem, match=r"2 CPUs only with QEMU 10\.0 or later") as caught:
        check_cpus(2, qemu(*version), "exact")
    assert caught.value.advice.startswith("the machine exact-parallel runs several CPUs on this QEMU")


@pytest.mark.parametrize(
    ("recorded", "spec", "arguments"),
    [
        ("erms fsrm", "max,-erms,-fsrm", "max,-erms,-fsrm"),
        ("erms fsrc fsrm fsrs fzrm", "max,-erms,-fsrm", "max,-erms,-fsrm,-fsrs,-fsrc,-fzrm"),
        ("erms fsrc fsrm fsrs fzrm", "max", "max,-fsrs,-fsrc,-fzrm"),
    ],
)
def test_what_makes_kernels_use_rep_is_off_as_far_as_this_qemu_knows_it(
    tmp_path: Path, recorded: str, spec: str, arguments: str
) -> None:
    program = tmp_path / "qemu"
    program.write_text(f"#!/bin/sh\necho 'Available CPUs:\n  max\n\nRecognized CPUID flags:\n  {recorded}'\n")
    program.chmod(0o755)
    assert cpu_model_for(replace(qemu(10, 0, 0), program=program), spec) == arguments
