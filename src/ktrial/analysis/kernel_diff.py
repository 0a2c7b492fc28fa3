"""What differs between two kernels, from what is known about them here: nothing is booted or built."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ktrial.kernels import Progress, silent
from ktrial.kernels.build.patches import paths_in, text_of
from ktrial.kernels.errors import KernelError
from ktrial.kernels.kernel_difference import (
    Rules,
    changed_modules,
    changed_options,
    known_of,
    modules_known,
    paired,
    rules_of_kernel,
    rules_of_source,
    side_of,
)
from ktrial.kernels.kernel_registry import obtain
from ktrial.model.kernel import (
    Kernel,
    KernelDifference,
    KernelSide,
    ModuleChange,
    OptionCause,
    OptionChange,
    Patch,
    PatchDifference,
    RenamedOption,
    Respect,
)


@dataclass
class _Notes:
    unknown: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        if text not in self.unknown:
            self.unknown.append(text)


def difference_between(
    a: str, b: str, *, sources: Sequence[str] = (), progress: Progress = silent
) -> KernelDifference:
    """What differs from the kernel named `a` to the one named `b`, fetched where they are not in the cache.

    Raises what `difference_of` raises, and KernelError and its kind.
    """
    before, after = (obtain(name, progress) for name in (a, b))
    return difference_of(before, after, sources=sources, progress=progress)


def difference_of(
    a: Kernel, b: Kernel, *, sources: Sequence[str] = (), progress: Progress = silent
) -> KernelDifference:
    """What differs from kernel `a` to kernel `b`.

    `sources`: whose Kconfig tells which options follow from others, instead of what the kernels were built
    from: one for both, or one for each; a directory, or `debian:linux-source-6.1`, which is fetched. Raises
    what obtaining one of them raises (NotASource, NoSuchSource, SourceUnusable, FetchFailed); where a
    kernel's own source cannot be had, the difference says why nothing is folded.
    """
    notes = _Notes()
    before, after = side_of(a), side_of(b)
    options, renamed, folded = _options(a, b, sources, notes, progress)
    patches, reordered = _patches(before, after, notes)
    return KernelDifference(
        before=before,
        after=after,
        respects=tuple(_respects(before, after, options)),
        options=options,
        renamed=renamed,
        patches=patches,
        reordered_patches=reordered,
        modules=_modules(a, b, notes),
        folded=folded,
        unknown=tuple(notes.unknown),
    )


def _options(
    a: Kernel, b: Kernel, sources: Sequence[str], notes: _Notes, progress: Progress
) -> tuple[tuple[OptionChange, ...], tuple[RenamedOption, ...], bool]:
    """The options that are not the same, those that were renamed, and whether Kconfig was asked why."""
    missing = [kernel.name for kernel in (a, b) if known_of(kernel, None) is None]
    for name in missing:
        notes.add(f"options: the configuration of {name} is not known")
    same = a.config_digest and a.config_digest == b.config_digest
    if missing or same:
        return (), (), False
    rules = _rules(a, b, sources, notes, progress)
    known = [known_of(kernel, one) for kernel, one in zip((a, b), rules, strict=True)]
    assert known[0] is not None, "their configurations are there"
    assert known[1] is not None
    alike = _source_respect(side_of(a), side_of(b)) is None
    pair = paired(known[0], known[1])
    changes = changed_options(pair.before, pair.after, same_source=alike)
    return _with_old_names(changes, pair.renamed), pair.renamed, None not in rules


def _with_old_names(
    changes: Iterable[OptionChange], renamed: Iterable[RenamedOption]
) -> tuple[OptionChange, ...]:
    """Of an option that was renamed, the sources tell two names: somebody has decided on its value."""
    older = {one.newer: one.before if one.forward else one.after for one in renamed}
    return tuple(
        one.model_copy(update={"renamed_from": older[one.option], "cause": OptionCause.OWN, "follows": ""})
        if one.option in older
        else one
        for one in changes
    )


def _rules(
    a: Kernel, b: Kernel, sources: Sequence[str], notes: _Notes, progress: Progress
) -> tuple[Rules | None, Rules | None]:
    """Of both kernels, or of neither: where only one source is known, nothing is folded."""
    if sources:
        return rules_of_source(sources[0], progress), rules_of_source(sources[-1], progress)
    rules: list[Rules | None] = []
    for kernel in (a, b):
        try:
            rules.append(rules_of_kernel(kernel, progress))
        except KernelError as error:
            notes.add(f"which options follow from others: {error.message}")
            rules.append(None)
    unknown = [kernel.name for kernel, one in zip((a, b), rules, strict=True) if one is None]
    if unknown:
        notes.add(
            f"which options follow from others: the source of {' and '.join(unknown)} is not at hand "
            "(--source names one)"
        )
        return None, None
    return rules[0], rules[1]


def _patches(
    before: KernelSide, after: KernelSide, notes: _Notes
) -> tuple[tuple[PatchDifference, ...], bool]:
    others = [side.name for side in (before, after) if not side.built]
    if others:
        if before.digest != after.digest:
            notes.add(f"patches and compiler flags: ktrial did not build {' and '.join(others)}")
        return (), False
    old, new = ([patch.digest for patch in side.patches] for side in (before, after))
    patches = (
        *(_patch(one, in_first=True) for one in before.patches if one.digest not in new),
        *(_patch(one, in_first=False) for one in after.patches if one.digest not in old),
    )
    return patches, not patches and old != new


def _patch(patch: Patch, *, in_first: bool) -> PatchDifference:
    try:
        files = tuple(sorted(paths_in(patch.path, text_of(patch))))
    except KernelError:
        files = ()  # it was moved or changed since
    return PatchDifference(patch=patch, in_first=in_first, files=files)


def _modules(a: Kernel, b: Kernel, notes: _Notes) -> tuple[ModuleChange, ...]:
    missing = [kernel.name for kernel in (a, b) if not modules_known(kernel)]
    if len(missing) == 1:
        notes.add(f"modules: those of {missing[0]} are not known")
    return () if missing else changed_modules(a, b)


def _respects(before: KernelSide, after: KernelSide, options: Iterable[OptionChange]) -> Iterable[Respect]:
    if source := _source_respect(before, after):
        yield source
    if [one.digest for one in before.patches] != [one.digest for one in after.patches]:
        yield Respect.PATCHES
    if any(one.cause is OptionCause.OWN and not one.of_command_line for one in options):
        yield Respect.OPTIONS
    if before.compiler and after.compiler and before.compiler != after.compiler:
        yield Respect.COMPILER
    if before.flags != after.flags:
        yield Respect.FLAGS
    if before.command_line != after.command_line:
        yield Respect.COMMAND_LINE


def _source_respect(before: KernelSide, after: KernelSide) -> Respect | None:
    """Whether the sources are not the same, before any patch: another version, or only another commit."""
    if before.digest and before.digest == after.digest:
        return None
    if before.package and after.package:
        return Respect.VERSION if before.package != after.package else None
    if before.version != after.version:
        return Respect.VERSION
    return Respect.SOURCE if before.built and after.built and before.source != after.source else None
