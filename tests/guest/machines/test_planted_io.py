"""Faults of the page cache, planted, are found and named; beside each a control that changes nothing.

They are those of "Our Troubles with Linux Kernel Upgrades and Why You Should Care" (Harji, Buhr, Brecht):
pages that are not marked as accessed, small files that are evicted, read-ahead that is switched off.
"""

import math
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.guests import headers
from tests.support.places import SUPPORT

from ktrial.experiment.explain import stored_explanations
from ktrial.experiment.session import run
from ktrial.kernels import kernel_registry
from ktrial.kernels.modules import resolve
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import Design, Factor, FactorKind
from ktrial.model.kernel import Kernel
from ktrial.model.machine import CgroupLimits
from ktrial.model.study import Disk, MachineSettings, Study, StudyRecord
from ktrial.model.trial import Outcome
from ktrial.model.workload import WorkloadUse
from ktrial.report.attribution import Why, whys
from ktrial.store.store import open_store

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.timeout(3600)]

MODULE = "ktrial_forgets"
RELEASE = "debian:6.1"
"""Its page cache has two lists, active and inactive, and a page gets to the first by being marked."""
EVERYTHING, SMALL_ONLY, NOTHING = 1 << 40, 4096, 0
DISK = Disk(latency_us=100, bandwidth_mib=400)
MEMORY = CgroupLimits(memory_mib=12)
SERVER = WorkloadUse(
    name="file-server",
    parameters={
        "path": "/mnt",
        "small": 32,
        "medium": 12,
        "large": 12,
        "exponent": 110,
        "passes": 1,
        "requests": 600,
    },
)
"""12.5 MiB of files: popular ones are asked for again while large ones go through memory."""
PERTURBATIONS = 3
"""Which pages are evicted hangs on where they lie: refaults of two layouts differ by a third."""
PATIENCE = 1200
"""Host seconds for a trial: others may be busy here."""
CLASSES = ("4 KiB", "32 KiB", "1 MiB")


@pytest.fixture(scope="module")
def planted(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[dict[int, str]]:
    """Bytes up to which files are forgotten → a kernel that has the module for it."""
    assert request.config.cache, "pytest's own cache keeps the headers"
    known = kernel_registry.add(RELEASE)
    kept = request.config.cache.mkdir("kernel-headers")
    place = tmp_path_factory.mktemp("planted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KTRIAL_CACHE", str(place / "cache"))
        yield {
            limit: _kernel(known, kept, place / f"up-to-{limit}", limit)
            for limit in (NOTHING, EVERYTHING, SMALL_ONLY)
        }


def _kernel(known: Kernel, kept: Path, place: Path, limit: int) -> str:
    modules = place / "lib" / "modules" / known.release
    modules.mkdir(parents=True)
    source = Path(shutil.copy(SUPPORT / f"{MODULE}.c", place))
    refaults = limit if limit == SMALL_ONLY else NOTHING
    built = headers(known, kept).build(source, FORGETS_UP_TO=limit, REFAULTS_UP_TO=refaults)
    assert known.modules
    builtin = known.modules.glob("**/modules.builtin*")  # what has no file, and is there all the same: ext4
    for file in (built, *builtin, *resolve(known, ["null_blk"])):
        shutil.copy(file, modules)
    image = Path(shutil.copy(known.image, place / f"vmlinuz-{limit}"))
    return kernel_registry.add(f"path:{image}", modules=place).name


def measured(directory: Path, study: Study) -> tuple[StudyRecord, tuple[Why, ...]]:
    """What was found, and why."""
    with open_store(directory / "trials.db") as store:
        record = run(study, store=store)
        return record, whys(store, record, stored_explanations)


def compared(record: StudyRecord) -> dict[tuple[str, str], Comparison]:
    """(level, metric) → its comparison with the baseline."""
    assert {(trial.outcome, trial.reason) for trial in record.trials} == {(Outcome.COMPLETED, "")}
    return {(one.treatment, one.metric): one for one in record.result.comparisons}


class Found(NamedTuple):
    """By change: `nothing`, or bytes up to which files are forgotten."""

    comparisons: dict[str, dict[str, Comparison]]
    """Of each change, by metric."""
    counters: dict[str, str]
    """What the explanation of each change says of counters."""
    sums: dict[str, dict[str, float]]
    """Of all layouts together, by kernel and metric: where one has a count of 0, there is no ratio."""


@pytest.fixture(scope="module")
def evidence(planted: dict[int, str], tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The three kernels under the file server.

    The baseline, and the control of which only the name is another, have the module that only looks.
    """
    factors = (
        Factor(
            name="kernel",
            kind=FactorKind.KERNEL,
            levels=(planted[NOTHING], planted[EVERYTHING], planted[SMALL_ONLY]),
            baseline=planted[NOTHING],
        ),
        Factor(name="nothing", kind=FactorKind.NOTHING, levels=("a", "b"), baseline="a"),
    )
    study = Study(
        name="forgets",
        machine=MachineSettings(modules=(MODULE,), disk=DISK, cgroup=MEMORY, limit_seconds=PATIENCE),
        factors=factors,
        design=Design.ONE_AT_A_TIME,
        workloads=(SERVER,),
        perturbations=PERTURBATIONS,
    )
    record, reasons = measured(tmp_path_factory.mktemp("found"), study)

    def change(treatment: str) -> str:
        named = [str(limit) for limit in (EVERYTHING, SMALL_ONLY) if planted[limit] in treatment]
        return named[0] if named else "nothing"

    comparisons: dict[str, dict[str, Comparison]] = {}
    for (treatment, metric), one in compared(record).items():
        comparisons.setdefault(change(treatment), {})[metric] = one
    assert set(comparisons) == {"nothing", str(EVERYTHING), str(SMALL_ONLY)}
    counters = {
        change(why.treatment): "; ".join(line for section in why.around for line in section.lines)
        for why in reasons
    }
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for trial in record.trials:
        for sample in trial.samples:
            sums[str(trial.planned.treatment.levels["kernel"])][sample.metric] += sample.value
    return Found(comparisons, counters, {str(limit): sums[name] for limit, name in planted.items()})


def test_a_page_cache_that_marks_nothing_is_found(evidence: Found) -> None:
    for metric in ("refaults", "read"):
        one = evidence.comparisons[str(EVERYTHING)][metric]
        assert one.verdict is Verdict.WORSE, one
        assert one.ratio
        assert one.ratio > 1.1
    activations = evidence.comparisons[str(EVERYTHING)]["activations"]
    assert activations.value == 0
    assert activations.baseline_value
    assert activations.baseline_value > 1000


def test_its_explanation_names_activations_and_refaults(evidence: Found) -> None:
    assert "vmstat.pgactivate: " in evidence.counters[str(EVERYTHING)]
    assert "vmstat.workingset_refault_file: " in evidence.counters[str(EVERYTHING)]


def test_a_page_cache_that_evicts_small_files_is_told_by_the_sizes(evidence: Found) -> None:
    for what in ("evictions", "misses"):
        small, *others = (growth(evidence, f"{what} of {size} files") for size in CLASSES)
        assert small > 3
        assert small > 2 * max(others)


def growth(seen: Found, metric: str) -> float:
    """By how many times a count grew; infinity where there was none before."""
    # Only the name of the control is another: both are in the sum.
    before, after = seen.sums[str(NOTHING)][metric] / 2, seen.sums[str(SMALL_ONLY)][metric]
    if before == 0:
        return math.inf if after else 1.0
    return after / before


def test_the_control_is_equivalent_in_every_count(evidence: Found) -> None:
    control = evidence.comparisons["nothing"]
    assert len(control) > 20
    assert {one.verdict for one in control.values()} == {Verdict.EQUIVALENT}


def test_read_ahead_switched_off_is_named_as_the_cause(tmp_path: Path) -> None:
    path = "/sys/block/nullb1/queue/read_ahead_kb"
    read_ahead = Factor(name=path, kind=FactorKind.SETTING, levels=("128", "4"), baseline="128", target=path)
    nothing = Factor(name="nothing", kind=FactorKind.NOTHING, levels=("a", "b"), baseline="a")
    study = Study(
        name="read-ahead",
        machine=MachineSettings(kernel=RELEASE, disk=DISK),
        factors=(read_ahead, nothing),
        design=Design.ONE_AT_A_TIME,
        workloads=(WorkloadUse(name="seq-read", parameters={"path": "/mnt", "size": 8, "record": 4}),),
        perturbations=1,
    )
    record, (why,) = measured(tmp_path, study)
    comparisons = compared(record)
    (off,) = {treatment for treatment, _ in comparisons if treatment == why.treatment}
    (same,) = {treatment for treatment, _ in comparisons} - {off}
    size = comparisons[off, "average read size"]
    assert size.verdict is Verdict.WORSE
    assert size.value == pytest.approx(4, rel=0.1)
    # 128 KiB are two requests, as this disk takes 124 KiB at most.
    assert "read_ahead_kb: 128 → 4: average read size 63.015 → 4, read requests 130 → 2,048" in why.causes[0]
    assert {one.verdict for (treatment, _), one in comparisons.items() if treatment == same} == {
        Verdict.EQUIVALENT
    }
