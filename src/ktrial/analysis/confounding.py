"""Which differences between kernels a study's factors account for. What they do not is a confound, and named.

- A factor of kind `kconfig` accounts for its options and what follows from them by Kconfig; `patch` for its
  patches and the options that they bring; `compiler-flags` for the flags; `source` for the source, and so
  for what cannot stay the same between sources.
- A factor of kind `kernel` accounts for the one respect in which its kernels differ. Where the builds of
  a study differ in several, the effect cannot be told to be any one of them's.
- Kernels of different versions that the study does not build differ in options and compiler by necessity:
  what is measured is the whole step, which is said in words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ktrial.model.design import Factor, FactorKind, Treatment
from ktrial.model.kernel import Build
from ktrial.model.kernel_diff import KernelDifference, OptionCause, OptionChange, Respect
from ktrial.model.levels import told_apart
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
class KernelStep:
    """From the baseline's kernel to a treatment's."""

    baseline: Treatment
    treatment: Treatment
    before: Build | None
    """How the study builds the two; None where it does not."""
    after: Build | None
    difference: KernelDifference


@dataclass(frozen=True)
class Confounding:
    """What is to be said about a step."""

    confound: str = ""
    """What no factor accounts for, in one sentence; empty where there is nothing."""
    advice: str = ""
    note: str = ""


def confounding_of(study: Study, step: KernelStep) -> Confounding:
    """Compare what differs with what the factors account for, of those that differ in level."""
    changed = [
        factor
        for factor in study.factors
        if step.baseline.levels[factor.name] != step.treatment.levels[factor.name]
    ]
    if step.difference.same_content or step.difference.nothing:
        return Confounding()
    if step.before is None or step.after is None:
        return _of_others(step.difference)
    return _of_builds(study, step, changed)


def warnings_of(step: KernelStep, confounding: Confounding) -> Iterator[DataWarning]:
    """The confounding as warnings. A note is about two kernels, whatever else the treatments differ in."""
    name = told_apart(step.treatment.label, step.baseline.label)
    if confounding.confound:
        text = f"{name}: {confounding.confound}"
        yield DataWarning(kind=WarningKind.CONFOUND, text=text, advice=confounding.advice)
    if confounding.note:
        advice = (
            f"what exactly: ktrial kernel diff {step.difference.before.name} {step.difference.after.name}"
        )
        yield DataWarning(kind=WarningKind.WHOLE_STEP, text=confounding.note, advice=advice)


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _of_others(difference: KernelDifference) -> Confounding:
    """Kernels that the study does not build."""
    words = [_in_words(one, difference) for one in difference.respects]
    if len(words) < 2:
        return Confounding()
    text = f"these kernels differ in {listed(words)} at once: {_whole(difference)}"
    if _OF_SOURCES & set(difference.respects):
        return Confounding(note=text)
    return Confounding(confound=text, advice=_ONE_AT_A_TIME)


def _whole(difference: KernelDifference) -> str:
    before, after = difference.before.name, difference.after.name
    return f"what is measured is the whole step from {before} to {after}, not one of them"


def _of_builds(study: Study, step: KernelStep, changed: Sequence[Factor]) -> Confounding:
    """Kernels that the study builds."""
    accounted = _AccountedFor.by(study, step, changed)
    beyond = list(accounted.beyond(step.difference))
    if len(accounted.of_kernels) > 1:
        words = [_in_words(one, step.difference) for one in accounted.of_kernels] + beyond
        text = f"the kernels differ in {listed(words)} at once, and no factor tells them apart"
        return Confounding(confound=text, advice=_ONE_AT_A_TIME)
    if beyond:
        text = f"the kernels also differ in {listed(beyond)}, which no factor declares"
        return Confounding(confound=text, advice=_MAKE_SAME)
    words = [_in_words(one, step.difference) for one in step.difference.respects]
    if accounted.respects & _OF_SOURCES and len(words) > 1:
        text = f"these kernels differ in {listed(words)} at once, as different sources do: "
        return Confounding(note=text + _whole(step.difference))
    return Confounding()


@dataclass(frozen=True)
class _AccountedFor:
    respects: frozenset[Respect]
    options: frozenset[str]
    """Options that factors set one by one."""
    of_kernels: tuple[Respect, ...]
    """In what the levels of a factor of kind `kernel` differ."""
    tools: bool
    """Whether the compiler is chosen by a factor."""

    @classmethod
    def by(cls, study: Study, step: KernelStep, changed: Sequence[Factor]) -> "_AccountedFor":
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

    def beyond(self, difference: KernelDifference) -> Iterator[str]:
        """Each respect that no factor accounts for, in words."""
        sources = bool(self.respects & _OF_SOURCES)
        for respect in difference.respects:
            if respect is Respect.OPTIONS:
                options = () if sources or respect in self.respects else self._unaccounted(difference)
                if options:
                    yield f"{_counted(len(options), 'option')} ({_names(options)})"
            elif respect is Respect.COMMAND_LINE:
                own = {one.option for one in difference.options if one.of_command_line}
                if not (sources or Respect.OPTIONS in self.respects or own & self.options):
                    yield _in_words(respect, difference)
            elif respect is Respect.COMPILER:
                if not self.tools:
                    yield f"compiler ({difference.before.compiler} and {difference.after.compiler})"
            elif respect not in self.respects and not (sources and respect in _OF_SOURCES):
                yield _in_words(respect, difference)

    def _unaccounted(self, difference: KernelDifference) -> tuple[OptionChange, ...]:
        """Options that are neither a factor's nor follow from one. Of a choice any of its own will do."""
        own = [one for one in difference.options if one.option in self.options]
        roots = {one.option for one in own} | {
            one.follows for one in own if one.cause is OptionCause.OPTION and one.choice
        }
        return tuple(one for one in difference.decided if one.option not in roots)


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


def _in_words(respect: Respect, difference: KernelDifference) -> str:
    if respect is Respect.OPTIONS:
        return _counted(len(difference.decided), "option") if difference.decided else "configuration"
    if respect is Respect.PATCHES and difference.patches:
        count = len(difference.patches)
        return f"{count} {'patch' if count == 1 else 'patches'}"
    return _WORDS.get(respect, respect.value)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _names(options: Sequence[OptionChange]) -> str:
    names = [one.option.removeprefix("CONFIG_") for one in options]
    left = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
