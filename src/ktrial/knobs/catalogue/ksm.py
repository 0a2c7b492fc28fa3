"""KSM: pages with the same content are merged."""

from typing import Any

from ktrial.knobs.catalogue.declare import file
from ktrial.model.knob import Knob, KnobKind, Safety


def _ksm(name: str, summary: str, default: str, **more: Any) -> Knob:
    return file(
        f"ksm/{name}",
        f"/sys/kernel/mm/ksm/{name}",
        summary,
        default,
        config="CONFIG_KSM",
        documentation="Documentation/admin-guide/mm/ksm.rst",
        **more,
    )


KNOBS = (
    _ksm(
        "run",
        "0 stop, 1 merge pages of programs that ask for it, 2 stop and take all merged pages apart",
        "0",
        choices=("0", "1", "2"),
        # Merged pages tell, by the time a write takes, what other programs hold.
        safety=Safety.SECURITY,
    ),
    _ksm("pages_to_scan", "pages looked at before ksmd sleeps", "100", minimum=0, coupled=("ksm/run",)),
    _ksm(
        "sleep_millisecs",
        "time that ksmd sleeps between scans",
        "20",
        unit="ms",
        minimum=0,
        coupled=("ksm/run",),
    ),
    _ksm("merge_across_nodes", "pages of different NUMA nodes are merged too", "1", choices=("0", "1")),
    _ksm("max_page_sharing", "pages that one merged page may stand for", "256", minimum=2),
    _ksm("use_zero_pages", "empty pages become the kernel's zero page", "0", choices=("0", "1")),
    _ksm(
        "smart_scan",
        "pages that could not be merged are skipped for some scans",
        "1",
        since="6.7",
        change="5e924ff54d08 mm/ksm: add 'smart' page scanning mode",
        kind=KnobKind.SWITCH,
    ),
    _ksm(
        "advisor_mode",
        "who sets pages_to_scan: none, or a target time for a whole scan",
        "none",
        since="6.8",
        change="66790e9a735b mm/ksm: add sysfs knobs for advisor",
        choices=("none", "scan-time"),
        coupled=("ksm/pages_to_scan",),
    ),
)
"""Those of this subsystem."""
