"""Which plugin a profile is counted with, or why none can be."""

import base64
from pathlib import Path

import pytest
from tests.support.scripted import a_kernel

from ktrial.machines.errors import NoPluginHere
from ktrial.machines.exact import (
    CPU_MODEL,
    CPU_MODEL_WITH_PLUGIN,
    InstrumentedTarget,
    machine_arguments,
    usable_plugin,
)
from ktrial.machines.qemu.boot import BootFiles
from ktrial.machines.qemu.plugin import PluginBuild
from ktrial.machines.qemu.process import Children
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot import SnapshotSetup
from ktrial.machines.qemu.snapshot_cache import SnapshotCache
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.model.workload import Mode
from ktrial.target import Collect, Failure, Step, StepResult, Write
from ktrial.target.errors import NoSymbolsInGuest


def a_qemu(program: Path, version: tuple[int, int, int]) -> Qemu:
    return Qemu(program=program, version=version, text="QEMU", digest="0", firmware="firmware")


def a_program(path: Path, status: int, message: str = "") -> Path:
    path.write_text(f"#!/bin/sh\ncat >&2 <<END\n{message}\nEND\nexit {status}\n")
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


class Told(InstrumentedTarget):
    """A target whose guest answers as it is written down."""

    asked = 0

    def __init__(self, setup: SnapshotSetup, snapshots: SnapshotCache, answer: StepResult) -> None:
        super().__init__(setup, Children("exact"), snapshots, "", PluginBuild(Path("insn-v1.so"), 1))
        self._answer = answer

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        self.asked += 1
        assert steps == (
            Write(path="/proc/sys/kernel/kptr_restrict", value="0"),
            Collect(path="/proc/kallsyms"),
        )
        return (StepResult(step=0, do="write"), self._answer)


@pytest.fixture
def setup(tmp_path: Path) -> SnapshotSetup:
    return SnapshotSetup(
        machine="exact",
        boot=Boot(kernel=a_kernel()),
        qemu=a_qemu(tmp_path / "qemu", (7, 2, 0)),
        files=BootFiles(tmp_path / "vmlinux", "", ()),
        facts={"kernel": "a"},
        identity=MachineIdentity(machine="exact", mode=Mode.EXACT_PLUGIN),
        preload=tmp_path / "lockstep.so",
    )


def test_symbols_are_asked_for_once_a_snapshot(tmp_path: Path, setup: SnapshotSetup) -> None:
    snapshots = SnapshotCache(tmp_path, 1 << 40, "exact")
    (tmp_path / setup.key).mkdir()
    text = "ffffffffc0000000 t ext4_open\t[ext4]\n"
    message = StepResult(step=1, do="collect", content=base64.b64encode(text.encode()).decode())
    first, second = (Told(setup, snapshots, message) for _ in range(2))
    assert (first.kallsyms(), second.kallsyms()) == (text, text)
    assert (first.asked, second.asked) == (1, 0)


def test_a_kernel_without_symbols_says_so(tmp_path: Path, setup: SnapshotSetup) -> None:
    refused = StepResult(step=1, do="collect", failure=Failure(errno=2, name="ENOENT", text="No such file"))
    with pytest.raises(NoSymbolsInGuest, match="/proc/kallsyms: No such file"):
        Told(setup, SnapshotCache(tmp_path, 1 << 40, "exact"), refused).kallsyms()


def test_only_counted_guests_see_fast_string_instructions() -> None:
    boot = Boot(kernel=a_kernel())
    by_clock, by_plugin = machine_arguments(boot, CPU_MODEL), machine_arguments(boot, CPU_MODEL_WITH_PLUGIN)
    differing = [pair for pair in zip(by_clock, by_plugin, strict=True) if pair[0] != pair[1]]
    assert differing == [(CPU_MODEL, CPU_MODEL_WITH_PLUGIN)]
    assert {"-erms", "-fsrm"} <= set(CPU_MODEL.split(","))
    assert "+fsrm" in CPU_MODEL_WITH_PLUGIN.split(",")
    assert "-erms" not in CPU_MODEL_WITH_PLUGIN
