"""What the difference between two profiles is made of. Nothing is estimated: the rows add up to it."""

from collections.abc import Iterable, Mapping, Set

from ktrial.analysis.attribution.function_matching import (
    FunctionMap,
    FunctionPair,
    Functions,
    Key,
    function_map,
    functions_of,
)
from ktrial.analysis.attribution.subsystems import USER, subsystem
from ktrial.model.attribution import Count, Explanation, FunctionDifference, Match, ProfileSide, summed
from ktrial.model.profile import PROGRAM, FunctionFiles, Profile

_NOTHING_KNOWN = FunctionFiles()


def explain(
    before: Profile,
    after: Profile,
    files_before: FunctionFiles = _NOTHING_KNOWN,
    files_after: FunctionFiles = _NOTHING_KNOWN,
    *,
    mapped: FunctionMap | None = None,
    functions: tuple[Functions, Functions] | None = None,
) -> Explanation:
    """Every function's part in the difference, the heaviest first. Raises ValueError: other workloads.

    `files_before`, `files_after`: what is known of the two kernels' functions; they tell subsystems, and
    whether a function that did not run is there at all. `mapped`: which function is which, over several
    workloads of the two kernels; else these two profiles alone tell it. `functions`: those of the profiles
    (`functions_of`), where they are known.
    """
    if before.workload != after.workload:
        raise ValueError(f"{before.workload} and {after.workload} are not one workload")
    old, new = functions or (functions_of(before, files_before), functions_of(after, files_after))
    mapped = mapped or function_map([(before, after)], files_before, files_after)
    rows = [_row(pair, old, new) for pair in mapped.in_workload(old, new)]
    if not (before.region.cpus or after.region.cpus):
        rows = [_with_locking(row, files_before.locking, files_after.locking) for row in rows]
    rows.append(_user_part(before, after))
    explanation = Explanation(
        workload=before.workload,
        before=_side(before),
        after=_side(after),
        rows=(),
        prices=before.prices if before.prices == after.prices else None,
    )
    ranked = sorted(rows, key=lambda row: (-explanation.rank(row), row.function, row.module))
    return explanation.model_copy(update={"rows": tuple(ranked)})


def _row(pair: FunctionPair, old: Functions, new: Functions) -> FunctionDifference:
    name, module = pair.new or pair.old or ("", "")
    before = _together(old.counts, pair.old, pair.also_old)
    after = _together(new.counts, pair.new, pair.also_new)
    # A kernel that was built without BUG()'s file names tells no source: the other one does, by the name.
    file = _file(new.files, after) or _file(old.files, before) or _file(old.files, after)
    file = file or _file(new.files, before)
    return FunctionDifference(
        function=name,
        module=module,
        file=file,
        subsystem=subsystem(name, module, file),
        match=pair.match,
        evidence=pair.evidence,
        before=before,
        after=after,
    )


def _with_locking(row: FunctionDifference, old: Set[str], new: Set[str]) -> FunctionDifference:
    """The row, marked where one side's function is of the kernel's image, and locks memory there."""
    locks = not row.module and (old & {*row.before.names} or new & {*row.after.names})
    return row.model_copy(update={"is_locking": True}) if locks else row


def _together(counts: Mapping[Key, Count], key: Key | None, also: Iterable[Key]) -> Count:
    """A function, with those that are part of it in the other kernel: entered as often as it is itself."""
    if key is None:
        return Count()
    count, joined = counts[key], [counts[joined_key] for joined_key in also]
    if not joined:
        return count
    return Count(
        names=(key[0], *(joined_key[0] for joined_key in also)),
        instructions=count.instructions + sum(part.instructions for part in joined),
        entered=count.entered,
        string_bytes=count.string_bytes + sum(part.string_bytes for part in joined),
        modelled=summed((count.modelled, *(part.modelled for part in joined))),
    )


def _file(files: Mapping[str, str], count: Count) -> str:
    return next((files[name] for name in count.names if name in files), "")


def _user_part(before: Profile, after: Profile) -> FunctionDifference:
    def count(profile: Profile) -> Count:
        moved = sum(page.strings.bytes for page in profile.region.pages)
        return Count(
            names=(PROGRAM,),
            instructions=profile.region.program,
            string_bytes=moved,
            modelled=summed(page.modelled for page in profile.region.pages),
        )

    return FunctionDifference(
        function=PROGRAM, subsystem=USER, match=Match.SAME, before=count(before), after=count(after)
    )


def _side(profile: Profile) -> ProfileSide:
    region = profile.region
    return ProfileSide(
        label=profile.label,
        release=profile.release,
        operations=profile.operations,
        instructions=region.instructions,
        string_bytes=region.strings.bytes,
        median=profile.median,
    )
