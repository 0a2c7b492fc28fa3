"""What each kernel of a study was built from."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ktrial.model.design import Treatment
from ktrial.model.kernel_build import Build
from ktrial.model.plan import treatments
from ktrial.model.study_record import StudyRecord
from ktrial.model.treatment_kernel import build_of


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
        return tuple(fact for fact in _facts(self) if fact[1])


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


def as_json(record: StudyRecord) -> list[dict[str, Any]]:
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


def _facts(kernel: BuiltKernel) -> Iterator[tuple[str, str]]:
    build = kernel.build
    config = f"{build.config} (content {build.config_digest[:12]})" if build.config_digest else build.config
    yield "Source", build.source
    yield "Source's version", kernel.package
    yield "Configuration", config
    yield "Options set", " ".join(f"{name}={value}" for name, value in sorted(build.options.items()))
    for patch in build.patches:
        yield "Patch", f"{patch.path} (content {patch.digest[:12]})"
    yield "Make", " ".join(f"{name}={value}" for name, value in sorted(build.make.items()))
    yield "Compiler", kernel.compiler
