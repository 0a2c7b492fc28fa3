"""Does the kernels' difference go beyond what a study's factors declare? What does is a confound, and named.

- A factor of kind `kconfig` declares its options, and what follows from them by Kconfig; `patch` its patches
  and the options that they bring; `compiler-flags` the flags; `source` the source, and with it what cannot
  stay the same between sources.
- A factor of kind `kernel` declares the one respect in which its kernels differ. Where builds of the study's
  differ in several, the effect cannot be told to be any one of them's.
- Kernels of different versions that the study does not build differ in options and compiler by necessity:
  what is measured is the whole step, which is said in words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ktrial.model.design import Factor, FactorKind, Treatment, told_apart
from ktrial.model.kernel_build import Build
from ktrial.model.kernel_diff import Cause, KernelDifference, OptionChange, Respect
from ktrial.model.study import Study
from ktrial.model.warnings import DataWarning, WarningKind

_OF_SOURCES = frozenset({Respect.VERSION, Respect.SOURCE})
_MOST_NAMED = 5
_WORDS = {
    Respect.FLAGS: "compiler flags",
    Respect.SOURCE: "source",
    Respect.COMMAND_LINE: "built-in command line",
}
_ONE_AT_A_TIME = (
    "what is measured may be any of them: make each a factor of its own (kinds source, patch, kconfig, "
    "compiler-flags), so that one thing differs at a time"
)
_MAKE_SAME = "what is measured may be this, and not the factor: make it the same for both, or a factor"
_COMPILERS = frozenset({"CC", "LLVM", "LD", "PAHOLE"})
"""Variables of make that choose the tools."""


@dataclass(frozen=True)
class Step:
    """From the baseline's kernel to a treatment's."""

    baseline: Treatment
    treatment: Treatment
    before: Build | None
    """How the study builds the two; None where it does not."""
    after: Build | None
    difference: KernelDifference


@dataclass(frozen=True)
class Judged:
    """What is to be said about a step."""

    confound: str = ""
    """What goes beyond the declared, in one sentence; empty where nothing does."""
    advice: str = ""
    note: str = ""


def judged(study: Study, step: Step) -> Judged:
    """Compare what differs with what the factors declare that differ between the two treatments."""
    changed = [
        factor
        for factor in study.factors
        if step.baseline.levels[factor.name] != step.treatment.levels[factor.name]
    ]
    if step.difference.same_content or step.difference.nothing:
        return Judged()
    if step.before is None or step.after is None:
        return _of_others(step.difference)
    return _of_builds(study, step, changed)


def warnings_of(step: Step, found: Judged) -> Iterator[DataWarning]:
    """The judgement as warnings. A note is about two kernels, whatever else the treatments differ in."""
    name = told_apart(step.treatment.label, step.baseline.label)
    if found.confound:
        text = f"{name}: {found.confound}"
        yield DataWarning(kind=WarningKind.CONFOUND, text=text, advice=found.advice)
    if found.note:
        advice = (
            f"what exactly: ktrial kernel diff {step.difference.before.name} {step.difference.after.name}"
        )
        yield DataWarning(kind=WarningKind.WHOLE_STEP, text=found.note, advice=advice)


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _of_others(found: KernelDifference) -> Judged:
    """Kernels that the study does not build."""
    words = [_in_words(one, found) for one in found.respects]
    if len(words) < 2:
        return Judged()
    text = f"these kernels differ in {listed(words)} at once: {_whole(found)}"
    if _OF_SOURCES & set(found.respects):
        return Judged(note=text)
    return Judged(confound=text, advice=_ONE_AT_A_TIME)


def _whole(found: KernelDifference) -> str:
    before, after = found.before.name, found.after.name
    return f"what is measured is the whole step from {before} to {after}, not one of them"


def _of_builds(study: Study, step: Step, changed: Sequence[Factor]) -> Judged:
    """Kernels that the study builds."""
    declared = _Declared.by(study, step, changed)
    beyond = list(declared.beyond(step.difference))
    if len(declared.of_kernels) > 1:
        words = [_in_words(one, step.difference) for one in declared.of_kernels] + beyond
        text = f"the kernels differ in {listed(words)} at once, and no factor tells them apart"
        return Judged(confound=text, advice=_ONE_AT_A_TIME)
    if beyond:
        text = f"the kernels also differ in {listed(beyond)}, which no factor declares"
        return Judged(confound=text, advice=_MAKE_SAME)
    words = [_in_words(one, step.difference) for one in step.difference.respects]
    if declared.respects & _OF_SOURCES and len(words) > 1:
        text = f"these kernels differ in {listed(words)} at once, as different sources do: "
        return Judged(note=text + _whole(step.difference))
    return Judged()


@dataclass(frozen=True)
class _Declared:
    respects: frozenset[Respect]
    options: frozenset[str]
    """Options that factors set one by one."""
    of_kernels: tuple[Respect, ...]
    """In what the levels of a factor of kind `kernel` differ."""
    tools: bool
    """Whether the compiler is chosen by a factor."""

    @classmethod
    def by(cls, study: Study, step: Step, changed: Sequence[Factor]) -> "_Declared":
        respects: set[Respect] = set()
        options: set[str] = set()
        variables: set[str] = set()
        of_kernels: tuple[Respect, ...] = ()
        for factor in changed:
            levels = [str(one.levels[factor.name]) for one in (step.baseline, step.treatment)]
            if factor.kind is FactorKind.KERNEL:
                old, new = (study.builds[level] for level in levels)
                of_kernels = tuple(respects_of(old, new))
                variables |= _differing(old.make, new.make)
            for level in levels:
                if change := factor.changes.get(level):
                    options |= change.options.keys()
                    variables |= change.make.keys()
            respects |= _RESPECTS.get(factor.kind, frozenset())
        own = frozenset(respects) | frozenset(of_kernels)
        return cls(own, frozenset(options), of_kernels, bool(variables & _COMPILERS))

    def beyond(self, found: KernelDifference) -> Iterator[str]:
        """Each respect that nobody declares, in words."""
        sources = bool(self.respects & _OF_SOURCES)
        for respect in found.respects:
            if respect is Respect.OPTIONS:
                options = () if sources or respect in self.respects else self._undeclared(found)
                if options:
                    yield f"{_counted(len(options), 'option')} ({_names(options)})"
            elif respect is Respect.COMMAND_LINE:
                own = {one.option for one in found.options if one.of_command_line}
                if not (sources or Respect.OPTIONS in self.respects or own & self.options):
                    yield _in_words(respect, found)
            elif respect is Respect.COMPILER:
                if not self.tools:
                    yield f"compiler ({found.before.compiler} and {found.after.compiler})"
            elif respect not in self.respects and not (sources and respect in _OF_SOURCES):
                yield _in_words(respect, found)

    def _undeclared(self, found: KernelDifference) -> tuple[OptionChange, ...]:
        """Options that are neither a factor's nor follow from one. A choice is declared by any of its own."""
        declared = [one for one in found.options if one.option in self.options]
        roots = {one.option for one in declared} | {
            one.follows for one in declared if one.cause is Cause.OPTION and one.choice
        }
        return tuple(one for one in found.decided if one.option not in roots)


_RESPECTS = {
    FactorKind.PATCH: frozenset({Respect.PATCHES}),
    FactorKind.SOURCE: _OF_SOURCES,
    FactorKind.COMPILER_FLAGS: frozenset({Respect.FLAGS}),
}


def respects_of(before: Build, after: Build) -> Iterator[Respect]:
    """In what two builds are asked for differently."""
    if before.source != after.source:
        yield Respect.VERSION
    if [one.digest for one in before.patches] != [one.digest for one in after.patches]:
        yield Respect.PATCHES
    asked = [(one.config_digest or one.config, one.options) for one in (before, after)]
    if asked[0] != asked[1]:
        yield Respect.OPTIONS
    if before.make != after.make:
        yield Respect.FLAGS


def _differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def _in_words(respect: Respect, found: KernelDifference) -> str:
    if respect is Respect.OPTIONS:
        return _counted(len(found.decided), "option") if found.decided else "configuration"
    if respect is Respect.PATCHES and found.patches:
        count = len(found.patches)
        return f"{count} {'patch' if count == 1 else 'patches'}"
    return _WORDS.get(respect, respect.value)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _names(options: Sequence[OptionChange]) -> str:
    names = [one.option.removeprefix("CONFIG_") for one in options]
    left = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
