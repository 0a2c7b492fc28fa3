"""The kernels that a study needs: fetched or built, each once, the baseline's first."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from ktrial.errors import KtrialError
from ktrial.experiment.errors import FactorLost
from ktrial.experiment.host_failures import HOST_PROBLEMS
from ktrial.experiment.kernel_builds import Builder, Had, Listener, built_here, misconfigured
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources
from ktrial.kernels import Progress
from ktrial.kernels.errors import KernelError
from ktrial.model.design import Plan, PlannedTrial, Treatment
from ktrial.model.kernel import Build, Kernel
from ktrial.model.references import KernelRef
from ktrial.model.study import Study, kernel_of


@dataclass
class StudyKernels:
    """What is known of the kernels of a study, by their labels."""

    study: Study
    plan: Plan
    sources: Resources
    observer: Observer
    built: Callable[[Mapping[str, Build], Builder, Listener], Generator[Had]] = built_here
    """What has kernels built."""
    known: dict[str, Kernel | KernelError] = field(default_factory=dict)
    """Each that was asked for, or why it cannot be had."""
    one_sided: bool = False
    """Trials of one kernel are wanted where no other can be had, too, as long as none has to be compiled."""

    def obtain(self, missing: Sequence[PlannedTrial], *, begun: bool) -> Mapping[str, Kernel | KernelError]:
        """Every kernel that is needed, by its label, or why it cannot be had. `begun`: trials are stored.

        Raises where none can, and where a build fails without which nothing is compared; not where the study
        has begun, which can still say something.
        """
        kernels = self.known
        wanted = {one.label: one for one in (kernel_of(self.study, each) for each in treatments_of(missing))}
        baseline = kernel_of(self.study, self.plan.baseline).label
        # The baseline's first: if it fails, the others need not be built.
        names = sorted((name for name in wanted if name not in kernels), key=lambda name: name != baseline)
        builds = {name: build for name in names if (build := wanted[name].build)}
        for name, error in misconfigured(builds, self.sources.builder, self._teller).items():
            self._not_had(name, error)
        self._raise_hopeless(wanted, begun=begun)
        compiled = {name: build for name, build in builds.items() if name not in kernels}
        fetched = self._fetched([wanted[name] for name in names if name not in builds])
        built = self.built(compiled, self.sources.builder, self._listener)
        for way in (built, fetched) if baseline in compiled else (fetched, built):
            with closing(way):
                for name, had in way:
                    if isinstance(had, Kernel):
                        kernels[name] = had
                        continue
                    self._not_had(name, had)
                    self._raise_hopeless(wanted, begun=begun)
        errors = [one for one in kernels.values() if isinstance(one, KernelError)]
        if errors and len(errors) == len(kernels) and not begun:
            raise errors[0]
        return kernels

    def _fetched(self, wanted: Iterable[KernelRef]) -> Generator[Had]:
        for kernel in wanted:
            try:
                yield kernel.label, self.sources.obtain(kernel, self._teller(kernel.label))
            except KernelError as error:
                yield kernel.label, error

    @property
    def _listener(self) -> Listener:
        return Listener(self._teller, self.observer.notice)

    def _teller(self, name: str) -> Progress:
        def progress(what: str, done: int = 0, total: int = 0) -> None:
            self.observer.kernel_progress(name, what, done, total)

        return progress

    def _not_had(self, name: str, error: KernelError) -> None:
        raise_host_problem(error)
        self.known[name] = error
        self.observer.kernel_failed(name, error)

    def _raise_hopeless(self, wanted: Mapping[str, KernelRef], *, begun: bool) -> None:
        """Compiling takes minutes: not for a study that cannot tell any more what it is there to tell.

        Nor is anything booted for it: where only the baseline is left, or only others, nothing is compared.
        """
        vital = [name for name, one in wanted.items() if one.build or not self.one_sided]
        errors = {name: one for name in vital if isinstance(one := self.known.get(name), KernelError)}
        if not errors or begun:
            return
        baseline, *others = (kernel_of(self.study, one).label for one in self.plan.treatments)
        if baseline in errors:
            raise errors[baseline]
        if errors.keys() >= set(others):
            raise next(iter(errors.values()))
        if not self.known.keys() >= {name for name, one in wanted.items() if one.build}:
            self._raise_lost_factor(errors)

    def _raise_lost_factor(self, errors: Mapping[str, KernelError]) -> None:
        """Raise FactorLost where every treatment is lost that has another level of it than the baseline."""
        for factor in self.study.factors:
            changed = [
                kernel_of(self.study, one).label
                for one in self.plan.treatments
                if one.levels[factor.name] != self.plan.baseline.levels[factor.name]
            ]
            if changed and errors.keys() >= set(changed):
                first = errors[changed[0]]
                advice = f"{first.advice}; or " if first.advice else ""
                raise FactorLost(
                    name=changed[0], factor=factor.name, problem=first.message, advice=advice
                ) from first


def treatments_of(trials: Iterable[PlannedTrial]) -> list[Treatment]:
    """The treatments of the trials, each once."""
    return list({planned.treatment.key: planned.treatment for planned in trials}.values())


def raise_host_problem(error: KtrialError) -> None:
    """Raise it where it says something about this host, not about a treatment."""
    if isinstance(error, HOST_PROBLEMS):
        raise error
