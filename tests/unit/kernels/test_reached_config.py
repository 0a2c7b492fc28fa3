"""Of a configuration that people ship, what guests reach is built, and what the touched files need."""

from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import a_resolving_source

from ktrial.kernels.build.builds import build, configured, job_of
from ktrial.kernels.build.reached import not_held, options_of, reached
from ktrial.kernels.build.requests import asked_options, reaching, requested
from ktrial.kernels.config import parse_config
from ktrial.kernels.errors import BadConfigFile
from ktrial.model.kernel import Build, MenuOption, Menus

KCONFIG = """\
config MODULES
\tbool "Modules"
\toption modules

config 64BIT
\tdef_bool y

config SMP
\tbool "Several CPUs"

config NET
\tbool "Networking"

config EXT4_FS
\ttristate "The file system that guests have"
\tselect CRC

config CRC
\ttristate

config NULL_DISK
\tbool "A disk that guests have, and distributions lack"

config LIBRAID
\ttristate "What others need"

config BTRFS
\ttristate "A file system that people load"
\tdepends on LIBRAID

config BTRFS_ACL
\tbool "Its rights"
\tdepends on BTRFS

config HELPER
\ttristate "A module by its own default"
\tdefault m

config WIFI
\ttristate "Hardware that no guest has"

config WIFI_LEDS
\tbool "Its lamps"
\tdepends on WIFI

config SIGNED
\tbool "Cannot be on here"
\tdepends on ABSENT
"""
SHIPPED = """\
CONFIG_MODULES=y
CONFIG_SMP=y
CONFIG_NET=y
CONFIG_EXT4_FS=m
CONFIG_CRC=m
CONFIG_LIBRAID=m
CONFIG_BTRFS=m
CONFIG_BTRFS_ACL=y
CONFIG_WIFI=m
CONFIG_WIFI_LEDS=y
CONFIG_SIGNED=y
"""
MAKEFILES = {
    "fs/Makefile": "obj-y += open.o\nobj-$(CONFIG_BTRFS) += btrfs/\nobj-$(CONFIG_EXT4_FS) += ext4/\n",
    "fs/btrfs/Makefile": "obj-$(CONFIG_BTRFS) := btrfs.o\n"
    "btrfs-y += super.o tree/node.o \\\n\tinode.o # all\nbtrfs-$(CONFIG_BTRFS_ACL) += acl.o\n",
    "net/Kbuild": "obj-$(CONFIG_WIFI) += wifi.o\nwifi-objs := radio.o\n",
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools", lambda *_, **__: None)
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools_of", lambda *_, **__: None)
    # This source's make runs the tests' own Python, which no sandbox holds.
    monkeypatch.setattr("ktrial.kernels.build.sandbox.problem", lambda: "not wanted here")
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = a_resolving_source(tmp_path / "linux", KCONFIG)
    for name, text in MAKEFILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    path = tmp_path / "config-6.1"
    path.write_text(SHIPPED)
    return path


def asked(source: Path, config: str, *touched: str) -> Build:
    return reaching(requested(str(source), config=config, directory=Path("/")), touched)


def is_on(source: Path, config: str, *touched: str) -> dict[str, str]:
    options = configured(asked(source, config, *touched))
    return {name.removeprefix("CONFIG_"): value for name, value in options.items()}


def test_what_is_built_in_stays_and_of_modules_only_what_guests_use_is_built_in(
    source: Path, shipped: Path
) -> None:
    assert is_on(source, f"reached:{shipped}") == {
        "MODULES": "y",
        "64BIT": "y",
        "SMP": "y",
        "NET": "y",
        "EXT4_FS": "y",
        "CRC": "y",
    }


def test_a_file_alone_is_taken_as_it_is(source: Path, shipped: Path) -> None:
    options = is_on(source, str(shipped))
    assert (options["BTRFS"], options["WIFI"], options["HELPER"]) == ("m", "m", "m")


def test_a_touched_file_s_option_is_built_in_with_what_it_depends_on(source: Path, shipped: Path) -> None:
    options = is_on(source, f"reached:{shipped}", "fs/btrfs/acl.c")
    assert options.items() >= {"BTRFS": "y", "LIBRAID": "y", "BTRFS_ACL": "y"}.items()
    assert "WIFI" not in options


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("fs/open.c", set()),
        ("fs/btrfs/inode.c", {"BTRFS"}),
        ("fs/btrfs/acl.c", {"BTRFS", "BTRFS_ACL"}),
        ("fs/btrfs/tree/node.c", {"BTRFS"}),
        ("net/radio.c", {"WIFI"}),
        ("fs/btrfs/ctree.h", set()),
        ("fs/gone/away.c", set()),
    ],
)
def test_makefiles_say_for_which_options_a_file_is_compiled(path: str, options: set[str]) -> None:
    assert options_of([path], MAKEFILES.get) == {f"CONFIG_{name}" for name in options}


def test_the_user_s_own_module_stays_one(source: Path, shipped: Path) -> None:
    build = requested(
        str(source), config=f"reached:{shipped}", options=["BTRFS=m", "LIBRAID=y"], directory=Path("/")
    )
    assert dict(configured(build))["CONFIG_BTRFS"] == "m"


def test_an_option_that_did_not_hold_is_named_and_no_other(
    source: Path, shipped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = asked(source, f"reached:{shipped}")
    assert build(spec).origin.not_held == ("CONFIG_SIGNED",), "the lamps went with the hardware"
    assert build(spec).origin.not_held == ("CONFIG_SIGNED",), "as it was kept"
    shown = CommandLine(monkeypatch, capsys)("kernel", "show", spec.name).output
    assert "SIGNED" in next(line for line in shown.splitlines() if "not held" in line)


def test_what_guests_need_and_a_distribution_lacks_is_on_and_told() -> None:
    menus = Menus(
        options={
            name: MenuOption(kind="bool", prompt=name)
            for name in ("CONFIG_PVH", "CONFIG_EXPERT", "CONFIG_NET", "CONFIG_BLK_DEV_PMEM")
        }
    )
    plan = reached("CONFIG_NET=m\n", "CONFIG_PVH=y\nCONFIG_EXPERT=y\nCONFIG_GONE=y\n", (), menus)
    assert parse_config(plan.text) == {"CONFIG_PVH": "y", "CONFIG_BLK_DEV_PMEM": "y"}
    assert str(plan) == "of its modules 0 are built in, 1 are off; on for guests: BLK_DEV_PMEM, PVH"


def test_a_dependency_that_is_denied_is_not_followed() -> None:
    rules = {"A": "B && (C || C=n) && !D && E", "B": "", "C": "", "D": "", "E": "F", "F": ""}
    menus = Menus(
        options={
            f"CONFIG_{name}": MenuOption(kind="tristate", depends=depends) for name, depends in rules.items()
        }
    )
    plan = reached("".join(f"CONFIG_{name}=m\n" for name in rules), "", ["CONFIG_A"], menus)
    assert plan.built_in == ("CONFIG_A", "CONFIG_B", "CONFIG_E", "CONFIG_F")
    assert plan.off == {"CONFIG_C", "CONFIG_D"}


def test_a_choice_that_is_gone_as_a_whole_is_no_loss() -> None:
    menus = Menus(
        options={
            "CONFIG_ONE": MenuOption(kind="bool", prompt="one", choice=("ONE", "TWO")),
            "CONFIG_ALONE": MenuOption(kind="bool", prompt="alone"),
        }
    )
    shipped = {"CONFIG_ONE": "y", "CONFIG_ALONE": "y"}
    assert not_held(shipped, {}, (), menus) == ("CONFIG_ALONE",)
    assert not_held(shipped, {"CONFIG_TWO": "y"}, (), menus) == ("CONFIG_ALONE", "CONFIG_ONE")
    assert not_held(shipped, {}, ("CONFIG_ALONE",), menus) == ()


def test_files_and_what_is_reached_are_part_of_a_kernel_s_key(source: Path, shipped: Path) -> None:
    whole, own = asked(source, str(shipped)), asked(source, f"reached:{shipped}")
    touched = asked(source, f"reached:{shipped}", "fs/btrfs/acl.c")
    assert len({whole.key, own.key, touched.key}) == 3
    assert asked(source, f"reached:{shipped}", "include/x.h", "mm/Makefile").key == own.key
    assert asked(source, str(shipped), "fs/btrfs/acl.c").key == whole.key
    core = asked(source, f"reached:{shipped}", "fs/open.c")
    contents = {job_of(spec, lambda *_: None).content for spec in (own, core)}
    assert len(contents) == 1, "a file that is compiled anyhow makes no other kernel"


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("debian:bookworm", "called by a series of kernels, debian:6.12"),
        ("debian:", "called by a series of kernels"),
        ("reached:nowhere", "No such file"),
    ],
)
def test_a_configuration_that_is_none_is_refused_before_anything_is_built(
    config: str, problem: str, source: Path
) -> None:
    with pytest.raises(BadConfigFile, match=problem):
        asked(source, config)


def test_nothing_of_a_distributor_s_is_asked_of_this_system(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("CONFIG_DEBUG_INFO_BTF=y\nCONFIG_MODULE_SIG=y\nCONFIG_EXT4_FS=m\n")
    assert asked_options(f"reached:{path}", {}) == {}
    assert asked_options("debian:6.12", {"CONFIG_SLUB": "y"}) == {"CONFIG_SLUB": "y"}
