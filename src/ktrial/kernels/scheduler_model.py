"""How a kernel schedules, as its release and its configuration tell."""

import re
from dataclasses import dataclass

from ktrial.kernels.kconfig.config import config_of
from ktrial.model.kernel import Kernel

_EEVDF_SINCE = (6, 6)
_OUT_OF_TREE = {"CONFIG_SCHED_MUQSS": "MuQSS", "CONFIG_SCHED_PDS": "PDS", "CONFIG_SCHED_BMQ": "BMQ"}
_MODELS = {
    "CONFIG_PREEMPT_NONE": "none",
    "CONFIG_PREEMPT_VOLUNTARY": "voluntary",
    "CONFIG_PREEMPT": "full",
    "CONFIG_PREEMPT_LAZY": "lazy",
    "CONFIG_PREEMPT_RT": "rt",
}


@dataclass(frozen=True)
class Scheduling:
    """What of it is known without booting; the preemption model in force is asked of the running kernel."""

    scheduler: str
    """For ordinary tasks: `CFS` until Linux 6.5, `EEVDF` since; `MuQSS`, `PDS` and `BMQ` are patches."""
    preemption: str
    """The model that it was built for: `none`, `voluntary`, `full`, `lazy`, `rt`; empty: not known."""
    chosen_at_boot: bool
    """Whether `preempt=` is listened to (CONFIG_PREEMPT_DYNAMIC)."""
    sched_ext: bool
    """Whether programs can load a scheduler (CONFIG_SCHED_CLASS_EXT, with the types they need: BTF)."""

    def __str__(self) -> str:
        parts = [self.scheduler]
        if self.preemption:
            parts.append(
                f"preemption {self.preemption}{', or by preempt=' if self.chosen_at_boot else ' only'}"
            )
        return "; ".join([*parts, *(["sched_ext"] if self.sched_ext else [])])


def scheduling(kernel: Kernel) -> Scheduling:
    """Of a kernel whose configuration may be unknown."""
    config = config_of(kernel)
    numbers = re.findall(r"\d+", kernel.release)[:2]
    own = "EEVDF" if tuple(map(int, numbers)) >= _EEVDF_SINCE else "CFS"
    return Scheduling(
        scheduler=next((name for option, name in _OUT_OF_TREE.items() if option in config), own),
        preemption=next((model for option, model in _MODELS.items() if option in config), ""),
        chosen_at_boot="CONFIG_PREEMPT_DYNAMIC" in config,
        sched_ext={"CONFIG_SCHED_CLASS_EXT", "CONFIG_DEBUG_INFO_BTF"} <= config.keys(),
    )
