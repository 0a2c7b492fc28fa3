"""Options that several commands share, and what the shell completes."""

import contextlib
from pathlib import Path
from typing import Annotated, Literal

import typer

from ktrial.errors import KtrialError


def workload_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the last of `w1,w2,…` with the built-in workloads."""
    from ktrial.workloads import descriptions

    before, comma, last = incomplete.rpartition(",")
    with _in_silence():
        return [
            (f"{before}{comma}{name}", description.summary)
            for name, description in descriptions().items()
            if name.startswith(last)
        ]
    return []


def kernel_names(incomplete: str) -> list[str]:
    """Complete the kernels in the cache."""
    from ktrial.kernels import all_kernels

    with _in_silence():
        return [kernel.name for kernel in all_kernels() if kernel.name.startswith(incomplete)]
    return []


def knob_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete knobs by their names."""
    from ktrial.knobs.catalogue import all_knobs

    return [(knob.name, knob.summary) for knob in all_knobs() if knob.name.startswith(incomplete)]


def knob_settings(incomplete: str) -> list[tuple[str, str]]:
    """Complete `NAME=` for what can be set while the kernel runs."""
    from ktrial.knobs.catalogue import all_knobs

    settable = (knob for knob in all_knobs() if not knob.needs_reboot)
    return [(f"{knob.name}=", knob.summary) for knob in settable if knob.name.startswith(incomplete)]


def subsystem_names(incomplete: str) -> list[str]:
    """Complete the subsystems of the knobs."""
    from ktrial.knobs.catalogue import subsystems

    return [name for name in subsystems() if name.startswith(incomplete)]


def tunable_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the last of `k1,k2,…` with subsystems and knobs."""
    from ktrial.knobs.catalogue import all_knobs, subsystems

    before, comma, last = incomplete.rpartition(",")
    named = [(name, f"all knobs of {name}") for name in subsystems()]
    named += [(knob.name, knob.summary) for knob in all_knobs() if not knob.needs_reboot]
    named += [(f"boot:{knob.name}", knob.summary) for knob in all_knobs() if knob.needs_reboot]
    return [(f"{before}{comma}{name}", summary) for name, summary in named if name.startswith(last)]


def study_names(incomplete: str) -> list[str]:
    """Complete the studies in the default store."""
    from ktrial.store import default_location, open_store

    with _in_silence():
        # Opening a store that is not there would make it.
        if Path(default_location()).is_file():
            with open_store(default_location()) as store:
                names = {one.study.name for one in store.studies()}
            return sorted(name for name in names if name.startswith(incomplete))
    return []


def _in_silence() -> contextlib.suppress:
    """Where nothing can be completed, nothing is: a message would stand in the middle of a command line."""
    return contextlib.suppress(KtrialError)


def study_files(incomplete: str) -> list[str]:
    """Complete study files, directories that may hold them, and the studies that come with ktrial."""
    from ktrial.studyfile import bundled_studies

    start = Path(incomplete or ".")
    directory = start if not incomplete or incomplete.endswith("/") else start.parent
    found = [path for path in directory.glob("*") if path.is_dir() or path.suffix == ".toml"]
    names = [f"{path}/" if path.is_dir() else str(path) for path in sorted(found)]
    return [name for name in (*names, *bundled_studies.names()) if name.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="FILE", help="The store; else KTRIAL_STORE, else the user's own."),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Where to write the report; else reports/ beside the store."),
]
NoHtml = Annotated[bool, typer.Option("--no-html", help="Write no report.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, metavar="N", help="Trials at once; else one a core."),
]
Perturbations = Annotated[
    int | None, typer.Option(min=1, max=1000, metavar="N", help="Perturbations of each treatment.")
]
Margin = Annotated[
    str | None, typer.Option("--margin", metavar="1%", help="The smallest change that matters.")
]
GuestMemory = Annotated[str | None, typer.Option("--memory", metavar="512M", help="The guest's memory.")]
AllowHostChanges = Annotated[
    bool, typer.Option("--allow-host-changes", help="Machine host: settings are changed, and put back.")
]
Count = Annotated[
    Literal["plugin", "clock"] | None,
    typer.Option(
        metavar="plugin|clock",
        help="What counts instructions: the QEMU plugin where it loads, else the clock.",
    ),
]
StoredStudyName = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]", help="A study's name, number or file; else the latest.", autocompletion=study_names
    ),
]
