"""Which plugin a profile is counted with, or why none can be."""

from pathlib import Path

import pytest
from tests.unit.scripted import a_kernel

from ktrial.errors import NoPluginHere
from ktrial.machines.exact.command_line import CPU_MODEL, CPU_MODEL_WITH_PLUGIN, machine_arguments
from ktrial.machines.exact.profiled import usable_plugin
from ktrial.machines.exact.qemu import Qemu
from ktrial.model.machine import Boot


def a_qemu(program: Path, version: tuple[int, int, int]) -> Qemu:
    return Qemu(program=program, version=version, text="QEMU", digest="0", firmware="firmware")


def a_program(path: Path, status: int, said: str = "") -> Path:
    path.write_text(f"#!/bin/sh\ncat >&2 <<END\n{said}\nEND\nexit {status}\n")
    path.chmod(0o755)
    return path


def test_a_qemu_from_before_plugins_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoPluginHere, match="too old for the plugin"):
        usable_plugin(a_qemu(tmp_path / "qemu", (6, 2, 0)), tmp_path, "exact")


def test_an_installation_without_the_plugin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoPluginHere, match=r"insn-v1\.so is missing"):
        usable_plugin(a_qemu(tmp_path / "qemu", (7, 2, 0)), tmp_path, "exact")


def test_a_qemu_that_was_built_without_plugins_is_refused_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "insn-v1.so").touch()
    program = a_program(tmp_path / "qemu", 1, "-plugin: invalid option")
    with pytest.raises(NoPluginHere, match="-plugin: invalid option") as raised:
        usable_plugin(a_qemu(program, (7, 2, 0)), tmp_path, "exact")
    assert "KTRIAL_QEMU" in raised.value.advice


def test_the_build_that_loads_is_used(tmp_path: Path) -> None:
    (tmp_path / "insn-v1.so").touch()
    program = a_program(tmp_path / "qemu", 0)
    assert usable_plugin(a_qemu(program, (7, 2, 0)), tmp_path, "exact").path == tmp_path / "insn-v1.so"


def test_only_counted_guests_see_fast_string_instructions() -> None:
    boot = Boot(kernel=a_kernel())
    by_clock, by_plugin = machine_arguments(boot, CPU_MODEL), machine_arguments(boot, CPU_MODEL_WITH_PLUGIN)
    differing = [pair for pair in zip(by_clock, by_plugin, strict=True) if pair[0] != pair[1]]
    assert differing == [(CPU_MODEL, CPU_MODEL_WITH_PLUGIN)]
    assert {"-erms", "-fsrm"} <= set(CPU_MODEL.split(","))
    assert "+fsrm" in CPU_MODEL_WITH_PLUGIN.split(",")
    assert "-erms" not in CPU_MODEL_WITH_PLUGIN
