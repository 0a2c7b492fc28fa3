"""What the trials ran on: everything in their provenance, each distinct value once."""

import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ktrial.format.sanitize import one_line
from ktrial.model.design import FactorKind, Treatment
from ktrial.model.kernel import Build
from ktrial.model.study import StudyRecord, build_of, treatments
from ktrial.model.trial import Provenance, Trial
from ktrial.report.study_summary import treatment_labels


class KernelFacts(NamedTuple):
    """One kernel that trials ran on."""

    name: str
    release: str
    package: str
    digest: str
    config_digest: str


class Fact(NamedTuple):
    """One property of the machine, with the treatments it holds for (empty: all of them)."""

    name: str
    value: str
    treatments: tuple[str, ...] = ()


def kernels(record: StudyRecord) -> tuple[KernelFacts, ...]:
    """The kernels, in the order of the treatments."""
    met = (trial.provenance for trial in _in_order(record) if trial.provenance.kernel)
    return tuple(
        dict.fromkeys(
            KernelFacts(
                provenance.kernel,
                provenance.kernel_release,
                provenance.kernel_package,
                provenance.kernel_digest,
                provenance.config_digest,
            )
            for provenance in met
        )
    )


_MOST_RELEASES = 3


def releases(named: Iterable[tuple[str, str]]) -> str:
    """`debian:6.1 is 6.1.0-56-cloud-amd64, debian:6.12 is …`: what names and their releases stand for.

    A name that says its release is left out; of many the first are named. Empty where nothing is to be said.
    """
    distinct = dict.fromkeys((name, release) for name, release in named if release and release not in name)
    if len(distinct) > 1 and len({release for _, release in distinct}) == 1:
        return f"all are {next(iter(distinct))[1]}"
    shown = [f"{name} is {release}" for name, release in distinct][:_MOST_RELEASES]
    more = [f"{len(distinct) - len(shown)} more are in the report"] if len(distinct) > len(shown) else []
    return ", ".join(shown + more)


def releases_of(record: StudyRecord) -> str:
    """The same of the kernels that a study's trials ran on."""
    return releases((kernel.name, kernel.release) for kernel in kernels(record))


_PROPERTIES: tuple[tuple[str, Callable[[Provenance], str]], ...] = (
    ("ktrial", lambda provenance: provenance.ktrial),
    ("Machine", lambda provenance: provenance.machine),
    ("QEMU", lambda provenance: provenance.qemu),
    ("CPU model", lambda provenance: provenance.cpu_model),
    ("QEMU arguments", lambda provenance: " ".join(provenance.machine_arguments)),
    ("Kernel command line", lambda provenance: provenance.command_line),
    ("Guest agent", lambda provenance: provenance.agent_digest),
    ("Seed", lambda provenance: str(provenance.seed) if provenance.machine else ""),
    ("Snapshot", lambda provenance: provenance.snapshot),
)


def machine(record: StudyRecord) -> tuple[Fact, ...]:
    """The machine's properties; one that differs between trials comes once a value, with its treatments."""
    return tuple(fact for name, read in _PROPERTIES for fact in _facts(name, read, _in_order(record)))


def _in_order(record: StudyRecord) -> list[Trial]:
    """The trials by treatment: the order in which they ran is random."""
    places = {label: place for place, label in enumerate(treatment_labels(record))}
    return sorted(record.trials, key=lambda trial: places[trial.planned.treatment.label])


def _facts(name: str, read: Callable[[Provenance], str], trials: list[Trial]) -> list[Fact]:
    held: dict[str, tuple[str, ...]] = {}
    for trial in trials:
        value = read(trial.provenance)
        label = trial.planned.treatment.label
        if value and label not in held.setdefault(value, ()):
            held[value] = (*held[value], label)
    if len(held) == 1:
        return [Fact(name, value) for value in held]
    return [Fact(name, value, labels) for value, labels in held.items()]


class BuiltKernel(NamedTuple):
    """One kernel that ktrial built, or that it could not build."""

    name: str
    build: Build
    package: str
    """The source with its version; empty where no trial ran on the kernel."""
    compiler: str
    digest: str
    """Of the kernel's content."""
    treatments: tuple[str, ...]
    """Labels of those that boot it."""

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What it was made of, as names and values, without what there is not."""
        return tuple(fact for fact in _build_facts(self) if fact[1])


def built_kernels(record: StudyRecord) -> tuple[BuiltKernel, ...]:
    """Every kernel that the study builds, in the order of the treatments."""
    booted: dict[str, list[Treatment]] = {}
    builds: dict[str, Build] = {}
    for treatment in treatments(record.study):
        if build := build_of(record.study, treatment):
            builds[build.name] = build
            booted.setdefault(build.name, []).append(treatment)
    ran = {trial.provenance.kernel: trial.provenance for trial in record.trials if trial.samples}
    return tuple(
        BuiltKernel(
            name=name,
            build=build,
            package=ran[name].kernel_package if name in ran else "",
            compiler=ran[name].kernel_compiler if name in ran else "",
            digest=ran[name].kernel_digest if name in ran else "",
            treatments=tuple(treatment.label for treatment in booted[name]),
        )
        for name, build in builds.items()
    )


def builds_as_json(record: StudyRecord) -> list[dict[str, Any]]:
    """The same for other programs; docs/commands.md names every field."""
    return [
        {
            "name": kernel.name,
            "treatments": list(kernel.treatments),
            **kernel.build.model_dump(mode="json"),
            "package": kernel.package,
            "compiler": kernel.compiler,
            "digest": kernel.digest,
        }
        for kernel in built_kernels(record)
    ]


def _build_facts(kernel: BuiltKernel) -> Iterator[tuple[str, str]]:
    build = kernel.build
    config = f"{build.config} (content {build.config_digest[:12]})" if build.config_digest else build.config
    yield "Source", build.source
    yield "Source's version", kernel.package
    yield "Configuration", config
    yield "Options set", " ".join(f"{name}={value}" for name, value in sorted(build.options.items()))
    for patch in build.patches:
        yield "Patch", f"{patch.path} (content {patch.digest[:12]})"
    yield "Fuzz allowed", str(build.fuzz or "")
    yield "Make", " ".join(f"{name}={value}" for name, value in sorted(build.make.items()))
    yield "Compiler", kernel.compiler


# The commands that repeat a study.


class Recipe(NamedTuple):
    """How to repeat a study."""

    file: str
    """The name under which the study file is to be saved."""
    commands: tuple[str, ...]
    local: tuple[str, ...]
    """Kernels, and what they were built from, that were files of the machine at hand: no command brings
    them."""


def recipe(record: StudyRecord) -> Recipe:
    """The commands, in order, for a shell."""
    file = f"{record.study.name}.toml"
    names = _kernel_names(record)
    local = (*(name for name in names if name.startswith("path:") or name == "host"), *_files(record))
    versions = dict.fromkeys(trial.provenance.ktrial for trial in record.trials if trial.provenance.ktrial)
    return Recipe(
        file,
        (
            *(f"ktrial --version  # ktrial {one_line(version)}" for version in versions),
            *(f"ktrial kernel add {_quoted(name)}" for name in names),
            f"ktrial run {_quoted(file)}",
            f"ktrial report {_quoted(record.study.name)} --html {_quoted(record.study.name + '.html')}",
        ),
        local,
    )


def _kernel_names(record: StudyRecord) -> tuple[str, ...]:
    """As the study names them, without those that it builds; kernels that only the trials know come last."""
    levels = [
        str(level)
        for factor in record.study.factors
        if factor.kind is FactorKind.KERNEL
        for level in factor.levels
    ]
    fixed = [record.study.machine.kernel] if record.study.machine.kernel else []
    named = dict.fromkeys((*levels, *fixed)) or dict.fromkeys(kernel.name for kernel in kernels(record))
    return tuple(name for name in named if name not in record.study.builds)


def _files(record: StudyRecord) -> Iterator[str]:
    """What kernels were built from that no package holds."""
    builds = [kernel.build for kernel in built_kernels(record)]
    sources = (build.source for build in builds if not build.source.startswith("debian:"))
    configs = (build.config_file for build in builds if build.config_digest)
    patches = (patch.path for build in builds for patch in build.patches)
    yield from dict.fromkeys((*sources, *configs, *patches))


def _quoted(text: str) -> str:
    return shlex.quote(one_line(text))
