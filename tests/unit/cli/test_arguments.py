"""Kernels and workloads without options: `ktrial compare 6.1 6.12 fork`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.command_line import KNOWN, STUDY, CommandLine, a_workload, has_names
from tests.support.report_records import FIVE, a_record
from tests.support.scripted import ScriptedMachine
from tests.support.stored_results import a_store

from ktrial.cli.command_line import BadUsage
from ktrial.cli.options.arguments import KernelsAndWorkloads, named_by, named_with_study
from ktrial.kernels.providers import full_name
from ktrial.store.store import open_store
from ktrial.studyfile.reader import load

OLD, NEW = "debian:6.1", "debian:6.12"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    command_line = CommandLine(monkeypatch, capsys)
    command_line.machine(ScriptedMachine())
    return command_line


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("6.12", "debian:6.12"),
        ("6.12:rt", "debian:6.12:rt"),
        ("6.12.90+deb12-cloud-amd64", "debian:6.12.90+deb12-cloud-amd64"),
        ("7.3~rc7", "debian:7.3~rc7"),
        ("debian:6.12", "debian:6.12"),
        ("host", "host"),
        ("6.1..6.12", "6.1..6.12"),
        ("612", "612"),
        ("v6.12", "v6.12"),
    ],
)
def test_a_bare_version_is_debians_kernel_and_other_names_stay(name: str, full: str) -> None:
    assert full_name(name) == full


@pytest.mark.parametrize(
    "words",
    [
        ("6.1", "6.12", "fork,pipe"),
        ("debian:6.1", "debian:6.12", "fork", "pipe"),
        ("6.1,6.12", "fork", "--workload", "pipe"),
        ("6.1", "--kernel", "6.12", "fork,pipe"),
        ("--kernel", "6.1", "--kernel", "debian:6.12", "--workload", "fork,pipe"),
    ],
    ids=" ".join,
)
def test_arguments_and_options_name_the_same_study(
    words: tuple[str, ...], cli: CommandLine, tmp_path: Path
) -> None:
    first = cli("compare", "--kernel", OLD, "--kernel", NEW, "--workload", "fork,pipe", "--no-html")
    assert first.status == 0
    same = cli("compare", *words, "--no-html", "--json")
    assert json.loads(same.output)["question"] == f"How does {NEW} compare with {OLD}?"
    with open_store(tmp_path / "ktrial.db") as store:
        (study,) = store.studies()
        assert [use.label for use in study.study.workloads] == ["fork", "pipe"]


def test_a_tour_stands_where_a_workload_does() -> None:
    named = named_by(["6.1", "6.12", "tour-ext4,fork"])
    assert (named.kernels, named.workloads) == (("debian:6.1", "debian:6.12"), ("tour-ext4", "fork"))


def test_a_workload_is_named_as_results_name_it_with_its_parameters(cli: CommandLine, tmp_path: Path) -> None:
    label = "hackbench(groups=2, transport=pipe)"
    assert cli("compare", "6.1", "6.12", f"fork,{label}", "--no-html").status == 0
    with open_store(tmp_path / "ktrial.db") as store:
        (study,) = store.studies()
    fork, hackbench = study.study.workloads
    assert (fork.label, hackbench.label) == ("fork", label)
    assert hackbench.parameters == {"groups": 2, "transport": "pipe"}


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        ("hackbench(groups)", "'groups' is no parameter; write hackbench(NAME=VALUE, NAME=VALUE)"),
        ("hackbench(groups=2, groups=3)", "'groups=3' is no parameter"),
        ("hackbench(gruops=2)", "no parameter gruops (did you mean groups?)"),
        ("hackbench(groups=many)", "groups is 'many'; give"),
        ("hackbench(groups=2", "hackbench(groups=2: the parenthesis is not closed"),
        ("hakbench(groups=2)", "hakbench(groups=2) is neither a kernel nor a workload"),
    ],
)
def test_parameters_that_a_workload_has_not_are_refused(label: str, problem: str, cli: CommandLine) -> None:
    result = cli("check", "6.1", "6.12", label)
    assert result.status == 2
    assert problem in " ".join(result.messages.split())


@pytest.mark.parametrize(
    "words",
    [
        ("try", "6.1", "6.12", "fork"),
        ("compare", "6.1", "6.12", "fork"),
        ("scale", "6.1", "6.12", "fork"),
        ("check", "6.1", "6.12", "fork"),
        ("check", "baseline", "save", "before", "6.1", "fork"),
        ("explain", "6.1", "6.12", "fork"),
        ("explain", "counters", "6.1", "6.12", "fork"),
        ("profile", "6.1", "fork"),
        ("bisect", "knobs", "6.1", "fork"),
        ("matrix", "6.1", "6.12", "fork"),
        ("matrix", "5.10..6.12", "fork"),
    ],
    ids=" ".join,
)
def test_every_command_that_takes_them_says_what_a_mistyped_workload_is_near_to(
    words: tuple[str, ...], cli: CommandLine
) -> None:
    result = cli(*words[:-1], "frok")
    assert result.status == 2
    assert "frok is neither a kernel nor a workload (did you mean fork?)." in result.messages
    assert "ktrial workload list" in result.messages


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        (("compare",), "Which kernels are compared?", "ktrial compare 6.1 6.12 fork"),
        (("compare", "6.1", "fork"), "What is debian:6.1 compared with?", "ktrial compare 6.1 6.12"),
        (("compare", "6.1..6.12", "fork"), "6.1..6.12 is a range of kernels", "ktrial matrix"),
        (("compare", "6.1", "bzImage", "fork"), "bzImage is a file", "path:bzImage"),
        (("compare", "6.1", "debain:6.12", "fork"), "no provider 'debain'", ""),
        (("scale", "fork"), "Which kernel scales?", "ktrial scale 6.12 open2"),
        (("profile", "6.1", "6.12", "fork"), "one kernel at a time", "6.12 fork"),
        (("profile", "6.1", "fork,pipe"), "fork, pipe: name one workload at a time", "fork or pipe"),
        (("profile", "6.1", "--workload", "fork,pipe"), "one workload at a time: fork or pipe", ""),
        (
            ("explain", "6.1", "6.12", "fork", "pipe"),
            "fork, pipe: name one workload at a time",
            "fork or pipe",
        ),
        (("check", "6.1", "6.12", "6.18"), "debian:6.18: a check compares two kernels", "ktrial compare"),
        (("check", "6.1"), "Which kernel is measured, and against which?", "ktrial check 6.1 6.12"),
        (("matrix", "recommend", "6.1"), "all measured kernels are ranked", "ktrial workload list"),
        (("matrix", "recommend"), "Which workloads?", "ktrial matrix recommend fork,pipe"),
        (
            ("bisect", "knobs", "6.1", "6.12", "fork"),
            "the knobs of one kernel are searched",
            "ktrial bisect knobs",
        ),
        (("bisect", "versions", "6.1..6.12", "6.18"), "A and B come before it", "workload list"),
    ],
    ids=str,
)
def test_a_mistake_is_told_with_what_to_type(
    words: tuple[str, ...], problem: str, hint: str, cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "bzImage").write_bytes(b"MZ")
    result = cli(*words)
    assert result.status == 2
    error, _, advice = result.messages.partition("\nhint: ")
    assert problem in error
    assert hint in advice
    assert not (tmp_path / "ktrial.db").exists(), "nothing is kept of it"


@pytest.mark.parametrize(
    "words",
    [
        ("6.1", "7.2", "fork"),
        ("fork", "6.1", "7.2"),
        ("6.1,debian:7.2", "fork"),
        ("fork", "--kernels", "6.1,7.2"),
        ("6.1", "fork", "--kernels", "7.2"),
    ],
    ids=" ".join,
)
def test_a_history_takes_kernels_beside_its_workload(
    words: tuple[str, ...], cli: CommandLine, tmp_path: Path
) -> None:
    store = str(a_store(tmp_path / "five", a_record(FIVE, ("fork", "pipe"))))
    (line,) = json.loads(cli("history", *words, "--store", store, "--json").output)["lines"]
    assert [point["version"] for point in line["points"]] == ["debian:6.1", "debian:7.2"]


def test_a_history_is_of_one_workload_and_says_what_a_mistake_is(cli: CommandLine, tmp_path: Path) -> None:
    store = str(a_store(tmp_path / "five", a_record(FIVE, ("fork", "pipe"))))
    for words, problem in (
        (("6.1", "6.12"), "Which workload?"),
        (("fork", "pipe"), "fork, pipe: name one workload at a time."),
        (("a..b", "fork"), "Kernels a..b: a is not a version."),
    ):
        result = cli("history", *words, "--store", store)
        assert result.status == 2
        assert problem in result.messages
    result = cli("history", "6.12..6.18", "fork", "--json", "--store", store)
    (line,) = json.loads(result.output)["lines"]
    assert [point["version"] for point in line["points"]] == ["debian:6.12", "debian:6.18"]


def test_a_word_that_is_a_kernel_and_a_workload_has_to_be_said_by_an_option(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {**KNOWN.workloads, "host": a_workload("host"), "6.12": a_workload("6.12")}
    has_names(monkeypatch, replace(KNOWN, workloads=both))
    for word in ("host", "6.12"):
        result = cli("compare", "6.1", word, "fork")
        assert result.status == 2
        assert f"{word} is both a kernel and a workload." in result.messages
        assert f"hint: say which: --kernel {word} or --workload {word}" in result.messages
    assert cli("compare", "6.1", "--kernel", "6.12", "--workload", "6.12", "--no-html").status == 0


def test_the_first_word_of_an_explanation_is_a_study_unless_it_is_a_kernel_or_a_workload(
    cli: CommandLine, tmp_path: Path
) -> None:
    store = str(a_store(tmp_path / "store", a_record()))
    assert named_with_study(["quick-0", "fork"], store) == KernelsAndWorkloads((), ("fork",), "quick-0")
    assert named_with_study(["3", "fork"], store) == KernelsAndWorkloads((), ("fork",), "3")
    assert named_with_study(["mine.toml"], store) == KernelsAndWorkloads((), (), "mine.toml")
    assert named_with_study(["6.1", "6.12", "fork"], store) == KernelsAndWorkloads((OLD, NEW), ("fork",))
    assert named_with_study(["fork"], store) == KernelsAndWorkloads((), ("fork",)), "of the latest study"


def test_a_study_that_is_called_like_a_workload_or_a_kernel_has_to_be_named_by_its_number(
    cli: CommandLine, tmp_path: Path
) -> None:
    for name in ("fork", "host"):
        (tmp_path / f"{name}.toml").write_text(STUDY)
        assert cli("run", f"{name}.toml", "--no-html").status == 0
    with pytest.raises(BadUsage, match="fork is both a stored study and a workload") as told:
        named_with_study(["fork"], None)
    assert "--workload fork" in told.value.advice
    assert "ktrial list" in told.value.advice
    with pytest.raises(BadUsage, match="host is both a stored study and a kernel") as told:
        named_with_study(["host", "6.12", "fork"], None)
    assert "--kernel host" in told.value.advice


def test_a_path_stays_whole_and_commas_divide_the_rest(cli: CommandLine) -> None:
    assert named_by(["path:/a,b/vmlinux", "6.1,6.12"]).kernels == ("path:/a,b/vmlinux", OLD, NEW)
    assert named_by(["fork,pipe", "./mine.toml"]).workloads == ("fork", "pipe", "./mine.toml")
    assert named_by(["..6.1", "fork"], ranges=True) == KernelsAndWorkloads(("..6.1",), ("fork",))


def test_a_study_file_may_say_the_version_alone_and_is_the_same_study(tmp_path: Path) -> None:
    text = 'workloads = ["fork"]\n[factors.kernel]\nlevels = ["{}6.1", "{}6.12"]\nbaseline = "{}6.12"\n'
    machine = 'workloads = ["fork"]\n[machine]\nkernel = "{}6.12"\n[factors.size]\nkind = "memory"\n'
    machine += 'levels = ["512M", "1G"]\n'
    for name, study in (("kernels", text), ("machine", machine)):
        file = tmp_path / f"{name}.toml"
        file.write_text(study.replace("{}", "debian:"))
        full = load(file, KNOWN)
        file.write_text(study.replace("{}", ""))
        assert load(file, KNOWN) == full


def test_a_studys_own_kernel_keeps_a_name_that_looks_like_a_version(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'workloads = ["fork"]\n[factors.kernel]\nlevels = ["6.12", "debian:6.1"]\n'
        '[kernels."6.12"]\nsource = "debian:linux-source-6.12"\n'
    )
    study = load(file, KNOWN)
    assert study.factors[0].levels == ("6.12", "debian:6.1")
    assert set(study.builds) == {"6.12"}
