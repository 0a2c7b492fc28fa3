"""Each command's help ends with examples, which parse, and tells what holds without each of its options."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from tests.support.command_line import CommandLine
from tests.support.places import ROOT
from tests.support.scripted import ScriptedMachine

from ktrial.cli.app import app
from ktrial.cli.command_line import KtrialCommand, alone, as_this_command_says, examples_of
from ktrial.cli.options.arguments import is_workload, named_by, named_with_study
from ktrial.knobs.catalogue import all_knobs
from ktrial.workloads import descriptions

SETS = {"default", "quick"}
"""What `--workloads` takes beside workloads."""
PAIRS = (("--kernel", "--kernels"), ("--workload", "--workloads"))


def leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, entry in group.commands.items():
        yield from leaves_of(entry, (*path, name))


def leaves_of(entry: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    command = entry.load() if hasattr(entry, "load") else entry
    if hasattr(command, "commands"):
        yield from leaves(command, path)
    else:
        yield path, command
    for word, form in getattr(entry, "forms", {}).items():
        yield from leaves_of(form, (*path, word))


ROOT_COMMAND: Any = typer.main.get_command(app)
LEAVES = dict(leaves(ROOT_COMMAND))
EXAMPLES = [(path, line) for path, command in LEAVES.items() for line in examples_of(command)]


def context_of(path: tuple[str, ...], words: list[str], **extra: Any) -> Any:
    """What the command is called with, without running it."""
    above = ROOT_COMMAND.make_context("ktrial", [], resilient_parsing=True)
    return LEAVES[path].make_context(" ".join(path), words, parent=above, **extra)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_help_ends_with_examples_and_tells_what_holds_without_each_option(path: tuple[str, ...]) -> None:
    command, context = LEAVES[path], context_of(path, [], resilient_parsing=True)
    lines = examples_of(command)
    assert 1 <= len(lines) <= 3
    shown = command.get_help(context)
    assert shown.rstrip("\n").endswith("\n\nExamples:\n" + "\n".join(f"  {line}" for line in lines))
    assert max(map(len, lines)) <= 78
    options = [option for option in command.get_params(context) if option.param_type_name == "option"]
    texts = {option.opts[0]: option.get_help_record(context)[1] for option in options if not option.hidden}
    untold = [
        option.opts[0]
        for option in options
        if option.default not in (None, False, True)
        and f"default: {option.default}" not in texts[option.opts[0]]
    ]
    # The defaults of these are decided later: a study has its own, a baseline too.
    decided_later = {"--margin", "--memory", "--cpus", "--perturbations", "--max", "--jobs"}
    untold += [
        option.opts[0]
        for option in options
        if decided_later & set(option.opts) and not option.required
        if "else" not in texts[option.opts[0]] and "default: " not in texts[option.opts[0]]
    ]
    assert untold == []
    completed = {name for pair in PAIRS for name in pair}
    # What they offer depends on the cache and the store: here, that they ask for it.
    silent = [
        option.opts[0]
        for option in options
        if completed & set(option.opts) and getattr(option, "_custom_shell_complete", None) is None
    ]
    assert silent == []


@pytest.mark.parametrize(("path", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_an_example_parses_and_names_what_there_is(path: tuple[str, ...], line: str) -> None:
    program, *words = shlex.split(line)
    assert (program, *words[: len(path)]) == ("ktrial", *path)
    params = context_of(path, words[len(path) :]).params
    named = [params.get("workload"), params.get("workloads")]
    texts = [text for value in named if value for text in ([value] if isinstance(value, str) else value)]
    workloads = {name for text in texts for name in text.split(",")}
    assert workloads <= SETS | set(descriptions())
    knobs = {word.partition("=")[0] for word in words if word.startswith("vm.")}
    assert knobs <= {knob.name for knob in all_knobs()}


def test_an_example_that_does_not_parse_is_found() -> None:
    with pytest.raises(typer.TyperException, match="No such option"):
        context_of(("show",), ["quick", "--jsno"])


def test_both_names_mean_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    cli = CommandLine(monkeypatch, capsys)
    cli.machine(ScriptedMachine())
    kernels = ("--kernels", "debian:6.1", "--kernels=debian:6.12")
    result = cli("compare", *kernels, "--workloads", "fork,pipe", "--no-html")
    assert (result.status, "debian:6.12" in result.output, "pipe" in result.output) == (0, True, True)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_each_command_takes_both_names_where_it_has_one(path: tuple[str, ...]) -> None:
    params = LEAVES[path].params
    names = {name for parameter in params for name in parameter.opts}
    for pair in PAIRS:
        if not names.isdisjoint(pair):
            result = as_this_command_says([*pair, f"{pair[0]}=x", f"{pair[1]}=x"], params)
            assert {word.partition("=")[0] for word in result} <= names


def test_words_of_a_program_of_ones_own_stay_as_they_are() -> None:
    words = ["--kernels", "a", "--", "x", "--kernels", "--workloads=2"]
    result = as_this_command_says(words, LEAVES["compare",].params)
    assert result == ["--kernel", "a", "--", "x", "--kernels", "--workloads=2"]


@dataclass(frozen=True)
class Family:
    """Two options that commands share, and what a command sets itself."""

    first: Annotated[str, typer.Option("--first", help="One.")]
    second: Annotated[int, typer.Option("--second", help="Two.")] = 2
    third: int = 3


def test_the_fields_of_a_family_are_the_options_of_a_command() -> None:
    calls: list[tuple[str, Family]] = []

    def command(name: Annotated[str, typer.Argument()], name_of_family: Family) -> None:
        calls.append((name, name_of_family))

    command_line = alone("try-it", command, KtrialCommand)
    assert [parameter.opts[0] for parameter in command_line.params][:3] == ["name", "--first", "--second"]
    command_line.main(["x", "--first", "a"], standalone_mode=False)
    command_line.main(["y", "--first", "b", "--second", "7"], standalone_mode=False)
    assert calls == [("x", Family("a")), ("y", Family("b", 7))]
    with pytest.raises(typer.TyperException, match="first"):
        command_line.main(["x"], standalone_mode=False)


PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_WHOLE = re.compile(r"[…|<>;$&(]|# exit 2|\b[A-Z]\.\.[A-Z]\b")
"""Lines that only a shell reads, mistakes that are shown, and patterns."""


def commands_of(page: Path) -> Iterator[str]:
    """The page's command lines of ktrial that can be read as they are."""
    for block in BLOCK.findall(page.read_text()):
        for line in block.splitlines():
            if line.removeprefix("$ ").startswith("ktrial ") and not NOT_WHOLE.search(
                line.removeprefix("$ ")
            ):
                yield line.removeprefix("$ ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_command_lines_of_the_documentation_parse_and_name_kernels_and_workloads(page: Path) -> None:
    for line in commands_of(page):
        words = shlex.split(line, comments=True)[1:]
        if words == ["--version"]:
            continue
        path = max((path for path in LEAVES if (*path,) == tuple(words[: len(path)])), key=len)
        params = context_of(path, words[len(path) :]).params
        arguments = params.get("arguments") or []
        if path[0] == "explain":
            named_with_study(arguments, str(ROOT / "nowhere.db"))
        elif path[0] == "series":
            assert not arguments or is_workload(arguments[-1]) or ".." in arguments[0]
        else:
            named_by(arguments, ranges=path == ("matrix",))


def test_a_page_of_commands_is_read() -> None:
    assert "ktrial check 6.1 6.1 syscall" in commands_of(ROOT / "docs" / "check.md")
