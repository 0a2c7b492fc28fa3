"""Profiling a kernel: where its symbols come from, and what is refused rather than given wrong names."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.places import PLUGIN_COUNTS
from tests.support.scripted import ScriptedWorkload, a_kernel, ends, scripted_resources

from ktrial.experiment import profile as profiling
from ktrial.experiment.jobs import Job
from ktrial.experiment.profile import KernelFunctions, KernelSymbols
from ktrial.experiment.resources import Resources
from ktrial.file_digests import unsealed
from ktrial.machines.exact import ExactMachine, InstrumentedTarget
from ktrial.machines.qemu import plugin
from ktrial.machines.qemu.plugin import CacheShapes
from ktrial.model.kernel import Kernel
from ktrial.model.machine import NO_FILES, Boot, FileSet, MachineIdentity
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings
from ktrial.model.trial import Outcome
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction, Metric, Mode, WorkloadDescription, WorkloadUse
from ktrial.target import Step, StepResult
from ktrial.target.errors import GuestEnded, NoSymbolsInGuest
from ktrial.workloads.builtin import BuiltIn
from ktrial.workloads.errors import NoMarkedRegion

HEADER, REGION, END = PLUGIN_COUNTS.read_text().splitlines(keepends=True)
OPERATIONS = json.loads(REGION)["operations"]["count"]
NEXT_RUN = '{"run":"begin"}\n'
KALLSYMS = "".join(f"{0xFFFFFFFF81000000 + 16 * n:016x} T function_{n}\n" for n in range(2000))
DATA = "ffffffff82000000 d jiffies\n"
CALL = Metric(name="call", unit="instructions", direction=Direction.LOWER)


def report(operations: int = OPERATIONS) -> str:
    """What the program prints."""
    metric = {"name": CALL.name, "unit": CALL.unit, "direction": "lower", "operations": operations}
    metric |= {"minimum": 190, "median": 190, "mean": 190}
    report = {"workload": "fork", "clock": "tsc", "overhead": 7, "bundle": 2, "metrics": [metric]}
    return json.dumps(report | {"checks": operations})


@dataclass
class Guest:
    """What a guest says, and what it was asked."""

    report: str = report()
    counts: str = HEADER + NEXT_RUN + REGION + END
    kallsyms: str = KALLSYMS + DATA
    refuses: str = ""
    ended: GuestEnded | None = None
    asked: int = 0
    symbols: list[str] = field(default_factory=list)
    executed: dict[str, str] = field(default_factory=dict)


class Target(InstrumentedTarget):
    """A target that says what a Guest has written down."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    @property
    def identity(self) -> MachineIdentity:
        return MachineIdentity(
            machine="scripted",
            mode=Mode.EXACT_PLUGIN,
            qemu="7.2.22",
            cpu_model="max",
            executed=self._guest.executed,
        )

    def kallsyms(self) -> str:
        self._guest.asked += 1
        if self._guest.refuses:
            raise NoSymbolsInGuest(name="debian:6.1", problem=self._guest.refuses)
        return self._guest.kallsyms

    def counted(
        self,
        steps: tuple[Step, ...],
        symbols: str = "",
        *,
        calls: bool = False,
        caches: CacheShapes | None = None,
    ) -> tuple[StepResult, ...]:
        if self._guest.ended:
            raise self._guest.ended
        self._guest.symbols.append(symbols)
        with tempfile.NamedTemporaryFile("w") as out:
            out.write(self._guest.counts)
            out.flush()
            (region,) = plugin.read_runs(Path(out.name))
        return (StepResult(step=0, do="run", exit=0, stdout=self._guest.report, region=region),)


class Machine(ExactMachine):
    """A machine with one guest."""

    def __init__(self, guest: Guest) -> None:
        self._scripted = guest

    def check(self) -> None:
        pass

    @contextmanager
    def instrumented(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[InstrumentedTarget]:
        yield Target(self._scripted)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return a_kernel(image=tmp_path / "vmlinuz")


def built_in(use: WorkloadUse) -> BuiltIn:
    return BuiltIn(WorkloadDescription(name=use.name, summary="", does="", metrics=(CALL,)))


def profile(kernel: Kernel, guest: Guest, **settings: Any) -> Profile:
    real = scripted_resources()
    modules = (Path("/lib/ext4.ko"),)
    resources = Resources(
        obtain=lambda name, progress: kernel,
        modules=lambda kernel, names: modules,
        workload=lambda use: BuiltIn(
            WorkloadDescription(name=use.name, summary="", does="", metrics=(CALL,))
        ),
        files=real.files,
    )
    machine_settings = MachineSettings(kernel=kernel.name, **settings)
    return profiling.profile(
        machine_settings, WorkloadUse(name="fork"), machine=Machine(guest), resources=resources
    )


def test_a_profile_is_what_was_counted_by_operation(kernel: Kernel) -> None:
    counted = profile(kernel, Guest(), boot=("init_on_alloc=1",))
    assert counted.operations == 2 * OPERATIONS
    assert counted.region.instructions == json.loads(REGION)["instructions"]
    assert counted.label == "debian:6.1 init_on_alloc=1"
    assert counted.cpu_model == "max"


def test_marks_that_may_not_be_meant_are_told(kernel: Kernel) -> None:
    class Marked(BuiltIn):
        def warnings(self, use: WorkloadUse, results: tuple[StepResult, ...]) -> tuple[DataWarning, ...]:
            return (
                DataWarning(kind=WarningKind.MARKS, text=f"{use.name}: 6 do not count", advice="leave it"),
            )

    marked = Marked(WorkloadDescription(name="fork", summary="", does="", metrics=(CALL,)))
    job = Job("fork", WorkloadUse(name="fork"), marked, Boot(kernel=kernel), ())
    (warning,) = profiling.profile_job(Machine(Guest()), job).warnings
    assert (warning.text, warning.advice) == ("fork: 6 do not count", "leave it")


def test_programs_that_are_not_the_published_ones_are_told_of(kernel: Kernel) -> None:
    (warning,) = profile(kernel, Guest(executed={"plugin": "0" * 64})).warnings
    assert "(plugin) are not the published ones" in warning.text


def test_symbols_are_asked_for_once_and_kept_with_the_kernel(kernel: Kernel) -> None:
    guest = Guest()
    assert profile(kernel, guest) == profile(kernel, guest)
    assert guest.asked == 1
    assert unsealed((kernel.image.parent / "kallsyms").read_bytes()) == (KALLSYMS + DATA).encode()


def test_symbols_with_modules_hold_for_that_boot_only(kernel: Kernel) -> None:
    guest = Guest()
    profile(kernel, guest, modules=("ext4",))
    profile(kernel, guest, modules=("ext4",))
    assert guest.asked == 2
    assert not (kernel.image.parent / "kallsyms").exists()


@pytest.mark.parametrize(
    ("parameters", "asked"),
    [
        (("ftrace=function",), 2),
        (("trace_event=sched:sched_switch",), 2),
        (("kprobe_event=p,vfs_read",), 2),
        (("mitigations=off",), 1),
    ],
)
def test_symbols_of_a_boot_that_traces_hold_for_that_boot_only(
    kernel: Kernel, parameters: tuple[str, ...], asked: int
) -> None:
    guest = Guest()
    profile(kernel, guest, boot=parameters)
    profile(kernel, guest, boot=parameters)
    assert guest.asked == asked
    assert (kernel.image.parent / "kallsyms").exists() is (asked == 1)


def test_the_plugin_is_handed_functions_only(kernel: Kernel) -> None:
    guest = Guest()
    profile(kernel, guest)
    assert guest.symbols == [KALLSYMS]


@pytest.mark.parametrize(
    ("guest", "problem"),
    [
        (Guest(refuses="/proc/kallsyms: No such file"), "/proc/kallsyms: No such file"),
        (Guest(kallsyms="ffffffff81000000 T _text\n"), "only 1 symbols"),
        (Guest(kallsyms="".join(f"{0:016x} T f{n}\n" for n in range(2000))), "hides them"),
        (Guest(kallsyms=KALLSYMS.replace(" T ", " d ")), "names no function"),
        (
            Guest(counts=HEADER + NEXT_RUN + REGION.replace('"do_syscall_64"', '"[unknown]"') + END),
            "more than 5%",
        ),
    ],
)
def test_a_kernel_whose_functions_have_no_names_is_refused(
    kernel: Kernel, guest: Guest, problem: str
) -> None:
    with pytest.raises(NoSymbolsInGuest, match=problem):
        profile(kernel, guest)


def test_code_that_the_kernel_made_is_no_sign_of_wrong_symbols(kernel: Kernel) -> None:
    """However much of it runs, and though nobody sees it entered."""
    region = json.loads(REGION)
    most = 2 * region["instructions"]
    region["functions"].append(["[generated]", "ffffffffc0201040", most, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    counted = profile(kernel, Guest(counts=HEADER + NEXT_RUN + json.dumps(region) + "\n" + END))
    assert "[generated]" in {function.symbol for function in counted.region.functions}


@pytest.mark.parametrize(
    ("guest", "problem"),
    [
        (Guest(report=report(OPERATIONS + 1)), "did 21 operations, and marked 20"),
        (Guest(counts=HEADER + NEXT_RUN + END), "nothing was counted"),
        (
            Guest(counts=HEADER + NEXT_RUN + REGION.replace('"whole":true', '"whole":false') + END),
            "its end",
        ),
    ],
)
def test_a_workload_without_a_whole_region_is_refused(kernel: Kernel, guest: Guest, problem: str) -> None:
    with pytest.raises(NoMarkedRegion, match=problem):
        profile(kernel, guest)


def test_a_workload_that_does_not_tell_its_region_is_refused(kernel: Kernel) -> None:
    job = Job("mine", WorkloadUse(name="mine"), ScriptedWorkload("mine"), Boot(kernel=kernel), ())
    target = Target(Guest())
    with pytest.raises(NoMarkedRegion, match="which region counts"):
        profiling.counted_profile(job, target.identity, target.counted(()), KernelFunctions(KALLSYMS))


def test_a_guest_that_ends_early_tells_with_the_end_of_its_console(kernel: Kernel) -> None:
    ended = ends(Outcome.PANICKED, "Kernel panic", console="one\nKernel panic - not syncing\n")
    with pytest.raises(GuestEnded, match="Kernel panic") as raised:
        profile(kernel, Guest(ended=ended))
    assert raised.value.advice == "the guest's console ends with: Kernel panic - not syncing"


class EndsOnce(Target):
    """Its guest ends when it is asked for its symbols, the first time."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(Guest())
        self._first: GuestEnded | None = ends(outcome, "as it does")

    def kallsyms(self) -> str:
        ended, self._first = self._first, None
        if ended:
            raise ended
        return super().kallsyms()


@pytest.mark.parametrize("outcome", [Outcome.HUNG, Outcome.MACHINE_FAILED])
def test_symbols_that_this_host_kept_from_being_read_are_asked_for_again(
    kernel: Kernel, outcome: Outcome
) -> None:
    """On a busy host one boot was too slow, and the kernel had no functions in all trials of the study."""
    symbols, target = KernelSymbols(), EndsOnce(outcome)
    with pytest.raises(GuestEnded, match="as it does"):
        symbols.of(target, Boot(kernel=kernel))
    assert symbols.of(target, Boot(kernel=kernel)) == KernelFunctions(KALLSYMS)


def test_a_kernel_that_panics_when_its_symbols_are_read_has_none(kernel: Kernel) -> None:
    symbols, target = KernelSymbols(), EndsOnce(Outcome.PANICKED)
    for _ in range(2):
        functions = symbols.of(target, Boot(kernel=kernel))
        assert "as it does" in functions.problem
    assert "CONFIG_KALLSYMS" not in functions.missing(kernel.name).advice
