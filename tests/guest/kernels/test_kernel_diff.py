"""Kernel diff on real kernels and real Kconfig files: Debian's kernels, SLAB and SLUB of one source."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ktrial.analysis.kernel_diff import difference_between, difference_of
from ktrial.cli.commands.kernel import app
from ktrial.kernels import kernel_registry
from ktrial.kernels.build.builds import configured
from ktrial.kernels.config import config_of
from ktrial.model.kernel import Build, Kernel, KernelDifference, OptionCause, Origin, Respect

pytestmark = pytest.mark.guest
SOURCE = "debian:linux-source-6.1"
DEPENDS_ON_THE_ALLOCATOR = {
    *("CONFIG_SLAB", "CONFIG_SLUB", "CONFIG_SLUB_DEBUG", "CONFIG_SLUB_CPU_PARTIAL"),
    *("CONFIG_HAVE_ALIGNED_STRUCT_PAGE", "CONFIG_STACKDEPOT", "CONFIG_STACKTRACE"),
}


@pytest.fixture(scope="module")
def difference() -> KernelDifference:
    return difference_between("debian:6.1", "debian:6.12")


def test_debians_kernels_differ_in_version_options_and_compiler(difference: KernelDifference) -> None:
    assert difference.respects == (Respect.VERSION, Respect.OPTIONS, Respect.COMPILER)
    assert difference.before.version.startswith("6.1.")
    assert difference.after.version.startswith("6.12.")
    assert "gcc-12" in difference.before.compiler
    assert "gcc-14" in difference.after.compiler
    changed = {one.option: one for one in difference.options}
    assert changed["CONFIG_CC_VERSION_TEXT"].cause is OptionCause.COMPILER
    assert changed["CONFIG_PER_VMA_LOCK"].cause is OptionCause.SOURCE, "Linux 6.4 brought it"
    assert ("CONFIG_SLAB" in changed) is ("CONFIG_SLAB" in config_of(kernel_registry.get("debian:6.1")))
    placed = [one for one in difference.decided if one.menu]
    assert len(placed) > len(difference.decided) * 0.8, "the configurations themselves tell the menus"
    assert {one.before for one in difference.modules} | {one.after for one in difference.modules} == {
        *("module", "built in", "")
    }


def test_applied_to_the_first_it_gives_the_second_and_mirrored_it_is_the_other_way(
    difference: KernelDifference,
) -> None:
    config = config_of(kernel_registry.get("debian:6.1"))
    assert ("CONFIG_RETPOLINE", "CONFIG_MITIGATION_RETPOLINE") in {
        (one.before, one.after) for one in difference.renamed
    }
    for renamed in difference.renamed:
        if renamed.before in config:
            config[renamed.after] = config.pop(renamed.before)
    for one in difference.options:
        config.pop(one.option, None)
        if one.after is not None:
            config[one.option] = one.after
    assert config == config_of(kernel_registry.get("debian:6.12"))
    back = difference_between("debian:6.12", "debian:6.1")
    assert tuple(one.mirrored for one in back.options) == difference.options


@pytest.mark.nightly  # reads the real Kconfig files of Linux 6.1
def test_a_source_that_is_named_folds_what_follows(difference: KernelDifference) -> None:
    folded = difference_between("debian:6.1", "debian:6.1:generic", sources=[SOURCE])
    assert folded.folded
    assert not difference.folded
    assert folded.respects == (Respect.OPTIONS,)
    followers = sum(one.cause is OptionCause.OPTION for one in folded.options)
    assert followers > 1000, "most of a distribution's drivers hang on a few menus"
    assert folded.following("CONFIG_WLAN") or folded.following("CONFIG_WIRELESS")


@pytest.fixture(scope="module")
def allocators(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kernel, Kernel]:
    """SLUB and SLAB of one source in ktrial's configuration for guests: configured, not compiled."""
    home = tmp_path_factory.mktemp("allocators")
    made = []
    for name in ("SLUB", "SLAB"):
        build = Build(source=SOURCE, options={f"CONFIG_{name}": "y"})
        config = home / name
        config.write_text("".join(f'{key}="{one}"\n' for key, one in configured(build).items()))
        facts = {"name": build.name, "release": "6.1", "image": home / "none", "config": config}
        origin = Origin(provider="build", source=SOURCE, build=build)
        made.append(Kernel(**facts, origin=origin, digest=build.key, config_digest=build.key))
    return made[0], made[1]


@pytest.mark.nightly  # reads the real Kconfig files of Linux 6.1
def test_slab_and_slub_differ_in_one_choice_and_all_else_follows_from_it(
    allocators: tuple[Kernel, Kernel],
) -> None:
    difference = difference_of(*allocators)
    assert difference.folded, difference.unknown
    assert difference.respects == (Respect.OPTIONS,)
    assert [one.option for one in difference.decided] == ["CONFIG_SLAB"]
    assert {one.option for one in difference.options} <= DEPENDS_ON_THE_ALLOCATOR
    assert {one.cause for one in difference.options} == {OptionCause.OWN, OptionCause.OPTION}


def test_the_command_shows_debians_kernels(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["diff", "debian:6.1", "debian:6.12", "--html", str(tmp_path / "x.html")])
    assert run.exit_code == 0
    assert run.stdout.startswith("They differ in version, ")
    assert (tmp_path / "x.html").stat().st_size < 1_000_000
    run = CliRunner().invoke(app, ["diff", "debian:6.1", "debian:6.1", "--json"])
    assert json.loads(run.stdout)["options"] == []
