"""The command lines, QEMU's and the kernel's, that make a boot the same to the last instruction."""

from ktrial.machines.qemu.arguments import BOARD, DEVICES, HEADLESS, date_arguments, size_arguments
from ktrial.machines.qemu.program import Qemu, cpu_flags
from ktrial.model.boot import Boot

_AS_IN_7_2 = "max,family=15,model=107,stepping=1"
"""What `max` was until QEMU 7.2. In 10.0 its family is 0, which no kernel takes for a CPU that is fast at
`rep movs`: 6.1 then copies to and from user space in loops (+10 % instructions a pipe round trip)."""

CPU_MODEL = f"{_AS_IN_7_2},-erms,-fsrm"
"""TCG counts every iteration of a REP instruction; without ERMS and FSRM kernels copy in plain loops."""

CPU_MODEL_WITH_PLUGIN = f"{_AS_IN_7_2},+fsrm,x-force-features=on"
"""The plugin counts a REP instruction once, as hardware does: the CPU shows ERMS and FSRM, as new CPUs do.
7.2's TCG runs what FSRM stands for, a short `rep movsb`, but does not show it unless it is forced to."""

_LATER_THAN_FSRM = ("fsrs", "fsrc", "fzrm")
"""Fast short REP stosb, cmpsb and scasb, fast zero-length REP: 7.2 knows none of them, 10.0's `max` has all.
Linux takes FSRS for its memset since 6.4: counted byte by byte, a fork costs a fifth more than on 7.2; by the
plugin, a memset would be one instruction on one QEMU and a loop on the other."""

SEED = 1
"""Seeds RDRAND and what else QEMU draws; without it no two boots are alike."""

_SEEDED = "random.trust_cpu=on"
"""Random numbers are seeded from RDRAND at once, as in distributions (CONFIG_RANDOM_TRUST_CPU). Else the
kernel is unseeded until its own timers' jitter is enough, and each draw until then hashes the pool anew:
on 6.1 in the guest configuration 11,000 instructions a fork or thread, or none, by when it starts."""

_PARAMETERS = (
    "console=ttyS0",
    "panic=-1",
    "quiet",
    "nokaslr",
    "norandmaps",
    "randomize_kstack_offset=off",
    "cryptomgr.notests",
    "tsc_early_khz=1000000",
    "lpj=4000000",
    "tsc=reliable",
    "no_timer_check",
    "rodata=off",
    _SEEDED,
)
_ONE_CPU_ONLY = ("noapictimer",)


def kernel_parameters(boot: Boot, *, quiet: bool = True) -> str:
    """The kernel's command line: the machine's own parameters, then those of the boot.

    Of a parameter that is there twice the kernel takes the last, so that a study can override any.
    Without `quiet` the kernel tells all on its console: slower, and only for finding out why it ended.
    """
    own = _PARAMETERS + (_ONE_CPU_ONLY if boot.cpus == 1 else ())
    return " ".join([word for word in own if quiet or word != "quiet"] + list(boot.parameters))


def cpu_model_for(qemu: Qemu, model: str) -> str:
    """The model without what only later QEMUs know of fast REP instructions: one CPU, whatever the QEMU.

    Raises QemuUnusable.
    """
    known = cpu_flags(qemu.program)
    return ",".join([model, *(f"-{flag}" for flag in _LATER_THAN_FSRM if flag in known)])


def machine_arguments(boot: Boot, cpu_model: str = CPU_MODEL) -> tuple[str, ...]:
    """QEMU's arguments that decide what the guest sees, without those that name files."""
    return (
        *HEADLESS,
        *("-accel", "tcg"),
        *BOARD,
        *("-cpu", cpu_model),
        *size_arguments(boot),
        *("-seed", str(SEED)),
        *("-icount", "shift=0,sleep=off"),
        *date_arguments("vm"),
        *DEVICES,
    )
