"""Study files as texts."""

from pathlib import Path

from tests.support.command_line import KNOWN

from ktrial.model.study import Study
from ktrial.studyfile.reader import load

KERNELS = '[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]\n'


def load_text(tmp_path: Path, text: str, name: str = "study.toml") -> Study:
    path = tmp_path / name
    path.write_text(text)
    return load(path, KNOWN)
