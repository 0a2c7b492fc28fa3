"""Explanations for reports: from what is stored only, and what is said of what is not there."""

from pathlib import Path

import pytest
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.scripted import a_kernel, not_found

from ktrial.analysis.attribution.question import question
from ktrial.analysis.errors import ExplanationError, NotCounted
from ktrial.analysis.result import load_record
from ktrial.experiment.explain import Guests, explain_question, explain_record
from ktrial.model.attribution import Match
from ktrial.model.design import Factor, FactorKind
from ktrial.model.kernel import Kernel
from ktrial.model.profile import PROGRAM
from ktrial.model.study import MachineSettings, Study, StudyRecord, treatments
from ktrial.model.trial import Outcome
from ktrial.store.store import Store

OLD, NEW = "debian:6.1", "debian:6.12"
STORED = Guests(run=False)


def kept(store: Store, *kernels: str, profiles: bool = True) -> StudyRecord:
    number = store.study(a_study(workloads=("fork",), perturbations=2))
    for kernel in kernels:
        for block in range(2):
            counts = {("mutex_lock", ""): 1000 + 500 * (kernel == NEW) + block}
            counted = (a_profile(counts, kernel=kernel),) if profiles else ()
            store.add_trial(number, a_trial(planned(kernel, block), profiles=counted))
    return load_record(store, number)


def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(name: str) -> Kernel:
        raise not_found(name)

    monkeypatch.setattr("ktrial.kernels.kernel_registry.get", get)


def test_a_stored_result_is_explained_though_its_kernels_are_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_kernels(monkeypatch)
    why = explain_record(store, kept(store, OLD, NEW), guests=STORED)
    assert why.explanation.total == 50, "of perturbation 0, which changes nothing"
    assert (why.explanation.before.label, why.explanation.after.label) == (OLD, NEW)
    assert (why.before.kernel, why.after.kernel) == (OLD, NEW)
    assert why.differences.unknown == (
        f"functions: the kernel of {OLD} is not in the cache, so less is known of which function is which, "
        "and rows may be others, in another order, than with it",
        f"options: the configuration of {OLD} is not known",
    )
    assert why.differences.counters == ()


def test_a_kernel_that_is_another_one_by_now_tells_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("CONFIG_SMP=y\n")
    monkeypatch.setattr(
        "ktrial.kernels.kernel_registry.get", lambda name: a_kernel(name, config=tmp_path / "config")
    )
    why = explain_record(store, kept(store, OLD, NEW), guests=STORED)
    assert f"options: the configuration of {OLD} is not known" in why.differences.unknown


def test_which_function_is_which_is_told_by_all_workloads_of_the_study(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_kernels(monkeypatch)
    number = store.study(a_study(workloads=("fork", "pipe")))
    functions = {
        ("fork", OLD): {("foo", ""): 100},
        ("fork", NEW): {("_foo", ""): 90},
        ("pipe", OLD): {("bar", ""): 10},
        ("pipe", NEW): {("foo", ""): 10, ("bar", ""): 10},
    }
    for kernel in (OLD, NEW):
        profiles = tuple(
            a_profile(functions[name, kernel], kernel=kernel).model_copy(update={"workload": name})
            for name in ("fork", "pipe")
        )
        store.add_trial(number, a_trial(planned(kernel, 0), profiles=profiles))
    why = explain_record(store, load_record(store, number), "fork", guests=STORED)
    matches = {row.function: row.match for row in why.explanation.rows if row.function != PROGRAM}
    assert matches == {"foo": Match.ONLY_FROM, "_foo": Match.ONLY_TO}, "as the second has a foo of its own"


def test_without_profiles_nothing_is_run_that_must_not_run(store: Store) -> None:
    with pytest.raises(NotCounted, match=r"fork was not counted by function under debian:6\.1") as raised:
        explain_record(store, kept(store, OLD, NEW, profiles=False), guests=STORED)
    assert "ktrial explain quick --workload fork" in raised.value.advice


def test_a_kernel_whose_trial_failed_is_told_as_that(store: Store) -> None:
    number = store.study(a_study(workloads=("fork",), perturbations=2))
    profile = a_profile({("mutex_lock", ""): 1000}, kernel=OLD)
    store.add_trial(number, a_trial(planned(OLD, 0), profiles=(profile,)))
    hung = a_trial(planned(NEW, 0), outcome=Outcome.HUNG, reason="300 s of CPU time went by")
    store.add_trial(number, hung)
    with pytest.raises(NotCounted, match=r"debian:6\.12: a trial of it ended as hung: 300 s of CPU"):
        explain_record(store, load_record(store, number), guests=STORED)


def test_only_the_machine_exact_counts_by_function() -> None:
    study = a_study(workloads=("fork",), machine=MachineSettings(kind="kvm"))
    with pytest.raises(ExplanationError, match="the machine kvm"):
        explain_question(question(study))


def several(*factors: Factor) -> Study:
    return a_study(workloads=("fork",), factors=factors)


BOOT = Factor(name="mitigations", kind=FactorKind.BOOT, levels=("", "off"), baseline="", target="mitigations")


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ("debian:6.1 · mitigations=off", "debian:6.1 · mitigations=off"),
        ("debian:6.12 · mitigations=(not given)", "debian:6.12 · mitigations=(not given)"),
    ],
)
def test_a_treatment_of_several_factors_is_told_by_its_label(said: str, label: str) -> None:
    study = several(BOOT)
    assert {treatment.label for treatment in treatments(study)} >= {label}
    query = question(study, after=said, before="debian:6.12 · mitigations=off")
    assert query.after.label == label


def test_a_level_that_several_treatments_have_is_not_enough() -> None:
    with pytest.raises(
        ExplanationError, match=rf"several treatments {OLD}: {OLD} · .*, {OLD} · mitigations=off"
    ):
        question(several(BOOT), after=OLD)
    with pytest.raises(ExplanationError, match=r"no treatment mitigations=on"):
        question(several(BOOT), after="mitigations=on")


def test_one_level_is_enough_where_only_one_treatment_has_it() -> None:
    only = a_study(kernels=(OLD,), workloads=("fork",), factors=(BOOT,))
    assert question(only, after="mitigations=off").after.levels["mitigations"] == "off"
