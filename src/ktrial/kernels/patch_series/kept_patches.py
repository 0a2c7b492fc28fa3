"""Patches that were read out of mails and other files, each kept as a file of its own, by its content."""

import hashlib
import re

from ktrial.kernels.build.patch_reader import FileDiff
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.kernels.cache.location import cache_directory
from ktrial.model.kernel import Patch

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST_NAME = 52
"""As git format-patch cuts the names of its files (`--filename-max-length`, 64 with number and ending)."""


def kept(number: int, subject: str, content: bytes) -> Patch:
    """Keep the content under a name made as git format-patch makes them: `0003-mm-slub-count.patch`."""
    digest = hashlib.sha256(content).hexdigest()
    path = cache_directory() / "series" / digest[:24] / file_name(number, subject)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return Patch(path=str(path), digest=digest)


def file_name(number: int, subject: str) -> str:
    """`0003-mm-slub-count.patch`."""
    words = _NOT_IN_NAMES.sub("-", subject).strip("-.")[:_LONGEST_NAME].strip("-.")
    return f"{number:04}-{words or 'patch'}.patch"


def as_git_writes(files: list[FileDiff]) -> str:
    """A patch as `git diff` would have written it: with a/ and b/ in front of the paths."""
    return "".join(_one(each) for each in files)


def _one(change: FileDiff) -> str:
    old, new = change.old or change.new, change.new or change.old
    lines = [f"diff --git a/{old} b/{new}"]
    if change.old is None:
        lines.append(f"new file mode {change.mode or '100644'}")
    elif change.new is None:
        lines.append("deleted file mode 100644")
    elif change.mode:
        lines += [f"old mode {'100755' if change.mode == '100644' else '100644'}", f"new mode {change.mode}"]
    if change.old and change.new and old != new:
        verb = "copy" if change.copies else "rename"
        lines += [f"{verb} from {old}", f"{verb} to {new}"]
    if change.hunks:
        lines.append("--- " + (f"a/{change.old}" if change.old else "/dev/null"))
        lines.append("+++ " + (f"b/{change.new}" if change.new else "/dev/null"))
    return "".join(f"{line}\n" for line in lines) + "".join(change.hunks)
