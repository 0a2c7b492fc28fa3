"""Golden guests: what is done with real kernels, to be recorded once, and played again and again.

Each is a function that is given a machine, and returns what came of it. `record_guests.py` runs them on the
exact machine, tests on the recording; what they return must be the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.guests import ENDLESS, PLANTED, UPTIME, WITHOUT_EFFECT, boot_of, ending, perform, work
from tests.support.places import DATA
from tests.support.recorded_guests import Recording, ReplayedMachine, replayed_sources

from ktrial import monitors
from ktrial.experiment.profile import profile
from ktrial.experiment.resources import Resources
from ktrial.experiment.session import run
from ktrial.kernels import silent
from ktrial.kernels.kernel_registry import reference
from ktrial.machines.exact import ExactMachine
from ktrial.model.design import Factor, FactorKind, LevelValue
from ktrial.model.machine import Boot
from ktrial.model.profile import Profile
from ktrial.model.study import Disk, MachineSettings, Study, StudyRecord
from ktrial.model.workload import Command, CountedBy, WorkloadUse
from ktrial.store.store import open_store
from ktrial.target import LoadModule, Mount, Push, Run, Sampling, Step, StepResult, Write
from ktrial.target.errors import GuestEnded

RECORDINGS = DATA / "guests"
OLD, NEW = "debian:6.1", "debian:6.12"
CRASH = Write(path="/proc/sysrq-trigger", value="c")
LISTING = WorkloadUse(name="listing", command=Command(argv=("/bin/ls", "-l", "/dev"), repeats=3))


@dataclass(frozen=True)
class Guests:
    """Where golden guests run, or are played again."""

    machine: ExactMachine
    resources: Resources
    directory: Path
    """For a store, and for whatever else is written."""

    def boot(self, kernel: str, **changes: object) -> Boot:
        """A small, quickly settled system."""
        small = {"memory_mib": 256, "settle_ns": 500_000_000}
        return boot_of(self.resources.obtain(reference(kernel), silent), **(small | changes))

    def performed(self, kernel: str, *steps: Step, **changes: object) -> tuple[StepResult, ...]:
        """Boot, do the steps, end."""
        return perform(self.machine, self.boot(kernel, **changes), *steps)

    def ended(self, kernel: str, *steps: Step, **changes: object) -> GuestEnded:
        """How a guest ended that must not reach its end."""
        return ending(self.machine, self.boot(kernel, **changes), *steps)

    def profile(self, kernel: str, use: WorkloadUse, *parameters: str) -> Profile:
        """Instructions by function."""
        settings = MachineSettings(kernel=kernel, boot=parameters)
        return profile(settings, use, machine=self.machine, resources=self.resources)

    def study(self, study: Study) -> StudyRecord:
        """Run the study, one trial after another."""
        with open_store(self.directory / f"{study.name}.db") as store:
            return run(study, store=store, machine=self.machine, resources=self.resources, jobs=1)


@dataclass(frozen=True)
class Golden:
    """One golden guest."""

    does: Callable[[Guests], object]
    count: CountedBy = CountedBy.PLUGIN


def factor(kind: FactorKind, target: str, *levels: LevelValue) -> Factor:
    """One factor, called `it`, whose first level is the baseline."""
    return Factor(name="it", kind=kind, target=target, levels=levels, baseline=levels[0])


def study_of(name: str, it: Factor, *uses: WorkloadUse, perturbations: int = 1, **machine: object) -> Study:
    """A study of one factor."""
    settings = MachineSettings.model_validate({"kernel": OLD, **machine})
    return Study(name=name, machine=settings, factors=(it,), workloads=uses, perturbations=perturbations)


def a_use(name: str, **parameters: int | str) -> WorkloadUse:
    """A workload with few operations."""
    return WorkloadUse(name=name, parameters=parameters)


KERNELS_ANSWERS: tuple[Step, ...] = (
    Write(path="/proc/sys/vm/swappiness", value="banana"),
    Write(path="/proc/sys/vm/no_such_setting", value="1"),
    Write(path="/proc/sys/kernel/ostype", value="1"),
    Mount(fstype="nofs", source="none", path="/mnt"),
    LoadModule(path="/etc/none.ko"),
    Run(argv=("/no/such/program",)),
    Push(path="/proc/no_such_file", base64=""),
)
WORKLOADS = (
    UPTIME,
    work("syscall", "--operations", "200"),
    work("fork", "--operations", "20"),
    work("pipe", "--operations", "50"),
    work("open", "--operations", "50"),
)


def another_kernels_module(guests: Guests) -> GuestEnded:
    """6.1 is given a module of 6.12."""
    other = guests.resources.modules(guests.resources.obtain(reference(NEW), silent), ["null_blk"])
    return guests.ended(OLD, UPTIME, modules=other)


def sampled_twice(guests: Guests) -> tuple[StepResult, ...]:
    """`fork`, whose kernel's counters are read every 20 ms meanwhile, and the same without."""
    sampling = Sampling(files=monitors.sampled_files(), around=monitors.costly_files(), every_ns=20_000_000)
    plain = work("fork", "--operations", "100").model_copy(update={"watch": ()})
    watched = plain.model_copy(update={"sample": sampling, "layout_seed": 1})
    return guests.performed(NEW, watched, plain)


def a_disk(guests: Guests) -> StudyRecord:
    """Fewer dirty pages allowed: the writer waits for the disk, which has 80 MiB a second."""
    writes, disk = a_use("aio-stress", size=24, passes=1, path="/mnt"), Disk(bandwidth_mib=80, latency_us=100)
    it = factor(FactorKind.SETTING, "vm.dirty_ratio", 20, 4)
    return guests.study(study_of("disk", it, writes, kernel=NEW, disk=disk, count=CountedBy.CLOCK))


def settings(guests: Guests) -> StudyRecord:
    """A setting that is made, and one that the kernel refuses."""
    it = factor(FactorKind.SETTING, "vm.swappiness", 60, 10, 500)
    return guests.study(study_of("settings", it, a_use("syscall")))


def without_init(guests: Guests) -> StudyRecord:
    """A treatment whose kernel panics at boot."""
    return guests.study(study_of("init", factor(FactorKind.BOOT, "rdinit", "", "/none"), a_use("syscall")))


def parameters(guests: Guests) -> StudyRecord:
    """A workload's parameter as the factor."""
    return guests.study(study_of("pages", factor(FactorKind.PARAMETER, "mmap.pages", 1, 64), a_use("mmap")))


def preemption(guests: Guests) -> StudyRecord:
    """The kernel's own model, one that it takes, and one that it does not."""
    switches = a_use("context-switch", operations=300, passes=2)
    return guests.study(study_of("preempt", factor(FactorKind.BOOT, "preempt", "", "none", "lazy"), switches))


def commands(guests: Guests) -> StudyRecord:
    """A workload of ktrial's own and a program of this system, counted by function, perturbed once."""
    return guests.study(
        study_of("counted", factor(FactorKind.NOTHING, "", "a"), a_use("fork"), LISTING, perturbations=2)
    )


def upgrade(guests: Guests) -> StudyRecord:
    """Two kernels under three workloads, perturbed once."""
    it = factor(FactorKind.KERNEL, "", OLD, NEW)
    uses = map(a_use, ("syscall", "fork", "nqueens"))
    return guests.study(study_of("upgrade", it, *uses, perturbations=2))


def ways_into_the_kernel(guests: Guests) -> dict[str, Profile]:
    """Workloads of which it is known how they enter the kernel."""
    uses = (a_use("pipe"), a_use("mmap", operations=101), a_use("nqueens"))
    return {use.name: guests.profile(NEW, use) for use in (*uses, a_use("context-switch", operations=101))}


def planted(kernel: str) -> Callable[[Guests], dict[str, tuple[Profile, Profile]]]:
    """What each boot parameter changes: profiles before and after."""

    def pairs(guests: Guests) -> dict[str, tuple[Profile, Profile]]:
        return {
            str(one): one.profiles(partial(guests.profile, kernel)) for one in (*PLANTED, *WITHOUT_EFFECT)
        }

    return pairs


GOLDEN: dict[str, Golden] = {
    "steps-6.1": Golden(lambda guests: guests.performed(OLD, *WORKLOADS), CountedBy.CLOCK),
    "steps-6.12": Golden(lambda guests: guests.performed(NEW, *WORKLOADS), CountedBy.CLOCK),
    "answers": Golden(lambda guests: guests.performed(OLD, *KERNELS_ANSWERS), CountedBy.CLOCK),
    "panic": Golden(lambda guests: guests.ended(OLD, UPTIME, CRASH, UPTIME), CountedBy.CLOCK),
    "no-init": Golden(
        lambda guests: guests.ended(OLD, UPTIME, parameters=("rdinit=/nope",)), CountedBy.CLOCK
    ),
    "hang": Golden(
        lambda guests: guests.ended(OLD, UPTIME, ENDLESS, UPTIME, limit_instructions=1_000_000_000),
        CountedBy.CLOCK,
    ),
    "too-small": Golden(
        lambda guests: guests.ended(OLD, UPTIME, memory_mib=192, initrd_padding=90 << 20), CountedBy.CLOCK
    ),
    "module-refused": Golden(another_kernels_module, CountedBy.CLOCK),
    "sampled": Golden(sampled_twice, CountedBy.CLOCK),
    "disk": Golden(a_disk, CountedBy.CLOCK),
    "settings": Golden(settings),
    "without-init": Golden(without_init),
    "parameters": Golden(parameters),
    "preemption": Golden(preemption),
    "commands": Golden(commands),
    "upgrade": Golden(upgrade),
    "ways": Golden(ways_into_the_kernel),
    "planted-6.1": Golden(planted(OLD)),
    "planted-6.12": Golden(planted(NEW)),
}
"""By name, which is the recording's."""


def played(name: str, directory: Path) -> Any:
    """What the golden guest of that name comes to, played from its recording. No guest is booted."""
    recording = Recording.load(RECORDINGS / f"{name}.json.xz")
    golden = GOLDEN[name]
    machine = ReplayedMachine(recording, golden.count)
    return golden.does(Guests(machine, replayed_sources(recording, directory / "kernels"), directory))
