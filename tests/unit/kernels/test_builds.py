"""Kernels built by content: what is built once, what is built again, what is kept. No compiler runs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.fake_builds import FILES, a_buildable_source, a_patch, compiled

from ktrial.experiment.provenance import patch_warnings
from ktrial.kernels import files, kernel_registry, silent
from ktrial.kernels.build import build_trees
from ktrial.kernels.build.build_trees import BuildTree, kept_trees
from ktrial.kernels.build.builds import build, cached, configured
from ktrial.kernels.build.make import build_seconds
from ktrial.kernels.build.recipes import give_alias
from ktrial.kernels.build.requests import requested
from ktrial.kernels.config import config_of
from ktrial.kernels.errors import (
    BadKernelName,
    BuildError,
    CacheFull,
    CompilerUnsuitable,
    KernelDamaged,
    KernelNameAmbiguous,
    KernelNotFound,
    OptionNotTaken,
)
from ktrial.kernels.kernel_cache import held
from ktrial.model.kernel import Build, Kernel
from ktrial.model.warnings import WarningKind


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools", lambda *_, **__: None)
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools_of", lambda *_, **__: None)
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_buildable_source(tmp_path / "linux")


def asked(source: Path | str, **parts: object) -> Build:
    return requested(str(source), directory=Path("/"), **parts)  # type: ignore[arg-type]


def test_a_build_is_in_the_cache_under_its_name(source: Path, cache: Path) -> None:
    spec = asked(source, options=["HZ_1000=y"])
    assert cached(spec) is None
    kernel = build(spec)
    assert kernel.name == spec.name
    assert kernel.origin.build == spec
    assert kernel.origin.compiler.startswith("gcc")
    assert config_of(kernel)["CONFIG_HZ_1000"] == "y"
    assert cached(spec) == build(spec) == kernel
    assert kernel_registry.get(spec.name).digest == kernel.digest
    assert compiled(cache) == ["fork", "sched"]


def test_the_source_is_never_written_to(source: Path, tmp_path: Path) -> None:
    (tmp_path / "p.patch").write_text(a_patch(source, "sched", "slice = 3", "slice = 5"))
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    build(asked(source, patches=[str(tmp_path / "p.patch")]))
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before


def test_what_is_the_same_is_compiled_once_whatever_it_is_called(
    source: Path, tmp_path: Path, cache: Path
) -> None:
    first = build(asked(source, options=["HZ_1000=y"]))
    elsewhere = a_buildable_source(tmp_path / "elsewhere" / "other")
    second = build(asked(elsewhere, options=["CONFIG_HZ_1000=y"]))
    assert (first.name != second.name, first.digest) == (True, second.digest)
    assert compiled(cache) == ["fork", "sched"]


def test_the_nearest_tree_is_changed_and_only_what_differs_is_compiled(source: Path, cache: Path) -> None:
    first = build(asked(source))
    (source / "kernel/sched.c").write_text("int other;\n")
    spec = asked(source)
    assert cached(spec) is None, "the source has changed since"
    second = build(spec)
    assert second.digest != first.digest
    assert compiled(cache) == ["fork", "sched", "sched"]
    kernel_registry.remove(spec.name)
    (source / "kernel/sched.c").write_text(FILES["sched"])
    assert build(spec).digest == first.digest, "the same inputs give the same kernel"
    assert compiled(cache) == ["fork", "sched", "sched", "sched"], "an old content has a new time stamp"


def test_a_copy_of_the_source_elsewhere_begins_with_the_tree_of_the_first(
    source: Path, cache: Path, tmp_path: Path
) -> None:
    """As a work tree of git does: what is compiled anew is what differs, not all."""
    build(asked(source))
    elsewhere = shutil.copytree(source, tmp_path / "elsewhere")
    (elsewhere / "kernel/fork.c").write_text("int knife;\n")
    build(asked(elsewhere))
    assert compiled(cache) == ["fork", "fork", "sched"]


@pytest.mark.parametrize(
    ("changed", "is_configured"),
    [("kernel/sched.c", False), ("init/Kconfig", True), ("scripts/kconfig/conf.c", True)],
)
def test_a_tree_is_configured_again_only_where_what_configuring_reads_has_changed(
    source: Path, changed: str, is_configured: bool
) -> None:
    build(asked(source))
    path = source / changed
    path.write_text(f"{path.read_text() if path.exists() else ''}\n")
    messages: list[str] = []
    build(asked(source), lambda step, *_: messages.append(step))
    steps = {step.partition(":")[0] for step in messages}
    assert ("configuring" in steps, "building" in steps) == (is_configured, True)


def test_a_configuration_that_somebody_changed_in_the_tree_is_made_anew(source: Path, cache: Path) -> None:
    first = build(asked(source))
    [config] = (cache / "trees").glob("*/source/build/.config")
    config.write_text("CONFIG_OTHER=y\n")
    (source / "kernel/sched.c").write_text("int other;\n")
    assert config_of(build(asked(source))) == config_of(first)


def test_other_options_reuse_the_tree_and_other_flags_get_one_of_their_own(source: Path, cache: Path) -> None:
    build(asked(source))
    assert build_seconds() is not None
    build(asked(source, options=["HZ_1000=y"]))
    assert compiled(cache) == ["fork", "sched"]
    assert len(kept_trees()) == 1
    past = json.loads((cache / "trees/rate.json").read_bytes())["builds"]
    assert [past_build["from_nothing"] for past_build in past] == [True, False]
    build(asked(source, make={"KCFLAGS": "-O3"}))
    assert compiled(cache) == ["fork", "fork", "sched", "sched"]
    assert len(kept_trees()) == 2


def test_the_final_configuration_is_known_without_compiling(source: Path, cache: Path) -> None:
    options = configured(asked(source, options=["HZ_1000=y"]))
    assert (options["CONFIG_HZ_1000"], options["CONFIG_PVH"]) == ("y", "y")
    assert compiled(cache) == []
    with pytest.raises(OptionNotTaken, match="CONFIG_NEEDS_BROKEN=y could not be set"):
        configured(asked(source, options=["NEEDS_BROKEN=y"]))
    with pytest.raises(OptionNotTaken, match=r"has no such option .did you mean CONFIG_SMP"):
        configured(asked(source, options=["SMPUNKNOWN=y"]))


def test_a_compiler_that_the_source_finds_too_old_is_told_with_what_is_wanted(source: Path) -> None:
    script = source / "scripts/min-tool-version.sh"
    script.write_text("echo 99.1.0\n")
    with pytest.raises(
        CompilerUnsuitable, match=r"needs gcc 99\.1\.0 or newer; this system has gcc"
    ) as caught:
        build(asked(source))
    assert "--make CC=gcc-99" in caught.value.advice


def test_a_full_disk_is_an_error_before_and_during_the_build(
    source: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    (source / "full").touch()
    with pytest.raises(CacheFull):
        build(asked(source))
    monkeypatch.setattr(files, "free_bytes", lambda directory: 1 << 20)
    (source / "full").unlink()
    (source / "kernel/fork.c").write_text("int another;\n")
    with pytest.raises(CacheFull, match=r"500|524"):
        build(asked(source, make={"KCFLAGS": "-O3"}))


def test_a_patch_that_lies_elsewhere_is_kept_with_the_kernel(source: Path, tmp_path: Path) -> None:
    (tmp_path / "p.patch").write_text(a_patch(source, "sched", "slice = 3", "slice = 4"))
    (source / "kernel/sched.c").write_text("// new\n" + FILES["sched"])
    spec = asked(source, patches=[str(tmp_path / "p.patch")])
    message = ("p.patch: hunk 1 of kernel/sched.c applies 1 line later than it says",)
    assert build(spec).origin.inexact_patches == message
    kept = cached(spec)
    assert kept is not None
    (warning,) = patch_warnings(kept)
    assert warning.kind is WarningKind.INEXACT_PATCH
    assert message[0] in warning.text
    assert patch_warnings(build(asked(source))) == ()


def test_the_oldest_tree_goes_and_one_in_use_stays(
    source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_trees, "MOST_TREES", 2)
    flags = [asked(source, make={"KCFLAGS": f"-D{letter}"}) for letter in "abc"]
    for expected in flags[:2]:
        build(expected)
    (oldest,) = (
        tree
        for tree in map(BuildTree, cache.glob("trees/*/"))
        if (record := tree.record()) and record.kernel == flags[0].name
    )
    with held(oldest.home.with_suffix(".lock"), silent, ""):
        build(flags[2])
    assert {tree.kernel for tree in kept_trees()} == {flags[0].name, flags[2].name}


def test_ones_own_tree_stays_where_a_strangers_build_was_interrupted(
    source: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stranger's is copied from it in seconds; what it begins from takes as long as a kernel takes."""
    monkeypatch.setattr(build_trees, "MOST_TREES", 2)
    patch = tmp_path / "p.patch"
    patch.write_text(a_patch(source, "sched", "slice = 3", "slice = 5"))
    own, strangers = asked(source), asked(source, patches=[str(patch)])
    for spec in (own, strangers):
        build(spec)
    for tree in map(BuildTree, cache.glob("trees/*/")):
        if (record := tree.record()) and record.kernel == strangers.name:
            tree.keep_record(record.model_copy(update={"finished": False}))
    another = asked(source, make={"KCFLAGS": "-DA"})
    build(another)
    assert {tree.kernel for tree in kept_trees()} == {own.name, another.name}


def test_a_kernel_that_was_removed_is_built_again_by_its_name(source: Path, tmp_path: Path) -> None:
    patch = tmp_path / "p.patch"
    patch.write_text(a_patch(source, "sched", "slice = 3", "slice = 5"))
    first = build(asked(source, patches=[str(patch)]))
    patch.unlink()
    kernel_registry.remove(first.name)
    again = kernel_registry.add(first.name)
    assert (again.name, again.digest, again.origin.build) == (first.name, first.digest, first.origin.build)
    with pytest.raises(BuildError, match="never built here"):
        kernel_registry.add("build:nothing@0123456789ab")


@pytest.mark.parametrize("have", [kernel_registry.obtain, kernel_registry.add])
def test_a_damaged_kernel_is_built_again(source: Path, have: Callable[[str], Kernel]) -> None:
    first = build(asked(source))
    image = first.image.read_bytes()
    first.image.write_bytes(image[:-1] + bytes([image[-1] ^ 1]))
    with pytest.warns(UserWarning, match=r"\(vmlinuz\): made again from the source .*linux"):
        assert have(first.name).digest == first.digest
    assert first.image.read_bytes() == image


@pytest.mark.parametrize("part", ["config", "vmlinux"])
def test_a_kernel_with_another_configuration_or_image_than_it_was_built_with_is_built_again(
    part: str, source: Path
) -> None:
    """What a series tells of its options and functions is read from these files."""
    kernel = build(asked(source))
    path = kernel.image.with_name(part)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"=y", b"=m", 1) + b"\n")
    assert cached(asked(source)) is None
    with pytest.warns(UserWarning, match=rf"was damaged in the cache \({part}\): made again"):
        assert build(asked(source)) == kernel
    assert path.read_bytes() == whole


def test_a_damaged_kernel_whose_source_is_another_now_is_refused(source: Path) -> None:
    first = build(asked(source))
    first.image.write_bytes(first.image.read_bytes()[:-1])
    (source / "kernel/sched.c").write_text("// new\n" + FILES["sched"])
    with pytest.raises(KernelDamaged, match="what can be built now is not the source"):
        kernel_registry.obtain(first.name)


def test_a_built_kernel_has_short_names(source: Path) -> None:
    spec = asked(source, options=["HZ_1000=y"])
    kernel = build(spec)
    give_alias("fast", kernel.name)
    key = kernel.name.rpartition("@")[2]
    for name in ("build:fast", f"build:{key[:6]}", "build:linux+HZ", f"build:@{key}", kernel.name):
        assert kernel_registry.get(name).name == kernel.name
    build(asked(source, options=["HZ_1000=y", "SLAB=y"]))
    with pytest.raises(BadKernelName, match="Several built kernels") as message:
        kernel_registry.add("build:linux+HZ")
    assert kernel.name in message.value.advice
    for refused in (kernel_registry.get, kernel_registry.remove):
        with pytest.raises(KernelNameAmbiguous):
            refused("build:linux+HZ")
    assert kernel_registry.canonical_name("build:linux+HZ") == "build:linux+HZ"
    with pytest.raises(KernelNotFound) as missing:
        kernel_registry.get("build:nothing")
    assert "kernel add" not in missing.value.advice
    with pytest.raises(BadKernelName):
        give_alias("a b", kernel.name)


def test_modules_are_installed_beside_the_kernel(source: Path) -> None:
    makefile = source / "Makefile"
    rule = "modules:\n\t@true\nmodules_install:\n\t@mkdir -p $(INSTALL_MOD_PATH)/lib/modules/6.1.7\n"
    rule += "\t@cp module.bin $(INSTALL_MOD_PATH)/lib/modules/6.1.7/module.ko\n"
    makefile.write_text(makefile.read_text() + rule)
    (source / "module.bin").write_bytes(b"\x7fELF vermagic=6.1.7 SMP \0")
    kernel = build(asked(source, options=["XFS_FS=m"]))
    assert kernel.modules is not None
    assert (kernel.modules / "module.ko").exists()
