"""The answer in one sentence, and what must never be compared."""

import pytest
from tests.support.making import a_trial

from ktrial.analysis.answer import answer
from ktrial.analysis.comparability import kernel_difference, machine_difference, mode_difference
from ktrial.model.comparison import Comparison, Estimand, Verdict
from ktrial.model.trial import Provenance, Trial
from ktrial.model.workload import MODELLED_CYCLES, STRING_BYTES, Direction, Metric, Mode
from ktrial.stats.verdict_rules import Arm, compare

LOWER = Metric(name="instructions", unit="instructions/operation", direction=Direction.LOWER)


def change(
    workload: str,
    ratio: float,
    treatment: str = "debian:6.12",
    mode: Mode = Mode.EXACT_CLOCK,
    metric: Metric = LOWER,
    spread: float = 1.0,
) -> Comparison:
    # The spread moves one side only: what moves both alike is no spread of the ratio.
    below = Arm("debian:6.1", {0: 1000.0, 1: 1000.0})
    above = Arm(treatment, {0: 1000.0 * ratio, 1: 1000.0 * ratio * spread})
    return compare(workload, metric, mode, below, above, margin=0.01)


SIX = [
    change("fork", 1.138),
    change("execve", 1.06),
    change("mmap", 1.021),
    change("pipe", 0.967),
    change("null", 1.001),
    change("stat", 1.0),
]


def test_parameters_are_left_out_where_the_name_tells_enough() -> None:
    result = answer([change("fork", 1.138), change("seq-read(path=/mnt, size=8)", 1.06)], 0.01)
    assert "seq-read +6 %" in result
    result = answer([change("fork(a=1)", 1.138), change("fork(a=2)", 1.06)], 0.01)
    assert "fork(a=1) +13.8 %, fork(a=2) +6 %" in result


def test_one_treatment_is_one_clause() -> None:
    assert answer(SIX, 0.01) == (
        "By instructions counted, not time: 3 of 6 workloads got worse from debian:6.1 to debian:6.12: "
        "fork +13.8 %, execve +6 %, mmap +2.1 %; 1 got better: pipe −3.3 %; 2 equivalent; "
        "geometric mean of 6: +2.97 %."
    )


def test_one_perturbation_is_said_once_in_the_place_of_intervals() -> None:
    """`+14.3 % (+14.3 … +14.3)` would pass for certain."""
    rows = [
        compare(
            workload,
            LOWER,
            Mode.EXACT_CLOCK,
            Arm("debian:6.1", {0: 1000.0}),
            Arm("debian:6.12", {0: value}),
            margin=0.01,
        )
        for workload, value in (("fork", 1143.0), ("pipe", 1031.0))
    ]
    assert answer(rows[:1], 0.01).endswith(": +14.3 % (one perturbation: no interval).")
    assert answer(rows, 0.01) == (
        "By instructions counted, not time: 2 of 2 workloads got worse from debian:6.1 to debian:6.12: "
        "fork +14.3 %, pipe +3.1 %; geometric mean of 2: +8.56 %; one perturbation: no interval."
    )


def in_time(workload: str, verdict: Verdict, treatment: str = "B", **more: object) -> Comparison:
    plain = Comparison(
        workload=workload,
        metric="wall",
        unit="s",
        direction=Direction.LOWER,
        baseline="A",
        treatment=treatment,
        baseline_value=1.0,
        value=0.94,
        ratio=0.94,
        low=0.93,
        high=0.95,
        verdict=verdict,
        mode=Mode.TIMED,
        estimand=Estimand.TYPICAL,
        blocks=6,
        unseen=0.393,
    )
    return plain.model_copy(update=more)


TAIL = "typically 6 % faster; 1 trial in 10 of B takes twice as long: in total 4 % slower"
BOUND = "spikes in up to 39 % of trials are not ruled out after 6 blocks"


@pytest.mark.parametrize(
    ("estimand", "about"),
    [
        (Estimand.TYPICAL, "Of typical trials: "),
        (Estimand.TOTAL, "Of all trials together: "),
        (Estimand.TAIL, "Of the worst tenth of trials: "),
    ],
)
def test_a_verdict_on_times_says_what_it_is_about_and_what_it_leaves_open(
    estimand: Estimand, about: str
) -> None:
    row = in_time("fork", Verdict.BETTER, beside=TAIL, estimand=estimand)
    assert answer([row], 0.01) == f"{about}fork got better from A to B: −6 % (−7 … −5); {TAIL}; {BOUND}."


def test_what_is_left_open_names_its_workload_and_its_treatment() -> None:
    rows = [
        in_time("fork", Verdict.BETTER, beside=TAIL),
        in_time("pipe", Verdict.EQUIVALENT, blocks=60, unseen=0.0487),
        in_time("stat", Verdict.INCONCLUSIVE, beside="3 of 60 trials of B failed", unseen=None),
    ]
    assert answer(rows, 0.01).endswith(f"1 equivalent; 1 inconclusive; fork: {TAIL}; {BOUND}.")
    assert f"; fork with C: {TAIL}; {BOUND}." in answer(
        [in_time("fork", Verdict.EQUIVALENT), in_time("fork", Verdict.BETTER, "C", beside=TAIL)], 0.01
    )
    undecided = in_time("stat", Verdict.INCONCLUSIVE, reason="there is no telling", unseen=None)
    assert answer([undecided], 0.01) == (
        "Of typical trials: it is undecided whether stat changed from A to B: there is no telling."
    )


def test_several_treatments_are_a_clause_each() -> None:
    more = [change("fork", 1.2, "debian:7.2"), change("pipe", 1.0, "debian:7.2")]
    assert answer([SIX[0], SIX[3], *more], 0.01) == (
        "By instructions counted, not time: against debian:6.1, "
        "1 of 2 workloads got worse with debian:6.12: fork +13.8 %, 1 got better: pipe −3.3 %, "
        "geometric mean of 2: +4.9 %; "
        "1 of 2 workloads got worse with debian:7.2: fork +20 %, 1 equivalent, geometric mean of 2: +9.54 %."
    )


def test_treatments_of_which_the_same_is_to_be_said_are_named_together() -> None:
    names = [f"runtime={level} · ratio=20" for level in (1, 2, 3, 4)]
    same = [
        comparison.model_copy(update={"baseline": "runtime=0 · ratio=20"})
        for name in names
        for comparison in (change("fork", 1.0, name), change("pipe", 1.0, name))
    ]
    more = change("fork", 1.2, "runtime=0 · ratio=4").model_copy(update={"baseline": "runtime=0 · ratio=20"})
    assert answer([*same, more], 0.01) == (
        "By instructions counted, not time: against runtime=0 · ratio=20, "
        "both workloads stayed equivalent (within 1 %) with runtime=1, runtime=2, runtime=3 and 1 more; "
        "fork got worse with ratio=4: +20 %."
    )


def test_of_many_treatments_the_sentence_counts() -> None:
    kernels = [f"debian:6.{minor}" for minor in range(2, 42)]
    changes = [change("fork", 1.0 + at / 100, kernel) for at, kernel in enumerate(kernels)]
    changes += [change("pipe", 0.9 if at == 7 else 1.0, kernel) for at, kernel in enumerate(kernels)]
    assert answer(changes, 0.01) == (
        "By instructions counted, not time: against debian:6.1, of 40 treatments 2 stayed equivalent, "
        "37 got worse, 1 got worse and better, by workload; most worse: debian:6.41 (fork +39 %); "
        "most better: debian:6.9 (pipe −10 %)."
    )


def test_modelled_cycles_are_told_where_they_go_the_other_way() -> None:
    same = [change("fork", 1.2, metric=MODELLED_CYCLES), change("null", 1.0, metric=MODELLED_CYCLES)]
    assert answer([*SIX, *same], 0.01) == answer(SIX, 0.01)
    more = [change("mmap", 0.9, metric=MODELLED_CYCLES), change("pipe", 1.05, metric=MODELLED_CYCLES)]
    assert answer([*SIX, *same, *more], 0.01).endswith(
        "geometric mean of 6: +2.97 %; modelled cycles go the other way in 2: mmap −10 %, pipe +5 %."
    )


def test_modelled_cycles_are_told_where_they_move_alone() -> None:
    alone = [change("null", 0.96, metric=MODELLED_CYCLES), change("stat", 1.3, metric=MODELLED_CYCLES)]
    assert answer([*SIX, *alone], 0.01).endswith(
        "modelled cycles alone got better in 1: null −4 %; modelled cycles alone got worse in 1: stat +30 %."
    )


def test_bytes_of_string_instructions_come_after_the_instructions() -> None:
    none, some = Arm("debian:6.1", {0: 0.0}), Arm("debian:6.12", {0: 4096.0})
    moved = [
        change("fork", 0.614, metric=STRING_BYTES),
        change("mmap", 1.02, metric=STRING_BYTES),
        change("pipe", 1.0, metric=STRING_BYTES),
        compare("stat", STRING_BYTES, Mode.EXACT_PLUGIN, none, some, margin=0.01),
    ]
    assert answer([*SIX, *moved], 0.01).endswith(
        "geometric mean of 6: +2.97 %; string instructions worked on more in 2 of them: stat from 0 to 4,096"
        ", mmap +2 %, fewer in 1 of them: fork −38.6 % (bytes)."
    )


@pytest.mark.parametrize(
    ("comparisons", "sentence"),
    [
        ([], "There is nothing to compare: the study has one treatment."),
        (
            [change("fork", 1.0), change("pipe", 1.0)],
            "both workloads stayed equivalent (within 1 %) from debian:6.1 to debian:6.12.",
        ),
        ([change("fork", 1.0)], "fork stayed equivalent (within 1 %) from debian:6.1 to debian:6.12."),
        (
            [change("fork", 1.0, spread=1.1)],
            "it is undecided whether fork changed from debian:6.1 to debian:6.12: "
            "the interval reaches across the edge of the margin (1 %).",
        ),
        (
            [change("fork", 1.0, spread=1.1), change("pipe", 1.0)],
            "no change is shown from debian:6.1 to debian:6.12; 1 equivalent; 1 inconclusive.",
        ),
        (
            [change(name, 0.9 - at / 100) for at, name in enumerate(["a", "b", "c", "d", "e"])],
            "5 of 5 workloads got better from debian:6.1 to debian:6.12: "
            "e −14 %, d −13 %, c −12 % and 2 more; geometric mean of 5: −12 %.",
        ),
        ([change("fork", 4.2)], "fork got worse from debian:6.1 to debian:6.12: +320 %."),
        (
            [change("fork", 1.2, spread=1.05)],
            "fork got worse from debian:6.1 to debian:6.12: +23 % (+20 … +26).",
        ),
    ],
)
def test_the_sentence_fits_what_was_found(comparisons: list[Comparison], sentence: str) -> None:
    assert answer(comparisons, 0.01).removeprefix("By instructions counted, not time: ") == sentence


def test_times_of_the_guests_clock_are_not_called_instructions() -> None:
    """731 ms below `instructions counted, not time` is untrue, though the clock counts instructions."""
    lasting = Metric(name="duration", unit="ns", direction=Direction.LOWER)
    rate = Metric(name="requests", unit="1/s", direction=Direction.HIGHER)
    for metric in (lasting, rate):
        result = answer([change("build", 1.2, metric=metric)], 0.01)
        assert result.startswith("By the guest's clock (1 ns an instruction), not real time: build got ")
    mixed = answer([change("build", 1.2, metric=lasting), change("fork", 1.1)], 0.01)
    assert mixed.startswith(
        "By instructions counted, or by the guest's clock (1 ns an instruction), not real"
    )
    assert answer([change("fork", 1.1)], 0.01).startswith("By instructions counted, not time: ")


def test_timed_numbers_are_not_called_instructions() -> None:
    assert "instructions" not in answer([change("fork", 1.2, mode=Mode.TIMED)], 0.01)


def test_a_workload_with_two_metrics_is_named_with_the_metric() -> None:
    faults = Metric(name="faults", unit="faults/operation", direction=Direction.LOWER)
    result = answer([change("fork", 1.2), change("fork", 1.1, metric=faults)], 0.01)
    assert (
        "fork got worse from debian:6.1 to debian:6.12: +20 %; 1 other metric got worse: fork (faults)"
        in result
    )
    assert "mean" not in result, "of unlike metrics there is none"


def test_the_answer_is_about_what_was_counted_and_other_metrics_stand_beside_it() -> None:
    latency = Metric(name="latency p50", unit="µs", direction=Direction.LOWER)
    read = Metric(name="read", unit="KiB", direction=Direction.LOWER)
    rate = Metric(name="rate", unit="1/s", direction=Direction.HIGHER)
    result = answer(
        [
            change("server", 0.85),
            change("server", 5.1, metric=latency),
            change("server", 1.2, metric=read),
            change("server", 1.0, metric=rate),
            change("tcp", 1.02),
        ],
        0.01,
    )
    assert "1 of 2 workloads got worse from debian:6.1 to debian:6.12: tcp +2 %" in result
    assert "1 got better: server −15 %" in result
    assert result.endswith("of 3 other metrics 2 got worse, first server (read) +20 %."), result
    timed = answer([change("server", 5.1, metric=latency, mode=Mode.TIMED)], 0.01)
    assert "server got worse" in timed, "in real time a latency is what was measured"


def ran(**provenance: object) -> Trial:
    plain = {"machine": "exact", "qemu": "7.2.22", "cpu_model": "max", "agent_digest": "a", "seed": 1}
    plain |= {"executed": {"image": "of one kernel", "tasks": "t1", "lockstep": "l1"}}
    return a_trial(provenance=Provenance.model_validate(plain | provenance))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"snapshot": "another", "command_line": "quiet"}, ""),
        ({"qemu": "10.0.2"}, "a different QEMU build: 10.0.2 and 7.2.22"),
        ({"cpu_model": "qemu64"}, "a different CPU model: max and qemu64"),
        ({"machine": "kvm"}, "a different machine: exact and kvm"),
        ({"agent_digest": "b"}, "a different guest agent: a and b"),
        ({"seed": 2}, "a different QEMU seed: 1 and 2"),
        (
            {"executed": {"tasks": "t2"}},
            "a different build of ktrial's workloads of several tasks: t1 and t2",
        ),
        (
            {"executed": {"tasks": "t1", "lockstep": "l2"}},
            "a different build of ktrial's lockstep: l1 and l2",
        ),
        ({"executed": {"image": "of another kernel"}}, ""),
    ],
)
def test_trials_of_different_machines_are_told_apart(change: dict[str, object], reason: str) -> None:
    assert machine_difference([ran()], [ran(**change)]).removeprefix("the trials ran with ") == reason


def test_a_trial_that_never_reached_a_machine_differs_from_none() -> None:
    assert machine_difference([ran()], [a_trial(provenance=Provenance())]) == ""


def test_two_kernels_under_one_name_are_told_apart() -> None:
    old, new = (
        ran(kernel_digest="aa", kernel_release="6.1.0-1"),
        ran(kernel_digest="bb", kernel_release="6.1.0-2"),
    )
    assert kernel_difference([old, old]) == ""
    assert kernel_difference([old, new]) == "its trials ran on different kernels: 6.1.0-1 aa and 6.1.0-2 bb"
    other_config = ran(kernel_digest="aa", config_digest="x", kernel_release="6.1.0-1")
    assert kernel_difference([old, other_config])


def test_different_modes_are_told_apart() -> None:
    assert mode_difference([Mode.EXACT_CLOCK, Mode.EXACT_CLOCK]) == ""
    assert mode_difference([Mode.TIMED, Mode.EXACT_CLOCK]) == (
        "the numbers are of different modes: exact-clock and timed"
    )
