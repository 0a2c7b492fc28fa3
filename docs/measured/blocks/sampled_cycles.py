"""docs/machine-model.md: modelled cycles by a ninth of the caches' sets, beside those by all of them."""

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.study_numbers import StudyNumbers
from docs.measured.wording import count, percent, table

_OLD, _NEW = "debian:6.1", "debian:6.12"
_WORKLOADS = ("syscall", "stat", "open", "pipe", "fork", "mmap", "copy-4096", "tcp")
_HEADS = ("workload", "all sets, 6.12", "sampled", "error", "change from 6.1, all sets", "sampled")
_CYCLES = "modelled-cycles"


def _text(measuring: Measuring) -> str:
    whole, sampled = (_modelled(measuring, model) for model in ("desktop", "desktop-sampled"))
    rows = []
    for workload in _WORKLOADS:
        full, part = (each.value(_NEW, workload, _CYCLES) for each in (whole, sampled))
        changes = [f"{percent(each.ratio(_NEW, _OLD, workload, _CYCLES))} %" for each in (whole, sampled)]
        rows.append((workload, count(full), count(part), f"{percent(part / full)} %", *changes))
    return table(_HEADS, rows)


def _modelled(measuring: Measuring, model: str) -> StudyNumbers:
    data = {
        "question": "What do 6.1 and 6.12 cost on a modelled machine?",
        "perturbations": 1,
        "workloads": list(_WORKLOADS),
        "machine": {"model": model},
        "factors": {"kernel": {"levels": [_OLD, _NEW]}},
    }
    return measuring.study(f"modelled-on-{model}", data)


BLOCKS = (Block("sampled-cycles", "docs/machine-model.md", _text),)
