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
"""Every single operation: seconds to minutes for a kernel."""

DISK = ("seq-read", "random-read", "stream-write", "metadata", "oltp", "fileio", "file-server")
"""Input and output: many steps are one operation. Without a disk (`path`) they work on memory."""

WHOLE_BENCHMARKS = ("aio-stress", "unixbench")
"""Those that do what a benchmark of that name does. They take long, or want a disk: give them `path`."""
