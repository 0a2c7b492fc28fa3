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


# Libraries of an optional part, which may not be installed. ktrial is in no registry: the libraries are
# installed by their own names, beside this ktrial and in the way in which it was installed.


def how_to_add(part: str) -> str:
    """The command that installs what an optional part (`serve`) of this ktrial needs."""
    import re
    from importlib.metadata import PackageNotFoundError, requires

    try:
        declared = requires("ktrial") or ()
    except PackageNotFoundError:  # its sources alone are in Python's path
        return how_to_install(f"{package_directory().parents[1]}[{part}]")
    is_of_part = re.compile(rf"extra == ['\"]{part}['\"]")
    return how_to_install(*(text.partition(";")[0].strip() for text in declared if is_of_part.search(text)))


def how_to_install(*requirements: str) -> str:
    """The command that installs libraries where this ktrial finds them."""
    import shlex
    import sys
    from importlib.util import find_spec
    from pathlib import Path

    prefix = Path(sys.prefix)
    command = [sys.executable, "-m", "pip", "install"]
    if (prefix / "pipx_metadata.json").is_file():
        command = ["pipx", "inject", prefix.name]
    elif (prefix / "uv-receipt.toml").is_file() or find_spec("pip") is None:
        command = ["uv", "pip", "install", "--python", sys.executable]
    elif sys.prefix == sys.base_prefix:
        # The system's Python: its own directory of packages is for the distribution's alone.
        command += ["--target", str(package_directory().parent)]
    return shlex.join([*command, *requirements])


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
