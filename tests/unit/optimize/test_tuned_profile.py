"""TuneD's profile of an answer, read by TuneD's own rules.

They are those of its source at v2.28.0-rc.1 (2bfa4423), as each test says; 2.20 has the same but for the
directory. Both programs were given the profile and the script once: what stands here is what they did.
"""

import re
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
from tests.unit.optimize.test_tune_answer import ANSWER

from ktrial.optimize.deployment_files import texts


@pytest.fixture
def profile() -> str:
    return texts(ANSWER)[f"tuned/{ANSWER.study}/tuned.conf"]


@pytest.fixture
def sections(profile: str) -> ConfigParser:
    """As tuned/profiles/loader.py reads it (`_load_config_data`)."""
    parser = ConfigParser(delimiters=("=",), inline_comment_prefixes=("#",), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(profile)
    return parser


def test_only_plug_ins_that_tuned_has(sections: ConfigParser) -> None:
    assert sections.sections() == ["main", "sysctl", "sysfs", "bootloader"]


def test_it_is_listed_with_its_summary(profile: str) -> None:
    """tuned/profiles/locator.py, `parse_config`: what stands before the first section gets a header."""
    parser = ConfigParser(
        delimiters=("=",), inline_comment_prefixes=("#",), allow_no_value=True, strict=False
    )
    parser.read_string(f"[header]\n{profile}")
    assert parser.get("main", "summary", raw=True) == f"ktrial tune: {ANSWER.gain}"


def test_its_name_is_safe_for_tuned() -> None:
    """tuned/profiles/loader.py, `safe_name`: a profile with another name is left out without a word."""
    assert re.match(r"^[a-zA-Z0-9_.-]+$", ANSWER.study)


def test_it_is_installed_where_tuned_looks(profile: str) -> None:
    """tuned/consts.py, `USER_PROFILES_DIR` (since 2.23); before, `LOAD_DIRECTORIES` had /etc/tuned."""
    assert "/etc/tuned/profiles (TuneD before 2.23: in /etc/tuned)" in profile


def test_a_sysctl_s_name_means_the_file_that_was_measured(sections: ConfigParser) -> None:
    """tuned/plugins/plugin_sysctl.py, `_get_sysctl_path`."""
    files = {
        f"/proc/sys/{name.translate(str.maketrans('./', '/.'))}": value
        for name, value in sections.items("sysctl", raw=True)
    }
    assert files == {
        path: ANSWER.configuration[name]
        for name, path in ANSWER.paths.items()
        if path.startswith("/proc/sys/")
    }


def test_a_file_is_below_sys(sections: ConfigParser) -> None:
    """tuned/plugins/plugin_sysfs.py, `_check_sysfs`: it refuses to write elsewhere."""
    files = dict(sections.items("sysfs", raw=True))
    assert files == {"/sys/kernel/mm/transparent_hugepage/enabled": "always"}
    assert all(re.match(r"^/sys/.*", path) for path in files)


def test_boot_parameters_are_added(sections: ConfigParser) -> None:
    """tuned/plugins/plugin_bootloader.py, `_get_effective_options`: `cmdline…`, whose `+` adds."""
    ((name, value),) = sections.items("bootloader", raw=True)
    assert re.fullmatch(r"cmdline\w*", name)
    assert value.partition("+") == ("", "+", " ".join(ANSWER.parameters))


@pytest.mark.parametrize(
    ("kept", "told"),
    [("", False), ("quiet", False), ("nohz=off threadirqs", True), ("a nohz=off threadirqs", True)],
)
def test_undoing_tells_of_boot_parameters_that_tuned_keeps(kept: str, told: bool, tmp_path: Path) -> None:
    """Where its daemon runs `tuned-adm off` takes them back; what one that was killed wrote stays."""
    first = texts(ANSWER)["undo.sh"].partition("printf '%s")[0].replace("/etc/", f"{tmp_path}/etc/")
    file = tmp_path / "etc/tuned/bootcmdline"
    file.parent.mkdir(parents=True)
    file.write_text(f'# TuneD writes here\nTUNED_BOOT_CMDLINE="{kept}"\nTUNED_BOOT_INITRD_ADD=""\n')
    said = subprocess.run(["sh", "-c", first], capture_output=True, text=True, check=True).stdout
    assert ("TUNED_BOOT_CMDLINE" in said) == told
