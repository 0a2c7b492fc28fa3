"""What one author's code leaves in a build is in nobody else's kernel. No compiler runs."""

from difflib import unified_diff
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source, a_patch, compiled, has_what_builds_need

from ktrial.kernels.build import sandbox
from ktrial.kernels.build.build_trees import kept_trees
from ktrial.kernels.build.builds import build, same_from_nothing
from ktrial.kernels.build.requests import requested
from ktrial.model.kernel import OWN, Build, Kernel

POISON = "$(shell for f in $(O)/kernel/*.o; do [ ! -e $$f ] || echo poison >> $$f; done)"
"""A Makefile's line that changes what other files were compiled to."""
HIDDEN = "$(shell mkdir -p $$CCACHE_DIR && echo poison > $$CCACHE_DIR/result)"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_buildable_source(tmp_path / "linux")


@pytest.fixture
def benign(source: Path) -> str:
    return kept_patch(source, "benign", a_patch(source, "sched", "slice = 3", "slice = 4"))


def kept_patch(source: Path, name: str, text: str) -> str:
    path = source.parent / f"{name}.patch"
    path.write_text(text)
    return str(path)


def makefile_patch(source: Path, line: str, *, back: bool = False) -> str:
    """A patch that adds a line to the Makefile, or takes it back."""
    before = (source / "Makefile").read_text().splitlines(keepends=True)
    after = [*before[:4], f"{line}\n", *before[4:]]
    texts = (after, before) if back else (before, after)
    text = "".join(unified_diff(*texts, "a/Makefile", "b/Makefile"))
    return kept_patch(source, f"hostile{sha256(text.encode()).hexdigest()[:6]}", text)


def asked(source: Path, *patches: str, series: str = "", config: str = "guest") -> Build:
    request = requested(str(source), patches=patches, config=config, directory=Path("/"))
    return request.model_copy(update={"series": series})


def image(kernel: Kernel) -> bytes:
    return kernel.image.read_bytes()


def in_an_empty_cache(request: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    with monkeypatch.context() as context:
        context.setenv("KTRIAL_CACHE", str(tmp_path / "empty"))
        sandbox.forget()
        content = image(build(request))
    sandbox.forget()
    return content


def test_a_benign_patch_after_a_hostile_one_is_the_kernel_of_an_empty_cache(
    source: Path, benign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned = image(build(asked(source, makefile_patch(source, POISON))))
    assert b"poison" in poisoned, "it reached its own kernel"
    after = image(build(asked(source, benign)))
    assert after == in_an_empty_cache(asked(source, benign), tmp_path, monkeypatch)
    assert b"poison" not in after


def test_the_source_itself_is_not_what_a_hostile_patch_has_left(source: Path) -> None:
    build(asked(source, makefile_patch(source, POISON)))
    assert b"poison" not in image(build(asked(source)))


def test_a_series_that_takes_its_hostile_patch_back_is_not_the_source(source: Path) -> None:
    """The files are the source's, but what compiled them had run the patch."""
    hostile = makefile_patch(source, POISON)
    undone = makefile_patch(source, POISON, back=True)
    build(asked(source, hostile, series="them"))
    build(asked(source, hostile, undone, series="them"))
    assert b"poison" not in image(build(asked(source)))


def test_a_kernel_of_a_series_is_not_the_answer_for_its_patch_alone(source: Path, benign: str) -> None:
    hostile = makefile_patch(source, POISON)
    build(asked(source, hostile, series="them"))
    build(asked(source, benign, series="them"))
    assert b"poison" not in image(build(asked(source, benign)))


def test_nothing_that_a_patch_puts_into_ccache_is_read_by_others(source: Path, cache: Path) -> None:
    build(asked(source, makefile_patch(source, HIDDEN)))
    poisoned = [path for path in cache.rglob("result") if path.read_text() == "poison\n"]
    assert sandbox.ccache_directory() not in {path.parent for path in poisoned}
    assert poisoned or sandbox.problem(), "it was tried"
    build(asked(source))
    assert {path for path in cache.rglob("result") if path.read_text() == "poison\n"} == set(poisoned)


def test_of_a_series_each_patch_compiles_only_what_it_touches(source: Path, benign: str, cache: Path) -> None:
    second = kept_patch(source, "second", a_patch(source, "fork", "int fork", "int fork2"))
    build(asked(source))
    build(asked(source, benign, series="ours"))
    build(asked(source, benign, second, series="ours"))
    assert compiled(cache) == ["fork", "fork", "sched", "sched"]
    assert len(kept_trees()) == 2, "the source's, and the series'"


@pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "there is a sandbox")
def test_a_copy_of_a_tree_is_seen_where_the_first_one_lies(source: Path, benign: str, cache: Path) -> None:
    """kbuild's tools note absolute paths, and every object of a kernel depends on them."""
    build(asked(source))
    (first,) = (cache / "trees").glob("*/source/build")
    before = (first / "flags").read_text()
    build(asked(source, benign))
    (copy,) = set((cache / "trees").glob("*/source/build")) - {first}
    assert f"O={first}" in before
    assert (copy / "flags").read_text() == before


def test_a_patch_of_a_source_that_was_never_built_compiles_that_first(
    source: Path, benign: str, cache: Path
) -> None:
    messages: list[str] = []
    build(asked(source, benign), lambda step, finished=0, total=0: messages.append(step))
    assert any(message.startswith("first the source without patches: building") for message in messages)
    assert compiled(cache) == ["fork", "sched", "sched"]
    build(asked(source))
    assert compiled(cache) == ["fork", "sched", "sched"]


@pytest.fixture
def far(tmp_path: Path) -> str:
    """A configuration with which most files of a kernel would be compiled anew."""
    path = tmp_path / "far.config"
    path.write_text("".join(f"CONFIG_FAR_{number}=y\n" for number in range(300)))
    return str(path)


def test_two_configurations_have_a_tree_each_that_patches_begin_from(
    source: Path, benign: str, far: str, cache: Path
) -> None:
    for config in ("guest", far):
        build(asked(source, config=config))
    assert compiled(cache) == ["fork", "fork", "sched", "sched"]
    for config in ("guest", far):
        build(asked(source, benign, series="them", config=config))
    assert compiled(cache) == ["fork", "fork", "sched", "sched", "sched", "sched"]
    assert len(kept_trees()) == 4


def test_a_patch_does_not_begin_from_a_tree_of_a_configuration_far_away(
    source: Path, benign: str, far: str
) -> None:
    """It would compile the kernel anew, and so would the next one, of another series."""
    build(asked(source, config=far))
    messages: list[str] = []
    for series, is_first in (("them", True), ("others", False)):
        messages.clear()
        build(asked(source, benign, series=series), lambda step, *_: messages.append(step))
        first = any(message.startswith("first the source without patches") for message in messages)
        assert first is is_first, series


def test_a_patch_that_mends_a_source_that_does_not_compile_is_built(source: Path) -> None:
    broken = source / "kernel/fork.c"
    broken.write_text("int fork; ERROR\n")
    mend = kept_patch(source, "mend", a_patch(source, "fork", "int fork; ERROR", "int mended;"))
    assert b"mended" in image(build(asked(source, mend)))


@pytest.mark.parametrize(("line", "same"), [("# a comment", True), (POISON, False)])
def test_a_kernel_that_a_series_has_poisoned_is_another_one_from_nothing(
    line: str, same: bool, source: Path, benign: str, cache: Path
) -> None:
    added, undone = makefile_patch(source, line), makefile_patch(source, line, back=True)
    build(asked(source, added, series="them"))
    request = asked(source, added, undone, benign, series="them")
    kernel = build(request)
    before = len(kept_trees())
    assert same_from_nothing(kernel, request) is same
    assert len(kept_trees()) == before, "the tree from nothing does not stay"
    assert list(cache.glob("series/from-nothing/*")) if same else True


@pytest.mark.parametrize(
    ("patches", "series", "domain"),
    [((), "", OWN), ((), "them", OWN), (("benign",), "them", "them"), (("benign",), OWN, OWN)],
)
def test_whose_code_a_build_runs(
    patches: tuple[str, ...], series: str, domain: str, source: Path, benign: str
) -> None:
    files = [benign for _ in patches]
    assert asked(source, *files, series=series).domain == domain


def test_patches_that_are_of_no_series_are_one_of_their_own(source: Path, benign: str) -> None:
    hostile = makefile_patch(source, POISON)
    domains = {asked(source, *patches).domain for patches in ((benign,), (hostile,), (benign, hostile))}
    assert len(domains | {OWN}) == 4
