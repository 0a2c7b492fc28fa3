"""The answer of a search as files, and in force."""

import os
import re
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
from tests.support.knob_tree import made
from tests.support.tuning import a_search

from ktrial.cli.running.search_answer import put_in_force
from ktrial.knobs.journal import Journal
from ktrial.knobs.restore import restore
from ktrial.optimize.deployment_files import Answer, dotted, texts, write_answer
from ktrial.studyfile.errors import SearchFailed

ANSWER = Answer(
    study="tune-bench",
    configuration={
        "vm.swappiness": "10",
        "vm.dirty_bytes": "1048576",
        "net.ipv4.conf.eth0/1.rp_filter": "2",
        "transparent_hugepage/enabled": "always",
        "boot:nohz": "off",
        "boot:threadirqs": "threadirqs",
        "kconfig:HZ": "1000",
    },
    in_force={},
    defaults={
        "vm.swappiness": "60",
        "vm.dirty_bytes": "0",
        "net.ipv4.conf.eth0/1.rp_filter": "1",
        "transparent_hugepage/enabled": "madvise",
        "boot:nohz": "",
        "boot:threadirqs": "",
        "kconfig:HZ": "",
    },
    effects={"vm.swappiness": "rps +3.00 % with it (95 %: +2.00 to +4.00 %)"},
    gain="rps +12.00 % (95 %: +10.00 to +14.00 %)",
    release="6.12.1-test",
    paths={
        "vm.swappiness": "/proc/sys/vm/swappiness",
        "vm.dirty_bytes": "/proc/sys/vm/dirty_bytes",
        "net.ipv4.conf.eth0/1.rp_filter": "/proc/sys/net/ipv4/conf/eth0.1/rp_filter",
        "transparent_hugepage/enabled": "/sys/kernel/mm/transparent_hugepage/enabled",
    },
    back={"vm.dirty_bytes": ("/proc/sys/vm/dirty_ratio", "30")},
)


def test_each_setting_stands_with_its_effect_where_its_program_reads_it() -> None:
    files = texts(ANSWER)
    sysctl = files["sysctl.d/99-tune-bench.conf"].splitlines()
    assert sysctl[0] == ("# ktrial tune, tune-bench on 6.12.1-test: rps +12.00 % (95 %: +10.00 to +14.00 %)")
    assert "# vm.swappiness: rps +3.00 % with it (95 %: +2.00 to +4.00 %); it was 60" in sysctl
    assert {"vm.swappiness = 10", "net.ipv4.conf.eth0/1.rp_filter = 2"} <= set(sysctl)
    line = "w /sys/kernel/mm/transparent_hugepage/enabled - - - - always"
    assert line in files["tmpfiles.d/tune-bench.conf"].splitlines()
    assert files["kernel-command-line"] == "nohz=off threadirqs\n"
    assert files["kernel.config"] == "CONFIG_HZ=1000\n"
    profile = files["tuned/tune-bench/tuned.conf"]
    for text in (
        "[sysctl]\nvm.swappiness=10\n",
        "[sysfs]\n/sys/kernel/mm/",
        "cmdline_ktrial=+nohz=off threadirqs",
    ):
        assert text in profile


def test_what_was_there_before_comes_back_the_last_setting_first() -> None:
    lines = [line for line in texts(ANSWER)["undo.sh"].splitlines() if line.startswith("printf")]
    assert lines == [
        "printf '%s\\n' madvise > /sys/kernel/mm/transparent_hugepage/enabled || left=1",
        "printf '%s\\n' 1 > /proc/sys/net/ipv4/conf/eth0.1/rp_filter || left=1",
        # A limit in bytes takes no 0: the ratio that it had replaced is written.
        "printf '%s\\n' 30 > /proc/sys/vm/dirty_ratio || left=1",
        "printf '%s\\n' 60 > /proc/sys/vm/swappiness || left=1",
    ]


def test_a_knob_that_is_gone_keeps_nothing_else_from_coming_back(tmp_path: Path) -> None:
    *values, gone = (tmp_path / path[1:] for path in ANSWER.paths.values())
    for file in (*values, tmp_path / "proc/sys/vm/dirty_ratio"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("changed\n")
    installed = tmp_path / "etc/sysctl.d/99-tune-bench.conf"
    installed.parent.mkdir(parents=True)
    installed.write_text("vm.swappiness = 10\n")
    script = re.sub("(?<=[ >])/(etc|proc|sys)/", rf"{tmp_path}/\1/", texts(ANSWER)["undo.sh"])
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "transparent_hugepage/enabled" in done.stderr
    assert "not all of it is back" in done.stderr
    vm = tmp_path / "proc/sys/vm"
    assert [(vm / name).read_text() for name in ("swappiness", "dirty_ratio")] == ["60\n", "30\n"]
    assert not installed.exists(), "it would set its values again with the next boot"
    gone.parent.mkdir(parents=True)
    subprocess.run(["sh", "-c", script], stdout=subprocess.DEVNULL, check=True)


@pytest.mark.parametrize(
    ("active", "off"),
    [
        ("Current active profile: tune-bench", True),
        ("Current active profile: balanced tune-bench", True),
        ("Current active profile: tune-bench-2", False),
        ("No current active profile.", False),
    ],
)
def test_undoing_switches_tuneds_profile_off_where_it_is_in_force(
    active: str, off: bool, tmp_path: Path
) -> None:
    script = texts(ANSWER)["undo.sh"]
    first = script[: script.index("printf '%s")].replace("/etc/", f"{tmp_path}/etc/")
    profile = tmp_path / "etc/tuned/tune-bench"
    profile.mkdir(parents=True)
    (tmp_path / "tuned-adm").write_text(
        f'#!/bin/sh\n[ "$1" = active ] && echo {active!r} || echo "$1" >>{tmp_path}/asked\n'
    )
    (tmp_path / "tuned-adm").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", first], env={"PATH": path}, check=True)
    assert (tmp_path / "asked").exists() == off
    assert not profile.exists()


def test_undoing_goes_on_where_tuneds_daemon_does_not_run_and_forgets_what_is_preset(tmp_path: Path) -> None:
    """As TuneD 2.20 answers then: `active` with status 0, `off` with 1, and the profile stays preset."""
    first = texts(ANSWER)["undo.sh"].partition("printf '%s")[0].replace("/etc/", f"{tmp_path}/etc/")
    preset = tmp_path / "etc/tuned/active_profile"
    preset.parent.mkdir(parents=True)
    preset.write_text("tune-bench\n")
    (tmp_path / "tuned-adm").write_text(
        '#!/bin/sh\n[ "$1" = active ] && echo "Preset profile: tune-bench" && exit 0\n'
        "echo Not supported in no_daemon mode.\nexit 1\n"
    )
    (tmp_path / "tuned-adm").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", f"{first}\ntouch {tmp_path}/went-on"], env={"PATH": path}, check=True)
    assert (tmp_path / "went-on").exists()
    assert preset.read_text() == ""


def test_a_kernel_is_named_and_nothing_is_removed_that_was_not_installed() -> None:
    facts = {"configuration": {"kernel": "debian:6.1"}, "defaults": {"kernel": "debian:6.12"}, "paths": {}}
    files = texts(Answer(**{**vars(ANSWER), **facts}))
    assert set(files) == {"kernel", "undo.sh", "answer.json"}
    assert files["kernel"] == "debian:6.1\n"
    assert files["undo.sh"].splitlines()[-3] == "echo 'by hand: boot debian:6.12 again'"
    assert "rm " not in files["undo.sh"]


def test_a_dot_in_a_part_of_a_path_is_a_slash_in_the_sysctl_s_name() -> None:
    assert dotted("/proc/sys/net/ipv4/conf/eth0.1/mtu") == "net.ipv4.conf.eth0/1.mtu"


def test_files_are_written_and_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    written = write_answer(ANSWER, tmp_path / "found")
    assert all(path.read_text() for path in written)
    assert (tmp_path / "found/undo.sh").stat().st_mode & 0o111
    (tmp_path / "file").write_text("")
    with pytest.raises(SearchFailed):
        write_answer(ANSWER, tmp_path / "file")


def test_put_in_force_it_stays_until_it_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = made(tmp_path)
    monkeypatch.setattr("ktrial.target.local.LocalTarget", lambda: tree.target)
    monkeypatch.setenv("KTRIAL_JOURNAL", str(tmp_path / "journal"))
    answer = Answer(**{**vars(ANSWER), "configuration": {"vm.swappiness": "10"}})
    assert put_in_force(a_search("vm.swappiness"), answer) == ("vm.swappiness = 10 (was 60)",)
    assert tree.read("proc/sys/vm/swappiness") == "10"
    restore(Journal(tmp_path / "journal"), tree.target)
    assert tree.read("proc/sys/vm/swappiness") == "60"


# TuneD's profile of an answer, read by TuneD's own rules.
#
# They are those of its source at v2.28.0-rc.1 (2bfa4423), as each test says; 2.20 has the same but for the
# directory. Both programs were given the profile and the script once: what stands here is what they did.


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
