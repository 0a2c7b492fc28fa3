"""A lab machine: Debian with systemd, sshd, kexec-tools and initramfs-tools in QEMU (TCG), reached by ssh.

Needs root, mmdebstrap, and Debian's packages as apt is configured here. Some 20 CPU-seconds a boot.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

PACKAGES = (
    "systemd,systemd-sysv,udev,kmod,openssh-server,kexec-tools,initramfs-tools,zstd,procps,"
    "linux-image-cloud-amd64"
)
_MASKED = (
    "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service "
    "fstrim.timer systemd-timesyncd.service systemd-networkd-wait-online.service getty@tty1.service "
    "serial-getty@ttyS0.service getty-static.service systemd-pstore.service systemd-hwdb-update.service"
)
_COMMAND_LINE = "root=/dev/vda rw console=ttyS0 net.ifnames=0"
_MODULES = "virtio_pci\nvirtio_blk\next4\nvirtio_net\n"
FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
"""UEFI's, as Debian's package `ovmf` has it."""
VARIABLES = "variables.fd"
"""The firmware's, in an image's directory and in a machine's."""
BUILT = "KTRIAL_LAB_IMAGE"
"""The environment variable that names a directory with an image that was built before."""
_FEATURES = "^metadata_csum,^metadata_csum_seed,^orphan_file"
"""That Debian 12's GRUB does not know, or that differ between versions of mke2fs."""
_SHELL = """set -e
for unit in systemd-networkd.service ssh.service; do systemctl enable "$unit"; done
for unit in {masked}; do ln -sf /dev/null "/etc/systemd/system/$unit"; done
mkdir -p /root/.ssh; chmod 700 /root/.ssh
update-initramfs -u -k all
"""


def can_run() -> str:
    """Why there can be no lab machine here; empty where there can."""
    missing = [
        name for name in ("mmdebstrap", "mke2fs", "qemu-system-x86_64", "ssh") if not shutil.which(name)
    ]
    return "needs root" if os.geteuid() else f"needs {', '.join(missing)}" if missing else ""


def build(directory: Path) -> Path:
    """Have disk, kernel, initial RAM disk and keys in the directory, or in the one that `BUILT` names."""
    directory = Path(os.environ.get(BUILT, directory))
    if not (directory / "disk.img").exists():
        directory.mkdir(parents=True, exist_ok=True)
        make_root(directory)
        _make_disk(directory)
    return directory


def make_root(directory: Path, packages: str = PACKAGES, root_device: str = "/dev/vda") -> Path:
    """Have its files below `root` in the directory, and its keys beside that."""
    tar, root = directory / "root.tar", directory / "root"
    without = [
        word for name in ("doc", "man", "locale") for word in (f"--dpkgopt=path-exclude=/usr/share/{name}/*",)
    ]
    command = [
        "mmdebstrap",
        "--quiet",
        "--variant=apt",
        *without,
        f"--include={packages}",
        "bookworm",
        str(tar),
    ]
    subprocess.run([*command[:2], '--aptopt=APT::Install-Recommends "false"', *command[2:]], check=True)
    root.mkdir()
    subprocess.run(["tar", "-x", "-f", str(tar), "-C", str(root)], check=True)
    tar.unlink()
    _keys(directory, root)
    for name, text in {
        "etc/initramfs-tools/modules": _MODULES,
        "etc/initramfs-tools/conf.d/lab": "MODULES=list\nBUSYBOX=n\nCOMPRESS=lz4\n",
        "etc/hostname": "lab1\n",
        "etc/fstab": f"{root_device} / ext4 rw,noatime 0 0\n",
        "etc/systemd/network/lab.network": "[Match]\nName=e*\n[Network]\nAddress=10.0.2.15/24\n",
        "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        "etc/ssh/sshd_config.d/lab.conf": "PermitRootLogin yes\nUseDNS no\nUsePAM no\nMaxStartups 100\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["mount", "--bind", "/proc", str(root / "proc")], check=True)
    try:
        subprocess.run(
            ["chroot", str(root), "/bin/sh", "-c", _SHELL.format(masked=_MASKED)],
            check=True,
            capture_output=True,
        )
    finally:
        subprocess.run(["umount", str(root / "proc")], check=True)
    return root


def _keys(directory: Path, root: Path) -> None:
    for file in (root / "etc/ssh").glob("ssh_host_*"):
        file.unlink()
    host = root / "etc/ssh/ssh_host_ed25519_key"
    for key in (host, directory / "id"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    shutil.copy(directory / "id.pub", root / "root/.ssh/authorized_keys")
    shutil.copy(host.with_suffix(".pub"), directory / "host.pub")


def put_root(disk: Path, start: int, root: Path, mebibytes: int) -> None:
    """Have the files in a file system of the disk, from a byte on; the files are gone then."""
    made = ["mke2fs", "-q", "-F", "-t", "ext4", "-O", _FEATURES, "-E", f"offset={start}", "-d", str(root)]
    subprocess.run([*made, str(disk), f"{mebibytes}M"], check=True)
    shutil.rmtree(root)


def _make_disk(directory: Path) -> None:
    root, disk = directory / "root", directory / "disk.new"
    for name, file in {"vmlinuz": "vmlinuz-*", "initrd": "initrd.img-*"}.items():
        (image,) = (root / "boot").glob(file)
        shutil.copy(image, directory / name)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(disk), "1400M"], check=True)
    shutil.rmtree(root)
    disk.rename(directory / "disk.img")


@dataclass
class LabMachine:
    """The machine; `start` gives it power, `cut` takes it."""

    image: Path
    directory: Path
    """For its disk, which is a copy, and its console."""
    port: int = field(init=False)
    by_loader: bool = False
    """Its firmware starts the boot loader on its disk; else its own kernel, as QEMU hands it over."""
    uefi: bool = False
    """Whether its firmware is UEFI's, with the image's variables; else a BIOS."""
    _process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["cp", "--sparse=always", "--reflink=auto", str(self.image / "disk.img"), str(self.disk)],
            check=True,
        )
        if self.uefi:
            shutil.copy(self.image / VARIABLES, self.directory)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        key = " ".join((self.image / "host.pub").read_text().split()[:2])
        (self.directory / "known").write_text(f"[127.0.0.1]:{self.port} {key}\n")
        self.config.write_text(
            f"Host lab1\n  HostName 127.0.0.1\n  Port {self.port}\n  User root\n"
            f"  IdentityFile {self.image}/id\n  IdentitiesOnly yes\n  IdentityAgent none\n"
            f"  UserKnownHostsFile {self.directory}/known\n  StrictHostKeyChecking yes\n"
        )

    @property
    def disk(self) -> Path:
        """Its disk."""
        return self.directory / "disk.img"

    @property
    def config(self) -> Path:
        """For KTRIAL_SSH_CONFIG."""
        return self.directory / "ssh_config"

    @property
    def console(self) -> Path:
        """All that it ever printed."""
        return self.directory / "console"

    def start(self) -> None:
        """Its firmware boots its own kernel."""
        drive = f"file={self.disk},format=raw,if=none,id=d,cache=unsafe"
        self._process = subprocess.Popen(
            [
                *("qemu-system-x86_64", "-M", "q35,accel=tcg", "-cpu", "qemu64", "-m", "1024", "-nodefaults"),
                *(
                    "-display",
                    "none",
                    "-chardev",
                    f"file,id=c,path={self.console},append=on",
                    "-serial",
                    "chardev:c",
                ),
                *(() if self.by_loader else self._own_kernel()),
                *(self._firmware() if self.uefi else ()),
                *("-drive", drive, "-device", "virtio-blk-pci,drive=d,bootindex=1"),
                *("-boot", "strict=on", "-device", "virtio-net-pci,netdev=n,romfile="),
                *("-netdev", f"user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22"),
            ],
            stdin=subprocess.DEVNULL,
        )

    def _own_kernel(self) -> tuple[str, ...]:
        files = ("-kernel", str(self.image / "vmlinuz"), "-initrd", str(self.image / "initrd"))
        return (*files, "-append", _COMMAND_LINE)

    def _firmware(self) -> tuple[str, ...]:
        flash = "if=pflash,format=raw"
        code = f"{flash},unit=0,readonly=on,file={FIRMWARE}"
        return ("-drive", code, "-drive", f"{flash},unit=1,file={self.directory / VARIABLES}")

    def wait_until_off(self) -> None:
        """Until it has switched itself off."""
        if self._process is not None:
            self._process.wait()
            self._process = None

    def cut(self) -> None:
        """Take its power away."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def run(self, script: str) -> str:
        """What a script prints there, in whatever kernel runs."""
        done = subprocess.run(
            [
                "ssh",
                "-F",
                str(self.config),
                "-o",
                "BatchMode=yes",
                "-o",
                "ConnectTimeout=30",
                "lab1",
                "/bin/sh",
            ],
            input=script.encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode == 255:
            raise ConnectionError(done.stderr.decode())
        return done.stdout.decode().strip()

    def wait(self, script: str, wanted: str, seconds: float = 1800.0) -> str:
        """What the script prints, once that is what is wanted, or at the end of the time."""
        until = time.monotonic() + seconds
        while True:
            try:
                said = self.run(script)
            except ConnectionError as error:
                said = str(error)
            if said == wanted or time.monotonic() > until:
                return said
            time.sleep(2.0)
