"""What the trials ran on: everything in their provenance, each distinct value once."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ktrial.model.design import Treatment
from ktrial.model.kernel import Build
from ktrial.model.study import StudyRecord, build_of, treatments
from ktrial.model.trial import Provenance, Trial
from ktrial.report.text.study_summary import treatment_labels


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
                one.kernel, one.kernel_release, one.kernel_package, one.kernel_digest, one.config_digest
            )
            for one in met
        )
    )


_PROPERTIES: tuple[tuple[str, Callable[[Provenance], str]], ...] = (
    ("ktrial", lambda one: one.ktrial),
    ("Machine", lambda one: one.machine),
    ("QEMU", lambda one: one.qemu),
    ("CPU model", lambda one: one.cpu_model),
    ("QEMU arguments", lambda one: " ".join(one.machine_arguments)),
    ("Kernel command line", lambda one: one.command_line),
    ("Guest agent", lambda one: one.agent_digest),
    ("Seed", lambda one: str(one.seed) if one.machine else ""),
    ("Snapshot", lambda one: one.snapshot),
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
            "name": one.name,
            "treatments": list(one.treatments),
            **one.build.model_dump(mode="json"),
            "package": one.package,
            "compiler": one.compiler,
            "digest": one.digest,
        }
        for one in built_kernels(record)
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
