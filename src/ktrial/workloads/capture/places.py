"""What places of a Linux system mean for a guest: the kernel's own, the system's, those with secrets."""

import contextlib
import os
from pathlib import Path

KERNELS = ("/dev", "/proc", "/sys")
"""The guest's kernel has its own."""
_SYSTEMS = ("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/run", "/sbin", "/usr", "/var")
_SECRET_BELOW_HOME = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", ".mozilla", ".config/gcloud"),
    *(".config/gh", ".config/google-chrome", ".config/chromium", ".local/share/keyrings", ".docker"),
    *(".netrc", ".pgpass", ".my.cnf", ".git-credentials", ".pypirc", ".npmrc", ".cargo/credentials.toml"),
)
_SECRET = ("/etc/shadow", "/etc/gshadow", "/etc/ssl/private", "/etc/ssh", "/etc/sudoers", "/etc/sudoers.d")
_SECRET_NAMES = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".env")
_PLAIN_DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr", "console"),
    *("fd", "pts", "shm"),
)


def below(path: str, *places: str) -> bool:
    """Whether the path is one of the places, or lies in one."""
    return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


def is_systems(path: str) -> bool:
    """Whether the directory is the system's: far more is in it than one command needs."""
    return path == "/" or below(path, *KERNELS, *_SYSTEMS)


def is_secret(path: str, home: str) -> bool:
    """Whether what usually lies there are keys and passwords."""
    own = tuple(f"{home.rstrip('/')}/{name}" for name in _SECRET_BELOW_HOME)
    return below(path, *own, *_SECRET) or Path(path).name in _SECRET_NAMES


def written_by_this_process() -> frozenset[str]:
    """Files that are open here for writing: a log, a store. They change while trials run."""
    places = set()
    for handle in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError, ValueError):
            flags = int(Path(f"/proc/self/fdinfo/{handle.name}").read_text().split("flags:")[1].split()[0], 8)
            if flags & (os.O_WRONLY | os.O_RDWR):
                places.add(str(handle.readlink()))
    return frozenset(places)


def is_special_device(path: str) -> bool:
    """Whether it is a device that a guest of ktrial's lacks: a GPU, a disk, /dev/kvm."""
    return below(path, "/dev") and len(Path(path).parts) > 2 and Path(path).parts[2] not in _PLAIN_DEVICES
