"""A systemd unit that looks after the journal when the system starts."""

from pathlib import Path

from ktrial.knobs.journal.location import CHANGES

NAME = "ktrial-restore.service"
_DIRECTORY = Path("/etc/systemd/system")

_TEXT = """\
# Written by `ktrial restore --install-unit`. Enable it: systemctl enable {name}
[Unit]
Description=Settle what ktrial had changed when the system went down
Documentation=man:systemd.service(5)
ConditionPathExists={changes}
After=local-fs.target systemd-sysctl.service
RequiresMountsFor={journal}

[Service]
Type=oneshot
Environment="KTRIAL_JOURNAL={environment}"
ExecStart={program} restore

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


def install(program: Path, journal: Path, path: Path | None = None) -> Path:
    """Write the unit and return where it is. Raises OSError where it cannot be written."""
    path = path or _DIRECTORY / NAME
    path.write_text(text(program, journal), encoding="utf-8")
    return path


def _quoted(path: Path) -> str:
    """In quotes, and with systemd's specifiers kept from being expanded (systemd.service(5))."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return text.replace("%", "%%").replace("$", "$$")


def _path(path: Path) -> str:
    """In a setting that takes a path: a blank would end it."""
    return str(path).replace("\\", "\\\\").replace("%", "%%").replace(" ", "\\x20")
