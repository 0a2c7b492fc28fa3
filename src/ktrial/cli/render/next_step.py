"""What to do after a result: commands that can be typed as they are."""

import math
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ktrial.model.design import FactorKind
from ktrial.model.study import EXACT_MACHINES, StudyRecord, treatments
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Mode
from ktrial.report.attribution import Why
from ktrial.store.location import masked

NextStep = Callable[[StudyRecord, Sequence[Why], str | None], str]
"""The command to go on with, from a result and the store's option; empty where there is none."""
_MORE_WORKLOADS = "syscall,fork,mmap,open,futex"


def prove_command(record: StudyRecord, whys: Sequence[Why], store: str | None) -> str:
    """The command that measures the causes of the largest change whose causes are not measured; empty: none.

    It can be typed as it is.
    """
    if not any(factor.kind is FactorKind.KERNEL for factor in record.study.factors):
        return ""
    unproven = [why for why in whys if why.proof is None and why.total.difference]
    if not unproven:
        return _kernels_part(record, store) if not whys else ""

    def relative(why: Why) -> float:
        return abs(why.total.difference) / why.total.before if why.total.before else math.inf

    why = max(unproven, key=relative)
    to = ["--to", why.treatment] if len(treatments(record.study)) > 2 else []
    explain = ["ktrial", "explain", str(record.id), "--workload", why.workload, *to, "--prove"]
    return shlex.join([*explain, *store_option(store)])


def resume_command(record: StudyRecord, store: str | None) -> str:
    """The command that runs the trials that an interrupted study lacks; empty where it lacks none."""
    timing = record.study.timing
    ended_by_time = timing is not None and bool(timing.budget_seconds)
    if len(record.trials) >= record.planned or ended_by_time:
        return ""
    return shlex.join(["ktrial", "run", str(record.id), *store_option(store)])


def tested_by(record: StudyRecord) -> str:
    """What would test the settings that reached nothing, in words; empty where all reached something."""
    return "; ".join(
        dict.fromkeys(
            warning.advice for warning in record.result.warnings if warning.kind is WarningKind.NOT_TESTED
        )
    )


def _kernels_part(record: StudyRecord, store: str | None) -> str:
    """Of a program that changed too little as a whole: what its kernel's part did, which `explain` tells."""
    if len(treatments(record.study)) != 2:
        return ""
    compared = [row for row in record.result.comparisons if row.ratio is not None]
    counted = {row.workload for row in compared if row.mode is Mode.EXACT_PLUGIN}
    programs = [use.label for use in record.study.workloads if use.command and use.label in counted]
    if not programs:
        return ""
    return shlex.join(["ktrial", "explain", str(record.id), "--workload", programs[0], *store_option(store)])


def timed_by(record: StudyRecord) -> str:
    """What measures the time that settings cost, where instructions were counted; else empty."""
    kinds = {factor.kind for factor in record.study.factors}
    if kinds != {FactorKind.SETTING} or record.study.machine.kind not in EXACT_MACHINES:
        return ""
    return (
        'to measure time, copy the study with kind = "host" that `ktrial help for-administrators` shows, and '
        "run it on the system in question"
    )


def same_command(*options: str, without: str = "") -> str:
    """The command that runs, with these options too, before a command of the user's own.

    `without`: an option that has a value, and that is not to take effect twice.
    """
    program, *words = sys.argv
    if Path(program).name != "ktrial":
        return f"the same command with {' '.join(options)}"
    place = words.index("--") if "--" in words else len(words)
    own, users = words[:place], words[place:]
    if without in own:
        del own[own.index(without) : own.index(without) + 2]
    own = [word for word in own if not (without and word.startswith(f"{without}="))]
    return shlex.join(["ktrial", *map(masked, own), *options, *users])


def first_step(record: StudyRecord, _: Sequence[Why], store: str | None) -> str:
    """The first of `next_steps`."""
    return next_steps(record, store)[0][0]


def next_steps(record: StudyRecord, store: str | None) -> list[tuple[str, str]]:
    """Three commands, each with what it is for. They can be typed as they are."""
    names = [level for factor in record.study.factors for level in map(str, factor.levels)]
    option = store_option(store)
    compared = {row.workload for row in record.result.comparisons if row.ratio is not None}
    workloads = [use.label for use in record.study.workloads if use.label in compared]
    if not workloads:  # there is nothing to explain
        return [(shlex.join(["ktrial", "show", str(record.id), "-v", *option]), "what the trials left")]
    explain = ["ktrial", "explain", str(record.id), "--workload", workloads[0], *option]
    more = ["ktrial", "compare", *names, _MORE_WORKLOADS, *option]
    command = ["ktrial", "compare", *names, *option, "--", "sort", "/etc/passwd"]
    return [
        (shlex.join(explain), "which kernel functions the difference is made of"),
        (shlex.join(more), "the same for other parts of the kernel"),
        (
            shlex.join(command),
            "a program of your own in place of sort (strace finds its files); more: ktrial help studies",
        ),
    ]


def store_option(store: str | None) -> list[str]:
    """`--store FILE` where it was given: the printed command reads the same store."""
    return ["--store", masked(store)] if store else []
