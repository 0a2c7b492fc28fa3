"""A candidate that the budget could neither show to gain nor to do nothing: told, and measured again."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.scripted import scripted_resources
from tests.support.tuning import HIGHER, LOWER, TunableMachine, a_comparison, a_result, a_search, a_study

from ktrial.experiment.observer import Observer
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.machine import Boot
from ktrial.model.study import Search, Study
from ktrial.model.tuning import Budget, Finalist, Tuned
from ktrial.model.workload import Mode
from ktrial.optimize.revalidation import RevalidationOutcome, judged, revalidation_of, shown_again
from ktrial.optimize.search_space import with_space
from ktrial.optimize.session import run_search
from ktrial.report.tuning import tuning_markdown, tuning_page
from ktrial.store.store import open_store
from ktrial.studyfile.errors import NothingTuned

PRESSURE = "/proc/sys/vm/vfs_cache_pressure"
CANDIDATE = {"vm.vfs_cache_pressure": "400", "boot:nohz": "off"}
OPEN, BETTER = Verdict.INCONCLUSIVE, Verdict.BETTER


def open_result(*comparisons: Comparison, noise: float = 0.02, broken: tuple[str, ...] = ()) -> Tuned:
    """A search that ended without an answer; of its candidate fresh runs said this."""
    finalist = Finalist(configuration=CANDIDATE, comparison=comparisons[0], broken=broken)
    update = {
        "confirmed": None,
        "candidate": CANDIDATE,
        "comparisons": comparisons,
        "finalists": (finalist,),
        "noise": noise,
        "answer": "No gain that this budget can show.",
    }
    return a_result().model_copy(update=update)


def said_of(ratio: float, verdict: Verdict = OPEN, direction: object = HIGHER) -> Comparison:
    return a_comparison("rps", HIGHER, ratio).model_copy(update={"verdict": verdict, "direction": direction})


@pytest.mark.parametrize(
    ("result", "undecided"),
    [
        (open_result(said_of(1.03)), True),
        (open_result(said_of(0.97, direction=LOWER)), True),
        (open_result(said_of(0.97)), False),
        (open_result(said_of(1.03, Verdict.EQUIVALENT)), False),
        (open_result(said_of(1.03), said_of(0.9, Verdict.WORSE)), False),
        (open_result(said_of(1.03), broken=("p99 <= 20 ms was not kept: the median is 25",)), False),
        (open_result(said_of(1.03), noise=0.0), False),
        (a_result(), False),
    ],
    ids=["a gain", "of less", "a loss", "nothing", "traded", "guard", "noise-free", "confirmed"],
)
def test_undecided_is_what_may_gain_and_breaks_nothing(result: Tuned, undecided: bool) -> None:
    assert result.undecided == (CANDIDATE if undecided else {})


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        (BETTER, RevalidationOutcome.GAIN),
        (Verdict.WORSE, RevalidationOutcome.NO_GAIN),
        (Verdict.EQUIVALENT, RevalidationOutcome.NO_GAIN),
        (OPEN, RevalidationOutcome.UNKNOWN),
    ],
)
def test_measured_again_a_candidate_gains_or_not(verdict: Verdict, outcome: RevalidationOutcome) -> None:
    tuned = open_result(said_of(1.03))
    assert judged(tuned, (said_of(1.02, verdict),)) is outcome
    assert (outcome.good, outcome.bad) == (
        outcome is RevalidationOutcome.GAIN,
        outcome is RevalidationOutcome.NO_GAIN,
    )


def test_a_candidate_that_breaks_a_guard_is_no_gain() -> None:
    late = a_comparison("p99", LOWER, 1.0).model_copy(update={"value": 25.0})
    tuned = open_result(said_of(1.03))
    assert judged(tuned, (said_of(1.05, BETTER), late)) is RevalidationOutcome.NO_GAIN


def test_a_search_with_neither_answer_nor_candidate_has_nothing_to_measure_again() -> None:
    tuned = open_result(said_of(0.97))
    with pytest.raises(NothingTuned, match="no settings were confirmed"):
        revalidation_of(a_study(tuned), tuned, blocks=10)


def test_the_files_say_what_the_new_runs_showed() -> None:
    tuned, again = open_result(said_of(1.03)), said_of(1.021, BETTER)
    shown = shown_again(a_study(tuned), tuned, (a_comparison("other", HIGHER, 2.0), again))
    assert shown.confirmed == CANDIDATE
    assert shown.comparisons == (again,)
    assert shown.kept == tuned.kept, "own effects are the search's, where there are several"
    alone = tuned.model_copy(update={"candidate": {"boot:nohz": "off"}, "kept": tuned.kept[1:]})
    (effect,) = shown_again(a_study(alone), alone, (again,)).kept
    assert (effect.ratio, effect.low, effect.high) == (again.ratio, again.low, again.high)


def test_page_and_markdown_tell_the_candidate_and_how_it_is_measured_again() -> None:
    tuned = open_result(said_of(1.03))
    study = a_study(tuned).model_copy(update={"name": "of 6.12"})
    page, markdown = tuning_page(study, tuned), tuning_markdown(study, tuned)
    # By its number in its store, where there is one: several searches may have the same name.
    assert "ktrial tune revalidate 7<" in tuning_page(study, tuned, number=7)
    assert "`ktrial tune revalidate 7`" in tuning_markdown(study, tuned, number=7)
    assert "Undecided: <bdi>vm.vfs_cache_pressure=400, boot:nohz=off</bdi>." in page
    assert "<code><bdi>ktrial tune revalidate &#39;of 6.12&#39;</bdi></code>" in page
    assert "Undecided: `vm.vfs_cache_pressure=400, boot:nohz=off`." in markdown
    assert "`ktrial tune revalidate 'of 6.12'`" in markdown


def test_with_an_answer_or_without_a_candidate_nothing_is_undecided() -> None:
    for tuned in (a_result(), open_result(said_of(0.97))):
        texts = (
            tuning_page(a_study(tuned), tuned),
            tuning_markdown(a_study(tuned), tuned),
        )
        assert not any("Undecided" in text for text in texts)
        assert ("ktrial tune revalidate tune" in texts[0]) == (tuned.confirmed is not None)


def small_gain(seed: int) -> TunableMachine:
    """3 % fewer instructions where the pressure is high, beside a noise of 3 %."""
    chance = random.Random(seed)

    def number(boot: Boot, written: Mapping[str, str]) -> float:
        level = 970.0 if int(written.get(PRESSURE, "100")) > 300 else 1000.0
        return level * chance.lognormvariate(0, 0.03)

    return TunableMachine(number, mode=Mode.TIMED)


def small_search(machine: TunableMachine) -> Study:
    study = with_space(
        a_search("vm.vfs_cache_pressure", "vm.swappiness", kind="kvm"),
        machine,
        scripted_resources(),
        Observer(),
    )
    assert study.search
    goal = study.search.goal.model_copy(update={"workload": "fork"})
    update = {**dict(study.search), "budget": Budget(runs=30), "goal": goal}
    return study.model_copy(update={"search": Search.model_validate(update)})


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine(monkeypatch, capsys)


@pytest.mark.nightly
def test_a_small_gain_that_the_budget_could_not_show_is_shown_by_more_blocks(
    command: CommandLine, tmp_path: Path
) -> None:
    machine = small_gain(4)
    study = small_search(machine)
    with open_store(tmp_path / "ktrial.db") as store:
        tuned = run_search(study, store=store, machine=machine, resources=scripted_resources())
    assert (tuned.confirmed, list(tuned.undecided)) == (None, ["vm.vfs_cache_pressure"])
    command.machine(machine)
    on = ("--store", tmp_path / "ktrial.db")
    shown = " ".join(command("show", "tune", *on).output.split())
    value = tuned.undecided["vm.vfs_cache_pressure"]
    assert (
        f"Undecided: vm.vfs_cache_pressure={value}. In more fresh blocks: ktrial tune revalidate 1" in shown
    )
    said = command(
        "tune",
        "revalidate",
        "tune",
        *on,
        "--blocks",
        200,  # The order of the blocks is drawn anew each time: 60 did not always decide.
        "--answer",
        tmp_path / "answer",
        "--no-html",
        "--json",
    )
    assert said.status == 0, said.messages
    told = json.loads(said.output)
    assert told["holds"] == "brings a gain"
    assert told["said"].startswith("The candidate brings a gain: instructions")
    conf = (tmp_path / "answer/sysctl.d/99-tune.conf").read_text()
    assert f"\nvm.vfs_cache_pressure = {value}\n" in conf
    assert str(tmp_path / "answer/sysctl.d/99-tune.conf") in told["files"]
