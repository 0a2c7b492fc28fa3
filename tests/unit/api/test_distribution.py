"""What distributions install beside the program: man pages, completions, CI templates; the site's pages."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.places import ROOT

from ktrial.cli.app import COMMANDS

sys.path.insert(0, str(ROOT / "distribution"))
import command_line_files


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    pages: dict[str, str] = command_line_files.man_pages()
    return pages


def test_every_command_has_a_man_page_and_the_overview_names_it(pages: dict[str, str]) -> None:
    for name in COMMANDS:
        its = [page for page in pages if page == f"ktrial-{name}.1" or page.startswith(f"ktrial-{name}-")]
        assert its, name
        assert f"\\fBktrial {name}" in pages["ktrial.1"]


def test_man_pages_have_their_sections_in_order_and_no_stray_requests(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        sections = re.findall(r"^\.SH (.+)$", text, re.MULTILINE)
        assert sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], name
        requests = set(re.findall(r"^\.(\S+)", text, re.MULTILINE))
        assert requests <= {"TH", "SH", "TP", "PP", "nf", "fi"}, name
        assert " \\- " in text, name
        assert not re.search(r"(?<!\\)--", text), name


def test_a_page_tells_every_option(pages: dict[str, str]) -> None:
    for option in ("--only", "--perturbations", "--signers", "--allow-host-files", "--json"):
        assert option.replace("-", "\\-") in pages["ktrial-replicate.1"]
    assert "ktrial replicate quick.zip" in pages["ktrial-replicate.1"]


def test_the_same_ktrial_gives_the_same_files(pages: dict[str, str], tmp_path: Path) -> None:
    written = command_line_files.write(tmp_path)
    assert {path.name for path in written} == {*pages, "ktrial", "_ktrial", "ktrial.fish"}
    assert command_line_files.man_pages() == pages


def test_completions_are_scripts_of_their_shells(tmp_path: Path) -> None:
    completions = command_line_files.completions()
    bash = tmp_path / "ktrial"
    bash.write_text(completions["bash-completion/completions/ktrial"])
    subprocess.run(["bash", "-n", bash], check=True)
    assert completions["zsh/site-functions/_ktrial"].startswith("#compdef ktrial")
    assert completions["fish/vendor_completions.d/ktrial.fish"].startswith("complete ")
    assert all("_KTRIAL_COMPLETE" in text for text in completions.values())


def test_ci_templates_call_what_there_is() -> None:
    action = yaml.safe_load((ROOT / "distribution/github-action/action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    scripts = [step["run"] for step in action["runs"]["steps"]]
    template = yaml.safe_load((ROOT / "distribution/gitlab-template.yml").read_text())
    scripts += template[".ktrial-check"]["script"]
    called = [script for script in scripts if re.search(r'ktrial"? check ', script)]
    assert len(called) == 2
    for script in scripts:
        # What an input says is never part of a script's text, where it could be a command.
        assert "${{" not in script
    options = option_names()
    for option in re.findall(
        r" (--[a-z]+) ", " ".join(script for script in scripts if "ktrial check" in script)
    ):
        assert option in options


def option_names() -> set[str]:
    page = command_line_files.man_pages()["ktrial-check.1"].replace("\\-", "-")
    return set(re.findall(r"--[a-z-]+", page))


def test_the_container_has_all_that_running_needs() -> None:
    text = (ROOT / "distribution/Containerfile").read_text()
    packages = (ROOT / "setup/system-packages").read_text()
    running = packages[packages.index("run_packages()") : packages.index("build_packages()")]
    needed = re.findall(r"^    need \S+ (\S+) ", running, re.MULTILINE)
    assert "qemu-system-x86" in needed
    assert [package for package in needed if package not in text] == []


def test_the_site_has_every_page() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed = {page for part in site["nav"] for page in named(part)}
    docs = ROOT / "docs"
    there = {str(page.relative_to(docs)) for page in (*docs.glob("*.md"), *docs.glob("architecture/*.md"))}
    assert listed == there
    assert site["strict"] is True


def named(part: Any) -> list[str]:
    if isinstance(part, str):
        return [part]
    return [page for pages in part.values() for each in pages for page in named(each)]
