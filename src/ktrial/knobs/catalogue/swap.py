"""Swap: how much is read at once, and zswap."""

from collections.abc import Sequence
from typing import Any

from ktrial.knobs.catalogue.declare import file, sysctl
from ktrial.model.knob import Allowed, Default, Equipment, Knob, KnobKind


def _zswap(name: str, summary: str, default: str | Sequence[Default], **more: Any) -> Knob:
    return file(
        f"zswap.{name}",
        f"/sys/module/zswap/parameters/{name}",
        summary,
        default,
        config="CONFIG_ZSWAP",
        boot=f"zswap.{name}",
        documentation="Documentation/admin-guide/mm/zswap.rst",
        acts_on=Equipment.SWAP,
        **more,
    )


KNOBS = (
    sysctl(
        "vm.page-cluster",
        "pages read from swap at once, as a power of two",
        (Default(value="3", computed="memory: 2 below 16 MB"),),
        allowed=(Allowed(since="6.12", minimum=0, maximum=31), Allowed(minimum=0)),
        acts_on=Equipment.SWAP,
    ),
    file(
        "swap/vma_ra_enabled",
        "/sys/kernel/mm/swap/vma_ra_enabled",
        "swap is read ahead by a process's addresses, not by places on the disk",
        "true",
        config="CONFIG_SWAP",
        documentation="Documentation/ABI/testing/sysfs-kernel-mm-swap",
        kind=KnobKind.SWITCH,
        choices=("false", "true"),
        coupled=("vm.page-cluster",),
        acts_on=Equipment.SWAP,
    ),
    _zswap(
        "enabled",
        "pages to be swapped are compressed and kept in memory",
        (Default(value="Y", config="CONFIG_ZSWAP_DEFAULT_ON"), Default(value="N")),
        kind=KnobKind.SWITCH,
    ),
    _zswap(
        "compressor",
        "how zswap compresses",
        (
            Default(value="lzo", config="CONFIG_ZSWAP_COMPRESSOR_DEFAULT=lzo"),
            Default(value="zstd", config="CONFIG_ZSWAP_COMPRESSOR_DEFAULT=zstd"),
            Default(value="lz4", config="CONFIG_ZSWAP_COMPRESSOR_DEFAULT=lz4"),
        ),
        kind=KnobKind.TEXT,
    ),
    _zswap("max_pool_percent", "share of memory that zswap may fill", "20", unit="%", minimum=0),
    _zswap(
        "accept_threshold_percent",
        "share of its limit below which a full zswap takes pages again",
        "90",
        unit="%",
        minimum=0,
        coupled=("zswap.max_pool_percent",),
    ),
)
"""Those of this subsystem."""
