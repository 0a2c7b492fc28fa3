"""Options that the kernel has renamed: one option under two names is no difference.

Kconfig itself can say so only since 6.18 (the keyword `transitional`, f9afce4f32e9). So there is a table,
with the commit that renamed each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ktrial.kernels.kconfig.implied_options import ConfigSide
from ktrial.model.kernel import RenamedOption

_RENAMED = {
    "UNWINDER_ORC": ("ORC_UNWINDER", "11af847446ed"),  # 4.15
    "UNWINDER_FRAME_POINTER": ("FRAME_POINTER_UNWINDER", "11af847446ed"),
    "UNWINDER_GUESS": ("GUESS_UNWINDER", "11af847446ed"),
    "STACKPROTECTOR": ("CC_STACKPROTECTOR", "050e9baa9dc9"),  # 4.18
    "STACKPROTECTOR_STRONG": ("CC_STACKPROTECTOR_STRONG", "050e9baa9dc9"),
    "CPU_MITIGATIONS": ("SPECULATION_MITIGATIONS", "fe42754b94a4"),  # 6.9
    "MITIGATION_GDS_FORCE": ("GDS_FORCE_MITIGATION", "be83e809ca67"),
    "MITIGATION_IBPB_ENTRY": ("CPU_IBPB_ENTRY", "e0b8fcfa3cfa"),
    "MITIGATION_CALL_DEPTH_TRACKING": ("CALL_DEPTH_TRACKING", "5fa31af31e72"),
    "MITIGATION_PAGE_TABLE_ISOLATION": ("PAGE_TABLE_ISOLATION", "ea4654e08853"),
    "MITIGATION_RETPOLINE": ("RETPOLINE", "aefb2f2e619b"),
    "MITIGATION_SLS": ("SLS", "7b75782ffd82"),
    "MITIGATION_UNRET_ENTRY": ("CPU_UNRET_ENTRY", "ac61d43983a4"),
    "MITIGATION_IBRS_ENTRY": ("CPU_IBRS_ENTRY", "1da8d2172ce5"),
    "MITIGATION_SRSO": ("CPU_SRSO", "a033eec9a06c"),
    "MITIGATION_RETHUNK": ("RETHUNK", "0911b8c52c4d"),
    "KSTACK_ERASE": ("GCC_PLUGIN_STACKLEAK", "57fbad15c2ee"),  # 6.17
    "KSTACK_ERASE_TRACK_MIN_SIZE": ("STACKLEAK_TRACK_MIN_SIZE", "57fbad15c2ee"),
    "KSTACK_ERASE_METRICS": ("STACKLEAK_METRICS", "57fbad15c2ee"),
    "KSTACK_ERASE_RUNTIME_DISABLE": ("STACKLEAK_RUNTIME_DISABLE", "57fbad15c2ee"),
    "CFI": ("CFI_CLANG", "23ef9d439769"),  # 6.18
}
"""New name → old name, and the commit (with the release that it came in, where that changes)."""


@dataclass(frozen=True)
class Paired:
    """Two configurations with each renamed option under its newer name, in both."""

    before: ConfigSide
    after: ConfigSide
    renamed: tuple[RenamedOption, ...]
    """Those that both have, by their newer names."""


def paired(before: ConfigSide, after: ConfigSide) -> Paired:
    """Give renamed options one name, where one of the two offers the old one, and the other the new."""
    forward, backward = _renames(before, after), _renames(after, before)
    pairs = [
        RenamedOption(
            before=old if new in forward else new,
            after=new if new in forward else old,
            forward=new in forward,
            commit=_RENAMED[new.removeprefix("CONFIG_")][1],
        )
        for new, old in sorted({**forward, **backward}.items())
    ]
    return Paired(_under(forward, before), _under(backward, after), tuple(pairs))


def _renames(old: ConfigSide, new: ConfigSide) -> dict[str, str]:
    """Newer name → older one, of options that one side offers by the older name, the other by the newer."""
    return {
        f"CONFIG_{newer}": f"CONFIG_{older}"
        for newer, (older, _) in _RENAMED.items()
        if _offers(old, f"CONFIG_{older}")
        and not _offers(old, f"CONFIG_{newer}")
        and _offers(new, f"CONFIG_{newer}")
        and not _offers(new, f"CONFIG_{older}")
    }


def _offers(side: ConfigSide, option: str) -> bool:
    return option in side.config or side.text.mentions(option)


def _under(names: Mapping[str, str], side: ConfigSide) -> ConfigSide:
    newer = {old: new for new, old in names.items()}
    menus = {newer.get(option, option): menu for option, menu in side.text.menus.items()}
    config = {newer.get(option, option): value for option, value in side.config.items()}
    return replace(side, config=config, text=replace(side.text, menus=menus))
