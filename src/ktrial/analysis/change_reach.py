"""Whether what a factor changes in a kernel was there to be measured: in the image, and in what ran.

A verdict about a patch rests on it. A patch whose option is off changes no code, or code that nothing runs;
`equivalent` is then true, and says nothing about the patch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ktrial.analysis.confounding import KernelStep, listed
from ktrial.kernels.image.code_difference import called, code_difference
from ktrial.kernels.image.same_image import same_image
from ktrial.model.design import FactorKind
from ktrial.model.kernel import Kernel, options_shown
from ktrial.model.kernel_diff import CodeDifference, KernelDifference, Reach, Respect
from ktrial.model.levels import told_apart
from ktrial.model.profile import Profile
from ktrial.model.study import Study
from ktrial.model.warnings import DataWarning, WarningKind

_MOST_NAMED = 5
_OTHER_SOURCE = frozenset({Respect.VERSION, Respect.SOURCE})
_CHANGES = {
    FactorKind.PATCH: "the patch",
    FactorKind.KCONFIG: "the option",
    FactorKind.COMPILER_FLAGS: "the compiler flags",
}
_SWITCHED_OFF = (
    "the verdicts say nothing about it: switch on what it brings (options in [kernels.NAME]), or take "
    "workloads that run it"
)
_ONLY_MOVED = (
    "the verdicts tell of placement alone: if more was to change, switch on what it brings (options in "
    "[kernels.NAME])"
)


def with_reach(
    difference: KernelDifference,
    before: Kernel,
    after: Kernel,
    profiles: Mapping[str, tuple[Sequence[Profile], Sequence[Profile]]],
) -> KernelDifference:
    """The difference, with what only images and profiles tell.

    `profiles`: a workload's label → its profiles on the one kernel, and on the other.
    """
    known = {one.option for one in before.origin.new_options}
    told: dict[str, object] = {
        "new_options": tuple(one for one in after.origin.new_options if one.option not in known),
        "same_image": same_image(before, after),
    }
    built = before.origin.build and after.origin.build and not _OTHER_SOURCE & set(difference.respects)
    if built and not told["same_image"] and (code := code_difference(before, after)):
        told["reach"] = reach(code, profiles)
    return difference.model_copy(update=told)


def reach(code: CodeDifference, profiles: Mapping[str, tuple[Sequence[Profile], Sequence[Profile]]]) -> Reach:
    """In which workloads a function ran that differs, on one of the two kernels."""
    differing = frozenset(code.functions)
    ran = {
        label: any(_runs(profile, differing) for profile in (*of_one, *of_other))
        for label, (of_one, of_other) in profiles.items()
        if of_one and of_other
    }
    return Reach(
        functions=len(code.functions),
        data=len(code.data),
        named=(code.functions or code.data)[:_MOST_NAMED],
        ran=tuple(label for label, has_run in ran.items() if has_run),
        not_run=tuple(label for label, has_run in ran.items() if not has_run),
    )


def _runs(profile: Profile, functions: frozenset[str]) -> bool:
    return any(
        one.instructions and called(one.symbol, one.module) in functions for one in profile.region.functions
    )


def warnings_of(study: Study, steps: Iterable[KernelStep]) -> Iterator[DataWarning]:
    """What is to be said about each step from the baseline's kernel to a treatment's."""
    for step in steps:
        difference = step.difference
        what, name = _what(study, step), told_apart(step.treatment.label, step.baseline.label)
        options = f"; {options_shown(difference.new_options)}" if difference.new_options else ""
        if difference.same_image:
            yield DataWarning(
                kind=WarningKind.SAME_IMAGE,
                text=f"{name}: the same image as the baseline's: {what} changes nothing in it{options}",
                advice="there is nothing to compare: what it changes is not compiled in this configuration",
            )
        elif difference.reach:
            yield from _of_reach(difference.reach, name, what, options)


def _of_reach(reach: Reach, name: str, what: str, options: str) -> Iterator[DataWarning]:
    if not reach.functions and not reach.data:
        text = (
            f"{name}: {what} changes no function and no variable of the kernel, only where they lie{options}"
        )
        yield DataWarning(kind=WarningKind.CHANGE_NOT_RUN, text=text, advice=_ONLY_MOVED)
    elif not reach.functions:
        text = (
            f"{name}: {what} changes data only ({listed(reach.named)}): no profile tells whether that is read"
        )
        yield DataWarning(kind=WarningKind.CHANGE_PARTLY_RUN, text=text)
    elif reach.not_run:
        where = listed(reach.not_run[:_MOST_NAMED] + _rest(reach.not_run))
        text = f"{name}: no function that {what} changes ({reach.functions} of them) ran in {where}"
        kind = WarningKind.CHANGE_PARTLY_RUN if reach.ran else WarningKind.CHANGE_NOT_RUN
        advice = (
            "there the verdict is a control: it says nothing about the change" if reach.ran else _SWITCHED_OFF
        )
        yield DataWarning(kind=kind, text=f"{text}{'' if reach.ran else options}", advice=advice)


def _rest(labels: Sequence[str]) -> tuple[str, ...]:
    return (f"{len(labels) - _MOST_NAMED} more",) if len(labels) > _MOST_NAMED else ()


def _what(study: Study, step: KernelStep) -> str:
    kinds = {
        factor.kind
        for factor in study.factors
        if step.baseline.levels[factor.name] != step.treatment.levels[factor.name]
        and (factor.changes or factor.kind is FactorKind.KERNEL)
    }
    return _CHANGES.get(kinds.pop(), "the change") if len(kinds) == 1 else "the change"
