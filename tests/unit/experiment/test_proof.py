"""Causes that are proved: what is taken back, what that is found to be, what is run and what is not."""

from pathlib import Path

import pytest
from tests.support.making import a_study
from tests.support.proving import FEATURES, NEW, OLD, World, a_world

from ktrial.analysis.attribution.question import AttributionQuestion, question
from ktrial.analysis.errors import ExplanationError
from ktrial.errors import Interrupted
from ktrial.experiment.proof import Proven, Proving, prove
from ktrial.experiment.session import run
from ktrial.model.attribution import ProofSide, Status, Tried
from ktrial.model.study import MachineSettings
from ktrial.store.store import Store

ASKED = question(a_study(kernels=(OLD, NEW), workloads=("futex",), perturbations=2))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return a_world(tmp_path, monkeypatch)


def proven(world: World, store: Store, query: AttributionQuestion = ASKED, **options: object) -> Proven:
    plain = {"perturbations": 2, "jobs": 1, "machine": world.machine, "resources": world.resources()}
    return prove(query, Proving(store, **(plain | options)))  # type: ignore[arg-type]


def by_name(result: Proven) -> dict[str, Tried]:
    return {one.candidate.name: one for one in result.proof.tested}


def test_what_is_taken_back_has_its_share_and_the_rest_is_unexplained(world: World, store: Store) -> None:
    proof = proven(world, store).proof
    assert proof.differences == (1000, 1001)
    results = {result.candidate.name: result for result in proof.tested}
    tick = results["HRTICK"]
    assert (tick.status, tick.effects) == (Status.MEASURED, (249, 249)), "the write itself costs one"
    assert proof.share(tick.effect) == pytest.approx(249 / 1000.5)
    assert proof.shares(tick.effects) == pytest.approx((249 / 1001, 249 / 1000))
    assert results["/sys/kernel/mm/lru_gen/enabled"].effects == (99, 99)
    assert proof.together
    assert set(proof.together.names) == {"HRTICK", "/sys/kernel/mm/lru_gen/enabled"}
    assert proof.together.effects == (348, 348), "two writes"
    assert proof.unexplained == 1000.5 - 348


def test_the_proof_is_kept_with_the_study_that_was_asked_about(world: World, store: Store) -> None:
    record = run(ASKED.study, store=store, machine=world.machine, resources=world.resources(), jobs=1)
    complete = proven(world, store).proof
    assert store.proofs(record.id) == (complete,)
    proven(world, store, candidates=("HRTICK",))
    assert store.proofs(record.id) == (complete,), "one of fewer candidates does not take its place"


def test_without_such_a_study_it_is_kept_with_that_of_the_two_ends(world: World, store: Store) -> None:
    proof = proven(world, store, candidates=("HRTICK",)).proof
    assert [store.proofs(study.id) for study in store.studies()] == [(proof,), ()]
    complete = proven(world, store).proof
    assert next(store.proofs(study.id) for study in store.studies()) == (complete,)


def test_a_setting_that_nothing_uses_is_told_from_one_that_counts(world: World, store: Store) -> None:
    result = by_name(proven(world, store, candidates=("vm.*",)))["vm.dirty_ratio"]
    assert result.status is Status.NOTHING
    assert "nothing that the workload uses depends on it" in result.reason


def test_what_a_kernel_refuses_is_tried_the_other_way_round_and_told(world: World, store: Store) -> None:
    refused = by_name(proven(world, store, candidates=("*/preempt",)))["/sys/kernel/debug/sched/preempt"]
    assert (refused.status, refused.side) == (Status.REFUSED, ProofSide.FROM)
    assert "= voluntary was refused: EINVAL; the other way round:" in refused.reason
    assert "= lazy was refused" in refused.reason


def test_where_the_other_kernel_takes_it_that_is_measured(world: World, store: Store) -> None:
    world.refused = frozenset({(NEW, "NO_HRTICK")})
    plain = world.rule
    world.rule = lambda kernel, written, *more: (
        plain(kernel, written, *more) + 200 * (kernel == OLD and written.get(FEATURES) == "HRTICK")
    )
    tick = by_name(proven(world, store, candidates=("HRTICK",)))["HRTICK"]
    assert (tick.status, tick.side, tick.effects) == (Status.MEASURED, ProofSide.FROM, (201, 201))


def test_an_effect_no_larger_than_a_write_that_changes_nothing_is_no_cause(
    world: World, store: Store
) -> None:
    def rule(kernel: str, written: object, parameters: object, number: int) -> float:
        assert isinstance(written, dict)
        return (
            10_000
            + 1_000 * (kernel == NEW)
            + 300 * bool(written)
            - 250 * (written.get(FEATURES) == "NO_HRTICK")
        )

    world.rule = rule
    tried = proven(world, store, candidates=("HRTICK",))
    assert by_name(tried)["HRTICK"].status is Status.UNCERTAIN
    assert tried.proof.control == 300
    assert tried.proof.together is None
    assert tried.proof.unexplained == 1000


def test_an_option_that_a_boot_parameter_switches_off_is_tried_on_the_kernel_that_has_it(
    world: World, store: Store
) -> None:
    """6.12 has PSI, 7.2 has not: switched off in 6.12, 40 instructions fewer there: the difference grows."""
    result = by_name(proven(world, store, candidates=("psi=0",)))["psi=0"]
    assert (result.side, result.status, result.effects) == (ProofSide.FROM, Status.MEASURED, (-40, -40))


def test_nothing_is_run_twice(world: World, store: Store) -> None:
    first = proven(world, store).proof
    ran = len(world.ran)
    assert len(set(world.ran)) == ran
    again = proven(world, store).proof
    assert len(world.ran) == ran
    assert again.tested == first.tested
    assert (again.used.trials, first.used.trials) == (0, ran)
    fewer = proven(world, store, candidates=("hrtick",)).proof
    assert [result.candidate.name for result in fewer.tested] == ["HRTICK"]
    assert len(world.ran) == ran, "another study, whose trials are taken over"


def test_the_treatments_of_a_stored_study_are_not_run_again(world: World, store: Store) -> None:
    record = run(ASKED.study, store=store, machine=world.machine, resources=world.resources(), jobs=1)
    assert len(record.trials) == len(world.ran) == 4
    proven(world, store, candidates=("HRTICK",))
    labels = [label for label, _ in world.ran]
    assert labels.count(OLD) == labels.count(NEW) == 2


def test_trials_of_another_qemu_are_run_again(world: World, store: Store) -> None:
    run(ASKED.study, store=store, machine=world.machine, resources=world.resources(), jobs=1)
    identity = world.machine.identity
    world.machine.identity = lambda boot: identity(boot).model_copy(update={"qemu": "10.0"})  # type: ignore[method-assign]
    proven(world, store, candidates=("HRTICK",))
    assert [label for label, _ in world.ran].count(OLD) == 4


def test_an_interrupted_proof_goes_on(world: World, store: Store) -> None:
    world.interrupt_after = 7
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        proven(world, store, candidates=("HRTICK",))
    assert len(world.ran) == 7
    world.interrupt_after = None
    world.machine = World(world.directory).machine
    proven(world, store, candidates=("HRTICK",))
    assert len(set(world.ran)) == len(world.ran)


def test_the_cost_is_told_before_and_a_budget_leaves_out_what_is_dear(world: World, store: Store) -> None:
    plans: list[tuple[float, int, bool]] = []

    def tell(cost: object, proof: object, in_groups: bool) -> None:
        plans.append((cost.seconds, len(world.ran), in_groups))  # type: ignore[attr-defined]

    cheap = proven(world, store, budget=10.0, tell=tell, each_alone=True).proof
    assert plans[0][1:] == (4, False), "of the two treatments only"
    assert plans[0][0] <= 10.0
    assert "psi=0" not in {result.candidate.name for result in cheap.tested}, "a boot takes longer"
    assert ("psi=0", "--budget has no room for it") in {(item.name, item.reason) for item in cheap.left_out}


def test_a_name_that_no_candidate_has_is_refused(world: World, store: Store) -> None:
    with pytest.raises(ExplanationError, match=r"called HRTIK \(did you mean HRTICK\?\)") as raised:
        proven(world, store, candidates=("HRTIK",))
    assert "vm.dirty_ratio" in raised.value.advice


def test_only_the_machine_exact_proves(world: World, store: Store) -> None:
    study = a_study(kernels=(OLD, NEW), workloads=("futex",), machine=MachineSettings(kind="kvm"))
    with pytest.raises(ExplanationError, match=", which counts no instructions by function"):
        proven(world, store, question(study))
