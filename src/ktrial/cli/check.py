"""`ktrial check`: is a kernel within a limit of a baseline? For pull requests and `git bisect run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.counting import BootParameters
from ktrial.cli.measuring import Cpus, Given, MemorySize, Workloads
from ktrial.cli.options import Jobs, Json, Perturbations, StoreOption, kernel_names

if TYPE_CHECKING:
    from ktrial.kernels.source import Wanted
    from ktrial.model.kernel import Kernel
    from ktrial.runner.check import Check
    from ktrial.runner.one_kernel import Runs


def check(
    against: Annotated[
        str,
        typer.Option(metavar="BASELINE", help="A saved baseline, or a kernel.", autocompletion=kernel_names),
    ],
    kernel: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The kernel under test.", autocompletion=kernel_names),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="[DIR]", help="Build this source tree, and test it; alone: the current one."),
    ] = None,
    workload: Workloads = None,
    maximum: Annotated[
        list[str] | None,
        typer.Option("--max", metavar="+1%", help="The largest change for the worse; or fork=+2%."),
    ] = None,
    config: Annotated[
        str | None, typer.Option(metavar="guest|defconfig|FILE", help="With --source: what to build.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=y", help="With --source: a configuration option; may be repeated."),
    ] = None,
    top: Annotated[int, typer.Option(min=0, metavar="N", help="Functions to show for each change.")] = 5,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="FILE.md", help="Append the result as Markdown, for a pull request."),
    ] = None,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: MemorySize = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Measure a kernel against a baseline; exit 1 where it is worse by more than --max allows.

    Exit codes, as git bisect run wants them: 0 within, 1 beyond, 125 where it does not build or boot, its
    workload fails, or nothing can be decided; 2 for a mistake on the command line, and 128 or more for all
    that says nothing about the kernel.
    """
    from ktrial.cli.check_endings import Endings, code_of
    from ktrial.cli.check_texts import as_json, as_markdown, print_check
    from ktrial.cli.terminal import output, print_json

    with Endings():
        tested = _tested(kernel, source, config, option)
        given = Given.of(workload, memory, cpus, boot, perturbations)
        result = _checked(tested, against, given, maximum or [], store, jobs)
        if summary:
            _append(summary, as_markdown(result, top))
        if json:
            print_json(as_json(result))
        else:
            print_check(result, top, output())
        code = code_of(result.decision)
    raise typer.Exit(code)


def _tested(
    kernel: str | None, source: str | None, config: str | None, options: list[str] | None
) -> "str | Wanted":
    """What is under test: a kernel's name, or what to build. Raises BadOption, BadBuildOption."""
    from ktrial.cli.counting import BadOption
    from ktrial.cli.known import known
    from ktrial.kernels.source import GUEST, wanted

    if (kernel is None) == (source is None):
        raise BadOption(option="--kernel or --source", problem="give one of the two: what is to be checked")
    if kernel is not None:
        if config is not None or options:
            raise BadOption(option="--config and --option", problem="they go with --source")
        return known().kernel_name(kernel)
    return wanted(Path(source or "."), config or GUEST, tuple(options or ()))


def _checked(
    tested: "str | Wanted",
    against: str,
    given: Given,
    maximum: list[str],
    store: str | None,
    jobs: int | None,
) -> "Check":
    from ktrial.cli import measuring
    from ktrial.cli.progress import progress
    from ktrial.runner import baseline as baselines
    from ktrial.runner.check import check as check_kernel
    from ktrial.store import default_location, open_store

    with open_store(store or default_location()) as opened, progress() as observer:
        runs = measuring.runs(opened, observer, jobs)
        name = _kernel_name(against)
        if name is None:
            baseline = baselines.find(against, opened)
            how = measuring.measurement_like(baseline, given)
            limits = measuring.limits(maximum, how.workloads)
        else:
            how = measuring.measurement(given)
            limits = measuring.limits(maximum, how.workloads)
            baseline = baselines.measured(name, how, runs)
        return check_kernel(_obtained(tested, runs), baseline, how, limits, runs)


def _kernel_name(against: str) -> str | None:
    """The kernel that is meant; None where the name can only be a baseline's."""
    from ktrial.cli.known import known
    from ktrial.runner.baseline import HOST

    return known().kernel_name(against) if ":" in against or against == HOST else None


def _obtained(tested: "str | Wanted", runs: "Runs") -> "Kernel":
    from ktrial.kernels import source

    if isinstance(tested, str):
        return runs.kernel(tested)
    name = source.name_of(tested.source)

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        runs.observer.kernel_progress(name, what, done, total)

    return source.add(tested, progress)


def _append(path: Path, text: str) -> None:
    """At the end: $GITHUB_STEP_SUMMARY holds what other steps have written. Raises FileNotWritten."""
    from ktrial.cli.counting import FileNotWritten

    try:
        with path.expanduser().open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FileNotWritten(path=path, problem=error.strerror) from None
