"""Tests have a home of their own: nothing in the user's is written to, and kernels of its cache are there."""

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.homes import variables

from ktrial.installation import cache_directory

PLACES = (
    "import platformdirs as of; "
    "print(of.user_state_dir(), of.user_data_dir(), of.user_config_dir(), of.user_cache_dir())"
)


def test_what_is_kept_for_a_user_lies_below_the_temporary_directory() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", PLACES], capture_output=True, text=True, check=True
    ).stdout
    assert str(Path.home()) != pwd.getpwuid(os.getuid()).pw_dir
    for place in (str(Path.home()), *printed.split()):
        assert Path(place).is_relative_to(tempfile.gettempdir())


def test_kernels_are_those_of_the_user_s_cache() -> None:
    assert not (cache_directory() / "kernels").resolve().is_relative_to(Path.home())


def test_compilers_and_pip_find_what_the_user_has(tmp_path: Path) -> None:
    home, usual = tmp_path / "home", tmp_path / "usual"
    (usual / ".cargo").mkdir(parents=True)
    environment = variables(home, usual, {"RUSTUP_HOME": "/opt/rustup"})
    assert environment["CARGO_HOME"] == str(usual / ".cargo")
    assert environment["HOME"] == str(home)
    assert not {"RUSTUP_HOME", "PIP_CONFIG_FILE"} & environment.keys()
