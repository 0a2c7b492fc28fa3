"""This installation of ktrial: its version, the files that come with it, and where it keeps others."""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path

VERSION = "0.1.0"
CACHE = "KTRIAL_CACHE"
"""The variable that names the directory of `cache_directory`."""
_SUFFIXES = (".j2", ".css", ".js", ".py")


def package_directory() -> "Path":
    """The directory of the package `ktrial`, with the guest's programs and the bundled studies."""
    from pathlib import Path  # `import ktrial` shall not pay for it

    return Path(__file__).parent


def cache_directory() -> "Path":
    """Where ktrial keeps what it can fetch or make again: KTRIAL_CACHE, else the user's cache directory."""
    import os
    from pathlib import Path

    import platformdirs

    return Path(os.environ.get(CACHE) or platformdirs.user_cache_dir("ktrial")).absolute()


def program_digest(*rooms: str) -> str:
    """SHA-256 of the version and of this program's sources, or of those of some rooms: what the same program
    made of the same is the same.
    """
    from hashlib import sha256
    from importlib.resources import files

    digest = sha256(VERSION.encode())
    package = files("ktrial")
    for part_of_it in map(package.joinpath, rooms) if rooms else (package,):
        for part in _parts(part_of_it):
            digest.update(part.read_bytes())
    return digest.hexdigest()


def _parts(directory: "Traversable") -> "Iterator[Traversable]":
    for part in sorted(directory.iterdir(), key=lambda item: item.name):
        if part.is_dir():
            yield from _parts(part)
        elif part.name.endswith(_SUFFIXES):
            yield part
