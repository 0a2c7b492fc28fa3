"""Transparent huge pages and khugepaged."""

from collections.abc import Sequence
from typing import Any

from ktrial.knobs.catalogue.declare import file
from ktrial.model.knob import Default, Equipment, Knob, KnobKind

_OF_CONFIG = (
    Default(value="always", config="CONFIG_TRANSPARENT_HUGEPAGE_ALWAYS"),
    Default(value="madvise", config="CONFIG_TRANSPARENT_HUGEPAGE_MADVISE"),
    Default(value="never", config="CONFIG_TRANSPARENT_HUGEPAGE_NEVER"),
)
"""Kernels switch huge pages off at boot where there is less than 512 MB."""


def _thp(name: str, summary: str, default: str | Sequence[Default], **more: Any) -> Knob:
    return file(
        f"transparent_hugepage/{name}",
        f"/sys/kernel/mm/transparent_hugepage/{name}",
        summary,
        default,
        config="CONFIG_TRANSPARENT_HUGEPAGE",
        documentation="Documentation/admin-guide/mm/transhuge.rst",
        **more,
    )


KNOBS = (
    _thp(
        "enabled",
        "huge pages for anonymous memory: always, where a program asks (madvise), never",
        _OF_CONFIG,
        choices=("always", "madvise", "never"),
        boot="transparent_hugepage",
    ),
    _thp(
        "defrag",
        "what a fault does to get a huge page: wait for compaction, leave it to the background, or not try",
        "madvise",
        choices=("always", "defer", "defer+madvise", "madvise", "never"),
    ),
    _thp(
        "shmem_enabled",
        "huge pages for shared memory that is on no mounted tmpfs",
        "never",
        choices=("always", "within_size", "advise", "never", "deny", "force"),
    ),
    _thp("use_zero_page", "a read of untouched memory maps the huge zero page", "1", choices=("0", "1")),
    _thp(
        "shrink_underused",
        "huge pages that are mostly zeros are split when memory is short",
        "1",
        since="6.12",
        kind=KnobKind.SWITCH,
    ),
    _thp("khugepaged/defrag", "khugepaged may compact memory to get huge pages", "1", choices=("0", "1")),
    _thp(
        "khugepaged/scan_sleep_millisecs",
        "time between passes of khugepaged",
        "10000",
        unit="ms",
        minimum=0,
    ),
    _thp(
        "khugepaged/alloc_sleep_millisecs",
        "time that khugepaged waits after it found no huge page",
        "60000",
        unit="ms",
        minimum=0,
    ),
    _thp("khugepaged/pages_to_scan", "pages that one pass of khugepaged looks at", "4096", minimum=1),
    _thp(
        "khugepaged/max_ptes_none",
        "pages that may be missing where khugepaged makes a huge page: memory grows by them",
        "511",
        minimum=0,
        maximum=511,
    ),
    _thp(
        "khugepaged/max_ptes_swap",
        "pages that khugepaged may read from swap to make a huge page",
        "64",
        minimum=0,
        maximum=511,
        acts_on=Equipment.SWAP,
    ),
    _thp(
        "khugepaged/max_ptes_shared",
        "pages shared between processes that a huge page may replace",
        "256",
        minimum=0,
        maximum=511,
    ),
)
"""Those of this subsystem."""
