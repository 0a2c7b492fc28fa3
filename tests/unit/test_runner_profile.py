"""Profiling a kernel: where its symbols come from, and what is refused rather than given wrong names."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.unit.scripted import ScriptedWorkload, a_kernel, ends, sources

from ktrial.errors import GuestEnded, NoMarkedRegion, NoSymbolsInGuest
from ktrial.machines.exact import ExactMachine
from ktrial.machines.exact.plugin import CacheShapes
from ktrial.machines.exact.profiled import ProfiledTarget
from ktrial.model.kernel import Kernel
from ktrial.model.kernel_profile import Profile
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.model.study import MachineSettings
from ktrial.model.trial import Outcome
from ktrial.model.workload import Command, Mode, Sample, WorkloadUse
from ktrial.runner import profile as profiling
from ktrial.runner.sources import Sources
from ktrial.target import Collect, Failure, Step, StepResult

HEADER, REGION, END = Path(__file__).with_name("plugin_counts.jsonl").read_text().splitlines(keepends=True)
OPERATIONS = json.loads(REGION)["operations"]["count"]
KALLSYMS = "".join(f"{0xFFFFFFFF81000000 + 16 * n:016x} T function_{n}\n" for n in range(2000))
MARKER = "ffffffff81000010 T __softirqentry_text_end\n"


@dataclass
class Guest:
    """What a guest says, and what it was asked."""

    report: str = json.dumps({"bundle": 2, "metrics": [{"operations": OPERATIONS}]})
    counts: str = HEADER + REGION + END
    kallsyms: str = KALLSYMS + MARKER
    refuses: Failure | None = None
    ended: GuestEnded | None = None
    asked: int = 0
    symbols: list[str] = field(default_factory=list)


class Target(ProfiledTarget):
    """A target that says what a Guest has written down."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    @property
    def identity(self) -> MachineIdentity:
        return MachineIdentity(machine="scripted", mode=Mode.EXACT_CLOCK, qemu="7.2.22", cpu_model="max")

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        self._guest.asked += 1
        assert isinstance(steps[-1], Collect)
        told = base64.b64encode(self._guest.kallsyms.encode()).decode()
        last = len(steps) - 1
        return (StepResult(step=last, do="collect", content=told, failure=self._guest.refuses),)

    def counted(
        self, steps: tuple[Step, ...], symbols: Path, out: Path, caches: CacheShapes | None = None
    ) -> tuple[StepResult, ...]:
        if self._guest.ended:
            raise self._guest.ended
        self._guest.symbols.append(symbols.read_text())
        out.write_text(self._guest.counts)
        return (StepResult(step=0, do="run", exit=0, stdout=self._guest.report),)


class Machine(ExactMachine):
    """A machine with one guest."""

    def __init__(self, guest: Guest) -> None:
        self._scripted = guest

    def check(self) -> None:
        pass

    @contextmanager
    def profiled(self, boot: Boot) -> Iterator[ProfiledTarget]:
        yield Target(self._scripted)


class Marked(ScriptedWorkload):
    """A workload that reports as the built-in ones do."""

    def samples(self, use: WorkloadUse, mode: Mode, results: tuple[StepResult, ...]) -> tuple[Sample, ...]:
        return ()


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return a_kernel(image=tmp_path / "vmlinuz")


def profile(kernel: Kernel, guest: Guest, **settings: Any) -> Profile:
    real = sources()
    modules = (Path("/lib/ext4.ko"),)
    known = Sources(
        obtain=lambda name, progress: kernel,
        modules=lambda kernel, names: modules,
        workload=lambda use: Marked(use.name),
        files=real.files,
    )
    wanted = MachineSettings(kernel=kernel.name, **settings)
    return profiling.profile(wanted, WorkloadUse(name="fork"), machine=Machine(guest), sources=known)


def test_a_profile_is_what_was_counted_by_operation(kernel: Kernel) -> None:
    found = profile(kernel, Guest(), boot=("init_on_alloc=1",))
    assert found.operations == 2 * OPERATIONS
    assert found.region.instructions == json.loads(REGION)["instructions"]
    assert found.label == "debian:6.1 init_on_alloc=1"
    assert found.cpu_model == "max"


def test_symbols_are_asked_for_once_and_kept_with_the_kernel(kernel: Kernel) -> None:
    guest = Guest()
    assert profile(kernel, guest) == profile(kernel, guest)
    assert guest.asked == 1
    assert (kernel.image.parent / "kallsyms").read_text() == KALLSYMS + MARKER


def test_symbols_with_modules_hold_for_that_boot_only(kernel: Kernel) -> None:
    guest = Guest()
    profile(kernel, guest, modules=("ext4",))
    profile(kernel, guest, modules=("ext4",))
    assert guest.asked == 2
    assert not (kernel.image.parent / "kallsyms").exists()


def test_the_ends_of_sections_name_no_function(kernel: Kernel) -> None:
    guest = Guest()
    profile(kernel, guest)
    assert guest.symbols == [KALLSYMS]


@pytest.mark.parametrize(
    ("guest", "problem"),
    [
        (Guest(refuses=Failure(text="No such file or directory")), "/proc/kallsyms: No such file"),
        (Guest(kallsyms="ffffffff81000000 T _text\n"), "only 1 symbols"),
        (Guest(kallsyms="".join(f"{0:016x} T f{n}\n" for n in range(2000))), "hides them"),
        (Guest(counts=HEADER.replace("46452", "0") + REGION + END), "names no function"),
        (Guest(counts=HEADER + REGION.replace('"do_syscall_64"', '"[unknown]"') + END), "more than 5%"),
    ],
)
def test_a_kernel_whose_functions_have_no_names_is_refused(
    kernel: Kernel, guest: Guest, problem: str
) -> None:
    with pytest.raises(NoSymbolsInGuest, match=problem):
        profile(kernel, guest)


@pytest.mark.parametrize(
    ("guest", "problem"),
    [
        (Guest(report="42 fish"), "how many operations"),
        (Guest(counts=HEADER + END), "marks no region"),
        (Guest(counts=HEADER + REGION.replace('"whole":true', '"whole":false') + END), "its end"),
    ],
)
def test_a_workload_without_a_whole_region_is_refused(kernel: Kernel, guest: Guest, problem: str) -> None:
    with pytest.raises(NoMarkedRegion, match=problem):
        profile(kernel, guest)


def test_a_command_of_the_user_s_is_refused_before_anything_is_fetched(kernel: Kernel) -> None:
    use = WorkloadUse(name="mine", command=Command(argv=("/bin/true",)))
    with pytest.raises(NoMarkedRegion, match="marks no region"):
        profiling.profile(MachineSettings(kernel=kernel.name), use, machine=Machine(Guest()))


def test_a_guest_that_ends_early_tells_with_the_end_of_its_console(kernel: Kernel) -> None:
    ended = ends(Outcome.PANICKED, "Kernel panic", console="one\nKernel panic - not syncing\n")
    with pytest.raises(GuestEnded, match="Kernel panic") as raised:
        profile(kernel, Guest(ended=ended))
    assert raised.value.advice == "the guest's console ends with: Kernel panic - not syncing"
