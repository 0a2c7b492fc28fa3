"""Where a path leads in a guest, by the symbolic links that are carried in: text only, no file is read."""

import posixpath
from collections.abc import Mapping

_MOST = 40
"""Links that a kernel follows for one path (MAXSYMLINKS)."""


class TooManyLinks(Exception):
    """Links that lead in a circle, or through more than a kernel follows."""


def followed(path: str, targets: Mapping[str, str]) -> str:
    """The absolute path with every link on its way followed, its last part too. Raises TooManyLinks.

    `targets`: the path of a link → what it holds. A target that leads above the root means the root.
    """
    done, waiting, followed_links = "/", path.strip("/").split("/"), 0
    while waiting:
        part = waiting.pop(0)
        if part in {"", "."}:
            continue
        here = posixpath.dirname(done) if part == ".." else posixpath.join(done, part)
        target = targets.get(here)
        if target is None or part == "..":
            done = here
            continue
        followed_links += 1
        if followed_links > _MOST:
            raise TooManyLinks
        done = "/" if target.startswith("/") else done
        waiting = [*target.split("/"), *waiting]
    return done
