"""The first second of a command: all that this system lacks for the whole of it is told in one line."""

import re
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine, Said
from tests.support.fake_builds import has_room
from tests.support.scripted import ScriptedMachine

from ktrial import api, package_names
from ktrial.experiment.errors import StudyRefused
from ktrial.experiment.preflight import check_knobs
from ktrial.model.study import MachineSettings
from ktrial.package_names import INSTALL

BUILDING = ("make", "flex", "bison", "bc", "perl", "libelf-dev", "binutils")
GUESTS = ("qemu-system-x86", "cpio", "util-linux")
FETCHING = ("apt", "dpkg", "tar", "xz-utils")
MAIL = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: A B <a@example.org>
Subject: [PATCH] mm: longer

Why.

---
--- a/mm/a.c
+++ b/mm/a.c
@@ -1 +1 @@
-int a;
+long a;
--
2.39.5

"""
BUILT = """\
question = "What does the patch cost?"
perturbations = 1
workloads = ["fork"]
[factors.kernel]
levels = ["plain", "patched"]
[kernels.plain]
source = "debian:linux-source-6.1"
[kernels.patched]
source = "debian:linux-source-6.1"
patches = ["fix.patch"]
"""
SERIES = ("series", "--mbox", "a.mbx", "--onto", "debian:linux-source-6.1", "--workload", "fork")
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "series, dry": ((*SERIES, "--dry-run"), (*BUILDING, *GUESTS, *FETCHING, "patch", "bubblewrap")),
    "series": (SERIES, (*BUILDING, *GUESTS, *FETCHING, "patch", "bubblewrap")),
    "series, trusted": ((*SERIES, "--trust"), (*BUILDING, *GUESTS, *FETCHING, "patch", "bubblewrap")),
    "kernel build": (
        ("kernel", "build", "debian:linux-source-6.1", "--option", "MODULE_SIG=y", "--patch", "fix.patch"),
        (*BUILDING, *FETCHING, "patch", "openssl", "libssl-dev", "bubblewrap"),
    ),
    "run": (("run", "built.toml"), (*BUILDING, *GUESTS, *FETCHING, "patch", "bubblewrap")),
    "run, dry": (
        ("run", "built.toml", "--dry-run"),
        (*BUILDING, *GUESTS, *FETCHING, "patch", "bubblewrap"),
    ),
    "check of a tree": (
        ("check", "--source", "linux", "--against", "debian:6.12", "--workload", "fork"),
        (*BUILDING, *GUESTS, "apt", "dpkg", "kmod", "bubblewrap"),
    ),
    "bisect config, dry": (
        (
            *("bisect", "config", "guest", "guest+SLUB_DEBUG_ON=y", "--source", "debian:linux-source-6.1"),
            *("--workload", "fork", "--dry-run"),
        ),
        (*BUILDING, *GUESTS, *FETCHING, "bubblewrap"),
    ),
    "compare": (
        ("compare", "--kernel", "debian:6.1", "--kernel", "git:.@v6.1", "--", "/bin/true"),
        (*BUILDING, *GUESTS, "apt", "dpkg", "kmod", "git", "strace", "bubblewrap"),
    ),
    "check": (
        ("check", "--kernel", "debian:6.1", "--against", "debian:6.12", "--", "/bin/true"),
        (*GUESTS, "apt", "dpkg", "kmod", "strace"),
    ),
    "profile": (
        ("profile", "--kernel", "debian:6.1", "--", "/bin/true"),
        (*GUESTS, "apt", "dpkg", "kmod", "strace"),
    ),
    "bisect patches": (
        (
            *("bisect", "patches", "--patches", "patches", "--source", "debian:linux-source-6.1"),
            *("--workload", "fork", "--dry-run"),
        ),
        (*BUILDING, *GUESTS, *FETCHING, "patch", "bubblewrap"),
    ),
    "bisect versions": (
        ("bisect", "versions", "6.1..6.12", "--workload", "fork", "--dry-run"),
        (*GUESTS, "apt", "dpkg", "kmod"),
    ),
}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but a compiler that finds no header."""
    directory = tmp_path / "bin"
    directory.mkdir()
    install(directory, "gcc", "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setattr("ktrial.system_tools.SBIN", ())
    monkeypatch.delenv("KTRIAL_QEMU", raising=False)
    return directory


@pytest.fixture
def ktrial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.mbx").write_text(MAIL)
    diff = MAIL.partition("---\n")[2].partition("--\n")[0]
    (tmp_path / "patches").mkdir()
    for name in ("fix.patch", "patches/one.patch"):
        (tmp_path / name).write_text(diff)
    (tmp_path / "built.toml").write_text(BUILT)
    for name in ("Makefile", "Kconfig", "arch/x86/Kconfig", "scripts/kconfig/merge_config.sh"):
        file = tmp_path / "linux" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\nEXTRAVERSION =\n")
    return CommandLine(monkeypatch, capsys)


def install(directory: Path, name: str, text: str = "#!/bin/sh\n") -> None:
    (directory / name).write_text(text)
    (directory / name).chmod(0o755)


def hint(result: Said) -> str:
    (line,) = [line for line in result.messages.splitlines() if line.startswith("hint: ")]
    return line.removeprefix("hint: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_all_that_is_missing_is_named_in_one_line_before_anything_is_done(
    command: str, programs: Path, ktrial: CommandLine, tmp_path: Path
) -> None:
    words, packages = COMMANDS[command]
    result = ktrial(*words)
    assert result.status not in {0, 125}
    line = hint(result)
    assert line.startswith(f"{INSTALL} ")
    assert set(line.removeprefix(INSTALL).split()) == set(packages)
    for place in ("sources", "trees", "kernels", "snapshots"):
        assert not list((tmp_path / "cache").glob(f"{place}/*"))


@pytest.mark.parametrize("command", COMMANDS)
def test_there_is_no_second_round_of_hints(
    command: str, programs: Path, ktrial: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was named is there now, and does nothing: the command ends with an error of another kind."""
    words, _ = COMMANDS[command]
    first = ktrial(*words).messages
    for names in re.findall(r"(?:: |, )([^():]+) \(", first.partition("not installed")[2]):
        for name in names.split(", "):
            if not name.endswith(".h"):
                install(programs, name)
    install(programs, "gcc")
    monkeypatch.setattr("ktrial.kernels.build.sandbox.problem", lambda: "")
    again = ktrial(*words).messages
    assert again != first
    assert "not installed" not in again
    assert "is not in PATH" not in again


def test_the_line_is_that_of_the_distribution(
    programs: Path, ktrial: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "os-release").write_text("ID=fedora\n")
    monkeypatch.setattr(package_names, "OS_RELEASE", tmp_path / "os-release")
    line = hint(ktrial("kernel", "build", str(a_tree(tmp_path))))
    assert line == (
        "sudo dnf install --setopt=install_weak_deps=False binutils make flex bison bc perl "
        "elfutils-libelf-devel bubblewrap"
    )


def a_tree(directory: Path) -> Path:
    tree = directory / "tree"
    tree.mkdir()
    return tree


def with_everything(programs: Path) -> None:
    for name in ("ld", "objcopy", "make", "flex", "bison", "bc", "perl", "gcc", "patch", "bwrap", "depmod"):
        install(programs, name)
    for name in ("qemu-system-x86_64", "cpio", "setpriv", "apt-get", "dpkg-deb", "tar", "xz"):
        install(programs, name)


def test_a_stranger_s_mails_are_not_built_where_there_is_no_sandbox(
    programs: Path, ktrial: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_everything(programs)
    has_room(monkeypatch, 1 << 40)
    monkeypatch.setattr("ktrial.kernels.build.sandbox.problem", lambda: "namespaces are forbidden here")
    result = ktrial(*SERIES, "--dry-run")
    assert result.status == 128
    assert "in a whole sandbox only, and there is none here: namespaces are forbidden here" in result.messages
    assert hint(result) == "--trust builds it as yourself"


def test_a_disk_on_which_no_build_has_room_is_told_with_its_size(
    programs: Path, ktrial: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_everything(programs)
    monkeypatch.setattr("ktrial.kernels.build.sandbox.problem", lambda: "")
    has_room(monkeypatch, 300 * 10**6)
    result = ktrial("kernel", "build", "debian:linux-source-6.1")
    assert result.status == 1
    assert "300.0 MB free, and a build needs 2.3 GB at least" in result.messages
    assert "KTRIAL_CACHE" in hint(result)


def test_a_disk_that_may_be_too_small_is_a_warning(
    programs: Path, ktrial: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_everything(programs)
    monkeypatch.setattr("ktrial.kernels.build.sandbox.problem", lambda: "")
    has_room(monkeypatch, 3 * 10**9)
    result = ktrial("kernel", "build", "debian:linux-source-6.1")
    assert "warning:" in result.messages
    assert "3.0 GB free, and the kernels usually take 3.8 GB" in result.messages


def test_a_guest_that_is_larger_than_this_system_is_refused(
    programs: Path, ktrial: CommandLine, tmp_path: Path
) -> None:
    with_everything(programs)
    (tmp_path / "large.toml").write_text(
        'workloads = ["fork"]\n[machine]\nmemory = "1024G"\n'
        '[factors.kernel]\nlevels = ["debian:6.1", "debian:6.12"]\n'
    )
    result = ktrial("run", "large.toml")
    assert result.status == 1
    assert "a guest has 1048576 MiB of memory" in result.messages


def test_cpus_that_this_qemu_cannot_count_are_refused_before_a_study_is_stored(
    programs: Path, ktrial: CommandLine, tmp_path: Path
) -> None:
    with_everything(programs)
    install(programs, "qemu-system-x86_64", "#!/bin/sh\necho QEMU emulator version 7.2.22\n")
    kernels = ("--kernel", "debian:6.1", "--kernel", "debian:6.12")
    result = ktrial("compare", *kernels, "--workload", "fork", "--cpus", "4")
    assert result.status == 1
    assert "Machine exact runs 4 CPUs only with QEMU 10.0 or later" in result.messages
    assert hint(result).startswith("the machine exact-parallel runs several CPUs on this QEMU: ktrial scale")
    assert "trials" not in result.messages


INERT = """\
question = "Does swappiness matter?"
perturbations = 1
workloads = ["fork"]
[machine]
kernel = "debian:6.1"
{more}
[factors."vm.swappiness"]
levels = [60, 10]
"""


def test_a_study_whose_only_factor_cannot_act_is_refused_before_anything_is_booted(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    machine = ScriptedMachine()
    ktrial.machine(machine)
    (tmp_path / "inert.toml").write_text(INERT.format(more=""))
    result = ktrial("run", "inert.toml")
    assert result.status == 2
    assert "vm.swappiness cannot act: the study's guests have no swap" in result.messages
    assert not machine.prepared
    assert not (tmp_path / "ktrial.db").exists()


@pytest.mark.parametrize("words", [("-- /bin/true",), ("fork",), ("fork", "--swap", "64M")])
def test_of_a_command_too_a_setting_that_cannot_act_is_refused(
    words: tuple[str, ...], ktrial: CommandLine, tmp_path: Path
) -> None:
    """A guest that has swap is none of them."""
    ktrial.machine(ScriptedMachine())
    compare = ("compare", "--kernel", "debian:6.1", "--knob", "vm.swappiness=60,10", "--dry-run")
    parts = [part for word in words for part in word.split()]
    result = ktrial(*compare, *parts)
    refused = "--swap" not in words
    assert result.status == (2 if refused else 0), result.messages
    assert ("the study's guests have no swap" in result.messages) == refused
    assert result.messages.count("cannot act") == refused


def test_on_a_system_without_swap_a_setting_of_swap_is_refused_as_in_guests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = MachineSettings(kind="host")
    monkeypatch.setattr("ktrial.experiment.preflight.has_swap", lambda: True)
    check_knobs(["vm.swappiness"], here)
    monkeypatch.setattr("ktrial.experiment.preflight.has_swap", lambda: False)
    for names in (["vm.swappiness"], ["vm.swappiness", "vm.dirty_ratio"]):
        with pytest.raises(StudyRefused, match=r"vm\.swappiness cannot act: this system has no swap"):
            check_knobs(names, here)
    check_knobs(["vm.dirty_ratio"], here)


@pytest.mark.parametrize(
    "words",
    [
        ("tune", "--machine", "exact", "--knobs", "vm.swappiness"),
        ("tune", "--machine", "exact", "--knobs", "boot:zswap.enabled"),
        ("bisect", "knobs", "--knob", "vm.swappiness=60..10"),
    ],
)
def test_a_search_whose_only_knob_cannot_act_is_refused_before_anything_is_booted(
    words: tuple[str, ...], ktrial: CommandLine, tmp_path: Path
) -> None:
    result = ktrial(*words, "--kernel", "debian:6.1", "--workload", "fork")
    assert result.status == 2
    assert "cannot act: the guests have no swap." in result.messages
    assert hint(result).startswith("give the guest swap and less memory")
    assert not (tmp_path / "ktrial.db").exists()


def test_in_python_too_a_study_whose_only_factor_cannot_act_is_refused(
    ktrial: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "inert.toml").write_text(INERT.format(more=""))
    with pytest.raises(StudyRefused, match="the study's guests have no swap"):
        api.run(api.load_study(tmp_path / "inert.toml"))


@pytest.mark.parametrize(
    ("knob", "there"),
    [("vm.dirty_ratio", "no disk"), ("vm.page-cluster", "no swap"), ("boot:zswap.enabled", "no swap")],
)
def test_a_factor_that_cannot_act_is_refused_beside_one_that_can_too(
    knob: str, there: str, ktrial: CommandLine, tmp_path: Path
) -> None:
    machine = ScriptedMachine()
    ktrial.machine(machine)
    kind, _, name = knob.rpartition(":")
    table = f'[factors.other]\nkind = "{kind or "setting"}"\ntarget = "{name}"\nlevels = ["1", "0"]\n'
    text = INERT.format(more="").replace("vm.swappiness", "vm.vfs_cache_pressure") + table
    (tmp_path / "half.toml").write_text(text)
    result = ktrial("run", "half.toml")
    assert result.status == 2
    assert "other cannot act" in result.messages
    assert there in result.messages
    assert not machine.prepared
