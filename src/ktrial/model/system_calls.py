"""The system calls of x86-64 by number and name, and what counting may begin at (`skip_start`).

The numbers are the kernel's: arch/x86/entry/syscalls/syscall_64.tbl, as of Linux 6.15.
"""

import re
import signal
from dataclasses import dataclass

from ktrial.model.notation import nearest

_FROM_0 = """
read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask
rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore
madvise shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm setitimer getpid sendfile socket
connect accept sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname getpeername socketpair
setsockopt getsockopt clone fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget
msgsnd msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename
mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown lchown umask gettimeofday
getrlimit getrusage sysinfo times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid
getppid getpgrp setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid getresgid
getpgid setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo
rt_sigsuspend sigaltstack utime mknod uselib personality ustat statfs fstatfs sysfs getpriority
setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max
sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall vhangup modify_ldt
pivot_root _sysctl prctl arch_prctl adjtimex setrlimit chroot sync acct settimeofday mount umount2
swapon swapoff reboot sethostname setdomainname iopl ioperm create_module init_module delete_module
get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg afs_syscall tuxcall security gettid
readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
removexattr lremovexattr fremovexattr tkill time futex sched_setaffinity sched_getaffinity
set_thread_area io_setup io_destroy io_getevents io_submit io_cancel get_thread_area lookup_dcookie
epoll_create epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address restart_syscall
semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete
clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes
vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
mq_getsetattr kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get inotify_init
inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat
unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list
get_robust_list splice tee sync_file_range vmsplice move_pages utimensat epoll_pwait signalfd
timerfd_create eventfd fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2
epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg
fanotify_init fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg
setns getcpu process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2
seccomp getrandom memfd_create kexec_file_load bpf execveat userfaultfd membarrier mlock2
copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq
"""
_FROM_424 = """
pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig
fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2
mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret
process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake
futex_wait futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal
setxattrat getxattrat listxattrat removexattrat open_tree_attr
"""
NAMES = dict(enumerate(_FROM_0.split())) | dict(enumerate(_FROM_424.split(), start=424))
"""Number → name."""
NUMBERS = {name: number for number, name in NAMES.items()}
"""Name → number."""
OUTPUT = "output"
_NEVER_RETURN = frozenset({"exit", "exit_group", "rt_sigreturn"})
_OCCURRENCE = re.compile(r"(\S+)(?:\s+(\d{1,9}))?")
_EXPECTED = 'give a system call, a signal or "output", and which time: "accept4 3", "SIGUSR1", "output 2"'


@dataclass(frozen=True)
class Occurrence:
    """The nth time that something happens."""

    name: str
    """A system call, a signal (`SIGUSR1`), or OUTPUT: something is written to standard output or error."""
    times: int = 1

    @property
    def text(self) -> str:
        """`accept4`, `the 3rd accept4`: as a sentence has it."""
        return self.name if self.times == 1 else f"{self.name} number {self.times:,}"


def occurrence(text: str) -> Occurrence:
    """From `accept4 3`. Raises ValueError, which says what is allowed."""
    match = _OCCURRENCE.fullmatch(text.strip())
    if match is None:
        raise ValueError(_EXPECTED)
    name, times = match[1], int(match[2] or 1)
    if times < 1:
        raise ValueError(f"times are counted from 1; {_EXPECTED}")
    if name in _NEVER_RETURN:
        raise ValueError(f"{name} never returns, and counting begins when a call has returned")
    if name in {"SIGKILL", "SIGSTOP"}:
        raise ValueError(f"{name} is never delivered to a program")
    if name != OUTPUT and name not in NUMBERS and name not in signal.Signals.__members__:
        similar = nearest(name, (*NUMBERS, *signal.Signals.__members__, OUTPUT))
        raise ValueError(f"there is no system call or signal {name}{similar}; {_EXPECTED}")
    return Occurrence(name, times)


def occurrence_text(text: str) -> str:
    """The text of an occurrence, if it is one. Raises ValueError."""
    if text:
        occurrence(text)
    return text
