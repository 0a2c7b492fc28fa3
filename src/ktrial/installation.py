"""This installation of ktrial: its version, and where the files are that come with it."""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "0.1.0"


def package_directory() -> "Path":
    """The directory of the package `ktrial`, with the guest's programs and the bundled studies."""
    from pathlib import Path  # `import ktrial` shall not pay for it

    return Path(__file__).parent
