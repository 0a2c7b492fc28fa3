"""`ktrial` in a process that has imported what it needs: a second and a half of CPU less for each command.

Each command is the child of a server that has imported ktrial and has run nothing, so that no command sees
what another one keeps in memory. Whoever tests how `ktrial` starts, or what signals do, starts the program.
"""

import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

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
