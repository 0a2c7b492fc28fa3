"""Building is not trusted: what a source runs while it is built reaches its build directory alone."""

import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source, a_patch, has_what_builds_need

from ktrial.experiment.errors import HOST_PROBLEMS
from ktrial.kernels.build import sandbox
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import BuildFailed, ProcessesSpent, SandboxFailed

pytestmark = pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "there is one")

ATTACK = """\
\t@touch {outside}/makefile 2>/dev/null; touch $(CURDIR)/in-source 2>/dev/null; \\
\t cat {outside}/secret > $(O)/stolen 2>/dev/null; \\
\t printf 'x' > /dev/tcp/127.0.0.1/{port} 2>/dev/null; \\
\t echo $$SECRET > $(O)/secret-of-the-environment; ls {outside} > $(O)/listed 2>/dev/null; \\
\t kill -0 {process} 2>/dev/null && touch $(O)/saw-processes; \\
\t id -u > $(O)/user; touch $(O)/own; true
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    has_what_builds_need(monkeypatch, tmp_path / "host")


def hostile(source: Path, target: str, text: str) -> None:
    """Let a target of the makefile begin with this."""
    makefile = source / "Makefile"
    content = makefile.read_text()
    assert f"\n{target}:" in content
    head, _, remainder = content.partition(f"\n{target}:")
    line, _, recipe = remainder.partition("\n")
    makefile.write_text(f"{head}\n{target}:{line}\n{text}{recipe}".replace("SHELL = sh\n", ""))


def product(cache: Path, name: str) -> str:
    (path,) = cache.rglob(f"build/{name}")
    return path.read_text().strip()


@pytest.mark.parametrize("target", ["allnoconfig", "vmlinux"])
def test_a_makefile_reaches_no_file_socket_process_or_secret(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    monkeypatch.setenv("SECRET", "secret")
    source = a_buildable_source(tmp_path / "linux")
    called = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1)
        port = server.getsockname()[1]
        hostile(source, target, ATTACK.format(outside=outside, port=port, process=os.getpid()))
        makefile = source / "Makefile"
        makefile.write_text(f"SHELL = /bin/bash\n{makefile.read_text()}")
        build(requested(str(source), directory=tmp_path))
        try:
            server.accept()
            called.set()
        except TimeoutError:
            pass
    assert not called.is_set(), "it opened a socket"
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert not list((tmp_path / "cache").rglob("in-source"))
    if target == "vmlinux":  # configuring is done in a directory that another one follows
        home = tmp_path / "cache" / "trees"
        assert product(home, "stolen") == ""
        assert product(home, "secret-of-the-environment") == ""
        assert product(home, "listed") == ""
        assert not list(home.rglob("saw-processes"))
        assert product(home, "user") != "0"


def test_a_script_of_the_source_is_confined_too(tmp_path: Path) -> None:
    source = a_buildable_source(tmp_path / "linux")
    script = source / "scripts/kconfig/merge_config.sh"
    first, _, remainder = script.read_text().partition("\n")
    script.write_text(f"{first}\ntouch {tmp_path}/evil ../evil 2>/dev/null\n{remainder}")
    build(requested(str(source), directory=tmp_path))
    assert not (tmp_path / "evil").exists()
    assert not list((tmp_path / "cache").rglob("evil"))


def test_a_patch_is_confined_as_its_source_is(tmp_path: Path) -> None:
    source = a_buildable_source(tmp_path / "linux")
    patch = tmp_path / "evil.patch"
    text = (
        "--- a/Makefile\n+++ b/Makefile\n@@ -1,2 +1,3 @@\n VERSION = 6\n"
        f"+EVIL := $(shell touch {tmp_path}/evil)\n PATCHLEVEL = 1\n"
    )
    patch.write_text(text)
    build(requested(str(source), patches=[str(patch)], directory=tmp_path))
    assert not (tmp_path / "evil").exists()


def test_a_product_that_is_a_link_is_refused(tmp_path: Path) -> None:
    source = a_buildable_source(tmp_path / "linux")
    makefile = source / "Makefile"
    makefile.write_text(
        makefile.read_text().replace('@echo "ffffffff81000000 T _text" >', "@ln -sf /etc/passwd")
    )
    with pytest.raises(BuildFailed, match=r"System\.map a symbolic link"):
        build(requested(str(source), directory=tmp_path))


def test_a_link_that_a_build_leaves_is_not_written_through(tmp_path: Path) -> None:
    source = a_buildable_source(tmp_path / "linux")
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    makefile = source / "Makefile"
    makefile.write_text(
        makefile.read_text().replace(
            "\nvmlinux: $(OBJECTS)\n", f"\nvmlinux: $(OBJECTS)\n\t@ln -sf {victim} $(O)/.config\n"
        )
    )
    with pytest.raises(BuildFailed):
        build(requested(str(source), directory=tmp_path))
    (tmp_path / "x.patch").write_text(a_patch(source, "fork", "int fork", "long fork"))
    with pytest.raises(BuildFailed):
        build(requested(str(source), options=["SMP=y"], patches=["x.patch"], directory=tmp_path))
    assert victim.read_text() == "mine\n"


def test_who_closes_the_pipe_ends_all_of_it(tmp_path: Path) -> None:
    confinement = sandbox.Sandbox((), (tmp_path,), {})
    words = sandbox.until_closed(["sh", "-c", f"(sleep 60 &) ; touch {tmp_path}/begun; sleep 60"])
    with sandbox.ending_pipe() as (end, ours):
        process = subprocess.Popen(confinement.command(words, {"PATH": "/usr/bin:/bin"}), stdin=end)
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.close(ours)
        assert process.wait(timeout=30) == 143


def test_without_bubblewrap_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    assert "not installed" in sandbox.problem()


def test_without_libseccomp_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_arguments: object, **_options: object) -> None:
        raise OSError("libseccomp.so.2: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    sandbox.forget()
    try:
        assert not sandbox.problem()
        assert "libseccomp is not installed" in sandbox.weakness()
        told: list[str] = []
        build(
            requested(str(a_buildable_source(tmp_path / "linux")), directory=tmp_path),
            progress=lambda what, *_numbers: told.append(what),
        )
        assert [what for what in told if "incomplete sandbox: libseccomp" in what]
    finally:
        sandbox.forget()


def destinations(words: list[str]) -> list[Path]:
    """Where bubblewrap is asked to mount something."""
    places = zip(words, words[2:], strict=False)
    return [Path(place) for option, place in places if option.startswith(("--bind", "--ro-bind"))]


def test_nothing_is_mounted_on_a_link_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "link").symlink_to("tools")
    monkeypatch.setenv("PATH", f"/bin:/sbin:/usr/sbin:/usr/bin:{tmp_path}/link:/usr/local/bin")
    words = sandbox.Sandbox((), (), {}).command(["true"], {})
    mounted = destinations(words)
    assert not [
        place for place in mounted if str(place) in {"/bin", "/sbin", "/usr/bin"} and place.is_symlink()
    ]
    assert {tmp_path / "tools", tmp_path / "link"} <= set(mounted), "programs are found under either name"


REFUSING = """\
#!/bin/sh
case "$*" in *{refused}*) echo "bwrap: Can't mount on symlink destination /sbin" >&2; exit 1 ;; esac
exec {bwrap} "$@"
"""


def a_bubblewrap_that_refuses(step: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = directory / "bwrap"
    directory.mkdir()
    program.write_text(REFUSING.format(refused=step, bwrap=shutil.which("bwrap")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


def test_what_bubblewrap_refuses_to_a_build_is_told_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_bubblewrap_that_refuses("/trees", tmp_path / "tools", monkeypatch)
    assert sandbox.problem() == (
        "bubblewrap cannot give a build its directories: Can't mount on symlink destination /sbin"
    )


@pytest.mark.parametrize("step", ["merge_config.sh", "olddefconfig"])
def test_a_sandbox_that_fails_in_a_build_is_no_fault_of_its_configuration(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = a_buildable_source(tmp_path / "linux")
    a_bubblewrap_that_refuses(step, tmp_path / "tools", monkeypatch)
    with pytest.raises(SandboxFailed, match="on symlink destination /sbin"):
        build(requested(str(source), config="defconfig", directory=tmp_path))


@pytest.mark.parametrize(
    ("compiler", "seen"),
    [("toolchain/bin/gcc", "toolchain"), ("bin/gcc", "bin"), ("gcc", "gcc")],
)
def test_a_compiler_that_lies_in_the_home_brings_no_more_of_it(
    compiler: str, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    program = tmp_path / compiler
    program.parent.mkdir(parents=True, exist_ok=True)
    program.touch()
    words = sandbox.Sandbox((), (), {"CC": str(program)}).command(["true"], {})
    assert tmp_path / seen in destinations(words)
    assert tmp_path not in destinations(words)


WITHOUT_PROCESSES = """\
#!/bin/sh
echo >> {tries}
[ $(wc -l < {tries}) -gt {refused} ] && exit 0
echo 'setpriv: failed to execute true: Resource temporarily unavailable' >&2
exit 126
"""


@pytest.fixture
def bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Path]]:
    """One in place of the system's, which finds that no process can be started, so many times."""

    def install(refused: int) -> Path:
        directory, tries = tmp_path / "programs", tmp_path / "tries"
        directory.mkdir()
        (directory / "bwrap").write_text(WITHOUT_PROCESSES.format(tries=tries, refused=refused))
        (directory / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
        sandbox.forget()
        return tries

    yield install
    sandbox.forget()


def test_processes_that_another_build_has_are_waited_for(bubblewrap: Callable[[int], Path]) -> None:
    """That none can be started says nothing about what this system lets bubblewrap do."""
    tries = bubblewrap(2)
    assert sandbox.problem() == ""
    assert len(tries.read_text().splitlines()) >= 3


def test_nothing_is_built_outside_of_the_sandbox_where_another_build_has_all_processes(
    bubblewrap: Callable[[int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = a_buildable_source(tmp_path / "linux")
    bubblewrap(10_000)
    monkeypatch.setattr(sandbox, "MOST_WAIT", 0.0)
    with pytest.raises(ProcessesSpent, match="has as many processes as allowed") as raised:
        build(requested(str(source), directory=tmp_path))
    assert isinstance(raised.value, HOST_PROBLEMS)


def test_landlock_keeps_a_build_to_its_places_where_the_kernel_has_it(tmp_path: Path) -> None:
    script = f"touch {tmp_path}/inside /tmp/inside /dev/shm/inside; touch /usr/outside /outside"
    words = sandbox.Sandbox((), (tmp_path,), {}).command(["sh", "-c", script], os.environ)
    if "/confine" not in words:
        pytest.skip("this kernel does not use Landlock")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (tmp_path / "inside").exists(), done.stderr
    assert set(re.findall(r"cannot touch '(\S+)'", done.stderr)) == {"/usr/outside", "/outside"}
