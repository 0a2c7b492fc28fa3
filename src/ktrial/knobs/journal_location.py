"""Where the journal of changes is. Imported by every command: nothing else is, here."""

import os
from pathlib import Path

VARIABLE = "KTRIAL_JOURNAL"
CHANGES = "changes"
"""The directory of the entries; it is there only while something is to be undone."""
_OF_ROOT = Path("/var/lib/ktrial/journal")
NAME = "ktrial-restore.service"


def journal_directory() -> Path:
    """`KTRIAL_JOURNAL`; else /var/lib/ktrial/journal for root, and the user's state directory for others."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    if os.geteuid() == 0:
        return _OF_ROOT
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG base directory specification: a path that is not absolute is ignored.
    top = Path(state) if Path(state).is_absolute() else Path.home() / ".local/state"
    return top / "ktrial" / "journal"


def is_anything_to_undo() -> bool:
    """One stat: whether there are entries at all."""
    try:
        return (journal_directory() / CHANGES).exists()
    except PermissionError:
        return False  # whoever may not look there has changed nothing from there


_DIRECTORY = Path("/etc/systemd/system")
_TEXT = """\
# Written by `ktrial host restore --install-unit`. Enable it: systemctl enable {name}
[Unit]
Description=Settle what ktrial had changed when the system went down
Documentation=man:systemd.service(5)
ConditionPathExists={changes}
After=local-fs.target systemd-sysctl.service
RequiresMountsFor={journal}

[Service]
Type=oneshot
Environment="KTRIAL_JOURNAL={environment}"
ExecStart={program} host restore

[Install]
WantedBy=multi-user.target
"""


def text(program: Path, journal: Path) -> str:
    """The unit that runs this ktrial on this journal."""
    directory = _path(journal)
    return _TEXT.format(
        name=NAME,
        changes=f"{directory}/{CHANGES}",
        journal=directory,
        environment=_quoted(journal),
        program=f'"{_quoted(program)}"',
    )


def unit_path(path: Path | None = None) -> Path:
    """Where the unit is written: where systemd looks, if no other place is given."""
    return path or _DIRECTORY / NAME


def install(program: Path, journal: Path, path: Path | None = None) -> Path:
    """Write the unit and return where it is. Raises OSError where it cannot be written."""
    path = unit_path(path)
    path.write_text(text(program, journal), encoding="utf-8")
    return path


def _quoted(path: Path) -> str:
    """In quotes, and with systemd's specifiers kept from being expanded (systemd.service(5))."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return text.replace("%", "%%").replace("$", "$$")


def _path(path: Path) -> str:
    """In a setting that takes a path: a blank would end it."""
    return str(path).replace("\\", "\\\\").replace("%", "%%").replace(" ", "\\x20")
