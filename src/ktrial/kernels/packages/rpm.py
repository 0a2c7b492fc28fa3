"""RPM packages of Fedora, openSUSE and their like, by libarchive's bsdtar, which runs no script of theirs.

bsdtar leaves out paths with `..`, takes the root away from absolute ones, and follows no link that the
archive made (bsdtar(1), -P). Only what belongs to a kernel is unpacked, and only after the sizes that the
archive tells were added up; no file can grow beyond its limit, whatever was told.
"""

from collections.abc import Iterable
from pathlib import Path

from ktrial.kernels import programs
from ktrial.kernels.errors import KernelError
from ktrial.kernels.files import require_space
from ktrial.system_tools import Tool
from ktrial.text_lines import lines_of

_KERNEL_DIRECTORIES = tuple(
    f"{up}{where}" for where in ("lib/modules", "usr/lib/modules", "boot") for up in ("./", "", "/")
)
BSDTAR = Tool("bsdtar", "libarchive-tools", "unpacks RPM packages")
_LARGEST = 4 << 30
"""Bytes of one package: a kernel's modules with everything switched on take some 500 MiB."""
_LARGEST_FILE = 1 << 30
_FIELDS, _SIZE = 9, 4
"""Of a line of `bsdtar -tv`: mode, links, owner, group, size, three of the time, name."""
_PLAIN = ("--no-same-owner", "--no-same-permissions", "--no-acls", "--no-xattrs", "--no-fflags")


def unpack(file: Path, root: Path, most: int = _LARGEST) -> None:
    """Unpack what is a kernel's below `root`; of more than `most` bytes nothing.

    Raises ToolMissing, KernelError, NoSpace.
    """
    members = list(_members(_run(["-t", "-v", "--numeric-owner", "-f", str(file)], file.parent)))
    size = sum(bytes_of for bytes_of, _ in members)
    if size > most:
        raise KernelError(
            f"{file.name} would unpack to {size} bytes; a kernel's package may have {most} at most: it is "
            "not unpacked."
        )
    require_space(root.parent, size)
    root.mkdir(parents=True, exist_ok=True)
    paths = [path for _, path in members]
    # bsdtar fails where a pattern meets nothing.
    if patterns := [where for where in _KERNEL_DIRECTORIES if any(path.startswith(where) for path in paths)]:
        _run(["-x", *_PLAIN, "-f", str(file), "-C", str(root), *patterns], root)


def _members(listing: str) -> Iterable[tuple[int, str]]:
    """The bytes and the path of each."""
    for line in lines_of(listing):
        fields = line.split(maxsplit=_FIELDS - 1)
        if len(fields) == _FIELDS and fields[_SIZE].isdigit():
            yield int(fields[_SIZE]), fields[-1]


def _run(arguments: list[str], where: Path) -> str:
    command = ["prlimit", f"--fsize={_LARGEST_FILE}", "bsdtar", *arguments]
    hint = (
        "the package may be damaged: fetch it again; or it is of rpm's format 6, which bsdtar does not read "
        "(rpm -qp --qf '%{rpmformat}' FILE tells): build it with rpmbuild --define '_rpmformat 4'"
    )
    return programs.run(BSDTAR, command, where, hint)
