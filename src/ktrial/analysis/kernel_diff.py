"""What differs between two kernels, from what is known about them here: nothing is booted or built.

And what differs between a study's kernels: worked out once while they are at hand, kept with the study.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice

from ktrial.analysis.attribution.subsystems import subsystem
from ktrial.analysis.kernel_confounds import kernel_digests
from ktrial.kernels import Progress, kernel_registry, silent
from ktrial.kernels.build.patches import paths_in, text_of
from ktrial.kernels.errors import KernelError
from ktrial.kernels.image_difference import code_difference, same_image
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
from ktrial.kernels.symbols import function_files
from ktrial.model.kernel import (
    CodeDifference,
    Kernel,
    KernelDifference,
    KernelSide,
    ModuleChange,
    OptionCause,
    OptionChange,
    Patch,
    PatchDifference,
    Reach,
    RenamedOption,
    Respect,
)
from ktrial.model.profile import Profile, called
from ktrial.model.study import Study, kernel_name, treatments
from ktrial.model.trial import Trial
from ktrial.store.store import Store

_MOST_NAMED = 5
"""Functions that are named of those that differ."""
_LOCKS = "locks"
"""The subsystem of what takes them and gives them back."""


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
    sides = [
        known_of(kernel, rules_of_kernel_) for kernel, rules_of_kernel_ in zip((a, b), rules, strict=True)
    ]
    assert sides[0] is not None, "their configurations are there"
    assert sides[1] is not None
    alike = _source_respect(side_of(a), side_of(b)) is None
    pair = paired(sides[0], sides[1])
    changes = changed_options(pair.before, pair.after, same_source=alike)
    return _with_old_names(changes, pair.renamed), pair.renamed, None not in rules


def _with_old_names(
    changes: Iterable[OptionChange], renamed: Iterable[RenamedOption]
) -> tuple[OptionChange, ...]:
    """Of an option that was renamed, the sources tell two names: somebody has decided on its value."""
    older = {renaming.newer: renaming.before if renaming.forward else renaming.after for renaming in renamed}
    return tuple(
        change.model_copy(
            update={"renamed_from": older[change.option], "cause": OptionCause.OWN, "follows": ""}
        )
        if change.option in older
        else change
        for change in changes
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
    unknown = [kernel.name for kernel, rules_ in zip((a, b), rules, strict=True) if rules_ is None]
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
    not_built = [side.name for side in (before, after) if not side.built]
    if not_built:
        if before.digest != after.digest:
            notes.add(f"patches and compiler flags: ktrial did not build {' and '.join(not_built)}")
        return (), False
    old, new = ([patch.digest for patch in side.patches] for side in (before, after))
    patches = (
        *(_patch(patch, in_first=True) for patch in before.patches if patch.digest not in new),
        *(_patch(patch, in_first=False) for patch in after.patches if patch.digest not in old),
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
    if [patch.digest for patch in before.patches] != [patch.digest for patch in after.patches]:
        yield Respect.PATCHES
    if any(option.cause is OptionCause.OWN and not option.of_command_line for option in options):
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


def remember(store: Store, study_id: int, study: Study, at_hand: Mapping[str, Kernel | KernelError]) -> None:
    """Store what differs from the baseline's kernel to the others that trials ran on, where it is not stored.

    `at_hand`: kernels by name; others come from the cache, if they are there and still the same. Raises
    StoreError.
    """
    trials = store.trials(study_id)
    digests = kernel_digests(study, trials)
    differences = store.kernel_differences(study_id)
    stored = {(difference.before.digest, difference.after.digest) for difference in differences}
    baseline, *names = dict.fromkeys(kernel_name(study, treatment) for treatment in treatments(study))
    for name in names:
        pair = digests.get(baseline, ""), digests.get(name, "")
        if "" in pair or pair in stored:
            continue
        before, after = (_kernel(kernel, digests[kernel], at_hand) for kernel in (baseline, name))
        if before and after:
            # Another ktrial may take a kernel out of the cache meanwhile; the trials are stored all the same.
            with contextlib.suppress(FileNotFoundError):
                profiles = _profiles(store, study_id, study, trials, (baseline, name))
                difference = with_reach(difference_of(before, after), before, after, profiles)
                store.add_kernel_difference(study_id, difference)


def _kernel(name: str, digest: str, at_hand: Mapping[str, Kernel | KernelError]) -> Kernel | None:
    kernel = at_hand.get(name)
    if kernel is None:
        try:
            kernel = kernel_registry.get(name)
        except KernelError:
            return None
    return kernel if isinstance(kernel, Kernel) and kernel.digest == digest else None


def _profiles(
    store: Store, study_id: int, study: Study, trials: Sequence[Trial], kernel_names: tuple[str, str]
) -> dict[str, tuple[list[Profile], list[Profile]]]:
    """Workload's label → its profiles on the two kernels, one of each treatment."""

    def of(kernel: str, label: str) -> Iterator[Profile]:
        for treatment in treatments(study):
            of_treatment = (trial.planned for trial in trials if trial.planned.treatment.key == treatment.key)
            if kernel_name(study, treatment) == kernel:
                profiles = (store.profile(study_id, planned.key, label) for planned in of_treatment)
                yield from islice((profile for profile in profiles if profile), 1)

    before, after = kernel_names
    profiled = store.profiled(study_id)
    return {
        use.label: (list(of(before, use.label)), list(of(after, use.label)))
        if use.label in profiled
        else ([], [])
        for use in study.workloads
    }


def with_reach(
    difference: KernelDifference,
    before: Kernel,
    after: Kernel,
    profiles: Mapping[str, tuple[Sequence[Profile], Sequence[Profile]]],
) -> KernelDifference:
    """The difference, with what only images and profiles tell.

    `profiles`: a workload's label → its profiles on the one kernel, and on the other.
    """
    known_options = {new_option.option for new_option in before.origin.new_options}
    updates: dict[str, object] = {
        "new_options": tuple(
            new_option for new_option in after.origin.new_options if new_option.option not in known_options
        ),
        "same_image": same_image(before, after),
    }
    built = (
        before.origin.build
        and after.origin.build
        and not {Respect.VERSION, Respect.SOURCE}.intersection(difference.respects)
    )
    if built and not updates["same_image"] and (code := code_difference(before, after)):
        updates["reach"] = reach(code, profiles, _locking(before) | _locking(after))
    return difference.model_copy(update=updates)


def reach(
    code: CodeDifference,
    profiles: Mapping[str, tuple[Sequence[Profile], Sequence[Profile]]],
    locking: Set[str] = frozenset(),
) -> Reach:
    """In which workloads a function ran that differs, on one of the two kernels.

    `locking`: functions of the images that lock memory.
    """
    differing = frozenset(code.functions)
    ran = {
        label: differing & _run_in((*of_one, *of_other))
        for label, (of_one, of_other) in profiles.items()
        if of_one and of_other
    }
    locks = {label: _taking_locks(names, profiles[label], locking) for label, names in ran.items()}
    return Reach(
        functions=len(code.functions),
        data=len(code.data),
        named=(code.functions or code.data)[:_MOST_NAMED],
        ran=tuple(label for label, names in ran.items() if names),
        not_run=tuple(label for label, names in ran.items() if not names),
        locking={label: names for label, names in locks.items() if names},
    )


def _locking(kernel: Kernel) -> frozenset[str]:
    with contextlib.suppress(KernelError):
        return function_files(kernel).locking
    return frozenset()


def _run_in(profiles: Iterable[Profile]) -> set[str]:
    return {
        called(function.symbol, function.module)
        for profile in profiles
        for function in profile.region.functions
        if function.instructions
    }


def _taking_locks(
    changed: Set[str], sides: tuple[Sequence[Profile], Sequence[Profile]], locking: Set[str]
) -> tuple[str, ...]:
    """Those whose own code locks memory (atomic counts, references), that call what does (a spin lock's code
    is a function), or that call on one side only what takes a lock: then it is taken elsewhere, as while
    another one is held.
    """
    old, new = (_calls(side) for side in sides)
    calls = old | new
    locks = {name for name in locking if subsystem(name) == _LOCKS}
    takes = locking | {caller for caller, callee in calls if callee in locks}
    moved = {caller for caller, callee in old ^ new if callee in takes}
    return tuple(sorted(changed & (takes | moved)))


def _calls(profiles: Iterable[Profile]) -> set[tuple[str, str]]:
    """Who called whom: caller and callee, where calls were followed."""
    pairs = set()
    for region in (profile.region for profile in profiles):
        names = [called(function.symbol, function.module) for function in region.functions]
        nodes = region.nodes or ()
        for node in nodes[2:]:
            caller = nodes[node.parent].function
            if caller >= 0 and node.function >= 0:
                pairs.add((names[caller], names[node.function]))
    return pairs
