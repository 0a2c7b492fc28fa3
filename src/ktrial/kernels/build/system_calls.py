"""The system calls that a build may make: a filter for bubblewrap, written by libseccomp.

An allow list: what containers allow by default (Moby's profiles/seccomp/default.json), less what no build
needs. Not in it are bpf, ptrace, keyctl, perf_event_open, mount, unshare, setns, io_uring and all that root
alone may do. Sockets are Unix ones only, and no program is started in namespaces of its own. What is not
allowed fails with EPERM, as where the kernel refuses it. clone3's flags lie in memory, where a filter does
not see them: it fails with ENOSYS, after which C libraries take clone.
"""

import ctypes
import errno
import os
import socket
from functools import cache
from hashlib import sha256
from pathlib import Path

from ktrial.installation import cache_directory
from ktrial.kernels.files import write_atomically

_ALLOWED = """
accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_getres
clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create
epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group
faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync
fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_wait
futex_waitv futex_wake futimesat getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups
getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit
getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init
inotify_init1 inotify_rm_watch ioctl ioprio_get ioprio_set kill landlock_add_rule
landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen
listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier memfd_create
mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect mremap msync munlock munlockall
munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe
pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv preadv2 prlimit64 pselect6 pwrite64
pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg removexattr rename
renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min
sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity
sched_yield select sendfile sendmmsg sendmsg sendto set_robust_list set_tid_address setgid setgroups
setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid
setxattr shutdown sigaltstack signalfd signalfd4 splice stat statfs statx symlink symlinkat sync
sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime
timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink
unlinkat utime utimensat utimes vfork wait4 waitid write writev
"""
_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET of linux/sched.h, all in one."""
_PERSONALITIES = (0x0, 0x40000, 0xFFFFFFFF)
"""As it is, without a random layout (PER_LINUX, ADDR_NO_RANDOMIZE), and the question which it is."""
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
"""SCMP_ACT_ALLOW and SCMP_ACT_ERRNO of seccomp.h."""
_EQUAL, _MASKED_EQUAL = 4, 7
"""Of its enumeration scmp_compare."""


class _Comparison(ctypes.Structure):
    """scmp_arg_cmp of seccomp.h."""

    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def filter_file() -> Path | None:
    """The filter as the kernel takes it, in the cache; None without libseccomp, which Debian's apt needs."""
    content = _filter()
    if content is None:
        return None
    path = cache_directory() / "sandbox" / f"{sha256(content).hexdigest()[:16]}.bpf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return path


@cache
def _filter() -> bytes | None:
    try:
        library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    except OSError:
        return None
    library.seccomp_init.restype = ctypes.c_void_p
    return _written(library)


def forget() -> None:
    """Look for libseccomp anew."""
    _filter.cache_clear()


def _written(library: ctypes.CDLL) -> bytes:
    context = ctypes.c_void_p(library.seccomp_init(_FAIL | errno.EPERM))

    def rule(action: int, name: str, *comparisons: _Comparison) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return  # of a later kernel than this library: it stays refused
        array = (_Comparison * len(comparisons))(*comparisons)
        status = library.seccomp_rule_add_array(context, action, number, len(comparisons), array)
        if status:
            raise OSError(-status, f"libseccomp refuses the rule for {name}")

    for name in _ALLOWED.split():
        rule(_ALLOW, name)
    rule(_ALLOW, "clone", _Comparison(0, _MASKED_EQUAL, _NAMESPACES, 0))
    rule(_FAIL | errno.ENOSYS, "clone3")
    for family in ("socket", "socketpair"):
        rule(_ALLOW, family, _Comparison(0, _EQUAL, socket.AF_UNIX, 0))
    for persona in _PERSONALITIES:
        rule(_ALLOW, "personality", _Comparison(0, _EQUAL, persona, 0))
    try:
        with os.fdopen(os.memfd_create("filter"), "rb") as file:
            if status := library.seccomp_export_bpf(context, file.fileno()):
                raise OSError(-status, "libseccomp writes no filter")
            file.seek(0)
            return file.read()
    finally:
        library.seccomp_release(context)
