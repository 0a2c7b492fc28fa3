"""The documentation's commands work, and print what the documentation says that they print.

A ```console block is a session: lines that begin with `$ ` are run one after another, in a directory that all
blocks of one page share; the lines below a command must appear in its output, in this order, where `…` stands
for anything. `# exit 2` after a command is the exit status that is expected (0 where nothing is said). A line
that begins with `# ` is root's: nobody else runs it.
A ```toml block whose first line is `# file: NAME` is written into that directory first.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.support.places import ROOT
from tests.support.real_runs import ktrial

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OF_EACH_CHANGE = ROOT / "README.md"
"""Of the pages that boot kernels: what everybody tries first. The others are tested at night."""
LONG = {ROOT / "docs" / name for name in ("history.md", "host.md", "knobs.md", "five-papers.md")}
"""Pages of many commands: 10 to 40 s each."""
_EXIT = re.compile(r"\s+# exit (\d+)$")
_ANCHOR = re.compile(r"\]\(([^)#\s:]*)#([^)\s]+)\)")
LONG_PAGE = 1000
"""Words; a page that has more begins with a summary. CONTRIBUTING begins with its commands."""
MOST_WORDS = 53_000
"""Of all pages together, without blocks that docs/write_numbers.py writes."""
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@dataclass(frozen=True)
class Spoken:
    """One command of a page and what it should print."""

    command: str
    status: int
    output: tuple[str, ...]
    is_of_root: bool = False


def blocks(text: str, language: str) -> list[str]:
    return [body for kind, body in _BLOCK.findall(text) if kind == language]


def session(block: str) -> list[Spoken]:
    spoken: list[Spoken] = []
    for line in block.splitlines():
        if line.startswith(("$ ", "# ")):
            status = _EXIT.search(line)
            command = _EXIT.sub("", line[2:])
            spoken.append(Spoken(command, int(status[1]) if status else 0, (), line.startswith("# ")))
        elif spoken and line.strip():
            spoken[-1] = replace(spoken[-1], output=(*spoken[-1].output, line))
    return spoken


def pattern(line: str) -> re.Pattern[str]:
    """The line with runs of spaces and `…` standing for whatever is there."""
    pieces = [r"\s+".join(re.escape(word) for word in part.split()) for part in line.split("…")]
    return re.compile(r".*?".join(pieces))


def missing(expected: tuple[str, ...], output: str) -> list[str]:
    lines = iter(output.splitlines())
    return [line for line in expected if not any(pattern(line).search(printed) for printed in lines)]


def prepare(page: Path, directory: Path) -> None:
    for block in blocks(page.read_text(), "toml"):
        first, _, rest = block.partition("\n")
        if name := re.match(r"# file: (\S+)", first):
            (directory / name[1]).write_text(rest)
    shutil.copytree(ROOT / "studies", directory / "studies")


def environment(directory: Path) -> dict[str, str]:
    binaries = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": binaries,
        "KTRIAL_STORE": str(directory / "ktrial.db"),
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }


FOR_THE_SHELL = frozenset("|;&<>`$*?~'\"")


def ran(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """The command's end. What needs a shell has one."""
    first, *arguments = command.split()
    if first == "ktrial" and not FOR_THE_SHELL & set(command):
        return ktrial(arguments, environment(directory), directory, together=True)
    return subprocess.run(
        ["sh", "-c", command],
        cwd=directory,
        env=environment(directory),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def spoken_pages() -> list[object]:
    pages = [page for page in PAGES if page.exists() and blocks(page.read_text(), "console")]
    return [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.nightly] if page in LONG or (page != OF_EACH_CHANGE and boots(page)) else [],
        )
        for page in pages
    ]


def boots(page: Path) -> bool:
    """Whether a command of the page boots a kernel: it names one, is not refused, and is not only planned."""
    commands = (command for block in blocks(page.read_text(), "console") for command in session(block))
    return any(
        NAMES_A_KERNEL.search(spoken.command)
        and spoken.status != BAD_USAGE
        and "--dry-run" not in spoken.command
        for spoken in commands
    )


NAMES_A_KERNEL = re.compile(
    r"ktrial (?:try|compare|check|explain|profile|scale|matrix|bisect)\b.* \d+\.\d+|--kernel debian:"
)
BAD_USAGE = 2


@pytest.mark.guest
@pytest.mark.parametrize("page", spoken_pages())
def test_every_command_of_a_page_works_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    prepare(page, tmp_path)
    for block in blocks(page.read_text(), "console"):
        for spoken in session(block):
            if spoken.is_of_root and os.geteuid() != 0:
                continue
            ended = ran(spoken.command, tmp_path)
            assert ended.returncode == spoken.status, f"$ {spoken.command}\n{ended.stdout}"
            assert not missing(spoken.output, ended.stdout), f"$ {spoken.command}\n{ended.stdout}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    targets = [link for link in _LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=lambda page: page.name)
def test_every_link_to_a_heading_leads_to_one(page: Path) -> None:
    links = [(target or page.name, anchor) for target, anchor in _ANCHOR.findall(page.read_text())]
    pages = [(page.parent / target, anchor) for target, anchor in links if target.endswith(".md")]
    assert [(file.name, anchor) for file, anchor in pages if anchor not in headings(file.read_text())] == []


def test_a_link_to_a_heading_that_is_gone_is_seen() -> None:
    assert headings("# A page\n\n## What `ktrial check` needs, and why\n") == {
        "a-page",
        "what-ktrial-check-needs-and-why",
    }


def headings(text: str) -> set[str]:
    """The anchors of a page's headings, as mkdocs and GitHub make them."""
    lines = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE).splitlines()
    titles = [line.lstrip("# ") for line in lines if line.startswith("#")]
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_long_page_begins_with_a_summary(page: Path) -> None:
    text = page.read_text()
    if len(words(text)) > LONG_PAGE and page != ROOT / "CONTRIBUTING.md":
        assert "\n**In short**" in text.partition("\n## ")[0]


def test_the_documentation_keeps_to_its_length() -> None:
    assert sum(len(words(page.read_text())) for page in PAGES) <= MOST_WORDS


def test_what_is_counted_is_counted_per_operation() -> None:
    """One wording in documentation, help and outputs."""
    otherwise = re.compile(r"\b(?:instructions|cycles|bytes|nanoseconds|counters|CPUs),? an operation")
    texts = (*PAGES, *ROOT.glob("src/**/*.py"), *ROOT.glob("src/**/*.j2"))
    assert [path for path in texts if otherwise.search(path.read_text())] == []


def words(text: str) -> list[str]:
    """What a person reads: neither marks of tables, nor blocks that docs/write_numbers.py writes."""
    without_blocks = re.sub(r"^<!-- numbers: .*?^<!-- end -->$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [word for word in without_blocks.split() if re.search(r"\w", word)]


def test_marks_and_blocks_are_no_words() -> None:
    block = "<!-- numbers: some -->\n| 1 | 2 |\n<!-- end -->\n"
    assert words(f"Two words.\n\n{block}\n| cell |\n| --- |\n") == ["Two", "words.", "cell"]


def test_a_page_that_promises_what_is_not_printed_is_found_out() -> None:
    (spoken,) = session("$ ktrial list  # exit 3\nname  …  trials\nnever printed\n")
    assert spoken == Spoken("ktrial list", 3, ("name  …  trials", "never printed"))
    assert missing(spoken.output, "name   created  trials\nquick") == ["never printed"]
