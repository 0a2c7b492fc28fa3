"""Each command's help ends with examples, which parse, and tells the defaults of its options."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from ktrial.cli.app import app
from ktrial.cli.command_line import examples_of
from ktrial.knobs.catalogue import all_knobs
from ktrial.workloads import descriptions

SETS = {"default", "quick"}
"""What `--workloads` takes beside workloads."""


def loaded(command: Any) -> Any:
    return command.load() if hasattr(command, "load") else command


def leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, entry in group.commands.items():
        command = loaded(entry)
        if hasattr(command, "commands"):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


ROOT_COMMAND: Any = typer.main.get_command(app)
LEAVES = dict(leaves(ROOT_COMMAND))
EXAMPLES = [(path, line) for path, command in LEAVES.items() for line in examples_of(command)]


def context_of(path: tuple[str, ...], words: list[str], **extra: Any) -> Any:
    """What the command is called with, without running it."""
    above = ROOT_COMMAND.make_context("ktrial", [], resilient_parsing=True)
    return LEAVES[path].make_context(" ".join(path), words, parent=above, **extra)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_help_ends_with_one_to_three_examples(path: tuple[str, ...]) -> None:
    lines = examples_of(LEAVES[path])
    assert 1 <= len(lines) <= 3
    shown = LEAVES[path].get_help(context_of(path, [], resilient_parsing=True))
    assert shown.rstrip("\n").endswith("\n\nExamples:\n" + "\n".join(f"  {line}" for line in lines))
    assert max(map(len, lines)) <= 78


@pytest.mark.parametrize(("path", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_an_example_parses_and_names_what_there_is(path: tuple[str, ...], line: str) -> None:
    program, *words = shlex.split(line)
    assert (program, *words[: len(path)]) == ("ktrial", *path)
    given = context_of(path, words[len(path) :]).params
    named = [given.get("workload"), given.get("workloads")]
    texts = [text for value in named if value for text in ([value] if isinstance(value, str) else value)]
    workloads = {name for text in texts for name in text.split(",")}
    assert workloads <= SETS | set(descriptions())
    knobs = {word.partition("=")[0] for word in words if word.startswith("vm.")}
    assert knobs <= {knob.name for knob in all_knobs()}


def test_an_example_that_does_not_parse_is_found() -> None:
    with pytest.raises(typer.TyperException, match="No such option"):
        context_of(("show",), ["quick", "--jsno"])


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_help_tells_the_default_of_each_option_that_has_one(path: tuple[str, ...]) -> None:
    context = context_of(path, [], resilient_parsing=True)
    untold = []
    for option in LEAVES[path].get_params(context):
        if option.param_type_name != "option" or option.default in (None, False, True):
            continue
        if f"default: {option.default}" not in option.get_help_record(context)[1]:
            untold.append(option.opts[0])
    assert untold == []


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_kernels_and_workloads_complete(path: tuple[str, ...]) -> None:
    """What they offer depends on the cache and the store: here, that they ask for it."""
    context = context_of(path, [], resilient_parsing=True)
    named = {"--kernel", "--kernels", "--workload", "--workloads"}
    options = [one for one in LEAVES[path].get_params(context) if named & set(one.opts)]
    silent = [one.opts[0] for one in options if getattr(one, "_custom_shell_complete", None) is None]
    assert silent == []


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_help_tells_what_holds_without_these_options(path: tuple[str, ...]) -> None:
    """Their defaults are decided later: a study has its own, a baseline too."""
    context = context_of(path, [], resilient_parsing=True)
    decided = {"--margin", "--memory", "--cpus", "--perturbations", "--max", "--jobs"}
    options = [one for one in LEAVES[path].get_params(context) if decided & set(one.opts)]
    texts = {one.opts[0]: one.get_help_record(context)[1] for one in options if not one.required}
    assert [name for name, text in texts.items() if not ("else" in text or "default: " in text)] == []
