"""`ktrial fidelity STUDY`: do changes that exact mode counts agree with those in real time?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import AllowHostChanges, BootParameters, Html, Jobs, Json, NoHtml, StoreOption
from ktrial.cli.options.completion import kernel_names, study_names

if TYPE_CHECKING:
    from ktrial.model.fidelity import FidelityResult
    from ktrial.model.study import MachineSettings, Study

Studies = Annotated[
    list[str],
    typer.Argument(
        metavar="STUDY...",
        help="Study files in real time, whose missing trials are run; or stored studies: of one in real time "
        "NAME-counted is the other side, or EXACT TIMED name both.",
        autocompletion=study_names,
    ),
]
Kernel = Annotated[
    str,
    typer.Option(
        metavar="KERNEL",
        help="What the counting side boots, for studies of host and ssh.",
        autocompletion=kernel_names,
    ),
]
Model = Annotated[
    str, typer.Option(metavar="MODEL", help="What cycles are modelled on: none, default, FILE.")
]
Modules = Annotated[
    list[str] | None, typer.Option("--module", metavar="NAME", help="A module for it; may be repeated.")
]


@examples(
    "ktrial fidelity fidelity-host.toml --kernel debian:6.18",
    "ktrial fidelity fidelity-exact fidelity-host --json",
)
def fidelity(
    studies: Studies,
    kernel: Kernel = "debian:6.18",
    model: Model = "default",
    memory: Annotated[str, typer.Option(metavar="1G", help="Its memory.")] = "1G",
    boot: BootParameters = None,
    module: Modules = None,
    perturbations: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Perturbations that are counted.")
    ] = 1,
    fit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a machine model fitted to half of the treatments."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Draws the half that is held out, and the bootstrap.")
    ] = 1,
    allow_host_changes: AllowHostChanges = False,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Compare counted changes with those in real time.

    The same treatments and workloads on the machine exact and in real time: signs, correlations, error,
    disagreements, and what of the machine model could explain them.
    """
    from ktrial.cli.console import output, print_json, print_link
    from ktrial.cli.installed import registry
    from ktrial.cli.running.fidelity import FidelityRequest, compared, written
    from ktrial.studyfile import bundled_studies, load

    def loaded(path: Path) -> "Study":
        return load(bundled_studies.file_of(path), registry())

    machine = _machine(kernel, model, memory, tuple(boot or ()), tuple(module or ()))
    result = compared(
        FidelityRequest(studies, machine, perturbations, seed, store, jobs, allow_host_changes, fit, loaded)
    )
    name = " and ".join(Path(one).stem for one in studies)
    path = None if no_html and not html else written(result, name, html or _default_page(name, store))
    if json:
        sentences = [one.sentence for one in result.all]
        print_json({**result.model_dump(mode="json"), "sentences": sentences})
        return
    _print(result)
    if path:
        print_link("page", path, output())


def _machine(
    kernel: str, model: str, memory: str, boot: tuple[str, ...], modules: tuple[str, ...]
) -> "MachineSettings":
    from ktrial.cli.command_line import BadOption
    from ktrial.model.quantities import memory_mib
    from ktrial.model.study import MachineSettings
    from ktrial.studyfile.machine_models import machine_model

    try:
        mib = memory_mib(memory)
    except ValueError as error:
        raise BadOption(option="--memory", problem=str(error)) from None
    modelled = machine_model(model, Path.cwd())
    return MachineSettings(kernel=kernel, memory_mib=mib, boot=boot, modules=modules, model=modelled)


def _default_page(name: str, store: str | None) -> Path:
    from ktrial.cli.running.study import reports_beside
    from ktrial.store import default_location

    return reports_beside(store or default_location()) / f"fidelity-{name.replace(' ', '-')}.html"


def _print(result: "FidelityResult") -> None:
    from ktrial.cli.console import output
    from ktrial.format.sanitize import one_line
    from ktrial.report.text.fidelity import lines

    console = output()
    for line in lines(result):
        console.print(one_line(line), style="bold" if line.endswith(":") and line[0] != " " else "")
