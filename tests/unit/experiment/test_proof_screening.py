"""Many candidates: taken back together, then by halves; what moves nothing is not tried one by one."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.proving import FEATURES, NEW, OLD, World, a_world, by_rule
from tests.unit.experiment.test_proof import ASKED, by_name, proven

from ktrial.errors import Interrupted
from ktrial.experiment.session import run
from ktrial.model.attribution import GroupKind, Proof, ProofSide, Status
from ktrial.report.proof import closing, known_so_far
from ktrial.store.store import Store, open_store

MANY = 24
INERT = tuple(f"/proc/sys/vm/inert_{number:02}" for number in range(MANY))
LRU = "/sys/kernel/mm/lru_gen/enabled"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """With many settings that nothing reads."""
    world = a_world(tmp_path, monkeypatch)
    for kernel, value in ((OLD, "1"), (NEW, "2")):
        world.settings[kernel] |= dict.fromkeys(INERT, value)
    return world


def lines(proof: Proof) -> str:
    return "\n".join(closing(proof))


def test_some_ten_trials_find_what_a_hundred_found_with_the_same_shares(world: World, store: Store) -> None:
    quick = proven(world, store).proof
    few = len(world.ran)
    alone_proof = proven(world, store, each_alone=True).proof
    assert len(world.ran) - few > 40, "one by one"
    assert few < 4 + 28, "the two treatments, then two causes among 29"
    alone = {
        result.candidate.name: result.effects
        for result in alone_proof.tested
        if result.status is Status.MEASURED
    }
    by_screening = {
        result.candidate.name: result.effects for result in quick.tested if result.status is Status.MEASURED
    }
    assert by_screening == {name: alone[name] for name in ("HRTICK", LRU, "psi=0")}
    assert quick.together == alone_proof.together
    assert {result.candidate.name for result in quick.tested} == {
        result.candidate.name for result in alone_proof.tested
    }


def test_where_nothing_moves_the_count_a_group_and_its_control_are_run(world: World, store: Store) -> None:
    world.rule = lambda kernel, written, *_: 10_000.0 + 1_000 * (kernel == NEW) + 5 * len(written)
    proof = proven(world, store).proof
    settings, boots = 2, 2
    assert len(world.ran) == 4 + settings + boots
    (moved,) = (group for group in proof.groups if len(group.names) > MANY)
    assert (moved.kind, moved.side, moved.effect) == (GroupKind.NOTHING, ProofSide.TO, -5 * len(moved.names))
    assert moved.control == -moved.effect, "as many files written with what they have move it as far"
    statuses = {result.candidate.name: result.status for result in proof.tested}
    assert statuses["vm.inert_07"] is statuses["HRTICK"] is Status.GROUPED
    assert "Nothing that was changed back makes a difference" in lines(proof)
    assert "vm.inert_07" in lines(proof)


def test_what_one_kernel_refuses_does_not_spoil_its_group(world: World, store: Store) -> None:
    world.refused |= {(NEW, "1")}
    results = by_name(proven(world, store))
    assert results["vm.inert_03"].side is ProofSide.FROM, "it is tried where the kernel takes it"
    assert results["vm.inert_03"].status is Status.GROUPED
    preempt = results["/sys/kernel/debug/sched/preempt"]
    assert (preempt.status, preempt.side) == (Status.REFUSED, ProofSide.FROM)
    assert "= voluntary was refused: EINVAL" in preempt.reason
    assert "; the other way round: " in preempt.reason
    assert results["HRTICK"].status is Status.MEASURED


def test_two_that_help_only_together_are_told(world: World, store: Store) -> None:
    pair = {"/proc/sys/vm/inert_02": "1", "/proc/sys/vm/inert_21": "1"}

    def rule(kernel: str, written: Mapping[str, str], *_: object) -> float:
        return 10_000.0 + (kernel == NEW) * (1_000 - 400 * (pair.items() <= written.items()))

    world.rule = rule
    proof = proven(world, store).proof
    (beyond,) = (group for group in proof.groups if group.kind is GroupKind.ONLY_TOGETHER)
    assert beyond.effect == 400
    assert {"vm.inert_02", "vm.inert_21"} <= set(beyond.names)
    assert proof.unexplained == 1000
    assert "Together these move the count by +400" in lines(proof)


@pytest.mark.nightly
def test_a_group_that_cannot_run_together_is_divided(world: World, store: Store) -> None:
    world.panics = lambda written: len(written) > 8 and "1" in written.values()
    proof = proven(world, store).proof
    assert {result.candidate.name for result in proof.tested if result.status is Status.MEASURED} >= {
        "HRTICK",
        LRU,
    }
    assert not [group for group in proof.groups if group.kind is GroupKind.OPEN]


def test_interrupted_it_tells_what_it_knows_and_goes_on(world: World, store: Store) -> None:
    proofs: list[Proof] = []
    run(ASKED.study, store=store, machine=world.machine, resources=world.resources(), jobs=1)
    world.interrupt_after = 4 + 4 + 2
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        proven(world, store, on_interruption=proofs.append)
    (interim,) = proofs
    (waiting,) = (group for group in interim.groups if group.kind is GroupKind.OPEN)
    assert waiting.effect > 300
    text = "\n".join(known_so_far(interim))
    assert "Known so far of +1,000" in text
    assert "Only measured together, +3" in text
    world.interrupt_after = None
    world.have_a_new_machine()
    complete = proven(world, store).proof
    assert len(set(world.ran)) == len(world.ran), "nothing is run twice"
    assert not [group for group in complete.groups if group.kind is GroupKind.OPEN]


@pytest.mark.nightly
def test_interrupted_while_they_are_measured_alone_it_tells_those_that_are(
    world: World, store: Store
) -> None:
    proven(world, store)
    last = len(world.ran)
    proofs: list[Proof] = []
    world.ran.clear()
    world.interrupt_after = last - 3
    second_store = open_store(str(world.directory / "other.db"))
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        proven(world, second_store, on_interruption=proofs.append)
    measured = {result.candidate.name for result in proofs[0].tested if result.status is Status.MEASURED}
    assert measured
    assert measured < {"HRTICK", LRU, "psi=0"}


@pytest.mark.nightly
def test_a_budget_ends_the_search_and_what_is_left_is_named(world: World, store: Store) -> None:
    ended = proven(world, store, budget=10.0)
    assert {item.name for item in ended.proof.left_out} >= {"psi=0"}, "a boot takes longer"
    assert "HRTICK" in by_name(ended)


@pytest.mark.nightly
def test_a_feature_s_control_writes_the_word_that_is_there(world: World, store: Store) -> None:
    written: list[Mapping[str, str]] = []

    def rule(kernel: str, settings: Mapping[str, str], *more: object) -> float:
        written.append(settings)
        return by_rule(kernel, settings, *more)  # type: ignore[arg-type]

    world.rule = rule
    proven(world, store)
    assert any(settings.get(FEATURES) == "HRTICK" and settings.get(INERT[0]) == "2" for settings in written)
