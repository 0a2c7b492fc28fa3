"""`ktrial check`: is a kernel within a limit of a baseline? For pull requests and `git bisect run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.counting import BootParameters
from ktrial.cli.measuring import Cpus, Given, Limits, MemorySize, Workloads
from ktrial.cli.options import Jobs, Json, Perturbations, StoreOption, kernel_names
from ktrial.cli.under_test import BuildOptions, Config, KernelName, SourceTree, UnderTest

if TYPE_CHECKING:
    from ktrial.runner.check import Check


def check(
    against: Annotated[
        str,
        typer.Option(metavar="BASELINE", help="A saved baseline, or a kernel.", autocompletion=kernel_names),
    ],
    kernel: KernelName = None,
    source: SourceTree = None,
    workload: Workloads = None,
    maximum: Limits = None,
    config: Config = None,
    option: BuildOptions = None,
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
    """Measure a kernel against a baseline, for git bisect and CI.

    Exit codes, as git bisect run wants them: 0 within, 1 beyond, 125 where it does not build or boot, its
    workload fails, or nothing can be decided; 2 for a mistake on the command line, and 128 or more for all
    that says nothing about the kernel.
    """
    from ktrial.cli.check_endings import Endings, code_of
    from ktrial.cli.check_texts import as_json, as_markdown, print_check
    from ktrial.cli.terminal import output, print_json

    with Endings():
        tested = UnderTest.of(kernel, source, config, option)
        given = Given.of(workload, memory, cpus, boot, perturbations)
        result = _checked(tested, against, given, maximum or [], store, jobs)
        if summary:
            append(summary, as_markdown(result, top))
        if json:
            print_json(as_json(result))
        else:
            print_check(result, top, output())
        code = code_of(result.decision)
    raise typer.Exit(code)


def _checked(
    tested: UnderTest,
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
        return check_kernel(tested.obtained(runs), baseline, how, limits, runs)


def _kernel_name(against: str) -> str | None:
    """The kernel that is meant; None where the name can only be a baseline's."""
    from ktrial.cli.known import known
    from ktrial.runner.baseline import HOST

    return known().kernel_name(against) if ":" in against or against == HOST else None


def append(path: Path, text: str) -> None:
    """At the end: $GITHUB_STEP_SUMMARY holds what other steps have written. Raises FileNotWritten."""
    from ktrial.cli.counting import FileNotWritten

    try:
        with path.expanduser().open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FileNotWritten(path=path, problem=error.strerror) from None
