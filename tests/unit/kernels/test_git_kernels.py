"""Commits as kernels: `git:DIRECTORY@REVISION` wherever a kernel is named."""

from pathlib import Path

import pytest
from tests.support.fake_builds import FILES, a_buildable_source, compiled, git

from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import BadKernelName, SourceUnusable
from ktrial.kernels.providers.git import pinned


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools", lambda *_, **__: None)
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools_of", lambda *_, **__: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    source = a_buildable_source(tmp_path / "linux")
    git(source, "init", "--quiet", "--initial-branch", "main")
    committed(source, "first")
    git(source, "tag", "-a", "-m", "one", "v6.1")
    return source


def committed(source: Path, subject: str) -> None:
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", subject)


def test_a_commit_is_a_kernel_that_is_built_where_it_is_named(repository: Path, cache: Path) -> None:
    name = f"git:{repository}@v6.1"
    assert kernel_registry.reference("git:linux@v6.1").name == name
    kernel = kernel_registry.obtain(kernel_registry.reference("git:linux@v6.1"))
    assert (kernel.name, kernel.release) == (name, "6.1.7")
    assert kernel.origin.build is not None
    assert kernel_registry.obtain(name) == kernel
    assert compiled(cache) == ["fork", "sched"], "built once"


def test_a_branch_that_has_moved_is_built_anew(repository: Path, cache: Path) -> None:
    name = f"git:{repository}@main"
    first = kernel_registry.obtain(name)
    (repository / "kernel/fork.c").write_text("int knife;\n")
    assert kernel_registry.obtain(name).digest == first.digest, "nothing is committed"
    committed(repository, "second")
    assert kernel_registry.obtain(name).digest != first.digest
    (repository / "kernel/fork.c").write_text(FILES["fork"])
    committed(repository, "third")
    assert kernel_registry.obtain(name).digest == first.digest


def test_without_git_a_branch_stays_and_the_preflight_names_git_with_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ktrial.system_tools.SBIN", ())
    assert pinned(f"git:{tmp_path}@main") == f"git:{tmp_path}@main"


def test_a_branch_is_pinned_to_what_it_is_now(repository: Path) -> None:
    (repository / "kernel/fork.c").write_text("int knife;\n")
    committed(repository, "second")
    commit = git(repository, "rev-parse", "--short=12", "HEAD")
    assert pinned("git:linux@main") == f"git:linux@v6.1-1-g{commit}"
    assert pinned("git:linux@main~1") == "git:linux@v6.1"
    assert pinned("debian:6.1") == "debian:6.1"


@pytest.mark.parametrize("name", ["git:", "git:linux", "git:@v6.1"])
def test_a_commit_without_directory_or_revision_is_refused(name: str) -> None:
    with pytest.raises(BadKernelName, match="it has no directory and revision"):
        kernel_registry.reference(name)


def test_a_revision_that_is_none_is_refused(repository: Path) -> None:
    with pytest.raises(SourceUnusable, match="it has no revision 'nowhere'"):
        kernel_registry.obtain("git:linux@nowhere")
    with pytest.raises(SourceUnusable, match="it has no revision 'nowhere'"):
        pinned("git:linux@nowhere")
