"""Writes what an installation has of the command line beside the program: man pages and shell completions.

    python distribution/command_line_files.py DIRECTORY

Below DIRECTORY come man/man1/*.1, bash-completion/completions/ktrial, zsh/site-functions/_ktrial and
fish/vendor_completions.d/ktrial.fish: the layout of /usr/share. Everything is read from the commands
themselves, and the same ktrial gives the same bytes.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from ktrial.cli.app import app
from ktrial.cli.command_line import examples_of
from ktrial.installation import VERSION

COMPLETIONS = {
    "bash": "bash-completion/completions/ktrial",
    "zsh": "zsh/site-functions/_ktrial",
    "fish": "fish/vendor_completions.d/ktrial.fish",
}
_SECTION = "1"


def man_pages() -> dict[str, str]:
    """File name → page: one for ktrial, one for each command."""
    root: Any = typer.main.get_command(app)
    above = root.make_context("ktrial", [], resilient_parsing=True)
    pages = {f"ktrial.{_SECTION}": _overview(root)}
    for path, command in _leaves(root, ()):
        context = command.make_context(" ".join(path), [], parent=above, resilient_parsing=True)
        pages[f"ktrial-{'-'.join(path)}.{_SECTION}"] = _page(path, command, context)
    return pages


def _leaves(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, entry in sorted(group.commands.items()):
        yield from _leaves_of(entry, (*path, name))


def _leaves_of(entry: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The command, or those of its group, then those that its first word may name."""
    command = entry.load() if hasattr(entry, "load") else entry
    if hasattr(command, "commands"):
        yield from _leaves(command, path)
    else:
        yield path, command
    for word, form in sorted(getattr(entry, "forms", {}).items()):
        yield from _leaves_of(form, (*path, word))


def _overview(root: Any) -> str:
    rows = [
        f".TP\n\\fBktrial {_escaped(' '.join(path))}\\fR\n{_escaped(_first(command.help))}"
        for path, command in _leaves(root, ())
    ]
    summary = "controlled trials on Linux kernels"
    said = (
        "ktrial changes something about a Linux kernel (its version, an option, a patch, a boot parameter, a "
        "setting, its scheduler) and tells whether it matters for a workload, by how much, and why."
    )
    store = _escaped("the store of trials; --store and KTRIAL_STORE name another")
    parts = [
        _head("ktrial", summary),
        ".SH SYNOPSIS\n\\fBktrial\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]",
        f".SH DESCRIPTION\n{_escaped(said)}",
        ".SH COMMANDS",
        *rows,
        f".SH FILES\n.TP\n\\fI~/.local/share/ktrial/ktrial.db\\fR\n{store}",
        ".SH SEE ALSO\n\\fBqemu-system-x86_64\\fR(1). \\fBktrial help\\fR shows the documentation.",
    ]
    return "\n".join(parts) + "\n"


def _page(path: tuple[str, ...], command: Any, context: Any) -> str:
    name = " ".join(("ktrial", *path))
    parameters = [one for one in command.get_params(context) if not getattr(one, "hidden", False)]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    others = [one for one in parameters if one not in arguments]
    options = [record for one in others if (record := one.get_help_record(context))]
    synopsis = " ".join(command.collect_usage_pieces(context))
    parts = [
        _head(name.replace(" ", "-"), _first(command.help)),
        f".SH SYNOPSIS\n\\fB{_escaped(name)}\\fR {_escaped(synopsis)}",
        f".SH DESCRIPTION\n{_paragraphs(command.help)}",
    ]
    told = [record for one in arguments if (record := one.get_help_record(context))]
    for heading, records in (("ARGUMENTS", told), ("OPTIONS", options)):
        if records:
            parts.append(f".SH {heading}")
            parts += [f".TP\n\\fB{_escaped(left)}\\fR\n{_escaped(right)}" for left, right in records]
    if lines := examples_of(command):
        parts.append(".SH EXAMPLES\n.nf\n" + "\n".join(_escaped(line) for line in lines) + "\n.fi")
    parts.append(".SH SEE ALSO\n\\fBktrial\\fR(1)")
    return "\n".join(parts) + "\n"


def _head(name: str, summary: str) -> str:
    title = f'.TH {name.upper()} {_SECTION} "" "ktrial {VERSION}" "User Commands"'
    return f"{title}\n.SH NAME\n{_escaped(name)} \\- {_escaped(summary.rstrip('.'))}"


def _first(text: str | None) -> str:
    return " ".join((text or "").strip().split("\n\n")[0].split())


def _paragraphs(text: str | None) -> str:
    whole = [" ".join(part.split()) for part in (text or "").strip().split("\n\n")]
    return "\n.PP\n".join(_escaped(part) for part in whole if part)


def _escaped(text: str) -> str:
    """As groff reads plain text: no escape, no request, hyphens that can be copied (groff_char(7))."""
    plain = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return re.sub(r"^([.'])", r"\\&\1", plain)


def completions() -> dict[str, str]:
    """File below share → the script that the shell reads."""
    made = {}
    for shell, place in COMPLETIONS.items():
        script = get_completion_script(prog_name="ktrial", complete_var="_KTRIAL_COMPLETE", shell=shell)
        made[place] = script.strip() + "\n"
    return made


def write(directory: Path) -> list[Path]:
    """Write all of it below a directory."""
    files = {f"man/man{_SECTION}/{name}": text for name, text in man_pages().items()} | completions()
    for name, text in files.items():
        place = directory / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return [directory / name for name in files]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    print(f"{len(write(Path(sys.argv[1])))} files below {sys.argv[1]}")
