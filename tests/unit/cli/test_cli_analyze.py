"""The commands analyze and plan: what they print, and what they say about mistakes."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.places import FOREIGN as REPORTS
from tests.support.places import PAPERS, PROGRAM_OUTPUTS

from ktrial.model.comparison import Calibration, MetricCalibration

KNOBS = str(PAPERS / "knobs_aio_stress.csv")
INDEX = str(PAPERS / "slab_muqss_unixbench_index.csv")


@pytest.fixture
def ktrial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


def words(text: str) -> str:
    return " ".join(text.replace("\u00a0", " ").split())


def test_analyze_prints_groups_tests_verdicts_audit_and_answer(ktrial: CommandLine) -> None:
    ran = ktrial("analyze", INDEX, "--baseline", "control", "--confidence", "99%")
    assert ran.status == 0
    result = words(ran.output)
    assert "control 3 1567.37 10.0321 1509.88 … 1624.85 4.09851 … 200.517" in result
    assert "one-way ANOVA: F(1, 4) = 5677.4, p = 1.9e-07; SS 307904.1067 between, 216.9333 within" in result
    assert "experimental +28.91 % +24.78 … +33.17 453.067 (405.205 … 500.928) 5.7e-05 ✓ better" in result
    assert "! copied-values: slab_muqss_unixbench_index.csv: control, run 2 repeats" in result
    assert result.endswith("The audit found what no test can mend: copied-values.")


def test_a_run_count_that_was_computed_is_marked(ktrial: CommandLine) -> None:
    assert "40 ~4 386.2" in words(ktrial("analyze", KNOBS).output)


def test_a_difference_without_a_better_side_says_which_option_gives_it_one(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("a,b\n1.00,1.10\n1.01,1.11\n1.02,1.12\n1.03,1.13\n")
    command = ("analyze", str(path), "--value", "a,b", "--group-by", "header")
    open_ = words(ktrial(*command).output)
    assert "? inconclusive b: it lies above the baseline, but" in open_
    assert "which way is better: --better lower|higher" in open_
    decided = words(ktrial(*command, "--better", "lower").output)
    assert "✗ worse" in decided
    assert "it lies above" not in decided


def test_a_table_that_may_mean_several_things_is_shown_with_the_command_that_reads_it(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "two.csv"
    path.write_text("kernel,run,latency_ms,p99_ms\na,1,1.5,2.5\nb,1,1.75,2.75\n")
    ran = ktrial("analyze", str(path))
    assert (ran.status, ran.output) == (2, "")
    told = words(ran.messages)
    assert "kernel group" in told
    assert "run numbers the runs" in told
    assert "p99_ms ? one of several measurements, or a setting --value" in told
    assert (
        "two.csv, line 1: 2 of 4 columns may mean several things, so nothing is read: latency_ms, p99_ms."
        in told
    )
    command = f"ktrial analyze {path} --value latency_ms --group-by kernel"
    assert command in told
    assert "numbers latency_ms (ms, lower is better)" in words(ktrial(*command.split()[1:]).output)


def test_analyze_prints_json_and_nothing_else(ktrial: CommandLine) -> None:
    result = json.loads(ktrial("analyze", KNOBS, "--json", "--margin", "5%").output)
    assert result["margin"] == 0.05
    assert result["families"][0]["name"] == "vm.swappiness"
    assert {finding["kind"] for finding in result["findings"]} >= {"repeats-disagree", "order-confounded"}


def test_sums_of_squares_of_seconds_are_no_zeros(ktrial: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("group,seconds\na,0.0010\na,0.0011\nb,0.0012\nb,0.0014\n")
    assert "SS 6.25e-08 between, 2.5e-08 within" in words(ktrial("analyze", str(path)).output)


def test_what_no_run_has_met_is_told_once_and_not_of_what_is_worse(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    path = tmp_path / "three.csv"
    rows = [
        f"{test},{arm},{level + 0.01 * run}"
        for test, levels in (("fork", (10, 8)), ("pipe", (10, 10)), ("open", (10, 12)))
        for arm, level in zip("ab", levels, strict=True)
        for run in range(8)
    ]
    path.write_text("\n".join(["test,kernel,time_ms", *rows]) + "\n")
    shown = words(ktrial("analyze", str(path)).output)
    assert shown.count("are not ruled out after 8 runs") == 1
    path.write_text("\n".join(["test,kernel,time_ms", *(row for row in rows if "open" in row)]) + "\n")
    shown = words(ktrial("analyze", str(path)).output)
    assert "✗ worse" in shown
    assert "not ruled out" not in shown


@pytest.mark.parametrize(
    ("better", "is_told"), [((), False), (("--better", "lower"), False), (("--better", "higher"), True)]
)
def test_a_direction_that_the_format_contradicts_is_told(
    ktrial: CommandLine, better: tuple[str, ...], is_told: bool
) -> None:
    shown = words(ktrial("analyze", str(PROGRAM_OUTPUTS / "hyperfine-1.15.json"), *better).output)
    contradiction = "--better higher overrules hyperfine, by which lower is better: time"
    assert (contradiction in shown) is is_told


@pytest.mark.parametrize(
    ("options", "taken", "below"),
    [
        ((), "throughput (higher is better)", "higher is better"),
        (("--better", "higher"), "throughput (higher is better)", "higher is better"),
        (
            ("--better", "lower"),
            "throughput (lower is better by --better, where the name says higher)",
            "lower is better",
        ),
    ],
)
def test_what_is_better_is_said_alike_and_no_benchmark_is_a_unit(
    ktrial: CommandLine, tmp_path: Path, options: tuple[str, ...], taken: str, below: str
) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("kernel,bench,throughput\n" + "x,pipe,10\nx,pipe,11\ny,pipe,12\ny,pipe,13\n")
    lines = ktrial("analyze", str(path), *options).output.splitlines()
    assert lines[0].startswith(f"rates.csv: numbers {taken} (--value)")
    assert lines[lines.index("rates.csv: pipe") + 1] == below


def test_an_infinite_f_is_still_json(ktrial: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "flat.csv"
    path.write_text("level,mean,sd,n\na,1,0.000001,3\nb,2,0.000001,3\nc,2,0,3\n")
    assert json.loads(ktrial("analyze", str(path), "--json").output)["families"]


def test_a_file_s_group_is_named_on_the_command_line(ktrial: CommandLine) -> None:
    control, muqss = (REPORTS / f"unixbench_{kind}.txt" for kind in ("control", "experimental"))
    result = words(ktrial("analyze", f"cfs={control}", f"muqss={muqss}").output)
    assert "against cfs" in result
    assert (
        "UnixBench score of muqss unixbench_experimental, recomputed from its twelve results: 2023.641"
        in result
    )


def test_a_file_with_an_equals_sign_in_its_name_is_a_file(ktrial: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "level=6.csv"
    path.write_text("level,value\na,1\n")
    assert ktrial("analyze", str(path)).status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.csv",), "nothing.csv cannot be read: No such file or directory."),
        ((KNOBS, "--baseline", "70"), "There is no group 70"),
        ((KNOBS, "--group-by", "levl"), "has no column levl (did you mean level?)"),
        ((KNOBS, "--margin", "much"), "--margin is 'much': a share is a percentage: \"1 %\"."),
        ((KNOBS, "--margin", "200%"), "it must be between"),
        ((KNOBS, "--margin", "0.5"), 'as a fraction this is "50 %", as a percentage it is "0.5 %"'),
        ((KNOBS, "--confidence", "5%"), "it must be between 50 % and 99.99 %"),
        ((KNOBS, "--better", "faster"), "faster"),
    ],
)
def test_mistakes_are_one_message_and_exit_2(
    ktrial: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    ran = ktrial("analyze", *arguments)
    assert ran.status == 2
    assert message in ran.messages


def test_names_from_a_file_cannot_move_the_cursor(ktrial: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("level,value\n\x1b[2Jevil\u202e,1\nb,2\nb,3\n")
    printed = ktrial("analyze", str(path)).output
    assert "evil" in printed
    assert not {"\x1b", "\u202e"} & set(printed)


@pytest.fixture
def blocks_with_a_tail(tmp_path: Path) -> str:
    """Typically 6 % faster; 1 trial in 10 takes twice as long."""
    rows = [
        f"{block},{arm},{(94 if arm == 'B' else 100) * (1 + 0.001 * ((7 * block + 3 * at) % 5)) * more:.6f}"
        for block in range(60)
        for at, arm in enumerate("AB")
        for more in [2 if arm == "B" and block % 10 == 0 else 1]
    ]
    path = tmp_path / "tail.csv"
    path.write_text("\n".join(["block,arm,time_ms", *rows]) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("options", "verdict", "about"),
    [
        ((), "✓ better", "of typical trials"),
        (("--estimand", "total"), "? inconclusive", "of all trials together"),
        (("--estimand", "tail"), "? inconclusive", "of the worst tenth of trials"),
    ],
)
def test_blocks_are_judged_by_what_is_asked_for(
    ktrial: CommandLine, blocks_with_a_tail: str, options: tuple[str, ...], verdict: str, about: str
) -> None:
    shown = words(ktrial("analyze", blocks_with_a_tail, "--better", "lower", *options).output)
    assert verdict in shown
    assert f"By the numbers alone, of 1 comparisons {about}: 1 {verdict[2:]}" in shown
    assert "B: typically 6 % faster; 1 trial in 10 of B takes twice as long: in total 3.4 % slower" in shown
    assert ("are not ruled out after 60 blocks" in shown) is (verdict[0] != "?")


def test_groups_that_are_not_in_blocks_are_judged_by_what_is_asked_for(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    rows = [f"{arm},{level + 0.01 * (run % 7)}" for arm, level in (("a", 10), ("b", 12)) for run in range(60)]
    path, few = tmp_path / "groups.csv", tmp_path / "few.csv"
    path.write_text("\n".join(["arm,time_ms", *rows]) + "\n")
    few.write_text("\n".join(["arm,time_ms", *rows[:20], *rows[60:80]]) + "\n")
    for estimand in ("typical", "total", "tail"):
        result = json.loads(
            ktrial("analyze", str(path), "--better", "lower", "--estimand", estimand, "--json").output
        )
        (comparison,) = result["families"][0]["comparisons"]
        assert (comparison["verdict"], comparison["estimand"]) == ("worse", estimand)
        assert comparison["unseen"] == pytest.approx(1 - 0.05 ** (1 / 60))
        assert comparison["ratio"] == pytest.approx(1.2, rel=0.01)
    for estimand, fewest in (("total", 30), ("tail", 60)):
        (comparison,) = json.loads(ktrial("analyze", str(few), "--estimand", estimand, "--json").output)[
            "families"
        ][0]["comparisons"]
        assert comparison["reason"].endswith(f": it takes {fewest}")


@pytest.mark.nightly  # some 9 seconds of CPU time
def test_plan_counts_what_a_verdict_on_all_trials_takes(ktrial: CommandLine) -> None:
    plans = [
        json.loads(ktrial("timed", "plan", "--effect", "5%", "--sd", "1%", "--json", *more).output)
        for more in ((), ("--estimand", "total"), ("--estimand", "tail"))
    ]
    assert [plan["find_the_effect"]["blocks"] for plan in plans] == [20, 30, 90]


def test_plan_says_blocks_and_hours(ktrial: CommandLine) -> None:
    result = words(ktrial("timed", "plan", "--effect", "1%", "--sd", "1%", "--block-time", "10min").output)
    assert "To find a change of 1 % in 95 % of studies: up to 60 blocks (10 h 0 min), on average 38" in result
    assert "if they were independent, 23 on average would be enough instead of 38" in result
    assert "To show that there is no change in 95 % of studies: up to 60 blocks (10 h 0 min)" in result


def test_plan_gives_json(ktrial: CommandLine) -> None:
    result = json.loads(ktrial("timed", "plan", "--effect", "2%", "--sd", "1%", "--json").output)
    assert result["find_the_effect"]["blocks"] == 30
    assert result["find_if_independent"]["blocks"] == 15
    assert result["find_the_effect"]["right"] >= 0.95


def test_plan_says_when_nothing_helps(ktrial: CommandLine) -> None:
    result = words(ktrial("timed", "plan", "--effect", "0.1%", "--sd", "20%").output)
    assert "more than 3840 blocks are needed: make the trials steadier first" in result


@pytest.mark.nightly  # some 18 seconds of CPU time
def test_plan_reads_a_calibration_and_a_a_blocks(ktrial: CommandLine, tmp_path: Path) -> None:
    row = MetricCalibration(
        workload="fork",
        metric="wall",
        blocks=20,
        ratio_spread=0.01414,
        false_alarms=0.03,
        smallest_effect=0.01,
        suggested_blocks=40,
    )
    stored = tmp_path / "calibration.json"
    stored.write_text(Calibration(machine="host", margin=0.01, metrics=(row,)).model_dump_json())
    assert "scatters by 1.41 %" in words(ktrial("timed", "plan", "--from-calibration", str(stored)).output)
    rows = [
        f"{block},{arm},{100 + (7 * block + 3 * at) % 5}"
        for block in range(20)
        for at, arm in enumerate("AB")
    ]
    blocks = tmp_path / "aa.csv"
    blocks.write_text("\n".join(["block,arm,time_ms", *rows]) + "\n")
    assert "To find a change of 1 %" in words(
        ktrial("timed", "plan", "--from-calibration", str(blocks)).output
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "how much this machine's numbers scatter: give one of them."),
        (("--sd", "1%", "--from-calibration", KNOBS), "numbers scatter: give one of them, not both."),
        (("--from-calibration", KNOBS), "A/A blocks need a column block"),
        (("--sd", "1%", "--effect", "0"), "a change of 0 cannot be found"),
        (("--sd", "1%", "--block-time", "long"), "--block-time: long is not a time"),
        (("--sd", "-1%"), "it must be between"),
        (("--sd", "1%", "--effect", "1"), 'as a percentage it is "1 %"'),
    ],
)
def test_mistakes_in_plans(ktrial: CommandLine, arguments: tuple[str, ...], message: str) -> None:
    ran = ktrial("timed", "plan", *arguments)
    assert ran.status == 2
    assert message in ran.messages


def test_a_machine_that_was_not_calibrated_is_told(ktrial: CommandLine) -> None:
    ran = ktrial("timed", "plan", "--from-calibration", "exact")
    assert ran.status != 0
    assert "has not been calibrated" in ran.messages
