"""What QEMU may do on this host, and what is done where the host cannot hold it to that."""

import mmap
import os
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from ktrial.machines.qemu import jail
from ktrial.machines.qemu.jail import SANDBOX, TENANT, Jail, environment, examined, handed, sealed_copy
from ktrial.machines.qemu.process import memory_file

USER = 1000
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root's QEMUs are another user's")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    jail.forget()
    yield
    jail.forget()


def qemu(place: Path, script: str) -> Path:
    path = place / "qemu-system-x86_64"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def as_ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: USER)


def test_a_host_that_gives_all_gives_a_whole_jail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_ordinary_user(monkeypatch)
    whole = examined(qemu(tmp_path, "exit 0"))
    assert whole.lacks == ()
    assert whole.arguments == SANDBOX
    assert "--no-new-privs" in whole.before
    assert not whole.is_tenant
    limited = whole.start(4096, 1 << 20)
    assert {"--fsize=4096", "--core=0", f"--as={(1 << 20) + jail.MORE_MEMORY}"} <= set(limited)


def test_where_memory_ends_a_qemu_goes_before_ktrial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_ordinary_user(monkeypatch)
    examined(qemu(tmp_path, f"cat /proc/self/oom_score_adj > {tmp_path}/score"))
    own = int(Path("/proc/self/oom_score_adj").read_text())
    assert int((tmp_path / "score").read_text()) > own


def test_a_qemu_without_a_filter_of_system_calls_runs_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_ordinary_user(monkeypatch)
    refusing = "case \"$*\" in *-sandbox*) echo 'there is no seccomp support' >&2; exit 1;; esac"
    examined_jail = examined(qemu(tmp_path, refusing))
    assert examined_jail.arguments == ()
    assert "--no-new-privs" in examined_jail.before
    assert examined_jail.lacks == ("all system calls are open to it (there is no seccomp support)",)


def test_what_is_lacking_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_ordinary_user(monkeypatch)
    program = qemu(tmp_path, 'case "$*" in *-sandbox*) exit 3;; esac')
    with pytest.warns(UserWarning, match=r"not wholly confined here: all system calls .*exit status 3"):
        jail.jail_of(program)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jail.jail_of(program)


def test_a_qemu_that_does_not_start_at_all_lacks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong with it is told where it is started."""
    as_ordinary_user(monkeypatch)
    assert examined(qemu(tmp_path, "exit 1")).lacks == ()


def test_an_object_that_the_linker_ignores_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so and goes on; the numbers would be others."""
    as_ordinary_user(monkeypatch)
    ignoring = 'case "$*" in *-sandbox*) echo "object x.so cannot be preloaded: ignored" >&2;; esac'
    assert "cannot be preloaded" in " ".join(examined(qemu(tmp_path, ignoring)).lacks)


@ROOT_ONLY
def test_where_kvm_is_for_root_alone_qemu_stays_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "kvm"
    device.touch(0o600)
    monkeypatch.setattr(jail, "KVM_DEVICE", device)
    examined_jail = examined(qemu(tmp_path, "exit 0"), kvm=True)
    assert not examined_jail.is_tenant
    (lack,) = examined_jail.lacks
    assert lack.startswith("it runs as root (")
    assert "is for root alone" in lack


def test_of_the_environment_named_variables_only_are_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_STORE", "postgresql://me:secret@host/db")
    monkeypatch.setenv("LD_PRELOAD", "mine.so")
    passed = environment(["a.so", "b.so"])
    assert "secret" not in repr(passed)
    assert passed["LD_PRELOAD"] == "a.so:b.so:mine.so"
    assert passed["PATH"] == os.environ["PATH"]


def test_a_sealed_copy_can_be_opened_for_writing_and_not_be_changed() -> None:
    copy = sealed_copy("ram", lambda file: os.write(file, b"content"))
    try:
        again = os.open(f"/proc/self/fd/{copy}", os.O_RDWR)
        try:
            with pytest.raises(PermissionError):
                os.pwrite(again, b"x", 0)
            with pytest.raises(PermissionError):
                mmap.mmap(again, 0)
            with mmap.mmap(again, 0, mmap.MAP_PRIVATE) as private:
                private[0] = ord("x")
            assert os.pread(copy, 100, 0) == b"content"
        finally:
            os.close(again)
    finally:
        os.close(copy)


def test_a_tenant_has_files_by_names_that_show_no_more_than_them(tmp_path: Path) -> None:
    kernel, plugin = tmp_path / "vmlinux", tmp_path / "a,b.so"
    kernel.write_text("kernel")
    plugin.write_text("plugin")
    kernel.chmod(0o600)
    words = ("-kernel", str(kernel), "-append", f"x={kernel}", "-plugin", f"{tmp_path}/a,,b.so,out=/o")
    with handed(Jail((), is_tenant=True), (kernel, plugin, kernel)) as given:
        assert len(given.descriptors) == 2
        opened, plugged = given.name(kernel), given.name(plugin)
        assert Path(opened).read_text() == "kernel"
        assert Path(opened).stat().st_mode & 0o004, "a copy that everybody may read"
        expected = ("-kernel", opened, "-append", f"x={kernel}", "-plugin", f"{plugged},out=/o")
        assert tuple(given.arguments(words)) == expected
    assert not Path(opened).exists()


def test_a_users_own_qemu_has_files_by_their_own_names(tmp_path: Path) -> None:
    with handed(Jail(()), (tmp_path / "not there",)) as given:
        assert given.descriptors == ()
        assert tuple(given.arguments(("-kernel", "/k"))) == ("-kernel", "/k")


@ROOT_ONLY
def test_what_runs_in_the_jail_cannot_reach_what_is_roots(tmp_path: Path) -> None:
    """In place of QEMU a shell tries what a guest would try that has got out of it."""
    tenants = examined(Path("/bin/true"))
    if not tenants.is_tenant:
        pytest.skip("this host lets nobody become another user")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    copy = sealed_copy("ram", lambda file: os.write(file, b"ram"))
    with memory_file("out") as out:
        script = f"""
            id -u; id -G
            cat {secret} || echo cannot read
            echo x > {tmp_path}/written || echo cannot write
            echo x 1<> /proc/self/fd/{copy} || echo cannot change
            kill -0 {os.getpid()} || echo cannot signal
            head -c 2000000 /dev/zero > /proc/self/fd/{out} || echo ended
            grep -E '^(NoNewPrivs|CapEff|CapBnd)' /proc/self/status
        """
        finished = subprocess.run(
            [*tenants.start(1 << 20, 1 << 30), "sh", "-c", script],
            capture_output=True, text=True, check=False, pass_fds=(copy, out), env=environment(), cwd="/",
        )  # fmt: skip
        assert os.fstat(out).st_size == 1 << 20
    assert os.pread(copy, 10, 0) == b"ram"
    os.close(copy)
    assert finished.stdout.split("\n") == [
        *(str(TENANT), str(TENANT)),
        *("cannot read", "cannot write", "cannot change", "cannot signal", "ended"),
        *("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", ""),
    ]
