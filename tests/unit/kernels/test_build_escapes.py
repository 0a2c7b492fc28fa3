"""What a hostile source tries from inside its build: nothing gets out, nothing stays behind, each is told.

Tried really, by programs in the sandbox of builds: as root, whose builds are another user's, and as a user.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source, a_patch, has_what_builds_need

from ktrial.kernels.build import make, sandbox
from ktrial.kernels.build.builds import build, cpu_seconds
from ktrial.kernels.build.control_group import control_group
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import BuildCutShort, BuildError, BuildFailed
from ktrial.target.confinement import confine_program

pytestmark = pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "there is one")

SOMEBODY = 12_345
"""A user that nobody is."""


class Tenant:
    """Runs shell scripts as a build of this user's runs them."""

    def __init__(self, user: int, directory: Path) -> None:
        self.directory = directory
        self._as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []

    def run(self, script: str, processes: int | None = None) -> subprocess.CompletedProcess[str]:
        words = sandbox.Sandbox((), (self.directory,), {}, processes=processes).command(
            ["sh", "-c", f"cd {self.directory}\n{script}"], {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        )
        ended = subprocess.run(
            [*self._as_user, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        assert not sandbox.refusal_in(ended.stderr), "it was not tried"
        return ended


@pytest.fixture(params=["as who tests", "as a user"])
def tenant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenant]:
    user = 0
    # Other users reach nothing below pytest's own directories.
    directory = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="ktrial-tenant-"))
    directory.chmod(0o755)
    (directory / "build").mkdir()
    monkeypatch.setenv("KTRIAL_CACHE", str(directory / "cache"))
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    if request.param == "as a user":
        if os.geteuid() != 0:
            pytest.skip("who tests is a user")
        user = SOMEBODY
        monkeypatch.setattr("os.geteuid", lambda: user)
        # Who tests may have a home that is closed to others, and ktrial there.
        confine = confine_program()
        if confine is not None:
            own = Path(shutil.copy(confine, directory / "confine"))
            monkeypatch.setattr(sandbox, "confine_program", lambda: own)
        sandbox.ccache_directory()
    sandbox.forget()
    if user:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, user, user)
    yield Tenant(user, directory / "build")
    sandbox.forget()
    shutil.rmtree(directory)


CALL = "perl -e 'exit(syscall({number}, {arguments}) == -1 ? 1 : 0)'"
NEVER = {
    "a setting of the kernel's": "echo 7 > /proc/sys/vm/stat_interval",
    "the handler of crashes": "echo '|/bin/false' > /proc/sys/kernel/core_pattern",
    "its own standing with the memory": "echo -1000 > /proc/self/oom_score_adj",
    "a namespace for users": "unshare --user true",
    "a namespace for users, by clone": CALL.format(number=56, arguments="0x10000011, 0, 0, 0, 0"),
    "a namespace for mounts": "unshare --mount true",
    "a mount": "mount -t tmpfs none /tmp",
    "another process, by ptrace": CALL.format(number=101, arguments="0, 0, 0, 0"),
    "bpf": CALL.format(number=321, arguments="0, 0, 0"),
    "the keyring": CALL.format(number=250, arguments="0, 0, 0"),
    "perf": CALL.format(number=298, arguments="0, 0, 0, 0, 0"),
    "io_uring": CALL.format(number=425, arguments="1, 0"),
    "a device": "mknod disk b 8 0",
    "a link to a file outside": "ln /etc/passwd here",
    "the users' passwords": "cat /etc/shadow",
    "another user": "setpriv --reuid=0 true",
    **{
        f"a socket of family {family}": f"perl -e 'socket(S, {family}, {kind}, 0) or exit 1'"
        for family, kind in ((2, 1), (2, 2), (2, 3), (10, 1), (16, 3), (17, 3), (29, 3), (38, 5), (40, 1))
    },
}
"""What a script tries, which has to fail."""


@pytest.mark.parametrize("what", NEVER)
def test_a_build_cannot_have(what: str, tenant: Tenant) -> None:
    before = [
        Path(path).read_text() for path in ("/proc/sys/vm/stat_interval", "/proc/sys/kernel/core_pattern")
    ]
    ended = tenant.run(f"{NEVER[what]}")
    assert ended.returncode != 0, ended
    assert "not found" not in ended.stderr, "what tries it is not installed"
    assert before == [
        Path(path).read_text() for path in ("/proc/sys/vm/stat_interval", "/proc/sys/kernel/core_pattern")
    ]


def test_a_build_may_do_what_builds_do(tenant: Tenant) -> None:
    ended = tenant.run(
        "set -e; echo 'int main(void) { return 0; }' > a.c; gcc a.c -o a; ./a; mkfifo pipe; ln a b; "
        "ln -s a c; (echo sub) | cat; perl -e 'socket(S, 1, 1, 0) or exit 1'; touch -d yesterday a; "
        "chmod 700 a; mv b d; nproc; find . -newer c; bash -c 'diff <(echo a) <(echo a)'; date"
    )
    assert ended.returncode == 0, ended.stderr


def test_it_sees_no_abstract_socket_of_this_system(tenant: Tenant) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0ktrial-tests-escape")
        server.listen()
        ended = tenant.run(
            "perl -MSocket -e 'socket(S, 1, 1, 0) or die; "
            'connect(S, pack("S a*", 1, "\\0ktrial-tests-escape")) or exit 7\''
        )
    assert ended.returncode == 7, ended


def test_none_of_its_processes_stays(tenant: Tenant) -> None:
    mark = f"sleep {300_000 + os.getpid()}"
    tenant.run(f"({mark} &) ; (setsid {mark} &) ; nohup {mark} >/dev/null 2>&1 & sleep 0.3")
    until = time.monotonic() + 30
    while mark.encode().replace(b" ", b"\0") in b"".join(commands()):
        assert time.monotonic() < until, "a process of the build is still there"
        time.sleep(0.05)


def commands() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue


def test_memory_and_files_in_memory_have_an_end(tenant: Tenant) -> None:
    assert tenant.run("perl -e '$x = \"x\" x (40 << 30)'").returncode != 0
    assert tenant.run("head -c 3G /dev/zero > /tmp/file").returncode != 0
    assert tenant.run("head -c 3G /dev/zero > /dev/shm/file").returncode != 0


def test_a_fork_bomb_comes_to_its_end(tenant: Tenant) -> None:
    """In perl, as many as may be: each waits, so that none ends before the last is refused.

    Fewer than builds may have: the tests beside this have builds of the same user.
    """
    ended = tenant.run(
        "perl -e 'for (1..20000) { my $p = fork; unless (defined $p) { print; exit 3 } "
        "unless ($p) { sleep 60; exit } }'",
        processes=1000,
    )
    assert ended.returncode == 3, ended.returncode


def test_of_the_environment_it_is_told_names_that_are_listed_alone(tenant: Tenant) -> None:
    words = sandbox.Sandbox((), (tenant.directory,), {}).command(
        ["env"],
        {
            "PATH": "/usr/bin",
            "CCACHE_REMOTE_STORAGE": "redis://:secret@host",
            "KBUILD_SECRET": "secret",
            "LC_X": "s",
        },
    )
    assert not [word for word in words if "secret" in word.lower() or word == "LC_X"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a user's builds are that user's")
def test_root_s_builds_are_of_nobody_s_number(tenant: Tenant) -> None:
    assert sandbox.TENANT not in {entry.pw_uid for entry in pwd.getpwall()}


# In a whole build: what it leaves and what it prints.


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return a_buildable_source(tmp_path / "linux")


def with_recipe(source: Path, line: str) -> None:
    """Let the kernel's target end with this line."""
    makefile = source / "Makefile"
    content = makefile.read_text()
    assert "\nvmlinux: $(OBJECTS)\n" in content
    makefile.write_text(content.replace("\nvmlinux: $(OBJECTS)\n", f"\nvmlinux: $(OBJECTS)\n\t@{line}\n"))


def trees(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache/trees").rglob("build/*"))


def test_pipes_and_other_users_rights_do_not_stay_in_a_tree(source: Path, tmp_path: Path) -> None:
    with_recipe(source, "mkfifo $(O)/.x.o.cmd; cp /bin/true $(O)/tool; chmod 6755 $(O)/tool")
    build(requested(str(source), directory=tmp_path))
    names = {path.name: path for path in trees(tmp_path)}
    assert ".x.o.cmd" not in names
    assert not names["tool"].stat().st_mode & 0o6000


def test_a_pipe_in_place_of_an_object_s_command_blocks_no_later_build(source: Path, tmp_path: Path) -> None:
    before = (source / "Makefile").read_text()
    with_recipe(source, "mkfifo $(O)/.fork.o.cmd; exit 1")
    with pytest.raises(BuildFailed):
        build(requested(str(source), directory=tmp_path))
    (source / "Makefile").write_text(before)
    build(requested(str(source), directory=tmp_path))


def test_files_of_the_future_end_their_build_and_are_in_none_after_it(source: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.patch").write_text(a_patch(source, "fork", "int fork", "long fork"))
    before = (source / "Makefile").read_text()
    with_recipe(source, "echo poison > $(O)/evil.o; touch -d 2100-01-01 $(O)/evil.o")
    with pytest.raises(BuildError, match=r"date a file in the future \(evil\.o\)"):
        build(requested(str(source), directory=tmp_path))
    assert "evil.o" not in {path.name for path in trees(tmp_path)}
    (source / "Makefile").write_text(before)
    build(requested(str(source), directory=tmp_path))
    assert "evil.o" not in {path.name for path in trees(tmp_path)}


@pytest.mark.parametrize("prints", ["yes | tr -d '\\n'", "yes"], ids=["a line", "lines"])
def test_output_without_end_ends_the_build(
    prints: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "MOST_OUTPUT", 1 << 20)
    with_recipe(source, prints)
    with pytest.raises(BuildFailed, match="it printed more than 1 MiB"):
        build(requested(str(source), directory=tmp_path))
    assert sum(path.stat().st_size for path in (tmp_path / "cache").rglob("build.log")) < 20 << 20


@pytest.mark.parametrize(("limit", "what"), [("LEAST_ROOM", "disk"), ("LEAST_MEMORY", "memory")])
def test_a_host_that_is_nearly_full_ends_the_build_and_is_no_fault_of_its_source(
    limit: str, what: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, limit, 1 << 60)
    with pytest.raises(BuildCutShort, match=rf"less than \d+ MiB of {what} are left"):
        build(requested(str(source), directory=tmp_path))


def test_all_its_processes_together_have_an_end_of_memory(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of little each: 40 of 8 MB."""
    with control_group() as group:
        if not any((directory / name).exists() for directory in group.directories for name in MEMORY):
            pytest.skip("no control group with a limit on memory can be made here")
    monkeypatch.setattr("ktrial.kernels.build.control_group.LEFT_TO_OTHERS", 1 - (200 << 20) / total_memory())
    with_recipe(
        source,
        "for i in $$(seq 40); do perl -e '$$x = \"x\" x (8 << 20); sleep 20' & done; wait $$!; exit 1",
    )
    with pytest.raises(BuildCutShort, match=r"it took more than (199|200) MiB of memory"):
        build(requested(str(source), directory=tmp_path))
    assert not list(Path("/sys/fs/cgroup").rglob(f"ktrial-build-{os.getpid()}-*"))


def test_the_processor_time_of_a_build_is_that_of_all_it_ran(source: Path, tmp_path: Path) -> None:
    with control_group() as group:
        if group.cpu_seconds is None:
            pytest.skip("no control group that counts processor time can be made here")
    spin = "perl -e 'while (times < %s) {}'"
    with_recipe(source, f"{spin % 0.3} & {spin % 0.4}; wait $$!")
    request = requested(str(source), directory=tmp_path)
    assert cpu_seconds(request) is None, "it is not built yet"
    build(request)
    assert 0.7 <= (cpu_seconds(request) or 0) < 20


def test_a_kernel_that_is_there_by_another_name_has_the_time_that_compiling_it_took(
    source: Path, tmp_path: Path
) -> None:
    first = requested(str(source), directory=tmp_path)
    build(first)
    shutil.copytree(source, tmp_path / "copy")
    second = requested(str(tmp_path / "copy"), directory=tmp_path)
    build(second)
    assert first.name != second.name
    assert cpu_seconds(first) == cpu_seconds(second)


MEMORY = ("memory.max", "memory.limit_in_bytes")


def total_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_sources_that_root_alone_may_read_are_built_all_the_same(source: Path, tmp_path: Path) -> None:
    for path in (source, *source.rglob("*")):
        path.chmod(path.stat().st_mode & 0o700)
    before = os.umask(0o077)
    try:
        kernel = build(requested(str(source), directory=tmp_path))
    finally:
        os.umask(before)
    assert kernel.image.exists()
