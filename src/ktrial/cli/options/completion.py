"""What the shell completes: kernels, workloads, knobs, studies, and their treatments."""

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from ktrial.store.quick_reader import StudyRow


class _Knob(NamedTuple):
    name: str
    summary: str
    subsystem: str
    needs_reboot: bool


def workload_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the last of `w1,w2,…` with the built-in workloads."""
    before, comma, last = incomplete.rpartition(",")
    with _in_silence():
        every = _kept("workloads", _workloads)
        return [(f"{before}{comma}{name}", summary) for name, summary in every if name.startswith(last)]
    return []


def workload_sets(incomplete: str) -> list[tuple[str, str]]:
    """Complete the last of `w1,w2,…`, or one of the sets of workloads."""
    sets = [("default", "the usual workloads"), ("quick", "a few of them")]
    return [each for each in sets if each[0].startswith(incomplete)] + workload_names(incomplete)


def metric_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the metrics of the workload that is named, or of all."""
    named = ctx.params.get("workload") or []
    wanted = {name for text in ([named] if isinstance(named, str) else named) for name in text.split(",")}
    with _in_silence():
        metrics = [
            metric
            for workload, each in _kept("metrics", _metrics)
            if workload in wanted or not wanted
            for metric in each
        ]
        return [metric for metric in dict.fromkeys(metrics) if metric.startswith(incomplete)]
    return []


def _metrics() -> list[tuple[str, list[str]]]:
    from ktrial.workloads import descriptions

    return [(name, [metric.name for metric in each.metrics]) for name, each in descriptions().items()]


def machine_names(incomplete: str) -> list[str]:
    """Complete the machines."""
    with _in_silence():
        return [name for name in _kept("machines", _machines) if name.startswith(incomplete)]
    return []


def own_hosts(incomplete: str) -> list[str]:
    """Complete the last of `h1,h2,…` with the machines of the user's configuration."""
    before, comma, last = incomplete.rpartition(",")
    with _in_silence():
        from ktrial.machines.ssh.power_commands import named

        return [f"{before}{comma}{name}" for name in named() if name.startswith(last)]
    return []


def _machines() -> list[str]:
    from ktrial.experiment.resources import installed

    return sorted(installed().registry.machines)


def _workloads() -> list[tuple[str, str]]:
    from ktrial.workloads import descriptions

    return [(name, description.summary) for name, description in descriptions().items()]


def format_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the formats of what programs print."""
    with _in_silence():
        every = _kept("formats", _formats)
        return [(name, summary) for name, summary in every if name.startswith(incomplete)]
    return []


def _formats() -> list[tuple[str, str]]:
    from ktrial import program_outputs

    return [(name, each.summary) for name, each in program_outputs.installed()[0].items()]


def topic_names(incomplete: str) -> list[str]:
    """Complete the pages of the documentation."""
    from ktrial.cli.commands.help import pages

    with _in_silence():
        return [topic for topic in pages() if topic.startswith(incomplete)]
    return []


def kernel_names(incomplete: str) -> list[str]:
    """Complete the kernels in the cache."""
    from ktrial.kernels import stored_names

    return [name for name in stored_names() if name.startswith(incomplete)]


def kernel_lists(incomplete: str) -> list[str]:
    """Complete the last of `k1,k2,…` with the kernels in the cache."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in kernel_names(last)]


def knob_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete knobs by their names."""
    return [(knob.name, knob.summary) for knob in _knobs() if knob.name.startswith(incomplete)]


def knob_settings(incomplete: str) -> list[tuple[str, str]]:
    """Complete `NAME=` for what can be set while the kernel runs."""
    settable = (knob for knob in _knobs() if not knob.needs_reboot)
    return [(f"{knob.name}=", knob.summary) for knob in settable if knob.name.startswith(incomplete)]


def subsystem_names(incomplete: str) -> list[str]:
    """Complete the subsystems of the knobs."""
    return [name for name in _subsystems() if name.startswith(incomplete)]


def tunable_names(incomplete: str) -> list[tuple[str, str]]:
    """Complete the last of `k1,k2,…` with subsystems and knobs."""
    before, comma, last = incomplete.rpartition(",")
    knobs = _knobs()
    named = [(name, f"all knobs of {name}") for name in _subsystems()]
    named += [(knob.name, knob.summary) for knob in knobs if not knob.needs_reboot]
    named += [(f"boot:{knob.name}", knob.summary) for knob in knobs if knob.needs_reboot]
    return [(f"{before}{comma}{name}", summary) for name, summary in named if name.startswith(last)]


def _subsystems() -> list[str]:
    return sorted({knob.subsystem for knob in _knobs()})


def _knobs() -> list[_Knob]:
    return [_Knob(*one) for one in _kept("knobs", _all_knobs)]


def _all_knobs() -> list[_Knob]:
    from ktrial.knobs.catalogue import all_knobs

    return [_Knob(one.name, one.summary, one.subsystem, one.needs_reboot) for one in all_knobs()]


def _kept(what: str, work_out: Callable[[], Any]) -> Any:
    """What a catalogue has, as JSON has it: it takes its time to load, and changes with ktrial only."""
    from ktrial.cli import output_cache

    try:
        key = output_cache.key_of("completion", what)
    except OSError:
        return work_out()
    if kept := output_cache.get(key):
        return json.loads(kept)
    every = work_out()
    output_cache.put(key, json.dumps(every))
    return every


def study_names(incomplete: str) -> list[str]:
    """Complete the studies in the default store."""
    from ktrial.store.location import default_location

    names = (one.name for one in _stored_studies(default_location()))
    return sorted({name for name in names if name.startswith(incomplete)})


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
    if ctx.params.get("kernel"):
        return [name for name, _ in workload_names(incomplete)]
    study = _named_study(ctx)
    return [each for each in study.workloads if each.startswith(incomplete)] if study else []


def _named_study(ctx: typer.Context) -> "StudyRow | None":
    """The study; None where there is none."""
    from ktrial.store.location import default_location

    location, name = str(ctx.params.get("store") or default_location()), ctx.params.get("study")
    if name and name.endswith(".toml"):
        return _study_of_file(location, name)
    studies = _stored_studies(location)
    if name:
        named = [one for one in studies if one.name == name]
        studies = named or [one for one in studies if str(one.id) == name]
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
                    return [row_of(one) for one in store.studies()]
    return []


def _study_of_file(location: str, name: str) -> "StudyRow | None":
    """What a study file, as it is now, has measured."""
    from ktrial.cli.studies import find
    from ktrial.store.store import open_store

    with _in_silence():
        if _is_there(location):
            with open_store(location, existing=True) as store:
                from ktrial.store.quick_reader import row_of

                return row_of(find(store, name))
    return None


def _is_there(location: str) -> bool:
    """Whether it may be opened: the file is there, or there is a server to ask."""
    return "://" in location or Path(location).is_file()


def _in_silence() -> contextlib.suppress:
    """Where nothing can be completed, nothing is: a message would stand in the middle of a command line."""
    return contextlib.suppress(KtrialError)
