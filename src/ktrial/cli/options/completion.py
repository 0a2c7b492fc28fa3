"""What the shell completes: kernels, workloads, knobs, studies, and their treatments."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from ktrial.model.knob import Knob
    from ktrial.store.quick_reader import StudyRow


def _in_silence() -> contextlib.suppress:
    """Where nothing can be completed, nothing is: a message would stand in the middle of a command line."""
    return contextlib.suppress(KtrialError)


def _after_comma(incomplete: str) -> tuple[str, str]:
    """`w1,w2,w` → what stays of it, and the word that is completed."""
    before, comma, word = incomplete.rpartition(",")
    return f"{before}{comma}", word


def workload_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the last of `w1,w2,…` with the built-in workloads."""
    before, word = _after_comma(incomplete)
    with _in_silence():
        from ktrial.workloads import descriptions

        return [
            (f"{before}{name}", description.summary)
            for name, description in descriptions().items()
            if name.startswith(word)
        ]
    return []


def workload_sets(incomplete: str) -> list[tuple[str, str]]:
    """Complete the last of `w1,w2,…`, or one of the sets of workloads."""
    sets = [("default", "the usual workloads"), ("quick", "a few of them")]
    return [(name, meaning) for name, meaning in sets if name.startswith(incomplete)] + workload_names(
        incomplete
    )


def metric_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the metrics of the workload that is named, or of all."""
    texts = ctx.params.get("workload") or []
    named = {name for text in ([texts] if isinstance(texts, str) else texts) for name in text.split(",")}
    with _in_silence():
        from ktrial.workloads import descriptions

        metrics = [
            metric.name
            for workload, description in descriptions().items()
            if workload in named or not named
            for metric in description.metrics
        ]
        return [metric for metric in dict.fromkeys(metrics) if metric.startswith(incomplete)]
    return []


def machine_names(incomplete: str) -> list[str]:
    """Complete the machines."""
    with _in_silence():
        from ktrial import machines

        return [name for name in sorted(machines.names()) if name.startswith(incomplete)]
    return []


def host_names(incomplete: str) -> list[str]:
    """Complete the last of `h1,h2,…` with the machines of the user's configuration."""
    before, word = _after_comma(incomplete)
    with _in_silence():
        from ktrial.machines.ssh.power_commands import named

        return [f"{before}{name}" for name in named() if name.startswith(word)]
    return []


def format_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the formats of what programs print."""
    with _in_silence():
        from ktrial import program_outputs

        formats = program_outputs.installed()[0].items()
        return [(name, format.summary) for name, format in formats if name.startswith(incomplete)]
    return []


def export_formats() -> list[tuple[str, str]]:
    """What `--export` takes, with what reads it."""
    from ktrial.report.exports import exports

    return [(f"{name}:", export.summary) for name, export in exports()[0].items()]


def kernel_names(incomplete: str) -> list[str]:
    """Complete the kernels in the cache."""
    from ktrial.kernels import stored_names

    return [name for name in stored_names() if name.startswith(incomplete)]


def kernel_lists(incomplete: str) -> list[str]:
    """Complete the last of `k1,k2,…` with the kernels in the cache."""
    before, word = _after_comma(incomplete)
    return [f"{before}{name}" for name in kernel_names(word)]


def _knobs() -> "Iterable[Knob]":
    from ktrial.knobs.catalogue import all_knobs

    return all_knobs()


def knob_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete knobs by their names."""
    return [(knob.name, knob.summary) for knob in _knobs() if knob.name.startswith(incomplete)]


def knob_settings(incomplete: str) -> list[tuple[str, str]]:
    """Complete `NAME=` for what can be set while the kernel runs."""
    settable = (knob for knob in _knobs() if not knob.needs_reboot)
    return [(f"{knob.name}=", knob.summary) for knob in settable if knob.name.startswith(incomplete)]


def subsystem_names(incomplete: str) -> list[str]:
    """Complete the subsystems of the knobs."""
    subsystems = sorted({knob.subsystem for knob in _knobs()})
    return [name for name in subsystems if name.startswith(incomplete)]


def tunable_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the last of `k1,k2,…` with subsystems and knobs."""
    before, word = _after_comma(incomplete)
    knobs = list(_knobs())
    names = [(name, f"all knobs of {name}") for name in subsystem_names("")]
    names += [(knob.name, knob.summary) for knob in knobs if not knob.needs_reboot]
    names += [(f"boot:{knob.name}", knob.summary) for knob in knobs if knob.needs_reboot]
    return [(f"{before}{name}", summary) for name, summary in names if name.startswith(word)]


def study_names(incomplete: str) -> list[str]:
    """Complete the studies in the default store."""
    from ktrial.store.location import default_location

    names = (study.name for study in _stored_studies(default_location()) if not study.made_by)
    return sorted({name for name in names if name.startswith(incomplete)})


def regression_ids(incomplete: str) -> list[tuple[str, str]]:
    """Complete the regressions that the default store keeps."""
    from ktrial.errors import KtrialError
    from ktrial.store.location import default_location
    from ktrial.store.store import open_store

    try:
        with open_store(default_location(), read_only=True, existing=True) as store:
            stored = [regression for _, regression in store.regressions()]
    except KtrialError:
        return []
    return [(item.id, item.workload) for item in stored if item.id.startswith(incomplete)]


def study_files(incomplete: str) -> list[str]:
    """Complete study files, directories that may hold them, and the studies that come with ktrial."""
    from ktrial.studyfile import toml_files

    start = Path(incomplete or ".")
    directory = start if not incomplete or incomplete.endswith("/") else start.parent
    paths = [path for path in directory.glob("*") if path.is_dir() or path.suffix == ".toml"]
    names = [f"{path}/" if path.is_dir() else str(path) for path in sorted(paths)]
    return [name for name in (*names, *toml_files.names()) if name.startswith(incomplete)]


def treatment_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the treatments of the study that is named, or of the latest."""
    study = _named_study(ctx)
    labels = study.labels if study else []
    return [label for label in labels if label.startswith(incomplete)]


def workloads_of_study(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the workloads of the study that is named; those of the catalogue where kernels are."""
    if ctx.params.get("kernel") or _begins_with_kernel(ctx):
        return [name for name, _ in workload_names(incomplete)]
    study = _named_study(ctx)
    return [workload for workload in study.workloads if workload.startswith(incomplete)] if study else []


def _begins_with_kernel(ctx: typer.Context) -> bool:
    from ktrial.kernels.providers import full_name

    return ":" in full_name(next(iter(ctx.params.get("arguments") or ()), ""))


def _named_study(ctx: typer.Context) -> "StudyRow | None":
    """The study; None where there is none."""
    from ktrial.store.location import default_location

    location = str(ctx.params.get("store") or default_location())
    name = next(iter(ctx.params.get("arguments") or ()), ctx.params.get("study"))
    if name and name.endswith(".toml"):
        return _study_of_file(location, name)
    every = _stored_studies(location)
    studies = [study for study in every if not study.made_by]
    if name:
        named = [study for study in studies if study.name == name]
        studies = named or [study for study in every if str(study.id) == name]
    return studies[-1] if studies else None


def _stored_studies(location: str) -> "Sequence[StudyRow]":
    """All studies of a store, the newest last; none where there is no store."""
    from ktrial.store.quick_reader import NoQuickReading, quick_reader, row_of

    with _in_silence():
        try:
            with quick_reader(location) as reader:
                return reader.studies()
        except NoQuickReading:
            # Opening a store that is not there would make it.
            if _is_there(location):
                from ktrial.store.store import open_store

                with open_store(location, existing=True) as store:
                    return [row_of(study) for study in store.studies()]
    return []


def _study_of_file(location: str, name: str) -> "StudyRow | None":
    """What a study file, as it is now, has measured."""
    from ktrial.cli.studies import find
    from ktrial.store.quick_reader import row_of
    from ktrial.store.store import open_store

    with _in_silence():
        if _is_there(location):
            with open_store(location, existing=True) as store:
                return row_of(find(store, name))
    return None


def _is_there(location: str) -> bool:
    """Whether it may be opened: the file is there, or there is a server to ask."""
    return "://" in location or Path(location).is_file()
