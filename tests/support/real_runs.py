"""`ktrial` itself, run on real kernels as a user runs it, with a cache that has kernels and no snapshots."""

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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


# `ktrial` in a process that has imported what it needs: a second and a half of CPU less for each command.
#
# Each command is the child of a server that has imported ktrial and has run nothing, so that no command
# sees what another one keeps in memory. Whoever tests how `ktrial` starts, or what signals do, starts the
# program.

_SERVER = multiprocessing.get_context("forkserver")


_SERVER.set_forkserver_preload(
    [
        *("ktrial.cli.main", "ktrial.cli.app", "ktrial.cli.running.study", "ktrial.cli.commands.explain"),
        *("ktrial.cli.commands.explain", "ktrial.experiment.session", "ktrial.machines.exact"),
        *("ktrial.report", "ktrial.analysis.attribution.decomposition"),
    ]
)


cpu_seconds_of_commands: list[float] = []
"""They are no children of this process."""


def cpu_seconds() -> float:
    """Of this process and of the children that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def ktrial(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    directory: Path | None = None,
    *,
    together: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end, in `directory`, and return what it said.

    `together`: standard error goes where standard output goes, in the order in which it comes.
    """
    with tempfile.TemporaryDirectory() as place:
        outputs = [str(Path(place) / name) for name in ("stdout", "stderr", "cpu")]
        started = (tuple(arguments), dict(environment), str(directory or Path.cwd()), outputs, together)
        process = _SERVER.Process(target=_be_ktrial, args=started)
        process.start()
        process.join()
        assert process.exitcode is not None
        assert process.exitcode >= 0, f"ktrial was ended by signal {-process.exitcode}"
        said = [Path(output).read_text() for output in outputs[:2]]
        cpu_seconds_of_commands.append(float(Path(outputs[2]).read_text()))
    return subprocess.CompletedProcess(("ktrial", *arguments), process.exitcode, *said)


def _be_ktrial(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    directory: str,
    outputs: list[str],
    together: bool,
) -> None:
    from ktrial.cli.main import main

    for descriptor, output in enumerate(outputs[:2], start=1):
        file = os.open(output, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, descriptor)
        os.close(file)
    if together:
        os.dup2(1, 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv = ["ktrial", *arguments]
    try:
        main()
    finally:
        Path(outputs[2]).write_text(str(cpu_seconds()))


# Commands that take minutes: what they say of themselves is shown as it comes (`pytest -s`), and kept.


def run_shown(
    command: Sequence[str | Path],
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    together: bool = False,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` with both outputs captured; each line of standard error is shown at once.

    `together`: standard output goes where standard error goes.
    """
    said = []
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if together else output,
            stderr=subprocess.STDOUT if together else subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process,
    ):
        lines = process.stdout if together else process.stderr
        assert lines
        for line in lines:
            said.append(line)
            print(line, end="", file=sys.stderr, flush=True)
        status = process.wait()
        output.seek(0)
        printed = output.read()
    text = "".join(said)
    outputs = (text, "") if together else (printed, text)
    return subprocess.CompletedProcess(command, status, *outputs)


def show(what: str, done: int = 0, total: int = 0) -> None:
    """The progress of a build that a test makes itself."""
    print(f"{what}: {done >> 20} of {total >> 20} MiB" if total else what, file=sys.stderr, flush=True)
