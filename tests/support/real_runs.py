"""`ktrial` itself, run on real kernels as a user runs it, with a cache that has kernels and no snapshots."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.warm_ktrial import ktrial

from ktrial.installation import cache_directory
from ktrial.kernels import kernel_registry

KTRIAL = str(Path(sys.executable).with_name("ktrial"))


SHARED = ("kernels", "sources", "configs", "trees", "builds", "recipes", "bisect")
"""What of a cache is no snapshot: fetched or built, with no regard to how guests are started."""


def cache_without_snapshots(directory: Path, *names: str) -> Path:
    """A new cache directory: the kernels are those of the usual one, to which missing ones are added."""
    for name in names:
        kernel_registry.add(name)
    directory.mkdir()
    for name in SHARED:
        usual = cache_directory() / name
        usual.mkdir(parents=True, exist_ok=True)
        (directory / name).symlink_to(usual)
    return directory


def environment(cache: Path | None = None) -> dict[str, str]:
    """This process's, with another cache where one is given."""
    return os.environ | ({"KTRIAL_CACHE": str(cache)} if cache else {})


def result(*arguments: str | Path, cache: Path | None = None) -> dict[str, Any]:
    """What a command prints with --json, after it ended with 0."""
    done = ktrial((*map(str, arguments), "--json"), environment(cache))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def measured(trials: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Trials without what the host's clock says about them."""
    return [
        {key: value for key, value in trial.items() if key not in {"started", "seconds"}} for trial in trials
    ]


def interrupted(*arguments: str | Path, cache: Path, at: str) -> tuple[int, str]:
    """Exit status and standard error of a command that is ended by Ctrl-C once a line of it has `at`.

    As from a terminal, the signal goes to the whole process group.
    """
    said = []
    with subprocess.Popen(
        (KTRIAL, *map(str, arguments)),
        env=environment(cache),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr
        for line in process.stderr:
            said.append(line)
            if at in line:
                os.killpg(process.pid, signal.SIGINT)
                break
        said += process.stderr.readlines()
    return process.returncode, "".join(said)
