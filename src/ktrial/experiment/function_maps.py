"""Which function is which, for each pair of a study's kernels: found once, over all its workloads."""

from collections.abc import Iterator
from itertools import product

from ktrial.analysis.attribution.function_map import FunctionMap, function_map
from ktrial.analysis.attribution.target import AttributionQuestion
from ktrial.analysis.store_queries import profile_of
from ktrial.model.design import FactorKind, Treatment
from ktrial.model.plan import treatments
from ktrial.model.profile import FunctionFiles, Profile
from ktrial.model.study import Study, kernel_name
from ktrial.model.study_record import StudyRecord
from ktrial.store import Store


class FunctionMaps:
    """The maps of one stored study; each is made when it is first asked for, and kept."""

    def __init__(self, store: Store, record: StudyRecord) -> None:
        self._store, self._record = store, record
        self._made: dict[tuple[str, str, bool, bool], FunctionMap] = {}

    def of(
        self, asked: AttributionQuestion, files_before: FunctionFiles, files_after: FunctionFiles
    ) -> FunctionMap:
        """The map for the two treatments' kernels. Raises StoreError."""
        study = self._record.study
        old, new = (kernel_name(study, one) for one in (asked.before, asked.after))
        key = (old, new, bool(files_before.functions), bool(files_after.functions))
        if key not in self._made:
            self._made[key] = function_map(self._profiles(old, new), files_before, files_after)
        return self._made[key]

    def _profiles(self, old: str, new: str) -> Iterator[tuple[Profile, Profile]]:
        """Each workload's two profiles, of all treatments of the two kernels that differ in nothing else."""
        study = self._record.study
        arms = treatments(study)
        pairs = list(
            product(
                [one for one in arms if kernel_name(study, one) == old],
                [one for one in arms if kernel_name(study, one) == new],
            )
        )
        alike = [pair for pair in pairs if _settings(study, pair[0]) == _settings(study, pair[1])]
        for use in study.workloads:
            for pair in alike or pairs:
                before, after = (profile_of(self._store, self._record, one, use.label) for one in pair)
                if before and after:
                    yield before, after


def _settings(study: Study, treatment: Treatment) -> dict[str, object]:
    """The levels of what does not make another kernel."""
    kernels = {one.name for one in study.factors if one.kind is FactorKind.KERNEL or one.changes}
    return {name: level for name, level in treatment.levels.items() if name not in kernels}
