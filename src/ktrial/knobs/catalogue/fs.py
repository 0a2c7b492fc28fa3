"""Files, pipes, asynchronous input and output."""

from ktrial.knobs.catalogue.declare import sysctl
from ktrial.model.knob import Default

_MEMORY = (Default(computed="memory"),)

KNOBS = (
    sysctl(
        "fs.aio-max-nr",
        "asynchronous requests that all io_setup() contexts together may have under way",
        "65536",
        minimum=0,
    ),
    sysctl("fs.file-max", "open files of the whole system", _MEMORY, minimum=0, coupled=("fs.nr_open",)),
    sysctl("fs.nr_open", "open files that a process may have", "1048576", coupled=("fs.file-max",)),
    sysctl(
        "fs.pipe-max-size",
        "size to which a user may set a pipe; the kernel rounds it up to a power of two of pages",
        "1048576",
        minimum=4096,
        unit="bytes",
    ),
    sysctl(
        "fs.pipe-user-pages-soft",
        "pages in a user's pipes above which new pipes get two pages (one before 5.14); 0: no limit",
        "16384",
        minimum=0,
        unit="pages",
    ),
    sysctl(
        "fs.inotify.max_user_watches",
        "files and directories that a user may watch",
        _MEMORY,
        minimum=0,
        documentation="Documentation/filesystems/inotify.rst",
    ),
)
"""Those of this subsystem."""
