"""One kernel after the other, forward through a series: so each compiles only what its patch touches.

A patch with which nothing builds or boots must not hide the ones behind it. The next patch is tried on top of
it, for it may be what was missing; where that fails as well, it is tried without it, and so are all that
follow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.experiment.resources import Builder
from ktrial.fault_points import fault_point
from ktrial.kernels import Progress
from ktrial.kernels.build.build_trees import not_for_x86
from ktrial.kernels.errors import BadPatch, KernelError, OptionNotTaken, PatchNotApplied
from ktrial.kernels.image_difference import code_difference, same_image
from ktrial.kernels.patch_series import undoing
from ktrial.model.kernel import Build, Kernel, PatchSeries, SeriesKind, SeriesPatch
from ktrial.model.series_result import Step, StepState
from ktrial.series.selection import option_steps
from ktrial.text_lines import lines_of

Boots = Callable[[Kernel], str]
"""Whether a kernel boots: why not, in one sentence; empty where it does."""
Told = Callable[[str], None]
_NOTHING_COMPILED = "nothing of it is compiled in this configuration"


@dataclass(frozen=True)
class Failure:
    """Why there is no kernel."""

    state: StepState
    why: str


@dataclass
class Forward:
    """Goes through a series once."""

    series: PatchSeries
    plain: Build
    """Of the base, without the series."""
    builder: Builder
    boots: Boots
    progress: Progress
    tell: Told
    boots_when_measured: Boots | None = None
    """The same of a kernel that will be measured, as the base is not where no patch changes anything."""
    _out: set[int] = field(default_factory=set)
    """Patches that are left out from here on."""
    _pending: set[int] = field(default_factory=set)
    """Patches with which nothing worked yet, and that the next one may mend."""
    _newest: Kernel | None = None
    """What was built last, also where that has the same image as before: what a patch brings is told once."""
    _alike: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Digests of two kernels → whether they have the same image."""

    def steps(self) -> list[Step]:
        """The base and every patch. Raises KernelError where the base cannot be had, and host problems."""
        self.tell("base: building")
        steps = self._base()
        fault_point("series.base_built")
        for patch in self.series.patches[len(steps) - 1 :]:
            step = self._step(patch, steps)
            fault_point("series.step_built")
            if step.state in {StepState.BUILT, StepState.SAME_IMAGE}:
                self._mended(steps, patch.number)
            steps.append(step)
            _give_notes(steps)
            self.tell(_told(step, len(self.series.patches)))
        return [replace(step, left_out=step.number in self._out) for step in steps]

    def _base(self) -> list[Step]:
        """The base; with the patches before it, where it is not the source itself. Raises as `steps`."""
        try:
            kernel, build, early = self.builder.build(self.plain, self.progress), self.plain, 0
            note = ""
        except OptionNotTaken as refused:
            early = self._first_configurable(refused)
            option = refused.setting.removeprefix("CONFIG_")
            note = f"{option} can be set from patch {early} on, whose kernel is the base"
            build = self._wanted(early)
            kernel = self.builder.build(build, self.progress)
            self.tell(note)
        if why := self.boots(kernel):
            raise KernelError(name="of the base", problem=why)
        self._newest = kernel
        before = [Step(patch, StepState.NOT_CONFIGURED, why=note) for patch in self.series.patches[:early]]
        seconds = self.builder.cpu_seconds(build)
        return [Step(None, StepState.BUILT, kernel, build, note, cpu_seconds=seconds), *before]

    def _first_configurable(self, refused: OptionNotTaken) -> int:
        """The number of the first patch with which the options can be set. Raises `refused`: with none."""
        for patch in self.series.patches:
            if any(Path(path).name.startswith("Kconfig") for path in patch.paths):
                try:
                    self.builder.configured(self._wanted(patch.number), self.progress)
                except OptionNotTaken:
                    continue
                return patch.number
        raise refused

    def _step(self, patch: SeriesPatch, steps: list[Step]) -> Step:
        last = next(step for step in reversed(steps) if step.kernel is not None)
        assert last.kernel is not None, "it was looked for"
        assert last.build is not None, "a step with a kernel has one"
        request = self._wanted(patch.number)
        try:
            if why := self._is_not_compiled(patch, last.build, request):
                return Step(patch, StepState.NOT_COMPILED, last.kernel, last.build, why)
        except (PatchNotApplied, BadPatch) as error:
            self._leave_out(patch.number)
            return Step(patch, StepState.NOT_APPLIED, why=reason(error))
        got = self._kernel(request, last.kernel)
        if isinstance(got, Failure) and self._pending and got.state is not StepState.NOT_APPLIED:
            got = self._without_pending(patch.number, last.kernel, got)
        if isinstance(got, Failure):
            if got.state is StepState.NOT_APPLIED:
                self._leave_out(patch.number)
            else:
                self._pending.add(patch.number)
            return Step(patch, got.state, why=got.why)
        return self._compared(patch, last, got, self._wanted(patch.number))

    def _is_not_compiled(self, patch: SeriesPatch, before: Build, request: Build) -> str:
        """Why nothing has to be built; empty where something has."""
        if self._pending:
            return ""
        if why := not_for_x86(patch.paths):
            self.builder.applies(request, self.progress)
            return why
        if self.builder.cached(request) is None and self.builder.compiles_the_same(
            before, request, self.progress
        ):
            return _NOTHING_COMPILED
        return ""

    def _kernel(self, request: Build, last: Kernel) -> Kernel | Failure:
        """What was asked for; that it boots is known where it has the image of the last one that does."""
        try:
            kernel = self.builder.build(request, self.progress)
        except HOST_PROBLEMS:
            raise
        except (PatchNotApplied, BadPatch) as error:
            return Failure(StepState.NOT_APPLIED, reason(error))
        except KernelError as error:
            return Failure(StepState.NOT_BUILT, reason(error))
        boots = self.boots_when_measured or self.boots
        why = "" if self._are_alike(last, kernel) else boots(kernel)
        return Failure(StepState.NOT_BOOTED, why) if why else kernel

    def _are_alike(self, last: Kernel, kernel: Kernel) -> bool:
        key = last.digest, kernel.digest
        if key not in self._alike:
            self._alike[key] = same_image(last, kernel)
        return self._alike[key]

    def _without_pending(self, number: int, last: Kernel, failed: Failure) -> Kernel | Failure:
        """The step without the patches before it that nothing worked with."""
        out, pending = set(self._out), set(self._pending)
        for step in pending:
            self._leave_out(step)
        self._pending.clear()
        got = self._kernel(self._wanted(number), last)
        if isinstance(got, Failure) and got.state is StepState.NOT_APPLIED:
            # It builds upon what is broken: the pair of them is.
            self._out, self._pending = out, pending
            return failed
        return got

    def _compared(self, patch: SeriesPatch, last: Step, kernel: Kernel, build: Build) -> Step:
        assert last.kernel is not None, "it was looked for"
        newest, seconds = self._newest or last.kernel, self.builder.cpu_seconds(build)
        options, notes = option_steps(newest, kernel), _inexact(newest, kernel)
        self._newest = kernel
        if self._are_alike(last.kernel, kernel):
            before = None if options or self._pending else last.build
            if before and self.builder.compiles_the_same(build, before, self.progress):
                # Nobody could say so earlier: the build tree of the step before was gone, or in use.
                return Step(
                    patch, StepState.NOT_COMPILED, last.kernel, build, _NOTHING_COMPILED, cpu_seconds=seconds
                )
            why = (
                "the configuration leaves it out"
                if any(option.brought for option in options)
                else "the same code"
            )
            step = Step(patch, StepState.SAME_IMAGE, last.kernel, build, why, cpu_seconds=seconds)
            return replace(step, options=options, notes=notes)
        code = code_difference(last.kernel, kernel)
        return Step(
            patch,
            StepState.BUILT,
            kernel,
            build,
            options=options,
            functions=code.functions if code else (),
            copies=code.copies if code else {},
            data=code.data if code else (),
            readers=code.readers if code else (),
            is_compared=code is not None,
            notes=notes,
            cpu_seconds=seconds,
        )

    def _mended(self, steps: list[Step], by: int) -> None:
        """Patches that wait are mended: the kernel with them works."""
        for place, step in enumerate(steps):
            if step.number in self._pending:
                steps[place] = replace(step, mended_by=by)
        self._pending.clear()

    def _wanted(self, number: int) -> Build:
        return self.series.source(self.plain, number, frozenset(self._out))

    def _leave_out(self, number: int) -> None:
        self._out.add(number)
        if self.series.kind is not SeriesKind.GIT:
            return
        directory = Path(self.series.base.removeprefix("git:").rpartition("@")[0])
        self.series = self.series.model_copy(
            update={
                "patches": tuple(
                    patch.model_copy(update={"undo": undoing(directory, patch)})
                    if patch.number == number
                    else patch
                    for patch in self.series.patches
                )
            }
        )


def _give_notes(steps: list[Step]) -> None:
    """Put each note of the newest kernel at the step whose patch it is about: a patch of which nothing is
    compiled has no kernel, and what is to be said of it comes with the next one.
    """
    newest = steps.pop()
    owners = {name: place for place, step in enumerate(steps) for name in _file_names(step)}
    kept = []
    for note in newest.notes:
        name = note.partition(": ")[0]
        if name in owners and name not in _file_names(newest):
            owner = steps[owners[name]]
            steps[owners[name]] = replace(owner, notes=(*owner.notes, note))
        else:
            kept.append(note)
    steps.append(replace(newest, notes=tuple(kept)))


def _file_names(step: Step) -> set[str]:
    """The patch files of a step, as notes name them."""
    if step.patch is None:
        return set()
    files = (*step.patch.files, *([step.patch.patch] if step.patch.patch else []))
    return {Path(file.path).name for file in files}


def _inexact(before: Kernel, after: Kernel) -> tuple[str, ...]:
    earlier = set(before.origin.inexact_patches)
    return tuple(
        inexact_patch for inexact_patch in after.origin.inexact_patches if inexact_patch not in earlier
    )


def reason(error: KernelError) -> str:
    """What is wrong, without what it is wrong with: that stands before it."""
    text = error.problem or error.message
    # What would make it apply is no part of the problem's text.
    return f"{text}; {error.advice}" if isinstance(error, PatchNotApplied) and error.advice else text


def _told(step: Step, of: int) -> str:
    why, *_ = lines_of(step.why) or [""]
    state = step.state.value + (f": {why}" if why else "")
    return f"{step.number}/{of} {step.patch.subject if step.patch else ''}: {state}"


def to_build(series: PatchSeries, plain: Build, builder: Builder) -> Iterator[SeriesPatch]:
    """The patches whose kernels may have to be compiled: those that are not there, and that x86 may read."""
    for patch in series.patches:
        if not not_for_x86(patch.paths) and builder.cached(series.source(plain, patch.number)) is None:
            yield patch
