"""Tries a target with atheris; options and directories are those of libFuzzer.

python -m tests.fuzz.under_atheris TARGET [OPTION…] [DIRECTORY…]
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.limits import LONGEST, limited
from tests.fuzz.targets import TARGETS


def guarded(read: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The target, held to the limits."""

    def read_within_limits(data: bytes) -> None:
        with limited():
            read(data)

    return read_within_limits


def dictionary(words: tuple[bytes, ...]) -> str:
    """As libFuzzer reads it: a word a line, quoted."""
    return "".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in words)


if __name__ == "__main__":
    import atheris

    with atheris.instrument_imports(include=list(TARGETS[sys.argv[1]])):
        target = importlib.import_module(f"tests.fuzz.{sys.argv[1]}")
    with TemporaryDirectory() as directory:
        place = Path(directory) / "words"
        place.write_text(dictionary(target.WORDS), encoding="ascii")
        options = [f"-max_len={LONGEST}", f"-dict={place}", "-timeout=300", "-rss_limit_mb=2048"]
        atheris.Setup([sys.argv[0], *options, *sys.argv[2:]], guarded(target.read))
        atheris.Fuzz()
