"""Checks how a study names a scheduler; whether it loads is found out in the guest."""

import os
import shlex
from pathlib import Path

from ktrial.model.design import KERNELS_OWN_SCHEDULER, LevelValue, scheduler_argv
from ktrial.studyfile.diagnostics import shown


def scheduler_problem(level: LevelValue) -> str:
    """What is wrong with a level; empty where nothing is."""
    own = KERNELS_OWN_SCHEDULER[1]
    allowed = f'allowed: "{own}" (the kernel\'s own), or a program with its arguments: "./scx_simple -v"'
    if not isinstance(level, str):
        return f"found {shown(level)}; {allowed}"
    try:
        scheduler_argv(level)
    except ValueError as error:
        return f"found {shown(level)}: {error}; {allowed}".replace("No closing", "no closing")
    return ""


def absolute_scheduler(level: str, directory: Path) -> str:
    """The level with a relative path of its program made absolute; one with a mistake in it as it is."""
    argv = () if scheduler_problem(level) else scheduler_argv(level)
    if not argv or "/" not in argv[0]:
        return level
    return shlex.join((os.path.normpath(directory / Path(argv[0]).expanduser()), *argv[1:]))
