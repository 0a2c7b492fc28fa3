"""The kernel's configuration: the options and their values, and how it schedules by them."""

import re
import zlib
from dataclasses import dataclass, field
from functools import lru_cache

from ktrial.model.kernel import Kernel

_SET = re.compile(r"^(CONFIG_\w+)=(.*)$", re.MULTILINE)


def parse_config(text: str) -> dict[str, str]:
    """Options that are set: `CONFIG_SMP` → `y`; strings come without their quotes."""
    return {name: value.strip().strip('"') for name, value in _SET.findall(text)}


def config_of(kernel: Kernel) -> dict[str, str]:
    """All options that are set in `kernel`; empty where its configuration is not known."""
    if kernel.config is None:
        return {}
    return parse_config(kernel.config.read_text(encoding="utf-8", errors="replace"))


def embedded_config(vmlinux: bytes) -> bytes:
    """Return the configuration that CONFIG_IKCONFIG builds in (kernel/configs.c); empty where it does not."""
    start = vmlinux.find(b"IKCFG_ST\x1f\x8b")
    return zlib.decompressobj(wbits=31).decompress(vmlinux[start + 8 :]) if start >= 0 else b""


_END = re.compile(r"^# end of (?P<title>\S.*)$", re.MULTILINE)
_LINE = re.compile(
    r"^#\n# (?P<header>\S.*)\n#$|^# end of (?P<end>\S.*)$|^(?:# )?(?P<option>CONFIG_\w+)(?:=.*| is not set)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class ConfigText:
    """The options that a configuration mentions."""

    menus: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Option, set or said not to be set → titles of its menus, the outermost first."""

    def mentions(self, option: str) -> bool:
        """Whether Kconfig offered the option: one whose dependencies are not met is left out."""
        return option in self.menus


@lru_cache(maxsize=8)
def read(text: str) -> ConfigText:
    """What kconfig wrote (scripts/kconfig/confdata.c): `# end of …` closes a menu since Linux 5.3.

    A header that nothing closes is a comment in its menu; where there are none of those lines, a header is
    taken for the whole path.
    """
    closed = {match["title"] for match in _END.finditer(text)}
    menus: dict[str, tuple[str, ...]] = {}
    menu: list[str] = []
    for match in _LINE.finditer(text):
        if option := match["option"]:
            menus.setdefault(option, tuple(menu))
        elif title := match["header"]:
            if title in closed:
                menu.append(title)
            elif not closed:
                menu = [title]
        elif (title := match["end"]) in menu:
            del menu[len(menu) - 1 - menu[::-1].index(title) :]
    return ConfigText(menus)


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
    scheduler = "EEVDF" if tuple(map(int, numbers)) >= _EEVDF_SINCE else "CFS"
    return Scheduling(
        scheduler=next((name for option, name in _OUT_OF_TREE.items() if option in config), scheduler),
        preemption=next((model for option, model in _MODELS.items() if option in config), ""),
        chosen_at_boot="CONFIG_PREEMPT_DYNAMIC" in config,
        sched_ext={"CONFIG_SCHED_CLASS_EXT", "CONFIG_DEBUG_INFO_BTF"} <= config.keys(),
    )
