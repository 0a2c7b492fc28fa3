"""`ktrial help`: the documentation comes along, and whatever ktrial advises to read can be read."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.places import ROOT

from ktrial.cli.commands import help

_ADVISED = re.compile(r"ktrial help (?!lists)([a-z0-9-]+)")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.delenv("COLUMNS", raising=False)
    return CommandLine(monkeypatch, capsys)


def said_texts(tree: ast.AST) -> Iterator[str]:
    """Every text of a module that it may print: all but docstrings, apart from those of errors."""
    silent = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        for statement in node.body[isinstance(node, ast.ClassDef) and bool(node.bases) :]
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


@functools.cache
def all_said() -> list[tuple[str, str]]:
    """Of the files that name a page or a topic at all: to parse the others takes seconds."""
    files = {file: file.read_text() for file in sorted((ROOT / "src/ktrial").rglob("*.py"))}
    naming = {file: text for file, text in files.items() if "docs/" in text or "help " in text}
    return [(file.name, said) for file, text in naming.items() for said in said_texts(ast.parse(text))]


def test_no_message_sends_its_reader_to_a_file_that_a_wheel_has_not() -> None:
    named = [(file, text) for file, text in all_said() if re.search(r"docs/[a-z/-]+\.md", text)]
    assert named == []


def test_every_topic_that_a_message_names_is_there() -> None:
    named = {topic for _, text in all_said() for topic in _ADVISED.findall(text)}
    assert {"studies", "fleet", "schedulers", "guest-protocol"} <= named
    assert named <= set(help.pages())


def test_topics_are_listed_with_what_they_tell(cli: CommandLine) -> None:
    result = cli("help")
    assert result.status == 0
    for page in help.pages().values():
        assert any(line.split()[:1] == [page.topic] for line in result.output.splitlines())
    assert "Study files" in result.output


@pytest.mark.parametrize("topic", help.pages())
def test_a_page_is_shown_without_markup(cli: CommandLine, topic: str) -> None:
    result = cli("help", topic)
    assert result.status == 0
    assert help.page(topic).title.replace("`", "").split()[0] in result.output
    assert not re.search(r"^\s*<!--", result.output, re.MULTILINE)
    assert not re.search(r"\]\([a-z/.-]+\.md", result.output)


def test_links_between_pages_are_commands(cli: CommandLine) -> None:
    assert "ktrial help verdicts" in " ".join(cli("help", "commands").output.split())


def test_a_command_without_a_page_of_its_own_is_in_the_page_of_commands(cli: CommandLine) -> None:
    assert cli("help", "compare").output == cli("help", "commands").output
    assert cli("help", "docs/studies.md").output == cli("help", "studies").output


def test_a_topic_that_is_not_there_is_told_with_what_is_near(cli: CommandLine) -> None:
    result = cli("help", "study")
    assert result.status == 2
    assert result.messages.startswith("ktrial: error: There is no topic study (did you mean studies?)")


def test_an_installation_without_its_documentation_says_so(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ktrial.cli.commands.help.package_directory", lambda: tmp_path / "a" / "b" / "c")
    result = cli("help", "studies")
    assert (result.status, "this installation is incomplete" in result.messages) == (1, True)
