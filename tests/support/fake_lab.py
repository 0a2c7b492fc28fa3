"""A machine that plays reboot: a tree of files, a few fake programs, and ktrial's own scripts run by /bin/sh.

What a kernel does when it is booted says its image: `good RELEASE`, `panics`, `hangs`, `is RELEASE` (another
than the one that was asked for). All else is real: the scripts are those that a real machine runs.
"""

import io
import os
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from ktrial.machines.errors import ConnectionLost, NotReached
from ktrial.machines.ssh.boots import Reached
from ktrial.machines.ssh.connection import NoAnswer, Probe, ShellResult
from ktrial.model.kernel import Kernel, Origin

OWN = "6.1.0-own"
_PROGRAMS = {
    "id": "echo ${FAKE_UID:-0}",
    "uname": (
        "case $1 in -s) echo Linux;; -m) echo x86_64;; "
        '-r) cat "$R/release";; -v) echo "#1 of $(cat "$R/release")";; esac'
    ),
    "depmod": '[ -d "$R/lib/modules/$1" ]',
    "mkinitramfs": 'grep -q CONFIG_RD_GZIP=y "$R/boot/config-$3" && [ "$1" = -o ] && echo "of $3" >"$2"',
    "kexec": (
        'case $1 in -u) echo 0 >"$R/sys/kernel/kexec_loaded"; rm -f "$R/next";; -s) exit 1;;'
        ' -l) printf "%s\\n" "$@" >"$R/next"; echo 1 >"$R/sys/kernel/kexec_loaded";; esac'
    ),
    "systemctl": (
        'case " $* " in *" kexec "*) echo kexec >"$R/pending";;'
        ' *" reboot "*) echo reboot >"$R/pending";; esac;'
        ' echo "$*" >>"$R/systemctl.log"'
    ),
    "modprobe": "exit 1",
}


@dataclass
class FakeLab:
    """The machine, and how it is reached: a `Way`."""

    root: Path
    boots: list[str] = field(default_factory=list)
    """The command line of each boot."""
    down: bool = False
    handshake_seconds: float = 0.0
    """What ssh takes until it knows that it is let in."""
    lost: bool = False
    """Whether its connection is; the next one is not."""
    host: str = "lab1"
    loader: "FakeLoader | None" = None
    """What its firmware starts, where it is more than the machine's own kernel."""

    def __post_init__(self) -> None:
        for name in (
            "proc/sys/kernel/random",
            "sys/kernel",
            "run/systemd/system",
            "etc/init.d",
            "boot",
            "dir",
        ):
            (self.root / name).mkdir(parents=True)
        for name in (
            "lib/modules",
            "var/lib",
            "etc/systemd/system/multi-user.target.wants",
            "bin",
            "sys/devices/system/cpu/vulnerabilities",
        ):
            (self.root / name).mkdir(parents=True)
        (self.root / "lib/modules" / OWN).mkdir()
        (self.root / f"boot/vmlinuz-{OWN}").write_text(f"good {OWN}\n")
        (self.root / f"boot/initrd.img-{OWN}").write_text("initrd\n")
        (self.root / "proc/modules").write_text("ext4 1 0\n")
        (self.root / "sys/devices/system/cpu/vulnerabilities/meltdown").write_text("Mitigation: PTI\n")
        _install(self.root, _PROGRAMS)
        self.power_on()

    def power_on(self) -> None:
        """Its firmware boots its own kernel, or what its boot loader was told to boot once."""
        for name in ("pending", "next", "no-kexec-reboot"):
            (self.root / name).unlink(missing_ok=True)
        if self.loader and (told := self.loader.told()):
            self._boot(*told)
            return
        self._came_up(OWN, "BOOT_IMAGE=/vmlinuz root=/dev/vda ro")

    def connected(self) -> Reached:
        """Way: itself."""
        if self.down:
            raise NotReached(machine="ssh", host="lab1", problem="no route to host")
        return self

    def hang_up(self) -> None:
        """Way: what it was told to boot, it boots now."""
        self.lost = False
        pending = self.root / "pending"
        if pending.exists():
            how = pending.read_text().strip()
            pending.unlink()
            self._kexec() if how == "kexec" else self.power_on()

    @property
    def is_alive(self) -> bool:
        """Connection: whether it stands."""
        return not self.lost

    def close(self) -> None:
        """Connection: as `hang_up`."""
        self.hang_up()

    def script(self, text: str, limit: float = 60.0) -> bytes:
        """Connection: what a script prints."""
        return self.attempt(text, limit).printed

    def send(self, content: bytes, name: str, mode: int = 0o700) -> str:
        """Connection: a program's path."""
        return f"{self.directory}/{name}"

    def undo(self) -> None:
        """Connection: nothing was set."""

    def probe(self, seconds: float) -> Probe | NoAnswer:
        """Way: which boot answers, where so many seconds are enough for it."""
        if self.down:
            return NoAnswer("Connection refused")
        if seconds < self.handshake_seconds:
            return NoAnswer("Connection timed out during banner exchange", is_slow=True)
        proc = self.root / "proc"
        return Probe(
            (proc / "sys/kernel/random/boot_id").read_text().strip(), (proc / "cmdline").read_text().strip()
        )

    @property
    def directory(self) -> str:
        """Where the keeper's files would be."""
        return str(self.root / "dir")

    def attempt(self, text: str, limit: float = 60.0) -> ShellResult:
        """Reached: by the real shell."""
        if self.down:
            raise ConnectionLost(machine="ssh", host=self.host, problem="broken")
        done = subprocess.run(
            ["/bin/sh"],
            input=text.encode(),
            capture_output=True,
            check=False,
            timeout=limit,
            env=self._environment(),
        )
        last = done.stderr.decode().strip().splitlines()
        return ShellResult(done.returncode, done.stdout, last[-1] if last else "")

    def stream(self, remote: str, write: Callable[[IO[bytes]], None]) -> ShellResult:
        """Reached: as `attempt`, with an input."""
        pipe = io.BytesIO()
        write(pipe)
        content = pipe.getvalue()
        done = subprocess.run(["/bin/sh", "-c", remote], input=content, capture_output=True, check=False)
        return ShellResult(done.returncode, done.stdout, done.stderr.decode())

    def files(self) -> set[str]:
        """All paths that are there, without what each boot changes and the fake's own."""
        own = ("proc", "bin", "systemctl.log", "release", "sys", "dir")
        paths = (path.relative_to(self.root) for path in self.root.rglob("*"))
        return {str(path) for path in paths if path.parts[0] not in own}

    def _kexec(self) -> None:
        _, image, *options = (self.root / "next").read_text().splitlines()
        line = next(each.partition("=")[2] for each in options if each.startswith("--command-line="))
        initrd = next(each.partition("=")[2] for each in options if each.startswith("--initrd="))
        (self.root / "next").unlink()
        self._boot(Path(image), Path(initrd), line)

    def _boot(self, image: Path, initrd: Path, line: str) -> None:
        assert initrd.is_file()
        does, _, release = image.read_text().strip().partition(" ")
        self.boots.append(line)
        if does == "hangs":
            self.down = True
        elif does == "panics":
            self.power_on()
        else:
            self._came_up(release, line)

    def _came_up(self, release: str, line: str) -> None:
        self.down = False
        shutil.rmtree(self.root / "dir")
        (self.root / "dir").mkdir()
        (self.root / "release").write_text(release)
        (self.root / "proc/cmdline").write_text(f"{line}\n")
        (self.root / "sys/kernel/kexec_loaded").write_text("0\n")
        (self.root / "proc/sys/kernel/random/boot_id").write_text(f"{uuid.uuid4()}\n")

    def _environment(self) -> dict[str, str]:
        return {"PATH": f"{self.root}/bin:/usr/bin:/bin", "FAKE_UID": os.environ.get("FAKE_UID", "0")}


def lab_kernel(directory: Path, release: str, does: str = "good") -> Kernel:
    """A kernel whose image says what it does."""
    directory.mkdir(parents=True)
    (directory / "vmlinuz").write_text(f"{does} {release}\n")
    (directory / "config").write_text("CONFIG_RD_GZIP=y\n")
    modules = directory / "lib/modules" / release
    modules.mkdir(parents=True)
    (modules / "modules.dep").write_text("a.ko:\n")
    (modules / "build").symlink_to("/usr/src/linux")
    return Kernel(
        name=f"path:{directory}",
        release=release,
        origin=Origin(provider="path", source=str(directory)),
        digest=uuid.uuid5(uuid.NAMESPACE_URL, str(directory)).hex * 2,
        image=directory / "vmlinuz",
        config=directory / "config",
        modules=modules,
    )


class FakeLoader(Protocol):
    """What a boot loader boots once."""

    def told(self) -> tuple[Path, Path, str] | None:
        """Image, initial RAM disk and command line, which it forgets; None: the machine's own kernel."""
        ...


@dataclass
class FakeGrub:
    """GRUB: its own programs are played, its menu is read as GRUB reads it."""

    root: Path
    forgets: bool = True
    heeds: bool = True
    """Whether it boots what it is told."""

    def __post_init__(self) -> None:
        (self.root / "boot/grub").mkdir()
        menu = 'if [ "${next_entry}" ] ; then\n  source ${config_directory}/custom.cfg\nfi\n'
        (self.root / "boot/grub/grub.cfg").write_text(menu)
        self.environment.write_text("saved_entry=0\n")
        programs = {
            "grub-reboot": 'echo "next_entry=$1" >>"$R/boot/grub/grubenv"',
            "grub-editenv": (
                'F=$R/boot/grub/grubenv; case "$1 $2" in'
                ' "- unset") sed -i "/^$3=/d" "$F";; list*) cat "$F";; esac'
            ),
            "grub-probe": (
                "case $1 in --target=fs) echo ext2;; --target=fs_uuid) echo 11-22;;"
                ' --target=partmap) echo gpt;; --target=abstraction) cat "$R/abstraction" 2>/dev/null;; esac'
            ),
            "grub-mkrelpath": 'echo "${1#"$R"}"',
        }
        _install(self.root, programs)

    @property
    def environment(self) -> Path:
        return self.root / "boot/grub/grubenv"

    def told(self) -> tuple[Path, Path, str] | None:
        """See FakeLoader."""
        kept = self.environment.read_text()
        if "next_entry=ktrial\n" not in kept or not self.heeds:
            return None
        if self.forgets:
            self.environment.write_text(kept.replace("next_entry=ktrial\n", ""))
        menu = [shlex.split(line) for line in (self.root / "boot/grub/custom.cfg").read_text().splitlines()]
        assert ["menuentry", "ktrial", "--id", "ktrial", "{"] in menu
        assert ["search", "--no-floppy", "--fs-uuid", "--set=root", "11-22"] in menu
        (linux,) = [words for words in menu if words[:1] == ["linux"]]
        (initrd,) = [words for words in menu if words[:1] == ["initrd"]]
        return self._file(linux[1]), self._file(initrd[1]), " ".join(linux[2:])

    def _file(self, path: str) -> Path:
        return self.root / path.lstrip("/")


@dataclass
class FakeSystemdBoot:
    """systemd-boot: its partition, and the variable of the firmware that says what is booted once.

    Nobody has named a default: it boots the entry whose name comes last, or first, as versions before 250 do.
    """

    root: Path
    boots_first: bool = False

    def __post_init__(self) -> None:
        self.partition = self.root / "efi"
        self.entries = self.partition / "loader/entries"
        self.entries.mkdir(parents=True)
        (self.entries / "0debian.conf").write_text("title own\n")
        variables = self.root / "sys/firmware/efi/efivars"
        variables.mkdir(parents=True)
        vendor = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
        (variables / f"LoaderInfo-{vendor}").write_text("systemd-boot 252")
        self.once = variables / f"LoaderEntryOneShot-{vendor}"
        set_it = f'{{ printf "\\006\\000\\000\\000"; printf %s "$3" | sed "s/./&\\x00/g"; }} >"{self.once}"'
        order = "sort" if self.boots_first else "sort -r"
        programs = {
            "bootctl": 'case $1 in --print-boot-path) echo "$R/efi";; list) cd "$R/efi/loader/entries";'
            f" F=$(ls | {order} | head -n 1); sed -n 's/^title \\(.*\\)/  title: \\1 (default)/p' \"./$F\";;"
            f' set-oneshot) if [ -n "$3" ]; then {set_it}; else rm -f "{self.once}"; fi;; esac'
        }
        _install(self.root, programs)

    def told(self) -> tuple[Path, Path, str] | None:
        """See FakeLoader."""
        names = sorted(path.name for path in self.entries.iterdir())
        entry = names[0 if self.boots_first else -1]
        if self.once.exists():
            entry = self.once.read_bytes()[4:].replace(b"\0", b"").decode()
            self.once.unlink()
        lines = (self.entries / entry).read_text().splitlines()
        said = {name: value for name, _, value in (line.partition(" ") for line in lines)}
        if said["title"] == "own":
            return None
        image, initrd = (self.partition / said[name].lstrip("/") for name in ("linux", "initrd"))
        return image, initrd, said["options"]


def _install(root: Path, programs: dict[str, str]) -> None:
    for name, text in programs.items():
        program = root / "bin" / name
        program.write_text(f"#!/bin/sh\nR={root}\n{text}\n")
        program.chmod(0o755)
