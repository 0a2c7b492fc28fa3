"""This installation of ktrial: its version, the files that come with it, and where it keeps others."""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "0.1.0"
CACHE = "KTRIAL_CACHE"
"""The variable that names the directory of `cache_directory`."""


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
