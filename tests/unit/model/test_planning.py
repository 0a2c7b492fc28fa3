"""Which trials a study plans, and in which order."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.support.making import a_study

from ktrial.model.design import (
    Design,
    Factor,
    FactorKind,
    FactorLevels,
    LevelValue,
    Perturbation,
    combinations,
    count,
)
from ktrial.model.study import baseline, perturbation, plan, treatment_count, treatments

SWAPPINESS = Factor(
    name="swappiness", kind=FactorKind.SETTING, levels=(0, 60, 100), baseline=60, target="vm.swappiness"
)


def test_the_baseline_is_the_first_treatment() -> None:
    chosen = plan(a_study(kernels=("debian:6.1", "debian:6.12", "debian:7.2")))
    assert [treatment.label for treatment in chosen.treatments] == ["debian:6.1", "debian:6.12", "debian:7.2"]
    assert chosen.baseline == chosen.treatments[0]


def test_a_full_factorial_design_combines_every_level_with_every_other() -> None:
    labels = [treatment.label for treatment in treatments(a_study(factors=(SWAPPINESS,)))]
    assert labels == [
        "debian:6.1 · swappiness=60",
        "debian:6.1 · swappiness=0",
        "debian:6.1 · swappiness=100",
        "debian:6.12 · swappiness=0",
        "debian:6.12 · swappiness=60",
        "debian:6.12 · swappiness=100",
    ]


def test_one_factor_at_a_time_changes_one_factor_from_the_baseline() -> None:
    study = a_study(factors=(SWAPPINESS,), design=Design.ONE_AT_A_TIME)
    assert [treatment.label for treatment in treatments(study)] == [
        "debian:6.1 · swappiness=60",
        "debian:6.12 · swappiness=60",
        "debian:6.1 · swappiness=0",
        "debian:6.1 · swappiness=100",
    ]


def test_a_study_without_factors_has_one_treatment() -> None:
    assert [treatment.label for treatment in treatments(a_study().model_copy(update={"factors": ()}))] == [
        "as it is"
    ]


@given(seed=st.integers(0, 2**40), perturbations=st.integers(1, 6))
def test_each_block_holds_every_treatment_once_under_one_perturbation(seed: int, perturbations: int) -> None:
    chosen = plan(a_study(factors=(SWAPPINESS,), perturbations=perturbations, seed=seed))
    assert [trial.order for trial in chosen.trials] == list(range(6 * perturbations))
    assert len({trial.key for trial in chosen.trials}) == 6 * perturbations
    for block in range(perturbations):
        of_block = [trial for trial in chosen.trials if trial.block == block]
        assert Counter(trial.treatment.label for trial in of_block) == Counter(
            treatment.label for treatment in chosen.treatments
        )
        assert {trial.perturbation for trial in of_block} == {perturbation(seed, block)}


def test_the_order_is_random_and_follows_the_seed() -> None:
    def orders(seed: int) -> list[str]:
        return [trial.treatment.label for trial in plan(a_study(perturbations=8, seed=seed)).trials]

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)
    assert {tuple(orders(1)[at : at + 2]) for at in range(0, 16, 2)} == {
        ("debian:6.1", "debian:6.12"),
        ("debian:6.12", "debian:6.1"),
    }


def test_perturbation_0_changes_nothing() -> None:
    assert perturbation(99, 0) == Perturbation(number=0)


@given(seed=st.integers(0, 2**40), number=st.integers(1, 50))
def test_the_other_perturbations_change_everything_within_bounds(seed: int, number: int) -> None:
    drawn = perturbation(seed, number)
    assert drawn == perturbation(seed, number)
    assert 1 <= drawn.environment_bytes <= 4096
    assert 1 <= drawn.start_offset <= 10_000_000
    assert 1 <= drawn.layout_seed < 2**31


def test_perturbations_are_the_same_on_every_host() -> None:
    # printf '["layout",1,1]' | sha256sum, and so on: worked out without ktrial.
    assert perturbation(1, 1) == Perturbation(
        number=1, environment_bytes=2541, start_offset=9_637_481, layout_seed=1_096_043_473
    )


def test_treatments_are_counted_and_the_baseline_is_told_without_making_them_all() -> None:
    for number in (1, 2, 3):
        factors = tuple(
            Factor(
                name=f"f{place}", kind=FactorKind.SETTING, levels=(1, 2, 3), baseline=2, target=f"f{place}"
            )
            for place in range(number)
        )
        for design in (Design.FULL, Design.ONE_AT_A_TIME):
            study = a_study().model_copy(update={"factors": factors, "design": design})
            assert treatment_count(study) == len(treatments(study))
            assert baseline(study) == treatments(study)[0]


LEVELS: st.SearchStrategy[LevelValue] = st.sampled_from([1, 1.0, "1", 2, "a"])


@st.composite
def factors(draw: st.DrawFn) -> list[FactorLevels]:
    many = draw(st.integers(0, 3))
    levels = st.lists(LEVELS, min_size=1, max_size=4)
    return [FactorLevels(f"f{number}", draw(levels), draw(LEVELS)) for number in range(many)]


@given(factors(), st.sampled_from(["full-factorial", "one-factor-at-a-time", "listed"]), st.data())
def test_as_many_are_counted_as_are_made(
    chosen: list[FactorLevels], design: str, data: st.DataObject
) -> None:
    row = st.fixed_dictionaries(
        {}, optional={factor.name: st.sampled_from(factor.levels) for factor in chosen}
    )
    listed: list[dict[str, LevelValue]] = data.draw(st.lists(row, max_size=4))
    assert count(chosen, design, listed) == len(combinations(chosen, design, listed))
