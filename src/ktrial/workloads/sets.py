"""Sets of workloads to start with."""

QUICK = ("syscall", "pipe", "context-switch", "fork", "open", "mmap")
"""Six that touch system call entry, pipes, scheduler, processes, paths and memory: seconds for a kernel."""

DEFAULT = (
    *QUICK,
    "stat",
    "copy-256",
    "copy-1024",
    "copy-4096",
    "vfork",
    "clone3",
    "exec",
    "thread",
    "futex",
    "epoll",
    "socketpair",
    "tcp",
    "timer",
    "hackbench",
    "nqueens",
)
"""All built-in ones that need no disk."""

DISK = ("aio-stress",)
"""Those that read and write files: give them `path`, a directory on the disk under study."""
