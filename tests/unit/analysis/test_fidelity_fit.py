"""Constants fitted to times that are known are found again, and a file says what they were fitted to."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.support.drawings import assert_scatters_are_true
from tests.unit.analysis.test_fidelity import KERNELS, measured

from ktrial.analysis.attribution.costs import CLASSES, COSTS, costs, happened, prices
from ktrial.analysis.errors import AnalysisUsageError
from ktrial.analysis.fidelity import Both, fidelity, fitted, held_out, text
from ktrial.model.fidelity import FidelityResult
from ktrial.model.machine import ModelCounts, ModelledMachine
from ktrial.model.profile import OperationCounts, PageCount, Profile, RegionCounts, StringCounts
from ktrial.model.study import StudyRecord
from ktrial.report.fidelity import fidelity_page, lines
from ktrial.studyfile.machine_model_files import machine_model

OPERATIONS, STUDIES = 10, 12
TRUE = {"memory": 3.0, "walk": 0.5, "misprediction": 2.0, "instruction": 1.5}
"""By how much each price of the desktop is off; the others are right."""


def desktop() -> ModelledMachine:
    return machine_model("desktop", Path()) or pytest.fail("there is no machine")


def counted(seed: int) -> Profile:
    """Operations that miss, walk and mispredict as a generator says."""
    rng = np.random.default_rng(seed)
    code, second, last, translations, walks, mispredictions = (
        int(integer) for integer in rng.integers(1, 300, 6)
    )
    modelled = ModelCounts(
        cycles=0.0,
        code_misses=code + second + last,
        data_misses=0,
        second_misses=second + last,
        last_misses=last,
        translation_misses=translations + walks,
        walks=walks,
        mispredictions=mispredictions,
    )
    instructions = int(rng.integers(1000, 50_000))
    region = RegionCounts(
        whole=True,
        instructions=instructions,
        marks=0,
        strings=StringCounts(bytes=int(rng.integers(1, 9999))),
        functions=(),
        pages=(PageCount(address=0, checksum=0, instructions=instructions, modelled=modelled),),
        operations=OperationCounts(count=OPERATIONS, total=0, minimum=0, maximum=0, median=0),
    )
    price = prices(desktop())
    cycles = sum(price[name] * times for name, times in happened(region).items()) + rng.integers(1, 2000)
    return Profile(
        kernel="", workload="", operations=OPERATIONS, region=region.model_copy(update={"cycles": cycles})
    )


def time_of(profile: Profile) -> float:
    """Nanoseconds of an operation, at two cycles each."""
    made_of = costs(profile, desktop())
    return sum(made_of[name] * TRUE.get(name, 1.0) for name in COSTS) / 2


def many() -> tuple[list[Both], dict[tuple[int, str, str], Profile]]:
    """Pairs of studies of the same five treatments, each with operations of its own.

    What every other one counts as an operation is a batch of a hundred that are timed.
    """
    studies: list[Both] = []
    profiles: dict[tuple[int, str, str], Profile] = {}
    for number in range(STUDIES):
        by_kernel = {kernel: counted(100 * number + place) for place, kernel in enumerate(KERNELS)}
        exact = measured(
            "exact", tuple(by_kernel[kernel].region.instructions / 1e4 for kernel in KERNELS), cycles=True
        )
        batch = 1e4 * (100 if number % 2 else 1)
        timed = measured("host", tuple(time_of(by_kernel[kernel]) / batch for kernel in KERNELS), 1e-4)
        model = exact.study.machine.model_copy(update={"model": desktop()})
        exact = exact.model_copy(
            update={"id": number, "study": exact.study.model_copy(update={"machine": model})}
        )
        studies.append((exact, timed))
        profiles |= {(number, "fork", kernel): by_kernel[kernel] for kernel in KERNELS}
    return studies, profiles


def looked_up(
    profiles: dict[tuple[int, str, str], Profile], record: StudyRecord, workload: str, treatment: str
) -> Profile | None:
    return profiles.get((record.id, workload, treatment))


@pytest.fixture(scope="module")
def predicted() -> tuple[FidelityResult, list[Both]]:
    studies, profiles = many()
    compared = fidelity(studies)
    fit = fitted(compared, studies, partial(looked_up, profiles))
    return compared.model_copy(update={"fitted": fit}), studies


@pytest.mark.nightly
def test_prices_that_were_off_are_found_again(predicted: tuple[FidelityResult, list[Both]]) -> None:
    fit = predicted[0].fitted or pytest.fail("nothing was fitted")
    ratios = {name: fit.after[name] / fit.before[name] / TRUE.get(name, 1.0) for name in COSTS}
    scale = ratios["memory"]  # cycles in a nanosecond are not known: only ratios of prices are
    for name in ("memory", "instruction", "misprediction"):
        assert ratios[name] / scale == pytest.approx(1, abs=0.25), name
    assert fit.error_after < fit.error_before / 2
    assert fit.error_after < 0.1


@pytest.mark.nightly
def test_the_other_half_is_predicted_and_was_not_fitted_to(
    predicted: tuple[FidelityResult, list[Both]],
) -> None:
    compared, _ = predicted
    fit = compared.fitted or pytest.fail("nothing was fitted")
    outside = held_out(compared.pairs, compared.seed)
    assert len(outside) == 2
    assert fit.held_out.pairs == STUDIES * len(outside)
    assert fit.held_out.same_sign == fit.held_out.decided
    assert (fit.held_out.rms_error or 1) < 0.15 < (fit.held_out_before.rms_error or 0)
    assert fit.operations == STUDIES * (len(KERNELS) - len(outside))


def test_the_file_is_a_machine_and_names_its_data(
    predicted: tuple[FidelityResult, list[Both]], tmp_path: Path
) -> None:
    fit = predicted[0].fitted or pytest.fail("nothing was fitted")
    (tmp_path / "mine.toml").write_text(text(fit, desktop(), "fitted", "studies a and b"))
    read = machine_model("mine.toml", tmp_path) or pytest.fail("there is no machine")
    assert read.cycles.memory == pytest.approx(fit.after["memory"], rel=1e-5)
    assert read.cycles.divide == pytest.approx(desktop().cycles.divide * fit.after[CLASSES], rel=1e-5)
    assert read.cycles.store_share == 1
    assert "studies a and b" in (tmp_path / "mine.toml").read_text()


def test_too_few_operations_and_two_models_are_refused(predicted: tuple[FidelityResult, list[Both]]) -> None:
    compared, studies = predicted
    with pytest.raises(AnalysisUsageError, match="0 operations"):
        fitted(compared, studies, lambda *_: None)
    (exact, timed), *_ = studies
    bare = exact.study.model_copy(update={"machine": exact.study.machine.model_copy(update={"model": None})})
    with pytest.raises(AnalysisUsageError, match="one modelled machine, not on: none"):
        fitted(compared, [(exact.model_copy(update={"study": bare}), timed)], lambda *_: None)


def test_the_page_shows_each_count_and_the_fit(predicted: tuple[FidelityResult, list[Both]]) -> None:
    shown = fidelity_page(predicted[0], "two studies")
    assert shown.count("<svg") == len(predicted[0].all)
    assert "Fitted to 36 operations" in shown
    assert "Other sign by modelled-cycles" in shown
    result = list(lines(predicted[0]))
    assert result[0] == "All treatments:"
    assert any(line.startswith("Other sign by modelled-cycles: ") for line in result)


def test_every_pair_is_drawn_where_its_changes_are(predicted: tuple[FidelityResult, list[Both]]) -> None:
    """With intervals of the counted changes too, which these have none of."""
    wider = {"low": 0.7, "high": 1.2}
    pairs = tuple(
        pair.model_copy(
            update={
                "exact": {
                    name: change.model_copy(
                        update={end: change.ratio * factor for end, factor in wider.items()}
                    )
                    for name, change in pair.exact.items()
                }
            }
        )
        for pair in predicted[0].pairs
    )
    compared = predicted[0].model_copy(update={"pairs": pairs})
    assert_scatters_are_true(fidelity_page(compared, "two studies"), compared)
    with pytest.raises(AssertionError):
        assert_scatters_are_true(fidelity_page(compared, "two studies"), predicted[0])
